/**
 * The deadline of a call is that of all calls within it: less time by an own limit, never more.
 * Tasks end by their signals alone, so that no test waits for a time to pass.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { inZone, makeZone, timedOut } from '../api/zones.test.support.ts'
import { currentTask, zone } from '../index.ts'
import { type Tree, call, functionsOn } from './context.test.support.ts'

const OUTER = makeZone({ workers: 1, graceMs: 20_000 })
const INNER = makeZone({ workers: 1, graceMs: 20_000 })
after(() => Promise.all([OUTER.close(), INNER.close()]))

test('a call without a deadline has no remaining time', async () => {
  assert.equal((await functionsOn(OUTER).look()).remainingMs, undefined)
  assert.equal(currentTask()?.remainingMs, undefined)
})

test('a call within a call has what that one has left, or less by its own limit', async () => {
  const inner = (timeoutMs?: number): Tree => ({
    zone: INNER.id,
    how: 'execute',
    calls: [],
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  for (const [ownMs, mostMs] of [
    [undefined, 60_000],
    [50_000, 50_000],
    [70_000, 60_000],
  ] as const) {
    const seen = await call({ zone: OUTER.id, how: 'execute', timeoutMs: 60_000, calls: [inner(ownMs)] })
    const [outerMs, innerMs] = [seen.remainingMs ?? 0, seen.calls[0].remainingMs ?? 0]
    assert.ok(outerMs > 0 && outerMs <= 60_000 && innerMs > 0 && innerMs <= Math.min(outerMs, mostMs))
  }
})

test('a call within a call ends with it, and those that follow are not sent', async () => {
  await timedOut((timeoutMs) => functionsOn(OUTER.with({ timeoutMs })).callEndless(INNER.id))
  // The task that has begun goes on when its own calls have failed.
  const value: [string, object][] = []
  while (value.length < 5) value.push(...((await functionsOn(OUTER).takeNoted()) as [string, object][]))
  const facts = { zone: INNER.id, timeoutMs: 0, inherited: true }
  // On a busy machine the time may have passed before the first call.
  const isFirstSent = (value[0][1] as { started: boolean }).started
  assert.deepEqual(value.slice(0, 2), [
    ['TASK_TIMEOUT', { ...facts, started: isFirstSent }],
    ['TASK_TIMEOUT', { ...facts, started: false }],
  ])
  assert.equal(value[2][0], 'TASK_TIMEOUT')
  assert.equal(value[3][0], 'BROADCAST_TIMEOUT')
  assert.deepEqual(value[4], ['TASK_TIMEOUT', { ...facts, zone: 'node', started: false }])
})

test('the sentence names whose time has passed', async () => {
  const late = zone.node.with({ timeoutMs: 1 }).run(async (id: string) => {
    const signal = currentTask()?.signal
    await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
    return zone
      .get(id)
      .run(() => 1)
      .then(String, String)
  }, INNER.id)
  await assert.rejects(late, { code: 'TASK_TIMEOUT' })
  let sentence: string | undefined
  await assert.rejects(
    zone.node.with({ timeoutMs: 1 }).run(async () => {
      const signal = currentTask()?.signal
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
      sentence = await INNER.run(() => 1).then(String, String)
    }),
  )
  await INNER.run(() => 1)
  assert.match(String(sentence), /did not start within the 0 ms that its caller had left; raise the limit/)
})

test('forks of join have the deadline too', async () => {
  await inZone({ workers: 2, executor: 'work-stealing' }, async (own) => {
    const left = await own.with({ timeoutMs: 60_000 }).run(async () => {
      const { join } = await import('../index.ts')
      const leftMs = function (this: { readonly remainingMs: number | undefined }): number {
        return this.remainingMs ?? -1
      }
      return join([leftMs], [leftMs])
    })
    for (const ms of left) assert.ok(ms > 0 && ms <= 60_000)
  })
})

test('broadcastSync has the time of its caller', async () => {
  const code = await zone.node.with({ timeoutMs: 60_000 }).run(async () => {
    INNER.broadcastSync(() => {})
    return 'done'
  })
  assert.equal(code, 'done')
})
