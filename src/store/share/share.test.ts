/**
 * Shared values in one thread: they read as the plain value does, refuse what they cannot keep, and are
 * frozen.
 *
 * The oracle is the plain value itself.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { handleOf } from '../../transport/internal.ts'
import { encode } from '../../transport/index.ts'
import { store } from '../index.ts'
import { recordOf, shareable } from './arbitrary.test.support.ts'

type Plain = Record<string, unknown>

/** Reads each part of a shared value in each way and compares it with the plain one. */
function check(shared: unknown, plain: unknown): void {
  if (Array.isArray(plain) || ArrayBuffer.isView(plain))
    checkList(shared as readonly unknown[], plain as never)
  else if (plain instanceof Date) assert.deepEqual(shared, plain)
  else if (typeof plain === 'object' && plain !== null) checkRecord(shared as Plain, plain as Plain)
  else assert.ok(Object.is(shared, plain), `${inspect(shared)} for ${inspect(plain)}`)
}

function checkList(list: readonly unknown[], plain: readonly unknown[]): void {
  const { length } = plain
  assert.equal(list.length, length)
  for (const index of [-length - 1, length, 1.5 + length, 2 ** 33, -(2 ** 33)])
    assert.equal(list.at(index), undefined)
  let index = 0
  for (const element of list) {
    check(element, plain[index])
    // Parts are entered once: four times at each level would be too often.
    for (const same of [list.at(index), list.at(index - length), list[index]])
      if (isLeaf(plain[index])) check(same, plain[index])
      else assert.equal(typeof same, 'object')
    index++
  }
  assert.equal(index, length)
}

const isLeaf = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || value instanceof Date

function checkRecord(record: Plain, plain: Plain): void {
  for (const key of Object.keys(plain)) check(record[key], plain[key])
  const keys: string[] = []
  for (const key in record) keys.push(key)
  assert.deepEqual(
    Object.keys(plain).filter((key) => !keys.includes(key)),
    [],
  )
}

/** The plain value as `toJSON` copies it: a list for each array, without holes. */
const copied = (value: unknown): unknown => (value as { toJSON(): unknown }).toJSON()

test('a shared value reads as the plain one, and its copy equals it', () => {
  fc.assert(
    fc.property(shareable, (plain) => {
      const shared = store.share(plain)
      check(shared, plain)
      assert.deepEqual(copied(shared), plain)
      const again = decodedHere(shared)
      check(again, plain)
    }),
    { numRuns: 100 },
  )
})

/** The reference as a value of a store, which another thread would read in the same way. */
function decodedHere(shared: unknown): unknown {
  using kept = store.create<unknown>('share here')
  kept.set('key', { shared })
  return (kept.get('key') as { shared: unknown }).shared
}

test('parts of a shared value can be shared again, in a new value', () => {
  fc.assert(
    fc.property(shareable, (plain) => {
      const shared = store.share(plain)
      assert.equal(store.share(shared), shared)
      const again = store.share({ first: shared, all: [shared, { shared }] })
      assert.deepEqual(copied(again), { first: plain, all: [plain, { shared: plain }] })
    }),
    { numRuns: 30 },
  )
})

interface Price {
  id: number
  name: string
  cents: number | null
  tags: string[]
  box?: { width: number }
}

const PRICES: Price[] = [
  { id: 1, name: 'tea', cents: 250, tags: ['hot', 'new'], box: { width: 3 } },
  { id: 2, name: 'ice', cents: null, tags: [] },
  { id: 3, name: 'té ☃', cents: 0.5, tags: ['new'] },
]

