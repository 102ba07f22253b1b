/**
 * Faults planted into the stress programs, each of which must be found and reported.
 *
 * They test the programs' judges, which do not depend on the Node: `npm run test:all` runs them on one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOf } from './judge.mjs'
import { run, skip } from './run.mjs'

const schedules = (fault, secondsMax = 60) =>
  run('schedules.mjs', [1, 7], secondsMax, { CORESPUN_FAULT: fault })

/** What is planted into the random schedules, and what they must report. */
for (const [fault, expected] of [
  ['lost', /never settled/],
  ['twice', /has run [23] times/],
  ['value', /returned 2/],
  ['thread', /threads: \d+, there were \d+/],
  ['handle', /handles: \d+, there were \d+/],
  ['fd', /fds: \d+, there were \d+/],
  ['heap', /heap: [\d.]+ MB/],
  ['rss', /rss: [\d.]+ MB/],
  ['queued', /the zone has/],
]) {
  test(`schedules: ${fault} is found, and how to replay it is printed`, { skip }, async () => {
    const { code, out, shown } = await schedules(fault)
    assert.equal(code, 1, shown)
    const { problems, replay } = JSON.parse(out)
    assert.match(problems.join('\n'), expected)
    assert.match(replay, /schedules\.mjs 1 7$/)
  })
}

test('schedules: a crash of the process is found, with its schedule', { skip }, async () => {
  const { signal, shown } = await schedules('crash')
  assert.equal(signal, 'SIGABRT', shown)
  assert.match(shown, /^schedule 7/)
})

test('schedules: a thread that is stuck is found, with its schedule', { skip }, async () => {
  const { hung, shown } = await schedules('hang', 5)
  assert.equal(hung, true, shown)
  assert.match(shown, /^schedule 7/)
})

for (const [fault, expected] of [
  ['lost', 'LOST'],
  ['twice', 'RAN_WRONG'],
  ['value', 'WRONG_VALUE'],
]) {
  test(`kills: ${fault} is found`, { skip }, async () => {
    const { code, out, shown } = await run('kills.mjs', [1, 7], 90, { CORESPUN_FAULT: fault })
    assert.equal(code, 0, shown)
    assert.ok(JSON.parse(out).wrong.includes(expected), out)
  })
}

test('kills: each fault of a run is reported', () => {
  const good = { died: 3, wrong: [], left: { threads: 0, fds: 0 }, rss: [90, 100, 100, 150, 159, 170] }
  assert.deepEqual(faultsOf(good, 3, { memory: true }), [])
  const bad = { died: 2, wrong: ['LOST'], left: { threads: 1, fds: 0 }, rss: [90, 100, 100, 161, 160, 170] }
  const faults = ['LOST', '2 workers died, not 3', '1 threads left', 'memory grew from 100 to 160 MB']
  assert.deepEqual(faultsOf(bad, 3, { memory: true }), faults)
  assert.deepEqual(faultsOf(bad, 3, { memory: false }), faults.slice(0, -1))
})
