/**
 * Certificates and keys, read from PEM or files and checked before any client sees them.
 *
 * Both cores get what Node's own parser accepts, so that the same mistake is the same error. What is wrong is
 * named with its option and file.
 */
import { type KeyObject, X509Certificate, createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type PemSource, certificatesIn, messageOf, pemPath, pemText } from '../../base/index.ts'
import type { Credentials, Tls } from './core-interface.ts'
import { HttpError } from '../errors.ts'
import { type Named, parseCertificate, type TlsCertificate, type TlsSettings } from './tls-options.ts'

/** What happens to a certificate that is not valid now. */
type OnExpired = (error: HttpError) => void

function refuse(error: HttpError): never {
  throw error
}

/**
 * Reads what the settings name.
 * @param onExpired Receives the error for a certificate that is not valid now. Default: it is thrown.
 * @throws {HttpError} `HTTP_TLS_UNREADABLE`, `HTTP_TLS_CERTIFICATE`, `HTTP_TLS_EXPIRED`, `HTTP_TLS_KEY`.
 */
export function readTls(settings: TlsSettings, onExpired: OnExpired = refuse): Tls {
  const { clients, alpn, minVersion, sni } = settings
  return {
    certificates: settings.certificates.map((one) => readCredentials(one, onExpired)),
    authorities: settings.ca.flatMap(({ cert, where }) => readCertificates(cert, where)),
    clients,
    alpn,
    minVersion,
    sni: sni === undefined ? undefined : async (name) => chosen(await sni(name), name),
    certificateOf: (der) => new X509Certificate(der),
  }
}

function chosen(given: TlsCertificate | undefined, name: string): Credentials | undefined {
  if (given === undefined) return undefined
  const where = `tls.sni(${JSON.stringify(name)})`
  return readCredentials(parseCertificate(given, 'serve()', where), refuse)
}

/** The files that settings name, as absolute paths. */
export function filesOf({ certificates, ca }: TlsSettings): string[] {
  const sources = [...certificates.flatMap(({ cert, key }) => [cert, key]), ...ca.map(({ cert }) => cert)]
  return [...new Set(sources.flatMap((source) => pemPath(source) ?? []))]
}

/** The text of a source, and its name in errors. */
function textOf(source: PemSource, where: string): { text: string; where: string } {
  const path = pemPath(source)
  if (path === undefined) return { text: pemText(source), where }
  const named = `${where} (${path})`
  try {
    return { text: readFileSync(path, 'latin1'), where: named }
  } catch (cause) {
    throw new HttpError('HTTP_TLS_UNREADABLE', { where: named, reason: messageOf(cause) }, { cause })
  }
}

function readCertificates(source: PemSource, where: string): X509Certificate[] {
  const { text, where: named } = textOf(source, where)
  const blocks = certificatesIn(text)
  try {
    if (blocks.length > 0) return blocks.map((block) => new X509Certificate(block))
  } catch (cause) {
    throw new HttpError('HTTP_TLS_CERTIFICATE', { where: named, reason: messageOf(cause) }, { cause })
  }
  throw new HttpError('HTTP_TLS_CERTIFICATE', { where: named, reason: 'it contains no PEM CERTIFICATE' })
}

function readCredentials(given: Named<TlsCertificate>, onExpired: OnExpired): Credentials {
  const { where } = given
  const chain = readCertificates(given.cert, `${where}.cert`)
  const [leaf] = chain as [X509Certificate]
  const key = readKey(given)
  if (!leaf.checkPrivateKey(key)) {
    const reason = `it is not the key of the certificate ${where}.cert (${oneLine(leaf.subject)})`
    throw new HttpError('HTTP_TLS_KEY', { where: `${where}.key`, reason })
  }
  const { validFrom, validTo } = leaf
  const now = Date.now()
  if (now > Date.parse(validTo) || now < Date.parse(validFrom))
    onExpired(new HttpError('HTTP_TLS_EXPIRED', { where: `${where}.cert`, validFrom, validTo }))
  const names = [...(leaf.subjectAltName ?? '').matchAll(/DNS:([^,\s"]+)/g)].map(([, name]) =>
    name.toLowerCase(),
  )
  return { chain, key: key.export({ type: 'pkcs8', format: 'der' }), names }
}

function readKey({ key, passphrase, where }: Named<TlsCertificate>): KeyObject {
  const { text, where: named } = textOf(key, `${where}.key`)
  try {
    return createPrivateKey(passphrase === undefined ? text : { key: text, passphrase })
  } catch (cause) {
    const isEncrypted = text.includes('ENCRYPTED')
    const secret = passphrase === undefined ? 'a passphrase' : 'another passphrase'
    const reason = isEncrypted ? `it is encrypted with ${secret}` : messageOf(cause)
    throw new HttpError('HTTP_TLS_KEY', { where: named, reason }, { cause })
  }
}

function oneLine(text: string): string {
  return text.replaceAll('\n', ', ')
}

/** The credentials for a name; `undefined`: none of the list has it. */
export function credentialsFor(certificates: readonly Credentials[], name: string): Credentials | undefined {
  const wild = `*${name.slice(name.indexOf('.'))}`
  const has = (one: string) => certificates.find(({ names }) => names.includes(one))
  return has(name) ?? (name.includes('.') ? has(wild) : undefined)
}
