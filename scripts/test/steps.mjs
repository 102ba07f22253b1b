/**
 * The steps of `npm test` and `npm run test:all`, as a table.
 *
 * A step is a name and a function that resolves to an exit code; it receives the report, the words that
 * choose among test files, and the names of all steps of the run. Those with `isBeside` run one after the
 * other beside the test files, and show their output when they are done. One with `instead` is left out
 * unless it is named; the sentence names where the same is done. `npm run test:all -- --list` prints this.
 */
import { runChecks } from '../check/main.mjs'
import { writeDocs } from '../docs/main.mjs'
import { inRoot } from '../set-up/index.mjs'
import { coverage } from './coverage.mjs'
import { quickOf, shortOf, slowOf } from './files.mjs'
import { joinedEnv } from './joined.mjs'
import { fleetTests, withoutFleet } from './nats.mjs'
import { HAS_OTHERS, onOtherNodes, otherNodes } from './nodes.mjs'
import { entry, shown } from './report.mjs'
import { loomModels, rustTests } from './rust.mjs'
import { measureSeconds } from './seconds.mjs'
import { suite } from './suite.mjs'

const OWN = { name: `Node ${process.versions.node}`, path: process.execPath }
const THIRD = { CORESPUN_TEST_PART: '1/3' }

/** The steps of `npm test`; the others of the table are added by `npm run test:all`. */
export const SHORT = ['check', 'rust', 'suite']

export const STEPS = [
  { name: 'check', title: 'types, lints, formats, tidy', isBeside: true, work: (report) => checks(report) },
  { name: 'rust', title: 'cargo test', isBeside: true, work: (report, _, names) => rustTests(report, names) },
  {
    name: 'suite',
    title: `the files of the suite that take less than seven seconds, on ${OWN.name}`,
    instead: 'coverage runs the whole suite, with counters',
    // Named files run in full, slow ones too.
    work: (report, words) =>
      words.length > 0
        ? suite(words, OWN, report)
        : suite(words, OWN, report, shortOf, { ...THIRD, ...joinedEnv() }),
  },
  {
    name: 'fast',
    title: `the files of the suite that take less than a second, on ${OWN.name}`,
    instead: 'suite has them; change.yml runs it on two Nodes',
    work: (report) => suite([], OWN, report, quickOf, { ...THIRD, ...joinedEnv() }),
  },
  {
    name: 'seconds',
    title: 'how long each file takes',
    instead: 'it measures, and writes scripts/test/seconds.json',
    work: measureSeconds,
  },
  {
    name: 'coverage',
    title: `the suite on ${OWN.name}, fleet too, and the lines that they reach`,
    work: (report, words) => coverage(words, report),
  },
  {
    name: 'slow',
    title: `the files that the suite leaves out, on ${OWN.name}; h2spec is skipped without go`,
    // As in `coverage`: what depends on the Node has its other parts on the newest ones.
    work: (report, words) =>
      suite(words, OWN, report, (paths) => withoutFleet(slowOf(paths)), HAS_OTHERS ? THIRD : {}),
  },
  {
    name: 'fleet',
    isBeside: true, // it waits for servers more than it works
    title: 'the tests that need servers of NATS, skipped without one; those alone that coverage leaves out',
    work: (report, words, names) =>
      fleetTests(words, report, names.includes('coverage') ? slowOf : undefined),
  },
  {
    name: 'nodes',
    title: 'what depends on the Node, on Node 22, 24 and 26',
    work: onOtherNodes,
  },
  { name: 'loom', title: 'loom models', isBeside: true, work: loomModels },
  { name: 'bench', title: 'the bench checks itself', isBeside: true, work: benchSelfTest },
  {
    name: 'docs',
    title: 'TypeDoc builds the site without a warning',
    isBeside: true,
    work: writeDocs,
  },
  {
    name: 'runtimes',
    title: 'Bun and Deno',
    instead: 'platforms.yml runs it, job x64',
    work: (report) => suite(['package/runtimes'], OWN, report, undefined, { CORESPUN_RUNTIMES: '1' }),
  },
]

/** The table as lines, and what lies beyond it. */
export function listed() {
  const lines = STEPS.map(({ name, title, instead }) => {
    const where = SHORT.includes(name) ? 'npm test' : instead === undefined ? 'test:all' : 'named'
    const why = instead === undefined ? '' : `; not in test:all: ${instead}`
    return `${name.padEnd(10)} ${where.padEnd(9)} ${title}${why}`
  })
  return [
    ...lines,
    'Not a step: other processors and systems (platforms.yml, on their own hardware),',
    '  and fuzzing, Miri, sanitizers, soaks (npm run check:long -- --list): they take hours.',
  ].join('\n')
}

function checks(report) {
  return runChecks([], (name, text) => report.failures.push(`check\n${entry(name, text)}`))
}

/** The bench has its own build and door. It needs no competitors for this, but the Node that it counts on. */
async function benchSelfTest(report) {
  await otherNodes()
  return shown('bench', report, process.execPath, [inRoot('bench', 'run.mjs'), '--self-test'], { alone: {} })
}
