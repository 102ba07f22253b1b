/**
 * What bounds a stream, and what ends it from outside: windows, signals, deadlines, deaths, closes.
 *
 * Each case counts what a side has produced in shared memory, and waits for the event itself.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { inZone, until } from '../api/zones.test.support.ts'
import { settled } from '../../base/wait.test.support.ts'
import { ZoneError, zone } from '../index.ts'
import { pass } from './plans.test.support.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const DONE = { value: undefined, done: true }

function cell(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(8))
}

/** Yields numbers without end, and counts them in the first cell; the second is set when it is closed. */
function* counting(cells: Int32Array): Generator<number> {
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

test('a source is never further ahead of the function than its window, in items', async () => {
  await inZone({ workers: 1 }, async (own) => {
    for (const target of [own, zone.node]) {
      for (const aheadMax of [1, 2, 7, 1024]) {
        const cells = cell()
        const values = target.stream(
          async function* (items: AsyncIterableIterator<number>) {
            yield (await items.next()).value
            // The reader leaves, and that ends the wait.
            await new Promise((_, reject) => {
              this.signal.addEventListener('abort', () => reject(this.signal.reason as Error))
            })
          },
          counting(cells),
          { aheadMax },
        )
        assert.deepEqual(await values.next(), { value: 0, done: false })
        assert.ok((await quiet(cells)) <= 1 + aheadMax, `${cells[0]} with ${aheadMax}`)
        await values.return()
        assert.equal(cells[1], 1)
      }
    }
  })
})

test('a function is never further ahead of the reader than its window, and its finally runs', async () => {
  await inZone({ workers: 1 }, async (own) => {
    for (const aheadMax of [1, 3, 1000]) {
      const cells = cell()
      const counted = own.stream(
        async function* (items: AsyncIterable<Int32Array>) {
          for await (const there of items) {
            try {
              for (;;) yield Atomics.add(there, 0, 1)
            } finally {
              await new Promise((resolve) => setImmediate(resolve))
              Atomics.store(there, 1, 1)
            }
          }
        },
        [cells],
        { aheadMax },
      )
      assert.deepEqual(await counted.next(), { value: 0, done: false })
      assert.ok((await quiet(cells)) <= 1 + aheadMax, `${cells[0]} with ${aheadMax}`)
      await counted.return()
      assert.equal(cells[1], 1)
      assert.deepEqual(await counted.next(), { value: undefined, done: true })
    }
  })
})

test('no further item is taken when the bytes of the window are in transit', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    function* chunks(): Generator<Uint8Array> {
      for (;;) {
        Atomics.add(cells, 0, 1)
        yield new Uint8Array(1000)
      }
    }
    function* objects(): Generator<object> {
      for (;;) {
        Atomics.add(cells, 0, 1)
        yield { text: 'x'.repeat(1000) }
      }
    }
    const stuck = async function* (this: { signal: AbortSignal }): AsyncGenerator<number> {
      yield 0
      await new Promise((_, reject) => {
        this.signal.addEventListener('abort', () => reject(this.signal.reason as Error))
      })
    }
    for (const [source, most] of [
      [chunks(), 10],
      // Their size is known when some were sent.
      [objects(), 80],
    ] as const) {
      cells[0] = 0
      const values = own.stream(stuck, source as Iterable<unknown>, { aheadBytesMax: 10_000 })
      await values.next()
      const count = await quiet(cells)
      assert.ok(count >= 5 && count <= most, `${count} of ${most}`)
      await values.return()
    }
    // An item that is larger than the window travels alone.
    const large = [new Uint8Array(100_000), new Uint8Array(100_000)]
    let bytes = 0
    for await (const chunk of own.stream(pass<Uint8Array>, large, { aheadBytesMax: 10 }))
      bytes += chunk.length
    assert.equal(bytes, 200_000)
  })
})

