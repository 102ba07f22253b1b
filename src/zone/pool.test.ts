/**
 * Workers that come and go: with the load between two bounds, and after so many tasks or at a limit of their
 * heap.
 *
 * Hooks write to a shared store, which survives every worker. The oracle of the schedules is a count: each
 * call has one result, each worker is set up once, runs as many tasks as it may, and is torn down once unless
 * it has died.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, test } from 'node:test'
import { store } from '../store/index.ts'
import { inZone, makeZone, mark, marks, until } from './api/zones.test.support.ts'
import { type Task, type WorkerEvent, type Zone, type ZoneOptions, ZoneError, zone } from './index.ts'

const log = store.create('pool')
after(() => log.close())

const entries = (zone: string, name: string): string[] =>
  (log.get(`${zone} ${name}`) as string[] | undefined) ?? []

const HOOKS = {
  async setup(this: Task) {
    const { store } = await import('corespun/store')
    const { threadId } = await import('node:worker_threads')
    const add = (all: unknown): string[] => [...((all as string[] | undefined) ?? []), `${threadId}`]
    const note = (name: string): unknown => store.get('pool').update(`${this.zone} ${name}`, add)
    note('setups')
    return { note }
  },
  teardown(state: { note(name: string): void }) {
    state.note('teardowns')
  },
}

/**
 * When a zone has closed every worker that was set up is torn down, once, but for `died`. Returns how many
 * were set up.
 */
function checkHooks({ id }: Zone, died = 0): number {
  const [setups, teardowns] = [entries(id, 'setups'), entries(id, 'teardowns')]
  assert.equal(teardowns.length, setups.length - died)
  assert.equal(new Set(setups).size, setups.length)
  assert.equal(new Set(teardowns).size, teardowns.length)
  assert.ok(teardowns.every((id) => setups.includes(id)))
  return setups.length
}

/** A zone whose workers note their hooks, checked when it has closed. Returns how many were set up. */
async function inNotedZone(options: ZoneOptions, body: (own: Zone) => Promise<void>): Promise<number> {
  let found: Zone | undefined
  await inZone({ ...options, ...HOOKS }, (own) => body((found = own)))
  return checkHooks(found!)
}

/** Run `body` with what has ended, of all zones, in order. */
async function withEnds(body: (ends: readonly WorkerEvent[]) => Promise<void>): Promise<void> {
  const ends: WorkerEvent[] = []
  const listener = (event: unknown): void => void ends.push(event as WorkerEvent)
  subscribe('corespun:worker:ended', listener)
  try {
    await body(ends)
  } finally {
    unsubscribe('corespun:worker:ended', listener)
  }
}

const threadOf = (): number => process.getBuiltinModule('node:worker_threads').threadId

/** Counts a task as begun and waits until the gate is opened. */
function block(gate: Int32Array): number {
  Atomics.add(gate, 1, 1)
  Atomics.wait(gate, 0, 0)
  return process.getBuiltinModule('node:worker_threads').threadId
}

const open = (gate: Int32Array): void => {
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
}

test('a zone grows to its most while tasks wait, and idle workers leave, to its fewest', async () => {
  const setups = await inNotedZone({ workers: { min: 1, max: 3, idleMs: 20 } }, async (own) => {
    assert.equal(own.stats().workers, 1)
    await own.broadcast(mark, ['kept'])
    const gate = new Int32Array(new SharedArrayBuffer(8))
    const blocked = Array.from({ length: 5 }, () => own.run(block, gate))
    await until(() => Atomics.load(gate, 1) === 3)
    const { workers, running, waiting } = own.stats()
    assert.deepEqual([workers, running, waiting], [3, 3, 2], 'not more than its most')
    assert.equal(own.stats().byWorker.length, 3)
    open(gate)
    assert.equal(new Set(await Promise.all(blocked)).size, 3)
    await until(() => own.stats().workers === 1)
    assert.deepEqual([own.stats().done, own.stats().died], [5, 0])
    assert.deepEqual(await own.run(marks), ['kept'])
  })
  assert.equal(setups, 3)
})

