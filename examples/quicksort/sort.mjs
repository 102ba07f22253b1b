/**
 * Quicksort by joins, in shared memory: both parts are sorted in parallel if a worker is free.
 *
 * It is a module because a function that calls itself through `join` must be importable in every worker. The
 * array uses a SharedArrayBuffer, which crosses threads without a copy.
 */
import { join } from 'corespun/zone'

/** Up to this many numbers, the engine's own sort is faster than further partitioning. */
const PART_MIN = 4096

/** Sort `numbers` from `from` up to, but not including, `to`. */
export function quicksort(numbers, from, to) {
  if (to - from <= PART_MIN) {
    numbers.subarray(from, to).sort()
    return
  }
  const [left, right] = partition(numbers, from, to)
  join([quicksort, numbers, from, left], [quicksort, numbers, right, to])
}

/** Hoare's partition by the median of three: no number before `left` exceeds one from `right` on. */
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
