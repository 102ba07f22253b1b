/**
 * Streams that lead back to a zone: a task whose stream waits does not keep its worker from what that needs.
 *
 * Hanging is the failure: what must end has a limit. The oracle of the random pipelines is the same pipeline
 * in this thread.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { collected } from '../../base/collected.test.support.ts'
import { leftOut, share } from '../../base/part.test.support.ts'
import { settled } from '../../base/wait.test.support.ts'
import { native } from '../../native/index.ts'
import { type TestOptions, inZones as withZones, until } from '../api/zones.test.support.ts'
import { Task } from '../ground/task.ts'
import { type AnyZone, type Zone, type ZoneOptions, zone } from '../index.ts'
import { Receiver } from './receiver.ts'
import { waitsOf } from './waits.ts'

/** So small that every stage waits. */
const WINDOW = { workers: 1, aheadMax: 4, graceMs: 60_000 } satisfies TestOptions

const KINDS: readonly ZoneOptions[] = [
  {},
  { waitingPerWorkerMax: 0 },
  ...(process.platform === 'win32' ? [] : ([{ isolation: 'process' }] satisfies ZoneOptions[])),
]

interface Stage {
  /** Which of the zones runs it. */
  readonly at: number
  /** Items after which it fails or ends; -1 for never. */
  readonly failsAt: number
  readonly endsAt: number
}

interface Pipeline {
  readonly count: number
  readonly leavesAt: number
  readonly stages: readonly Stage[]
}

/** Sums up what it receives, so that a lost or doubled item shows in all after it. */
async function* work(items: AsyncIterable<number>, { at, failsAt, endsAt }: Stage): AsyncGenerator<number> {
  let [index, sum] = [0, 0]
  for await (const item of items) {
    if (index === failsAt) throw new RangeError(`stage ${at} at ${index}`)
    if (index++ === endsAt) return
    sum += item
    yield sum
  }
}

async function* numbers(count: number): AsyncGenerator<number> {
  for (let item = 0; item < count; item++) yield item
}

/** What arrives, and the error behind it. */
async function outcome(zones: readonly AnyZone[], { count, leavesAt, stages }: Pipeline): Promise<unknown> {
  const taken: number[] = []
  try {
    let items: AsyncIterable<number> = await zones[stages[0].at].run(numbers, count)
    for (const stage of stages) items = await zones[stage.at].run(work, items, stage)
    if (leavesAt === 0) await items[Symbol.asyncIterator]().return?.()
    else for await (const item of items) if (taken.push(item) === leavesAt) break
    return taken
  } catch (error) {
    return [taken, String(error)]
  }
}

async function inZones(
  settings: readonly ZoneOptions[],
  body: (...zones: Zone[]) => Promise<void>,
): Promise<void> {
  await withZones(
    settings.map((each) => ({ ...WINDOW, ...each })),
    async (...zones) => {
      await settled(body(...zones), 'the end of all streams')
      for (const each of zones) await isSound(each)
    },
  )
}

/** Nothing of the streams is left: each worker runs one task at a time again. */
async function isSound(of: Zone): Promise<void> {
  await until(() => of.stats().running === 0, 'the end of the tasks')
  const stop = new AbortController()
  const waits = async function (this: { readonly signal: AbortSignal }): Promise<void> {
    await new Promise((resolve) => this.signal.addEventListener('abort', resolve))
  }
  const { workers } = of.settings
  const all = Array.from({ length: workers + 2 }, () => of.execute(waits, [], { signal: stop.signal }))
  const ended = Promise.allSettled(all)
  await until(() => of.stats().running === workers)
  await turns()
  assert.deepEqual([of.stats().running, of.stats().waiting], [workers, 2])
  stop.abort()
  await ended
  await until(() => of.stats().running === 0, 'the end of the tasks that wait')
}

async function turns(): Promise<void> {
  for (let left = 20; left > 0; left--) await new Promise((resolve) => setImmediate(resolve))
}

let rows = 0
/** A test of one of the kinds: a part has each of the tests, in one kind of three. */
const testOf = (kind: ZoneOptions, name: string, body: () => Promise<void>): void =>
  void test(`${JSON.stringify(kind)}: ${name}`, { skip: leftOut(rows++ + KINDS.indexOf(kind)) }, body)

