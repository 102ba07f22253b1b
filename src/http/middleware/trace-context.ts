/**
 * The trace of a request, for the calls that its handler makes.
 *
 * It is part of Corespun because calls to zones carry it to other threads. It forwards what the client has
 * sent and creates nothing: spans are those of corespun/telemetry.
 */
import { withTrace } from '../../zone/index.ts'
import { countTrace } from '../app/counted.ts'
import { EVERYWHERE, type Middleware } from '../app/middleware.ts'

/**
 * Middleware that reads the headers `traceparent`, `tracestate` and `baggage`: in the handler, and in all
 * tasks that it causes, `currentTrace()` of corespun/zone returns them. Malformed ones are left out.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, traceContext, use } from 'corespun/http'
 * import { currentTrace } from 'corespun/zone'
 *
 * const routes = use({ '/': () => currentTrace()?.traceparent ?? 'none' }, traceContext())
 * const app = createApp({ routes })
 * const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
 * assert.equal(await (await app.inject('/', { headers: { traceparent } })).text(), traceparent)
 * ```
 */
export function traceContext(): Middleware {
  const middleware: Middleware = (request, next) => {
    const { headers } = request
    const [traceparent, tracestate, baggage] = [
      headers.get('traceparent'),
      headers.get('tracestate'),
      headers.get('baggage'),
    ]
    if (traceparent === null && baggage === null) return next()
    if (traceparent !== null) countTrace(request, traceparent)
    const given = {
      ...(traceparent === null ? {} : { traceparent }),
      ...(tracestate === null ? {} : { tracestate }),
      ...(baggage === null ? {} : { baggage }),
    }
    return withTrace(given, next)
  }
  return Object.assign(middleware, { [EVERYWHERE]: true })
}
