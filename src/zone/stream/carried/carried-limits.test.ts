/**
 * What bounds the streams of calls, and what ends them from outside: windows, signals, deaths, closes.
 *
 * Each case counts what a side has produced in shared memory, and waits for the event itself.
 */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { settled } from '../../../base/wait.test.support.ts'
import { inZone, until } from '../../api/zones.test.support.ts'
import { zone } from '../../index.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

function cell(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(8))
}

/** Yields numbers without end, and counts them in the first cell; the second is set when it is closed. */
function* counting(cells: Int32Array): Generator<number, void, undefined> {
  try {
    for (;;) yield Atomics.add(cells, 0, 1)
  } finally {
    Atomics.store(cells, 1, 1)
  }
}

/** The most that a counter reaches, seen in several turns in which it did not move. */
async function quiet(cells: Int32Array): Promise<number> {
  let last = -1
  let same = 0
  await until(() => {
    const now = Atomics.load(cells, 0)
    same = now === last ? same + 1 : 0
    last = now
    return same > 30
  })
  return last
}

/** Takes `count` items, and waits until its call is cancelled. */
async function takesSome(
  this: { readonly signal: AbortSignal },
  items: AsyncIterable<unknown>,
  count: number,
): Promise<void> {
  let taken = 0
  for await (const _ of items) if (++taken === count) break
  await new Promise((_, reject) => {
    this.signal.addEventListener('abort', () => reject(this.signal.reason as Error))
  })
}

/** Leaves the items of a result. */
async function leave(items: unknown): Promise<void> {
  await (items as AsyncGenerator<unknown, void, undefined>).return()
}

async function first<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item
  return undefined
}

test('no argument and no result runs further ahead of its reader than the window', async () => {
  for (const aheadMax of [1, 7, 1024]) {
    await inZone({ workers: 1, aheadMax }, async (own) => {
      const cells = cell()
      const stop = new AbortController()
      const call = own.with({ signal: stop.signal }).run(async function (
        items: AsyncIterableIterator<number>,
      ) {
        await items.next()
        await new Promise((_, reject) => {
          const { signal } = this as unknown as { signal: AbortSignal }
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
      }, counting(cells))
      await until(() => Atomics.load(cells, 0) > 0)
      assert.ok((await quiet(cells)) <= 1 + aheadMax, `${cells[0]} with ${aheadMax}`)
      stop.abort()
      await assert.rejects(call, { name: 'AbortError' })
      await until(() => cells[1] === 1, 'the source is closed')

      const there = cell()
      const items = await own.run(async function* (counted: Int32Array) {
        try {
          for (;;) yield Atomics.add(counted, 0, 1)
        } finally {
          Atomics.store(counted, 1, 1)
        }
      }, there)
      assert.deepEqual(await items.next(), { value: 0, done: false })
      assert.ok((await quiet(there)) <= 1 + aheadMax, `${there[0]} with ${aheadMax}`)
      await leave(items)
      assert.equal(there[1], 1, 'the clean-up is over')
      assert.deepEqual(await items.next(), { value: undefined, done: true })
      await until(() => own.stats().running === 0)
    })
  }
})

test('bytes in transit are bounded too, and a chunk that has its memory alone is moved', async () => {
  await inZone({ workers: 1, aheadBytesMax: 200_000 }, async (own) => {
    const cells = cell()
    const chunks = await own.run(function* (counted: Int32Array) {
      for (;;) {
        Atomics.add(counted, 0, 1)
        yield new Uint8Array(50_000)
      }
    }, cells)
    await chunks.next()
    assert.ok((await quiet(cells)) <= 6, String(cells[0]))
    await leave(chunks)
    let left = 30
    const bytes = new ReadableStream({
      type: 'bytes',
      pull(controller) {
        if (left-- > 0) controller.enqueue(new Uint8Array(50_000))
        else controller.close()
      },
    })
    const lengths = await own.run(async (chunks: ReadableStream<Uint8Array>) => {
      const all: number[] = []
      for await (const { byteLength, buffer } of chunks) all.push(byteLength, buffer.byteLength)
      return all
    }, bytes)
    assert.deepEqual(lengths, Array(60).fill(50_000))
  })
})

test('a task that ends early closes its sources, whatever they are', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    assert.equal(await own.run(first<number>, counting(cells)), 0)
    assert.equal(cells[1], 1)
    let cancelled: unknown
    const web = new ReadableStream<number>({
      start: (controller) => controller.enqueue(1),
      cancel: () => void (cancelled = true),
    })
    assert.equal(await own.run(first<number>, web), 1)
    await until(() => cancelled === true)
    const node = new Readable({ objectMode: true, read() {} })
    node.push(1)
    assert.equal(await own.run(first<number>, node as AsyncIterable<number>), 1)
    await until(() => node.destroyed)
    // One that never looks at its stream, and one that leaves it unread behind its result.
    assert.equal(await own.run((_: unknown) => 5, counting(cell())), 5)
  })
})

