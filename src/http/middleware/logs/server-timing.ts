/**
 * `Server-Timing`: how long a request took and how much CPU time it used, for developer tools of browsers.
 *
 * It is part of Corespun because only the zones measure what the tasks of a request have used. Responses to
 * errors, 404 and 405 have the header too. It is sent with the head, so it has nothing of a streamed body.
 */
import { type CpuTime, measureCpu } from '../../../zone/index.ts'
import { carry } from '../../app/carried.ts'
import { EVERYWHERE, type Middleware } from '../../app/middleware.ts'

const accounts = new WeakMap<object, CpuTime>()

/** Runs `body` with what its request uses; middleware inside of another one's shares that. */
export function measuredRequest<R>(request: object, body: (used: CpuTime) => R): R {
  const known = accounts.get(request)
  if (known !== undefined) return body(known)
  return measureCpu((used) => {
    accounts.set(request, used)
    return body(used)
  })
}

/**
 * Middleware that adds the header `Server-Timing: cpu;dur=1.234, total;dur=5.678`, both in ms: the CPU time
 * of the inner middleware, the handler, and all tasks that they have called, as by `measureCpu()` of
 * corespun/zone, and the time until the response was decided. Pages of other origins can read it if the
 * response has `Timing-Allow-Origin`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, serverTiming, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': () => 'Hello' }, serverTiming()) })
 * const { headers } = await app.inject('/')
 * assert.match(headers.get('server-timing') ?? '', /^cpu;dur=[\d.]+, total;dur=[\d.]+$/)
 * ```
 */
export function serverTiming(): Middleware {
  const middleware: Middleware = (request, next) =>
    measuredRequest(request, async (used) => {
      const startMs = performance.now()
      try {
        return await next()
      } finally {
        const totalMs = performance.now() - startMs
        carry(request).set(
          'server-timing',
          `cpu;dur=${used.cpuMs.toFixed(3)}, total;dur=${totalMs.toFixed(3)}`,
        )
      }
    })
  return Object.assign(middleware, { [EVERYWHERE]: true })
}
