/**
 * Histories of transactions by several threads, and whether one order explains them.
 *
 * Each transaction is between two ticks of a clock that all threads share; one whose thread was killed may
 * have been committed or not. Every value is written once, so a read shows whose write it saw.
 */

/** What a transaction has read and written by the numbers of its keys; `undefined`: not. 0: absent. */
export interface Seen {
  readonly from: number
  /** Infinity: its thread was killed first. */
  readonly to: number
  readonly read: readonly (number | undefined)[]
  readonly written: readonly (number | undefined)[]
}

/** Wing and Gong's search with memory of what failed, over the state of all keys. At most 31 transactions. */
export function isSerializable(seen: readonly Seen[], keys: number): boolean {
  const failed = new Set<string>()
  const needed = seen.reduce((bits, { to }, index) => (to === Infinity ? bits : bits | (1 << index)), 0)
  const search = (done: number, now: readonly number[]): boolean => {
    if ((done & needed) === needed) return true
    const state = `${done} ${now.join(' ')}`
    if (failed.has(state)) return false
    const open = seen.map((_, index) => index).filter((index) => ((done >>> index) & 1) === 0)
    const firstEnd = Math.min(...open.map((index) => seen[index].to))
    for (const index of open) {
      const { from, read, written } = seen[index]
      if (from > firstEnd || !read.every((value, key) => value === undefined || value === now[key])) continue
      if (
        search(
          done | (1 << index),
          now.map((value, key) => written[key] ?? value),
        )
      )
        return true
    }
    failed.add(state)
    return false
  }
  return search(
    0,
    Array.from({ length: keys }, () => 0),
  )
}