test('what the clean-up of a source or of a result throws is thrown to who waits', async () => {
  await inZone({ workers: 1 }, async (own) => {
    function* closing(): Generator<number> {
      try {
        for (;;) yield 1
      } finally {
        // oxlint-disable-next-line no-unsafe-finally -- what the test is about
        throw new RangeError('here')
      }
    }
    await assert.rejects(own.run(first<number>, closing()), { message: 'here' })
    const rows = await own.run(async function* (items: AsyncIterable<number>) {
      yield await items[Symbol.asyncIterator]().next()
    }, closing())
    await rows.next()
    await assert.rejects(rows.next(), { message: 'here' })
    const others = await own.run(function* () {
      try {
        for (;;) yield 1
      } finally {
        // oxlint-disable-next-line no-unsafe-finally -- as above
        throw new RangeError('there')
      }
    })
    await others.next()
    await assert.rejects(leave(others), { message: 'there' })
  })
})

test('streams of the web and of Node that are results are left by cancel and destroy', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    const web = await own.run((counted: Int32Array) => {
      return new ReadableStream<number>({
        pull: (controller) => controller.enqueue(Atomics.add(counted, 0, 1)),
        cancel: () => void Atomics.store(counted, 1, 1),
      })
    }, cells)
    const reader = web.getReader()
    assert.equal((await reader.read()).value, 0)
    await reader.cancel()
    assert.equal(cells[1], 1)
    const there = cell()
    const node = await own.run(async (counted: Int32Array) => {
      const { Readable: There } = await import('node:stream')
      return new There({
        objectMode: true,
        read() {
          this.push(Atomics.add(counted, 0, 1))
        },
        destroy(_, done) {
          Atomics.store(counted, 1, 1)
          done(null)
        },
      })
    }, there)
    for await (const item of node) {
      assert.equal(item, 0)
      break
    }
    await until(() => there[1] === 1)
    await until(() => own.stats().running === 0)
  })
})

test('a signal and a deadline end a call whose streams go on', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const stop = new AbortController()
    const endless = async function* (counted: Int32Array): AsyncGenerator<number> {
      try {
        for (;;) yield Atomics.add(counted, 0, 1)
      } finally {
        Atomics.store(counted, 1, 1)
      }
    }
    const cells = cell()
    const items = await own.with({ signal: stop.signal }).run(endless, cells)
    assert.deepEqual(await items.next(), { value: 0, done: false })
    const why = new Error('enough')
    stop.abort(why)
    await assert.rejects(items.next(), (error) => error === why)
    await until(() => cells[1] === 1, 'the clean-up there')
    const late = cell()
    const read = async (): Promise<void> => {
      for await (const item of await own.with({ timeoutMs: 50 }).run(endless, late)) assert.ok(item >= 0)
    }
    await assert.rejects(read(), { code: 'TASK_TIMEOUT' })
    const early = AbortSignal.abort(why)
    const untouched = cell()
    const given = counting(untouched)
    await assert.rejects(own.with({ signal: early }).run(first<number>, given), (e) => e === why)
    assert.deepEqual([...untouched], [0, 0])
    given.return()
    await until(() => own.stats().running === 0)
  })
})

test('a worker that dies is an error behind the items before it, and sources are closed', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    const rows = await own.run(async function* (items: AsyncIterable<number>) {
      for await (const item of items) {
        yield item
        if (item === 300) setImmediate(() => process.exit(4))
      }
    }, counting(cells))
    const taken: number[] = []
    await assert.rejects(
      async () => {
        for await (const row of rows) taken.push(row)
      },
      { code: 'WORKER_DIED' },
    )
    assert.deepEqual(
      taken,
      taken.map((_, index) => index),
    )
    await until(() => cells[1] === 1, 'the source is closed')
    const other = cell()
    await assert.rejects(
      own.run(async (items: AsyncIterable<number>) => {
        for await (const item of items) if (item === 50) process.exit(5)
      }, counting(other)),
      { code: 'WORKER_DIED' },
    )
    await until(() => other[1] === 1, 'the source is closed')
    assert.equal(await own.run(() => 1), 1)
  })
})

