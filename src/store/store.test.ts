/**
 * One thread's stores against a plain Map; limits, deadlines, views, watches, computations, handles.
 *
 * The clock is moved by hand (`storeAdvance`): nothing here waits for time.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { compute } from '../base/wait.test.support.ts'
import { native } from '../native/index.ts'
import { encode, register, decode } from '../transport/index.ts'
import { store, type Store, type StoreEvent, type StoreOptions } from './index.ts'

let last = 0
function made<Value = unknown>(settings?: StoreOptions): Store<Value> {
  return store.create<Value>(`test ${++last}`, settings)
}

type Step = readonly [kind: number, key: string, value: unknown]

/** Run the steps on a store and on a Map. */
function check(steps: readonly Step[]): void {
  const used = made()
  const model = new Map<string, unknown>()
  for (const [kind, key, value] of steps) {
    if (kind === 0) assert.equal(used.delete(key), model.delete(key))
    else if (kind === 1) assert.equal(used.has(key), model.has(key))
    else if (kind === 2) {
      assert.equal(used.compareAndSet(key, model.get(key), value), true)
      model.set(key, value)
      assert.equal(used.compareAndSet(key, { never: 'there' }, 0), false)
    } else if (kind === 3) {
      assert.deepEqual(
        used.update(key, (old) => [old, value]),
        [model.get(key), value],
      )
      model.set(key, [model.get(key), value])
    } else if (kind === 4) {
      used.clear()
      model.clear()
    } else {
      used.set(key, value)
      model.set(key, value)
    }
    assert.deepEqual(used.get(key), model.get(key))
    assert.equal(used.size, model.size)
  }
  assert.deepEqual(new Map(used.entries()), model)
  assert.deepEqual([...used.keys()].sort(), [...model.keys()].sort())
  used.close()
}

const KEY = fc.oneof(
  fc.constantFrom('', 'a', 'é', '键', '\ud800', 'a\0'),
  fc.string({ unit: 'binary', maxLength: 90 }),
)
const VALUE = fc.oneof(
  fc.integer(),
  fc.string(),
  fc.array(fc.integer()),
  fc.record({ id: fc.integer(), name: fc.string() }),
)

test('a store is a Map of copies', () => {
  const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 7 }), KEY, VALUE), { maxLength: 40 })
  fc.assert(fc.property(steps, check), { numRuns: 150 })
})

test("a value read is the reader's own", () => {
  const used = made<{ list: number[] }>()
  const value = { list: [1] }
  used.set('k', value)
  value.list.push(2)
  used.get('k')?.list.push(3)
  assert.deepEqual(used.get('k'), { list: [1] })
})

test('keys of 64 KiB and values of megabytes go in and out whole', () => {
  const used = made()
  const values = [
    'x'.repeat(200_000),
    'x'.repeat(261_900),
    '键'.repeat(3_000_000),
    new Uint8Array(5_000_000).fill(7),
  ]
  for (const key of ['k', 'y'.repeat(65_536), '键'.repeat(32_768)]) {
    for (const value of values) {
      used.set(key, value)
      assert.deepEqual(used.get(key), value)
    }
  }
  assert.equal(used.size, 3)
  assert.throws(() => used.set('键'.repeat(32_769), 1), { code: 'STORE_ARGUMENT' })
  assert.throws(() => used.get('y'.repeat(65_537)), { code: 'STORE_ARGUMENT' })
  assert.throws(() => used.get(7 as never), { code: 'STORE_ARGUMENT' })
})

