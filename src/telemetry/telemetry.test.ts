/**
 * Spans of tasks and requests: each is under the one of its caller, whatever lies between.
 * Random trees of calls are compared with the spans that they have left in all threads.
 */
import assert from 'node:assert/strict'
import { get } from 'node:http'
import { test } from 'node:test'
import {
  ROOT_CONTEXT,
  SpanKind,
  type TextMapPropagator,
  context,
  propagation,
  trace,
} from '@opentelemetry/api'
import fc from 'fast-check'
import { until } from '../base/wait.test.support.ts'
import { createApp, serve, timeout, use } from '../http/index.ts'
import { currentTrace, withTrace, zone } from '../zone/index.ts'
import { traceRequests, traceTasks } from './index.ts'
import { type Ran, type Seen, type Tree, WAYS, ZONES, start, takeSpans, walk } from './spans.test.support.ts'

const setup = async (): Promise<void> => {
  const { start } = await import('./spans.test.support.ts')
  start()
}
start()
const threads = ZONES.map((name) => zone.create(name, { workers: 1, tasksPerWorkerMax: 64, setup }))
const isolated = zone.create('traced-process', {
  workers: 1,
  tasksPerWorkerMax: 64,
  // Windows has no zones of processes.
  isolation: process.platform === 'win32' ? 'thread' : 'process',
  setup,
})
const one = zone.create('traced-one', { workers: 1, setup })
test.after(() => Promise.all([...threads, isolated, one].map((each) => each.close())))

const tracer = trace.getTracer('test')
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const TRACE = TRACEPARENT.slice(3, 35)
const PARENT = TRACEPARENT.slice(36, 52)

/** The spans of this thread and of all workers since the last call. */
async function spans(): Promise<Seen[]> {
  const taken = async (): Promise<Seen[]> => (await import('./spans.test.support.ts')).takeSpans()
  const all = await Promise.all([...threads, isolated, one].map((each) => each.run(taken)))
  return [...all.flat(), ...takeSpans()].filter(({ name }) => name !== 'taken')
}

const tree: fc.Memo<Tree> = fc.memo((depth) =>
  fc
    .record({
      zone: fc.nat(1),
      way: fc.constantFrom(...WAYS),
      below: depth <= 1 ? fc.constant([]) : fc.array(tree(depth - 1), { maxLength: 2 }),
    })
    // Another process has no zones of this one.
    .map((each) => (each.way === 'process' ? { ...each, below: [] } : each)),
)

/** Every task that has run has one span, whose parent is the span of the task that has called it. */
function checkTree({ below }: Pick<Tree, 'below'>, ran: Ran, byId: ReadonlyMap<string, Seen>): number {
  assert.equal(ran.below.length, below.length)
  let count = 0
  for (const [index, child] of ran.below.entries()) {
    const span = byId.get(child.id ?? '')
    assert.ok(span !== undefined, 'the span that was active in the task has ended')
    assert.equal(span.parent, ran.id, `the way of the call: ${below[index].way}`)
    assert.equal(span.traceId, ran.traceId)
    assert.equal(child.traceId, ran.traceId)
    count += 1 + checkTree(below[index], child, byId)
  }
  return count
}

function sizeOf({ below }: Ran): number {
  return below.reduce((sum, each) => sum + sizeOf(each), 1)
}

