/**
 * How many requests clients have made lately, by the generic cell rate algorithm.
 *
 * One number per client: the time until which its requests use up its rate. So counting is one atomic update,
 * and there is no window boundary at which twice the limit passes.
 */
import type { Store } from '../../../store/index.ts'

/** Times are counted from here, the same in all threads: small numbers leave room for fractions. */
const ORIGIN_MS = Date.UTC(2025, 0)
/** How many windows the requests of a client may use up in advance, where other servers admit some too. */
export const WINDOWS_MAX = 64

/** A limit of `most` requests in `spanMs`, and the time. */
export interface RateNow {
  readonly most: number
  readonly spanMs: number
  /** In ms. */
  readonly now: number
}

/** What became of a request. */
export interface Verdict {
  readonly allowed: boolean
  /** Requests that the client may still make now. */
  readonly left: number
  /** Time until the next request is allowed, in ms; 0 if it is allowed now. */
  readonly waitMs: number
}

/**
 * Counts one request of a client.
 *
 * In integer units: a ms has `perMs`, a request takes `each`. Floats of the time of day in ms are 2e-4 ms
 * apart and would miscount. Units stay below 2^53, and so exact, until 2050 if `perMs` is at most 10,000: for
 * every rate up to that, and for larger ones that share a divisor with their window.
 *
 * @param windows How many windows a count may reach ahead, so that it is kept for so long.
 */
export function take(counts: Store<number>, key: string, rate: RateNow, windows = 1): Verdict {
  const { perMs, each, spanUnits, nowUnits } = unitsOf(rate)
  let verdict: Verdict = { allowed: false, left: 0, waitMs: 0 }
  counts.update(
    key,
    (usedUntil) => {
      const next = Math.max(usedUntil ?? nowUnits, nowUnits) + each
      const allowed = next - nowUnits <= spanUnits
      const until = allowed ? next : (usedUntil ?? nowUnits)
      const left = Math.max(0, Math.floor((spanUnits - (until - nowUnits)) / each))
      verdict = {
        allowed,
        left,
        waitMs: left > 0 ? 0 : Math.max(1, (until + each - nowUnits - spanUnits) / perMs),
      }
      return until
    },
    { ttlMs: rate.spanMs * windows + 1 },
  )
  return verdict
}

/**
 * Counts requests of a client that another server has admitted, also beyond the rate: what is too much now is
 * refused later, so that the rate holds over time.
 */
export function add(counts: Store<number>, key: string, requests: number, rate: RateNow): void {
  const { each, spanUnits, nowUnits } = unitsOf(rate)
  counts.update(
    key,
    (usedUntil) =>
      Math.min(
        Math.max(usedUntil ?? nowUnits, nowUnits) + requests * each,
        nowUnits + WINDOWS_MAX * spanUnits,
      ),
    { ttlMs: rate.spanMs * WINDOWS_MAX + 1 },
  )
}

/** How many requests of a client are counted now. */
export function countOf(counts: Store<number>, key: string, rate: RateNow): number {
  const { each, nowUnits } = unitsOf(rate)
  return Math.max(0, Math.ceil(((counts.get(key) ?? nowUnits) - nowUnits) / each))
}

function unitsOf({ most, spanMs, now }: RateNow) {
  const divisor = commonDivisor(most, spanMs)
  const [perMs, each] = [most / divisor, spanMs / divisor]
  const nowUnits = (Math.floor(now) - (now >= ORIGIN_MS ? ORIGIN_MS : 0)) * perMs
  return { perMs, each, spanUnits: perMs * spanMs, nowUnits }
}

function commonDivisor(one: number, other: number): number {
  return other === 0 ? one : commonDivisor(other, one % other)
}
