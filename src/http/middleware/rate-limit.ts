/**
 * A limit on the requests of each client.
 *
 * It is part of Corespun because it counts in a store, which all workers of the process share. It uses the
 * generic cell rate algorithm: one number per client, one atomic update per request, and no window boundary
 * at which twice the limit passes. Defaults: a window of 60,000 ms, by client address, 100,000 clients.
 */
import { type Store, store as stores } from '../../store/index.ts'
import { type Kind, anything, callback, integer, optionsOf, text } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import type { HttpRequest } from '../app/routes.ts'
import { carry } from '../app/carried.ts'
import type { Middleware } from './middleware.ts'
import { StatusError } from '../app/status-error.ts'

/** Options of {@link rateLimit}. */
export interface RateLimitOptions {
  /**
   * Most requests of one client at once, 1 or more. After them one more is allowed each
   * `windowMs / requestsMax` ms.
   */
  readonly requestsMax: number
  /** The time after which a client that has sent none may send `requestsMax` again, in ms. Default 60,000. */
  readonly windowMs?: number
  /** Returns the key of a client. Default: its address; behind a proxy, read the proxy's header. */
  readonly key?: (request: HttpRequest) => string
  /** Distinguishes limits with the same clients and the same rate. Default 'all'. */
  readonly name?: string
  /** The store of the counts. Default: a shared store for 100,000 clients, which evicts the oldest first. */
  readonly store?: Store<number>
  /** Returns the time in ms; its epoch must be the same in all threads. Default `Date.now`. */
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

interface Verdict {
  readonly allowed: boolean
  /** Requests that the client may still make now. */
  readonly left: number
  /** Time until the next request is allowed, in ms; 0 if it is allowed now. */
  readonly waitMs: number
}

/**
 * Middleware that responds with 429 (`RATE_LIMITED`, with `retry-after`) beyond a rate and adds `ratelimit`
 * headers to each response.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 * @throws {StoreError} If its store cannot be created.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, rateLimit, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': 'Hello' }, rateLimit({ requestsMax: 1, name: 'example' })) })
 * assert.equal((await app.inject('/')).status, 200)
 * assert.equal((await app.inject('/')).status, 429)
 * ```
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const given = optionsOf(options, OPTIONS, wrong, 'rateLimit()')
  const { requestsMax: most, windowMs: spanMs, name, key = addressOf, now = Date.now } = given
  if (most === undefined) throw wrong('rateLimit()', '{ requestsMax }', most, { verb: 'needs' })
  const counts = given.store ?? stores.getOrCreate<number>(STORE_ID, { entriesMax: CLIENTS_MAX })
  const shownName = `"${encodeURIComponent(name)}"`
  const policy = `${shownName};q=${most};w=${Math.ceil(spanMs / 1000)}`
  // A count is only valid for its rate, so the rate is part of the key.
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
 * Counts one request of a client.
 *
 * In integer units: a ms has `perMs`, a request takes `each`. Floats of the time of day in ms are 2e-4 ms
 * apart and would miscount. Units stay below 2^53, and so exact, until 2050 if `perMs` is at most 10,000: for
 * every rate up to that, and for larger ones that share a divisor with their window.
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