test('a list has the methods of a read-only array', () => {
  const list = store.share(PRICES)
  const names = (prices: readonly { readonly name: string }[]): string[] => prices.map(({ name }) => name)
  assert.deepEqual(names(list), ['tea', 'ice', 'té ☃'])
  assert.deepEqual(names(list.filter(({ tags }) => tags.includes('new'))), ['tea', 'té ☃'])
  assert.equal(list.find(({ id }) => id === 2)?.name, 'ice')
  assert.equal(
    list.find(({ id }) => id === 9),
    undefined,
  )
  assert.equal(
    list.findIndex(({ id }) => id === 3),
    2,
  )
  assert.equal(
    list.some(({ cents }) => cents === null),
    true,
  )
  assert.equal(
    list.every(({ cents }) => cents === null),
    false,
  )
  assert.equal(
    list.every((price, index, all) => price.id === index + 1 && all === list),
    true,
  )
  assert.equal(
    list.reduce((sum, { id }) => sum + id, 0),
    6,
  )
  const seen: number[] = []
  list.forEach(function (this: number, { id }, index) {
    seen.push(id + index + this)
  }, 10)
  assert.deepEqual(seen, [11, 13, 15])
  assert.deepEqual(names(list.slice(1, 2)), ['ice'])
  assert.deepEqual(names([...list.toSorted((a, b) => b.id - a.id)]), ['té ☃', 'ice', 'tea'])
  assert.equal(list.at(0)?.tags.join('+'), 'hot+new')
  assert.deepEqual(
    [...(list.at(0)?.tags.entries() ?? [])],
    [
      [0, 'hot'],
      [1, 'new'],
    ],
  )
  assert.deepEqual(([] as unknown[]).concat(list.at(0)?.tags), ['hot', 'new'])
  assert.equal(list.length, 3)
})

