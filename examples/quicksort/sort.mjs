/**
 * Quicksort by joins, in memory that all workers share: the parts are sorted at once where a worker is free.
 *
 * A module, since a function that calls itself through `join` must be reachable by name in every worker. Only
 * numbers travel: the array is a SharedArrayBuffer, which crosses threads without a copy.
 */
import { join } from 'corespun/zone'

/** Below so many numbers the engine's own sort is quicker than parting them further. */
const PART_MIN = 4096

/** Sort `numbers` from `from` to `to`, which is not included. */
export function quicksort(numbers, from, to) {
  if (to - from <= PART_MIN) {
    numbers.subarray(from, to).sort()
    return
  }
  const [left, right] = partition(numbers, from, to)
  join([quicksort, numbers, from, left], [quicksort, numbers, right, to])
}

/** Hoare's partition by the median of three: what is before `left` is not above what is from `right` on. */
function partition(numbers, from, to) {
  const pivot = median(numbers[from], numbers[(from + to) >> 1], numbers[to - 1])
  let [low, high] = [from, to - 1]
  while (low <= high) {
    while (numbers[low] < pivot) low++
    while (numbers[high] > pivot) high--
    if (low > high) break
    const swapped = numbers[low]
    numbers[low++] = numbers[high]
    numbers[high--] = swapped
  }
  return [high + 1, low]
}

function median(a, b, c) {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c))
}
