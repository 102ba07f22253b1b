/**
 * `map`, `forEach` and `reduce` against what an array does: values, order, errors, cancellation, bounds.
 *
 * One zone of two workers serves the whole file, and `zone.node` must have the same results.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { type Zone, zone } from '../index.ts'
import { inZone, until } from '../api/zones.test.support.ts'
import { collected } from '../../base/collected.test.support.ts'

const here = zone.create('parallel', { workers: 2 })
after(() => here.close())

const square = (value: number, index: number): number[] => [value * value, index]

async function* slowly<T>(items: Iterable<T>): AsyncGenerator<T> {
  for (const item of items) {
    await new Promise((resolve) => setImmediate(resolve))
    yield item
  }
}

test('any source, any chunk: the values of an array, in order', async () => {
  const sources = fc.record({
    items: fc.array(fc.integer({ min: -1000, max: 1000 }), { maxLength: 300 }),
    chunkMax: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
    kind: fc.constantFrom('array', 'typed', 'set', 'generator', 'async'),
    where: fc.constantFrom('zone', 'node'),
  })
  const property = fc.asyncProperty(sources, async ({ items, chunkMax, kind, where }) => {
    const target = (where === 'zone' ? here : zone.node) as Zone
    const options = chunkMax === undefined ? {} : { chunkMax }
    const expected = items.map(square)
    switch (kind) {
      case 'array':
        return assert.deepEqual(await target.map(items, square, options), expected)
      case 'typed':
        return assert.deepEqual(await target.map(Float64Array.from(items), square, options), expected)
      case 'set': {
        const set = new Set(items)
        return assert.deepEqual(await collected(target.map(set, square, options)), [...set].map(square))
      }
      case 'generator': {
        const values = target.map(items.values(), square, options)
        return assert.deepEqual(await collected(values), expected)
      }
      default:
        return assert.deepEqual(await collected(target.map(slowly(items), square, options)), expected)
    }
  })
  await fc.assert(property, { numRuns: 60 })
})

test('reduce folds in order, from a neutral value; of nothing it is that value', async () => {
  const letters = Array.from({ length: 500 }, (_, index) => String.fromCharCode(97 + (index % 26)))
  const joined = await here.reduce(letters, (sum: string, letter: string) => sum + letter, '')
  assert.equal(joined, letters.join(''))
  const longest = await here.reduce(
    slowly(['a', 'bbb', 'cc']),
    (most: number, text: string) => Math.max(most, text.length),
    0,
    { combine: (one, other) => Math.max(one, other) },
  )
  assert.equal(longest, 3)
  assert.equal(await here.reduce([], (sum: number, item: number) => sum + item, 5), 5)
})

test('reduce may change its sum: each chunk has its own, and the first is left as it was', async () => {
  for (const target of [here, zone.node] as Zone[]) {
    const initial: number[] = []
    const push = (sum: number[], item: number): number[] => (sum.push(item), sum)
    const options = { combine: (one: number[], other: number[]) => [...one, ...other], chunkMax: 1 }
    assert.deepEqual(await target.reduce([1, 2, 3, 4], push, initial, options), [1, 2, 3, 4])
    assert.deepEqual(initial, [])
  }
})

test('forEach does it for each, also where it is asynchronous', async () => {
  const cells = new Int32Array(new SharedArrayBuffer(4 * 200))
  const items = Array.from({ length: 200 }, (_, index) => [cells, index] as const)
  await here.forEach(items, async ([cells, at], index) => {
    await new Promise((resolve) => setImmediate(resolve))
    Atomics.add(cells, at, index + 1)
  })
  assert.deepEqual(
    [...cells],
    [...cells.keys()].map((index) => index + 1),
  )
})

test('an asynchronous function in the middle of a chunk keeps order and indices', async () => {
  const items = Array.from({ length: 64 }, (_, index) => index)
  const fn = (item: number, index: number): unknown => (item < 20 ? index : Promise.resolve(-index))
  assert.deepEqual(
    await here.map(items, fn, { chunkMax: 64 }),
    items.map((item) => (item < 20 ? item : -item)),
  )
})

test('endless input is read only as far ahead as the workers can use, and closed', async () => {
  let read = 0
  let closed = false
  function* endless(): Generator<number> {
    try {
      for (;;) yield read++
    } finally {
      closed = true
    }
  }
  let taken = 0
  for await (const value of here.map(endless(), (item) => item * 2, {
    chunkMax: 10,
  })) {
    assert.equal(value, 2 * taken)
    if (++taken === 1000) break
  }
  // Two workers: 6 chunks of 10 may be in flight or wait, behind a batch of as many that the caller is at.
  assert.ok(closed && read >= 1000 && read <= 1000 + 2 * 6 * 10, `${read} read`)
})

test('aheadMax is kept whatever items cost', async () => {
  let read = 0
  function* endless(): Generator<number> {
    for (;;) yield read++
  }
  async function* endlessLater(): AsyncGenerator<number> {
    for (;;) yield read++
  }
  for (const aheadMax of [1, 8, 100]) {
    for (const source of [endless, endlessLater]) {
      read = 0
      let taken = 0
      for await (const value of here.map(source(), (item) => item, { aheadMax })) {
        assert.equal(value, taken++)
        assert.ok(read - taken <= aheadMax, `${read - taken} read and not taken of ${aheadMax}`)
        if (taken === 100 + 10 * aheadMax) break
      }
    }
  }
})

test('chunks of large items stay small, and one that is too large for the zone goes in parts', async () => {
  await inZone({ workers: 2, taskBytesMax: 64 * 1024 }, async (own) => {
    // Sizes that no measurement foresees, up to nearly what the zone takes.
    const items = Array.from({ length: 600 }, (_, index) =>
      'x'.repeat(index < 300 ? index : (index * 7919) % 60_000),
    )
    const lengths = items.map((item) => item.length)
    assert.deepEqual(await own.map(items, (text) => text.length), lengths)
    const total = lengths.reduce((sum, length) => sum + length, 0)
    const add = (one: number, other: number): number => one + other
    const fold = (sum: number, text: string): number => sum + text.length
    assert.equal(await own.reduce(items.values(), fold, 0, { combine: add }), total)
    items[450] = 'x'.repeat(70_000)
    await assert.rejects(
      own.map(items, (text) => text.length),
      { code: 'TASK_TOO_LARGE' },
    )
    const settled = await own.map(items, (text) => text.length, { settle: true })
    lengths[450] = -1
    assert.deepEqual(
      settled.map((each) => (each.status === 'fulfilled' ? each.value : -1)),
      lengths,
    )
    assert.equal((settled[450] as PromiseRejectedResult).reason.code, 'TASK_TOO_LARGE')
  })
})

test('endless input of large items, or of items with large values, is read a little ahead', async () => {
  const item = 'x'.repeat(100_000)
  let read = 0
  function* endless(what: string): Generator<string> {
    for (;;) {
      read++
      yield what
    }
  }
  for (const [what, fn] of [
    [item, (text: string) => text.length],
    ['x', (text: string) => text.repeat(100_000)],
  ] as const) {
    read = 0
    let taken = 0
    for await (const _ of here.map(endless(what), fn as (text: string) => unknown)) if (++taken === 300) break
    assert.ok(read - taken < 100, `${read - taken} ahead`)
  }
})

test('a chunk of quick items ends early where slow ones follow: they do not hold up each other', async () => {
  const items = Array.from({ length: 3000 }, (_, index) => index)
  /** Which chunk of this worker it was in, by the task, for a slow item; all others: -1. */
  const slow = async (index: number): Promise<number> => {
    const { currentTask } = await import('../index.js')
    const seen = ((globalThis as { chunks?: unknown[] }).chunks ??= [])
    if (seen.at(-1) !== currentTask()) seen.push(currentTask())
    if (index < 2900) return -1
    const end = performance.now() + 15
    while (performance.now() < end);
    return seen.length
  }
  const chunks = (await here.map(items, slow)).filter((chunk) => chunk !== -1)
  // There are two workers, and the clock is read after every item that waits.
  for (const chunk of new Set(chunks)) assert.ok(chunks.filter((each) => each === chunk).length <= 2)
  const quickly = (index: number): number => {
    const end = performance.now() + (index % 100 === 99 ? 15 : 0)
    while (performance.now() < end);
    return index
  }
  const settled = await here.map(items, quickly, { settle: true })
  assert.deepEqual(
    settled.map(({ index, status }) => [index, status]),
    items.map((index) => [index, 'fulfilled']),
  )
  assert.deepEqual(await here.map(Uint16Array.from(items), quickly), items)
  const sum = await here.reduce(
    items,
    (total: number, index: number) => {
      const end = performance.now() + (index % 100 === 99 ? 15 : 0)
      while (performance.now() < end);
      return total + index
    },
    0,
    { combine: (one, other) => one + other },
  )
  assert.equal(sum, (3000 * 2999) / 2)
})