test('in trees of calls, each task is a span under its caller, in whichever thread', async () => {
  await spans()
  const trees = fc.array(fc.array(tree(3), { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 4 })
  const property = fc.asyncProperty(trees, async (many) => {
    const run = (below: readonly Tree[]): Promise<Ran> =>
      tracer.startActiveSpan('root', async (span) => {
        const ran = await walk({ below })
        span.end()
        return ran
      })
    const all = await Promise.all(many.map(run))
    const traces = new Set(all.map(({ traceId }) => traceId))
    const total = all.reduce((sum, ran) => sum + sizeOf(ran), 0)
    const left: Seen[] = []
    // The task of a stream ends a moment after its last item has arrived.
    for (let tries = 0; left.length < total && tries < 1000; tries++)
      left.push(...(await spans()).filter(({ traceId }) => traces.has(traceId)))
    const byId = new Map(left.map((span) => [span.id, span]))
    let count = 0
    for (const [index, ran] of all.entries()) {
      assert.equal(byId.get(ran.id ?? '')?.parent, undefined)
      count += 1 + checkTree({ below: many[index] }, ran, byId)
    }
    assert.equal(traces.size, all.length)
    assert.equal(left.length, count)
  })
  await fc.assert(property, { numRuns: 5 })
})

/** No task has more time left than its caller had, and each has a deadline. */
function checkLeft(below: readonly Ran[], callerMs: number): void {
  for (const { leftMs, below: inner } of below) {
    assert.ok(leftMs !== undefined && leftMs > 0 && leftMs <= callerMs, `${leftMs} of ${callerMs} ms`)
    checkLeft(inner, leftMs)
  }
}

test('the deadline of a request is that of all calls below it, however they are made', async () => {
  const handler = async (request: Request): Promise<Ran> => walk({ below: (await request.json()) as Tree[] })
  const app = createApp({ routes: use({ '/': { POST: handler } }, timeout(300_000)) })
  const property = fc.asyncProperty(fc.array(tree(3), { minLength: 1, maxLength: 3 }), async (below) => {
    const response = await app.inject('/', { method: 'POST', body: JSON.stringify(below) })
    const ran = (await response.json()) as Ran
    assert.equal(ran.below.length, below.length)
    checkLeft(ran.below, 300_000)
  })
  const each = WAYS.map((way): [Tree[]] => [
    [{ zone: 0, way, below: way === 'process' ? [] : [{ zone: 1, way, below: [] }] }],
  ])
  await fc.assert(property, { numRuns: WAYS.length + 3, examples: each })
})

test('one request: its span, its task and the task that this calls are a chain', async () => {
  await spans()
  async function inner(): Promise<string> {
    const { currentTrace } = await import('../zone/index.ts')
    return currentTrace()?.traceparent ?? 'none'
  }
  async function parse(next: () => Promise<string>): Promise<string> {
    const { zone } = await import('../zone/index.ts')
    return await zone.get('traced-1').run(next)
  }
  const app = createApp({
    routes: use({ '/user/:id': { GET: () => threads[0].run(parse, inner) } }, traceRequests()),
  })
  const headers = { traceparent: TRACEPARENT, 'user-agent': 'test', host: 'example.test:8080' }
  const text = await (await app.inject('/user/7?full=1', { headers })).text()
  const [request, first, second] = ['GET /user/:id', 'parse', 'inner'].map(
    (
      (left) => (expected: string) =>
        left.find(({ name }) => name === expected)
    )(await spans()),
  )
  assert.ok(request !== undefined && first !== undefined && second !== undefined)
  assert.deepEqual([request.parent, first.parent, second.parent], [PARENT, request.id, first.id])
  assert.deepEqual(
    [request, first, second].map(({ traceId }) => traceId),
    [TRACE, TRACE, TRACE],
  )
  // What the innermost task would send to other systems is its own span.
  assert.equal(text, `00-${TRACE}-${second.id}-01`)
  assert.equal(request.kind, SpanKind.SERVER)
  assert.deepEqual(request.attributes, {
    'http.request.method': 'GET',
    'http.route': '/user/:id',
    'http.response.status_code': 200,
    'url.scheme': 'http',
    'url.path': '/user/7',
    'url.query': 'full=1',
    'server.address': request.attributes['server.address'],
    'server.port': request.attributes['server.port'],
    'user_agent.original': 'test',
  })
  assert.equal(first.kind, SpanKind.INTERNAL)
  assert.deepEqual(
    {
      ...first.attributes,
      'thread.id': 0,
      'thread.name': String(first.attributes['thread.name']).slice(0, 9),
    },
    {
      'corespun.zone': 'traced-0',
      'code.function.name': 'parse',
      'thread.id': 0,
      'thread.name': 'traced-0/',
    },
  )
})

test('errors are recorded in the spans of the task and of the request', async () => {
  await spans()
  const fails = (): never => {
    throw Object.assign(new Error('broken'), { code: 'E_BROKEN' })
  }
  const rejects = (): Promise<never> => Promise.reject(new RangeError('later'))
  const odd = (): never => {
    throw 'text'
  }
  for (const fn of [fails, rejects, odd]) {
    const app = createApp({
      routes: use({ '/': () => one.run(fn) }, traceRequests()),
      error: () => undefined,
    })
    assert.equal((await app.inject('/', { method: 'POST' })).status, 500)
  }
  const left = await spans()
  const types = ['fails', 'rejects', 'odd'].map(
    (expected) => left.find(({ name }) => name === expected)?.attributes['error.type'],
  )
  assert.deepEqual(types, ['E_BROKEN', 'RangeError', '_OTHER'])
  const requests = left.filter(({ name }) => name === 'POST /')
  assert.equal(requests.length, 3)
  assert.ok(left.every(({ isError }) => isError))
  assert.equal(left.filter(({ events }) => events.includes('exception')).length, 4)
})

test('requests without a route, of unknown methods and of clients that leave have spans too', async () => {
  await spans()
  const leaving = new AbortController()
  const app = createApp({
    routes: use(
      {
        '/': 'Hello',
        '/leave': ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error))
            leaving.abort()
          }),
        '/brew': { POST: () => Response.error() },
      },
      traceRequests(),
    ),
  })
  await app.inject('/missing')
  await app.inject('/brew', { method: 'POST' })
  await app.inject('/leave', { method: 'PURGE', signal: leaving.signal }).catch(() => {})
  const left = await spans()
  const status = (expected: string): unknown =>
    left.find(({ name }) => name === expected)?.attributes['http.response.status_code']
  assert.deepEqual([status('GET'), status('POST /brew'), status('HTTP /leave')], [404, 500, undefined])
  const { attributes } = left.find(({ name }) => name === 'HTTP /leave') as Seen
  assert.equal(attributes['http.request.method'], '_OTHER')
  assert.equal(attributes['http.request.method_original'], 'PURGE')
})

