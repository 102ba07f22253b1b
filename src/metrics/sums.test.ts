/**
 * Sums of times that the core has measured: the figures of a function that does not run stay the same, to the
 * last digit.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { zone } from '../zone/index.ts'
import { metricsText, startMetrics } from './index.ts'

startMetrics()

test("the sum of a function's times stays until it runs again", async () => {
  const own = zone.create('sums', { workers: 1 })
  await own.run((n: number) => n, 1)
  await until(() => /^corespun_zone_task_duration_seconds_count\{.*"sums".*\} 1$/m.test(metricsText()))
  const sums = (): string[] => metricsText().match(/^corespun_zone_task_\w+_sum\{.*"sums".*$/gm) ?? []
  const before = sums()
  assert.equal(before.length, 2)
  for (let look = 0; look < 20; look++) assert.deepEqual(sums(), before)
  await own.close()
})
