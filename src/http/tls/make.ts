/**
 * Makes certificates, for development and for tests: ECDSA on P-256, valid for a while, in DER by hand.
 *
 * Node has keys and signatures and reads certificates, but makes none. What is missing is the encoding of
 * some twenty fields; the packages for it bring an ASN.1 library of a megabyte.
 */
import { type KeyObject, createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate and its key in PEM. */
export interface Made {
  readonly cert: string
  readonly key: string
}

/** What {@link makeCertificate} puts into a certificate. */
export interface CertificateFields {
  /** Its common name. */
  readonly name: string
  /** Names and IP addresses of hosts. */
  readonly hosts?: readonly string[]
  /** Whether it may sign others. */
  readonly isAuthority?: boolean
  /** What signs it. Default: itself. */
  readonly issuer?: Made & { readonly name: string }
  /** When it begins and ends. Default: an hour ago, and 30 days from now. */
  readonly from?: Date
  readonly to?: Date
  /** X.509 version 1, without extensions. Default: 3. */
  readonly version?: 1
}

const DAY_MS = 86_400_000
const OIDS = {
  commonName: [0x55, 0x04, 0x03],
  basicConstraints: [0x55, 0x1d, 0x13],
  extendedKeyUsage: [0x55, 0x1d, 0x25],
  subjectAltName: [0x55, 0x1d, 0x11],
  serverAuth: [0x2b, 6, 1, 5, 5, 7, 3, 1],
  clientAuth: [0x2b, 6, 1, 5, 5, 7, 3, 2],
  ecdsaWithSha256: [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
} as const

/** Makes a certificate and a new key. */
export function makeCertificate(fields: CertificateFields): Made {
  const { name, hosts = [], isAuthority = false, issuer } = fields
  const ifCurrent = (part: Buffer): Buffer[] => (fields.version === 1 ? [] : [part])
  const from = fields.from ?? new Date(Date.now() - DAY_MS / 24)
  const to = fields.to ?? new Date(Date.now() + 30 * DAY_MS)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(oid('ecdsaWithSha256'))
  const serial = randomBytes(16)
  serial[0] = (serial[0] & 0x3f) | 0x40 // positive, and of full length
  const signed = sequence(
    ...ifCurrent(tagged(0xa0, tagged(0x02, Buffer.of(2)))),
    tagged(0x02, serial),
    algorithm,
    nameOf(issuer?.name ?? name),
    sequence(time(from), time(to)),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    ...ifCurrent(tagged(0xa3, sequence(...extensions(hosts, isAuthority)))),
  )
  const signer: KeyObject = issuer === undefined ? privateKey : createPrivateKey(issuer.key)
  const signature = tagged(0x03, Buffer.of(0), sign('sha256', signed, signer))
  const der = sequence(signed, algorithm, signature)
  const lines = der.toString('base64').replace(/.{64}/g, '$&\n').trimEnd()
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function extensions(hosts: readonly string[], isAuthority: boolean): Buffer[] {
  const yes = tagged(0x01, Buffer.of(0xff))
  const all = [
    sequence(oid('basicConstraints'), yes, octets(sequence(...(isAuthority ? [yes] : [])))),
    sequence(oid('extendedKeyUsage'), octets(sequence(oid('serverAuth'), oid('clientAuth')))),
  ]
  if (hosts.length > 0) all.push(sequence(oid('subjectAltName'), octets(sequence(...hosts.map(hostOf)))))
  return isAuthority ? all.slice(0, 1) : all
}

/** A DNS name, or an address. */
function hostOf(host: string): Buffer {
  if (isIP(host) === 0) return tagged(0x82, Buffer.from(host))
  if (isIP(host) === 4) return tagged(0x87, Buffer.from(host.split('.').map(Number)))
  const [head = '', tail = ''] = host.split('::')
  const groups = (text: string): string[] => text.split(':').filter((group) => group !== '')
  const [first, last] = [groups(head), groups(tail)]
  const zeros = new Array<string>(8 - first.length - last.length).fill('0')
  const words = [...first, ...zeros, ...last].map((group) => Number.parseInt(group, 16))
  return tagged(0x87, Buffer.from(words.flatMap((word) => [word >> 8, word & 0xff])))
}

function nameOf(name: string): Buffer {
  const pair = sequence(oid('commonName'), tagged(0x0c, Buffer.from(name)))
  return sequence(tagged(0x31, pair))
}

/** As UTCTime up to 2049, which RFC 5280 (4.1.2.5) demands. */
function time(at: Date): Buffer {
  const digits = at.toISOString().replace(/\D/g, '').slice(0, 14)
  if (digits < '2050') return tagged(0x17, Buffer.from(`${digits.slice(2)}Z`))
  return tagged(0x18, Buffer.from(`${digits}Z`))
}

function oid(name: keyof typeof OIDS): Buffer {
  return tagged(0x06, Buffer.from(OIDS[name]))
}

function octets(content: Buffer): Buffer {
  return tagged(0x04, content)
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts)
}

/** A value with its tag and length. */
function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content])
  if (length < 0x100) return Buffer.concat([Buffer.of(tag, 0x81, length), content])
  return Buffer.concat([Buffer.of(tag, 0x82, length >> 8, length & 0xff), content])
}