test('the span of a request whose client leaves ends, though its handler never settles', async () => {
  await spans()
  let open = 0
  const silent = (): Promise<never> => {
    open++
    return new Promise(() => {})
  }
  for (const core of ['native', 'node'] as const) {
    const server = await serve({ port: 0, core, quiet: true, routes: use({ '/': silent }, traceRequests()) })
    const request = get(server.url, { agent: false }).on('error', () => {})
    await until(() => open > 0)
    open = 0
    request.socket!.resetAndDestroy()
    let left: Seen[] = []
    await until(async () => (left = await spans()).length > 0)
    assert.deepEqual(
      left.map(({ name, attributes }) => [name, attributes['error.type']]),
      [['GET /', 'HTTP_CLIENT_DISCONNECTED']],
      core,
    )
    await server.close({ timeoutMs: 0 })
  }
})

test('propagators read the headers of requests; baggage and trace states cross to tasks', async () => {
  const found = async (): Promise<string> => {
    const { propagation, context, trace } = await import('@opentelemetry/api')
    const { currentTrace } = await import('../zone/index.ts')
    const active = context.active()
    const entry = propagation.getBaggage(active)?.getEntry('tenant')
    const state = trace.getSpanContext(active)?.traceState?.get('vendor')
    return JSON.stringify([entry?.value, entry?.metadata?.toString(), state, currentTrace()?.baggage])
  }
  const app = createApp({ routes: use({ '/': () => one.run(found) }, traceRequests()) })
  const baggage = 'tenant=a%20b;ttl=5, =left, out, odd=%E0%A4%A'
  const headers = { traceparent: TRACEPARENT, tracestate: 'vendor=7', baggage }
  const expected = ['a b', 'ttl=5', '7', 'tenant=a%20b;ttl=5,odd=%25E0%25A4%25A']
  assert.deepEqual(await (await app.inject('/', { headers })).json(), expected)
  const propagator: TextMapPropagator<Headers> = {
    fields: () => ['x-tenant'],
    inject: () => {},
    extract: (into, carrier, { get, keys }) => {
      assert.ok(keys(carrier).includes('x-tenant'))
      assert.equal(get(carrier, 'x-missing'), undefined)
      const value = String(get(carrier, 'x-tenant'))
      return propagation.setBaggage(into, propagation.createBaggage({ tenant: { value } }))
    },
  }
  propagation.setGlobalPropagator(propagator as TextMapPropagator)
  const body = await (await app.inject('/', { headers: { 'x-tenant': 'other' } })).json()
  propagation.disable()
  assert.deepEqual(body, ['other', null, null, 'tenant=other'])
  await spans()
})

