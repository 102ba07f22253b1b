/**
 * The packages of a lock file, installed when they are not.
 *
 * npm writes down what it installed (node_modules/.package-lock.json). The install is current when that
 * record has every package of package-lock.json at the locked version; optional ones of other platforms may
 * be absent. So `npm install <package>` by hand needs no second install here, and a changed lock file does.
 */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inRoot, ROOT } from './paths.mjs'
import { must, npm } from './run.mjs'
import { checkNpm } from './tools.mjs'

/**
 * Whether npm's record of an install has every package of a lock file at the locked version.
 * @param {{packages: Record<string, any>}} lock
 * @param {{packages: Record<string, any>} | undefined} record
 */
export function isInstalled(lock, record) {
  if (record === undefined) return false
  return Object.entries(lock.packages).every(([path, locked]) => {
    if (!path.startsWith('node_modules/') || locked.link) return true
    const found = record.packages[path]
    if (found === undefined) return locked.optional === true
    return found.version === locked.version && found.integrity === locked.integrity
  })
}

/**
 * `npm ci` in a folder with a package-lock.json, unless that is what is installed.
 * @param {string} what Is installed, for the sentence of a failure.
 * @param {string} folder
 * @throws {Stop} When npm is missing, too old, or fails.
 */
export async function install(what, folder) {
  const record = join(folder, 'node_modules', '.package-lock.json')
  const recorded = existsSync(record) ? readJson(record) : undefined
  if (isInstalled(readJson(join(folder, 'package-lock.json')), recorded)) return
  await checkNpm()
  const { program, args } = npm()
  const flags = ['ci', '--include=dev', '--include=optional']
  await must(`Installing ${what}`, program, [...args, ...flags], { cwd: folder })
}

/** The checkout's packages, and the links by which examples and benchmarks import it as `corespun`. */
export async function installPackages() {
  await install('packages', ROOT)
  LINKS.forEach(link)
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** examples/ and bench/ are packages of their own, as a user's program; their `corespun` is the checkout. */
const LINKS = ['examples', 'bench'].map((folder) => inRoot(folder, 'node_modules', 'corespun'))

function link(path) {
  if (existsSync(`${path}/package.json`)) return
  mkdirSync(dirname(path), { recursive: true })
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) rmSync(path) // a link to nowhere
  symlinkSync('../..', path, 'junction')
}
