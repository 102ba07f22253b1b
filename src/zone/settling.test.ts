/**
 * `map` with its options: outcomes instead of errors, values as they come, signals of single items, bounds.
 *
 * The oracle is the result of `Promise.allSettled` for the same function here.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { type Settled, type Zone, zone } from './index.ts'
import { inZone, until } from './api/zones.test.support.ts'
import { collected } from '../base/collected.test.support.ts'

const here = zone.create('settling', { workers: 2, graceMs: 0 })
after(() => here.close())

/** Values, errors with facts, promises of both, and what cannot travel. */
function outcome(item: number, index: number): unknown {
  if (item % 7 === 0) throw Object.assign(new RangeError(`item ${item}`), { index })
  if (item % 7 === 1) return Promise.resolve({ item, index })
  if (item % 7 === 2) return Promise.reject(new TypeError(`promise ${item}`))
  if (item % 7 === 3) return undefined
  return [item]
}

function described({ index, ...rest }: Settled<unknown>): unknown {
  if (rest.status === 'fulfilled') return [index, rest.value]
  const error = rest.reason as Error
  return [index, error.name, error.message, { ...error }]
}

test('settle returns the outcome of each item, whatever the source, the chunks and the zone', async () => {
  const cases = fc.record({
    items: fc.array(fc.nat(50), { maxLength: 200 }),
    chunkMax: fc.constantFrom(1, 3, 1000),
    chunksMax: fc.constantFrom(1, 2, 50),
    aheadMax: fc.constantFrom(undefined, 1, 10, 1000),
    source: fc.constantFrom('array', 'set', 'async'),
    ordered: fc.boolean(),
    where: fc.constantFrom('zone', 'node'),
  })
  const property = fc.asyncProperty(cases, async ({ items, source, where, ordered, aheadMax, ...sizes }) => {
    const target = (where === 'zone' ? here : zone.node) as Zone
    const options = { ...sizes, settle: true, ...(aheadMax === undefined ? {} : { aheadMax }) } as const
    const local = await Promise.allSettled(items.map(async (item, index) => outcome(item, index)))
    const expected = local.map((each, index) => described({ index, ...each }))
    if (source === 'array') {
      assert.deepEqual((await target.map(items, outcome, options)).map(described), expected)
      return
    }
    async function* slowly(): AsyncGenerator<number> {
      for (const item of items) yield item
    }
    const from = source === 'set' ? items.values() : slowly()
    const settled = await collected(target.map(from, outcome, { ...options, ordered }))
    if (!ordered) settled.sort((a, b) => a.index - b.index)
    assert.deepEqual(settled.map(described), expected)
  })
  await fc.assert(property, { numRuns: 60 })
})

test('what cannot travel back is a failure of its item alone', async () => {
  const settled = await here.map(
    [1, 2, 3, 4],
    (item): unknown => {
      if (item === 2) return { item: Symbol('no') }
      if (item === 3) throw Object.assign(new RangeError('bad'), { why: Symbol('no') })
      return item
    },
    { settle: true, chunkMax: 4 },
  )
  assert.deepEqual(
    settled.map((each) => (each.status === 'fulfilled' ? each.value : (each.reason as Error).name)),
    [1, 'TransportError', 'RangeError', 4],
  )
})

test('a thenable that an item returns is awaited, and its outcome keeps its position', async () => {
  const settled = await here.map(
    [1, 2, 3],
    (item): unknown => {
      if (item === 3) return item
      return {
        // oxlint-disable-next-line unicorn/no-thenable -- one that returns nothing
        then(resolve: (value: number) => void) {
          if (item === 2) throw new Error('no promise')
          setTimeout(resolve, 5, 10)
        },
      }
    },
    { settle: true, chunkMax: 3 },
  )
  assert.deepEqual(
    settled.map((each) => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message)),
    [10, 'no promise', 3],
  )
})

test('a worker that dies takes its chunk, and its item alone when they travel one by one', async () => {
  const fn = (item: number): number => (item === 5 ? process.exit(1) : item)
  const items = Array.from({ length: 12 }, (_, index) => index)
  const settled = await here.map(items, fn, { settle: true, chunkMax: 1 })
  const died = settled.filter((each) => each.status === 'rejected')
  assert.deepEqual(
    died.map((each) => [each.index, (each.reason as { code?: string }).code]),
    [[5, 'WORKER_DIED']],
  )
})

