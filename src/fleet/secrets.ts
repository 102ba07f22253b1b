/**
 * What a connection proves itself with, and its servers: certificates and keys, a .creds file, an nkey.
 *
 * All of it is read and checked before a server is asked, so that what is wrong is named with its option. A
 * secret itself is in no error.
 */
import { readFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import {
  type PemSource,
  certificatesIn,
  messageOf,
  pemList,
  pemPath,
  pemText,
  reasonOf,
} from '../base/index.ts'
import { FleetError } from './errors.ts'
import type { ConnectSettings, FleetTls } from './settings.ts'

/** As the client of NATS takes it. */
export type NatsTls = ReturnType<typeof readTls>

/** What was read. */
export interface Secrets {
  readonly tls: NatsTls | undefined
  /** The text of a .creds file. */
  readonly credentials: string | undefined
  /** The seed of a user. */
  readonly nkey: string | undefined
}

const SEED = /\bSU[A-Z2-7]{56}\b/
/** What somebody has meant as a seed, and must not be printed. */
const SEED_LIKE = /^S[A-Z2-7]{40,}$/

const CERTIFICATES = 'certificates in PEM, or the path of a file with them'
const KEY = 'the private key of the certificate in PEM, or the path of a file with it'
const CREDENTIALS = 'a .creds file or its text'
const NKEY = 'the seed of a user (SU…), or the path of a file with it'

/**
 * Reads what the settings name.
 * @param isTls Whether the address asks for TLS.
 * @throws {FleetError} `FLEET_CREDENTIALS`.
 */
export function readSecrets(settings: ConnectSettings, isTls: boolean): Secrets {
  const { tls, credentials, nkey } = settings
  return {
    tls: tls === undefined && !isTls ? undefined : readTls(tls ?? {}),
    credentials: credentials === undefined ? undefined : textOf('credentials', credentials, CREDENTIALS),
    nkey: nkey === undefined ? undefined : seedOf(nkey),
  }
}

function readTls({ ca, cert, key, passphrase, handshakeFirst = false }: FleetTls) {
  const authorities = pemList(ca).map((one) => authorityOf(one))
  if (cert === undefined && key !== undefined)
    throw unusable('tls.cert', '', 'tls.key needs it', CERTIFICATES)
  if (cert !== undefined && key === undefined) throw unusable('tls.key', '', 'tls.cert needs it', KEY)
  const read = {
    ...(cert !== undefined && { cert: textOf('tls.cert', cert, CERTIFICATES) }),
    ...(key !== undefined && { key: textOf('tls.key', key, KEY) }),
    ...(passphrase !== undefined && { passphrase }),
  }
  if (cert !== undefined) check('tls.cert', cert, { cert: read.cert }, CERTIFICATES)
  if (key !== undefined) check('tls.key', key, read, KEY)
  return { ...(authorities.length > 0 && { ca: authorities.join('\n') }), ...read, handshakeFirst }
}

/** Parse the certificates here: Node ignores text that is not a certificate. */
function authorityOf(source: PemSource): string {
  const text = textOf('tls.ca', source, CERTIFICATES)
  let certificates: readonly X509Certificate[]
  try {
    certificates = certificatesIn(text).map((block) => new X509Certificate(block))
  } catch (cause) {
    throw unusable('tls.ca', source, messageOf(cause), CERTIFICATES)
  }
  if (certificates.length > 0) return text
  throw unusable('tls.ca', source, 'it contains no certificate', CERTIFICATES)
}

function check(option: string, source: PemSource, what: object, expected: string): void {
  try {
    createSecureContext(what)
  } catch (cause) {
    throw unusable(option, source, messageOf(cause), expected)
  }
}

function seedOf(source: PemSource): string {
  const own = source instanceof URL ? '' : pemText(source)
  if (SEED.test(own)) return SEED.exec(own)![0]
  if (source instanceof Uint8Array || SEED_LIKE.test(own))
    throw unusable('nkey', '', 'it is not a seed of a user', NKEY)
  const [seed] = SEED.exec(textOf('nkey', source, NKEY)) ?? []
  if (seed === undefined) throw unusable('nkey', source, 'it contains no seed of a user', NKEY)
  return seed
}

/** The text of a source: itself, or that of its file. */
function textOf(option: string, source: PemSource, expected: string): string {
  const path = pemPath(source)
  if (path === undefined) return pemText(source)
  try {
    return readFileSync(path, 'latin1')
  } catch (cause) {
    throw unusable(option, source, reasonOf(cause), expected)
  }
}

/** @param source Named by its path; nothing of a secret itself is shown. */
function unusable(option: string, source: PemSource, reason: string, expected: string): FleetError {
  const path = source === '' ? undefined : pemPath(source)
  return new FleetError('FLEET_CREDENTIALS', { option, path, reason, expected })
}
