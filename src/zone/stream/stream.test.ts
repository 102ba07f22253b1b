/**
 * `stream` against the same function called here: items, errors and clean-up of both sides, in their order.
 *
 * The oracle calls the function with the source itself. What only threads have (windows, deaths,
 * cancellation) is in limits.test.ts.
 */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { TransportError, move } from '../../transport/index.ts'
import { type AnyZone, type Zone, ZoneError, zone } from '../index.ts'
import { checkDeath, checkPlan, deaths, pass, plans, windows } from './plans.test.support.ts'
import { collected } from '../../base/collected.test.support.ts'

const here = zone.create('stream', { workers: 2 })
after(() => here.close())
const BOTH: AnyZone[] = [here, zone.node]

test('any window, errors and early ends: what the function does when it is called here', async () => {
  const property = fc.asyncProperty(plans, windows, fc.boolean(), (plan, window, isHere) =>
    checkPlan(isHere ? zone.node : here, plan, window),
  )
  await fc.assert(property, { numRuns: 150 })
})

test('workers that die at any item: what arrives is the beginning, then comes the death', async () => {
  const property = fc.asyncProperty(deaths, windows, (death, window) => checkDeath(here, death, window))
  await fc.assert(property, { numRuns: 15 })
  assert.deepEqual(await collected(here.stream(pass<number>, [1, 2])), [1, 2])
})

test('a reader that leaves receives no error of an item that it has not requested', async () => {
  async function* failsAtSecond(): AsyncGenerator<number> {
    yield 0
    await Promise.resolve()
    throw new RangeError('source at 1')
  }
  for (const target of BOTH)
    for (let round = 0; round < 50; round++) {
      const taken: number[] = []
      for await (const item of target.stream(pass<number>, failsAtSecond(), { aheadMax: 2 })) {
        taken.push(item)
        break
      }
      assert.deepEqual(taken, [0])
    }
})

test('a source may be an array, a typed array, a set, a generator, a stream, a Blob', async () => {
  for (const target of BOTH) {
    const sources: [Iterable<unknown> | AsyncIterable<unknown> | ReadableStream<unknown>, unknown[]][] = [
      [
        [1, 'two', { three: 3 }],
        [1, 'two', { three: 3 }],
      ],
      [Float64Array.of(1, 2), [1, 2]],
      [new Set(['a', 'b']), ['a', 'b']],
      [
        [Promise.resolve(1), 2],
        [1, 2],
      ],
      [new Map([['key', 1]]).entries(), [['key', 1]]],
      [Readable.from([{ row: 1 }, { row: 2 }]), [{ row: 1 }, { row: 2 }]],
      [webStream(['x', 'y']), ['x', 'y']],
      [[], []],
    ]
    for (const [given, expected] of sources)
      assert.deepEqual(await collected(target.stream(pass, given as unknown[])), expected)
    const text = 'line\n'.repeat(50_000)
    for (const blob of [new Blob([text]), new File([text], 'lines.txt')]) {
      const chunks = await collected(target.stream(pass<Uint8Array>, blob))
      assert.equal(Buffer.concat(chunks).toString(), text)
    }
  }
})

test('a function may return any source, and a promise of one', async () => {
  const functions: ((items: AsyncIterable<number>) => unknown)[] = [
    (items) => items,
    () => [1, 2, 3],
    function* () {
      yield* [1, 2, 3]
    },
    async () => new Set([1, 2, 3]),
    (items) =>
      new ReadableStream({
        async start(controller) {
          for await (const item of items) controller.enqueue(item)
          controller.close()
        },
      }),
    async (items) => {
      const { Readable: There } = await import('node:stream')
      return There.from(items)
    },
  ]
  for (const target of BOTH)
    for (const fn of functions)
      assert.deepEqual(await collected(target.stream(fn as typeof pass<number>, [1, 2, 3])), [1, 2, 3])
})

