/**
 * The bench's arithmetic, against values worked out by hand and by counting.
 *
 * Needs no competitors.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { geometricMean, quantile, ratioSummary, summary } from '../harness/stats.ts'

/** The interval by definition: the innermost pair of order statistics that holds the median with 95 %. */
function intervalByCounting(count: number): [number, number] {
  const choose = (k: number): number =>
    Array.from({ length: k }, (_, i) => (count - i) / (i + 1)).reduce((a, b) => a * b, 1)
  const below = (rank: number): number =>
    Array.from({ length: rank + 1 }, (_, k) => choose(k)).reduce((a, b) => a + b, 0) / 2 ** count
  let rank = 0
  while (2 * below(rank + 1) <= 0.05) rank += 1
  return [rank, count - 1 - rank]
}

test('the interval is the narrowest pair of order statistics that holds the median with 95 %', () => {
  for (let count = 1; count <= 60; count += 1) {
    const { low, high, median, samples } = summary(
      Array.from({ length: count }, (_, index) => count - 1 - index),
    )
    assert.deepEqual([low, high], count < 6 ? [0, count - 1] : intervalByCounting(count), `of ${count}`)
    assert.equal(median, (count - 1) / 2)
    assert.equal(samples, count)
  }
})

test('quantiles lie between samples', () => {
  assert.equal(quantile([10, 20, 30, 40], 0.5), 25)
  assert.equal(quantile([10, 20, 30, 40], 1), 40)
  assert.equal(quantile([7], 0.99), 7)
})

test('a ratio is taken inside each round, so drift that hits both cancels', () => {
  const drift = [1, 1.5, 4, 2, 1, 3]
  const { median, low, high } = ratioSummary(
    drift.map((factor) => 3 * factor),
    drift,
  )
  assert.deepEqual([median, low, high], [3, 3, 3])
})

test('without samples there is no figure', () => assert.ok(Number.isNaN(summary([]).median)))

test('the geometric mean of reciprocals is 1', () =>
  assert.ok(Math.abs(geometricMean([0.25, 4, 2, 0.5]) - 1) < 1e-12))
