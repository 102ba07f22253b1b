/**
 * How long messages were on their way, though clocks of two machines agree on nothing.
 *
 * A caller writes its own clock into each call. The difference to the clock here is that of the clocks, and
 * the way. The least difference of the last minutes is that of the fastest message, so what
 * a message has more of is what it has waited: in a connection that was down, in a host that was blocked. A
 * clock that steps changes nothing, since these clocks do not; one that drifts is learnt anew each minute.
 */
const WINDOW_MS = 60_000
/** Callers that are remembered. */
const CALLERS_MAX = 4096

interface Seen {
  /** Since when `least` is counted. */
  sinceMs: number
  least: number
  leastBefore: number
}

export class Transit {
  readonly #callers = new Map<string, Seen>()

  /** How much longer than its fastest message one of a caller was on its way, in ms. */
  waitedMs(caller: string, sentMs: number, nowMs: number): number {
    const difference = nowMs - sentMs
    const seen = this.#callers.get(caller) ?? this.#added(caller, nowMs)
    if (nowMs - seen.sinceMs > WINDOW_MS) {
      seen.leastBefore = seen.least
      seen.least = Infinity
      seen.sinceMs = nowMs
    }
    seen.least = Math.min(seen.least, difference)
    return difference - Math.min(seen.least, seen.leastBefore)
  }

  #added(caller: string, nowMs: number): Seen {
    const seen = { sinceMs: nowMs, least: Infinity, leastBefore: Infinity }
    this.#callers.set(caller, seen)
    if (this.#callers.size > CALLERS_MAX) this.#callers.delete(this.#callers.keys().next().value as string)
    return seen
  }
}
