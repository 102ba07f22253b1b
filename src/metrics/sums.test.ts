/**
 * Totals of times that the core has measured: those of a function that does not run stay the same, to the
 * last digit, in all threads. Prometheus takes a lower one for a restart, and adds it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { zone, type Zone } from '../zone/index.ts'
import { metricsText, startMetrics } from './index.ts'

startMetrics()

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The two sums and the CPU time of this function. */
function totals(text: string): string[] {
  return text.match(/^corespun_zone_task_\w+_(?:sum|total)\{.*"sums".*"sleep"\}.*$/gm) ?? []
}

async function runIn(own: Zone, ms: number, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await own.run(sleep, ms)
  const counted = new RegExp(`^corespun_zone_task_duration_seconds_count\\{.*"sums".*\\} ${times}$`, 'm')
  await until(() => counted.test(metricsText()))
}

test('totals of times stay until their function runs again', async () => {
  const own = zone.create('sums', { workers: 1 })
  const other = zone.create('reader', { workers: 1 })
  await runIn(own, 0, 3)
  const before = totals(metricsText())
  assert.equal(before.length, 3)
  for (let look = 0; look < 20; look++) assert.deepEqual(totals(metricsText()), before)
  const there = await other.run(async () => (await import('./index.ts')).metricsText())
  assert.deepEqual(totals(there), before)
  await Promise.all([own.close(), other.close()])
})

test('those of a zone that has the name of one before are its own', async () => {
  const first = zone.create('sums', { workers: 1 })
  await runIn(first, 500, 1)
  await first.close()
  const second = zone.create('sums', { workers: 1 })
  const startMs = performance.now()
  await runIn(second, 0, 2) // one after the other
  const sum = Number(/^corespun_zone_task_duration_seconds_sum\{.*"sums".*\} (.*)$/m.exec(metricsText())?.[1])
  const passedMs = performance.now() - startMs
  assert.ok(sum > 0 && sum * 1000 < passedMs * 1.01, `${sum} s in ${passedMs} ms`)
  await second.close()
})
