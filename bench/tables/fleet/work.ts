/**
 * The module that table `fleet` hosts, and that its rivals call themselves.
 *
 * Each function answers so that the caller can check it.
 */

/** What came. */
export const echo = (text: string): string => text

/** What a job returns. */
export const double = (n: number): number => n * 2

/** Below which number primes are counted, and how many there are: 0.7 ms of work, and 10 ms. */
export const PRIMES = { '0.7 ms': [20_000, 2262], '10 ms': [130_000, 12_159] } as const
export type Size = keyof typeof PRIMES

/** How many primes are below `limit`: work of one core. */
export function primes(limit: number): number {
  let count = 0
  for (let n = 2; n < limit; n += 1) {
    let isPrime = true
    for (let factor = 2; factor * factor <= n && isPrime; factor += 1) isPrime = n % factor !== 0
    if (isPrime) count += 1
  }
  return count
}