test('results that are read after their task have its span as their context', async () => {
  await spans()
  async function* rows(): AsyncGenerator<string | undefined> {
    const { currentTrace } = await import('../zone/index.ts')
    yield currentTrace()?.traceparent
    yield currentTrace()?.traceparent
  }
  const ids: (string | undefined)[] = []
  for await (const row of await one.run(rows)) ids.push(row?.slice(36, 52))
  const span = (await spans()).find(({ name }) => name === 'rows')
  assert.deepEqual(ids, [span?.id, span?.id])
})

test('the spans of streams, and of calls with streams, have the name of the function', async () => {
  await spans()
  async function* doubled(numbers: AsyncIterable<number> | number[]): AsyncGenerator<number> {
    for await (const number of numbers) yield number * 2
  }
  async function sum(numbers: AsyncIterable<number>): Promise<number> {
    let total = 0
    for await (const number of numbers) total += number
    return total
  }
  for (const target of [one, isolated]) {
    assert.equal(await sum(target.stream(doubled, [1, 2])), 6)
    assert.equal(await sum(target.stream(async (numbers: AsyncIterable<number>) => numbers, [1])), 1)
    assert.equal(await target.run(sum, doubled([1, 2])), 6)
    assert.equal(await target.run(async (numbers) => (await numbers.next()).value, doubled([1])), 2)
    const names: string[] = []
    // The task of a stream ends a moment after its last item has arrived.
    for (let tries = 0; names.length < 4 && tries < 1000; tries++)
      names.push(...(await spans()).map(({ name }) => name))
    assert.deepEqual(names.sort(), ['doubled', 'sum', `task of ${target.id}`, `task of ${target.id}`])
  }
})

test('a trace that arrived another way is the parent where no span is active', async () => {
  await spans()
  await withTrace({ traceparent: TRACEPARENT }, () => one.run(() => 1))
  assert.deepEqual(
    (await spans()).map(({ name, parent, traceId }) => [name, parent, traceId]),
    [['task of traced-one', PARENT, TRACE]],
  )
})

test('what was stopped makes no spans, and a provider of the options comes first', () => {
  const names: string[] = []
  const provider = {
    getTracer: () => ({
      ...tracer,
      startSpan: (name: string) => {
        names.push(name)
        return tracer.startSpan(name)
      },
    }),
  } as never
  const stop = traceTasks({ tracerProvider: provider })
  const span = tracer.startSpan('outer')
  const headers = context.with(trace.setSpan(ROOT_CONTEXT, span), currentTrace)
  assert.equal(headers?.traceparent?.slice(36, 52), span.spanContext().spanId)
  const again = traceTasks({ tracerProvider: provider })
  stop() // has been replaced, so it has no effect
  again()
  assert.equal(context.with(trace.setSpan(ROOT_CONTEXT, span), currentTrace), undefined)
  assert.deepEqual(names, [])
  assert.throws(() => traceTasks({ tracerProvider: 7 as never }), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => traceRequests({ tracerProvider: 7 as never }), { code: 'HTTP_ARGUMENT' })
  traceTasks()
})