test('a full zone is waited for, and what it did not take runs once', async () => {
  for (const settings of [{ tasksMax: 1 }, { queueBytesMax: 2000 }]) {
    await inZone({ workers: 1, ...settings }, async (own) => {
      const cells = new Int32Array(new SharedArrayBuffer(4 * 200))
      const items = Array.from({ length: 200 }, (_, index) => [cells, index, 'x'.repeat(200)] as const)
      const count = ([cell, index]: readonly [Int32Array, number, string]): number => {
        Atomics.add(cell, index, 1)
        return index
      }
      const others = Promise.all([own.map(items, count), own.map(items, count, { settle: true })])
      const [values, settled] = await others
      assert.deepEqual([values, settled.map((each) => each.index)], [[...cells.keys()], [...cells.keys()]])
      assert.ok(settled.every((each) => each.status === 'fulfilled'))
      assert.deepEqual([...new Set(cells)], [2])
      // What it waits for may never come: the signal ends that as well.
      const gate = new Int32Array(new SharedArrayBuffer(4))
      const block = (cell: Int32Array): unknown => Atomics.wait(cell, 0, 0)
      const blocked = own.run(block, gate)
      await until(() => own.stats().running === 1)
      const filling = own.run((...text: unknown[]) => text.length, 'x'.repeat(1900))
      const stop = new AbortController()
      const waiting = own.map(items, count, { signal: stop.signal })
      setTimeout(() => stop.abort(new Error('enough')), 30)
      await assert.rejects(waiting, /enough/)
      Atomics.store(gate, 0, 1)
      Atomics.notify(gate, 0)
      await Promise.all([blocked, filling])
      assert.deepEqual([...new Set(cells)], [2])
    })
  }
})