test('a worker that comes with the load has run the broadcasts', () =>
  inZone({ workers: { max: 2 } }, async (own) => {
    await own.broadcast(mark, ['early'])
    const gate = new Int32Array(new SharedArrayBuffer(8))
    const first = own.run(block, gate)
    assert.deepEqual(await own.run(marks), ['early'])
    assert.equal(own.stats().workers, 2)
    open(gate)
    await first
  }))

test('with tasks: 1 every task has a worker of its own, set up once, and none dies', async () => {
  const setups = await inNotedZone({ workers: { min: 2, max: 2, tasks: 1 } }, async (own) => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => own.run(threadOf)))
    assert.equal(new Set(ids).size, ids.length)
    const { done, died, failed } = own.stats()
    assert.deepEqual([done, died, failed], [6, 0, 0])
  })
  assert.ok(setups >= 6)
})

test('a worker runs so many tasks, also such as overlap, and another one goes on', async () => {
  const options: ZoneOptions = { workers: { min: 1, max: 1, tasks: 4 }, tasksPerWorkerMax: 3 }
  const setups = await inNotedZone(options, async (own) => {
    const overlapping = async (): Promise<number> => {
      await new Promise((resolve) => setImmediate(resolve))
      return process.getBuiltinModule('node:worker_threads').threadId
    }
    const ids = await Promise.all(Array.from({ length: 12 }, () => own.run(overlapping)))
    const counts = [...new Set(ids)].map((id) => ids.filter((each) => each === id).length)
    assert.deepEqual(counts, [4, 4, 4])
  })
  assert.ok(setups >= 3)
})

test('the next worker is prepared before the last task of a worker begins', async () => {
  await inNotedZone({ workers: { min: 1, max: 1, tasks: 1 } }, async (own) => {
    // The first one, and the one that follows it; nothing has run.
    await until(() => entries(own.id, 'setups').length === 2)
    const ids = [await own.run(threadOf), await own.run(threadOf)]
    assert.deepEqual(ids.map(String), entries(own.id, 'setups').slice(0, 2))
  })
})

test('a worker that has begun its last task runs what that calls and waits for', () =>
  inZone({ workers: { min: 1, max: 1, tasks: 1 } }, async (own) => {
    const call = async (id: string): Promise<number> => {
      const { zone } = await import('corespun/zone')
      return zone.get(id).run(() => 6 * 7)
    }
    assert.equal(await own.run(call, own.id), 42)
    assert.equal(await own.run(call, own.id), 42)
  }))

test('a worker whose heap has grown to the limit is replaced between its tasks', () =>
  withEnds(async (ends) => {
    const setups = await inNotedZone({ workers: { min: 1, max: 1, heapMb: 48 } }, async (own) => {
      const keep = (): number => {
        const kept = ((globalThis as { kept?: object[] }).kept ??= [])
        for (let index = 0; index < 20_000; index++) kept.push({ index, text: `${index}` })
        return process.getBuiltinModule('node:worker_threads').threadId
      }
      const first = await own.run(keep)
      await until(async () => (await own.run(keep)) !== first)
      const { died, failed } = own.stats()
      assert.deepEqual([died, failed], [0, 0])
    })
    assert.equal(ends[0]?.reason, 'it was replaced')
    assert.ok(setups >= 2)
  }))

test('one whose heap is at the limit leaves for the worker that follows its last task', () =>
  withEnds(async (ends) => {
    const setups = await inNotedZone({ workers: { min: 1, max: 1, tasks: 2, heapMb: 1 } }, async (own) => {
      await own.run(threadOf)
      await until(() => ends.length === 1)
      assert.equal(ends[0].reason, 'it was replaced')
    })
    assert.equal(setups, 2)
  }))

test('a worker whose successor cannot be set up stays, and tries again', async () => {
  const gate = store.create('pool gate')
  const setup = async (): Promise<void> => {
    const { store } = await import('corespun/store')
    const gate = store.get('pool gate')
    const setups = gate.update('setups', (count: unknown) => Number(count ?? 0) + 1) as number
    if (setups === 2) throw new Error('not now')
  }
  await inZone({ workers: { min: 1, max: 1, heapMb: 1 }, setup }, async (own) => {
    const first = await own.run(threadOf)
    await until(async () => (await own.run(threadOf)) !== first)
    assert.equal(own.stats().died, 0)
    assert.ok(Number(gate.get('setups')) >= 3)
  })
  gate.close()
})

