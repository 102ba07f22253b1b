/**
 * Which values a thread writes as JSON, and that those arrive unchanged.
 *
 * property.test.ts does the same with values of any kind; here are those that JSON would change.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../codec.ts'
import { TAG_JSON } from '../format.ts'
import { kindOf, setFirstLeaves } from './kinds.ts'
import { jsonText } from './json.ts'
import '../tables.test.support.ts'

const HEADER_BYTES = 6
const textOf = (value: object) => jsonText(value, kindOf(value))

/** Whether `value` is written as JSON; it arrives unchanged in any case. */
function check(value: object, isJson: boolean): void {
  setFirstLeaves(Infinity)
  try {
    const frame = encode(value, { mode: 'process' })
    assert.equal(frame[HEADER_BYTES] === TAG_JSON, isJson, `JSON: ${!isJson}`)
    assert.deepStrictEqual(decode(frame, { mode: 'process' }), value)
    const far = decode(encode([value], { mode: 'process' }), { mode: 'process' })
    assert.deepStrictEqual(far, [value])
  } finally {
    setFirstLeaves(0)
  }
}

test('what JSON carries unchanged is written as JSON', () => {
  for (const value of [
    {},
    [],
    [[[]], {}, [{}]],
    { b: 1, a: '', 2: null, 1: true, c: false },
    [0, -1, 1e21, 5e-324, 2 ** 53, 1.5],
    { fraction: 0.1, most: Number.MAX_VALUE, all: [0.5, 1e-7] },
    ['\ud800', '\u2028"\\\0', 'ж', 'a'.repeat(1024)],
    { ['ключ']: { '': 1 } },
    JSON.parse('{ "__proto__": { "a": 1 }, "constructor": 2 }') as object,
    Array.from({ length: 8192 }, () => ({})),
    new Array(1025).fill('a'),
  ])
    check(value, true)
})

test('what JSON changes, and what is long, is not', () => {
  for (const value of [
    { a: -0 },
    [0, -0],
    { a: { b: Number.NaN } },
    [1, Number.POSITIVE_INFINITY],
    { a: undefined },
    [undefined],
    // eslint-disable-next-line no-sparse-arrays
    [1, , 3],
    { a: 1n },
    { a: new Date(0) },
    { list: [new Map([[1, 2]])] },
    new Set([1]),
    Object.assign(Object.create(null) as object, { a: 1 }),
    { a: new Uint8Array(2) },
    ['a'.repeat(1025)],
    new Array(1025).fill(1),
    new Array(8193).fill(''),
    [1, 2].map(() => Array.from({ length: 4097 }, () => ({}))),
    { a: new Number(1) },
    { toJSON: 1 },
  ])
    check(value, false)
})

test('an object that is met twice is one, and a cycle is a cycle', () => {
  const shared = { a: 1 }
  assert.equal(textOf({ first: shared, list: [shared] }), undefined)
  const empty: unknown[] = []
  assert.equal(textOf([empty, empty]), undefined)
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  assert.equal(textOf(cycle), undefined)
  const many = Array.from({ length: 500 }, (_, id) => ({ id }))
  assert.equal(textOf([...many, many[250]]), undefined)
  assert.deepEqual(textOf(many), { text: JSON.stringify(many), leafCount: 500 })
})

test('what was given the prototype of plain objects is one, whatever JSON makes of it', () => {
  const list = Object.setPrototypeOf([1], Object.prototype) as object
  const boxed = [new Number(1), new String('ab'), new Boolean(true)]
  for (const one of boxed) Object.setPrototypeOf(Object.assign(one, { own: 1 }), Object.prototype)
  for (const value of [list, ...boxed]) {
    assert.equal(textOf(value), undefined)
    assert.equal(textOf([{ value }]), undefined)
  }
})

test('a toJSON method above all arrays and objects is not asked', () => {
  const prototype = Object.prototype as { toJSON?: unknown }
  Object.defineProperty(prototype, 'toJSON', { value: () => 'changed', configurable: true })
  try {
    check({ a: [1] }, false)
  } finally {
    delete prototype.toJSON
  }
})

test('a toJSON method that no loop lists is not asked', () => {
  const changed = { toJSON: { value: () => ({ changed: true }) } }
  for (const make of [() => ({ a: 1, b: 'text' }), () => [1, 'text', true]]) {
    const hidden = Object.defineProperties<object>(make(), changed)
    setFirstLeaves(Infinity)
    try {
      for (const [value, plain] of [
        [hidden, make()],
        [{ deep: [hidden] }, { deep: [make()] }],
      ])
        assert.deepEqual(decode(encode(value, { mode: 'process' }), { mode: 'process' }), plain)
    } finally {
      setFirstLeaves(0)
    }
  }
})

test('a getter called toJSON that no loop lists is not called', () => {
  const get = (): never => {
    throw new Error('of the program')
  }
  for (const first of [Infinity, 0]) {
    setFirstLeaves(first)
    try {
      const hidden = Object.defineProperty({ a: 1 }, 'toJSON', { get })
      assert.deepEqual(decode(encode(hidden, { mode: 'process' }), { mode: 'process' }), { a: 1 })
    } finally {
      setFirstLeaves(0)
    }
  }
})

test('what a program puts in place of JSON.stringify and JSON.parse is not called', () => {
  const replaced = { stringify: JSON.stringify, parse: JSON.parse }
  JSON.stringify = () => '"replaced"'
  JSON.parse = () => 'replaced'
  try {
    check({ a: [1, 'text'] }, true)
  } finally {
    Object.assign(JSON, replaced)
  }
})

test('a getter that encodes another value leaves the rest of its object to be looked at', () => {
  const value = {
    get inner() {
      return encode({ b: 1 }, { mode: 'process' }).length
    },
    at: new Date(5),
  }
  setFirstLeaves(Infinity)
  try {
    const far = decode(encode(value, { mode: 'process' }), { mode: 'process' }) as { at: Date }
    assert.deepEqual(far.at, new Date(5))
  } finally {
    setFirstLeaves(0)
  }
})

test('a value of which the engine makes no text is not; a getter that throws is asked again', () => {
  for (const error of [new RangeError('Invalid string length'), new Error('of the program')]) {
    let reads = 0
    const value = {
      get a() {
        if (++reads === 2) throw error
        return reads
      },
    }
    assert.equal(textOf(value), undefined)
  }
})

test('the text of a frame that others wrote is not parsed', () => {
  setFirstLeaves(Infinity)
  const frame = encode({ a: 1 }, { mode: 'process' }).slice(0, -8)
  setFirstLeaves(0)
  assert.equal(frame[HEADER_BYTES], TAG_JSON)
  frame[1] = 1
  assert.throws(() => decode(frame), { code: 'TRANSPORT_MALFORMED' })
})
