/**
 * How tests wait: a promise that settles, and one that never does.
 *
 * Time is mocked, so the limit costs none.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WAIT_MS_MAX, settled } from './wait.test.support.ts'

test('a value and an error pass through; what never settles fails with a sentence', async (t) => {
  assert.equal(await settled(Promise.resolve(5), 'five'), 5)
  await assert.rejects(settled(Promise.reject(new RangeError('no')), 'a refusal'), RangeError)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const hangs = settled(new Promise(() => {}), 'the answer of the server')
  t.mock.timers.tick(WAIT_MS_MAX)
  await assert.rejects(hangs, /have passed without what the test waits for: the answer of the server/)
})