const plain = (at: number): Stage => ({ at, failsAt: -1, endsAt: -1 })

for (const kind of KINDS) {
  const inThree = (body: (...zones: Zone[]) => Promise<void>): Promise<void> =>
    inZones([kind, kind, kind], body)
  const check = async (zones: readonly Zone[], pipeline: Pipeline): Promise<void> => {
    const here = zones.map(() => zone.node)
    assert.deepEqual(await outcome(zones, pipeline), await outcome(here, pipeline))
  }

  testOf(kind, 'streams lead back to a zone of one worker, twice at once', () =>
    inThree(async (...zones) => {
      for (const ats of [[0], [1, 0], [0, 0, 0], [1, 2, 0, 1, 2, 0]]) {
        const pipeline = { count: 100, leavesAt: -1, stages: ats.map(plain) }
        await Promise.all([check(zones, pipeline), check(zones, pipeline)])
      }
    }),
  )

  testOf(kind, 'an error of each stage, and an early end of each, are in their position', () =>
    inThree(async (...zones) => {
      for (let index = 0; index < 3; index++) {
        for (const odd of [{ failsAt: 20 }, { endsAt: 20 }, { failsAt: 0 }]) {
          const stages = [1, 0, 0].map((at, stage) => ({ ...plain(at), ...(stage === index ? odd : {}) }))
          await check(zones, { count: 100, leavesAt: -1, stages })
        }
        await check(zones, { count: 100, leavesAt: index * 10, stages: [1, 0, 0].map(plain) })
      }
    }),
  )

  testOf(kind, 'random pipelines at once return what they return in one thread', () =>
    inThree(async (...zones) => {
      const never = fc.constant(-1)
      const at = fc.oneof({ weight: 3, arbitrary: never }, { weight: 1, arbitrary: fc.nat(60) })
      const stage = fc.record({ at: fc.nat(2), failsAt: at, endsAt: at })
      const stages = fc.array(stage, { minLength: 1, maxLength: 6 })
      const pipelines = fc.array(fc.record({ count: fc.nat(60), leavesAt: at, stages }), {
        minLength: 1,
        maxLength: 6,
      })
      await fc.assert(
        fc.asyncProperty(pipelines, async (all) => {
          await Promise.all(all.map((each) => check(zones, each)))
        }),
        { numRuns: share(kind.isolation === undefined ? 25 : 10) },
      )
    }),
  )

  testOf(kind, 'a worker that dies in the middle ends all stages, and its replacement is sound', () =>
    inThree(async (...zones) => {
      const [a, b] = zones
      const dies = async function* (items: AsyncIterable<number>): AsyncGenerator<number> {
        for await (const item of items) {
          if (item > 30) process.kill(process.pid, 'SIGKILL')
          yield item
        }
      }
      const exits = async function* (items: AsyncIterable<number>): AsyncGenerator<number> {
        for await (const item of items) {
          if (item > 30) process.exit(3)
          yield item
        }
      }
      const last = kind.isolation === 'process' ? dies : exits
      for (const middle of [a, b]) {
        const rows = await middle.run(work, await a.run(numbers, 1000), plain(0))
        await assert.rejects(collected(await a.run(last, rows)), { code: 'WORKER_DIED' })
        await check(zones, { count: 50, leavesAt: -1, stages: [plain(1), plain(0)] })
      }
    }),
  )

  testOf(kind, 'a stream whose source is a stream of the same zone', () =>
    inThree(async (a, b) => {
      for (const middle of [a, b]) {
        const inner = a.stream(same, middle.stream(same, a.stream(same, numbers(100))))
        assert.deepEqual(await collected(inner), await collected(numbers(100)))
        const sum = await a.run(total, middle.stream(same, a.stream(same, numbers(100))))
        assert.equal(sum, 4950)
      }
    }),
  )

  testOf(kind, 'a broadcast and a reload between the stages', () =>
    inThree(async (a, b) => {
      const rows = await a.run(numbers, 100)
      await a.broadcast(() => {})
      const doubled = await b.run(same, rows)
      const reloaded = await replacing(a)
      assert.equal(await a.run(total, doubled), 4950)
      await reloaded()
    }),
  )
}

