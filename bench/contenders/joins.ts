/**
 * Work that forks: for pools of Corespun, whose tasks can.
 *
 * A module of its own, since it imports Corespun and the other contenders' threads must not.
 */
import { join, zone, type Zone } from 'corespun/zone'
import { churn } from './work.ts'

/** Fibonacci by joins down to a cut-off, below it by plain recursion. */
export function fibonacci({ n, cutOff }: { readonly n: number; readonly cutOff: number }): number {
  return fib(n, cutOff)
}

export function fib(n: number, cutOff: number): number {
  if (n <= cutOff) return plainFib(n)
  const [a, b] = join([fib, n - 1, cutOff], [fib, n - 2, cutOff])
  return a + b
}

/** The same without joins. */
export function plainFib(n: number): number {
  return n < 2 ? n : plainFib(n - 1) + plainFib(n - 2)
}

/**
 * Sorts numbers of a seed in shared memory by joins; answers whether they are in order, and the time alone.
 */
export function quicksort({ count, seed }: { readonly count: number; readonly seed: number }): {
  readonly sorted: boolean
  readonly ms: number
} {
  const numbers = new Int32Array(new SharedArrayBuffer(4 * count))
  let state = seed
  for (let index = 0; index < count; index += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    numbers[index] = state >>> 1
  }
  const start = performance.now()
  sort(numbers, 0, count)
  const ms = performance.now() - start
  let sorted = true
  for (let index = 1; index < count; index += 1) sorted &&= numbers[index - 1] <= numbers[index]
  return { sorted, ms }
}

const PART_MIN = 4096

export function sort(numbers: Int32Array, from: number, to: number): void {
  if (to - from <= PART_MIN) {
    numbers.subarray(from, to).sort()
    return
  }
  const middle = numbers[(from + to) >> 1]
  const pivot = Math.max(
    Math.min(numbers[from], middle),
    Math.min(Math.max(numbers[from], middle), numbers[to - 1]),
  )
  let [low, high] = [from, to - 1]
  while (low <= high) {
    while (numbers[low] < pivot) low += 1
    while (numbers[high] > pivot) high -= 1
    if (low > high) break
    const swapped = numbers[low]
    numbers[low] = numbers[high]!
    numbers[high] = swapped
    low += 1
    high -= 1
  }
  join([sort, numbers, from, high + 1], [sort, numbers, low, to])
}

/** So many pieces of work as tasks of the own zone, awaited together. */
export async function pieces({
  turns,
  count,
}: {
  readonly turns: number
  readonly count: number
}): Promise<number> {
  const own = zone.current as Zone
  const all = await Promise.all(Array.from({ length: count }, () => own.run(churn, turns)))
  return all.length
}