test('aborting the signal ends both sides at once with its reason', async () => {
  await inZone({ workers: 1 }, async (own) => {
    for (const target of [own, zone.node]) {
      const [cells, there] = [cell(), cell()]
      const controller = new AbortController()
      const both = async function* (items: AsyncIterable<number | Int32Array>): AsyncGenerator<number> {
        let cleaned: Int32Array | undefined
        try {
          for await (const item of items) {
            if (typeof item === 'number') yield item
            else cleaned = item
          }
        } finally {
          if (cleaned !== undefined) Atomics.store(cleaned, 1, 1)
        }
      }
      function* given(): Generator<number | Int32Array> {
        yield there
        yield* counting(cells)
      }
      const values = target.stream(both, given(), { signal: controller.signal })
      assert.deepEqual(await values.next(), { value: 0, done: false })
      const why = new Error('enough')
      controller.abort(why)
      await assert.rejects(values.next(), (error) => error === why)
      await until(() => cells[1] === 1, 'the source is closed')
      await until(() => there[1] === 1, 'the finally block of the function')
      assert.deepEqual(await values.next(), { value: undefined, done: true })
      const early = target.stream(pass<number>, counting(cell()), { signal: controller.signal })
      await assert.rejects(early.next(), (error) => error === why)
    }
  })
})

test('a deadline ends a stream with TASK_TIMEOUT, and so does one of a view', async () => {
  await inZone({ workers: 1 }, async (own) => {
    for (const target of [own, zone.node]) {
      const cells = cell()
      const read = async (values: AsyncIterable<unknown>): Promise<void> => {
        for await (const value of values) assert.ok(value !== undefined)
      }
      await assert.rejects(read(target.stream(pass, counting(cells), { timeoutMs: 30 })), {
        code: 'TASK_TIMEOUT',
      })
      assert.equal(cells[1], 1)
      await assert.rejects(read(target.with({ timeoutMs: 30 }).stream(pass, counting(cell()))), {
        code: 'TASK_TIMEOUT',
      })
    }
  })
})

test('a worker that dies is an error behind the items before it, and the source is closed', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    const values = own.stream(async function* (items: AsyncIterable<number>) {
      for await (const item of items) {
        yield item
        if (item === 300) setImmediate(() => process.exit(4))
      }
    }, counting(cells))
    const taken: number[] = []
    await assert.rejects(
      async () => {
        for await (const value of values) taken.push(value)
      },
      (error) => error instanceof ZoneError && error.code === 'WORKER_DIED',
    )
    assert.deepEqual(
      taken,
      Array.from({ length: taken.length }, (_, index) => index),
    )
    assert.equal(cells[1], 1)
    // The replacement is sound.
    const next: number[] = []
    for await (const value of own.stream(pass<number>, [1, 2])) next.push(value)
    assert.deepEqual(next, [1, 2])
  })
})

test('closing the zone ends its streams with ZONE_CLOSED', async () => {
  const own = zone.create('stream-closed', { workers: 1, graceMs: 50 })
  const cells = cell()
  const values = own.stream(pass<number>, counting(cells), { aheadMax: 4 })
  assert.deepEqual(await values.next(), { value: 0, done: false })
  const closed = own.close({ timeoutMs: 60 })
  const read = async (): Promise<void> => {
    for await (const value of values) assert.ok(value > 0)
  }
  await assert.rejects(read(), { code: 'ZONE_CLOSED' })
  await closed
  assert.equal(cells[1], 1)
  await assert.rejects(own.stream(pass<number>, [1]).next(), { code: 'ZONE_CLOSED' })
})

test('a function that never waits is left long before its window is full', async () => {
  await inZone({ workers: 1 }, async (own) => {
    for (const target of [own, zone.node]) {
      const cells = cell()
      const values = target.stream(
        async function* (items: AsyncIterableIterator<Int32Array>) {
          const there = (await items.next()).value as Int32Array
          try {
            for (;;) {
              Atomics.add(there, 0, 1)
              const until = performance.now() + 0.2
              while (performance.now() < until);
              yield 1
            }
          } finally {
            Atomics.store(there, 1, 1)
          }
        },
        [cells],
        { aheadMax: 2 ** 20, aheadBytesMax: 2 ** 30 },
      )
      await values.next()
      await settled(values.return(), 'the end of the stream')
      assert.equal(Atomics.load(cells, 1), 1)
      assert.ok(Atomics.load(cells, 0) < 2 ** 20)
    }
  })
})

test('a function that does not end when its reader leaves is ended after graceMs', async () => {
  await inZone({ workers: 1, graceMs: 40 }, async (own) => {
    for (const kind of ['waits', 'blocks']) {
      const values = own.stream(
        async function* (items: AsyncIterable<string>) {
          for await (const item of items) {
            yield item
            for (;;) if (item === 'waits') await new Promise((resolve) => setImmediate(resolve))
          }
        },
        [kind],
      )
      assert.deepEqual(await values.next(), { value: kind, done: false })
      await settled(values.return(), 'the end of the stream')
      assert.equal(
        await settled(
          own.run(() => 1),
          'the next task',
        ),
        1,
      )
    }
  })
})

