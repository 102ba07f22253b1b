/**
 * The module that table `fleet` hosts, and that its rivals call themselves.
 *
 * Each function answers so that the caller can check it.
 */

/** What came. */
export const echo = (text: string): string => text

/** What a job returns. */
export const double = (n: number): number => n * 2

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