test('undefined means no value, in every operation', async () => {
  const used = made<number | undefined>()
  const look = (): unknown[] => [used.has('k'), used.get('k'), used.view('k'), used.size]
  assert.throws(() => used.set('k', undefined), { code: 'STORE_ARGUMENT', message: /value .*delete\(\)/ })
  assert.throws(() => used.set('k', undefined, { ttlMs: 1000 }), { code: 'STORE_ARGUMENT' })
  assert.equal(await used.getOrCompute('k', () => undefined), undefined)
  assert.deepEqual(look(), [false, undefined, undefined, 0])
  const made1 = [used.getOrCompute('k', async () => undefined), used.getOrCompute('k', () => 5)]
  assert.deepEqual(await Promise.all(made1), [undefined, 5], 'who waits for a key without value computes it')
  assert.equal(used.compareAndSet('k', 5, undefined), true)
  assert.deepEqual(look(), [false, undefined, undefined, 0])
  assert.equal(used.compareAndSet('k', undefined, 6), true)
  used.update('k', () => undefined)
  assert.deepEqual(look(), [false, undefined, undefined, 0])
  assert.equal(used.increment('k'), 1)
})

test('increment refuses what would make a number that no addition leaves', () => {
  const used = made<number>()
  for (const by of [Number.NaN, Infinity, '1' as never]) {
    assert.throws(() => used.increment('k', by), {
      code: 'STORE_ARGUMENT',
      message: /by must be a finite number/,
    })
  }
  assert.deepEqual([used.increment('k', 0.5), used.increment('k', -2)], [0.5, -1.5])
})

test('a store that is not there is refused with the names of those that are', () => {
  const id = `known ${Math.random()}`
  using used = store.create(id)
  assert.equal(used.id, id)
  const known = (error: { code: string; facts: { known: string[] } }): boolean =>
    error.code === 'STORE_UNKNOWN' && error.facts.known.includes(id)
  assert.throws(() => store.get('nope'), known)
})

test('update whose function throws changes nothing; undefined deletes', () => {
  const used = made<number>({ ttlMs: 1e6 })
  used.set('k', 1)
  assert.throws(
    () =>
      used.update('k', () => {
        throw new RangeError('no')
      }),
    RangeError,
  )
  assert.equal(used.get('k'), 1)
  assert.equal(
    used.update('k', () => undefined),
    undefined,
  )
  assert.equal(used.has('k'), false)
})

test('increment counts from 0 and refuses values that are not numbers', () => {
  const used = made()
  assert.deepEqual([used.increment('n'), used.increment('n', 5), used.increment('n', -7)], [1, 6, -1])
  used.set('n', 'one')
  assert.throws(() => used.increment('n'), {
    code: 'STORE_NOT_NUMBER',
    message: /value of "n" in .* must be a finite number; found "one"/,
  })
  for (const [stored, by, found] of [
    [1.7e308, 1.7e308, '1.7e+308, whose sum with 1.7e+308 is not finite'],
    [-1.7e308, -1.7e308, '-1.7e+308, whose sum with -1.7e+308 is not finite'],
    [NaN, 1, 'NaN'],
    [Infinity, 1, 'Infinity'],
    [-Infinity, 1, '-Infinity'],
    [5n, 1, '5n'],
  ] as const) {
    used.set('n', stored)
    const message = `must be a finite number; found ${found}; set() replaces it`
    assert.throws(
      () => used.increment('n', by),
      (error: Error & { code?: string }) =>
        error.code === 'STORE_NOT_NUMBER' && error.message.endsWith(message),
    )
    assert.equal(used.get('n'), stored)
  }
})

test('entries expire; increment keeps their expiration', () => {
  const used = made({ ttlMs: 100 })
  used.set('default', 1)
  used.set('short', 1, { ttlMs: 10 })
  used.increment('default')
  native.storeAdvance(50)
  assert.deepEqual([used.get('default'), used.get('short'), used.has('short')], [2, undefined, false])
  used.increment('default')
  native.storeAdvance(60)
  assert.deepEqual([used.get('default'), used.size], [undefined, 0])
  assert.equal(used.stats().expirations, 2)
  for (const ttlMs of [0, -1, NaN, Infinity, '5' as never]) {
    assert.throws(() => used.set('k', 1, { ttlMs }), { code: 'STORE_ARGUMENT' })
  }
})

