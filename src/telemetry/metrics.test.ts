/**
 * The SDK's own reader exports the figures of all threads with what the program has counted itself.
 *
 * Types too: a producer is one of the SDK.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { type Span, trace } from '@opentelemetry/api'
import { until } from '../base/wait.test.support.ts'
import { createApp, use } from '../http/index.ts'
import { metricsText } from '../metrics/internal.ts'
import { zone } from '../zone/index.ts'
import { produceMetrics, traceRequests } from './index.ts'
import { start } from './spans.test.support.ts'

test('a reader of the SDK exports tasks and requests of all threads', async () => {
  const producer: MetricProducer = produceMetrics()
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, metricProducers: [producer] })
  const provider = new MeterProvider({ readers: [reader] })
  provider.getMeter('program').createCounter('own').add(3)
  const own = zone.create('exported', { workers: 2 })
  function half(n: number): number {
    return n / 2
  }
  for (let n = 0; n < 5; n++) await own.run(half, n)
  await createApp({ routes: { '/exported': () => 'text' } }).inject('/exported')
  await provider.forceFlush()
  const metrics = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((each) => each.metrics))
  const pointOf = (name: string, attributes: Record<string, unknown>): DataPoint<unknown> | undefined => {
    const points: DataPoint<unknown>[] = metrics
      .filter(({ descriptor }: MetricData) => descriptor.name === name)
      .flatMap(({ dataPoints }) => dataPoints as DataPoint<unknown>[])
    return points.find((point) =>
      Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
    )
  }
  assert.equal(pointOf('own', {})?.value, 3)
  const of = { 'corespun.zone': 'exported', 'code.function.name': 'half' }
  assert.equal(pointOf('corespun.zone.tasks', { ...of, 'corespun.outcome': 'done' })?.value, 5)
  const duration = pointOf('corespun.zone.task.duration', of)
  assert.ok(duration !== undefined)
  const { count, buckets } = duration.value as Histogram
  assert.equal(count, 5)
  assert.equal(buckets.counts.length, buckets.boundaries.length + 1)
  const route = { 'http.route': '/exported', 'http.response.status_code': 200 }
  assert.equal(pointOf('corespun.http.server.requests', route)?.value, 1)
  await provider.shutdown()
  await own.close()
})

test('spans of requests and tasks are the exemplars of their durations', async () => {
  start()
  produceMetrics()
  const own = zone.create('exemplary', {
    workers: 1,
    setup: async () => (await import('./spans.test.support.ts')).start(),
  })
  function third(n: number): number {
    return n / 3
  }
  // A worker loads what counts beside its first tasks.
  await until(() => own.run(async () => (await import('../base/index.ts')).meters.task !== undefined))
  const app = createApp({ routes: use({ '/exemplary': () => own.run(third, 9) }, traceRequests()) })
  const traceId = await trace.getTracer('test').startActiveSpan('client', async (span: Span) => {
    const { traceId, spanId } = span.spanContext()
    const traceparent = `00-${traceId}-${spanId}-01`
    assert.equal(await (await app.inject('/exemplary', { headers: { traceparent } })).text(), '3')
    span.end()
    return traceId
  })
  const lines = (): string[] => {
    const all = metricsText('openmetrics').split('\n')
    return all.filter((line) => line.includes(`# {trace_id="${traceId}",span_id="`))
  }
  // Each is counted at its end, which may come behind the response.
  await until(() => lines().length > 1)
  const shown = lines()
  assert.match(shown[0], /^http_server_request_duration_seconds_bucket\{.*http_route="\/exemplary"/)
  assert.match(shown[1], /^corespun_zone_task_duration_seconds_bucket\{corespun_zone="exemplary",.*="third"/)
  assert.equal(shown.length, 2)
  await own.close()
})
