/**
 * The steps of `npm test` and their summary.
 *
 * A step is a name and a function that resolves to an exit code and shows its own output. Words on the
 * command line that name steps choose among them; the other words choose among the test files.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from '../check/main.mjs'
import { inRoot, ROOT, run, Stop } from '../set-up/index.mjs'
import { coreOf, testFiles } from './files.mjs'
import { otherNodes } from './nodes.mjs'
import { loomModels, rustTests } from './rust.mjs'

/** A URL: of a path --import would take what follows a # or ? for something else. */
const LEAKS = new URL('./leaks.mjs', import.meta.url).href
const FAILURES = new URL('./failures.mjs', import.meta.url).href
/** A test file that takes longer hangs. */
const FILE_MS_MAX = 10 * 60_000
/** Node takes one less than there are cores, but many files wait more than they work. */
const FILES_AT_ONCE = Math.max(2, availableParallelism() - 1)

/**
 * Run the chosen steps, all of them when none is named.
 * @param {string[]} words
 * @returns {Promise<number>} 0 when every step passed.
 */
export async function runTests(words) {
  /** What the suites say of what failed in them, for the end. @type {string[]} */
  const failures = []
  const steps = allSteps(failures)
  const named = steps.filter(({ name }) => words.includes(name))
  const filters = words.filter((word) => !steps.some(({ name }) => name === word))
  const chosen =
    named.length > 0 ? named : filters.length > 0 ? steps.filter(({ name }) => name === 'suite') : steps
  const results = []
  for (const { name, title, work } of chosen) results.push(await timed(name, title, () => work(filters)))
  return summarize(results, failures)
}

function allSteps(failures) {
  const ownNode = { name: `Node ${process.versions.node}`, path: process.execPath }
  return [
    { name: 'check', title: 'types, lints, formats, tidy', work: () => runChecks([]) },
    { name: 'rust', title: 'cargo test', work: rustTests },
    { name: 'loom', title: 'loom models', work: loomModels },
    { name: 'bench', title: 'the bench checks itself', work: benchSelfTest },
    {
      name: 'suite',
      title: `the suite on ${ownNode.name}`,
      work: (words) => suite(words, ownNode, failures),
    },
    {
      name: 'nodes',
      title: "the suite's core on Node 22, 24 and 26",
      work: (words) => onOtherNodes(words, failures),
    },
  ]
}

async function timed(name, title, work) {
  console.log(`\n━━ ${name}: ${title}`)
  const startedMs = performance.now()
  const code = await work().catch((error) => {
    console.error(error instanceof Stop ? error.message : error)
    return 1
  })
  return { name, code, seconds: (performance.now() - startedMs) / 1000 }
}

/**
 * Run test files with Node's runner and the leak check.
 * @param {string[]} words
 * @param {{name: string, path: string}} node
 * @param {string[]} failures Gets what failed, as text.
 * @param {(paths: string[]) => string[]} select
 * @param {object} env Variables besides those of this process.
 */
async function suite(words, node, failures, select = (paths) => paths, env = {}) {
  const files = select(testFiles(words))
  if (files.length === 0) throw new Stop(`No test file has ${words.join(' or ')} in its path.`)
  const folder = mkdtempSync(join(tmpdir(), 'skein-failures-'))
  const failed = join(folder, 'failed.txt')
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout']
  reporters.push(`--test-reporter=${FAILURES}`, `--test-reporter-destination=${failed}`)
  const flags = ['--import', LEAKS, '--test', ...reporters, `--test-timeout=${FILE_MS_MAX}`]
  const args = [...flags, `--test-concurrency=${FILES_AT_ONCE}`, ...files]
  try {
    const { code } = await run(node.path, args, { show: true, cwd: ROOT, env: { ...env, ...cleanEnv() } })
    if (code !== 0) failures.push(`${node.name}\n${readFileSync(failed, 'utf8')}`)
    return code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** npm's own variables would reach programs that tests start, and make them behave as if npm ran them. */
function cleanEnv() {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|command)/.test(name),
  )
  return Object.fromEntries(entries)
}

/** The bench has its own build and door; its competitors are not needed for this. */
async function benchSelfTest() {
  const { code } = await run(process.execPath, [inRoot('bench', 'run.mjs'), '--self-test'], { show: true })
  return code
}

async function onOtherNodes(words, failures) {
  const nodes = await otherNodes()
  if (nodes.length === 0) {
    console.log(`skipped: npm has no Node packages for ${process.platform} ${process.arch}`)
    return 0
  }
  let failed = 0
  for (const [index, { major, path }] of nodes.entries()) {
    // Each of them runs every test; sizes that do not hang on the Node, and tables of commands, they share.
    const part = `${index + 1}/${nodes.length}`
    console.log(`\n── Node ${major}, part ${part}`)
    const env = { SKEIN_TEST_PART: part }
    if ((await suite(words, { name: `Node ${major}`, path }, failures, coreOf, env)) !== 0) failed += 1
  }
  return failed === 0 ? 0 : 1
}

function summarize(results, failures) {
  for (const text of failures) console.log(`\n━━ what failed on ${text.trimEnd()}`)
  console.log('\n━━ npm test')
  for (const { name, code, seconds } of results) {
    console.log(`${code === 0 ? 'pass' : 'FAIL'}  ${name.padEnd(6)} ${seconds.toFixed(0).padStart(5)} s`)
  }
  const failed = results.filter(({ code }) => code !== 0)
  console.log(
    failed.length === 0 ? 'everything passed' : `failed: ${failed.map(({ name }) => name).join(', ')}`,
  )
  return failed.length === 0 ? 0 : 1
}
