/**
 * Medians and their intervals, without assuming any distribution.
 *
 * A machine with shared cores has outliers on one side only, so means and standard deviations mean nothing
 * here: everything is order statistics.
 */

/** A median with the interval that holds it. */
export interface Summary {
  readonly median: number
  readonly low: number
  readonly high: number
  readonly samples: number
}

/** Value below which the fraction `q` (0..1) of the sorted samples lies, interpolated. */
export function quantile(sorted: readonly number[], q: number): number {
  const position = q * (sorted.length - 1)
  const below = Math.floor(position)
  const above = Math.min(below + 1, sorted.length - 1)
  return sorted[below] + (sorted[above] - sorted[below]) * (position - below)
}

/**
 * The median and the order statistics around it that hold the true one with at least 95 %;
 * with fewer than 6 samples no such pair exists and the extremes are given.
 */
export function summary(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((a, b) => a - b)
  const count = sorted.length
  if (count === 0) return { median: NaN, low: NaN, high: NaN, samples: 0 }
  const rank = intervalRank(count)
  return { median: quantile(sorted, 0.5), low: sorted[rank], high: sorted[count - 1 - rank], samples: count }
}

/** Summary of a[i] / b[i]: rounds are paired, so drift of the machine cancels. */
export function ratioSummary(above: readonly number[], below: readonly number[]): Summary {
  const count = Math.min(above.length, below.length)
  return summary(Array.from({ length: count }, (_, index) => above[index] / below[index]))
}

/** Geometric mean of positive numbers. */
export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)
}

/** Largest k such that the k-th smallest and k-th largest of n samples hold the median with 95 %. */
function intervalRank(count: number): number {
  let tail = 0
  let term = 0.5 ** count
  for (let rank = 0; rank < count / 2; rank += 1) {
    tail += term
    if (2 * tail > 0.05) return Math.max(0, rank - 1)
    term = (term * (count - rank)) / (rank + 1)
  }
  return 0
}
