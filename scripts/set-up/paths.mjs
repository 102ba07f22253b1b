/**
 * The folders of the checkout.
 *
 * Everything is an absolute path or a function of one, so scripts work from any current folder.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { dirname, join } from 'node:path'

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** What set-up and the tests keep between runs; ignored by git, safe to delete. */
export const MEMORY = join(ROOT, '.set-up')
/** Where the compiled core lies in a checkout; src/native/load.ts looks here. */
export const NATIVE = join(ROOT, 'dist', 'native')
/** What users load: src bundled, with the core beside it. */
export const LIB = join(ROOT, 'lib')
/** What the suite runs: dist with few files to open (scripts/test/joined.mjs). */
export const JOINED = join(ROOT, 'joined')

/** @param {...string} parts A path below the checkout. */
export function inRoot(...parts) {
  return join(ROOT, ...parts)
}

/** All files below a folder or the file itself, sorted; nothing when it does not exist. */
export function filesBelow(path, isIncluded = () => true) {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return []
  if (stat.isFile()) return isIncluded(path) ? [path] : []
  const names = readdirSync(path).sort()
  return names.flatMap((name) =>
    name === 'node_modules' || name === 'target' ? [] : filesBelow(join(path, name), isIncluded),
  )
}

/** What package.json exports, as paths below src and dist: `index`, `http/index`, `plugin/jest`. */
export function doors() {
  const { exports } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'))
  const paths = Object.values(exports).flatMap((door) => door['corespun-unbundled'] ?? [])
  return paths.map((path) => path.replace(/^\.\/dist\/|\.js$/g, ''))
}

/** The path below lib of a door, which lies in no folder: one costs an install 4 kB. */
export function inLib(door) {
  return door.replace(/\/index$/, '').replace('/', '-')
}

/** The text of a file; undefined without the file. */
export function contentOf(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

/**
 * The files of a folder with such names are these: those that did not change keep their date, others are
 * removed.
 * @param {Map<string, string>} texts By path.
 */
export function writeAll(folder, names, texts) {
  for (const [path, text] of texts) {
    mkdirSync(dirname(path), { recursive: true })
    if (contentOf(path) !== text) writeFileSync(path, text)
  }
  for (const path of filesBelow(folder, (path) => names.test(path))) if (!texts.has(path)) rmSync(path)
}
