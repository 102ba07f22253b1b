/**
 * The trace and the deadline of a request are those of the tasks that its handler causes.
 * The zone has one worker, so that a context which stayed there would be found by the next request.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Zone, zone } from '../../zone/index.ts'
import { createApp, timeout, traceContext, use } from '../index.ts'

const WORKER: Zone = zone.create('http-context', { workers: 1, graceMs: 20_000 })
test.after(() => WORKER.close())

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

async function seen(): Promise<string> {
  await null
  return await WORKER.run(async () =>
    JSON.stringify((await import('../../zone/index.ts')).currentTrace() ?? null),
  )
}

test('tasks of a handler find the trace of their request, and of no other', async () => {
  const app = createApp({ routes: use({ '/': seen }, traceContext()) })
  const table: [Record<string, string>, object | null][] = [
    [
      { traceparent, tracestate: 'a=1,b=2', baggage: 'tenant=7' },
      { traceparent, tracestate: 'a=1,b=2', baggage: 'tenant=7' },
    ],
    [{}, null],
    [{ traceparent }, { traceparent }],
    [{ baggage: 'tenant=8' }, { baggage: 'tenant=8' }],
    [{ tracestate: 'a=1' }, null],
    [{ traceparent: 'x', tracestate: 'a=1' }, null],
  ]
  const responses = await Promise.all(table.map(([headers]) => app.inject('/', { headers })))
  assert.deepEqual(
    await Promise.all(responses.map((response) => response.json())),
    table.map(([, expected]) => expected),
  )
})

test('calls of a handler have the time that timeout() leaves', async () => {
  const remaining = (): Promise<string> =>
    WORKER.run(async () => String((await import('../../zone/index.ts')).currentTask()?.remainingMs))
  const app = createApp({
    routes: { ...use({ '/limited': remaining }, timeout(60_000)), '/free': remaining },
  })
  const limited = Number(await (await app.inject('/limited')).text())
  assert.ok(limited > 0 && limited <= 60_000)
  assert.equal(await (await app.inject('/free')).text(), 'undefined')
})

test('a call that outlasts timeout() is cancelled with it', async () => {
  let ended: Promise<unknown> = Promise.resolve()
  const endless = (): Promise<never> => {
    const call = WORKER.run(async () => {
      const { currentTask } = await import('../../zone/index.ts')
      const signal = currentTask()?.signal
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
    })
    ended = call.catch((error: unknown) => error)
    return call as Promise<never>
  }
  const app = createApp({ routes: use({ '/': endless }, timeout(30)) })
  assert.equal((await app.inject('/')).status, 503)
  const { code, facts } = (await ended) as { code: string; facts: { inherited?: boolean } }
  assert.deepEqual([code, facts.inherited], ['TASK_TIMEOUT', true])
})