test('a full store evicts what is cold, or refuses', () => {
  const hot = made({ entriesMax: 10 })
  for (let key = 0; key < 100; key++) hot.set(String(key), key)
  assert.equal(hot.size <= 10 && hot.stats().evictions >= 90, true)
  const none = made({ entriesMax: 2, eviction: 'none' })
  none.set('a', 1)
  none.set('b', 1)
  assert.throws(() => none.set('c', 1), { code: 'STORE_FULL' })
  none.set('a', 2)
  none.delete('b')
  none.set('c', 1)
  assert.throws(() => made({ valueBytesMax: 50 }).set('k', 'x'.repeat(60)), { code: 'STORE_VALUE_TOO_LARGE' })
})

test('an unchanged view is the same frozen object', () => {
  const used = made<{ list: { n: number }[] } | Map<string, number>>()
  assert.equal(used.view('k'), undefined)
  used.set('k', { list: [{ n: 1 }] })
  const view = used.view('k') as { list: { n: number }[] }
  assert.equal(used.view('k'), view)
  assert.throws(() => view.list[0].n++, TypeError)
  assert.throws(() => view.list.push({ n: 2 }), TypeError)
  used.set('k', { list: [] })
  assert.deepEqual(used.view('k'), { list: [] })
  used.delete('k')
  assert.equal(used.view('k'), undefined)
  used.set('k', new Map())
  assert.throws(() => used.view('k'), { code: 'STORE_NOT_FREEZABLE' })
  used.close()
  assert.throws(() => used.view('k'), { code: 'STORE_CLOSED' })
})

test('a view that the core is asked of again is given anew only if it was written, whatever its size', () => {
  const opened = made<{ readonly text: string }>()
  for (const length of [10, 20_000, 400_000]) {
    const value = { text: 'x'.repeat(length) }
    opened.set('a', value)
    const first = opened.view('a')
    // Every 64th look asks.
    for (let look = 0; look < 200; look++) assert.equal(opened.view('a'), first)
    opened.set('b', { text: 'another' })
    assert.deepEqual([opened.get('a'), opened.get('b')], [value, { text: 'another' }])
    opened.set('a', { text: `${length}` })
    assert.deepEqual(opened.view('a'), { text: `${length}` })
    opened.delete('a')
    assert.equal(opened.view('a'), undefined)
    opened.set('a', value)
    assert.deepEqual(opened.view('a'), value)
    assert.notEqual(opened.view('a'), first)
  }
})

test('more keys than views are kept: each view is of its key, and those asked for again stay', () => {
  const used = made<{ key: string }>()
  const keys = Array.from({ length: 20_000 }, (_, at) => (at % 3 === 0 ? String(at) : `key ${at}`))
  keys.push('__proto__', 'constructor', 'toString')
  for (const key of keys) used.set(key, { key })
  const kept = used.view('key 1')
  for (const [at, key] of keys.entries()) {
    assert.equal(used.view(key)?.key, key)
    if (at % 1000 === 0) assert.equal(used.view('key 1'), kept)
  }
  for (const key of keys) assert.equal(used.delete(key), true)
  for (const key of keys) assert.equal(used.view(key), undefined)
  used.set('7', { key: '7' })
  used.view('7')
  assert.throws(() => used.view(7 as unknown as string), { code: 'STORE_ARGUMENT' })
})

test('names: taken, unknown, counted, free again after close', () => {
  const before = store.count
  const used = store.create('name')
  assert.equal(store.get('name'), used)
  assert.equal(store.count, before + 1)
  assert.throws(() => store.create('name'), { code: 'STORE_EXISTS' })
  assert.throws(() => store.get('no such name'), { code: 'STORE_UNKNOWN' })
  used.set('k', 1)
  used.close()
  for (const use of [
    () => used.get('k'),
    () => used.set('k', 1),
    () => used.delete('k'),
    () => used.has('k'),
  ]) {
    assert.throws(use, { code: 'STORE_CLOSED' })
  }
  assert.throws(() => used.watch('k'), { code: 'STORE_CLOSED' })
  assert.equal(store.create('name').get('k'), undefined)
  store.get('name').close()
})

