/**
 * Streams as arguments and results of calls: kinds, positions, errors, early ends, against calls here.
 *
 * The oracle of the model test is `zone.node`, which calls the function with the caller's own arguments.
 */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { TransportError } from '../../../transport/index.ts'
import { until } from '../../api/zones.test.support.ts'
import { type AnyZone, zone } from '../../index.ts'
import { numbers, outcome, plans } from './plans.test.support.ts'
import { collected } from '../../../base/collected.test.support.ts'

// However busy the machine is, clean-up ends before a reader that has left cancels the task.
const here = zone.create('carried', { workers: 2, graceMs: 60_000 })
after(() => here.close())
const BOTH: AnyZone[] = [here, zone.node]

async function sum(items: AsyncIterable<number> | Iterable<number>): Promise<number> {
  let total = 0
  for await (const item of items) total += item
  return total
}

async function* slowly(count: number): AsyncGenerator<number, void, undefined> {
  for (const item of numbers(count)) {
    await undefined
    yield item
  }
}

function web<T>(items: Iterable<T>): ReadableStream<T> {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item)
      controller.close()
    },
  })
}

test('generators, iterators, streams of the web and of Node are arguments of a call', async () => {
  const sources: (() => Iterable<number> | AsyncIterable<number>)[] = [
    () => numbers(5000),
    () => slowly(500),
    () => web(numbers(500)),
    () => Readable.from(numbers(500)),
    () => numbers(500)[Symbol.iterator](),
    () => new Set(numbers(500)).values(),
    () => new Map([...numbers(500)].map((item) => [item, item])).keys(),
    () => [...numbers(500)].values(),
  ]
  for (const target of BOTH) {
    for (const source of sources) {
      assert.equal(await target.run(sum, source() as Iterable<number>), await sum(source()))
      assert.equal((await target.execute(sum, [source() as Iterable<number>])).value, await sum(source()))
    }
    const limited = target.with({ timeoutMs: 60_000 })
    assert.equal(await limited.run(sum, slowly(10)), 45)
  }
})

test('a stream arrives as what it is', async () => {
  const arrived = await here.run(
    async (...streams) => {
      const names = streams.map((stream) => (stream as object).constructor.name)
      const [bytes, node, text] = streams as [ReadableStream<Uint8Array>, Readable, Readable]
      const reader = bytes.getReader({ mode: 'byob' })
      const { value } = await reader.read(new Uint8Array(4))
      await reader.cancel()
      const chunks: unknown[] = []
      for await (const chunk of node) chunks.push(chunk)
      for await (const chunk of text) chunks.push(chunk)
      return [names, [...(value ?? [])], chunks, node.readableObjectMode, text.readableEncoding]
    },
    new Blob(['four', 'more']).stream(),
    Readable.from([{ a: 1 }, 2]),
    new Readable({
      encoding: 'utf8',
      read() {
        this.push('é')
        this.push(null)
      },
    }),
  )
  const four = [...Buffer.from('four')]
  assert.deepEqual(arrived, [
    ['ReadableStream', 'Readable', 'Readable'],
    four,
    [{ a: 1 }, 2, 'é'],
    true,
    'utf8',
  ])
})

test('files and Blobs are arguments, and so are their streams', async () => {
  async function count(this: unknown, source: Blob | AsyncIterable<Uint8Array>): Promise<number> {
    const chunks = source instanceof Blob ? source.stream() : source
    let bytes = 0
    for await (const chunk of chunks as AsyncIterable<Uint8Array>) bytes += chunk.length
    return bytes
  }
  const blob = new Blob(['x'.repeat(200_000)])
  for (const target of BOTH) {
    assert.equal(await target.run(count, blob), 200_000)
    assert.equal(await target.run(count, blob.stream()), 200_000)
    const file = new File([blob, 'y'], 'a.txt')
    assert.equal(await target.run(count, file.stream()), 200_001)
  }
})

test('generators and streams are results of a call, which go on behind it', async () => {
  const makers: (() => unknown)[] = [
    function* () {
      for (let item = 0; item < 5000; item++) yield item
    },
    async function* () {
      for (let item = 0; item < 500; item++) {
        await undefined
        yield item
      }
    },
    () => new Set([1, 2, 3]).values(),
    () => new Blob(['some text']).stream(),
    async () => (await import('node:stream')).Readable.from([1, { two: 2 }, 'three']),
  ]
  for (const target of BOTH) {
    for (const maker of makers) {
      const oracle = await collected((await maker()) as AsyncIterable<unknown>)
      assert.deepEqual(await collected((await target.run(maker)) as AsyncIterable<unknown>), oracle)
      const { value } = await target.execute(maker)
      assert.deepEqual(await collected(value as AsyncIterable<unknown>), oracle)
    }
  }
  // A stream has ended a moment before its task.
  await until(() => here.stats().running === 0)
})