test('a zone that is closed ends its streams, and one that is full leaves the sources alone', async () => {
  await inZone({ workers: 1, tasksMax: 1 }, async (own) => {
    const gate = cell()
    const busy = own.run((blocked: Int32Array) => {
      Atomics.store(blocked, 1, 1)
      Atomics.wait(blocked, 0, 0)
    }, gate)
    await until(() => gate[1] === 1, 'the worker is busy')
    const waiting = own.run(() => 2)
    const cells = cell()
    const source = counting(cells)
    await assert.rejects(own.run(first<number>, source), { code: 'ZONE_FULL' })
    assert.deepEqual([...cells], [0, 0])
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await busy
    assert.equal(await waiting, 2)
    assert.equal(await own.run(first<number>, source), 0)
    const open = await own.run(async function* () {
      for (;;) yield 1
    })
    await own.close({ timeoutMs: 1 })
    await assert.rejects(
      async () => {
        for await (const item of open) assert.equal(item, 1)
      },
      { code: 'ZONE_CLOSED' },
    )
  })
})

test('a result that does not end when its reader leaves is ended after graceMs', async () => {
  await inZone({ workers: 1, graceMs: 20 }, async (own) => {
    const cells = cell()
    const items = await own.run(function* (counted: Int32Array) {
      yield 1
      Atomics.store(counted, 0, 1)
      for (;;) Atomics.load(counted, 0)
    }, cells)
    assert.deepEqual(await items.next(), { value: 1, done: false })
    await until(() => cells[0] === 1)
    await settled(leave(items), 'the end of a reader that has left')
    assert.equal(
      await settled(
        own.run(() => 3),
        'the next task',
      ),
      3,
    )
  })
})

test('a result that was collected half-read, or never read, ends', async () => {
  await inZone({ workers: 2 }, async (own) => {
    for (const isRead of [true, false]) {
      const cells = cell()
      const begin = async (): Promise<void> => {
        const items = await own.run(async function* (counted: Int32Array) {
          try {
            for (;;) yield Atomics.add(counted, 0, 1)
          } finally {
            Atomics.store(counted, 1, 1)
          }
        }, cells)
        if (isRead) await items.next()
      }
      await begin()
      // The thread keeps the promise of its last call until the next one.
      await own.run(() => 1)
      await until(() => {
        gc()
        return cells[1] === 1 && own.stats().running === 0
      }, 'the end of a stream that nobody has')
    }
  })
})

test('the end of the thread that called ends the streams of its calls', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    const door = new URL('../../index.js', import.meta.url).href
    const caller = new Worker(
      `const { workerData } = require('node:worker_threads')
       import(workerData.door).then(async ({ zone }) => {
         const there = zone.get(workerData.id)
         const items = await there.run(async function* (counted, given) {
           for await (const item of given) try {
             for (;;) yield Atomics.add(counted, 0, 1)
           } finally {
             Atomics.store(counted, 1, 1)
           }
         }, workerData.cells, [1].values())
         await items.next()
       })`,
      { eval: true, workerData: { door, id: own.id, cells } },
    )
    await until(() => Atomics.load(cells, 0) > 1)
    await caller.terminate()
    await until(() => cells[1] === 1, 'the clean-up in the worker')
    await until(() => own.stats().running === 0)
  })
})

test('many calls with streams at once, on workers that are killed in the middle', async () => {
  await inZone({ workers: 2, tasksPerWorkerMax: 20 }, async (own) => {
    async function* squares(items: AsyncIterable<number>, isDeadly: boolean): AsyncGenerator<number> {
      for await (const item of items) {
        yield item * item
        if (isDeadly && item === 400) process.exit(7)
      }
    }
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, async (_, which) => {
        const cells = cell()
        const taken: number[] = []
        const isDeadly = which % 20 === 7
        let code: unknown
        try {
          const source = counting(cells)
          for await (const item of await own.run(squares, source, isDeadly)) {
            taken.push(item)
            if (taken.length === 700) break
          }
        } catch (error) {
          ;({ code } = error as { code: unknown })
        }
        assert.deepEqual(
          taken,
          taken.map((__, index) => index * index),
        )
        if (Atomics.load(cells, 0) > 0) await until(() => cells[1] === 1, 'the source is closed')
        return code ?? taken.length
      }),
    )
    for (const outcome of outcomes) assert.ok(outcome === 700 || outcome === 'WORKER_DIED', String(outcome))
    assert.ok(outcomes.includes('WORKER_DIED'))
    await until(() => own.stats().running === 0)
  })
})

test('a caller that does not wait for a call to end leaves no source open', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    const stop = new AbortController()
    const call = own.with({ signal: stop.signal }).run(takesSome, counting(cells) as never, 3)
    await until(() => Atomics.load(cells, 0) > 3)
    stop.abort(new Error('enough'))
    await assert.rejects(call, { message: 'enough' })
    await until(() => cells[1] === 1, 'the source is closed')
    assert.ok(zone.node.stats().running === 0)
  })
})
