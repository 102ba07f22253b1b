/**
 * The steps of `npm run check:long`: a table, one line of work each.
 *
 * A step that a machine cannot run (no nightly compiler, no sanitizer's library) is recorded as skipped with
 * what was missing. New steps are added here; nothing else depends on them.
 */
import { existsSync } from 'node:fs'
import { serverProgram } from '../cross/servers.mjs'
import { inRoot, run } from '../set-up/index.mjs'
import { LOOM_ENV } from '../test/rust.mjs'

/**
 * @typedef {object} LongStep
 * @property {string} name Unique; words on the command line choose by it.
 * @property {string} what One line for `--list`.
 * @property {number} minutesMax After so many it has failed: several times what it takes on two cores, which
 *   docs/design/checks.md names.
 * @property {string[]} command Program and arguments, run in the checkout.
 * @property {Record<string, string>} [env]
 * @property {() => Promise<string>} [lacks] What is missing here; '' when the step can run.
 */

/**
 * Of Miri: a weak compare-and-exchange fails one time in five for no reason, instead of four in five. At
 * four, most locks of parking_lot go the slow way and spin: two fifths of the blocks that were interpreted.
 */
const FEW_SPURIOUS = '-Zmiri-compare-exchange-weak-failure-rate=0.2'

const HOSTILE = ['', '-tls', '-http2', '-websocket'].map((kind) => `test/http/hostile${kind}.test.mjs`)

/** Tests whose networks lose, repeat, delay and cut off by seeds. */
const SEEDED = [
  'engine/memory/faults',
  'engine/nats/leader',
  'engine/nats/server-time',
  'zone/faults',
  'zone/callers',
  'jobs/faults',
  'jobs/capacity',
  'rooms/memory',
  'state/memory',
  'limits/memory',
].map((name) => `dist/fleet/${name}.test.js`)

/** @param {string} name */
const httpTest = (name) => `dist/http/${name}.test.js`

