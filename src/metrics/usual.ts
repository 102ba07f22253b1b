/**
 * The time that 99 of 100 requests of a route take at most, followed from one to the next.
 *
 * The same estimate as of tasks, crates/bridge/src/system/usual.rs, which explains it.
 */

/** Requests before any of them is found slow, and those in which it comes near. */
const SEEN_MIN = 32
const NEAR_MAX = 128
const NEAR = { raise: 2.691, lower: 0.99005 }
const LATER = { raise: 1.219, lower: 0.998 }
const FACTOR = 3
/** What takes less is not slow to anybody, ms. */
const LEAST_MS = 5

export class Usual {
  #mostMs = 0
  #seen = 0

  /** One has taken so long. Returns the usual if it was slow, otherwise 0. */
  passed(ms: number): number {
    const most = this.#mostMs
    const { raise, lower } = this.#seen < NEAR_MAX ? NEAR : LATER
    this.#seen++
    if (ms <= most) {
      this.#mostMs = most * lower
      return 0
    }
    // The first one is the estimate.
    this.#mostMs = most === 0 ? ms : Math.min(ms, most * raise)
    return this.#seen > SEEN_MIN && ms >= LEAST_MS && ms > most * FACTOR ? most : 0
  }
}