test('a setup that fails in the workers to come breaks the zone, as without them', async () => {
  const gate = store.create('pool gate')
  const setup = async (): Promise<void> => {
    const { store } = await import('corespun/store')
    const setups = store
      .get('pool gate')
      .update('setups', (count: unknown) => Number(count ?? 0) + 1) as number
    if (setups > 1) throw new Error('no more')
  }
  const own = makeZone({ workers: { min: 1, max: 1, tasks: 1 }, setup })
  assert.equal(typeof (await own.run(threadOf)), 'number')
  await assert.rejects(own.run(threadOf), { code: 'SETUP_FAILED' })
  await own.close()
  gate.close()
})

/** The setup of the second worker does not end; a store named `pool gate` counts them. */
const secondHangs = async (): Promise<void> => {
  const { store } = await import('corespun/store')
  const setups = store.get('pool gate').update('setups', (count: unknown) => Number(count ?? 0) + 1) as number
  if (setups === 2) await new Promise(() => {})
}

test('a setup that takes too long ends the worker to come with that reason, though it has the slot', () =>
  withEnds(async (ends) => {
    const gate = store.create('pool gate')
    await inZone({ workers: { min: 1, max: 1, tasks: 2 }, setup: secondHangs, hookMs: 1000 }, async (own) => {
      const ids = await Promise.all([1, 2, 3].map(() => own.run(threadOf)))
      assert.equal(ids[0], ids[1])
      assert.equal(ends[0].reason, 'it was replaced')
      assert.equal((ends[1].error as ZoneError).code, 'SETUP_TIMEOUT')
      assert.equal(ends[1].reason, (ends[1].error as ZoneError).message)
    })
    gate.close()
  }))

test('a zone closes after the teardown of a worker that was prepared and not needed', async () => {
  const teardown = async (state: { note(name: string): void }): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    state.note('teardowns')
  }
  const own = makeZone({ workers: { min: 1, max: 1, tasks: 1 }, setup: HOOKS.setup, teardown })
  await until(() => entries(own.id, 'setups').length === 2)
  await own.close()
  assert.equal(checkHooks(own), 2)
})

test('a zone that closes waits neither for setups nor for teardowns longer than it may', async () => {
  const gate = store.create('pool gate')
  const own = makeZone({ workers: { min: 1, max: 1, tasks: 1 }, setup: secondHangs })
  await until(() => gate.get('setups') === 2)
  await own.close({ timeoutMs: 20 })
  gate.close()
})

test('a reload replaces the workers, and those that were prepared before it', async () => {
  await inNotedZone({ workers: { min: 1, max: 1, tasks: 1 } }, async (own) => {
    await until(() => entries(own.id, 'setups').length === 2)
    const before = entries(own.id, 'setups')
    await own.reload()
    assert.ok(!before.includes(String(await own.run(threadOf))))
    assert.ok(!before.includes(String(await own.run(threadOf))))
  })
})

test('the next worker of one that is released is released too', () =>
  withEnds(async (ends) => {
    const options: ZoneOptions = { workers: { max: 2, idleMs: 1, tasks: 1 } }
    await inNotedZone(options, async (own) => {
      const gate = new Int32Array(new SharedArrayBuffer(8))
      const blocked = [own.run(block, gate), own.run(block, gate)]
      await until(() => Atomics.load(gate, 1) === 2)
      open(gate)
      await Promise.all(blocked)
      await until(() => ends.some(({ reason }) => reason === 'it exited with code 0'))
      assert.equal(own.stats().workers, 1)
      assert.equal(typeof (await own.run(threadOf)), 'number')
    })
  }))

test('processes are replaced as threads are', (context) => {
  if (process.platform === 'win32') return context.skip('workers cannot be processes on Windows')
  const options: ZoneOptions = { workers: { min: 1, max: 1, tasks: 2 }, isolation: 'process' }
  return inZone(options, async (own) => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => own.run(() => process.pid)))
    const counts = [...new Set(ids)].map((id) => ids.filter((each) => each === id).length)
    assert.deepEqual(counts, [2, 2])
    assert.equal(own.stats().died, 0)
  })
})

