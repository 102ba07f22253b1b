/**
 * The packages of a lock file, installed when they are not.
 *
 * npm writes down what it has installed (node_modules/.package-lock.json) behind package-lock.json, so the
 * install is current when that record is not older. A lock that git or a person changes is newer.
 */
import { cpSync, existsSync, lstatSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { locked } from './lock.mjs'
import { inRoot, ROOT } from './paths.mjs'
import { must, npm } from './run.mjs'

/**
 * `npm ci` in a folder with a package-lock.json, unless that is what is installed.
 * @param {string} what Is installed, for the sentence of a failure.
 * @throws {Stop} When npm is missing or fails.
 */
async function install(what, folder) {
  const [lock, record] = ['package-lock.json', join('node_modules', '.package-lock.json')].map(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
  )
  if (record >= lock) return
  const { program, args } = npm()
  const flags = ['ci', '--include=dev', '--include=optional']
  await must(`Installing ${what}`, program, [...args, ...flags], { cwd: folder })
}

/** Install a copy. It keeps the dates: a second one must not take the packages from those who use them. */
export async function installCopy(what, source, folder) {
  await locked(folder, async () => {
    cpSync(source, folder, { recursive: true, preserveTimestamps: true })
    await install(what, folder)
  })
}

/** The checkout's packages, and the links by which examples and benchmarks import it as `corespun`. */
export async function installPackages() {
  await install('packages', ROOT)
  LINKS.forEach(link)
}

/** examples/ and bench/ are packages of their own, as a user's program; their `corespun` is the checkout. */
const LINKS = ['examples', 'bench'].map((folder) => inRoot(folder, 'node_modules', 'corespun'))

function link(path) {
  if (existsSync(`${path}/package.json`)) return
  mkdirSync(dirname(path), { recursive: true })
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) rmSync(path) // a link to nowhere
  symlinkSync('../..', path, 'junction')
}
