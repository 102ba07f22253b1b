/**
 * The files that tidy looks at: read once, parsed once, findings with lines.
 *
 * A tree is a map from path to text, so a rule's self-test plants a violation in a tree of its own. Rules
 * never read the disk themselves.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'

/**
 * @typedef {object} Source
 * @property {string} path From the checkout, with `/`.
 * @property {string} text
 * @property {{program: any, comments: {type: string, value: string, start: number, end: number}[], error?:
 * any}} tree
 *   Its syntax; only of TypeScript and JavaScript.
 * @property {(offset: number) => number} lineAt
 */

/**
 * @typedef {object} Finding
 * @property {string} rule
 * @property {string} path
 * @property {number} line
 * @property {string} subject What an exception would name: a function, an export, an import.
 * @property {string} message
 */

const SCRIPT = /\.(ts|mts|cts|mjs|js)$/
const OURS = /^(src|scripts|test|bench|examples)\//
/** Files that tests need broken: nothing is asked of them. */
const BROKEN = /^test\/.*\/broken\.\w+$/
/** What a test or a test's helper is called. */
export const IS_TEST = /\.test\.(\w+\.)?m?[jt]s$/

/**
 * Everything git knows or would add. Where there is no git, everything that .gitignore does not name.
 * @param {string} root
 */
export function readTree(root) {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const { stdout, status } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  const paths = status === 0 ? [...new Set(stdout.split('\0'))] : notIgnored(root)
  const files = paths.filter((path) => isFile(join(root, path)))
  return treeOf(Object.fromEntries(files.map((path) => [path, readFileSync(join(root, path), 'utf8')])))
}

/**
 * Files below a folder by our .gitignore, which has two kinds of lines: `folder/` and `*.ending`.
 * @param {string} root
 */
export function notIgnored(root) {
  const lines = readFileSync(join(root, '.gitignore'), 'utf8').split('\n')
  const folders = new Set(lines.filter((line) => line.endsWith('/')).map((line) => line.slice(0, -1)))
  const endings = lines.filter((line) => line.startsWith('*')).map((line) => line.slice(1))
  const below = (folder) =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = `${folder}${entry.name}`
      if (path === '.git') return [] // a file, in a further worktree
      if (entry.isDirectory()) return folders.has(entry.name) ? [] : below(`${path}/`)
      return endings.some((ending) => path.endsWith(ending)) ? [] : [path]
    })
  return below('')
}

function isFile(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

/**
 * A tree of given texts.
 * @param {Record<string, string>} texts
 */
export function treeOf(texts) {
  const sources = Object.entries(texts).map(([path, text]) => sourceOf(path, text))
  return { sources, byPath: new Map(sources.map((source) => [source.path, source])) }
}

/** @param {{sources: Source[]}} tree TypeScript and JavaScript of our own. */
export function scriptsOf(tree) {
  return tree.sources.filter(({ path }) => SCRIPT.test(path) && OURS.test(path) && !BROKEN.test(path))
}

/** @param {{sources: Source[]}} tree Rust of our own. */
export function rustOf(tree) {
  return tree.sources.filter(({ path }) => path.startsWith('crates/') && path.endsWith('.rs'))
}

function sourceOf(path, text) {
  let tree
  let starts
  return {
    path,
    text,
    get tree() {
      tree ??= parse(path, text)
      return tree
    },
    lineAt(offset) {
      starts ??= lineStarts(text)
      let low = 0
      for (let high = starts.length; high - low > 1;) {
        const middle = (low + high) >> 1
        if (starts[middle] <= offset) low = middle
        else high = middle
      }
      return low + 1
    },
  }
}

/** A file that does not parse has an empty tree and an error; the rule `syntax` reports it. */
function parse(path, text) {
  const { program, comments, errors } = parseSync(path, text)
  const [error] = errors
  return error === undefined ? { program, comments } : { program: { body: [] }, comments: [], error }
}

function lineStarts(text) {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/**
 * Every node below one, each with its parent, outermost first.
 * @param {any} node
 * @param {(node: any, parent: any) => boolean | void} visit False: do not go below this one.
 * @param {any} [parent]
 */
export function walk(node, visit, parent) {
  if (visit(node, parent) === false) return
  for (const key in node) {
    const child = node[key]
    if (Array.isArray(child)) child.forEach((one) => one?.type && walk(one, visit, node))
    else if (child?.type) walk(child, visit, node)
  }
}

/** Whether a node is a function of any kind. @param {any} node */
export function isFunction(node) {
  return /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)
}

/**
 * The documentation comment right before a node; '' when there is none.
 * @param {Source} source
 * @param {number} start
 */
export function docBefore(source, start) {
  const before = source.tree.comments.filter(({ end }) => end <= start)
  const last = before.at(-1)
  if (last === undefined || last.type !== 'Block' || !last.value.startsWith('*')) return ''
  return source.text.slice(last.end, start).trim() === '' ? last.value : ''
}