test('a stream of a stream runs in two workers', async () => {
  const first = here.stream(
    pass<number>,
    Array.from({ length: 5000 }, (_, index) => index),
  )
  const second = here.stream(async function* (items: AsyncIterable<number>) {
    for await (const item of items) if (item % 2 === 0) yield item / 2
  }, first)
  assert.deepEqual(
    await collected(second),
    Array.from({ length: 2500 }, (_, index) => index),
  )
})

test('an item leaves at once, without others behind it', async () => {
  for (const target of BOTH) {
    let answered = (_: number): void => {}
    async function* asking(): AsyncGenerator<number> {
      for (let question = 0; question < 50; question++) {
        const answer = new Promise<number>((resolve) => (answered = resolve))
        yield question
        assert.equal(await answer, question)
      }
    }
    let count = 0
    for await (const answer of target.stream(pass<number>, asking())) {
      assert.equal(answer, count++)
      answered(answer)
    }
    assert.equal(count, 50)
  }
})

test('an error of the source is thrown to the function, and to the reader as it was', async () => {
  const failure = Object.assign(new Error('no more'), { own: () => 'cannot travel' })
  const failing = async function* (): AsyncGenerator<number> {
    yield 1
    throw failure
  }
  for (const target of BOTH) {
    const values: number[] = []
    const read = async (): Promise<void> => {
      for await (const value of target.stream(pass<number>, failing())) values.push(value)
    }
    await assert.rejects(read, (error) => error === failure)
    assert.deepEqual(values, [1])
    const caught = target.stream(async function* (items: AsyncIterable<number>) {
      try {
        for await (const item of items) yield String(item)
      } catch (error) {
        yield `caught ${(error as Error).message}`
      }
    }, failing())
    assert.deepEqual(await collected(caught), ['1', 'caught no more'])
  }
})

test('an item that cannot travel ends the stream in its position, and the source is closed', async () => {
  let isClosed = false
  async function* odd(): AsyncGenerator<unknown> {
    try {
      yield 'before'
      yield { deep: [new WeakMap()] }
      yield 'after'
    } finally {
      isClosed = true
    }
  }
  const values: unknown[] = []
  await assert.rejects(
    async () => {
      for await (const value of here.stream(pass, odd())) values.push(value)
    },
    (error) =>
      error instanceof TransportError && (error.facts as { path: string }).path === 'items[1].deep[0]',
  )
  assert.deepEqual(values, ['before'])
  assert.equal(isClosed, true)
  const results = here.stream(function* () {
    yield 'before'
    yield new WeakMap()
  }, [])
  assert.deepEqual(await results.next(), { value: 'before', done: false })
  await assert.rejects(results.next(), { code: 'TRANSPORT_REFUSED' })
})

test('memory passed by move is moved in both directions', async () => {
  const chunks = [new Uint8Array(100_000).fill(1), new Uint8Array(100_000).fill(2)]
  const given = chunks.map((chunk) => move(chunk))
  const received = await collected(
    here.stream(async function* (items: AsyncIterable<Uint8Array>) {
      const { move: moveThere } = await import('../../transport/index.js')
      const held: Uint8Array[] = []
      for await (const item of items) {
        held.push(item)
        yield moveThere(item)
      }
      await new Promise((resolve) => setImmediate(resolve))
      yield Uint8Array.from(held, ({ length }) => length)
    }, given),
  )
  assert.deepEqual(
    received.map(({ length }) => length),
    [100_000, 100_000, 2],
  )
  assert.deepEqual([...(received[2] ?? [])], [0, 0])
  assert.deepEqual(
    chunks.map(({ length }) => length),
    [0, 0],
  )
})

test('the function is called with its task, and one that returns no source is refused', async () => {
  const where = here.stream(async function* (this: { zone: string }) {
    yield this.zone
  }, [])
  assert.deepEqual(await collected(where), ['stream'])
  for (const target of BOTH) {
    const wrong = target.stream((() => 5) as never, [1])
    await assert.rejects(wrong.next(), { code: 'ZONE_ARGUMENT' })
    assert.deepEqual(await wrong.next(), { value: undefined, done: true })
  }
})