test('getOrCreate refuses an option that differs from that of the existing store', () => {
  const used = store.getOrCreate('shared', { entriesMax: 10, ttlMs: 0.5 })
  // Absent options are not compared, and defaults are options like any other.
  const same: readonly StoreOptions[] = [
    {},
    { entriesMax: 10 },
    { ttlMs: 1 },
    { bytesMax: Infinity, eviction: 'lru', valueBytesMax: 64 * 1024 * 1024 },
  ]
  for (const options of same) assert.equal(store.getOrCreate('shared', options), used)
  const refused: readonly (readonly [options: StoreOptions, part: string])[] = [
    [{ entriesMax: 11 }, 'entriesMax must be 10, as the store "shared" exists with it; received 11'],
    [
      { entriesMax: 10, ttlMs: 60_000 },
      'ttlMs must be 1, as the store "shared" exists with it; received 60000',
    ],
    [{ bytesMax: 4096 }, 'bytesMax must be Infinity, as the store "shared" exists with it; received 4096'],
    [{ eviction: 'none' }, 'eviction must be "lru", as the store "shared" exists with it; received "none"'],
    [
      { valueBytesMax: 1 },
      'valueBytesMax must be 67108864, as the store "shared" exists with it; received 1',
    ],
  ]
  for (const [options, part] of refused)
    assert.throws(() => store.getOrCreate('shared', options), {
      code: 'STORE_ARGUMENT',
      message: `store.getOrCreate(): ${part}`,
    })
  used.close()
  // A closed store's name is free for other options.
  const next = store.getOrCreate('shared', { entriesMax: 11 })
  assert.notEqual(next, used)
  next.close()
})

test('invalid options are refused by name', () => {
  for (const settings of [
    { entriesMax: 0 },
    { bytesMax: 1.5 },
    { ttlMs: -1 },
    { eviction: 'hot' },
    { entriesmax: 5 },
  ]) {
    assert.throws(() => made(settings as never), { code: 'STORE_ARGUMENT' }, JSON.stringify(settings))
  }
  assert.throws(() => store.create(''), { code: 'STORE_ARGUMENT' })
})

test('a store travels as itself', () => {
  const [used, other] = [made(), made()]
  const [first] = decode(encode([used], { mode: 'process' }), { mode: 'process' }) as [Store]
  assert.equal(first, used)
  other.set('k', { used })
  assert.equal((other.get('k') as { used: Store }).used, used)
  used.close()
  assert.throws(() => (other.get('k') as { used: Store }).used.get('x'), { code: 'STORE_CLOSED' })
})

test('shared memory in a value stays shared, and outlives the entry', () => {
  const used = made()
  const shared = new Int32Array(new SharedArrayBuffer(4))
  used.set('k', shared)
  const read = used.get('k') as Int32Array
  used.delete('k')
  shared[0] = 9
  assert.equal(read[0], 9)
})

const outer = made<unknown>()

/** Its hooks use the very store that it is written to and read from. */
class Nosy {
  readonly n: number
  constructor(n: number) {
    this.n = n
  }
}
register(Nosy, {
  cid: 'store.test.Nosy',
  save: (nosy) => {
    outer.set('inner', 'i'.repeat(300))
    return { n: nosy.n, seen: outer.get('inner') }
  },
  load: (saved) => {
    outer.set('other', 'o'.repeat(500))
    assert.equal(outer.delete('other'), true)
    const { n, seen } = saved
    return new Nosy(seen === outer.get('inner') ? n : -1)
  },
})

