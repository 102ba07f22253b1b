/**
 * The door of the bench: `npm run bench -- ...` and `npm run report -- ...`.
 *
 * Does the set-up that the words need (competitors on first use, TypeScript, the package itself), chooses the
 * Node and hands over to the compiled main. Plain JavaScript without dependencies, so that it runs before
 * anything is installed. `ab`, `counts` and `--self-test` need no competitors.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const bench = fileURLToPath(new URL('.', import.meta.url)).replace(/\/$/, '')
const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const words = process.argv.slice(2)

if (words.includes('--self-test')) {
  link()
  compile()
  const tests = readdirSync(`${bench}/dist/test`).filter((name) => name.endsWith('.test.js'))
  process.exit(
    run(process.execPath, [
      '--test',
      '--test-reporter=spec',
      ...tests.map((name) => `${bench}/dist/test/${name}`),
    ]),
  )
}
const has = (...flags) => words.some((word) => flags.includes(word))
const isReading = has('--compare', '--list', '--help')
if (words[0] === 'report' ? has('--quick', '--missing', '--fresh') : !isReading) {
  if (words[0] !== 'ab' && words[0] !== 'counts') install()
  else if (has('--against')) build(words[words.indexOf('--against') + 1])
  build(root)
}
link()
compile()
const { node, others } = chooseNode(words)
process.exit(run(node, [`${bench}/dist/main.js`, ...others]))

/** What is measured is what users get: `npm start` and `npm test` leave a core that was compiled faster. */
function build(checkout) {
  const door = resolve(checkout, 'scripts', 'run.mjs')
  const env = { ...process.env, CORESPUN_PROFILE: 'release' }
  if (
    existsSync(door) &&
    spawnSync(process.execPath, [door, 'build'], { stdio: 'inherit', env }).status !== 0
  )
    fail(`${checkout} could not be built`)
}

/** Competitors by the committed lock, once for each content of it. */
function install() {
  const stamp = `${bench}/node_modules/.corespun-bench`
  const chosen = createHash('sha256')
    .update(readFileSync(`${bench}/package-lock.json`))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === chosen) return
  console.error('bench: installing the competitors (once)')
  // Their optional native parts arrive prebuilt; nothing of theirs is compiled or run here.
  const code = run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], bench)
  if (code !== 0) fail('the competitors could not be installed: npm ci failed in bench/')
  writeFileSync(stamp, chosen)
}

/** `corespun` below bench/node_modules is this checkout, so contenders import it by its name. */
function link() {
  const path = `${bench}/node_modules/corespun`
  mkdirSync(`${bench}/node_modules`, { recursive: true })
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return
  rmSync(path, { recursive: true, force: true })
  symlinkSync('../..', path, 'dir')
}

/**
 * Compile the bench; it is emitted even when types are wrong, and then the words of the compiler are shown.
 */
function compile() {
  const compiler = `${root}/node_modules/typescript/bin/tsc`
  if (!existsSync(compiler) || !existsSync(`${root}/dist`))
    fail('the package is not built: run `npm run build` first')
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', bench], { encoding: 'utf8' })
  if (status !== 0) console.error(`bench: types are wrong\n${stdout}`)
}

/** `--node 24` runs under that Node: CORESPUN_BENCH_NODE_24, else the one that `npm test` installed. */
function chooseNode(all) {
  const at = all.indexOf('--node')
  if (at < 0) return { node: process.execPath, others: all }
  const major = all[at + 1] ?? ''
  const others = [...all.slice(0, at), ...all.slice(at + 2)]
  if (process.versions.node.startsWith(`${major}.`)) return { node: process.execPath, others }
  const candidates = [
    process.env[`CORESPUN_BENCH_NODE_${major}`],
    `${root}/.set-up/nodes/node_modules/node-${major}/bin/node`,
  ]
  const node = candidates.find((path) => path !== undefined && existsSync(path))
  if (node === undefined) {
    fail(
      `no Node ${major} here: run \`npm test\` once, which installs the Nodes it tests on, or set ` +
        `CORESPUN_BENCH_NODE_${major} to its path`,
    )
  }
  return { node, others }
}

function run(command, args, cwd = root) {
  return spawnSync(command, args, { cwd, stdio: 'inherit' }).status ?? 1
}

function fail(sentence) {
  console.error(`bench: ${sentence}`)
  process.exit(1)
}
