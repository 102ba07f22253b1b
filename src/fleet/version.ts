/**
 * The version of a module: a hash of its bytes, of all that it imports, and of the lock file of its packages.
 *
 * Bytes and not text, since a URL may refer to something else, such as WebAssembly. Paths are relative to
 * the module, so the same deployment has the same version on every machine. Two processes that agree on it
 * run the same code, packages included.
 */
import { createHash } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { sourcesOf } from '../zone/internal.ts'

const LOCK_FILES = ['package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock']
const VERSION_CHARS = 16

/**
 * The version of the module at a file: URL or an absolute path, as 16 hexadecimal digits.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { versionOf } from 'corespun/fleet'
 *
 * assert.match(versionOf(import.meta.url), /^[0-9a-f]{16}$/)
 * ```
 */
export function versionOf(module: string | URL): string {
  const path = module instanceof URL || module.startsWith('file:') ? fileURLToPath(module) : module
  const hash = createHash('sha256')
  const folder = dirname(path)
  const files = [...sourcesOf(path).keys()].map(
    (file) => [relative(folder, file).split(sep).join('/'), bytesOf(file)] as const,
  )
  for (const [file, bytes] of files.sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`${file}\0${bytes?.length}\0`).update(bytes ?? '')
  hash.update(lockOf(folder))
  return hash.digest('hex').slice(0, VERSION_CHARS)
}

/** The URL of a module, of a URL or an absolute path: as Node names it, which follows links. */
export function urlOf(module: string | URL): string {
  const text = module instanceof URL || /^\w{2,}:/.test(module) ? String(module) : pathToFileURL(module).href
  if (!text.startsWith('file:')) return text
  const url = new URL(text)
  try {
    return `${pathToFileURL(realpathSync(url)).href}${url.search}${url.hash}`
  } catch {
    return text // whoever loads it reports that it is missing
  }
}

/** The bytes of the next lock file above. */
function lockOf(folder: string): Uint8Array | string {
  for (const name of LOCK_FILES) {
    const bytes = bytesOf(join(folder, name))
    if (bytes !== undefined) return bytes
  }
  const above = dirname(folder)
  return above === folder ? '' : lockOf(above)
}

function bytesOf(path: string): Uint8Array | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined // not there, or a folder
  }
}
