/**
 * Which signals count, on a clock that the test sets.
 * What a second one does is shown with the whole program, in test/cli.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StopSignal } from './run/run.ts'
import { withoutEchoes } from './signals.ts'

/** Signals as they come, each at its ms, and those that count. */
const cases: readonly { came: readonly [StopSignal, number][]; counted: readonly number[] }[] = [
  { came: [['SIGINT', 0]], counted: [0] },
  {
    came: [
      ['SIGINT', 5],
      ['SIGINT', 6],
      ['SIGINT', 304],
    ],
    counted: [5],
  },
  {
    came: [
      ['SIGINT', 5],
      ['SIGINT', 7],
      ['SIGINT', 305],
      ['SIGINT', 307],
    ],
    counted: [5, 305],
  },
  {
    came: [
      ['SIGINT', 0],
      ['SIGTERM', 1],
      ['SIGTERM', 2],
    ],
    counted: [0, 1],
  },
]
for (const { came, counted } of cases) {
  test(`of ${came.map(([signal, ms]) => `${signal} at ${ms}`).join(', ')} count those at ${counted}`, () => {
    let now = 0
    const received: number[] = []
    const listener = withoutEchoes(
      () => received.push(now),
      () => now,
    )
    for (const [signal, ms] of came) {
      now = ms
      listener(signal)
    }
    assert.deepEqual(received, counted)
  })
}
