/**
 * Threads have the names of their workers among the figures: also those that were started before they had
 * one, and while two of them have the same.
 */
import assert from 'node:assert/strict'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { zone } from '../zone/index.ts'
import { collect } from './collect.ts'
import { metricsText, startMetrics } from './index.ts'
import { LISTED, numberOf } from './instruments.ts'
import { type Samples, read, sum } from './reading.test.support.ts'
import { Sheet } from './sheet.ts'

startMetrics()

const now = (): Samples => read(metricsText(), false)

test('a worker that a reload has started before its turn has one name among the figures', async () => {
  const own = zone.create('reloaded', { workers: 2, closeMs: 60_000 })
  await own.ready()
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const held = async (gate: Int32Array): Promise<void> => {
    while (Atomics.load(gate, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const tasks = [own.run(held, gate), own.run(held, gate)]
  const threads = sum(now(), 'corespun_threads')
  const reload = own.reload()
  await until(() => sum(now(), 'corespun_threads') > threads)
  // It would be named within a tenth of that.
  await pause(1000)
  Atomics.store(gate, 0, 1)
  await Promise.all([...tasks, reload])
  for (const worker of ['reloaded/0', 'reloaded/1'])
    await until(() => sum(now(), 'corespun_thread_heap_used_bytes', { thread_name: worker }) > 0)
  const names = [...now().keys()].flatMap((key) => /thread_name="([^"]*)"/.exec(key)?.[1] ?? [])
  assert.deepEqual([...new Set(names)].sort(), ['main', 'reloaded/0', 'reloaded/1'])
  await own.close()
})

test('of two threads of one name sizes are added, and delays are those of the slower one', () => {
  const [first, second] = [new Sheet(), new Sheet()]
  for (const [sheet, number] of [
    [first, 3],
    [second, 5],
  ] as const)
    for (const key of ['loopDelayP99', 'heapUsed'] as const) sheet.series(key, 'web/0').set(number)
  const families = collect()
  const value = (key: 'loopDelayP99' | 'heapUsed'): number | undefined =>
    families[numberOf(key)].points.find(({ values }) => values[0] === 'web/0')?.cells[0]
  assert.deepEqual([value('loopDelayP99'), value('heapUsed')], [5, 8])
  assert.equal(LISTED[numberOf('loopDelayP99')].kind, 'gauge')
})

test('a delay of the event loop stays among the figures, however often somebody looks', async () => {
  const delay = (): number => sum(now(), 'nodejs_eventloop_delay_max_seconds', { thread_name: 'main' })
  delay()
  await pause(50)
  const untilMs = performance.now() + 400
  while (performance.now() < untilMs);
  await until(() => delay() > 0.3)
  for (let looks = 0; looks < 40; looks++) assert.ok(delay() > 0.3)
})

test('one that goes on where a span ends is not lost', async (t) => {
  const delay = (): number => sum(now(), 'nodejs_eventloop_delay_max_seconds', { thread_name: 'main' })
  await turn()
  const clock = performance.now.bind(performance)
  const untilMs = performance.now() + 700
  while (performance.now() < untilMs);
  const mocked = t.mock.method(performance, 'now', () => clock() + 20_000)
  delay()
  mocked.mock.restore()
  await until(() => delay() > 0.6)
  await pause(200)
  assert.ok(delay() > 0.6)
})