/** Reload, and wait until the old worker takes no more tasks. Returns a function that waits for the end. */
async function replacing(of: Zone): Promise<() => Promise<unknown>> {
  const reloaded = of.reload()
  const pings: Promise<void>[] = []
  await until(async () => {
    let isDone = false
    pings.push(of.run(() => {}).then(() => void (isDone = true)))
    await new Promise((resolve) => setTimeout(resolve, 50))
    return !isDone
  }, 'a worker that is replaced')
  return () => Promise.all([reloaded, ...pings])
}

async function* same(items: AsyncIterable<number>): AsyncGenerator<number> {
  for await (const item of items) yield item
}

async function total(items: AsyncIterable<number>): Promise<number> {
  let sum = 0
  for await (const item of items) sum += item
  return sum
}

for (const kind of KINDS.filter(({ waitingPerWorkerMax }) => waitingPerWorkerMax !== 0)) {
  testOf(kind, 'readers and sources of a stream call its zone for each item', () =>
    inZones([kind], async (a) => {
      let sum = 0
      for await (const item of await a.run(numbers, 50)) sum += await a.run((n: number) => n * 2, item)
      assert.equal(sum, 2450)
      async function* squares(): AsyncGenerator<number> {
        for (let n = 0; n < 20; n++) yield await a.run((n: number) => n * n, n)
      }
      assert.equal(await a.run(total, squares()), 2470)
      const values = await collected(a.stream(same, squares()))
      assert.equal(values.at(-1), 361)
    }),
  )

  testOf(kind, 'streams that wait beside each other are bounded by waitingPerWorkerMax', () =>
    inZones([{ ...kind, waitingPerWorkerMax: 3 }], async (a) => {
      const all = Array.from({ length: 8 }, () => a.run(numbers, 50))
      await until(() => a.stats().running === 4, 'as many as may wait, and one')
      await turns()
      assert.deepEqual([a.stats().running, a.stats().waiting], [4, 4])
      for (const each of all) assert.equal((await collected(await each)).length, 50)
    }),
  )
}

/** Orders that depths do not show, each on a worker of which only deeper tasks could begin. */
const ORDERS: Readonly<Record<string, (a: Zone, b: Zone, replaced: () => Promise<void>) => Promise<number>>> =
  {
    'a source begins before the call that reads it': async (a, _b, replaced) => {
      // The module of streams is there, so that its source is the first that waits.
      assert.deepEqual(await collected(a.stream(same, [1])), [1])
      const busy = a.run(() => new Promise((resolve) => setTimeout(resolve, 300)))
      await until(() => a.stats().running === 1)
      await replaced()
      const sum = a.run(total, a.stream(same, numbers(100)))
      await busy
      return sum
    },
    'a stream comes back through another zone': async (a, b, replaced) => {
      const rows = await b.run(same, a.stream(same, numbers(100)))
      await until(() => a.stats().running === 1)
      await replaced()
      return a.run(total, rows)
    },
    'the loop of a reader calls the zone': async (a, _b, replaced) => {
      let sum = 0
      const rows = await a.run(numbers, 100)
      await replaced()
      for await (const item of rows) sum += sum === 0 ? await a.run((n: number) => n, item + 1) : item
      return sum - 1
    },
  }

for (const kind of KINDS) {
  for (const [order, sumOf] of Object.entries(ORDERS)) {
    testOf(kind, order, () =>
      inZones([kind, {}], async (a, b) => {
        let reloaded: (() => Promise<unknown>) | undefined
        const replaced = async (): Promise<void> => {
          if (kind.waitingPerWorkerMax !== 0) reloaded = await replacing(a)
        }
        assert.equal(await sumOf(a, b, replaced), 4950)
        await reloaded?.()
      }),
    )
  }
}

test('a stream that code of no task begins', () =>
  inZones([{ waitingPerWorkerMax: 0 }, {}], async (a, b) => {
    const begin = (of: Zone, work: typeof same, source: typeof numbers): void => {
      const read = async (): Promise<number> => {
        let sum = 0
        for await (const item of of.stream(work, of.stream(work, source(100)))) sum += item
        return sum
      }
      setTimeout(() => {
        Object.assign(globalThis, { sum: read() })
      }, 1)
    }
    await b.broadcast(begin, [a, same, numbers])
    const sumOf = (): Promise<number> | undefined => (globalThis as { sum?: Promise<number> }).sum
    await until(async () => (await b.run(sumOf)) !== undefined)
    assert.equal(await b.run(sumOf), 4950)
  }))

