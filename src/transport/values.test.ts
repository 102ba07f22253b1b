/**
 * Every kind of value that can travel arrives as it was, through every door.
 *
 * `same.test.support.ts` is the oracle; `check` sends each value until generated code has taken over.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { TAG_VIEW, VIEW_KINDS } from './format.ts'
import { decode, encode } from './codec.ts'
import { FrameWriter, readFrame } from './frame.ts'
import { setFirstLeaves } from './write/kinds.ts'
import { memoryInUse } from './hostile.test.support.ts'
import { assertSame } from './same.test.support.ts'
import './tables.test.support.ts'

/** Objects of one shape before its code is generated, and some after. */
const SIGHTINGS = 40

/** Objects of one shape that are written as a thread writes its first ones. */
const PLAIN_SIGHTINGS = 4

/** `make()` travels by every way there is and arrives the same: first in loops, then in generated code. */
function check(make: () => unknown): void {
  const writer = new FrameWriter(new Uint8Array(4096))
  const scratch = new Uint8Array(4096)
  const own = new FrameWriter(scratch)
  for (let sighting = 0; sighting < SIGHTINGS; sighting++) {
    setFirstLeaves(sighting < PLAIN_SIGHTINGS ? Infinity : 0)
    const value = make()
    assertSame(decode(encode(value)), value)
    assertSame(decode(encode(value, { mode: 'process' }), { mode: 'process' }), value)
    const end = own.write(value, 5)
    const far =
      end < 0
        ? readFrame(own.overflow as Uint8Array, 0, (own.overflow as Uint8Array).length)
        : readFrame(scratch, 5, end)
    assertSame(far, value)
    writer.write(value, 4095)
    assertSame(readFrame(writer.overflow as Uint8Array, 0, (writer.overflow as Uint8Array).length), value)
  }
}

