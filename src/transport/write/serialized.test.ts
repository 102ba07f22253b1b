/**
 * Which first values V8's serializer writes, and that those arrive unchanged; property.test.ts has values of
 * any kind.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../codec.ts'
import { TAG_SERIALIZED } from '../format.ts'
import { setFirstLeaves } from './kinds.ts'
import '../tables.test.support.ts'

const HEADER_BYTES = 6

/** What arrives of a first value, and whether V8 wrote it. */
function sent<Value>(value: Value): { arrived: Value; isSerialized: boolean } {
  setFirstLeaves(Infinity)
  try {
    const frame = encode(value, { mode: 'process' })
    const arrived = decode(frame, { mode: 'process' }) as Value
    return { arrived, isSerialized: frame[HEADER_BYTES] === TAG_SERIALIZED }
  } finally {
    setFirstLeaves(0)
  }
}

test('what JSON would change and V8 carries is written by V8', () => {
  for (const value of [
    { a: -0, b: Number.NaN, c: [Number.NEGATIVE_INFINITY] },
    { a: undefined, b: [undefined, null] },
    { a: 1n, b: -(2n ** 200n), c: 0n },
    [new Date(0), { at: new Date(-1) }],
    {
      map: new Map<unknown, unknown>([
        [1, 'a'],
        [{ k: 1 }, new Set(['x', [2n]])],
        ['', undefined],
      ]),
    },
    { text: 'a'.repeat(8192), other: 'ж\ud800'.repeat(4096) },
    JSON.parse('{ "__proto__": { "a": 1 }, "2": 1, "1": 2 }', (key, own: unknown) =>
      key === 'a' ? 1n : own,
    ) as object,
    Array.from({ length: 8000 }, (_, at) => (at % 2 === 0 ? undefined : 'x')),
  ]) {
    const { arrived, isSerialized } = sent(value)
    assert.equal(isSerialized, true)
    assert.deepStrictEqual(arrived, value)
  }
  assert.ok(Number.isNaN(sent([new Date(Number.NaN)]).arrived[0].getTime()))
  assert.deepEqual(Object.keys(sent({ b: 1n, 2: 0, a: 0, 1: 0 }).arrived), ['1', '2', 'b', 'a'])
})

test('all else goes the way of later values, and arrives as those do', () => {
  class Name {}
  for (const value of [
    // eslint-disable-next-line no-sparse-arrays
    [1n, , 3],
    { a: 1n, b: new Uint8Array(2) },
    { a: 1n, b: /x/ },
    [new Error('e'), 1n],
    { a: 1n, b: new Number(1) },
    { a: 1n, b: Object.assign(Object.create(null) as object, { a: 1 }) },
    { a: 1n, text: 'a'.repeat(8193) },
    [1n, new Array(1025).fill(1)],
    new Array(8193).fill(undefined),
    [1n, Array.from({ length: 8192 }, () => ({}))],
  ]) {
    const { arrived, isSerialized } = sent(value)
    assert.equal(isSerialized, false)
    assert.deepStrictEqual(arrived, value)
  }
  assert.throws(() => sent({ a: 1n, list: [{ name: new Name() }] }), /value\.list\[0\]\.name/)
  assert.throws(() => sent({ a: 1n, do: Symbol('s') }), /value\.do/)
})

test('fields that do not travel do not, whoever writes the value', () => {
  const list = Object.assign([1n, 2n], { extra: 1 })
  const at = Object.assign(new Date(5), { extra: 1 })
  const map = Object.assign(new Map([[1, 1n]]), { extra: 1 })
  const hidden = Object.defineProperty({ a: 1n }, 'extra', { value: 1 })
  const symbol = { a: 1n, [Symbol('extra')]: 1 }
  for (const [value, plain] of [
    [list, [1n, 2n]],
    [at, new Date(5)],
    [map, new Map([[1, 1n]])],
    [hidden, { a: 1n }],
    [symbol, { a: 1n }],
  ])
    assert.deepStrictEqual(sent([value]).arrived, [plain])
})

test('what got the prototype of plain objects is one, and a class that extends a kind is refused', () => {
  for (const made of [
    new Map([[1, 2]]),
    new Set([1]),
    new ArrayBuffer(1),
    new Uint8Array(1),
    new Date(0),
    [1],
  ]) {
    const value = Object.setPrototypeOf(Object.assign(made, { own: 1n }), Object.prototype) as object
    const { isSerialized, arrived } = sent([value])
    assert.equal(isSerialized, false)
    assert.equal(Object.getPrototypeOf(arrived[0]), Object.prototype)
    assert.equal((arrived[0] as { own: unknown }).own, 1n)
  }
  for (const prototype of [Date.prototype, Map.prototype, Set.prototype])
    assert.throws(() => sent([1n, Object.create(prototype)]), { code: 'TRANSPORT_REFUSED' })
})

test('an object that is met twice is one, and a cycle is a cycle', () => {
  const shared = { at: new Date(1) }
  const { arrived } = sent({ first: shared, list: [shared, shared.at], map: new Map([[shared, shared]]) })
  assert.equal(arrived.list[0], arrived.first)
  assert.equal(arrived.list[1], arrived.first.at)
  assert.equal(arrived.map.get(arrived.first), arrived.first)
  const cycle: Record<string, unknown> = { at: 1n }
  cycle['self'] = [cycle]
  const around = sent(cycle).arrived
  assert.equal((around['self'] as unknown[])[0], around)
  let unfolded: unknown[] = [1n]
  for (let depth = 0; depth < 40; depth++) unfolded = [unfolded, unfolded]
  assert.equal(sent(unfolded).isSerialized, false)
})

test('a Proxy is what it shows; a getter that encodes, and one that throws, are asked again', () => {
  assert.deepEqual(sent([new Proxy({ a: 1n }, {})]).arrived, [{ a: 1n }])
  const value = {
    get inner() {
      return encode({ b: 1n }, { mode: 'process' }).length
    },
    at: new Date(5),
  }
  assert.deepEqual(sent(value).arrived.at, new Date(5))
  let reads = 0
  const failing = {
    a: 1n,
    get b() {
      if (++reads > 1) throw new Error('of the program')
      return 1
    },
  }
  assert.throws(() => sent(failing), /of the program/)
})

test('the bytes of a frame that others wrote are not read', () => {
  setFirstLeaves(Infinity)
  const frame = encode({ a: 1n }, { mode: 'process' }).slice(0, -8)
  setFirstLeaves(0)
  assert.equal(frame[HEADER_BYTES], TAG_SERIALIZED)
  frame[1] = 1
  assert.throws(() => decode(frame), { code: 'TRANSPORT_MALFORMED' })
})

test('damaged bytes are a TransportError or a value', () => {
  setFirstLeaves(Infinity)
  const frame = encode({ a: 1n, at: [new Date(0)], map: new Map([['k', -0]]) }, { mode: 'process' })
  setFirstLeaves(0)
  for (let at = HEADER_BYTES + 1; at < frame.length - 8; at++)
    for (const change of [1, 0x40, 0xff]) {
      const damaged = frame.slice()
      damaged[at] ^= change
      try {
        decode(damaged, { mode: 'process' })
      } catch (error) {
        assert.match((error as { code: string }).code, /^TRANSPORT_/, String(error))
      }
    }
})
