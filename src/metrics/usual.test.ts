/**
 * The estimate of what is usual, against sorted times.
 * The same of tasks is tested with the core, in crates/bridge/src/system/usual/tests.rs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Usual } from './usual.ts'

/** Numbers from 0 to 1 that look random. */
function* random(count: number): Generator<number> {
  for (let state = 7, left = count; left > 0; left--) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9
    yield ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
}

const TABLE: readonly (readonly [what: string, time: (share: number) => number])[] = [
  ['uniform', (share) => 10 + 10 * share],
  ['exponential', (share) => -10 * Math.log(1 - share)],
  ['two kinds', (share) => (share < 0.97 ? 10 + share : 200 + share)],
]

for (const [what, time] of TABLE)
  test(`about as many are above it as of a 99th percentile: ${what}`, () => {
    const usual = new Usual()
    const times = [...random(20_000)].map(time)
    for (const ms of times.slice(0, 10_000)) usual.passed(ms)
    const exact = times.toSorted((a, b) => a - b)[19_800]
    // Ten times as long is slow, and what is returned is what is usual.
    const found = usual.passed(exact * 10)
    assert.ok(found > exact * 0.5 && found < exact * 2, `${found} for ${exact}`)
  })

test('the first ones, those of less than 5 ms, and those that are as usual are not slow', () => {
  const usual = new Usual()
  for (let count = 1; count <= 32; count++) assert.equal(usual.passed(count ** 3), 0)
  const short = new Usual()
  for (let count = 0; count < 1000; count++) assert.equal(short.passed(0.1), 0)
  assert.equal(short.passed(4.9), 0)
  assert.ok(short.passed(50) > 0)
})
