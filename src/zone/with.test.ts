/**
 * Views with limits, the limits of `module` and `map`, and what relative modules are resolved against.
 *
 * The same table runs on a zone of workers, on the calling thread, and with the limits in either order.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type AnyZone, type Task, zone } from './index.ts'

const worker = zone.create('with', { workers: 1, tasksPerWorkerMax: 8, graceMs: 20_000 })
after(() => worker.close())

const MATH = new URL('../../test/zone/modules/math.mjs', import.meta.url)
interface Math {
  add(a: number, b: number): number
}

/** Ends when its caller no longer waits. */
function patient(this: Task): Promise<void> {
  return new Promise((resolve) => this.signal.addEventListener('abort', () => resolve()))
}
const NEVER = 'new Promise(() => {})'

/** Each kind of call that has limits, with a task that does not end by itself. */
const CALLS: readonly (readonly [string, (on: AnyZone) => Promise<unknown>])[] = [
  ['run', (on) => on.run(patient)],
  ['execute', (on) => on.execute(patient)],
  ['map', (on) => on.map([1], () => new Promise(() => {}))],
  ['map of an iterable', (on) => on.map(new Set([1]), () => new Promise(() => {})).next()],
  ['map that settles', (on) => on.map([1], () => new Promise(() => {}), { settle: true })],
  ['forEach', (on) => on.forEach([1], () => new Promise(() => {}))],
  ['reduce', (on) => on.reduce([1], (sum: number) => new Promise<number>(() => sum), 0)],
]

for (const kind of ['a zone of workers', 'zone.node'] as const) {
  const made = (): { on: AnyZone; close: () => Promise<void> } => {
    if (kind === 'zone.node') return { on: zone.node, close: () => Promise.resolve() }
    const own = zone.create(`with-${Math.random()}`, { workers: 1, graceMs: 0 })
    return { on: own, close: () => own.close({ timeoutMs: 0 }) }
  }
  for (const [name, call] of CALLS) {
    test(`with of ${kind} limits ${name}: the shorter timeout, and each signal`, async () => {
      const { on, close } = made()
      try {
        const late = { code: 'TASK_TIMEOUT', facts: { zone: on.id, timeoutMs: 40, started: true } }
        await on.ready()
        await on.run(() => 1)
        await assert.rejects(call(on.with({ timeoutMs: 60_000 }).with({ timeoutMs: 40 })), (error: Error) => {
          const { code, facts } = error as Error & { code: string; facts: object }
          assert.deepEqual({ code, facts: { ...facts, started: true } }, late)
          return true
        })
        for (const isInner of [true, false]) {
          const [one, other] = [new AbortController(), new AbortController()]
          const limited = on.with({ signal: one.signal }).with({ signal: other.signal, timeoutMs: 60_000 })
          const ended = assert.rejects(call(limited), /because/)
          setImmediate(() => (isInner ? other : one).abort(new RangeError('because')))
          await ended
        }
        const aborted = AbortSignal.abort(new RangeError('because'))
        await assert.rejects(call(on.with({ signal: aborted })), /because/)
      } finally {
        await close()
      }
    })
  }
}

test('options of a call add to those of the view', async () => {
  const view = worker.with({ timeoutMs: 60_000 })
  await assert.rejects(view.execute(patient, [], { timeoutMs: 20 }), { code: 'TASK_TIMEOUT' })
  await assert.rejects(view.execute(patient, [], { timeoutMs: '5' as never }), {
    code: 'ZONE_ARGUMENT',
    message: /timeoutMs must be a number of milliseconds .*; received "5"/,
  })
  await assert.rejects(view.execute(patient, [], 5 as never), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => view.with(undefined as never), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => view.with({ timeout: 5 } as never), /did you mean "timeoutMs"\?/)
  assert.equal(await view.run((a: number, b: number) => a + b, 1, 2), 3)
  assert.equal((await view.execute((a: number) => a, [4])).value, 4)
  assert.deepEqual(await view.map([1, 2], (n: number) => n + 1), [2, 3])
  await view.broadcast(NEVER.slice(0, 0) || '1')
  view.broadcastSync(() => {})
  assert.equal(view.id, worker.id)
  assert.equal(view.stats().workers, 1)
  await view.ready()
})

test('module and broadcast have limits', async () => {
  const math = worker.module<Math>(MATH, { timeoutMs: 60_000 })
  assert.equal(await math.add(1, 2), 3)
  const aborted = worker.module<Math>(MATH, { signal: AbortSignal.abort(new RangeError('because')) })
  await assert.rejects(aborted.add(1, 2), /because/)
  const own = zone.create('with-broadcast', { workers: 1, graceMs: 0 })
  await assert.rejects(own.with({ timeoutMs: 20 }).broadcast(NEVER), { code: 'BROADCAST_TIMEOUT' })
  await own.close({ timeoutMs: 0 })
})

test('a view travels to a task with its limits', async () => {
  const view = worker.with({ timeoutMs: 20 })
  const codeOf = async (other: AnyZone): Promise<unknown> => {
    const never = (): Promise<void> => new Promise(() => {})
    return other.run(never).catch((error: { code?: unknown }) => error.code)
  }
  const brief = zone.create('with-brief', { workers: 1, graceMs: 0 })
  assert.equal(await worker.run(codeOf, brief.with({ timeoutMs: 20 })), 'TASK_TIMEOUT')
  assert.equal(await worker.run(codeOf, zone.node.with({ timeoutMs: 20 })), 'TASK_TIMEOUT')
  assert.equal(view.id, 'with')
  await brief.close({ timeoutMs: 0 })
})

test('relative modules are resolved against from, else against the calling file', async () => {
  const from = new URL('../../test/zone/run.mjs', import.meta.url)
  const all: [string, AnyZone][] = [
    ['workers', worker],
    ['view', worker.with({ timeoutMs: 60_000 })],
    ['node', zone.node],
    ['view of node', zone.node.with({ timeoutMs: 60_000 })],
  ]
  for (const [name, on] of all) {
    for (const base of [from, from.href, fileURLToPath(from)]) {
      const { value } = await on.execute<Math>('./modules/math.mjs', 'add', [1, 2], { from: base })
      assert.equal(value, 3, name)
      assert.equal(await on.module<Math>('./modules/math.mjs', { from: base }).add(2, 2), 4, name)
    }
    const { value } = await on.execute<Math>('../../test/zone/modules/math.mjs', 'add', [1, 2])
    assert.equal(value, 3, name)
    assert.equal(await on.module<Math>('../../test/zone/modules/math.mjs').add(2, 2), 4, name)
    await assert.rejects(on.execute('./x.mjs', 'add', [], { from: './here' }), {
      code: 'ZONE_ARGUMENT',
      message: /from must be a URL or an absolute path, such as import\.meta\.url; received "\.\/here"/,
    })
    await on.broadcast("void import('./modules/math.mjs').then((m) => m.add(1, 1))", [], { from })
  }
})
