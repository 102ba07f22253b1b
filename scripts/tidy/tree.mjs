/**
 * The files that tidy looks at, read once.
 *
 * A tree is a map from path to text, so a rule's self-test plants a violation in a tree of its own. Rules
 * never read the disk themselves.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const SCRIPT = /\.(ts|mts|cts|mjs|js)$/
const OURS = /^(src|scripts|test|bench|examples)\//
/** Files that tests need broken: nothing is asked of them. */
const BROKEN = /^test\/.*\/broken\.\w+$/

/** Everything git tracks or would add. Where there is no git, everything that .gitignore does not name. */
export function readTree(root) {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const { stdout, status } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  const paths = status === 0 ? [...new Set(stdout.split('\0'))] : notIgnored(root)
  const files = paths.filter((path) => isFile(join(root, path)))
  return treeOf(Object.fromEntries(files.map((path) => [path, readFileSync(join(root, path), 'utf8')])))
}

/** Files below a folder by our .gitignore. It has lines of three kinds: `folder/`, `/folder/`, `*.ending`. */
export function notIgnored(root) {
  const lines = readFileSync(join(root, '.gitignore'), 'utf8').split('\n')
  const folders = new Set(lines.filter((line) => line.endsWith('/')).map((line) => line.slice(0, -1)))
  const endings = lines.filter((line) => line.startsWith('*')).map((line) => line.slice(1))
  const below = (folder) =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = `${folder}${entry.name}`
      if (path === '.git') return [] // a file, in a further worktree
      const isIgnored = folders.has(entry.name) || folders.has(`/${path}`)
      if (entry.isDirectory()) return isIgnored ? [] : below(`${path}/`)
      return endings.some((ending) => path.endsWith(ending)) ? [] : [path]
    })
  return below('')
}

function isFile(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

/** A tree of given texts. */
export function treeOf(texts) {
  const sources = Object.entries(texts).map(([path, text]) => ({ path, text }))
  return { sources, byPath: new Map(sources.map((source) => [source.path, source])) }
}

/** TypeScript and JavaScript of our own. */
export function scriptsOf(tree) {
  return tree.sources.filter(({ path }) => SCRIPT.test(path) && OURS.test(path) && !BROKEN.test(path))
}

/** Rust of our own. */
export function rustOf(tree) {
  return tree.sources.filter(({ path }) => path.startsWith('crates/') && path.endsWith('.rs'))
}
