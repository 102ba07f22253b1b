/**
 * Which test files there are, which of them `npm test` runs, and which run on other Nodes, too.
 *
 * Tests lie beside the code (compiled to dist), in test/ when they cross modules, and in scripts/ and bench/
 * for the tools. What takes tens of seconds by what it does (it kills hundreds of workers, attacks a server,
 * packs, starts browsers and whole services) is left to `npm run test:all`, as are the tests of the tools and
 * some fifty files that take seven seconds or more.
 *
 * Most are about TypeScript or Rust that behaves alike on every Node, and run on one, with a third of their
 * sizes (src/base/part.test.support.ts). BY_NODE lists those about what a Node can change: threads, V8's
 * values, streams, sockets, loaders. Of those that take a second or more, the newest Nodes run one half each,
 * and other parts of those that have parts. `npm run check:long -- nodes-whole` runs each whole on each.
 *
 * seconds.json has the time of each file that takes a second or more, alone on a quiet machine; the others
 * are the fast suite. `npm test -- seconds` measures it anew.
 */
import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, normalize, relative } from 'node:path'
import { filesBelow, inRoot } from '../set-up/index.mjs'

const ROOTS = ['dist', 'test', 'scripts']

/** What depends on the Node: which files, and why. */
export const BY_NODE = [
  [/^dist\/(native|plugin)\//, 'the core is loaded; sources are parsed and hooks registered'],
  [/^dist\/transport\/(classes\/(?!shapes)|functions\/|write\/(?!large)|[a-z]+\.)/, 'values as V8 has them'],
  [/^dist\/(store\/(store|file|views|share\/share)|sync\/sync)\./, 'memory that threads and Rust share'],
  [/^dist\/zone\/(api|call|ground|owner|worker)\//, 'threads start, load modules, strip types; stacks'],
  [
    /^dist\/zone\/(cancellation|hooks|isolation|lifecycle|limits|main|modules|outcomes|signals|weak)\./,
    'threads and processes end: terminated, killed, out of memory, with errors that nobody handles',
  ],
  [
    /^dist\/(metrics|observe|telemetry|zone\/context)\//,
    'the inspector, AsyncLocalStorage, diagnostics channels',
  ],
  [/^dist\/zone\/stream\/(carried\/|stream\.)/, 'asynchronous generators and streams'],
  [/^test\/zone\//, "flags of Node, permissions, vm, test runners' threads"],
  [/^test\/heavy\//, 'add-ons of other libraries'],
  [/^test\/docs\/door\./, 'programs are typed as the pages for a new project print them'],
  [/^dist\/http\/((core|fetch|http2|message|tls|websocket)\/|[a-z-]+\.)/, 'both cores, Request, TLS'],
  [/^dist\/http\/coding\//, 'zlib'],
  [/sqlite|^test\/cli\/(jo|durable-items)/, 'node:sqlite, which Node 20 does not have'],
  [
    /^test\/cli\/(cache|kinds|observe|run|serve|signals|tls|workers)\./,
    'processes, signals, streams, loaders',
  ],
]

const SLOW = /^(test\/(browser|docs|heavy|http|package|plugin|stress)|scripts)\//
const SLOW_FILES = /^test\/(cli\/(example|start)|fleet\/(faults|manifests))\./
const SECONDS = JSON.parse(readFileSync(new URL('seconds.json', import.meta.url), 'utf8'))
const SHORT_SECONDS_MAX = 7
const LOADERS = /^(dist\/zone\/worker\/loader|test\/cli\/(cache|run)\.)/
const IS_TEST = /\.test\.m?js$/

/**
 * All test files, as paths from the checkout.
 * @param {string[]} [words] Keep those that one of these chooses: a part of their path, or a path in src, of
 *   a folder or of a file. A file without tests of its name means its folder's.
 */
export function testFiles(words = []) {
  const all = ROOTS.flatMap((root) => filesBelow(inRoot(root), (path) => IS_TEST.test(path)))
  const paths = all.map((path) => relative(inRoot(), path))
  if (words.length === 0) return paths
  const chosen = new Set(words.flatMap((word) => chosenBy(word, paths)))
  return paths.filter((path) => chosen.has(path))
}

export function chosenBy(word, paths) {
  const path = isAbsolute(word) ? relative(inRoot(), word) : normalize(word)
  if (!/^src[\\/]/.test(path)) return paths.filter((other) => other.includes(word))
  let part = path.replace(/^src/, 'dist').replace(/(\.test)?\.ts$/, '.')
  while (part !== 'dist') {
    const found = paths.filter((other) => other.startsWith(part))
    if (found.length > 0) return found
    part = dirname(part)
  }
  return []
}

/** Those that run on every Node. */
function byNodeOf(paths) {
  return paths.filter((path) => BY_NODE.some(([chooses]) => chooses.test(path)))
}

/** Those that run on a Node between two others: the short ones, and loaders. */
export function betweenOf(paths) {
  return byNodeOf(paths).filter((path) => !isLong(path) || LOADERS.test(path))
}

/**
 * Those that run on one of the two newest Nodes: what takes long, on one of the two in turn, unless it has
 * parts, of which each Node runs another.
 */
export function newestOf(paths, turn) {
  const byNode = byNodeOf(paths)
  const isParted = (path) => /part\.test\.support/.test(readFileSync(inRoot(path), 'utf8'))
  const long = longestFirst(byNode.filter((path) => isLong(path) && !isParted(path)))
  return byNode.filter((path) => !long.includes(path) || long.indexOf(path) % 2 === turn % 2)
}

/** Those that do not take tens of seconds by what they do: of these coverage counts the lines. */
export function fastOf(paths) {
  return paths.filter((path) => !isSlow(path))
}

/** Those of `npm test`, which ends within minutes: without what takes seven seconds or more. */
export function shortOf(paths) {
  return fastOf(paths).filter((path) => !(SECONDS[path] >= SHORT_SECONDS_MAX))
}

/** Those that take less than a second. */
export function quickOf(paths) {
  return fastOf(paths).filter((path) => !(path in SECONDS))
}

/** The longest first, so that none is left alone at the end. */
export function longestFirst(paths) {
  return [...paths].sort((a, b) => (SECONDS[b] ?? 0) - (SECONDS[a] ?? 0))
}

/** Those that `npm test` leaves out. */
export function slowOf(paths) {
  return paths.filter(isSlow)
}

/** Takes a second or more; what is slow is not measured. */
function isLong(path) {
  return path in SECONDS || isSlow(path)
}

function isSlow(path) {
  return SLOW.test(path) || SLOW_FILES.test(path)
}