test('getOrCreate compares the bounds that it receives', async () => {
  const workers = { min: 1, max: 2, tasks: 5 }
  const own = zone.create('pool same', { workers })
  for (const same of [{ workers }, { workers: 1 }, { workers: { max: 2 } }, { workers: { tasks: 5 } }, {}])
    assert.equal(zone.getOrCreate('pool same', same), own)
  const others = [{ min: 2, max: 2 }, { max: 3 }, { tasks: 6 }, { heapMb: 9 }, { idleMs: 9 }]
  for (const other of others)
    assert.throws(() => zone.getOrCreate('pool same', { workers: other }), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => own.worker(0), /needs a zone whose number of workers does not change; it has 1 to 2/)
  await own.close()
})

/** mulberry32. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

interface Ran {
  readonly value: number
  readonly thread: number
}

const works = (value: number): Ran => ({
  value,
  thread: process.getBuiltinModule('node:worker_threads').threadId,
})
const fails = (value: number): never => {
  throw new RangeError(String(value))
}
const exits = (): void => process.exit(7)

/** What happens in a schedule: each call with the end that it must have. */
async function schedule(seed: number): Promise<void> {
  const random = numbers(seed)
  const min = 1 + random(2)
  const tasks = [undefined, 1, 2, 5][seed % 4]
  const workers = { min, max: min + random(2), idleMs: 1 + random(10), ...(tasks && { tasks }) }
  const own = makeZone({ workers, ...HOOKS })
  const ran: Ran[] = []
  const kept: number[] = []
  let died = 0
  const checks: Promise<void>[] = []
  const call = async (value: number): Promise<void> => {
    const kind = random(12)
    if (kind === 0) {
      died++
      await assert.rejects(own.run(exits), { code: 'WORKER_DIED' })
    } else if (kind < 3) await assert.rejects(own.run(fails, value), new RangeError(String(value)))
    else ran.push(await own.run(works, value))
  }
  for (let step = 0; step < 14; step++) {
    checks.push(call(step))
    if (random(8) === 0) {
      kept.push(step)
      checks.push(own.broadcast(mark, [step]))
    }
    if (random(10) === 0) checks.push(own.reload())
    if (random(4) === 0) await checks[random(checks.length)]
  }
  if (random(2) === 0) {
    await Promise.all(checks)
    assert.deepEqual(await own.run(marks), kept.length === 0 ? undefined : kept)
  }
  // What was accepted ends before the zone does.
  const closed = own.close()
  await Promise.allSettled(checks).then((ends) => {
    for (const end of ends) if (end.status === 'rejected') checkClosed(end.reason)
  })
  await closed
  const { done, waiting, running } = own.stats()
  assert.deepEqual([waiting, running], [0, 0])
  assert.ok(done >= ran.length)
  if (tasks !== undefined)
    for (const { thread } of ran)
      assert.ok(ran.filter((each) => each.thread === thread).length <= tasks, `seed ${seed}`)
  checkHooks(own, died)
}

/** A reload and a broadcast that have not ended are refused by a zone that closes. */
function checkClosed(error: unknown): void {
  assert.ok(error instanceof ZoneError && error.code === 'ZONE_CLOSED', String(error))
}

for (let seed = 1; seed <= 4; seed++)
  test(`each task ends once, each worker is set up and torn down once: schedule ${seed}`, () =>
    schedule(seed))

function assertTypes(own: Zone): void {
  zone.create('types', { workers: 2 })
  zone.create('types', { workers: { min: 1, max: 2, idleMs: 5, tasks: 1, heapMb: 100 } })
  // @ts-expect-error -- a number
  zone.create('types', { workers: { tasks: '1' } })
  // @ts-expect-error -- within workers
  zone.create('types', { workersMax: 2 })
  own.settings.workersMax satisfies number
  own.settings.workerTasksMax satisfies number | null
}
void assertTypes
