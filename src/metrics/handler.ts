/**
 * `startMetrics`, which begins to count, and `metrics`, the handler that shows what all threads have counted.
 *
 * Both count in the whole process: each thread that uses the core loads entry.ts. It cannot be
 * undone: counters that stop are worse than none.
 */
import { type Kind, optionsOf } from '../base/index.ts'
import { native } from '../native/index.ts'
import type { Handler } from '../http/index.ts'
import { type JobQueues, collect } from './collect.ts'
import { queuesConnected } from './connected.ts'
import { wrong } from '../zone/internal.ts'
import { countHere } from './entry.ts'
import { queuesOf } from './queues.ts'
import { documentOf } from './text.ts'

/** What was found is shown again for so long: several may scrape, and servers are asked for each. */
const FRESH_MS = 500
const TEXT = 'text/plain; version=0.0.4; charset=utf-8'
const OPEN = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** Options of {@link metrics}. */
export interface MetricsOptions {
  /**
   * Connections whose queues of durable jobs and runs are shown, too: `[await connect('nats://a')]`. Default:
   * those of all threads.
   */
  readonly fleets?: readonly JobQueues[]
}

const FLEETS: Kind<readonly JobQueues[] | undefined> = {
  expected: 'an array of connections to fleets',
  accepts: (fleets) =>
    Array.isArray(fleets) &&
    fleets.every((fleet: Partial<JobQueues> | null) => typeof fleet?.queues === 'function'),
  default: undefined,
}

/**
 * Counts in all threads of this process from now on: tasks by zone and function, requests by route and
 * status, what each thread uses. `metrics()` calls it; a program that shows its figures another way calls it
 * first.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { metricsText, startMetrics } from 'corespun/metrics'
 *
 * startMetrics()
 * assert.match(metricsText(), /^process_uptime_seconds \d/m)
 * ```
 */
export function startMetrics(): void {
  native.countBy(new URL('./entry.js', import.meta.url).href)
  countHere()
}

/**
 * Returns the figures of all threads of this process as text for Prometheus.
 * @param format Default: `'prometheus'`, its text format 0.0.4.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { metricsText, startMetrics } from 'corespun/metrics'
 *
 * startMetrics()
 * assert.match(metricsText('openmetrics'), /# EOF\n$/)
 * ```
 */
export function metricsText(format: 'prometheus' | 'openmetrics' = 'prometheus'): string {
  return documentOf(collect(), format === 'openmetrics').toString()
}

/**
 * A handler that responds with {@link metricsText}, in the format that the client asks for. Any thread of the
 * process can respond: all return the same figures.
 * @param options.fleets Connections whose queues of durable jobs and runs are shown, too. Default: those of
 *   all threads; one that does not respond within half a second is left out.
 * @throws {ZoneError} `ZONE_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { createApp, readiness } from 'corespun/http'
 * import { metrics } from 'corespun/metrics'
 *
 * const health = { '/health/live': 'live', '/health/ready': readiness() }
 * const routes = { '/': () => 'Hello', '/metrics': metrics(), ...health }
 * const app = createApp({ routes })
 * await app.inject('/')
 * const text = await (await app.inject('/metrics')).text()
 * assert.match(text, /corespun_http_server_requests_total\{.*http_route="\/",.*\} 1/)
 * ```
 */
export function metrics(options?: MetricsOptions): Handler {
  const { fleets } = optionsOf(options, { fleets: FLEETS }, wrong, 'metrics()')
  startMetrics()
  const queuesNow = fleets === undefined ? QUEUES : shared(() => queuesOf(fleets))
  return async ({ headers }) => {
    // A program that serves has loaded it.
    const [{ Response }, queues] = await Promise.all([import('../http/index.ts'), queuesNow()])
    const isOpen = headers.get('accept')?.includes('application/openmetrics-text') === true
    const type = isOpen ? OPEN : TEXT
    return new Response(documentOf(collect(queues), isOpen), { headers: { 'content-type': type } })
  }
}

/** Looks that begin soon after another one are the same. */
function shared<Found>(look: () => Promise<Found>): () => Promise<Found> {
  let last: Promise<Found> | undefined
  let untilMs = -Infinity
  return async () => {
    if (last === undefined || performance.now() > untilMs) {
      untilMs = Infinity
      last = look().finally(() => (untilMs = performance.now() + FRESH_MS))
    }
    return last
  }
}

const QUEUES = shared(queuesConnected)
