/**
 * `Server-Timing`: what a request has waited for and used, for developer tools of browsers.
 *
 * It is part of Corespun because only the zones measure what the tasks of a request have used. Responses to
 * errors, 404 and 405 have the header too. It is sent with the head, so it has nothing of a streamed body.
 */
import { busyMs, collectedMs } from '../../../base/index.ts'
import { type CpuTime, measureCpu } from '../../../zone/index.ts'
import { waitsOf } from '../../../zone/internal.ts'
import { carry } from '../../app/carried.ts'
import { countCpu } from '../../app/counted.ts'
import { EVERYWHERE, type Middleware } from '../../app/middleware.ts'

const accounts = new WeakMap<object, CpuTime>()

/** Runs `body` with what its request uses; middleware inside of another one's shares that. */
export function measuredRequest<R>(request: object, body: (used: CpuTime) => R): R {
  const known = accounts.get(request)
  if (known !== undefined) return body(known)
  return measureCpu((used) => {
    accounts.set(request, used)
    countCpu(request, used)
    return body(used)
  })
}

/**
 * Middleware that adds the header `Server-Timing: cpu;dur=1.234, queue;dur=0.5, …, total;dur=5.678`, in ms:
 *
 * - `cpu`: the CPU time of the inner middleware, the handler, and all tasks that they have called, as by
 *   `measureCpu()` of corespun/zone;
 * - `queue`: how long the tasks that they have called have waited for a worker;
 * - `hop`: how long the arguments and results of those were on their way, until this thread read them;
 * - `loop`: how long this thread was busy meanwhile, with this request and with others;
 * - `gc`: how long it collected garbage meanwhile, as far as Node has reported it;
 * - `total`: the time until the response was decided.
 *
 * Tasks that run side by side add up. Pages of other origins can read it if the response has
 * `Timing-Allow-Origin`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, serverTiming, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': () => 'Hello' }, serverTiming()) })
 * const { headers } = await app.inject('/')
 * assert.match(headers.get('server-timing') ?? '', /^cpu;dur=[\d.]+, queue;dur=.*, total;dur=[\d.]+$/)
 * ```
 */
export function serverTiming(): Middleware {
  const middleware: Middleware = (request, next) =>
    measuredRequest(request, async (used) => {
      const [startMs, startBusyMs, startGcMs] = [performance.now(), busyMs(), collectedMs()]
      try {
        return await next()
      } finally {
        const { queueMs, hopMs } = waitsOf(used)
        const parts = {
          cpu: used.cpuMs,
          queue: queueMs,
          hop: hopMs,
          loop: busyMs() - startBusyMs,
          gc: collectedMs() - startGcMs,
          total: performance.now() - startMs,
        }
        const text = Object.entries(parts).map(([name, ms]) => `${name};dur=${ms.toFixed(3)}`)
        carry(request).set('server-timing', text.join(', '))
      }
    })
  return Object.assign(middleware, { [EVERYWHERE]: true })
}
