/**
 * Steps of durable runs as spans: in the trace of whoever has started the run, over several processes.
 *
 * A process that dies is a connection that is closed under its runs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { until } from '../base/wait.test.support.ts'
import { connect } from '../fleet/index.ts'
import { Schedule } from '../fiber/index.ts'
import { traceRuns } from '../telemetry/spans.test.support.ts'
import { child, durable, runs, step } from './index.ts'

test('each attempt of a step is a span in the trace of its run, over a crash', async () => {
  const exporter = new InMemorySpanExporter()
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  assert.throws(() => traceRuns({ tracerProvider: 5 as never }), { code: 'ZONE_ARGUMENT' })
  traceRuns()
  const stop = traceRuns({ tracerProvider })
  let calls = 0
  const part = durable('part', function* () {
    return yield* step('inner', () => trace.getActiveSpan()?.spanContext().traceId)
  })
  const order = durable('order', function* () {
    const flaky = (): void => {
      if (++calls === 1) throw new RangeError('busy')
    }
    yield* step('charge', flaky, [], { retry: Schedule.recurs(1) })
    yield* step('stop', () => (++calls === 3 ? new Promise(() => {}) : undefined))
    return yield* child(part, undefined)
  })
  const definitions = [order, part] as const
  await using keeper = await connect('memory:traced runs')
  await using starting = await runs(keeper, { definitions, runsMax: 0 })
  const first = await connect('memory:traced runs')
  await runs(first, { definitions, leaseMs: 200 })
  const root = tracerProvider.getTracer('test').startSpan('request')
  const { traceId, spanId } = root.spanContext()
  const run = await context.with(trace.setSpan(context.active(), root), () =>
    starting.start('order', undefined, { key: 'k' }),
  )
  await until(() => calls === 3)
  await first.close()
  await using fleet = await connect('memory:traced runs')
  await using work = await runs(fleet, { definitions, leaseMs: 200 })
  assert.equal(await work.get('order', 'k').result(), traceId)
  const spans = exporter.getFinishedSpans()
  assert.ok(spans.every((span) => span.spanContext().traceId === traceId))
  const named = (name: string) => spans.filter((span) => span.name === name)
  assert.deepEqual(
    named('order charge').map(({ attributes, status, parentSpanContext }) => [
      attributes['corespun.attempt'],
      attributes['corespun.run'],
      status.message,
      parentSpanContext?.spanId,
    ]),
    [
      [1, 'order/k', 'busy', spanId],
      [2, 'order/k', undefined, spanId],
    ],
  )
  assert.ok(named('order stop').length >= 1)
  const [started] = named('order child(part)')
  assert.equal(named('part inner')[0].parentSpanContext?.spanId, started.spanContext().spanId)
  stop()
  const before = exporter.getFinishedSpans().length
  assert.equal(await (await starting.start('part', undefined)).result(), undefined)
  assert.equal(exporter.getFinishedSpans().length, before)
  assert.equal(run.key, 'k')
})
