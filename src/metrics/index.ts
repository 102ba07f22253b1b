/**
 * `corespun/metrics`: what a running process does, counted in all of its threads and read from any of them.
 *
 * A program that does not import it counts nothing of this. docs/guide/metrics.md lists the names.
 * @module corespun/metrics
 */
export type { JobQueue, JobQueues } from './collect.ts'
export type { SlowEvent, SlowWaits } from './slow.ts'
export { type MetricsOptions, metrics, metricsText, startMetrics } from './handler.ts'