test('JSON, copies and the console show a shared value as the plain one', () => {
  const shared = store.share(PRICES)
  assert.equal(JSON.stringify(shared), JSON.stringify(PRICES))
  assert.equal(JSON.stringify({ of: shared.at(1) }), JSON.stringify({ of: PRICES[1] }))
  assert.deepEqual({ ...shared.at(0)?.toJSON(), id: 9 }, { ...PRICES[0], id: 9 })
  assert.equal(inspect(shared.at(0)), inspect(PRICES[0]))
  assert.match(inspect(shared), /^SharedList\(3\) \[/)
  assert.match(inspect(store.share(new Float64Array(101))), / more$/)
  assert.equal(String(shared.at(0)), '[object Object]')
  assert.equal((shared.at(0) as object).constructor, Object)
  assert.deepEqual(
    ['0' in (shared.at(0) as object), 'toString' in shared, 'id' in (shared.at(0) as object)],
    [false, true, true],
  )
})

/** What `of` inherits from, until `Object.prototype` or nothing. */
function prototypesOf(of: object): object[] {
  const prototype = Object.getPrototypeOf(of) as object | null
  if (prototype === null || prototype === Object.prototype) return []
  return [prototype, ...prototypesOf(prototype)]
}

test('no reader can change what other views of the layout show', () => {
  const shared = store.share(PRICES)
  const elements = Object.getPrototypeOf(shared[Symbol.iterator]()) as object
  const [record] = shared
  const all = [elements, ...prototypesOf(shared), ...prototypesOf(record), ...prototypesOf(record.tags)]
  assert.ok(all.length > 8)
  for (const prototype of all) {
    assert.ok(Object.isFrozen(prototype))
    for (const key of ['cents', 'at', 'next', 'toJSON', 'more'])
      assert.throws(() => void Object.defineProperty(prototype, key, { value: 66 }), TypeError)
    assert.throws(() => void Object.setPrototypeOf(prototype, { cents: 66 }), TypeError)
  }
  assert.throws(() => void Object.assign(record, { toJSON: () => 66 }), TypeError)
  for (const value of [shared, store.share([...PRICES])]) assert.deepEqual(copied(value), PRICES)
})

test('writing throws in strict mode', () => {
  const shared = store.share(PRICES) as unknown as (Plain & { id: number })[]
  const record = shared.at(0) as Plain
  const writes = [
    () => (record['id'] = 2),
    () => (record['more'] = 2),
    () => (shared[0] = record as never),
    () => (shared.length = 1),
    () => ((record['box'] as Plain)['width'] = 1),
    () => ((record['tags'] as string[])[0] = ''),
  ]
  for (const write of writes) assert.throws(write, TypeError)
  assert.deepEqual(copied(shared), PRICES)
  const date = store.share({ at: new Date(5) })
  date.at.setTime(7)
  assert.equal(date.at.getTime(), 5)
})

test('columns of many strings read the same, whether each is new, repeated or wide', () => {
  // Blocks of 1,024 rows in which nearly all are new let others be numbered without a look.
  const kinds: ((row: number) => unknown)[] = [
    (row) => `name ${row}`,
    (row) => `group ${row % 40}`,
    (row) => (row < 5000 ? `first ${row}` : `first ${row % 100}`),
    (row) => (row % 3000 === 2999 ? `schön ${row}` : `a\u0000${row}`),
    (row) => (row % 1500 === 7 ? `日本 ${row}` : 'same'),
    (row) => (row % 2 === 0 ? `even ${row}` : null),
    (row) => (row % 5 === 0 ? row : ''),
  ]
  const rows = Array.from({ length: 9000 }, (_, row) => kinds.map((kind) => kind(row)))
  assert.deepEqual(copied(store.share(rows)), rows)
  const records = rows.map(([name, group, first, wide]) => ({ name, group, first, wide }))
  assert.deepEqual(copied(store.share(records)), records)
})

test('an invalid date stays one', () => {
  // Not among the values of the property: Node 20 takes no two invalid dates for equal.
  const { at } = store.share({ at: new Date(NaN) })
  assert.ok(at instanceof Date && Number.isNaN(at.getTime()))
})

test('what changes after the call does not change the shared value', () => {
  const rows = [{ name: 'a', numbers: new Uint8Array([1]) }]
  const shared = store.share(rows)
  rows[0].name = 'b'
  rows[0].numbers[0] = 2
  rows.push(rows[0])
  assert.deepEqual(copied(shared), [{ name: 'a', numbers: new Uint8Array([1]) }])
  const copy = shared.at(0)?.numbers.toJSON()
  copy?.fill(9)
  assert.equal(shared.at(0)?.numbers.at(0), 1)
})

/** Each with the path and what is there. */
const REFUSED: readonly (readonly [value: object, path: string, what: RegExp])[] = [
  [[0, 1, 2, { onClick: () => 1 }], 'value[3].onClick', /function/],
  [{ a: { b: [Symbol('s')] } }, 'value.a.b[0]', /Symbol/],
  [{ 'a b': new Map() }, 'value["a b"]', /a Map \(share \[\.\.\.map/],
  [{ set: new Set() }, 'value.set', /a Set \(share \[\.\.\.set/],
  [[new (class Point {})()], 'value[0]', /Point/],
  [[new (class List extends Array {})()], 'value[0]', /array/],
  [[2n ** 63n], 'value[0]', /64 bits/],
  [[-(2n ** 63n) - 1n], 'value[0]', /64 bits/],
  [[new ArrayBuffer(1)], 'value[0]', /ArrayBuffer/],
  [[new DataView(new ArrayBuffer(1))], 'value[0]', /DataView/],
  [[/a/], 'value[0]', /RegExp|\/a\//],
  [[new Error('no')], 'value[0]', /Error/],
  [[Promise.resolve(1)], 'value[0]', /Promise/],
  [Object.fromEntries(Array.from({ length: 1025 }, (_, at) => [`k${at}`, at])), 'value', /1024 .*fields/],
  [
    [{ of: Object.fromEntries(Array.from({ length: 1025 }, (_, at) => [`k${at}`, at])) }],
    'value[].of',
    /1024/,
  ],
]

test('what cannot be shared is refused with its path', () => {
  for (const [value, path, what] of REFUSED) {
    assert.throws(
      () => store.share(value),
      (error: { code?: string; facts?: Plain }) => {
        assert.equal(error.code, 'STORE_NOT_SHAREABLE')
        assert.equal(error.facts?.['path'], path)
        return what.test(String(error.facts?.['what']))
      },
      inspect(value).slice(0, 80),
    )
  }
  for (const value of [1, 'text', null, undefined, () => 1, true] as unknown as object[])
    assert.throws(() => store.share(value), { code: 'STORE_ARGUMENT' })
  assert.throws(() => store.share([], { bytes: 1 } as never), { code: 'STORE_ARGUMENT' })
  assert.throws(() => store.share([], { bytesMax: 0 }), { code: 'STORE_ARGUMENT' })
})

test('a value that contains itself is refused, however fast it grows', () => {
  const record: Plain = { name: 'a' }
  record['child'] = { parent: record }
  const chain: Plain = {}
  let end = chain
  for (let level = 0; level < 20; level++) end = end['next'] = {}
  end['next'] = chain
  const list: unknown[] = []
  for (let index = 0; index < 1000; index++) list.push(list)
  for (const [value, path] of [
    [record, 'value.child.parent'],
    [chain, `value${'.next'.repeat(21)}`],
    [list, 'value[0]'],
  ] as const) {
    const expected = { code: 'STORE_NOT_SHAREABLE', facts: { path, what: 'an object that contains itself' } }
    assert.throws(() => store.share(value), expected)
  }
  let deep: unknown = 1
  for (let level = 0; level < 65; level++) deep = [deep]
  assert.throws(() => store.share(deep as object), { code: 'STORE_NOT_SHAREABLE', message: /64 levels/ })
  let fits: unknown = 1
  for (let level = 0; level < 60; level++) fits = { in: fits }
  assert.deepEqual(copied(store.share(fits as object)), fits)
  const twice = { of: 1 }
  assert.deepEqual(copied(store.share([twice, [twice]])), [twice, [twice]])
})

test('a value that needs more than bytesMax is refused', () => {
  const large = { code: 'STORE_SHARE_TOO_LARGE', facts: { bytesMax: 10_000 } }
  const values = [
    Array.from({ length: 3000 }, (_, index) => index),
    [new Uint8Array(10_001)],
    Array.from({ length: 2000 }, (_, index) => `text ${index}`),
    ['x'.repeat(10_001)],
    Array.from({ length: 5000 }, () => null),
  ]
  for (const value of values) assert.throws(() => store.share(value, { bytesMax: 10_000 }), large)
  assert.equal(store.share(new Uint8Array(5000), { bytesMax: 10_000 }).length, 5000)
})

test('what changes while it is read is refused or read once, and nothing crashes', () => {
  let reads = 0
  const rows = Array.from({ length: 3 }, () => ({
    get value(): unknown {
      return reads++ === 1 ? Symbol('once') : 1
    },
  }))
  assert.throws(() => store.share(rows), { code: 'STORE_NOT_SHAREABLE', message: /changes while/ })
  assert.deepEqual(copied(store.share(rows)), [{ value: 1 }, { value: 1 }, { value: 1 }])
})

test('holes are undefined; objects of other realms and without a prototype are records', () => {
  // oxlint-disable-next-line no-sparse-arrays -- the subject
  assert.deepEqual(copied(store.share([1, , 3])), [1, undefined, 3])
  const other = runInNewContext(
    '({ list: [1, { a: new Date(5) }], numbers: new Int8Array([1, 2]) })',
  ) as object
  assert.deepEqual(copied(store.share(other)), {
    list: [1, { a: new Date(5) }],
    numbers: new Int8Array([1, 2]),
  })
  assert.deepEqual(copied(store.share(Object.assign(Object.create(null) as Plain, { a: 1 }))), { a: 1 })
  assert.deepEqual(copied(store.share(Buffer.from([1, 2]))), new Uint8Array([1, 2]))
})

test('inherited fields are not fields, whatever is on Object.prototype', () => {
  Object.assign(Object.prototype, { polluted: 1 })
  try {
    const shared = store.share([{ a: 1 }, recordOf([['polluted', 2]])])
    assert.deepEqual(Object.keys(copied((shared as readonly unknown[]).at(0)) as object), ['a'])
    assert.deepEqual(Object.keys(copied((shared as readonly unknown[]).at(1)) as object), ['polluted'])
  } finally {
    Reflect.deleteProperty(Object.prototype, 'polluted')
  }
})

test('a record and a part of a list travel as references to the same memory', () => {
  const shared = store.share(PRICES)
  const found = decodedHere({ record: shared.at(0), tags: shared.at(2)?.tags }) as {
    record: Price
    tags: string[]
  }
  assert.equal(found.record.box?.width, 3)
  assert.deepEqual([...found.tags], ['new'])
  assert.throws(() => encode(shared), { code: 'TRANSPORT_REFUSED' })
})

test('more text than is kept is decoded again', () => {
  const texts = Array.from({ length: 40 }, (_, index) => String(index).padEnd(1_000_000, 'x'))
  const shared = store.share(texts)
  for (let round = 0; round < 2; round++)
    for (const [index, text] of texts.entries()) assert.equal(shared.at(index) === text, true)
})

test('a reference with another memory, or to a position outside of it, is refused', () => {
  const shared = store.share(PRICES)
  const handle = handleOf(shared)
  assert.ok(handle !== undefined)
  const saved = handle.save(shared) as Plain
  for (const damage of [
    { id: 0, memory: new SharedArrayBuffer(8) },
    { id: 0, memory: new SharedArrayBuffer(64) },
    { id: 0, memory: new ArrayBuffer(64) },
    { part: 99 },
    { at: -1 },
    { end: 99 },
    { at: 0.5 },
  ])
    assert.throws(
      () => handle.load({ ...saved, ...damage }),
      /TypeError|RangeError|SyntaxError/,
      inspect(damage),
    )
})

test('without code generation views read the same', () => {
  const program = `
    const { store } = await import('corespun')
    const row = { id: 1, name: 'a', list: [1, 'x', null, [true]], at: new Date(3), no: undefined }
    const plain = [row, { id: null, name: 'b' }]
    const shared = store.share(plain)
    const assert = (await import('node:assert/strict')).default
    assert.deepEqual(shared.toJSON(), plain)
    assert.deepEqual([...shared].map((row) => row.toJSON()), plain)
    assert.equal(shared.at(-1).name, 'b')
    assert.equal(shared.at(2), undefined)
    assert.throws(() => { 'use strict'; shared.at(0).id = 2 }, TypeError)
    for (const part of [shared, shared[Symbol.iterator](), shared.at(0)])
      assert.ok(Object.isFrozen(Object.getPrototypeOf(part)))
    console.log('same')`
  const flags = ['--disallow-code-generation-from-strings', '--input-type=module', '-e', program]
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8', timeout: 120_000 })
  assert.equal(stdout.trim(), 'same', stderr)
})

test('memory is freed when nothing refers to a shared value any more', () => {
  const program = `
    const { store } = await import('corespun')
    const lists = store.create('lists')
    let most = 0
    for (let version = 0; version < 40; version++) {
      lists.set('list', store.share({ numbers: new Float64Array(2 ** 21).fill(version) }))
      if (lists.view('list').numbers.at(-1) !== version) throw new Error('another version')
      await new Promise(setImmediate)
      most = Math.max(most, process.memoryUsage.rss())
    }
    console.log(most / 2 ** 20)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 120_000,
  })
  // All versions together are 640 MiB.
  assert.ok(Number(stdout) > 0 && Number(stdout) < 450, `${stdout} MiB ${stderr}`)
})
