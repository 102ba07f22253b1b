/**
 * Certificates and keys as programs pass them: PEM itself, or the file that contains it.
 *
 * Nothing is read here: files are the work of whoever uses them.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Kind } from './options.ts'

/** PEM text, bytes of it, or the path or `file:` URL of a file that contains it. */
export type PemSource = string | Uint8Array | URL

/** What an option of that type must be, in errors. */
export const PEM = 'PEM, or the path or file: URL of a file'

const BEGIN = '-----BEGIN '
const CERTIFICATES = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g

const isPem = (given: unknown): boolean =>
  (typeof given === 'string' && given !== '') ||
  (given instanceof Uint8Array && given.byteLength > 0) ||
  (given instanceof URL && given.protocol === 'file:')

export const pem: Kind<PemSource | undefined> = { expected: PEM, accepts: isPem, default: undefined }

export const pems: Kind<PemSource | readonly PemSource[] | undefined> = {
  expected: `${PEM}, or an array of these`,
  accepts: (given) => isPem(given) || (Array.isArray(given) && given.length > 0 && given.every(isPem)),
  default: undefined,
}

/** Those of an option of {@link pems}. */
export const pemList = (given: PemSource | readonly PemSource[] | undefined): readonly PemSource[] =>
  given === undefined ? [] : Array.isArray(given) ? given : [given as PemSource]

/** The absolute path of a source's file; `undefined` for PEM itself. */
export function pemPath(source: PemSource): string | undefined {
  if (source instanceof URL) return fileURLToPath(source)
  return typeof source === 'string' && !source.includes(BEGIN) ? resolve(source) : undefined
}

/** The text of a source that is PEM itself. */
export const pemText = (source: PemSource): string => Buffer.from(source as Uint8Array).toString('latin1')

/** The certificates in a text, each as PEM. */
export const certificatesIn = (text: string): readonly string[] => text.match(CERTIFICATES) ?? []
