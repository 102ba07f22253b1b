/**
 * Objects of many keys, which are written from lists of their keys and values: however the engine keeps them,
 * whatever came before, and with getters.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { share } from '../../base/part.test.support.ts'
import { decode, encode } from '../codec.ts'
import { setFirstLeaves } from './kinds.ts'
import { register } from '../index.ts'
import { assertSame } from '../same.test.support.ts'
import { ShapeTable } from '../classes/shapes.ts'
import { listed, valuesOf } from './write-arrays.ts'

const MODES = ['process', 'self-contained'] as const

type Fields = Record<string, unknown>

/** The same fields as the engine keeps them after different histories. */
const histories: readonly ((entries: readonly (readonly [string, unknown])[]) => Fields)[] = [
  (entries) => Object.fromEntries(entries),
  (entries) => {
    const object: Fields = {}
    for (const [key, value] of entries) object[key] = value
    return object
  },
  // A table.
  (entries) => {
    const object: Fields = Object.fromEntries([['dropped', 0], ...entries])
    delete object['dropped']
    return object
  },
]

function sent(value: unknown): void {
  for (const mode of MODES) assertSame(decode(encode(value, { mode }), { mode }), value)
}

const leaf = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom<unknown>(null, undefined, true, [], {}, -0, 7n),
)
/** Around each number of keys at which the writer goes another way. */
const counts = fc.constantFrom(23, 24, 40, 41, 63, 64, 200, 256, 257)

for (const plainLeaves of [0, Infinity]) {
  test(`objects of many keys arrive, with ${plainLeaves} leaves by plain loops`, () => {
    setFirstLeaves(plainLeaves)
    const objects = counts.chain((count) =>
      fc.array(fc.tuple(fc.stringMatching(/^[a-zж]{1,9}$/), leaf), { minLength: count, maxLength: count }),
    )
    fc.assert(
      fc.property(objects, objects, (one, other) => {
        const all = [one, other].flatMap((entries) =>
          histories.map((make) => make(entries.map(([key, value], at) => [`${key}${at}`, value]))),
        )
        // In a field, in an array and as the value itself, by turns: what was last there is another object.
        for (let use = 0; use < 4; use++) {
          for (const [at, object] of all.entries()) {
            sent(object)
            sent([all[(at + 3) % all.length], { inner: object }, all[(at + 1) % all.length]])
          }
        }
        // Met twice: a graph.
        sent([all[0], { again: all[0] }, all[2], all[2]])
      }),
      { numRuns: share(30) },
    )
  })
}

test('a table is recognized, and its values are those of any other object', () => {
  const entries = Array.from({ length: 5000 }, (_, at) => [`key${at}`, at] as const)
  for (const make of histories)
    assert.deepEqual(valuesOf(make(entries), Object.keys(make(entries))), [...entries.keys()])
  // Of eleven turns: a thread can be interrupted.
  const tables = Array.from({ length: 11 }, () => listed(histories[2](entries)).isTable)
  assert.ok(tables.filter(Boolean).length > 5)
})

test('getters of large objects are called once a frame, in order, and may remove fields', () => {
  setFirstLeaves(0)
  const called: number[] = []
  const make = (count: number) => {
    const object: Fields = {}
    for (let at = 0; at < count; at++)
      Object.defineProperty(object, `got${at}`, { enumerable: true, get: () => called.push(at) && at })
    return object
  }
  for (const count of [30, 60, 200]) {
    for (let use = 0; use < 4; use++) {
      called.length = 0
      const far = decode(encode(make(count)))
      assert.deepEqual(called, [...Array(count).keys()])
      assert.deepEqual(Object.values(far as object), called)
    }
    for (let use = 0; use < 4; use++) {
      const object = Object.fromEntries(Array.from({ length: count }, (_, at) => [`field${at}`, at]))
      Object.defineProperty(object, 'field0', {
        enumerable: true,
        get() {
          delete object[`field${count - 1}`]
          return 0
        },
      })
      const far = decode(encode(object)) as Fields
      assert.equal(far['field1'], 1)
      assert.equal(far[`field${count - 1}`], undefined)
    }
  }
})

test('objects of a class with many fields arrive as objects of it', () => {
  class Wide {
    constructor(count: number, from: number) {
      for (let at = 0; at < count; at++) (this as unknown as Fields)[`field${at}`] = from + at
    }
  }
  register(Wide, { cid: 'large-objects.test/Wide' })
  for (let use = 0; use < 100; use++) {
    const far = decode(encode([new Wide(60, use), new Wide(30, use)]))
    assertSame(far, [new Wide(60, use), new Wide(30, use)])
    assert.ok((far as object[])[0] instanceof Wide)
  }
})

test('the table of shapes finds one shape by the object and by its keys', () => {
  const table = new ShapeTable()
  for (const count of [1, 41, 256, 257]) {
    const value = Object.fromEntries(Array.from({ length: count }, (_, at) => [`same${at}`, at]))
    const keys = Object.keys(value)
    assert.equal(table.findListed(keys, false), undefined, 'met once')
    const shape = table.find(value)
    assert.equal(shape === undefined, count > 256)
    assert.equal(table.findListed(keys, false), shape)
    assert.notEqual(table.findListed([...keys].reverse().concat('more'), true), shape ?? null)
  }
})