/** @type {LongStep[]} */
export const STEPS = [
  miri('miri', 'bridge', 20, 'undefined behaviour and data races: its tests under eight schedules', [
    '-Zmiri-strict-provenance',
    '-Zmiri-many-seeds=0..8',
  ]),
  miri('miri-store', 'store', 30, 'undefined behaviour and data races: its tests under four schedules', [
    '-Zmiri-permissive-provenance', // the locks' parking table turns addresses into pointers
    FEW_SPURIOUS,
    '-Zmiri-many-seeds=0..4',
  ]),
  {
    name: 'store-soak',
    what: '10 million mixed operations on a bounded store from three threads',
    minutesMax: 5,
    command: [process.execPath, '--test', 'dist/store/threads.test.js'],
    env: { CORESPUN_SOAK_OPERATIONS: '10000000' },
  },
  // The models of crates/store have no bound on pre-emptions: `npm run test:all` explores them whole.
  {
    name: 'loom',
    what: 'every interleaving of the models of crates/bridge, one pre-emption deeper than `npm run test:all`',
    minutesMax: 60,
    command: ['cargo', 'test', '--locked', '--release', '-p', 'corespun-bridge', '--test', 'models'],
    env: { ...LOOM_ENV, LOOM_MAX_PREEMPTIONS: '4' },
  },
  {
    name: 'fuzz-transport',
    what: 'ten minutes of made-up and damaged frames against each mode of the codec',
    minutesMax: 30,
    command: [process.execPath, 'test/fuzz-transport.mjs', '--minutes', '10'],
    lacks: () => lacksFile('test/fuzz-transport.mjs'),
  },
  {
    name: 'fuzz-http',
    what: 'ten minutes each of made-up and damaged bytes against connections and chunked bodies',
    minutesMax: 30,
    command: ['cargo', 'test', '--locked', '--release', '-p', 'corespun-http', 'fuzz', '--', '--nocapture'],
    // Other input each day it runs; the record and a failure name the seed.
    env: { CORESPUN_FUZZ_MINUTES: '10', CORESPUN_FUZZ_SEED: String(1 + (Date.now() % 999_999)) },
  },
  miri('miri-http', 'http', 30, 'undefined behaviour: its tests but those on sockets', [
    '-Zmiri-permissive-provenance',
  ]),
  {
    name: 'kills',
    what: '500 workers die with tasks in flight from four threads',
    minutesMax: 30,
    command: [process.execPath, '--test', 'test/stress/kills.test.mjs'],
    env: { CORESPUN_KILLS: '500' },
  },
  {
    name: 'file-kills',
    what: '200 processes are killed while they write into a store with a file',
    minutesMax: 30,
    command: [process.execPath, '--test', 'test/stress/file-kills.test.mjs'],
    env: { CORESPUN_KILLS: '200' },
  },
  {
    name: 'process-kills',
    what: '200 processes of an isolated zone are killed with tasks in flight',
    minutesMax: 45,
    command: [process.execPath, '--test', 'test/stress/processes.test.mjs'],
    env: { CORESPUN_PROCESS_KILLS: '200' },
  },
  {
    name: 'schedules',
    what: '1,000 random schedules of submit, cancel, crash, out-of-memory and close from several threads',
    minutesMax: 60,
    command: [process.execPath, '--test', 'test/stress/schedules.test.mjs'],
    env: { CORESPUN_SCHEDULES: '1000' },
  },
  {
    name: 'fleet-seeds',
    what: 'calls, jobs, queues, values, locks, rooms and rate limits of a fleet, each on 1,000 bad networks',
    minutesMax: 60,
    command: [process.execPath, '--test', ...SEEDED],
    env: { CORESPUN_SEEDS: '1000' },
  },
  {
    name: 'http-strays',
    what: 'requests of two workers whose handlers leave errors behind, by 200 seeds',
    minutesMax: 60,
    command: [process.execPath, '--test', httpTest('cluster/strays')],
    env: { CORESPUN_SEEDS: '200' },
  },
  {
    name: 'http-seeds',
    what: 'late readers of requests, targets over HTTP/2 and headers of proxies, each by 300 seeds',
    minutesMax: 30,
    command: [process.execPath, '--test', ...['late', 'http2/targets', 'message/proxies'].map(httpTest)],
    env: { CORESPUN_SEEDS: '300' },
  },
  {
    name: 'limited-reading',
    what: 'items whose deadline or abort comes at a random one of them, by 1,000 seeds',
    minutesMax: 30,
    command: [process.execPath, '--test', 'dist/zone/limited-reading.test.js'],
    env: { CORESPUN_SEEDS: '1000' },
  },
  {
    name: 'fiber-losers',
    what: 'random trees of combinators whose losers throw on their way out, 50,000 of them',
    minutesMax: 5,
    command: [process.execPath, '--test', 'dist/fiber/combine/losers.test.js'],
    env: { CORESPUN_SEEDS: '50000' },
  },
  {
    name: 'fleet-kill',
    what: '10,000 jobs on three servers and three hosts, of which one is killed every five seconds',
    minutesMax: 60,
    command: [process.execPath, 'test/fleet/example/run.mjs', '--jobs', '10000', '--every', '5s'],
    lacks: lacksNats,
  },
  {
    name: 'asan',
    what: '500 workers die on a core compiled with AddressSanitizer',
    minutesMax: 30,
    command: [process.execPath, 'test/stress/sanitized.mjs', '500'],
    lacks: () => lacksTool(['cargo', '+nightly', '--version'], 'rustup toolchain install nightly'),
  },
  {
    name: 'http-hostile',
    what: 'ten thousand hostile clients against the native HTTP core, with a normal one beside them',
    minutesMax: 30,
    command: [process.execPath, '--test', ...HOSTILE],
    env: { CORESPUN_HTTP_HOSTILE: '10000', CORESPUN_HTTP_QUIET_MS: '10' },
    lacks: lacksFiles,
  },
  {
    name: 'http-soak',
    what: 'five million requests on the native HTTP core, with flat memory',
    minutesMax: 30,
    command: [process.execPath, 'test/http/soak.mjs', '5000000'],
  },
  {
    name: 'nodes-whole',
    what: 'all test files on Node 22, 24 and 26, in the sizes that `test:all` has on the first Node',
    minutesMax: 120,
    command: [process.execPath, 'scripts/test.mjs', 'nodes', 'dist/', 'test/'],
    env: { CORESPUN_TEST_PART: '1/1' },
  },
  {
    name: 'suite-ten-times',
    what: 'the whole suite ten times over, for what fails one time in many',
    minutesMax: 120,
    command: [
      process.execPath,
      'scripts/long/repeat.mjs',
      '10',
      process.execPath,
      'scripts/test.mjs',
      'suite',
      'slow',
    ],
  },
]

/** A crate's tests, interpreted. @returns {LongStep} */
function miri(name, crate, minutesMax, what, flags) {
  return {
    name,
    what: `crates/${crate}, interpreted: ${what}`,
    minutesMax,
    command: ['cargo', '+nightly', 'miri', 'test', '--locked', '-p', `corespun-${crate}`],
    env: { CARGO_TARGET_DIR: inRoot('target', 'miri'), MIRIFLAGS: flags.join(' ') },
    lacks: () => lacksTool(['cargo', '+nightly', 'miri', '--version'], 'rustup +nightly component add miri'),
  }
}

/** '' when the command starts, else what to install. @param {string[]} command @param {string} remedy */
async function lacksTool([program, ...args], remedy) {
  const { code } = await run(program, args)
  return code === 0 ? '' : `${program} ${args.slice(0, 2).join(' ')} is missing: ${remedy}`
}

/** '' when the file is there. @param {string} path */
async function lacksFile(path) {
  return existsSync(inRoot(path)) ? '' : `${path} does not exist`
}

/** '' when the server of the example can be had. */
async function lacksNats() {
  let why = ''
  await serverProgram('nats-server', (reason) => (why = reason))
  return why
}

/** '' when this process may open as many files as ten thousand connections need on both sides. */
async function lacksFiles() {
  const { output } = await run('sh', ['-c', 'ulimit -n'])
  const most = Number(output.trim())
  return most >= 11_000 || output.trim() === 'unlimited' ? '' : `ulimit -n is ${most}; 11000 are needed`
}
