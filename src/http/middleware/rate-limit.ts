/**
 * A limit on the requests of one client, counted in a store: all workers of the process count together.
 *
 * The generic cell rate algorithm: one number for each client says when it would have used up what it has
 * asked for. So there are no windows whose ends let twice as much through, and one update of the store, which
 * is atomic, decides and counts.
 */
import { type Store, store as stores } from '../../store/index.ts'
import { type Kind, anything, callback, integer, optionsOf, text } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import type { HttpRequest } from '../app/routes.ts'
import { carry } from '../app/carried.ts'
import type { Middleware } from './middleware.ts'
import { StatusError } from '../app/status-error.ts'

/** What {@link rateLimit} takes. */
export interface RateLimitOptions {
  /** Requests that one client may make in `windowMs`; all of them at once, if it likes. 1 or more. */
  readonly requestsMax: number
  /** In ms, 1 or more. Default 60,000. */
  readonly windowMs?: number
  /** What tells clients apart. Default: the address; behind a proxy take what the proxy says. */
  readonly key?: (request: HttpRequest) => string
  /** Tells limits apart that have the same clients and the same rate. Default 'all'. */
  readonly name?: string
  /** Where it counts. Default: a store of its own for 100,000 clients; who came first is forgotten first. */
  readonly store?: Store<number>
  /** The time in ms since an epoch that is the same in all threads. Default Date.now. */
  readonly now?: () => number
}

const CLIENTS_MAX = 100_000
const STORE_ID = 'corespun.http.rate'
/** Times are counted from here, the same in all threads: small numbers leave room for fractions. */
const ORIGIN_MS = Date.UTC(2025, 0)

const OPTIONS = {
  requestsMax: integer<number | undefined>(1, 2 ** 31, undefined),
  windowMs: integer(1, 2 ** 31 - 1, 60_000),
  key: { ...callback, expected: 'a function (request) => string' } as Kind<RateLimitOptions['key']>,
  name: text('all'),
  store: anything as Kind<RateLimitOptions['store']>,
  now: callback as Kind<RateLimitOptions['now']>,
}

function addressOf({ remoteAddress }: HttpRequest): string {
  return remoteAddress
}

/** What became of a request. */
interface Verdict {
  readonly allowed: boolean
  /** Requests that the client may make at once now. */
  readonly left: number
  /** Until another one may be made; 0 when one may now. */
  readonly waitMs: number
}

/**
 * Answers 429 (`RATE_LIMITED`, with `retry-after`) beyond a rate, and tells `ratelimit` fields in each
 * answer.
 * @throws {HttpError} `HTTP_ARGUMENT`. @throws {StoreError} when its store cannot be made.
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const given = optionsOf(options ?? null, OPTIONS, wrong, 'rateLimit()')
  const { requestsMax: most, windowMs: spanMs, name, key = addressOf, now = Date.now } = given
  if (most === undefined) throw wrong('rateLimit(): requestsMax', OPTIONS.requestsMax.expected, most)
  const counts = given.store ?? stores.getOrCreate<number>(STORE_ID, { entriesMax: CLIENTS_MAX })
  const shownName = `"${encodeURIComponent(name)}"`
  const policy = `${shownName};q=${most};w=${Math.ceil(spanMs / 1000)}`
  // A number means nothing at another rate, so the rate is part of who is counted.
  const counted = `${most}/${spanMs} ${shownName} `
  return (request, next) => {
    const { allowed, left, waitMs } = take(counts, counted + key(request), {
      most,
      spanMs,
      now: now(),
    })
    const waitS = String(Math.ceil(waitMs / 1000))
    const headers = carry(request)
    headers.set('ratelimit-policy', policy)
    headers.set('ratelimit', `${shownName};r=${left};t=${waitS}`)
    if (allowed) return next()
    const reason = `more than ${most} requests in ${spanMs} ms`
    throw new StatusError(429, reason, {
      code: 'RATE_LIMITED',
      headers: { 'retry-after': waitS },
    })
  }
}

/**
 * Count one request of a client.
 *
 * In whole units, of which a ms has `perMs` and a request takes `each`: floats of the time of day in ms are
 * some 2e-4 ms apart and would miscount. Units stay below 2^53, so exact, until 2050 where `perMs` is at most
 * 10,000: for every rate up to that, and for larger ones that share a divisor with their window.
 */
export function take(
  counts: Store<number>,
  key: string,
  { most, spanMs, now }: { readonly most: number; readonly spanMs: number; readonly now: number },
): Verdict {
  const divisor = commonDivisor(most, spanMs)
  const [perMs, each] = [most / divisor, spanMs / divisor]
  const spanUnits = perMs * spanMs
  const nowUnits = (Math.floor(now) - (now >= ORIGIN_MS ? ORIGIN_MS : 0)) * perMs
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
    { ttlMs: spanMs + 1 },
  )
  return verdict
}

function commonDivisor(one: number, other: number): number {
  return other === 0 ? one : commonDivisor(other, one % other)
}