test('unordered values arrive as they are ready; for an array `ordered: false` is refused', async () => {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  async function* items(): AsyncGenerator<[number, Int32Array]> {
    for (let item = 0; item < 5; item++) yield [item, gate]
  }
  const seen: number[] = []
  const values = here.map(
    items(),
    ([item, cells]) => {
      if (item === 0) Atomics.wait(cells, 0, 0)
      return item
    },
    { ordered: false, chunkMax: 1 },
  )
  for await (const value of values) {
    seen.push(value)
    if (seen.length === 4) {
      Atomics.store(gate, 0, 1)
      Atomics.notify(gate, 0)
    }
  }
  assert.deepEqual([seen.at(-1), [...seen].sort()], [0, [0, 1, 2, 3, 4]])
  await assert.rejects(
    here.map([1], (item) => item, { ordered: false }),
    { code: 'ZONE_ARGUMENT' },
  )
})

test('a result is not held back by a source that waits', async () => {
  let go!: () => void
  const first = new Promise<void>((resolve) => (go = resolve))
  async function* items(): AsyncGenerator<number> {
    yield 1
    await first
    yield 2
  }
  const values = here.map(items(), (item) => item * 10)
  assert.deepEqual(await values.next(), { done: false, value: 10 })
  go()
  assert.deepEqual(await values.next(), { done: false, value: 20 })
  assert.equal((await values.next()).done, true)
})

test('aheadMax lets others pass a slow item, in order, and no further', async () => {
  const gate = new Int32Array(new SharedArrayBuffer(8))
  let read = 0
  function* items(): Generator<[number, Int32Array]> {
    for (let item = 0; item < 1000; item++) {
      read++
      yield [item, gate]
    }
  }
  const done = here.map(
    items(),
    ([item, cells]) => {
      if (item === 0) Atomics.wait(cells, 0, 0)
      else Atomics.add(cells, 1, 1)
      return item
    },
    { chunkMax: 1, chunksMax: 4, aheadMax: 100 },
  )
  const all = collected(done)
  await until(() => Atomics.load(gate, 1) === 99)
  assert.equal(read, 100)
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
  assert.deepEqual(
    await all,
    Array.from({ length: 1000 }, (_, item) => item),
  )
})

test("an item's own signal ends that item alone", async () => {
  await inZone({ workers: 2, graceMs: 0 }, async (own) => {
    const stops = Array.from({ length: 6 }, () => new AbortController())
    const started = new Int32Array(new SharedArrayBuffer(4))
    const result = own.map(
      stops.map((_, index) => [index, started] as const),
      ([item, cells]) => {
        if (item !== 2) return item
        Atomics.store(cells, 0, 1)
        for (;;);
      },
      { settle: true, itemSignal: (_: never, index) => stops[index]?.signal },
    )
    await until(() => Atomics.load(started, 0) === 1)
    const reason = new Error('too long')
    stops[2]?.abort(reason)
    const settled = await result
    assert.deepEqual(
      settled.map((each) => (each.status === 'fulfilled' ? each.value : each.reason)),
      [0, 1, reason, 3, 4, 5],
    )
  })
})

test('the signal of all ends all, settling or not; wrong options are refused by name', async () => {
  const reason = new Error('enough')
  const signal = AbortSignal.abort(reason)
  for (const settle of [true, false]) {
    await assert.rejects(
      here.map([1], (item) => item, { signal, settle } as { signal: AbortSignal; settle: true }),
      reason,
    )
  }
  for (const wrong of [
    { chunksMax: 0 },
    { aheadMax: 1.5 },
    { ordered: 1 },
    { settle: 'yes' },
    { itemSignal: 1 },
  ]) {
    const [name] = Object.keys(wrong)
    await assert.rejects(
      here.map([1], (item) => item, wrong as never),
      { code: 'ZONE_ARGUMENT', message: new RegExp(`zone\\.map\\(\\): ${name}`) },
    )
  }
})