test('hooks of classes may use the store that calls them', () => {
  const value = { before: 'b'.repeat(50), nosy: new Nosy(5), after: ['a'.repeat(50)] }
  outer.set('k', value)
  assert.deepEqual(outer.get('k'), value)
  assert.deepEqual(
    outer.update('k', (old) => old),
    value,
  )
})

test('getOrCompute: one computes, failures go to their caller, a waiter follows', async () => {
  const used = made<number>()
  let calls = 0
  const compute = async (): Promise<number> => {
    const call = ++calls
    await new Promise(setImmediate)
    if (call === 1) throw new RangeError('first')
    return call
  }
  const all = await Promise.allSettled([1, 2, 3].map(() => used.getOrCompute('k', compute)))
  assert.deepEqual(
    all.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message)),
    ['first', 2, 2],
  )
  assert.equal(await used.getOrCompute('k', compute), 2)
  assert.equal(calls, 2)
  await used.getOrCompute('short', () => 1, { ttlMs: 5 })
  native.storeAdvance(10)
  assert.equal(await used.getOrCompute('short', () => 2), 2)
})

test('getOrCompute: a write meanwhile wins; cycles are refused; waiting can be given up', async () => {
  const used = made<number>()
  assert.equal(await used.getOrCompute('k', () => (used.set('k', 7), 8)), 7)
  const cycle = used.getOrCompute('a', () => used.getOrCompute('b', () => used.getOrCompute('a', () => 1)))
  await assert.rejects(cycle, { code: 'STORE_COMPUTE_CYCLE' })
  let finish: (n: number) => void = () => {}
  const leading = used.getOrCompute('w', () => new Promise((resolve) => (finish = resolve)))
  const abort = new AbortController()
  const waiting = used.getOrCompute('w', () => 2, { signal: abort.signal })
  await new Promise(setImmediate)
  abort.abort(new Error('enough'))
  await assert.rejects(waiting, { message: 'enough' })
  finish(1)
  assert.equal(await leading, 1)
})

test('a watcher reports changes in order, and gaps', async () => {
  const used = made<number>()
  const watch = used.watch({ prefix: 'a' }, { eventsMax: 3 })
  used.set('ab', 1)
  used.set('b', 1)
  used.delete('ab')
  const seen: StoreEvent[] = []
  const next = async (): Promise<void> => void seen.push((await watch.next()).value as StoreEvent)
  await next()
  await next()
  const waiting = next()
  for (let n = 0; n < 5; n++) used.set('a键', n)
  await waiting
  used.clear()
  for (let n = 0; n < 4; n++) await next()
  const set = { type: 'set', key: 'a键' }
  const rest = [set, set, set, { type: 'gap', missed: 2 }, { type: 'clear' }]
  assert.deepEqual(seen, [{ type: 'set', key: 'ab' }, { type: 'delete', key: 'ab' }, ...rest])
  await watch.return()
  assert.equal((await watch.next()).done, true)
})

test('the signal of a watch aborts while its reader computes and changes keep coming', async () => {
  const used = made<number>()
  const abort = new AbortController()
  const watch = used.watch('k', { signal: abort.signal })
  setTimeout(() => abort.abort(), 10)
  let count = 0
  used.set('k', 0)
  for await (const _ of watch) {
    assert.ok(++count < 10_000, 'read on')
    compute(0.1)
    used.set('k', count)
  }
})

test('a watch ends with its signal, and with its store', async () => {
  const used = made<number>()
  const abort = new AbortController()
  const [first, second] = [used.watch('k', { signal: abort.signal }), used.watch('k')]
  const pending = [first.next(), second.next()]
  abort.abort()
  assert.equal((await pending[0])?.done, true)
  used.set('k', 1)
  assert.deepEqual((await pending[1])?.value, { type: 'set', key: 'k' })
  used.set('k', 2)
  used.close()
  const rest: StoreEvent[] = []
  for await (const event of second) rest.push(event)
  assert.deepEqual(
    rest.map((event) => event.type),
    ['set', 'clear'],
  )
})
