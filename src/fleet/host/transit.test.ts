/**
 * How long messages waited, by clocks that agree on nothing.
 *
 * The clocks are numbers of the tests.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Transit } from './transit.ts'

const HOUR = 3_600_000

test('what is slower than the fastest message has waited, whatever the clocks show', () => {
  for (const skewMs of [0, HOUR, -HOUR]) {
    const transit = new Transit()
    // [sent by the caller's clock, how long it was on its way]
    const waited = [
      [0, 5],
      [10, 2],
      [20, 2.5],
      [30, 400],
      [31, 2],
    ].map(([sent, way]) => transit.waitedMs('a', sent + skewMs, sent + way))
    assert.deepEqual(waited, [0, 0, 0.5, 398, 0])
  }
})

test('a clock that drifts is learnt anew each minute', () => {
  const transit = new Transit()
  let most = 0
  // The host's clock gains a millisecond each second, for an hour.
  for (let sent = 0; sent < HOUR; sent += 1000)
    most = Math.max(most, transit.waitedMs('a', sent, sent * 1.001 + 1))
  assert.ok(most > 0 && most < 150, String(most))
})

test('callers are separate, and old ones are forgotten', () => {
  const transit = new Transit()
  assert.equal(transit.waitedMs('a', 0, 10), 0)
  assert.equal(transit.waitedMs('b', 0, 500), 0)
  assert.equal(transit.waitedMs('a', 0, 20), 10)
  for (let caller = 0; caller < 5000; caller++) transit.waitedMs(`c${caller}`, 0, 1)
  assert.equal(transit.waitedMs('a', 0, 20), 0)
})
