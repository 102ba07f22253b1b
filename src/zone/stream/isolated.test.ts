/**
 * Streams through zones of processes: as through threads, over a socket, and when a process is killed.
 *
 * The models are those of threads. What a process has counted is asked by another task of it, since it shares
 * no memory with this one. Windows has no such zones.
 */
import assert from 'node:assert/strict'
import { randomFillSync } from 'node:crypto'
import { Readable } from 'node:stream'
import { after, test as everywhere } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { native } from '../../native/index.ts'
import { store } from '../../store/index.ts'
import { TransportError } from '../../transport/index.ts'
import { inZone, makeZone, until } from '../api/zones.test.support.ts'
import { type Task, ZoneError, type ZoneOptions, zone } from '../index.ts'
import { outcome, plans as carriedPlans } from './carried/plans.test.support.ts'
import { checkDeath, checkPlan, deaths, pass, plans, windows } from './plans.test.support.ts'
import { collected } from '../../base/collected.test.support.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** However busy the machine is, clean-up ends before a reader that has left cancels the task. */
const PROCESS = {
  workers: 1,
  isolation: 'process',
  tasksPerWorkerMax: 64,
  graceMs: 60_000,
} satisfies ZoneOptions

const hasProcesses = process.platform !== 'win32'
const test = (name: string, body: () => Promise<void>): void => {
  void everywhere(name, { skip: !hasProcesses }, body)
}

const apart = makeZone(hasProcesses ? PROCESS : { workers: 1 })
after(() => apart.close())

interface Counted {
  produced?: number
  closed?: number
}

/** Yields numbers without end, and notes how many and that it was closed. */
function* counting(counted: Counted): Generator<number, void, undefined> {
  try {
    for (let item = 0; ; item++) {
      counted.produced = item + 1
      yield item
    }
  } finally {
    counted.closed = (counted.closed ?? 0) + 1
  }
}

/** The same in a process, whose tasks see what it notes. */
function* countingThere(): Generator<number, void, undefined> {
  const counted = globalThis as Counted
  counted.closed = 0
  try {
    for (let item = 0; ; item++) {
      counted.produced = item + 1
      yield item
    }
  } finally {
    counted.closed = 1
  }
}

async function there(): Promise<Counted> {
  return await apart.run(() => {
    const { produced, closed } = globalThis as Counted
    return { produced, closed } as Counted
  })
}

/** The value that a counter keeps in several turns. */
async function quiet(look: () => number | Promise<number>): Promise<number> {
  let [last, same] = [-1, 0]
  await until(async () => {
    const now = await look()
    same = now === last ? same + 1 : 0
    last = now
    return same > 20
  }, 'a counter that stays')
  return last
}

/** Takes one item, and waits until its reader leaves. */
async function* stuck(this: Task, items: AsyncIterableIterator<unknown>): AsyncGenerator<unknown> {
  yield (await items.next()).value
  await new Promise((_, reject) => {
    this.signal.addEventListener('abort', () => reject(this.signal.reason as Error))
  })
}

test('any window, errors and early ends: what the function does when it is called here', async () => {
  const property = fc.asyncProperty(plans, windows, (plan, window) => checkPlan(apart, plan, window))
  await fc.assert(property, { numRuns: 40 })
})

test('processes that die at any item: what arrives is the beginning, then comes the death', async () => {
  const property = fc.asyncProperty(deaths, windows, (death, window) => checkDeath(apart, death, window))
  await fc.assert(property, { numRuns: 8 })
})

test('sources, tasks and readers of arguments and results do what the same call does here', async () => {
  const property = fc.asyncProperty(carriedPlans, async (plan) => {
    assert.deepEqual(await outcome(apart, plan), await outcome(zone.node, plan))
  })
  await fc.assert(property, { numRuns: 30 })
  await until(() => apart.stats().running === 0)
})

test('neither side is further ahead than the window, in items and in bytes', async () => {
  for (const aheadMax of [1, 7, 1024]) {
    const counted: Counted = {}
    const values = apart.stream(stuck, counting(counted), { aheadMax })
    assert.deepEqual(await values.next(), { value: 0, done: false })
    const ahead = await quiet(() => counted.produced ?? 0)
    assert.ok(ahead <= 1 + aheadMax, `${ahead} with ${aheadMax}`)
    await values.return()
    assert.equal(counted.closed, 1)

    const results = apart.stream(countingThere, [], { aheadMax })
    assert.deepEqual(await results.next(), { value: 0, done: false })
    const aheadThere = await quiet(async () => (await there()).produced ?? 0)
    assert.ok(aheadThere <= 1 + aheadMax, `${aheadThere} with ${aheadMax}`)
    await results.return()
    assert.equal((await there()).closed, 1)
  }
  let chunks = 0
  function* large(): Generator<Uint8Array> {
    for (;;) {
      chunks++
      yield new Uint8Array(100_000)
    }
  }
  const bytes = apart.stream(stuck, large(), { aheadBytesMax: 400_000 })
  await bytes.next()
  const most = await quiet(() => chunks)
  assert.ok(most <= 6, String(most))
  await bytes.return()
})

