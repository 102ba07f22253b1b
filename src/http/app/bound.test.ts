/**
 * What a handler returns to be read later belongs to its request: the tasks of a stream, and a generator.
 * The core reads both when the handler has returned, outside of its context.
 */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { after } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { carry, currentTrace, zone } from '../../zone/index.ts'
import { onCores } from '../cores.test.support.ts'
import { timeout } from '../middleware/timeout.ts'
import { traceContext } from '../middleware/trace-context.ts'
import { use } from './middleware.ts'
import { chunks, ndjson } from './events.ts'

const user = carry('user', new AsyncLocalStorage<string>())
const own = zone.create('bound', { workers: 1, graceMs: 0 })
after(() => own.close())

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const HEADERS = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` }

async function* seen(): AsyncGenerator<string> {
  const { AsyncLocalStorage } = await import('node:async_hooks')
  const { carry, currentTask, currentTrace } = await import('../../zone/index.ts')
  const kept = globalThis as { user?: AsyncLocalStorage<string> }
  kept.user ??= carry('user', new AsyncLocalStorage<string>())
  const { remainingMs = Infinity } = currentTask() ?? {}
  const traceId = currentTrace()?.traceparent?.split('-')[1]
  yield JSON.stringify([kept.user.getStore(), traceId, remainingMs <= 100_000])
}

async function* endless(): AsyncGenerator<string> {
  for (;;) {
    yield 'x'
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function* here(): AsyncGenerator<string> {
  await new Promise((resolve) => setImmediate(resolve))
  yield JSON.stringify([user.getStore(), currentTrace()?.traceparent?.split('-')[1]])
}

onCores('a body that is read later has the context of its request', async (start) => {
  const routes = {
    '/stream': () => own.stream(seen, []),
    '/chunks': () => chunks(own.stream(seen, [])),
    '/map': () => ndjson(own.map(new Set([1]), async () => 1)),
    '/here': () => here(),
    '/lines': () => ndjson(() => here(), { headers: { 'x-lines': '1' } }),
  }
  const within = use(routes, traceContext(), timeout(100_000), (_, next) => user.run('Ann', next))
  const server = await start({ routes: within })
  const read = async (path: string): Promise<unknown> =>
    JSON.parse(await (await fetch(server.url + path, { headers: HEADERS })).text()) as unknown
  // The first task of a worker has the values that it has registered by then: none.
  await read('/stream')
  assert.deepEqual(await read('/stream'), ['Ann', TRACE, true])
  assert.deepEqual(await read('/chunks'), ['Ann', TRACE, true])
  assert.equal(await read('/map'), 1)
  assert.deepEqual(await read('/here'), ['Ann', TRACE])
  assert.deepEqual(JSON.parse((await read('/lines')) as string), ['Ann', TRACE])
})

onCores('a time limit ends a stream that a handler has returned', async (start, core, t) => {
  t.mock.method(console, 'error', () => {})
  const server = await start({ routes: use({ '/': () => own.stream(endless, []) }, timeout(300)) })
  await assert.rejects(async () => {
    const response = await fetch(server.url)
    // On a busy machine the time may be over before the first item.
    assert.ok([200, 503, 504].includes(response.status), core)
    await response.text()
    if (response.status !== 200) throw new Error('over before')
  })
  await until(() => own.stats().running === 0, 'the end of its task')
})
