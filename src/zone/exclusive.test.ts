/**
 * Exclusive calls: nothing else runs in their workers, so that their end ends no other task.
 *
 * Tasks count those of their worker that run beside them; a task that is to be ended never returns to its
 * event loop, so its worker ends with it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Task, type ZoneOptions, zone } from './index.ts'
import { inZone, inZones, makeZone, until } from './api/zones.test.support.ts'

const SETTINGS: readonly ZoneOptions[] = [
  { workers: 1, tasksPerWorkerMax: 4 },
  { workers: 2, tasksPerWorkerMax: 4 },
  { executor: 'work-stealing', workers: 2, tasksPerWorkerMax: 4 },
  { executor: 'cached', workers: { min: 0, max: 2 }, tasksPerWorkerMax: 4 },
]

/** The most tasks that ran in this worker while this one did, itself included. */
async function beside(turns: number): Promise<number> {
  const worker = globalThis as { running?: Set<{ most: number }> }
  const running = (worker.running ??= new Set())
  const own = { most: 0 }
  running.add(own)
  for (const each of running) each.most = Math.max(each.most, running.size)
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
  running.delete(own)
  return own.most
}

/** Notes that it runs, and ends when the second word is not 0. */
async function held(gate: Int32Array): Promise<void> {
  Atomics.add(gate, 0, 1)
  while (Atomics.load(gate, 1) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
}

/** Notes that it runs, and never ends. */
function endless(gate: Int32Array): never {
  Atomics.store(gate, 2, 1)
  for (;;) Atomics.load(gate, 1)
}

function gateOf(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(12))
}

for (const settings of SETTINGS)
  test(`nothing runs beside exclusive calls, and none starves: ${JSON.stringify(settings)}`, () =>
    inZone(settings, async (own) => {
      const calls = Array.from({ length: 200 }, async (_, index) => {
        const exclusive = index % 5 === 0
        const tenant = index % 3 === 0 ? 'a' : undefined
        const result = await own.execute(beside, [index % 4], { exclusive, tenant })
        return { exclusive, most: result.value }
      })
      const all = await Promise.all(calls)
      assert.deepEqual(
        all.filter(({ exclusive, most }) => exclusive && most !== 1),
        [],
      )
      assert.ok(all.some(({ most }) => most > 1))
      const { waiting, waitingBytes, running, died } = own.stats()
      assert.deepEqual(
        { waiting, waitingBytes, running, died },
        { waiting: 0, waitingBytes: 0, running: 0, died: 0 },
      )
    }))

test('the end of an exclusive call ends no other, though its worker is replaced', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 4, graceMs: 1 }, async (own) => {
    const gate = gateOf()
    const before = [own.run(held, gate), own.run(held, gate)]
    await until(() => Atomics.load(gate, 0) === 2)
    const controller = new AbortController()
    const options = { exclusive: true, signal: controller.signal }
    const ended = assert.rejects(own.execute(endless, [gate], options), { message: 'enough' })
    const after = Array.from({ length: 8 }, () => own.run(beside, 1))
    assert.equal(own.stats().waiting, 9)
    Atomics.store(gate, 1, 1)
    await until(() => Atomics.load(gate, 2) === 1)
    await Promise.all(before)
    controller.abort(new Error('enough'))
    await Promise.all([ended, ...after])
    assert.equal(own.stats().failed, 0)
    assert.equal(own.stats().died, 1)
  }))

test('an exclusive call that is cancelled before its turn lets the others go on', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 2 }, async (own) => {
    const gate = gateOf()
    const before = own.run(held, gate)
    await until(() => Atomics.load(gate, 0) === 1)
    const controller = new AbortController()
    const options = { exclusive: true, signal: controller.signal }
    const ended = assert.rejects(own.execute(endless, [gate], options), { message: 'enough' })
    const behind = own.run(beside, 0)
    controller.abort(new Error('enough'))
    await ended
    assert.equal(await behind, 1)
    Atomics.store(gate, 1, 1)
    await before
  }))

test('an exclusive call may call its own zone, and be called from another zone', () =>
  inZones([{ workers: 1 }, { workers: 1 }], async (own, other) => {
    const nested = async (id: string): Promise<string> => {
      const { zone } = await import('corespun/zone')
      return zone.get(id).run(async function (this: Task) {
        return this.zone
      })
    }
    assert.equal((await own.execute(nested, [own.id], { exclusive: true })).value, own.id)
    const outer = async (id: string): Promise<unknown> => {
      const { zone } = await import('corespun/zone')
      const { value } = await zone.get(id).execute(() => 7, [], { exclusive: true })
      return value
    }
    assert.equal(await other.run(outer, own.id), 7)
    await assert.rejects(own.run(outer, own.id), { code: 'ZONE_DEADLOCK' })
    const through = async (id: string, back: string): Promise<unknown> => {
      const { zone } = await import('corespun/zone')
      const call = async (back: string): Promise<unknown> => {
        const { zone } = await import('corespun/zone')
        return (await zone.get(back).execute(() => 7, [], { exclusive: true })).value
      }
      return zone.get(id).run(call, back)
    }
    await assert.rejects(own.run(through, other.id, own.id), { code: 'ZONE_DEADLOCK' })
  }))

test('map, with and a view of one worker pass it on; zone.node ignores it', () =>
  inZone({ workers: 2, tasksPerWorkerMax: 4 }, async (own) => {
    const view = own.with({ exclusive: true })
    const others = Array.from({ length: 20 }, () => own.run(beside, 2))
    const most = [view.run(beside, 2), own.worker(1).execute(beside, [2], { exclusive: true })]
    const [first, second] = await Promise.all(most)
    assert.equal(first, 1)
    assert.equal((second as { value: number }).value, 1)
    await Promise.all(others)
    assert.deepEqual(await own.map([1, 2, 3], (item) => item + 1, { exclusive: true }), [2, 3, 4])
    assert.equal((await zone.node.execute(() => 5, [], { exclusive: true })).value, 5)
    await assert.rejects(own.execute(beside, [0], { exclusive: 1 as never }), { code: 'ZONE_ARGUMENT' })
  }))

test('a zone that closes runs the exclusive calls that it has accepted', async () => {
  const own = makeZone({ workers: 2, tasksPerWorkerMax: 4 })
  const calls = Array.from({ length: 20 }, (_, index) =>
    own.execute(beside, [1], { exclusive: index % 2 === 0 }),
  )
  await own.close()
  const values = await Promise.all(calls)
  assert.deepEqual(
    new Set(values.filter((_, index) => index % 2 === 0).map(({ value }) => value)),
    new Set([1]),
  )
})
