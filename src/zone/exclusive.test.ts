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
  { executor: 'blocking', workers: { min: 1, max: 2 }, tasksPerWorkerMax: 4 },
  ...(process.platform === 'win32'
    ? []
    : [{ isolation: 'process', workers: 2, tasksPerWorkerMax: 4 } as const]),
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

for (const isolation of ['thread', 'process'] as const)
  test(
    `streams, broadcasts and ends of exclusive calls: ${isolation}`,
    {
      skip: isolation === 'process' && process.platform === 'win32',
    },
    () =>
      inZone({ workers: 1, isolation, tasksPerWorkerMax: 4, graceMs: 1 }, async (own) => {
        async function* plusOne(items: AsyncIterable<number>): AsyncGenerator<number> {
          for await (const item of items) yield item + 1
        }
        async function* endlessly(): AsyncGenerator<number> {
          yield 1
          for (;;) Atomics.load(new Int32Array(1), 0)
        }
        const others = (): Promise<number>[] => Array.from({ length: 6 }, () => own.run(beside, 1))
        const options = { exclusive: true }
        for (const stream of [
          own.stream(plusOne, [1, 2, 3], options),
          own.with(options).stream(plusOne, [1, 2, 3]),
        ]) {
          const beside = others()
          const items = []
          for await (const item of stream) items.push(item)
          assert.deepEqual(items, [2, 3, 4])
          await Promise.all(beside)
        }
        const sum = async (items: AsyncIterable<number>): Promise<number> => {
          let sum = 0
          for await (const item of items) sum += item
          return sum
        }
        async function* ones(): AsyncGenerator<number> {
          yield* [1, 1, 1]
        }
        assert.equal((await own.execute(sum as never, [ones()], options)).value, 3)
        const runs = own.execute(beside, [3], options)
        await own.with(options).broadcast(() => {
          const worker = globalThis as { running?: Set<unknown>; seen?: number }
          worker.seen = worker.running?.size ?? 0
        })
        assert.equal((await runs).value, 1)
        own.broadcastSync(() => void ((globalThis as { sync?: boolean }).sync = true))
        const found = await own.run(() => {
          const { seen, sync } = globalThis as { seen?: number; sync?: boolean }
          return [seen, sync]
        })
        assert.deepEqual(found, [0, true])
        for (const begins of ['a call', 'a stream']) {
          const controller = new AbortController()
          const limits = { exclusive: true, signal: controller.signal }
          const read = async (): Promise<void> => {
            for await (const item of own.stream(endlessly, [], limits))
              if (item === 1) controller.abort(new Error('enough'))
          }
          const loops = (): never => {
            for (;;) Atomics.load(new Int32Array(1), 0)
          }
          const ends = begins === 'a stream' ? read() : own.execute(loops, [], limits)
          const rejects = assert.rejects(ends, { message: 'enough' })
          const after = others()
          if (begins === 'a call') {
            await until(() => own.stats().running === 1)
            controller.abort(new Error('enough'))
          }
          await Promise.all([rejects, ...after])
        }
        assert.equal(own.stats().failed, 0)
      }),
  )

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
