/**
 * Views beyond the plain case: what is not frozen, what is not consumed, what stays hot, what is let go of.
 *
 * And what hooks that read other values meanwhile must leave alone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { native } from '../native/index.ts'
import { move, register } from '../transport/index.ts'
import { toBeFrozen } from '../transport/internal.ts'
import { store, type Store, type StoreOptions } from './index.ts'
import { Views, type View } from './views.ts'

let last = 0
function made<Value = unknown>(settings?: StoreOptions): Store<Value> {
  return store.create<Value>(`views ${++last}`, settings)
}

function thrice(text: string): string {
  return text.repeat(3)
}

test("handles and functions in a view are this thread's own: neither frozen nor entered", () => {
  const [used, other] = [made<{ other: Store; fn: (text: string) => string; list: number[] }>(), made()]
  used.set('k', { other, fn: thrice, list: [1] })
  const view = used.view('k')
  assert.ok(view !== undefined && Object.isFrozen(view) && Object.isFrozen(view.list))
  assert.equal(view.other, other)
  assert.equal(Object.isFrozen(view.other), false)
  assert.equal(Object.isFrozen(view.fn), false)
  assert.equal(view.fn('ab'), 'ababab')
  made().set('still', 'works')
  other.set('k', 1)
  assert.equal(other.get('k'), 1)
})

test('what freezing cannot reach, or would break, is refused', () => {
  const used = made()
  const refused = [new Map(), new Set(), new Date(), new URL('a:b'), new Uint8Array(1), new ArrayBuffer(1)]
  for (const part of [...refused, new SharedArrayBuffer(1), /a/g, /a/y]) {
    used.set('k', { list: [part] })
    const where = { code: 'STORE_NOT_FREEZABLE', message: /value\.list\[0\]/ }
    assert.throws(() => used.view('k'), where, String(part))
  }
  used.set('k', /a+/iu)
  assert.deepEqual(
    [used.view('k')].map((found) => (found as RegExp).test('bAA')),
    [true],
  )
})

test('a refused view leaves a moved buffer to those who read', () => {
  const used = made()
  for (const text of ['', 'x'.repeat(300_000)]) {
    used.set('k', { buffer: move(new ArrayBuffer(8)), text })
    assert.throws(() => used.view('k'), { code: 'STORE_NOT_FREEZABLE', message: /moved/ })
    assert.equal((used.get('k') as { buffer: ArrayBuffer }).buffer.byteLength, 8)
  }
})

test('where memory of others is not allowed, views ask the core', () => {
  const { storeWords } = native
  const used = made<number[]>()
  used.set('k', [1])
  native.storeWords = () => undefined
  try {
    const view = used.view('k')
    assert.deepEqual([view, used.view('k') === view], [[1], true])
    used.set('k', [2])
    assert.deepEqual(used.view('k'), [2])
    used.delete('k')
    assert.equal(used.view('k'), undefined)
  } finally {
    native.storeWords = storeWords
  }
})

/** How often one key that is read all the time is lost to keys that are read now and then. */
function lost(way: 'get' | 'view'): number {
  const used = made<{ key: string }>({ entriesMax: 100 })
  const read = (key: string): boolean => {
    if (used[way](key) !== undefined) return true
    used.set(key, { key })
    return false
  }
  let count = 0
  for (let step = 0; step < 20_000; step++) {
    for (let times = 0; times < 20; times++) if (!read('hot')) count += 1
    read(`cold ${step % 150}`)
  }
  used.close()
  return count
}

test('what is read by views stays as hot as what is read by get', () => {
  assert.deepEqual([lost('get'), lost('view')], [1, 1])
})

test('every look counts as a hit, at the latest with the 64th', () => {
  const used = made<number>()
  used.set('a', 1)
  used.set('b', 1)
  for (let n = 0; n < 64 * 5; n++) assert.deepEqual([used.view('a'), used.view('b')], [1, 1])
  const { hits, misses } = used.stats()
  assert.ok(hits > 2 * (64 * 5 - 64) && hits <= 2 * 64 * 5, `${hits} hits`)
  used.view('none')
  used.set('a', 2)
  used.view('a')
  used.delete('b')
  used.view('b')
  assert.deepEqual([used.stats().hits, used.stats().misses - misses], [2 * 64 * 5 + 1, 2])
})

