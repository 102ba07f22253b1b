/**
 * Headers by which browsers protect the users of a page, with the values that few pages need otherwise.
 *
 * They are on every response, errors and 404 included; one that a response has itself stays. The policy of
 * contents depends on the page, so its default allows what a page without other hosts needs, and no frames.
 */
import { isPlainObject } from '../../../base/index.ts'
import { carry } from '../../app/carried.ts'
import { EVERYWHERE, type Middleware } from '../../app/middleware.ts'
import { CorespunHeaders } from '../../fetch/headers.ts'
import { wrong } from '../../message/limits.ts'

/** Headers by name, in lower case; `false`: not sent. */
export type SecureHeaders = Readonly<Record<string, string | false>>

const DEFAULTS: SecureHeaders = {
  'content-security-policy':
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
/** Only over TLS: browsers ignore it elsewhere (RFC 6797, 7.2). */
const TRANSPORT = 'strict-transport-security'
const YEAR = 'max-age=31536000'

/**
 * Middleware that adds security headers: content-security-policy (the own origin alone),
 * cross-origin-opener-policy and -resource-policy (same-origin), referrer-policy (no-referrer),
 * x-content-type-options, x-frame-options (DENY), and over TLS strict-transport-security (a year).
 * @param changes Other values, further headers, and `false` for those that are not sent.
 * @throws {HttpError} `HTTP_ARGUMENT` for what is not such a record, and `HTTP_HEADER` or a TypeError for a
 *   name or value that no header has.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, secureHeaders, use } from 'corespun/http'
 *
 * const guard = secureHeaders({ 'x-frame-options': 'SAMEORIGIN' })
 * const app = createApp({ routes: use({ '/': 'Hello' }, guard) })
 * const { headers } = await app.inject('/missing')
 * assert.equal(headers.get('x-frame-options'), 'SAMEORIGIN')
 * ```
 */
export function secureHeaders(changes: SecureHeaders = {}): Middleware {
  const isValid = (value: unknown): boolean => typeof value === 'string' || value === false
  if (!isPlainObject(changes) || !Object.values(changes).every(isValid))
    throw wrong('secureHeaders()', 'a record of strings, or false, by header', changes)
  const all = Object.entries({ ...DEFAULTS, ...changes }).filter(([name]) => name !== TRANSPORT)
  const sent = [...new CorespunHeaders(all.filter((pair): pair is [string, string] => pair[1] !== false))]
  const transport = changes[TRANSPORT] ?? YEAR
  const middleware: Middleware = (request, next) => {
    const headers = carry(request)
    for (const [name, value] of sent) headers.set(name, value)
    if (transport !== false && request.url.startsWith('https:')) headers.set(TRANSPORT, transport)
    return next()
  }
  return Object.assign(middleware, { [EVERYWHERE]: true as const })
}