test('items of many megabytes and small ones arrive whole, on many streams at once', async () => {
  const large = Array.from({ length: 3 }, () => randomFillSync(new Uint8Array(3_000_000)))
  const [back, ...small] = await Promise.all([
    collected(apart.stream(pass<Uint8Array>, large)),
    ...Array.from({ length: 30 }, (_, which) =>
      collected(
        apart.stream(
          pass<number>,
          Array.from({ length: 700 }, (__, index) => index * which),
          { aheadMax: 1 + which },
        ),
      ),
    ),
  ])
  for (const [index, chunk] of large.entries()) assert.equal(Buffer.compare(back[index], chunk), 0)
  for (const [which, values] of small.entries())
    assert.deepEqual(
      values,
      Array.from({ length: 700 }, (_, index) => index * which),
    )
})

test('streams of the web and of Node, Blobs and generators go in and out of calls', async () => {
  const text = 'line\n'.repeat(60_000)
  const both = async (bytes: ReadableStream<Uint8Array>, rows: AsyncIterable<unknown>): Promise<unknown> => {
    const { Readable: There } = await import('node:stream')
    let length = 0
    for await (const chunk of bytes as unknown as AsyncIterable<Uint8Array>) length += chunk.length
    const received: unknown[] = []
    for await (const row of rows) received.push(row)
    return {
      node: There.from(received),
      web: new Blob([String(length)]).stream(),
      rest: (function* () {
        yield* received
      })(),
    }
  }
  const result = (await apart.run(both, new Blob([text]).stream(), Readable.from([{ row: 1 }, 'two']))) as {
    node: Readable
    web: ReadableStream<Uint8Array>
    rest: AsyncIterable<unknown>
  }
  assert.deepEqual(await collected(result.rest), [{ row: 1 }, 'two'])
  assert.deepEqual(await collected(result.node), [{ row: 1 }, 'two'])
  const chunks = await collected(result.web as unknown as AsyncIterable<Uint8Array>)
  assert.equal(Buffer.concat(chunks).toString(), String(text.length))
  await until(() => apart.stats().running === 0)
})

test('what only one process has is refused as an item, in its position, there and back', async () => {
  await using shared = store.create('stream-isolated')
  for (const only of [new SharedArrayBuffer(8), shared]) {
    const values: unknown[] = []
    const read = async (): Promise<void> => {
      for await (const value of apart.stream(pass, [1, { deep: only }])) values.push(value)
    }
    await assert.rejects(
      read,
      (error) =>
        error instanceof TransportError && (error.facts as { path: string }).path === 'items[1].deep',
    )
    assert.deepEqual(values, [1])
  }
  const results = apart.stream(function* () {
    yield 1
    yield new SharedArrayBuffer(8)
  }, [])
  assert.deepEqual(await results.next(), { value: 1, done: false })
  await assert.rejects(results.next(), { code: 'TRANSPORT_REFUSED' })
  const beside = apart.run(() => ({ rows: [1].values(), memory: new SharedArrayBuffer(8) }))
  await assert.rejects(beside, { code: 'TRANSPORT_REFUSED', message: /value\.memory/ })
  // A thread of this process accepts them still.
  await inZone({ workers: 1 }, async (threads) => {
    const [memory] = await collected(threads.stream(pass<SharedArrayBuffer>, [new SharedArrayBuffer(8)]))
    assert.equal(memory?.byteLength, 8)
  })
})

test('a signal and a deadline end both sides', async () => {
  const counted: Counted = {}
  const controller = new AbortController()
  const values = apart.stream(pass<number>, counting(counted), { signal: controller.signal })
  assert.deepEqual(await values.next(), { value: 0, done: false })
  controller.abort(new RangeError('enough'))
  await assert.rejects(values.next(), { message: 'enough' })
  await until(() => counted.closed === 1, 'the end of the source')
  const late: Counted = {}
  const read = async (): Promise<void> => {
    for await (const value of apart.stream(pass, counting(late), { timeoutMs: 30 }))
      assert.ok(value !== undefined)
  }
  await assert.rejects(read(), { code: 'TASK_TIMEOUT' })
  assert.equal(late.closed, 1)
  const cancelled = new AbortController()
  const rows = await apart.with({ signal: cancelled.signal }).run(countingThere)
  assert.deepEqual(await rows.next(), { value: 0, done: false })
  cancelled.abort(new RangeError('no more'))
  await assert.rejects(Promise.resolve(rows.next()), { message: 'no more' })
  await until(async () => (await there()).closed === 1, 'the end of the source there')
})

test('closing the zone ends its streams', async () => {
  const own = makeZone({ ...PROCESS, graceMs: 50 })
  const counted: Counted = {}
  const values = own.stream(pass<number>, counting(counted), { aheadMax: 4 })
  assert.deepEqual(await values.next(), { value: 0, done: false })
  const closed = own.close({ timeoutMs: 60 })
  const read = async (): Promise<void> => {
    for await (const value of values) assert.ok(value > 0)
  }
  await assert.rejects(read(), { code: 'ZONE_CLOSED' })
  await closed
  assert.equal(counted.closed, 1)
})