test('what a clean-up throws is thrown to the reader that has left', async () => {
  await inZone({ workers: 1 }, async (own) => {
    for (const target of [own, zone.node]) {
      const values = target.stream(async function* (items: AsyncIterable<number>) {
        try {
          for await (const item of items) yield item
        } finally {
          // oxlint-disable-next-line no-unsafe-finally -- what the test is about
          throw new RangeError('there')
        }
      }, counting(cell()))
      await values.next()
      await assert.rejects(values.return(), { name: 'RangeError', message: 'there' })
      function* closing(): Generator<number> {
        try {
          for (;;) yield 1
        } finally {
          // oxlint-disable-next-line no-unsafe-finally -- what the test is about
          throw new RangeError('here')
        }
      }
      const others = target.stream(pass<number>, closing())
      await others.next()
      await assert.rejects(others.return(), { name: 'RangeError', message: 'here' })
    }
  })
})

test('a source that never returns its next item is not waited for', async () => {
  await inZone({ workers: 1 }, async (own) => {
    for (const target of [own, zone.node]) {
      async function* silent(): AsyncGenerator<number> {
        yield 1
        await new Promise(() => {})
      }
      const left = target.stream(pass<number>, silent())
      assert.deepEqual(await left.next(), { value: 1, done: false })
      await settled(left.return(), 'the end of a stream whose source is silent')
      const ended = target.stream(async function* (items: AsyncIterable<number>) {
        for await (const item of items) {
          yield item
          return
        }
      }, silent())
      const values: number[] = []
      for await (const value of ended) values.push(value)
      assert.deepEqual(values, [1])
    }
  })
})

test('a stream that was collected half-read ends, and so does its source', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const cells = cell()
    const begin = async (): Promise<void> => {
      await own.stream(pass<number>, counting(cells)).next()
    }
    await begin()
    await until(() => {
      gc()
      return cells[1] === 1 && own.stats().running === 0
    }, 'the end of a stream that nobody has')
  })
})

test('a full zone refuses the stream and closes its source', async () => {
  await inZone({ workers: 1, tasksMax: 1 }, async (own) => {
    const busy = own.stream(pass<number>, counting(cell()))
    await busy.next()
    const waiting = own.stream(pass<number>, counting(cell()))
    const first = waiting.next()
    const cells = cell()
    await assert.rejects(own.stream(pass<number>, counting(cells)).next(), { code: 'ZONE_FULL' })
    assert.equal(cells[1], 1)
    await busy.return()
    assert.deepEqual(await first, { value: 0, done: false })
    await waiting.return()
  })
})

test('items that a function has kept end with it, also for those that wait', async () => {
  type Kept = { kept: AsyncIterator<number> | Iterator<number>; waiting: Promise<unknown> }
  const isolated = process.platform === 'win32' ? [] : [{ workers: 1, isolation: 'process' } as const]
  for (const settings of [{ workers: 1 } as const, ...isolated]) {
    await inZone(settings, async (own) => {
      const forms: (() => Promise<unknown>)[] = [
        async () => {
          const values = own.stream(async function* (items: AsyncIterator<number>) {
            ;(globalThis as unknown as Kept).kept = items
            yield (await items.next()).value as number
          }, counting(cell()))
          while ((await values.next()).done !== true);
        },
        () =>
          own.run(async (items: AsyncIterator<number> | Iterator<number>) => {
            ;(globalThis as unknown as Kept).kept = items
            await items.next()
          }, counting(cell())),
      ]
      for (const begin of forms) {
        await begin()
        const late = own.run(() => (globalThis as unknown as Kept).kept.next())
        assert.deepEqual(await settled(late, 'the end of items that were kept'), DONE)
      }
      async function* silent(): AsyncGenerator<number> {
        yield 1
        await new Promise(() => {})
      }
      const values = own.stream(async function* (items: AsyncIterator<number>) {
        await items.next()
        ;(globalThis as unknown as Kept).waiting = Promise.all([items.next(), items.next()])
        yield 1
      }, silent())
      while ((await values.next()).done !== true);
      const waiting = own.run(() => (globalThis as unknown as Kept).waiting)
      assert.deepEqual(await settled(waiting, 'the end of those that wait'), [DONE, DONE])
    })
  }
})
