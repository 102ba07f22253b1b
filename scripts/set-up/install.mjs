/**
 * The packages of the lock file, installed when they are not.
 *
 * npm writes down what it installed (node_modules/.package-lock.json). The install is current when that
 * record has every package of package-lock.json at the locked version; optional ones of other platforms may
 * be absent. So `npm install <package>` by hand needs no second install here, and a changed lock file does.
 */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { inRoot } from './place.mjs'
import { must, npm } from './run.mjs'
import { checkNpm } from './tools.mjs'

/**
 * Whether npm's record of an install has every package of a lock file at the locked version.
 * @param {{packages: Record<string, any>}} lock
 * @param {{packages: Record<string, any>} | undefined} record
 */
export function isInstalled(lock, record) {
  if (record === undefined) return false
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (!path.startsWith('node_modules/') || wanted.link) return true
    const found = record.packages[path]
    if (found === undefined) return wanted.optional === true
    return found.version === wanted.version && found.integrity === wanted.integrity
  })
}

/** The step: `npm ci`, and the link by which examples and benchmarks import this checkout as `skein`. */
export const installStep = {
  name: 'packages',
  isCurrent: () => isInstalled(readJson('package-lock.json'), record()) && LINKS.every(isLinked),
  async work() {
    if (!isInstalled(readJson('package-lock.json'), record())) {
      await checkNpm()
      const { program, args } = npm()
      await must('Installing packages', program, [...args, 'ci', '--include=dev', '--include=optional'])
    }
    LINKS.forEach(link)
  },
}

function record() {
  return existsSync(inRoot('node_modules', '.package-lock.json'))
    ? readJson('node_modules/.package-lock.json')
    : undefined
}

function readJson(path) {
  return JSON.parse(readFileSync(inRoot(path), 'utf8'))
}

/** examples/ and bench/ are packages of their own, as a user's program is; their `skein` is this checkout. */
const LINKS = ['examples', 'bench'].map((folder) => inRoot(folder, 'node_modules', 'skein'))

function isLinked(path) {
  return existsSync(`${path}/package.json`)
}

function link(path) {
  if (isLinked(path)) return
  mkdirSync(dirname(path), { recursive: true })
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) rmSync(path) // a link to nowhere
  symlinkSync('../..', path, 'junction')
}
