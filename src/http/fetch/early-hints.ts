/**
 * 103 Early Hints (RFC 8297): header lines that a client gets while the handler still works on the response.
 *
 * A function and not a method of the request, so that it works with what frameworks pass on.
 */
import { TYPES, TypeOf } from '../message/core-interface.ts'
import { wrong } from '../message/limits.ts'
import { CorespunHeaders, headerLines } from './headers.ts'
import { exchangeOf, OWN_REQUEST } from './request.ts'
import type { HeadersInit } from '../message/standard.ts'

/**
 * Sends an informational response, 103, before the response of a handler, once or several times: for example
 * with the `link` headers of what the page will need.
 * @param request The request that the handler received, or `c.req.raw`, `event.req` and the like.
 * @param headers What the client gets. `connection` and the like are left out, as in responses.
 * @returns Whether it is sent: not to clients of HTTP/1.0, not after the response has begun, and not for
 *   requests of `inject`.
 * @throws {HttpError} `HTTP_ARGUMENT` for a request that is not a handler's, and without headers;
 *   `HTTP_HEADER` for a value with a control character.
 * @throws {TypeError} For names and values that `Headers` refuses.
 *
 * @example
 * ```ts
 * import { serve, writeEarlyHints } from 'corespun/http'
 *
 * const server = await serve({
 *   port: 0,
 *   routes: {
 *     '/': async (request) => {
 *       writeEarlyHints(request, { link: '</app.css>; rel=preload; as=style' })
 *       return new Response(await page(), { headers: { 'content-type': 'text/html' } })
 *     },
 *   },
 * })
 * async function page() {
 *   return '<link rel="stylesheet" href="/app.css">'
 * }
 * await server.close()
 * ```
 */
export function writeEarlyHints(request: Request, headers: HeadersInit): boolean {
  const exchange = exchangeOf(request)
  if (exchange === undefined) throw wrong('writeEarlyHints(): request', OWN_REQUEST, request)
  const { type, lines } = headerLines(new CorespunHeaders(headers))
  const typed =
    (type & 0xff) === TypeOf.none ? lines : `content-type: ${TYPES[(type & 0xff) as 1]}\r\n${lines}`
  if (typed === '') throw wrong('writeEarlyHints(): headers', 'at least one header, such as link', headers)
  return exchange.hint(typed)
}
