/**
 * Tasks that wait for calls to zones: whatever leads back to a worker can begin there, so calls never wait
 * for each other for ever. The oracle of the random programs is the same program run in one thread.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { leftOut, share } from '../base/part.test.support.ts'
import { store } from '../store/index.ts'
import type { ExecutorName } from './ground/settings.ts'
import { type Zone, zone } from './index.ts'
import { inZones, until } from './api/zones.test.support.ts'

let rows = 0
/** A row of a table: each third is of a part. */
const row = (name: string, body: () => Promise<void>): void =>
  void test(name, { skip: leftOut(rows++) }, body)

const EXECUTORS: readonly ExecutorName[] = ['fixed', 'work-stealing', 'blocking', 'cached']
const PATIENCE_MS = 60_000

/** What must end: hanging is the failure, as a sentence. */
async function ends<Value>(what: string, promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} still waits after ${PATIENCE_MS} ms`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Call the first of the zones, whose task calls the next, and so on; how many there were. */
async function chain(...zones: Zone[]): Promise<number> {
  const [first, ...rest] = zones
  return first === undefined ? 0 : 1 + (await first.run(chain, ...rest))
}

for (const executor of EXECUTORS) {
  const workers = {
    executor,
    workers: executor === 'fixed' || executor === 'work-stealing' ? 1 : { min: 1, max: 1 },
  }
  row(`${executor}: as many tasks as workers call another zone, whose tasks call back`, () =>
    inZones(
      [{ ...workers, ...(executor === 'fixed' ? { workers: 2 } : {}) }, { workers: 1 }],
      async (a, b) => {
        const chains = Array.from({ length: 8 }, () => chain(a, b, a, b))
        assert.deepEqual(
          await ends('a chain', Promise.all(chains)),
          chains.map(() => 4),
        )
      },
    ),
  )

  row(`${executor}: a circle of three zones with one worker each ends`, () =>
    inZones([workers, workers, workers], async (a, b, c) => {
      const circle = [a, b, c, a, b, c, a] as Zone[]
      const circles = Array.from({ length: 20 }, () => chain(...circle))
      assert.deepEqual(
        await ends('a circle', Promise.all(circles)),
        circles.map(() => circle.length),
      )
    }),
  )

  for (const waitingPerWorkerMax of [0, 1024]) {
    row(`${executor}: 2,000 levels over two zones, waitingPerWorkerMax ${waitingPerWorkerMax}`, () =>
      inZones(
        [
          { ...workers, waitingPerWorkerMax },
          { ...workers, waitingPerWorkerMax },
        ],
        async (a, b) => {
          async function down(here: Zone, there: Zone, left: number): Promise<number> {
            return left === 0 ? 0 : 1 + (await there.run(down, there, here, left - 1))
          }
          assert.equal(await ends('the recursion', a.run(down, a, b, 2000)), 2000)
        },
      ),
    )
  }

  row(`${executor}: a task that waits for another zone does not occupy its worker`, () =>
    inZones([workers, { workers: 1 }], async (a, b) => {
      const flags = store.create(`flags-${executor}`)
      try {
        const waits = a.run(
          (other, flags) =>
            other.run(async (flags) => {
              while (flags.get('go') !== true) await new Promise((resolve) => setTimeout(resolve, 1))
              return 'went'
            }, flags),
          b,
          flags,
        )
        await ends(
          'the task beside it',
          a.run((flags) => {
            flags.set('go', true)
          }, flags),
        )
        assert.equal(await ends('the task that waits', waits), 'went')
      } finally {
        flags.close()
      }
    }),
  )
}

test('a call that is nested too deep is refused by name, and both zones go on', () =>
  inZones(
    [
      { workers: 1, callDepthMax: 10 },
      { workers: 1, callDepthMax: 10 },
    ],
    async (a, b) => {
      async function endless(here: Zone, there: Zone, depth: number): Promise<number> {
        const { ZoneError } = await import('./index.js')
        try {
          return await there.run(endless, there, here, depth + 1)
        } catch (error) {
          if (error instanceof ZoneError && error.code === 'ZONE_CALL_TOO_DEEP') return depth
          throw error
        }
      }
      assert.equal(await ends('the recursion', a.run(endless, a, b, 0)), 10)
      const refused = a.run(async function down(here: Zone): Promise<void> {
        await here.run(down, here)
      }, a)
      await assert.rejects(ends('the other recursion', refused), {
        code: 'ZONE_CALL_TOO_DEEP',
        message: /nested deeper than 10 tasks, .*: end the recursion$/,
      })
      assert.equal(await chain(a, b), 2)
    },
  ))

test('tasks that wait are bounded by waitingPerWorkerMax; the others stay in the queue', () =>
  inZones([{ workers: 1, waitingPerWorkerMax: 4 }, { workers: 1 }], async (a, b) => {
    const [first, second] = [a, b]
    async function begun(inner: Zone): Promise<number> {
      const shared = globalThis as { running?: number; most?: number }
      shared.running = (shared.running ?? 0) + 1
      shared.most = Math.max(shared.most ?? 0, shared.running)
      await inner.run(() => new Promise((resolve) => setTimeout(resolve, 1)))
      shared.running--
      return shared.most
    }
    const most = await ends(
      'the tasks',
      Promise.all(Array.from({ length: 200 }, () => first.run(begun, second))),
    )
    assert.ok(Math.max(...most) > 1, 'some waited beside each other')
    assert.ok(Math.max(...most) <= 5, `${Math.max(...most)} tasks had begun`)
  }))

test('broadcasts and ready of another zone lead back to a worker that waits for them', () =>
  inZones([{ workers: 1 }, { workers: 1 }], async (a, b) => {
    const [first, second] = [a, b]
    const all = Array.from({ length: 10 }, () =>
      first.run(
        async (first, second) => {
          await second.ready()
          await second.broadcast(() => {})
          return second.run(async (first) => {
            await first.ready()
            await first.broadcast(() => {})
            return first.run(() => 'back')
          }, first)
        },
        first,
        second,
      ),
    )
    assert.deepEqual(
      await ends('the broadcasts', Promise.all(all)),
      all.map(() => 'back'),
    )
  }))

test('a task that waits for another zone is given up like any other, and what it waited for ends', () =>
  inZones([{ workers: 1, graceMs: 30_000 }, { workers: 1 }], async (a, b) => {
    const [first, second] = [a, b]
    const controller = new AbortController()
    const waits = first.execute(
      async function (second) {
        const { signal } = this
        await second.execute(() => new Promise(() => {}), [], { signal })
      },
      [second],
      { signal: controller.signal },
    )
    await until(() => second.stats().running === 1)
    controller.abort(new Error('enough'))
    await assert.rejects(waits, { message: 'enough' })
    assert.equal(await ends('the task behind it', first.run(chain, first)), 1)
  }))

test('a worker that dies while tasks of another zone wait for it fails those and frees their slots', () =>
  inZones([{ workers: 1 }, { workers: 1 }], async (a, b) => {
    const [first, second] = [a, b]
    for (let round = 0; round < 3; round++) {
      const dies = first.run((second) => second.run(() => process.exit(3)), second)
      await assert.rejects(ends('the call', dies), { code: 'WORKER_DIED' })
    }
    assert.equal(await ends('the chain', chain(first, second, first, second)), 4)
  }))

interface Tree {
  readonly at: number
  readonly together: boolean
  readonly below: readonly Tree[]
}

/** Run a tree of calls, each node in its zone. `zones` is empty in the oracle, which calls itself. */
async function walk(tree: Tree, zones: readonly Zone[]): Promise<string> {
  const go = (child: Tree): Promise<string> => {
    const target = zones[child.at]
    return target === undefined ? walk(child, zones) : target.run(walk, child, zones)
  }
  const parts: string[] = []
  if (tree.together) parts.push(...(await Promise.all(tree.below.map(go))))
  else for (const child of tree.below) parts.push(await go(child))
  return `${tree.at}(${parts.join()})`
}

test('random trees of calls over zones of all executors return what they return in one thread', () => {
  const one = EXECUTORS.map((executor) => ({ executor, workers: 1 }))
  const tree: fc.Memo<Tree> = fc.memo((levels) =>
    fc.record({
      at: fc.nat(EXECUTORS.length - 1),
      together: fc.boolean(),
      below: levels <= 1 ? fc.constant([]) : fc.array(tree(levels - 1), { maxLength: 3 }),
    }),
  )
  return inZones([...one, { workers: 1, waitingPerWorkerMax: 0 }], (...zones) =>
    fc.assert(
      fc.asyncProperty(
        fc.array(tree(6), { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        async (trees, tight) => {
          const used = tight ? zones.map((each, index) => (index === 0 ? zones[4] : each)) : zones
          const results = Promise.all(trees.map((each) => used[each.at].run(walk, each, used)))
          assert.deepEqual(
            await ends('a tree', results),
            await Promise.all(trees.map((each) => walk(each, []))),
          )
        },
      ),
      { numRuns: share(60) },
    ),
  )
})

test('zone.cpu and zone.blocking call each other from as many tasks as there are workers', async () => {
  const calls = zone.cpu.settings.workers * 2
  const chains = Array.from({ length: calls }, () => chain(zone.cpu, zone.blocking, zone.cpu))
  assert.deepEqual(
    await ends('a chain', Promise.all(chains)),
    chains.map(() => 3),
  )
  await Promise.all([zone.cpu.close(), zone.blocking.close()])
})

/** Calls back into `a`, by `how`, from a task of `b`. */
async function back(a: Zone, how: 'run' | 'broadcast' | 'broadcastSync' | 'map'): Promise<unknown> {
  if (how === 'broadcast') return a.broadcast(() => {})
  if (how === 'broadcastSync') return a.broadcastSync(() => {})
  if (how === 'map') return a.map([1], (item: number) => item)
  return a.run(() => 1)
}

for (const workers of [1, 2]) {
  for (const how of ['run', 'broadcast', 'broadcastSync', 'map'] as const) {
    row(`a task that a broadcast waits for cannot ${how} back into its zone of ${workers}`, () =>
      inZones([{ workers }, { workers }, { workers }], async (a, b, c) => {
        const through = async (a: Zone, b: Zone, c: Zone, how: never, back: never): Promise<void> => {
          const last = (a: Zone, how: never, back: (a: Zone, how: never) => unknown): unknown => back(a, how)
          const next = (a: Zone, c: Zone, how: never, back: never, last: never): Promise<unknown> =>
            c.run(last, a, how, back)
          await b.run(next, a, c, how, back, last as never)
        }
        const sent = [a, b, c, how as never, back as never] as const
        await assert.rejects(ends('the broadcast', a.broadcast(through, [...sent])), {
          code: 'ZONE_DEADLOCK',
          message: new RegExp(`^zone ${a.id}: a call that its own broadcast waits for would wait`),
        })
        // The chain ends with the broadcast: the same calls of a task are accepted.
        if (how !== 'broadcastSync') await ends('a task that does the same', a.run(through, ...sent))
        await ends('the zones', Promise.all([a, b, c].map((each) => each.run(() => 1))))
      }),
    )
  }
}

/** Waits until `count` functions have come here, then calls the zone by `how`. */
async function together(
  zone: Zone,
  how: 'run' | 'broadcast' | 'broadcastSync' | 'map',
  here: Int32Array,
  count: number,
): Promise<void> {
  Atomics.add(here, 0, 1)
  while (Atomics.load(here, 0) < count) await new Promise(setImmediate)
  if (how === 'broadcast') await zone.broadcast(() => {})
  else if (how === 'broadcastSync') zone.broadcastSync(() => {})
  else if (how === 'map') await zone.map([1], (item: number) => item)
  else await zone.run(() => 1)
}

for (const [zones, workers] of [
  [2, 1],
  [2, 2],
  [3, 1],
  [5, 1],
] as const) {
  for (const how of ['run', 'broadcast', 'broadcastSync', 'map'] as const) {
    row(`broadcasts of ${zones} zones of ${workers} that ${how} the next one do not wait for ever`, () =>
      inZones(
        Array.from({ length: zones }, () => ({ workers })),
        async (...ring) => {
          const here = new Int32Array(new SharedArrayBuffer(4))
          const next = (index: number): Zone => ring[(index + 1) % zones]
          const made = ring.map((each, index) =>
            each.broadcast(together, [next(index), how, here, zones * workers]),
          )
          const ended = await ends('the ring', Promise.allSettled(made))
          const why = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
          assert.ok(why.length > 0 && (workers > 1 || why.length === 1), `${why.length} refused`)
          for (const reason of why) assert.equal(reason.code, 'ZONE_DEADLOCK', String(reason))
          // One after another each may call the next.
          for (const [index, each] of ring.entries())
            await ends('one alone', each.broadcast(together, [next(index), how, here, 0]))
        },
      ),
    )
  }
}

test('a broadcast whose call of another zone has timed out no longer waits for that zone', () =>
  inZones([{ workers: 1 }, { workers: 1 }], async (a, b) => {
    const steps = new Int32Array(new SharedArrayBuffer(12))
    const held = b.broadcast(
      async (a: Zone, steps: Int32Array) => {
        const step = async (index: number): Promise<void> => {
          while (Atomics.load(steps, index) === 0) await new Promise(setImmediate)
        }
        Atomics.store(steps, 0, 1)
        await step(1)
        const call = a.run(() => 1)
        const settled = Promise.allSettled([call])
        Atomics.store(steps, 2, 1)
        await settled
        await call
      },
      [a, steps],
    )
    const holds = a.broadcast(
      async (b: Zone, steps: Int32Array) => {
        const step = async (index: number): Promise<void> => {
          while (Atomics.load(steps, index) === 0) await new Promise(setImmediate)
        }
        await step(0)
        const codes: string[] = []
        const note = (error: { code: string }): unknown => codes.push(error.code)
        await b.execute(() => 1, [], { timeoutMs: 10 }).catch(note)
        await b.broadcast(() => {}, [], { timeoutMs: 10 }).catch(note)
        try {
          b.broadcastSync(() => {}, [], { timeoutMs: 10 })
        } catch (error) {
          note(error as { code: string })
        }
        Atomics.store(steps, 1, 1)
        await step(2)
        if (codes.join() !== 'TASK_TIMEOUT,BROADCAST_TIMEOUT,BROADCAST_TIMEOUT') throw new Error(codes.join())
      },
      [b, steps],
    )
    await ends('both', Promise.all([held, holds]))
  }))