test('a stream nested in objects and arrays is found, and one at two positions is one', async () => {
  const rows = slowly(4)
  const shared = { rows }
  const cycle: Record<string, unknown> = { name: 'n', list: [1, shared, shared], ['__proto__x']: 1 }
  cycle['self'] = cycle
  const result = await here.run(
    async (given: unknown, second: unknown) => {
      const { list, self } = given as {
        list: [number, { rows: AsyncIterable<number> }, object]
        self: unknown
      }
      const items: number[] = []
      for await (const item of list[1].rows) items.push(item)
      const isOne = list[1].rows === second && list[1] === list[2] && self === given
      const again = (function* () {
        yield* items
      })()
      return { isOne, deep: [{ again }], count: items.length }
    },
    cycle,
    rows,
  )
  assert.deepEqual([result.isOne, result.count], [true, 4])
  assert.deepEqual(await collected(result.deep[0]?.again as never), [0, 1, 2, 3])
})

test('streams go in and out of one call, and of the exports of a module', async () => {
  async function* twice(items: AsyncIterable<number>): AsyncGenerator<number> {
    for await (const item of items) yield* [item, item]
  }
  const own = new URL('./exports.test.support.js', import.meta.url)
  for (const target of BOTH) {
    assert.equal(await sum(await target.run(twice, slowly(1000))), 999_000)
    const module = target.module<typeof import('./exports.test.support.ts')>(own)
    assert.equal(await sum(await module.doubled(slowly(10))), 90)
    const { value } = await target.execute(own, 'doubled', [slowly(10)])
    assert.equal(await sum(value as AsyncIterable<number>), 90)
    assert.equal(await target.module<typeof import('./exports.test.support.ts')>(own).total(slowly(5)), 10)
  }
})

test('an error of a source is thrown in its position there, and here it is the original', async () => {
  class OwnError extends RangeError {
    readonly secret = Symbol('not sent')
  }
  async function* failing(): AsyncGenerator<number> {
    yield 1
    yield 2
    throw new OwnError('source')
  }
  for (const target of BOTH) {
    await assert.rejects(target.run(sum, failing()), OwnError)
    const caught = await target.run(async (items: AsyncIterable<number>) => {
      const seen: unknown[] = []
      try {
        for await (const item of items) seen.push(item)
      } catch (error) {
        seen.push((error as Error).message)
      }
      return seen
    }, failing())
    assert.deepEqual(caught, [1, 2, 'source'])
  }
})

test('an error of a result is thrown in its position, and the task has failed', async () => {
  async function* failing(): AsyncGenerator<number> {
    yield 1
    yield 2
    throw new RangeError('there')
  }
  for (const target of BOTH) {
    const failed = target.stats().failed
    const items = await target.run(failing)
    assert.deepEqual(await items.next(), { value: 1, done: false })
    assert.deepEqual(await items.next(), { value: 2, done: false })
    await assert.rejects(items.next(), { name: 'RangeError', message: 'there' })
    assert.deepEqual(await items.next(), { value: undefined, done: true })
    if (target === here) assert.ok(here.stats().failed <= failed + 1)
  }
  const web = await here.run(
    () =>
      new ReadableStream({
        pull(controller) {
          controller.error(new TypeError('of the web'))
        },
      }),
  )
  await assert.rejects(web.getReader().read(), { name: 'TypeError', message: 'of the web' })
})

test('an item or a part that cannot travel is named by its path', async () => {
  function* items(): Generator<unknown> {
    yield 1
    yield { a: [Symbol('s')] }
  }
  await assert.rejects(
    here.run(collected<unknown>, items()),
    (error) => error instanceof TransportError && (error.facts as { path: string }).path === 'items[1].a[0]',
  )
  const made = await here.run(function* () {
    yield 1
    yield { a: [Symbol('s')] }
  })
  await assert.rejects(
    collected(made),
    (error) => error instanceof TransportError && (error.facts as { path: string }).path === 'items[1].a[0]',
  )
  await assert.rejects(
    here.run(() => ({ rows: [1].values(), wrong: [Symbol('s')] })),
    (error) => error instanceof TransportError && (error.facts as { path: string }).path === 'value.wrong[0]',
  )
  for (const wrong of [Symbol('s'), { socket: new WeakMap() }])
    await assert.rejects(
      here.run((value) => value, wrong as unknown),
      { code: 'TRANSPORT_REFUSED' },
    )
})

test('a reader that leaves receives no error of an item that it has not requested', async () => {
  async function* pass(items: AsyncIterable<number>): AsyncGenerator<number> {
    for await (const item of items) yield item
  }
  for (const turns of [0, 1, 2, 5]) {
    async function* failsAtSecond(): AsyncGenerator<number> {
      yield 0
      for (let left = turns; left > 0; left--) await new Promise((resolve) => setImmediate(resolve))
      throw new RangeError('source at 1')
    }
    for (const target of BOTH) {
      for (let round = 0; round < 12; round++) {
        const taken: number[] = []
        for await (const item of await target.run(pass, failsAtSecond())) {
          taken.push(item)
          break
        }
        assert.deepEqual(taken, [0])
      }
    }
  }
})

test('sources, tasks and readers that end or fail anywhere do what the same call does here', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      assert.deepEqual(await outcome(here, plan), await outcome(zone.node, plan))
    }),
    { numRuns: 60 },
  )
  // A stream has ended a moment before its task.
  await until(() => here.stats().running === 0)
})
