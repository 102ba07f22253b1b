/**
 * A limit on the requests of each client.
 *
 * It is part of Corespun because it counts in a store, which all workers of the process share, and which
 * corespun/fleet connects with those of other machines. Defaults: a window of 60,000 ms, by client address,
 * 100,000 clients.
 */
import { type Store, store as stores } from '../../store/index.ts'
import { type Kind, type OptionsOf, anything, callback, integer, optionsOf, text } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import type { HttpRequest } from '../app/routes.ts'
import { carry } from '../app/carried.ts'
import type { Middleware } from '../app/middleware.ts'
import { type Verdict, take } from './rates/counts.ts'
import { networkOf } from './rates/network.ts'
import { CLIENTS_MAX, SharedCounts } from './rates/shared.ts'
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
  /** Returns the key of a client. Default: `request.ip`, which `trustProxy` decides; of IPv6 its network. */
  readonly key?: (request: HttpRequest) => string
  /**
   * How many leading bits of an IPv6 address are one client, 1 to 128. Default 64, the smallest network that
   * providers assign; many assign 56 or 48. Without effect on `key`.
   */
  readonly ipv6Bits?: number
  /** Distinguishes limits with the same clients and the same rate. Default 'all'. */
  readonly name?: string
  /** The store of the counts. Default: a shared store for 100,000 clients, which evicts the oldest first. */
  readonly store?: Store<number>
  /**
   * The name under which all servers count together whose processes have joined `fleet.limits(name)` of
   * corespun/fleet. Other options of the limit must agree; a client whose limit has another rate or `name`
   * counts separately. Leave out `store` and `now`. Default: the workers of this process count together.
   */
  readonly shared?: string | undefined
  /** Returns the time in ms; its epoch must be the same in all threads. Default `Date.now`. */
  readonly now?: () => number
}

const STORE_ID = 'corespun.http.rate'

const OPTIONS = {
  requestsMax: integer<number | undefined>(1, 2 ** 31, undefined),
  windowMs: integer(1, 2 ** 31 - 1, 60_000),
  key: { ...callback, expected: 'a function (request) => string' } as Kind<RateLimitOptions['key']>,
  ipv6Bits: integer(1, 128, 64),
  name: text('all'),
  shared: text<string | undefined>(undefined),
  store: anything as Kind<RateLimitOptions['store']>,
  now: callback as Kind<RateLimitOptions['now']>,
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
  const { requestsMax: most, windowMs: spanMs, name, ipv6Bits } = given
  const key = given.key ?? (({ remoteAddress }: HttpRequest) => networkOf(remoteAddress, ipv6Bits))
  if (most === undefined) throw wrong('rateLimit()', '{ requestsMax }', most, { verb: 'needs' })
  const shownName = `"${encodeURIComponent(name)}"`
  const policy = `${shownName};q=${most};w=${Math.ceil(spanMs / 1000)}`
  // A count is only valid for its rate, so the rate is part of the key.
  const count = counting(given, `${most}/${spanMs} ${shownName} `, most)
  return (request, next) => {
    const { allowed, left, waitMs } = count(key(request))
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

/** Counts a request of a client, where the options demand it. */
function counting(
  { windowMs: spanMs, shared, store, now }: OptionsOf<typeof OPTIONS>,
  rate: string,
  most: number,
): (client: string) => Verdict {
  if (shared !== undefined) {
    if (store !== undefined || now !== undefined)
      throw wrong('rateLimit(): shared', 'left out with store or now', shared)
    const counts = new SharedCounts(shared)
    return (client) => counts.take(rate + client, most, spanMs)
  }
  const counts = store ?? stores.getOrCreate<number>(STORE_ID, { entriesMax: CLIENTS_MAX })
  const time = now ?? Date.now
  return (client) => take(counts, rate + client, { most, spanMs, now: time() })
}