const keyed = (count: number, value: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key${index}`, value(index)]))

const primitives: unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  -0,
  1,
  127,
  128,
  -1,
  32767,
  32768,
  -32768,
  -32769,
  2 ** 31 - 1,
  -(2 ** 31),
  2 ** 31,
  2 ** 53,
  0.1,
  -1e300,
  5e-324,
  NaN,
  Infinity,
  -Infinity,
  0n,
  1n,
  -1n,
  255n,
  256n,
  -(2n ** 64n),
  10n ** 400n,
  '',
  'a',
  'short',
  'exactly 8',
  'x'.repeat(63),
  'x'.repeat(64),
  'x'.repeat(65_535),
  'x'.repeat(65_536),
  'é'.repeat(70),
  'ж',
  '\0',
  '\ud800',
  'a\udfffb',
  '😀'.repeat(100),
  'ÿ',
  '\u0100',
]

test('a primitive arrives as itself, alone, in a field and in an array', () => {
  for (const primitive of primitives) {
    check(() => primitive)
    check(() => ({ primitive, again: primitive }))
    check(() => [primitive, [primitive]])
  }
})

test('many texts keep their order across chunks', () => {
  check(() => Array.from({ length: 300 }, (_, index) => `${index}`.repeat(index)))
  for (const length of [8191, 8192, 8193, 32_768, 65_535, 65_536])
    check(() => ['é', 'a'.repeat(length), { b: 'ж'.repeat(length), c: '', d: 'd' }, 'e'.repeat(length), 'ж'])
  check(() => ['a'.repeat(32_767), 'bc', 'd'.repeat(32_768), '', 'é', 'ж'.repeat(40_000), 'end'])
  check(() => keyed(100, (index) => (index % 7 === 0 ? 'ж'.repeat(index * 9) : 'z'.repeat(index * 13))))
})

test('plain objects keep their keys in order, whatever the keys and however many', () => {
  check(() => ({}))
  check(() => keyed(10, (index) => index))
  check(() => keyed(100, (index) => `text ${index}`))
  check(() => keyed(300, (index) => index % 2 === 0))
  check(() => ({
    10: 'a',
    2: 'b',
    x: 'c',
    '-1': 'd',
    '': 'e',
    'two words': 'f',
    ключ: 'g',
    '"\\\n\u2028': 'h',
  }))
  check(() => ({ ['long'.repeat(100)]: 1 }))
  check(() => ({
    constructor: 1,
    toString: 2,
    hasOwnProperty: 3,
    valueOf: null,
  }))
  check(() => Object.freeze({ a: Object.freeze({ b: 1 }) }))
})

test('a key __proto__ is a field and changes no prototype', () => {
  check(() => JSON.parse('{"a":1,"__proto__":{"polluted":true},"b":2}') as unknown)
  check(() => Object.assign(Object.create(null) as object, { x: 1 }))
  check(() => {
    const bare = Object.create(null) as Record<string, unknown>
    bare['__proto__'] = { y: 1 }
    return bare
  })
  assert.equal(({} as { polluted?: unknown }).polluted, undefined)
})

test('objects keep their fields when values of all kinds take turns', () => {
  let turn = 0
  check(() => ({
    id: turn,
    value: primitives[turn++ % primitives.length],
    list: [turn, { turn }],
  }))
  check(() =>
    turn++ % 3 === 0 ? { a: 1, b: 2 } : turn % 3 === 0 ? { b: 2, a: 1 } : { a: 1, b: 2, c: { a: 1, b: 2 } },
  )
  check(() => ({
    inner:
      turn++ % 2 === 0
        ? { x: 1 }
        : turn % 3 === 0
          ? [1]
          : turn % 5 === 0
            ? new Map([[1, { x: 1 }]])
            : Buffer.from('b'),
  }))
})

test('arrays keep their length, holes and kinds of elements', () => {
  check(() => [])
  check(() => [1, 'a', null, [[]], {}, undefined])
  check(() => Array.from({ length: 300 }, (_, index) => index))
  check(() =>
    Array.from({ length: 300 }, (_, index) => ({
      index,
      name: `n${index}`,
      deep: { index },
    })),
  )
  check(() => [1.5, 2.5, -0, NaN, 5])
  check(() => [1.5, 2.5, 3.5, undefined])
  check(() => Object.assign([1, , 3], { length: 5 }))
  check(() => [, , ,])
  check(() => [undefined, , undefined])
})

test('an array of few elements and a huge length arrives in little memory', () => {
  const sparse: unknown[] = []
  sparse[3] = 'three'
  sparse[4_000_000_000] = { far: true }
  const frame = encode(sparse)
  const far = decode(frame) as unknown[]
  assert.ok(frame.length < 200)
  assert.equal(far.length, sparse.length)
  assert.deepEqual(Object.keys(far), Object.keys(sparse))
  assert.deepEqual(far[4_000_000_000], { far: true })
  assert.equal((decode(encode(new Array(2 ** 32 - 1))) as unknown[]).length, 2 ** 32 - 1)
})

test('the rare kinds keep what they are', () => {
  const lastIndexed = /a/g
  lastIndexed.lastIndex = 7
  const makers: (() => unknown)[] = [
    () => new Date(1_700_000_000_123),
    () => [new Date(-1), new Date(NaN)],
    () => [/x\/y/giu, /(?<name>a)/, lastIndexed, new RegExp('')],
    () =>
      new Map<unknown, unknown>([
        ['a', 1],
        [{ key: true }, new Map()],
        [NaN, -1],
      ]),
    () => new Set<unknown>([1, 'a', { b: 1 }, new Set([null])]),
    () => new URL('https://user:pw@example.org:8080/path/ü?q=1#hash'),
    () => [Object(1), Object('text'), Object(false), Object(5n)],
  ]
  for (const make of makers) check(make)
})

test('buffers and views keep bytes, kind, offset and the memory they share', () => {
  const bytes = () => Uint8Array.from({ length: 64 }, (_, index) => index * 5)
  check(() => bytes().buffer)
  check(() => new ArrayBuffer(0))
  const kinds = [
    Int8Array,
    Uint8Array,
    Uint8ClampedArray,
    Int16Array,
    Uint16Array,
    Int32Array,
    Uint32Array,
    Float32Array,
    Float64Array,
    BigInt64Array,
    BigUint64Array,
    DataView,
  ]
  type ViewOf = new (buffer: ArrayBuffer, offset?: number, count?: number) => object
  for (const View of kinds as ViewOf[])
    check(() => [new View(bytes().buffer), new View(bytes().buffer, 16, 2)])
  check(() => {
    const { buffer } = bytes()
    return {
      first: new Uint8Array(buffer, 1, 3),
      second: new Float64Array(buffer, 8),
      buffer,
      view: new DataView(buffer, 3),
    }
  })
  check(() => [Buffer.from('pooled'), Buffer.alloc(10, 7), Buffer.allocUnsafeSlow(5).fill(1)])
})

test('a buffer that can grow still can', { skip: !('resizable' in ArrayBuffer.prototype) }, () => {
  const Growing = ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer
  check(() => new Growing(10, { maxByteLength: 100 }))
})

test('float16 arrays travel where they exist', { skip: !('Float16Array' in globalThis) }, () => {
  const { Float16Array: View } = globalThis as unknown as {
    Float16Array: new (from: number[]) => object
  }
  check(() => new View([1.5, -2, 0.25]))
})

test('what was shared is shared, what was a cycle is a cycle', () => {
  const shared = { id: 1 }
  check(() => [shared, shared])
  check(() => ({
    a: shared,
    b: { c: [shared] },
    d: new Map([[shared, shared]]),
  }))
  const date = new Date(1)
  check(() => [date, { date }, new Set([date])])
  check(() => {
    const loop: Record<string, unknown> = { name: 'loop' }
    loop.self = loop
    loop.list = [loop, { loop }]
    return loop
  })
  check(() => {
    const map = new Map<unknown, unknown>()
    map.set('self', map).set(map, [map])
    const set = new Set<unknown>([map])
    return set.add(set)
  })
  check(() => {
    const list: unknown[] = []
    list.push(list, list)
    return list
  })
  check(() => {
    const error = new Error('loop')
    error.cause = { error }
    return error
  })
})

test('many shared objects arrive shared, also when the first thousands are not', () => {
  const many = Array.from({ length: 5000 }, (_, id) => ({ id }))
  assertSame(decode(encode([...many, many[0], many[4999]])), [...many, many[0], many[4999]])
})

test('a graph that would unfold without bound is written once', () => {
  let graph: unknown = { leaf: true }
  for (let level = 0; level < 500; level++) graph = [graph, graph]
  const started = process.cpuUsage().user
  const far = decode(encode(graph)) as unknown[]
  assert.equal(far[0], far[1])
  assert.ok(process.cpuUsage(undefined).user - started < 5_000_000)
})

test('a graph behind many objects that are not shared is not unfolded far', () => {
  let reads = 0
  const leaf = {
    get x() {
      reads += 1
      return 1
    },
  }
  let graph: unknown = leaf
  for (let level = 0; level < 21; level++) graph = [graph, graph]
  encode([Array.from({ length: 66_000 }, (_, id) => ({ id })), graph])
  assert.ok(reads < 500_000, `${reads} reads`)
})

test('objects and errors of another realm arrive as those of this one', () => {
  const code = '({a: [1, {b: 2}], e: new TypeError("x"), d: new Date(5), m: new Map([[1, new Set([2])]])})'
  const far = decode(encode(runInNewContext(code))) as {
    a: unknown
    e: Error
    d: unknown
    m: unknown
  }
  assert.deepEqual([far.d, far.m], [new Date(5), new Map([[1, new Set([2])]])])
  assert.deepEqual(far.a, [1, { b: 2 }])
  assert.ok(far.e instanceof TypeError)
  assert.equal(far.e.message, 'x')
})

test("a property added to Object.prototype is nobody's own", () => {
  const value = { a: 1, b: { a: 2 } }
  for (let sighting = 0; sighting < SIGHTINGS; sighting++) encode(value)
  Object.defineProperty(Object.prototype, 'added', {
    value: 9,
    enumerable: true,
    configurable: true,
    writable: true,
  })
  try {
    assert.deepEqual(Object.keys(decode(encode(value)) as object), ['a', 'b'])
    const own = JSON.parse('{"a":1,"added":2}') as object
    assert.deepEqual(Object.entries(decode(encode(own)) as object), Object.entries(own))
  } finally {
    delete (Object.prototype as { added?: unknown }).added
  }
})

test('a getter is read, a property that is not enumerable stays', () => {
  const value = Object.defineProperty(
    {
      get now() {
        return 5
      },
    },
    'hidden',
    { value: 1 },
  )
  assert.deepEqual(decode(encode(value)), { now: 5 })
})

test('nesting up to the limit arrives, beyond it is an error, both ways', () => {
  const nested = (levels: number) => {
    let value: unknown = 'end'
    for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value }
    return value
  }
  assertSame(decode(encode(nested(1000))), nested(1000))
  for (const levels of [1001, 5000, 1_000_000]) {
    assert.throws(() => encode(nested(levels)), { code: 'TRANSPORT_DEPTH' })
  }
})

test('reader and writer let go of everything a frame held', async () => {
  const hold = () => {
    const frame = encode(Array.from({ length: 50_000 }, (_, index) => [index + 0.5, 'text']))
    const shared = { shared: [1] }
    decode(frame)
    decode(encode([shared, shared, 'text'.repeat(20_000)]))
    return [new WeakRef(frame), new WeakRef(shared)]
  }
  const refs = hold()
  // A weak reference holds until the end of the turn in which it was made.
  await new Promise((resolve) => setImmediate(resolve))
  const before = memoryInUse()
  assert.deepEqual(
    refs.map((ref) => ref.deref()),
    [undefined, undefined],
  )
  const leaves = () => encode(Array.from({ length: 300_000 }, (_, id) => ({ id })))
  leaves()
  const grown = memoryInUse() - before
  assert.ok(grown < 1_000_000, `${grown} bytes are kept`)
})

test('a kind of view that this version of Node lacks is named', () => {
  const frame = encode(new Float64Array([1]))
  const at = frame.indexOf(TAG_VIEW) + 1
  frame[at] = VIEW_KINDS.indexOf('Float16Array')
  const whole = globalThis as { Float16Array?: unknown }
  const { Float16Array } = whole
  delete whole.Float16Array
  try {
    assert.throws(() => decode(frame), { code: 'TRANSPORT_KIND_UNKNOWN', message: /Float16Array/ })
  } finally {
    if (Float16Array !== undefined) {
      const property = { value: Float16Array, writable: true, configurable: true, enumerable: false }
      Object.defineProperty(whole, 'Float16Array', property)
    }
  }
})
