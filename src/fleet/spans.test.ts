/**
 * Far calls and jobs as spans: a call's is under that of its caller, a job's has a link to who submitted it.
 *
 * Each thread has an SDK of its own, that of the worker is started by the `setup` of its zone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROOT_CONTEXT, context, trace } from '@opentelemetry/api'
import { type Seen, start, takeSpans } from '../telemetry/spans.test.support.ts'
import { zone } from '../zone/index.ts'
import { connect } from './connect.ts'
import { host } from './host/host.ts'

type Scores = typeof import('./scores.test.support.ts')
const MODULE = new URL('./scores.test.support.js', import.meta.url)

const setup = async (): Promise<void> => {
  const { start } = await import('../telemetry/spans.test.support.ts')
  start()
}

test('a far call is a span under that of its caller, and a job has a link to it', async () => {
  start()
  await using cpu = zone.create('far spans', { workers: 1, setup })
  await using fleet = await connect('memory:spans')
  await using hosting = await host(fleet, {
    name: 'spans',
    module: MODULE,
    version: 'v1',
    zone: cpu,
    jobsMax: 1,
  })
  const far = fleet.zone<Scores>(hosting.name)
  const jobs = fleet.jobs<Scores>(hosting.name)
  const span = trace.getTracer('test').startSpan('caller', {}, ROOT_CONTEXT)
  await context.with(trace.setSpan(ROOT_CONTEXT, span), async () => {
    await far.run('score', ['abc'])
    await assert.rejects(far.run('fail', ['on purpose']))
    for await (const _ of far.stream('rows', [2]));
    await jobs.submit('a job', 'score', ['abc'])
  })
  assert.equal(await jobs.result('a job'), 3)
  await far.run('nothing')
  const taken = async (): Promise<Seen[]> => (await import('../telemetry/spans.test.support.ts')).takeSpans()
  const seen = (await cpu.run(taken)).filter(({ name }) => name !== 'taken')
  const { spanId, traceId } = span.spanContext()
  const shown = seen.map(({ name, parent, links }) => [name, parent, links])
  assert.deepEqual(shown, [
    ['score', spanId, []],
    ['fail', spanId, []],
    ['rows', spanId, []],
    ['score', undefined, [spanId]],
    ['nothing', undefined, []],
  ])
  assert.deepEqual(
    seen.map((each) => each.traceId === traceId),
    [true, true, true, false, false],
  )
  assert.deepEqual(
    seen.map(({ isError }) => isError),
    [false, true, false, false, false],
  )
  assert.deepEqual(
    seen.map(({ attributes }) => attributes['code.function.name']),
    seen.map(({ name }) => name),
  )
  takeSpans()
})
