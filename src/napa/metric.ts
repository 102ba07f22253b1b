/**
 * `napa.metric`: numbers, rates and percentiles among the figures of `corespun/metrics`.
 *
 * Nothing is counted until a thread of the process calls `startMetrics()` or `metrics()`; then each thread
 * counts in its own memory, and readers add the threads up.
 */
import { meters } from '../base/index.ts'

/** What becomes of the values of a metric. */
export const MetricType = { Number: 0, Rate: 1, Percentile: 2 } as const
/** One of {@link MetricType}. */
export type MetricType = (typeof MetricType)[keyof typeof MetricType]

/** A metric of {@link get}. */
export interface Metric {
  /** Its group. */
  readonly section: string
  /** Its name in the group. */
  readonly name: string
  /** Sets a number, adds to a rate, records a value of which percentiles are read. */
  set(value: number, dimensions?: string[]): void
  /** Adds 1 to a number or a rate; records 1. */
  increment(dimensions?: string[]): void
  /** Takes 1 from a number; of no effect on rates, which only grow, and percentiles. */
  decrement(dimensions?: string[]): void
}

const known = new Map<string, Metric>()

/**
 * The metric of a section and name; the first call decides its type and dimensions.
 * @param dimensions Their names; each call passes a value for each of them.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { metricsText, startMetrics } from 'corespun/metrics'
 * import { metric } from 'corespun/napa'
 *
 * startMetrics()
 * const requests = metric.get('app', 'requests', metric.MetricType.Rate, ['client'])
 * requests.increment(['a'])
 * assert.match(metricsText(), /corespun_napa_rate_total\{.*"client=a"\} 1/)
 * ```
 */
export function get(section: string, name: string, type: MetricType, dimensions: string[] = []): Metric {
  const key = `${section}\0${name}`
  const found = known.get(key)
  if (found !== undefined) return found
  const count = (act: 'set' | 'add', value: number, values: readonly string[] = []): void =>
    meters.napa?.(
      type,
      act,
      value,
      section,
      name,
      dimensions.map((each, at) => `${each}=${values[at]}`).join(),
    )
  const made: Metric = {
    section,
    name,
    set: (value, values) => count('set', value, values),
    increment: (values) => count('add', 1, values),
    decrement: (values) => {
      if (type === MetricType.Number) count('add', -1, values)
    },
  }
  known.set(key, made)
  return made
}
