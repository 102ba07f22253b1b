/**
 * The figures of all threads as metrics of OpenTelemetry, read when a reader of the SDK exports.
 *
 * One thread of a process exports them all, unlike spans. A producer, not instruments: the API has no
 * histogram that is filled elsewhere. The types are those of `@opentelemetry/sdk-metrics` by their shape, so
 * that programs without it compile.
 */
import { type Family, collect, startMetrics } from '../metrics/internal.ts'

/** Seconds and nanoseconds. */
type Time = [seconds: number, nanoseconds: number]

/** One value, and what it belongs to. */
export interface ProducedPoint<Value> {
  /** Since when it counts. */
  readonly startTime: Time
  /** When it was read. */
  readonly endTime: Time
  /** By the names of docs/guide/metrics.md. */
  readonly attributes: Record<string, string | number>
  /** A number, or a histogram. */
  readonly value: Value
}

/** The value of a histogram. */
export interface ProducedHistogram {
  /** Upper bounds, and how many values are in each bucket; one more than there are bounds. */
  readonly buckets: { boundaries: number[]; counts: number[] }
  /** Of all values. */
  readonly sum: number
  /** How many there are. */
  readonly count: number
}

interface Described {
  readonly descriptor: { name: string; description: string; unit: string; valueType: 1 }
  /** Cumulative. */
  readonly aggregationTemporality: 1
}

/** A metric: a histogram, a gauge or a sum. */
export type ProducedMetric =
  | (Described & { readonly dataPointType: 0; readonly dataPoints: ProducedPoint<ProducedHistogram>[] })
  | (Described & { readonly dataPointType: 2; readonly dataPoints: ProducedPoint<number>[] })
  | (Described & {
      readonly dataPointType: 3
      readonly dataPoints: ProducedPoint<number>[]
      readonly isMonotonic: true
    })

/** A `MetricProducer` of `@opentelemetry/sdk-metrics`. */
export interface ProcessMetrics {
  /** Called by the reader; the resource is that of its provider. */
  collect(): Promise<{
    resourceMetrics: {
      resource: never
      scopeMetrics: { scope: { name: string }; metrics: ProducedMetric[] }[]
    }
    errors: unknown[]
  }>
}

/**
 * The metrics of all threads of this process for a reader of OpenTelemetry's SDK, by the names that
 * docs/guide/metrics.md lists. The call starts metrics, as `startMetrics()` of
 * corespun/metrics does.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { produceMetrics } from 'corespun/telemetry'
 *
 * // new PeriodicExportingMetricReader({ exporter, metricProducers: [produceMetrics()] })
 * const { resourceMetrics } = await produceMetrics().collect()
 * assert.equal(resourceMetrics.scopeMetrics[0].scope.name, 'corespun')
 * ```
 */
export function produceMetrics(): ProcessMetrics {
  startMetrics()
  const begunMs = Date.now()
  return {
    async collect() {
      const times = { startTime: timeOf(begunMs), endTime: timeOf(Date.now()) }
      const metrics = collect()
        .filter(({ points }) => points.length > 0)
        .map((family) => metricOf(family, times))
      const scopeMetrics = [{ scope: { name: 'corespun' }, metrics }]
      return { resourceMetrics: { resource: undefined as never, scopeMetrics }, errors: [] }
    },
  }
}

function metricOf(
  { instrument, points }: Family,
  times: Pick<ProducedPoint<number>, 'startTime' | 'endTime'>,
): ProducedMetric {
  const { name, description, unit, kind, attributes, bounds } = instrument
  const described: Described = {
    descriptor: { name, description, unit, valueType: 1 },
    aggregationTemporality: 1,
  }
  const pointsOf = <Value>(valueOf: (cells: readonly number[]) => Value): ProducedPoint<Value>[] =>
    points.map(({ values, cells }) => {
      const pairs = attributes.map((attribute, index) => [attribute, values[index] ?? ''] as const)
      return {
        ...times,
        attributes: Object.fromEntries(pairs.filter(([, value]) => value !== '')),
        value: valueOf(cells),
      }
    })
  if (kind === 'counter')
    return { ...described, dataPointType: 3, isMonotonic: true, dataPoints: pointsOf(([value]) => value) }
  if (kind === 'gauge') return { ...described, dataPointType: 2, dataPoints: pointsOf(([value]) => value) }
  const histogram = ([total, ...counts]: readonly number[]): ProducedHistogram => ({
    buckets: { boundaries: [...bounds], counts },
    sum: total,
    count: counts.reduce((all, count) => all + count, 0),
  })
  return { ...described, dataPointType: 0, dataPoints: pointsOf(histogram) }
}

function timeOf(ms: number): Time {
  return [Math.floor(ms / 1000), (ms % 1000) * 1e6]
}
