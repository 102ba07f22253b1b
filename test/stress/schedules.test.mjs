/**
 * Random schedules on zones, and that each check of theirs can fail.
 *
 * `npm run test:all` runs as many of 1,000 as fit into its share of time; CORESPUN_SCHEDULES runs so many,
 * however long that takes (`npm run check:long`). A failure names the schedule, which is replayed by its
 * seed.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isOfPart, rowsOfPart, share } from '../../dist/base/part.test.support.js'

const WHOLE = Number(process.env.CORESPUN_SCHEDULES ?? 0)
const SECONDS = share(40)
const PROGRAM = fileURLToPath(new URL('./schedules.mjs', import.meta.url))
/** Growth of the process over a thousand schedules that is noise: V8 and the allocator keep what they had. */
const GROWTH_MB_MAX = 60
const skip = existsSync('/proc/self/task') ? false : 'this system has no /proc'

/** Run the program; after so long it hangs. */
async function run(args, secondsMax, env = {}) {
  const child = spawn(process.execPath, ['--expose-gc', PROGRAM, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (err = (err + chunk).slice(-4000)))
  let hung = false
  const late = setTimeout(() => ((hung = true), child.kill('SIGKILL')), secondsMax * 1000)
  const [code, signal] = await new Promise((resolve) => child.once('close', (...how) => resolve(how)))
  clearTimeout(late)
  const at = err.match(/schedule \d+/g)?.at(-1) ?? 'before the first schedule'
  return { code, signal, hung, out, shown: `${at}\n${out}\n${err}` }
}

const title = WHOLE > 0 ? `${WHOLE} random schedules` : `random schedules for ${SECONDS} s`
test(`${title}: each call settles once, nothing is left, memory is back`, { skip }, async (context) => {
  const seed = Number(process.env.CORESPUN_SEED ?? Date.now() % 1_000_000)
  context.diagnostic(`seed ${seed}: node --expose-gc test/stress/schedules.mjs ${WHOLE || 1000} ${seed}`)
  const args = WHOLE > 0 ? [WHOLE, seed] : [1000, seed, SECONDS]
  const { code, signal, hung, out, shown } = await run(args, WHOLE > 0 ? 60 + 3 * WHOLE : SECONDS + 90)
  assert.deepEqual({ code, signal, hung }, { code: 0, signal: null, hung: false }, shown)
  const { ran, calls, ends, rss } = JSON.parse(out)
  context.diagnostic(`${ran} schedules, ${calls} calls: ${JSON.stringify(ends)}`)
  assert.ok(ran === WHOLE || (WHOLE === 0 && ran > 0), shown)
  const tenth = Math.ceil(rss.length / 10)
  const grown = Math.min(...rss.slice(-tenth)) - Math.max(...rss.slice(0, tenth))
  assert.ok(grown <= GROWTH_MB_MAX, `${grown} MB more at the end than at the start: ${rss.join(' ')}`)
  if (ran < 50) return
  // All that the schedules are made of has happened.
  for (const end of ['done', 'E_OWN', 'WORKER_DIED', 'TASK_TIMEOUT', 'AbortError', 'ZONE_CLOSED'])
    assert.ok(ends[end] > 0, `nothing ended with ${end}: ${shown}`)
})

/** What is planted, and what the program must report. */
const FAULTS = [
  ['lost', /never settled/],
  ['twice', /has run [23] times/],
  ['value', /returned 2/],
  ['thread', /threads: \d+, there were \d+/],
  ['handle', /handles: \d+, there were \d+/],
  ['fd', /fds: \d+, there were \d+/],
  ['heap', /heap: [\d.]+ MB/],
  ['rss', /rss: [\d.]+ MB/],
  ['queued', /the zone has/],
]

for (const [fault, expected] of rowsOfPart(FAULTS)) {
  test(`planted: ${fault} is found, and how to replay it is printed`, { skip }, async () => {
    const { code, out, shown } = await run([1, 7], 60, { CORESPUN_FAULT: fault })
    assert.equal(code, 1, shown)
    const { problems, replay } = JSON.parse(out)
    assert.match(problems.join('\n'), expected)
    assert.match(replay, /schedules\.mjs 1 7$/)
  })
}

const skipOf = (row) => skip || (!isOfPart(row) && 'of another part: CORESPUN_TEST_PART')

test('planted: a crash of the process is found, with its schedule', { skip: skipOf(0) }, async () => {
  const { signal, shown } = await run([1, 7], 60, { CORESPUN_FAULT: 'crash' })
  assert.equal(signal, 'SIGABRT', shown)
  assert.match(shown, /^schedule 7/)
})

test('planted: a thread that is stuck is found, with its schedule', { skip: skipOf(1) }, async () => {
  const { hung, shown } = await run([1, 7], 5, { CORESPUN_FAULT: 'hang' })
  assert.equal(hung, true, shown)
  assert.match(shown, /^schedule 7/)
})
