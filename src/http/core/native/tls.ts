/**
 * Certificates as the native core reads them: words and blobs, each a word and that many bytes.
 *
 * crates/http/src/tls/settings.rs reads them.
 */
import type { Credentials, Tls } from '../../message/core-interface.ts'

const TlsFlag = { only13: 1, asksClients: 2, refusesOthers: 4, asksHost: 8 } as const

/** The settings of a server. */
export function packTls({ certificates, authorities, clients, alpn, minVersion, sni }: Tls): Uint8Array {
  const flags =
    (minVersion === 'TLSv1.3' ? TlsFlag.only13 : 0) |
    (clients === 'none' ? 0 : TlsFlag.asksClients) |
    (clients === 'require' ? TlsFlag.refusesOthers : 0) |
    (sni === undefined ? 0 : TlsFlag.asksHost)
  return bytesOf([
    word(flags),
    list(alpn.map((protocol) => blob(Buffer.from(protocol)))),
    list(authorities.map(({ raw }) => blob(raw))),
    list(certificates.map(packed)),
  ])
}

/** One certificate; empty: none. */
export function packCredentials(credentials: Credentials | undefined): Uint8Array {
  return bytesOf(credentials === undefined ? [] : [packed(credentials)])
}

function packed({ key, names, chain }: Credentials): Buffer {
  return Buffer.concat([
    blob(key),
    list(names.map((name) => blob(Buffer.from(name)))),
    list(chain.map(({ raw }) => blob(raw))),
  ])
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function blob(bytes: Uint8Array): Buffer {
  return Buffer.concat([word(bytes.byteLength), bytes])
}

function list(items: readonly Buffer[]): Buffer {
  return Buffer.concat([word(items.length), ...items])
}

function bytesOf(parts: readonly Buffer[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}
