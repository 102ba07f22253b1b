/**
 * Refuses requests that a page of another site makes a browser send (CSRF), by what browsers state.
 *
 * `Sec-Fetch-Site` where it is sent, `Origin` otherwise; no token, no cookie. Clients that send neither are
 * not browsers, so nothing makes them send a user's cookies. A GET must change nothing: it is not checked.
 */
import { type Kind, optionsOf } from '../../../base/index.ts'
import type { HttpRequest } from '../../app/routes.ts'
import type { Middleware } from '../../app/middleware.ts'
import { StatusError } from '../../app/status-error.ts'
import { wrong } from '../../message/limits.ts'

/** Options of {@link csrf}. */
export interface CsrfOptions {
  /** Other origins whose pages may send requests, such as 'https://admin.example.com'. Default: none. */
  readonly origins?: readonly string[]
}

const ORIGINS: Kind<readonly string[]> = {
  expected: "an array of origins such as 'https://example.com'",
  accepts: (value) =>
    Array.isArray(value) &&
    value.every((one) => typeof one === 'string' && URL.canParse(one) && new URL(one).origin === one),
  default: [],
}
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY'])

/**
 * Middleware that responds with 403 (`CROSS_SITE`) to requests of pages of other sites, other than GET, HEAD,
 * QUERY and OPTIONS.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, csrf, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': { POST: () => 'paid' } }, csrf()) })
 * const headers = { 'sec-fetch-site': 'cross-site' }
 * assert.equal((await app.inject('/', { method: 'POST', headers })).status, 403)
 * ```
 */
export function csrf(options?: CsrfOptions): Middleware {
  const origins = new Set(optionsOf(options, { origins: ORIGINS }, wrong, 'csrf()').origins)
  return (request, next) => {
    if (!SAFE.has(request.method) && !isOwn(request, origins))
      throw new StatusError(403, 'pages of other sites may not send this request', { code: 'CROSS_SITE' })
    return next()
  }
}

function isOwn({ headers, url }: HttpRequest, origins: ReadonlySet<string>): boolean {
  const origin = headers.get('origin')
  if (origin !== null && origins.has(origin)) return true
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin' || site === 'none'
  if (origin === null) return true
  // By the host: a proxy that ends TLS changes the scheme. `null` is the origin of a sandbox.
  return URL.canParse(origin) && new URL(origin).host === new URL(url).host
}