test('a task of the zone waits for its own chunks; an error of a function is not a refusal', async () => {
  await inZone({ workers: 1, tasksMax: 1 }, async (own) => {
    const nested = await own.run(async () => {
      const { zone } = await import('../index.js')
      return (zone.current as Zone).map([1, 2, 3, 4, 5, 6, 7, 8], (item) => item * 2)
    })
    assert.deepEqual(nested, [2, 4, 6, 8, 10, 12, 14, 16])
    const calls = new Int32Array(new SharedArrayBuffer(4))
    const failing = async (cell: Int32Array): Promise<never> => {
      Atomics.add(cell, 0, 1)
      const { ZoneError } = await import('../index.js')
      throw new ZoneError('ZONE_FULL', { zone: 'another', tasksMax: 1 })
    }
    await assert.rejects(own.map([calls], failing), { code: 'ZONE_FULL' })
    assert.equal(Atomics.load(calls, 0), 1)
  })
})

test('an error ends what comes after it at once, and is thrown when those before it have ended', () =>
  inZone({ workers: 2 }, async (own) => {
    const ITEMS = 400
    // All but the one that fails wait for the third cell.
    const slowly = async ({ n, cells }: { n: number; cells: Int32Array }): Promise<number> => {
      if (n === 1) throw new RangeError('one')
      while (Atomics.load(cells, 2) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      Atomics.add(cells, n === 0 ? 0 : 1, 1)
      return n
    }
    await own.map([1, 2], (x) => x)
    for (const options of [{ chunkMax: 1 }, { chunkMax: 1, aheadMax: ITEMS }]) {
      let cells = new Int32Array(new SharedArrayBuffer(12))
      let read = 0
      const source = function* (): Generator<{ n: number; cells: Int32Array }> {
        for (; read < ITEMS; read++) yield { n: read, cells }
      }
      const all = async (): Promise<void> => {
        for await (const _ of own.map(source(), slowly, options));
      }
      const before = setTimeout((gate) => Atomics.store(gate, 2, 1), 300, cells)
      await assert.rejects(all(), { message: 'one' })
      clearTimeout(before)
      assert.equal(cells[0], 1, 'the one before it has ended')
      assert.ok(read < 50 && Number(cells[1]) < 50, `${read} were read and ${cells[1]} run`)
      read = 0
      cells = new Int32Array(new SharedArrayBuffer(12))
      await assert.rejects(own.forEach(source(), slowly, options), { message: 'one' })
      assert.ok(cells[0] === 0 && read < 50, 'forEach keeps no order and waits for none')
      Atomics.store(cells, 2, 1)
    }
  }))

test('the first error in the order of items ends it, and what has not started never does', async () => {
  const seen = new Int32Array(new SharedArrayBuffer(4))
  const items = Array.from({ length: 1000 }, (_, index) => [seen, index] as const)
  const failing = ([seen, index]: readonly [Int32Array, number]): void => {
    Atomics.add(seen, 0, 1)
    if (index === 20) throw new RangeError('item 20')
    if (index === 21) throw new TypeError('item 21')
  }
  await assert.rejects(here.map(items, failing, { chunkMax: 4 }), new RangeError('item 20'))
  assert.ok(Atomics.load(seen, 0) < 100, `${Atomics.load(seen, 0)} ran`)
  assert.equal(await here.run(() => 'alive'), 'alive')
})

for (const how of ['map', 'settle', 'reduce', 'forEach'] as const) {
  test(`${how}: a chunk of many items ends with the one in progress when its signal is aborted`, async () => {
    const own = zone.create(`parallel.stop.${how}`, { workers: 2, graceMs: 15_000 })
    try {
      const started = new Int32Array(new SharedArrayBuffer(4))
      const items = Array.from({ length: 16_000 }, (_, index) => [started, index] as const)
      // Cheap ones first, so that chunks grow; then some that take a while.
      const slow = ([cell, index]: readonly [Int32Array, number]): number | Promise<number> => {
        if (index < 4000) return index
        Atomics.add(cell, 0, 1)
        if (index % 2 === 0) return new Promise((resolve) => setTimeout(resolve, 2, index))
        const end = performance.now() + 2
        while (performance.now() < end);
        return index
      }
      const stop = new AbortController()
      const { signal } = stop
      const fold = (sum: number, [cell, index]: readonly [Int32Array, number]): number => {
        if (index < 4000) return sum
        Atomics.add(cell, 0, 1)
        const end = performance.now() + 2
        while (performance.now() < end);
        return sum + index
      }
      const result =
        how === 'reduce'
          ? own.reduce(items, fold, 0, { signal, combine: (one, other) => one + other })
          : how === 'forEach'
            ? own.forEach(items, slow, { signal })
            : how === 'map'
              ? own.map(items, slow, { signal })
              : own.map(items, slow, { signal, settle: true })
      const failed = assert.rejects(result, /enough/)
      await until(() => Atomics.load(started, 0) > 10)
      stop.abort(new Error('enough'))
      const before = Atomics.load(started, 0)
      await failed
      await until(() => own.stats().running === 0)
      const after = Atomics.load(started, 0) - before
      assert.ok(after < 400, `${after} began after the abort`)
      assert.equal(own.stats().died, 0)
    } finally {
      await own.close()
    }
  })
}

test('an error of the source is the error, and an aborted signal its reason', async () => {
  async function* broken(): AsyncGenerator<number> {
    yield 1
    throw new Error('no more')
  }
  await assert.rejects(collected(here.map(broken(), (item) => item)), /no more/)
  const reason = new Error('enough')
  const aborted = AbortSignal.abort(reason)
  await assert.rejects(
    here.map([1], (item) => item, { signal: aborted }),
    reason,
  )
  const controller = new AbortController()
  let closed = false
  const silent: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => {
        closed = true
        return { done: true, value: undefined }
      },
    }),
  }
  const waiting = here.forEach(silent, () => {}, { signal: controller.signal })
  setImmediate(() => controller.abort(reason))
  await assert.rejects(waiting, reason)
  assert.ok(closed)
})

test('an invalid source, function or option is refused by name', async () => {
  const refused = async (body: () => unknown, name: RegExp): Promise<void> =>
    assert.rejects(async () => body(), { code: 'ZONE_ARGUMENT', message: name })
  for (const target of [here, zone.node]) {
    await refused(() => target.forEach(5 as never, () => {}), /the items must be .* received 5/)
    await refused(() => target.map('text' as never, () => {}), /the items/)
    await refused(() => target.reduce([], null as never, 0), /the second argument must be a function/)
    const iterated = target.map(new Set([1]), 5 as never)
    await refused(() => iterated.next(), /the second argument must be a function/)
    await refused(() => target.map([], () => {}, { chunkMax: 0 }), /^zone\.\w+\(\): chunkMax/)
    await refused(
      () => target.map([], () => {}, { pieces: 1 } as never),
      /unknown option "pieces"; the options are timeoutMs, signal, chunkMax/,
    )
    await refused(() => target.reduce([], () => 0, 0, { combine: 1 } as never), /^zone\.reduce\(\): combine/)
  }
})