test('wrong arguments fail with the first item and open nothing', async () => {
  const calls: [unknown, unknown, unknown, RegExp][] = [
    [1, [], undefined, /first argument must be a function/],
    [pass, 5, undefined, /source must be an iterable, a stream or a Blob/],
    [pass, Promise.resolve([]), undefined, /await the promise first/],
    [pass, 'text', undefined, /source must be/],
    [pass, [], { aheadMax: 0 }, /aheadMax must be an integer from 1/],
    [pass, [], { aheadBytesMax: 1.5 }, /aheadBytesMax must be an integer/],
    [pass, [], { ahead: 5 }, /unknown option "ahead"/],
    [pass, [], { signal: 5 }, /signal/],
  ]
  for (const target of BOTH) {
    for (const [fn, given, options, message] of calls) {
      const values = target.stream(fn as typeof pass, given as unknown[], options as object)
      await assert.rejects(
        values.next(),
        (error) => error instanceof ZoneError && message.test(error.message),
      )
      assert.deepEqual(await values.next(), { value: undefined, done: true })
    }
  }
})

test('calls of next() are answered in their order; a stream that was not begun opens nothing', async () => {
  for (const target of BOTH) {
    const values = target.stream(pass<number>, [1, 2])
    const all = await Promise.all([values.next(), values.next(), values.next(), values.next()])
    assert.deepEqual(
      all.map(({ value }) => value),
      [1, 2, undefined, undefined],
    )
    let isOpen = false
    const idle = target.stream(pass<number>, {
      [Symbol.iterator]() {
        isOpen = true
        return [1].values()
      },
    })
    assert.deepEqual(await idle.return(), { value: undefined, done: true })
    assert.deepEqual(await idle.next(), { value: undefined, done: true })
    assert.equal(isOpen, false)
  }
})

test('streams of the web and of Node are cancelled when the reader leaves', async () => {
  for (const target of BOTH) {
    let cancelled: unknown = 'no'
    const web = new ReadableStream<number>({
      start: (controller) => controller.enqueue(1),
      cancel: () => void (cancelled = 'yes'),
    })
    for await (const value of target.stream(pass<number>, web)) {
      assert.equal(value, 1)
      break
    }
    assert.equal(cancelled, 'yes')
    const node = new Readable({ objectMode: true, read() {} })
    node.push(1)
    for await (const value of target.stream(pass<number>, node as AsyncIterable<number>)) {
      assert.equal(value, 1)
      break
    }
    assert.equal(node.destroyed, true)
  }
})

test('many streams at once on one worker', async () => {
  const busy = zone.create('stream-many', { workers: 1, tasksPerWorkerMax: 40 })
  const sums = await Promise.all(
    Array.from({ length: 40 }, async (_, which) => {
      const items = Array.from({ length: 700 }, (__, index) => index * which)
      const values = await collected(busy.stream(pass<number>, items, { aheadMax: 1 + which }))
      return assert.deepEqual(values, items)
    }),
  )
  assert.equal(sums.length, 40)
  assert.equal(busy.stats().running, 0)
  await busy.close()
})

test('a task may stream in its own zone', async () => {
  const one: Zone = zone.create('stream-own', { workers: 1 })
  const total = await one.run(async () => {
    const { zone: zones } = await import('../index.js')
    let sum = 0
    const values = zones.current?.stream(
      async function* (items: AsyncIterable<number>) {
        for await (const item of items) yield item * 2
      },
      [1, 2, 3],
    )
    if (values !== undefined) for await (const value of values) sum += value
    return sum
  })
  assert.equal(total, 12)
  await one.close()
})

function webStream<T>(items: T[]): ReadableStream<T> {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item)
      controller.close()
    },
  })
}
