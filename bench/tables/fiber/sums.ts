/**
 * The work of the fiber table: factorials of 0..n, added up in two words, in every contender alike.
 *
 * 0! to 22! are exact as doubles; their sum is not from 19! on, so it is kept as high and low 32 bits. The
 * functions capture nothing, so zones and pools run the very same.
 */

/** A sum: `high * 2 ** 32 + low`; `low` may be larger than 32 bits. */
export type Sum = [high: number, low: number]

/** `k!`, exact up to 22. */
export function factorial(k: number): number {
  let product = 1
  for (let factor = 2; factor <= k; factor += 1) product *= factor
  return product
}

/** Add an exact double to a sum. */
export function add(sum: Sum, value: number): void {
  // Exact: 2 ** 32 only moves the exponent. The remainder operator would cost more than all else.
  const high = Math.floor(value / 4294967296)
  sum[0] += high
  sum[1] += value - high * 4294967296
}

/** Add a sum to another. */
export function addSum(sum: Sum, other: Sum): void {
  sum[0] += other[0]
  sum[1] += other[1]
}

/** The sum of `k!` for each `stride`-th k from `first` to `num`. Self-contained: it travels. */
export function partialSum(first: number, stride: number, num: number): Sum {
  let high = 0
  let sumLow = 0
  for (let k = first; k <= num; k += stride) {
    let product = 1
    for (let factor = 2; factor <= k; factor += 1) product *= factor
    const above = Math.floor(product / 4294967296)
    high += above
    sumLow += product - above * 4294967296
  }
  return [high, sumLow]
}

/** Whether a sum is that of 0! to `num`!, computed in integers. */
export function isRight(sum: Sum, num: number): boolean {
  let expected = 0n
  let product = 1n
  for (let k = 0n; k <= BigInt(num); k += 1n) {
    if (k > 0n) product *= k
    expected += product
  }
  return BigInt(sum[0]) * 4294967296n + BigInt(sum[1]) === expected
}