test('a worker that the order of a call names begins it while its streams wait', () =>
  inZones([{ workers: 2 }], async (a) => {
    const both = [0, 1].map((number) => a.worker(number).run(numbers, 100))
    const [first, second] = await Promise.all(both)
    const urgent = a.worker(0).with({ priority: 'high', tenant: 'gold' })
    assert.equal(await urgent.run(total, second), 4950)
    assert.equal(await a.with({ affinity: 'one key' }).run(total, first), 4950)
  }))

test('a stream of which several items are requested moves with each of them', async (t) => {
  const stalled = t.mock.method(native, 'streamsStalled', () => {})
  const waits = waitsOf(new Task('here', 'here/0', 0))
  const receiver = new Receiver({ aheadMax: 4, aheadBytesMax: 64 }, { freed() {}, left() {} }, waits)
  const requested = [receiver.next(), receiver.next()]
  let looks = 0
  const looking = setInterval(() => looks++, 100)
  while (looks < 4) {
    requested.push(receiver.next())
    receiver.push([looks], 1)
    await requested.shift()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(stalled.mock.callCount(), 0)
  await until(() => stalled.mock.callCount() > 0, 'a look at a stream that has not moved')
  clearInterval(looking)
  waits.over()
  receiver.end()
  await Promise.all(requested)
})

test('a stream that an error left behind has failed no longer counts as one that waits', () =>
  inZones([{}], async (a) => {
    const kept = await a.run(numbers, 100)
    const failed = await a.run(async function* () {
      const save = async (): Promise<void> => {
        await new Promise((resolve) => setImmediate(resolve))
        throw new RangeError('left behind')
      }
      void save()
      for (let item = 0; ; item++) yield item
    })
    await assert.rejects(collected(failed), { message: 'left behind' })
    assert.equal(await a.run(total, kept), 4950)
  }))

test('a deadline and a signal end a stage that waits, and those beside it go on', () =>
  inZones([{}], async (a) => {
    const stop = new AbortController()
    const kept = await a.run(numbers, 100)
    const left = await a.with({ signal: stop.signal }).run(numbers, 100)
    const late = async (): Promise<unknown> =>
      collected(await a.with({ timeoutMs: 100 }).run(numbers, Infinity))
    await assert.rejects(late, { code: 'TASK_TIMEOUT' })
    stop.abort(new RangeError('enough'))
    await assert.rejects(collected(left), { message: 'enough' })
    assert.equal(await a.run(total, kept), 4950)
  }))

test('a task reads two streams of its own zone', () =>
  inZones([{ waitingPerWorkerMax: 0 }], async (a) => {
    const both = async (one: AsyncIterable<number>, two: AsyncIterable<number>): Promise<number> => {
      let sum = 0
      for await (const item of one) sum += item
      for await (const item of two) sum += item
      return sum
    }
    assert.equal(await a.run(both, a.stream(same, numbers(100)), a.stream(same, numbers(100))), 9900)
  }))

test('who reads a stream that has not begun is deeper than what that one reads', () =>
  inZones([{ waitingPerWorkerMax: 0 }, {}], async (a, b) => {
    const rows = await a.run(numbers, 100)
    assert.equal(await a.run(total, b.stream(same, rows)), 4950)
  }))

test('a task that fails before its stream is sent does not send it as the result of the next task', () =>
  inZones([{}, {}], async (a, b) => {
    await Promise.all([a, b].map((each) => each.run(() => 1)))
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 500))
    // It waits for a call, so that the next ones begin beside it.
    const waiting = a.run(async (other: Zone, fn: () => Promise<void>) => other.run(fn), b, pause)
    await until(() => b.stats().running === 1)
    const failed = a.run(() => {
      process.nextTick(() => {
        throw new RangeError('left behind')
      })
      return (async function* () {
        yield 'of the one before'
      })()
    })
    const next = a.run(async () => {
      await new Promise((resolve) => setTimeout(resolve, 300))
      return 'of its own'
    })
    await assert.rejects(failed, { message: 'left behind' })
    assert.equal(await next, 'of its own')
    await waiting
  }))
