/**
 * Clocks against a time that is handed in, through the wrap of their 31 bits.
 * A clock that errs by 2^31 ms would cancel an item that has just begun.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockBytes, Clocks, monotonicMs } from './clocks.ts'

function check(startMs: number, ranMs: number): void {
  const clocks = new Clocks(new SharedArrayBuffer(clockBytes(4)))
  const started = clocks.start(2, startMs)
  // A clock that would start at 0 starts at 1, because 0 means that nothing runs.
  assert(Math.abs(clocks.runningMs(2, startMs + ranMs) - ranMs) <= 1)
  assert.equal(clocks.runningMs(1, startMs + ranMs), 0)
  clocks.stop(2, started - 1)
  assert(clocks.runningMs(2, startMs + 5) >= 4, 'a late stop of an earlier call changes nothing')
  clocks.stop(2, started)
  assert.equal(clocks.runningMs(2, startMs + ranMs), 0)
  clocks.start(2, startMs)
  clocks.clear(2)
  assert.equal(clocks.runningMs(2, startMs + ranMs), 0)
}

for (const startMs of [0, 1, 5000.7, 2 ** 31 - 10, 2 ** 31, 1.79e12, 2 ** 41 - 1]) {
  test(`a clock started at ${startMs}`, () => {
    for (const ranMs of [0, 1, 20, 60_000, 86_400_000]) check(startMs, ranMs)
  })
}

test('the time now is what it uses by itself', () => {
  const clocks = new Clocks(new SharedArrayBuffer(clockBytes(1)))
  clocks.start(0)
  assert(clocks.runningMs(0, monotonicMs() + 1000) >= 1000)
})
