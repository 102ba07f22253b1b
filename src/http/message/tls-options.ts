/**
 * The option `tls` of `serve`: its shape, checked at the door.
 *
 * Nothing is read here: files and PEM are the work of credentials.ts, which only servers with TLS load.
 */
import { fileURLToPath } from 'node:url'
import {
  type Kind,
  PEM,
  type PemSource,
  callback,
  flag,
  oneOf,
  optionsOf,
  pem,
  pemList,
  pems,
} from '../../base/index.ts'
import { wrong } from './limits.ts'

export type { PemSource } from '../../base/index.ts'

/** A certificate with its private key. */
export interface TlsCertificate {
  /** The certificate, followed by those that lead to its authority. */
  readonly cert: PemSource
  /** Its private key: RSA with 2048 to 8192 bits, ECDSA on P-256 or P-384, or Ed25519. */
  readonly key: PemSource
  /** What the key is encrypted with. Default: it is not. */
  readonly passphrase?: string
}

/** Option `tls` of {@link serve}; `cert` and `key`, or `certificates`, are required. */
export interface TlsOptions {
  /** The certificate, followed by those that lead to its authority: PEM, or the path of a file. */
  readonly cert?: PemSource
  /** Its private key. */
  readonly key?: PemSource
  /** What the key is encrypted with. Default: it is not. */
  readonly passphrase?: string
  /**
   * More certificates, each for the names in it (`*.example.com` is for one label). A client that
   * asks for a name that none has, or for no name, gets `cert`, or the first of these.
   */
  readonly certificates?: readonly TlsCertificate[]
  /**
   * Called with a name, in lower case, that no certificate has. Returns the certificate for it, or
   * `undefined` for the first one. What it returns is used again for a minute. Its time counts to that of
   * the handshake, `limits.headersMs`.
   */
  readonly sni?: (name: string) => TlsCertificate | undefined | Promise<TlsCertificate | undefined>
  /** Authorities of clients, which are asked for a certificate: `request.clientCertificate`. */
  readonly ca?: PemSource | readonly PemSource[]
  /**
   * With `ca`: whether a client without a certificate is refused (`'require'`, the default) or served without
   * one (`'request'`). One with an invalid certificate is refused.
   */
  readonly clients?: 'require' | 'request'
  /**
   * Protocols that are agreed on by ALPN, the preferred one first. Default `['h2', 'http/1.1']`. On node:http
   * `'h2'` is left out.
   */
  readonly alpn?: readonly ('h2' | 'http/1.1')[]
  /** The least version of TLS. Default `'TLSv1.2'`. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3'
  /**
   * Whether certificates and keys that are files are read again when they change; connections keep those that
   * they began with. Files that cannot be used are reported as a warning and change nothing. Default true.
   */
  readonly watch?: boolean
}

/** The options, complete; the files are not read. */
export interface TlsSettings {
  /** Not empty. The first is that of clients that ask for no known name. */
  readonly certificates: readonly Named<TlsCertificate>[]
  readonly ca: readonly Named<{ readonly cert: PemSource }>[]
  readonly clients: 'require' | 'request' | 'none'
  readonly sni: TlsOptions['sni']
  readonly alpn: readonly string[]
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly watch: boolean
}

/** With the name of its option, for errors. */
export type Named<Value> = Value & { readonly where: string }

const passphrase: Kind<string | undefined> = {
  expected: 'a string',
  accepts: (given) => typeof given === 'string',
  default: undefined,
}
const listOf = <Value>(expected: string, accepts: (one: unknown) => boolean) =>
  ({
    expected,
    accepts: (given) => Array.isArray(given) && given.length > 0 && given.every(accepts),
    default: undefined,
  }) as Kind<readonly Value[] | undefined>

const CERTIFICATE = { cert: pem, key: pem, passphrase }
const KINDS = {
  ...CERTIFICATE,
  certificates: listOf<TlsCertificate>('an array of { cert, key }', (one) => typeof one === 'object'),
  sni: { ...callback, expected: 'a function (name)' } as Kind<TlsOptions['sni']>,
  ca: pems,
  clients: oneOf<'require' | 'request', undefined>(['require', 'request'], undefined),
  alpn: listOf<'h2' | 'http/1.1'>(
    "an array of 'h2' and 'http/1.1'",
    (one) => one === 'h2' || one === 'http/1.1',
  ),
  minVersion: oneOf<'TLSv1.2' | 'TLSv1.3', 'TLSv1.2'>(['TLSv1.2', 'TLSv1.3'], 'TLSv1.2'),
  watch: flag(true),
}

/** Checks the option. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseTls(given: unknown, call: string): TlsSettings {
  const {
    cert,
    key,
    certificates = [],
    ca,
    clients,
    sni,
    alpn,
    minVersion,
    watch,
    ...rest
  } = optionsOf(given, KINDS, wrong, call, 'tls')
  const all: Named<TlsCertificate>[] = []
  if (cert !== undefined || key !== undefined) all.push(parseCertificate({ cert, key, ...rest }, call, 'tls'))
  for (const [index, one] of certificates.entries())
    all.push(parseCertificate(one, call, `tls.certificates[${index}]`))
  if (all.length === 0)
    throw wrong(`${call}: tls`, '`cert` and `key`, or `certificates`', undefined, { verb: 'needs' })
  if (clients !== undefined && ca === undefined)
    throw wrong(`${call}: tls.clients`, '`ca`, whose clients are known', clients, { verb: 'needs' })
  return Object.freeze({
    certificates: all,
    ca: pemList(ca).map((one) => ({ cert: one, where: 'tls.ca' })),
    clients: ca === undefined ? 'none' : (clients ?? 'require'),
    sni,
    alpn: alpn ?? ['h2', 'http/1.1'],
    minVersion,
    watch,
  })
}

/** Options that were checked, as JSON: bytes as text, URLs as paths. */
export function withoutBytes(options: TlsOptions): TlsOptions {
  const plain = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
    if (value instanceof URL) return fileURLToPath(value)
    if (Array.isArray(value)) return value.map(plain)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]))
  }
  return plain(options) as TlsOptions
}

/** Checks one certificate. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseCertificate(given: unknown, call: string, where: string): Named<TlsCertificate> {
  const { cert, key, passphrase: secret } = optionsOf(given, CERTIFICATE, wrong, call, where)
  if (cert === undefined) throw wrong(`${call}: ${where}.cert`, PEM, cert)
  if (key === undefined) throw wrong(`${call}: ${where}.key`, PEM, key)
  return { cert, key, where, ...(secret === undefined ? {} : { passphrase: secret }) }
}