test('views are bounded in number and in bytes; the newest stays', () => {
  const views = new Views(new Uint32Array(1))
  const megabyte = 2 ** 20
  const view = (bytes: number): View => ({
    value: 1,
    index: 0,
    word: 0,
    version: 0,
    versionHigh: 0,
    deadline: 0,
    bytes,
    looks: 0,
  })
  const kept = (count: number): number =>
    Array.from({ length: count }, (_, n) => views.last(`k${n}`)).filter((one) => one !== undefined).length
  for (let n = 0; n < 200; n++) views.keep(`k${n}`, view(megabyte))
  assert.ok(kept(200) >= 32 && kept(200) <= 64, `${kept(200)} of 200 megabytes`)
  for (let n = 0; n < 200; n++) {
    views.keep('same', view(megabyte))
    views.forget('none')
  }
  assert.ok(kept(200) >= 31, 'one that is written again and again takes no more room')
  views.keep('large', view(100 * megabyte))
  assert.ok(views.unchanged('large') !== undefined)
})

test('a store that is closed or emptied lets go of what its views held', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (const end of [(used: Store) => used.close(), (used: Store) => used.clear()]) {
    const used = made()
    used.set('k', { list: [1] })
    const seen = new WeakRef(used.view('k') as object)
    end(used)
    for (let round = 0; round < 20 && seen.deref() !== undefined; round++) {
      await new Promise(setImmediate)
      gc()
    }
    assert.equal(seen.deref(), undefined)
    assert.ok(used.id)
  }
})

const side = made<number>()
side.set('x', 1)

/** Its load hook reads a store: what is read around it must not be let go of meanwhile. */
class Curious {
  readonly n: number
  constructor(n: number) {
    this.n = n
  }
}
register(Curious, {
  cid: 'views.test.Curious',
  save: ({ n }) => n,
  load: (n) => {
    const [used, key] = reading ?? []
    if (key !== undefined) used?.set(key, 0)
    return side.get('x') === 1 ? new Curious(n) : new Curious(-1)
  },
})
/** What the hook writes over while it is read. */
let reading: [Store, string] | undefined

test('a hook that reads a store leaves the memory of the value it is part of', () => {
  const used = made()
  for (const text of ['', 'x'.repeat(300_000)]) {
    used.set('k', { curious: new Curious(7), buffer: move(new ArrayBuffer(64)), text })
    reading = [used, 'k']
    const read = used.get('k') as { curious: Curious; buffer: ArrayBuffer }
    reading = undefined
    assert.deepEqual([read.curious.n, read.buffer.byteLength, used.get('k')], [7, 64, 0])
  }
})

class Loaded {
  readonly made: object

  constructor(made: object) {
    this.made = made
  }
}
const hidden = Symbol('hidden')
const shapes = [
  () => ({ list: [1] }),
  () => Object.defineProperty({}, 'list', { value: { deep: [1] } }),
  () => ({ [hidden]: { deep: [1] } }),
  () => {
    const inner = { deep: [1] }
    return Object.preventExtensions({ inner })
  },
  () => ({
    get never(): never {
      throw new Error('a getter ran')
    },
  }),
]
register(Loaded, {
  cid: 'test.Loaded',
  save: ({ made: { index } }: { made: { index?: number } }) => index ?? 0,
  load: (index) => shapes[index]() as Loaded,
})

/** Every object that can be reached from `root`, whatever the key; getters are not run. */
function partsOf(root: unknown, seen = new Set<object>()): Set<object> {
  if (typeof root !== 'object' || root === null || seen.has(root)) return seen
  seen.add(root)
  for (const key of Reflect.ownKeys(root)) partsOf(Reflect.getOwnPropertyDescriptor(root, key)?.value, seen)
  return seen
}

