/**
 * Tasks, requests and steps of durable runs as spans of OpenTelemetry, and the figures of all threads as its
 * metrics.
 *
 * The only entry point that needs `@opentelemetry/api`, an optional peer: nothing else imports it.
 * @module corespun/telemetry
 */
export {
  type ProcessMetrics,
  type ProducedHistogram,
  type ProducedMetric,
  type ProducedPoint,
  produceMetrics,
} from './metrics.ts'
export { traceRequests } from './requests.ts'
export { traceRuns } from './runs.ts'
export { traceTasks } from './tasks.ts'
export type { TelemetryOptions } from './tracer.ts'
