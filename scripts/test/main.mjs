/**
 * The steps of `npm test` and `npm run test:all`, and their summary.
 *
 * A step is a name and a function that resolves to an exit code and shows its own output. Words on the
 * command line that name steps choose among them; the other words choose among the test files, slow ones too.
 * A step with `isAsked` runs only when it is named.
 */
import { runChecks } from '../check/main.mjs'
import { writeReference } from '../reference/main.mjs'
import { inRoot, run, Stop } from '../set-up/index.mjs'
import { coverage } from './coverage.mjs'
import { coreOf, fastOf, quickOf, slowOf } from './files.mjs'
import { h2spec } from './h2spec.mjs'
import { fleetTests } from './nats.mjs'
import { otherNodes } from './nodes.mjs'
import { otherPlatforms } from './platforms/main.mjs'
import { loomModels, rustTests } from './rust.mjs'
import { otherRuntimes } from './runtimes.mjs'
import { measureSeconds } from './seconds.mjs'
import { suite } from './suite.mjs'

/** The steps of `npm test`. */
const SHORT = ['check', 'rust', 'suite']

/**
 * Run the chosen steps; when none is named, those of `npm test`, or all of them.
 * @param {string[]} words
 * @param {{isAll?: boolean}} [choice]
 * @returns {Promise<number>} 0 when every step passed.
 */
export async function runTests(words, { isAll = false } = {}) {
  /** @type {import('./suite.mjs').Report} */
  const report = { failures: [], flaky: [] }
  const steps = allSteps(report)
  const named = steps.filter(({ name }) => words.includes(name))
  const filters = words.filter((word) => !steps.some(({ name }) => name === word))
  const all = steps.filter(({ isAsked = false }) => !isAsked).map(({ name }) => name)
  const unnamed = filters.length > 0 ? ['suite'] : isAll ? all : SHORT
  const chosen = named.length > 0 ? named : steps.filter(({ name }) => unnamed.includes(name))
  const isMeasured = chosen.some(({ name }) => name === 'coverage')
  const results = []
  for (const { name, title, work } of chosen) {
    // Coverage is the suite with counters, and what is fast of the step fleet.
    if (name === 'suite' && isMeasured) continue
    results.push(await timed(name, title, () => work(filters, isMeasured)))
  }
  return summarize(results, report)
}

function allSteps(report) {
  const ownNode = { name: `Node ${process.versions.node}`, path: process.execPath }
  return [
    { name: 'check', title: 'types, lints, formats, tidy', work: () => runChecks([]) },
    { name: 'rust', title: 'cargo test', work: rustTests },
    {
      name: 'suite',
      title: `the suite on ${ownNode.name}`,
      // Named files run in full, slow ones too.
      work: (words) =>
        words.length > 0
          ? suite(words, ownNode, report)
          : suite(words, ownNode, report, fastOf, { CORESPUN_TEST_PART: '1/3' }),
    },
    {
      name: 'fast',
      title: `the files of the suite that take less than a second, on ${ownNode.name}`,
      isAsked: true,
      work: () => suite([], ownNode, report, quickOf, { CORESPUN_TEST_PART: '1/3' }),
    },
    { name: 'seconds', title: 'how long each file takes', isAsked: true, work: measureSeconds },
    {
      name: 'slow',
      title: `what the suite leaves out or does a part of, on ${ownNode.name}`,
      work: (words) => suite(words, ownNode, report, slowOf),
    },
    {
      name: 'fleet',
      title: 'calls between processes over NATS',
      work: (words, isMeasured) => fleetTests(words, report, isMeasured ? slowOf : undefined),
    },
    { name: 'loom', title: 'loom models', work: loomModels },
    { name: 'h2spec', title: 'the cases of h2spec against the native core', work: h2spec },
    { name: 'bench', title: 'the bench checks itself', work: benchSelfTest },
    { name: 'reference', title: 'TypeDoc builds the reference without a warning', work: writeReference },
    {
      name: 'coverage',
      title: `the suite on ${ownNode.name}, and the lines that it reaches`,
      work: (words) => coverage(words, report),
    },
    {
      name: 'nodes',
      title: "the suite's core on Node 22, 24 and 26",
      work: (words) => onOtherNodes(words, report),
    },
    {
      name: 'platforms',
      title: 'the packed cores for Linux and Windows, emulated where that is needed',
      isAsked: true,
      work: otherPlatforms,
    },
    { name: 'runtimes', title: 'Bun and Deno', isAsked: true, work: otherRuntimes },
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

/** The bench has its own build and door; its competitors are not needed for this. */
async function benchSelfTest() {
  const { code } = await run(process.execPath, [inRoot('bench', 'run.mjs'), '--self-test'], { show: true })
  return code
}

async function onOtherNodes(words, report) {
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
    const env = { CORESPUN_TEST_PART: part }
    if ((await suite(words, { name: `Node ${major}`, path }, report, coreOf, env)) !== 0) failed += 1
  }
  return failed === 0 ? 0 : 1
}

function summarize(results, { failures, flaky }) {
  for (const text of failures) console.log(`\n━━ what failed on ${text.trimEnd()}`)
  console.log('\n━━ npm test')
  for (const { name, code, seconds } of results) {
    console.log(`${code === 0 ? 'pass' : 'FAIL'}  ${name.padEnd(6)} ${seconds.toFixed(0).padStart(5)} s`)
  }
  const failed = results.filter(({ code }) => code !== 0)
  console.log(
    failed.length === 0 ? 'everything passed' : `failed: ${failed.map(({ name }) => name).join(', ')}`,
  )
  for (const text of flaky) console.log(`\nflaky, it passed when run alone: ${text.trimEnd()}`)
  return failed.length === 0 ? 0 : 1
}