test('every part of a view is frozen, whichever way it was made', () => {
  const shared = { part: [{ deep: 1 }] }
  const cycle: { self?: unknown; list: unknown[] } = { list: [{}] }
  cycle.self = cycle
  const sparse: unknown[] = [{ first: 1 }]
  sparse[3_000_000] = { last: [1] }
  const pairs = Object.assign(Object.create(null) as object, { list: [[1.5, 2.5], { deep: [] }] })
  const chain = Array.from({ length: 900 }).reduce((inner: object) => ({ inner }), { end: [] })
  const values = [
    { id: 1, list: [[1, 2], [0.5], ['a', { deep: [null, {}] }]], none: undefined },
    [shared, shared, cycle],
    { rows: [sparse, sparse.slice(0, 2)] },
    { ['__proto__']: [1], pairs },
    chain,
    Array.from({ length: 2_000 }, (_, index) => ({ index, tags: ['a'] })),
    new Error('one', { cause: { deep: [1] } }),
  ]
  const used = made()
  const check = (value: unknown): void => {
    used.set('k', value)
    const view = used.view('k')
    for (const part of partsOf(view)) assert.ok(Object.isFrozen(part))
    assert.deepEqual(view, used.get('k'))
  }
  for (const value of values) check(value)
  for (let index = 0; index < shapes.length; index++) {
    used.set('k', { list: [new Loaded({ index }), { after: [] }] })
    for (const part of partsOf(used.view('k'))) assert.ok(Object.isFrozen(part), `shape ${index}`)
  }
  Reflect.defineProperty(Object.prototype, 'polluted', {
    value: { writable: true },
    enumerable: true,
    configurable: true,
  })
  try {
    check(values[0])
    assert.equal(Object.isFrozen(({} as { polluted: object }).polluted), false)
  } finally {
    Reflect.deleteProperty(Object.prototype, 'polluted')
  }
})

/** Whether the engine keeps the numbers of an array without an object for each. */
const areUnboxed = (() => {
  setFlagsFromString('--allow-natives-syntax')
  const asked = runInNewContext('(array) => %HasDoubleElements(array)') as (array: unknown) => boolean
  asked([]) // compiles it while the syntax is allowed
  setFlagsFromString('--no-allow-natives-syntax')
  return asked
})()

test('fractions of a view have objects before it is frozen, those of a get do not', () => {
  const used = made<number[]>()
  const fractions = Array.from({ length: 100 }, (_, index) => index / 7)
  used.set('k', fractions)
  const freeze = Object.freeze
  const frozen: boolean[] = []
  Object.freeze = (array: unknown) => {
    frozen.push(areUnboxed(array))
    return freeze(array)
  }
  try {
    used.view('k')
  } finally {
    Object.freeze = freeze
  }
  assert.deepEqual(frozen, [false])
  assert.equal(areUnboxed(used.get('k')), true)
})

test('arrays of fractions of any length and number are the same in views and copies', () => {
  const used = made<{ list: number[]; lists: number[][] }>()
  const odd = [NaN, -0, 0, Infinity, -Infinity, 5e-324, 2 ** 53, 1, -1, 0.5]
  for (const length of [4, 9, 254, 255, 256, 1000, 5000, 40_000]) {
    const list = Array.from({ length }, (_, index) => (index < odd.length ? odd[index] : index / 3))
    if (length === 4) list[2] = list[3] = 1.5
    const value = { list, lists: [list, list.slice(0, 4)] }
    used.set('k', value)
    const view = used.view('k')!
    const copy = used.get('k')!
    assert.deepStrictEqual([view, copy], [value, value], String(length))
    assert.ok(Object.isFrozen(view.list) && Object.isFrozen(view.lists[1]) && view.list === view.lists[0])
    assert.throws(() => view.list.push(1), TypeError)
    copy.list[0] = 1
    copy.list.push(0.25)
    assert.deepStrictEqual(used.view('k'), value)
  }
})

test('arrays of fractions among other parts, in any order of keys, are frozen with them', () => {
  const used = made<Record<string, unknown>>()
  const fractions = [0.1, 0.2, 0.3, 0.4]
  const [b, two, one, first] = Array.from({ length: 4 }, () => fractions.slice())
  const value = { b, 2: two, 1: one, a: [first, [{}]] }
  used.set('k', value)
  const view = used.view('k')!
  assert.deepStrictEqual(view, value)
  const a = view.a as object[][]
  for (const part of [view, view.b, view[1], view[2], a, ...a, a[1][0]]) assert.ok(Object.isFrozen(part))
})

test('a view that fails leaves copies as they are kept otherwise', () => {
  class Failing {
    n = 0.5
  }
  register(Failing, {
    cid: 'views.test.Failing',
    save: ({ n }) => [n, n, n, n],
    load: () => assert.fail('no'),
  })
  const used = made()
  for (const text of ['', 'x'.repeat(300_000)]) {
    used.set('k', [new Failing(), text])
    assert.throws(() => used.view('k'))
    assert.equal(toBeFrozen.numbers, undefined)
    used.set('k', [0.1, 0.2, 0.3, 0.4])
    assert.equal(areUnboxed(used.get('k')), true)
  }
})