test('a process that is killed is an error behind the items before it, and ends the sources', async () => {
  const objects = native.syncCount()
  await inZone({ ...PROCESS, tasksPerWorkerMax: 3 }, async (own) => {
    const kill = async (): Promise<void> => void process.kill(await own.run(() => process.pid), 'SIGKILL')
    for (const killsAt of [0, 1, 300, 5000]) {
      const [counted, argument]: [Counted, Counted] = [{}, {}]
      const values = own.stream(pass<number>, counting(counted))
      const rows = await own.run(pass<number>, counting(argument))
      const reads = async (items: AsyncIterable<number>, kills: boolean): Promise<number[]> => {
        const taken: number[] = []
        // Not before the call is in that process: its replacement would run it without end.
        if (kills && killsAt === 0) void until(() => counted.produced !== undefined).then(kill)
        const read = async (): Promise<void> => {
          for await (const value of items) if (taken.push(value) === killsAt && kills) void kill()
        }
        await assert.rejects(
          read,
          (error) =>
            error instanceof ZoneError && error.code === 'WORKER_DIED' && /SIGKILL/.test(error.message),
        )
        return taken
      }
      for (const taken of await Promise.all([reads(values, true), reads(rows, false)]))
        assert.deepEqual(
          taken,
          Array.from({ length: taken.length }, (_, index) => index),
        )
      await until(() => counted.closed === 1 && argument.closed === 1, 'the end of the sources')
      // The replacement is sound.
      assert.deepEqual(await collected(own.stream(pass<number>, [1, 2])), [1, 2])
    }
  })
  await until(() => native.syncCount() === objects, 'the channels are removed')
})

test('a process that is killed while it returns streams fails the call or the stream', async () => {
  await inZone({ ...PROCESS, tasksPerWorkerMax: 1 }, async (own) => {
    for (let turns = 0; turns < 6; turns++) {
      const before = await own.run(() => process.pid)
      const rows = own.run(async (left: number) => {
        const dies = async (): Promise<void> => {
          for (let turn = 0; turn < left; turn++) await new Promise((resolve) => setImmediate(resolve))
          process.kill(process.pid, 'SIGKILL')
        }
        void dies()
        return [[1].values(), [2].values()]
      }, turns)
      const read = async (): Promise<void> => {
        for (const row of await rows) for await (const value of row) assert.ok(value > 0)
      }
      if (turns === 0) await assert.rejects(read, { code: 'WORKER_DIED' })
      else await read().catch((error: unknown) => assert.equal((error as ZoneError).code, 'WORKER_DIED'))
      await until(async () => {
        const after = await own.run(() => process.pid).catch(() => before)
        return after !== before
      })
    }
  })
})

test('a thread that ends in the middle of its streams ends them in the process', async () => {
  const objects = native.syncCount()
  const entry = new URL('../index.js', import.meta.url).href
  const worker = new Worker(
    `import('${entry}').then(async ({ zone }) => {
      const { parentPort, workerData } = await import('node:worker_threads')
      const own = zone.get(workerData)
      function* endless() { for (;;) yield 1 }
      const given = own.stream((items) => items, endless())
      await given.next()
      const rows = await own.run(function* () { for (;;) yield 1 })
      await rows.next()
      parentPort.postMessage('both')
    })`,
    { eval: true, workerData: apart.id },
  )
  await new Promise((resolve) => worker.once('message', resolve))
  assert.equal(apart.stats().running, 2)
  await worker.terminate()
  await until(() => apart.stats().running === 0)
  await until(() => native.syncCount() === objects, 'the channels are removed')
})

test('a stream that was collected half-read ends, also one of a result', async () => {
  const counted: Counted = {}
  const begin = async (): Promise<void> => {
    await apart.stream(pass<number>, counting(counted)).next()
    const rows = await apart.run(countingThere)
    await rows.next()
    // The thread's last call keeps its result.
    await apart.run(() => 1)
  }
  await begin()
  await until(async () => {
    gc()
    return counted.closed === 1 && (await there()).closed === 1
  }, 'the end of streams that nobody has')
})

test('in a process its zone and others have streams of their own', async () => {
  const total = await apart.run(async () => {
    const { zone: zones } = await import('../index.js')
    const twice = async function* (items: AsyncIterable<number>): AsyncGenerator<number> {
      for await (const item of items) yield item * 2
    }
    const own = zones.current
    let sum = 0
    if (own !== undefined) {
      for await (const value of own.stream(twice, [1, 2, 3])) sum += value
      for await (const value of await own.run(twice, [10, 20].values() as never)) sum += value
    }
    for await (const value of zones.cpu.stream(twice, [100])) sum += value
    await zones.cpu.close()
    return sum
  })
  assert.equal(total, 12 + 60 + 200)
})
