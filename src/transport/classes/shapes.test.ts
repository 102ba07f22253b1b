/**
 * Shapes: when they get numbers and code, and that those which come once leave nothing behind.
 *
 * Also the whole of the codec where code must not be generated.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { leftOut, share } from '../../base/part.test.support.ts'
import {
  TAG_ARRAY8,
  TAG_JSON,
  TAG_OBJECT16,
  TAG_OBJECT_AGAIN,
  TAG_OBJECT_KEYS,
  TAG_OBJECT_PAIRS,
} from '../format.ts'
import { decode, encode } from '../codec.ts'
import { FrameWriter } from '../frame.ts'
import { kindOf, setFirstLeaves } from '../write/kinds.ts'
import { memoryInUse } from '../hostile.test.support.ts'
import { setProcessTables, TABLE_SHAPES } from '../process.ts'
import { LocalTables } from '../tables.test.support.ts'
import { ShapeTable, type WriteShape } from './shapes.ts'
import { Writer } from '../write/writer.ts'

const HEADER = 6
setFirstLeaves(0)

const tagOf = (value: unknown) => encode(value, { mode: 'process' })[HEADER]

test('a shape is numbered only after it has been used several times', () => {
  const value = () => ({ onlyHere: 1, andHere: 2 })
  assert.equal(tagOf(value()), TAG_OBJECT_PAIRS, 'the first one may be the last')
  for (let use = 1; use < 8; use++) assert.equal(tagOf(value()), TAG_OBJECT_KEYS)
  assert.equal(tagOf(value()), TAG_OBJECT16)
  for (let use = 0; use < 50; use++) assert.equal(tagOf(value()), TAG_OBJECT16)
  assert.equal(encode(value())[HEADER], TAG_OBJECT_KEYS, 'never in a self-contained frame')
})

test('a thread writes its first values without shapes', () => {
  const value = () => ({ list: [{ plainly: 1 }, { plainly: 2 }], end: null })
  setFirstLeaves(20)
  for (let use = 0; use < 10; use++) assert.equal(encode(value())[HEADER], TAG_OBJECT_PAIRS)
  assert.equal(tagOf(value()), TAG_OBJECT_PAIRS, 'the first one by shapes, whose keys are new')
  assert.equal(tagOf(value()), TAG_OBJECT_KEYS)
})

test('the first values of each kind are JSON where the frame stays in the process', () => {
  const one = (id: number) => [{ asJson: id, list: [null], end: '' }]
  const other = (id: number) => ({ id, 'of other keys': [true] })
  // A frame counts as 64 leaves more than it has.
  setFirstLeaves(580, 150)
  for (let use = 0; use < 3; use++) assert.equal(tagOf(one(use)), TAG_JSON)
  for (let use = 0; use < 2; use++) {
    const value = one(use)
    assert.equal(tagOf(value), TAG_ARRAY8, 'its budget is used up')
    assert.deepEqual(decode(encode(value, { mode: 'process' }), { mode: 'process' }), value)
  }
  assert.equal(tagOf(one(4)[0]), TAG_OBJECT_KEYS, 'by shapes, not by loops')
  assert.equal(tagOf(other(0)), TAG_JSON, 'another kind has a budget of its own')
  assert.notEqual(tagOf(other(1)), TAG_JSON, 'until all leaves are used up')
  setFirstLeaves(0)
})

test('what a kind is: the keys of the first object; of many keys, how many', () => {
  const kind = (value: object) => kindOf(value).number
  assert.equal(kind({ a: 1, b: 2 }), kind([['text', { a: 'x', b: null }], { c: 1 }]))
  assert.notEqual(kind({ a: 1, b: 2 }), kind({ b: 2, a: 1 }))
  assert.equal(kind([1, 2]), kind([]), 'no object')
  assert.equal(kind(new Uint8Array(1 << 20)), kind([]), 'not plain')
  assert.equal(kind([[[[{ a: 1 }]]]]), kind([]), 'too deep')
  const many = (from: string) => Object.fromEntries(Array.from({ length: 200 }, (_, at) => [from + at, at]))
  assert.equal(kind(many('a')), kind(many('b')))
})

test('a frame that is read more than once has shapes from the first object on', () => {
  const memory = new Uint8Array(4096)
  const kept = new FrameWriter(memory, true)
  setFirstLeaves(100)
  try {
    kept.write({ keptOnce: 1 }, 0)
    assert.equal(memory[HEADER], TAG_OBJECT_KEYS)
    // As many new keys as make other writers look up every eighth object only.
    for (let count = 0; count < 100; count++) {
      kept.write({ [`kept ${count}`]: 1 }, 0)
      assert.equal(memory[HEADER], TAG_OBJECT_KEYS)
    }
  } finally {
    setFirstLeaves(0)
  }
})

test('a frame with thousands of objects is written by shapes, however early', () => {
  setFirstLeaves(Infinity)
  const many = Array.from({ length: 5000 }, (_, id) => ({ id, early: true }))
  const frame = encode(many)
  setFirstLeaves(0)
  assert.ok(frame.includes(TAG_OBJECT_AGAIN))
  assert.deepEqual(decode(frame), many)
})

test('where keys are ever new, shapes that come back are found all the same', () => {
  const table = new ShapeTable()
  for (let id = 0; id < 1000; id++) assert.equal(table.find({ [`new${id}`]: 1, x: id }), undefined)
  let found: WriteShape | undefined
  for (let use = 0; use < 20; use++) found ??= table.find({ back: use })
  assert.deepEqual(found?.keys, ['back'])
  assert.equal(table.find({ back: 1 }), found)
})

test('a frame contains keys once, and in front of that those of the first object ever', () => {
  const list = Array.from({ length: 5 }, (_, rare) => ({
    rare,
    keyOfThisTestAlone: rare,
  }))
  encode(list[0])
  const frame = Buffer.from(encode(list))
  assert.equal(frame.indexOf('keyOfThisTestAlone'), frame.lastIndexOf('keyOfThisTestAlone'))
  assert.ok(frame.includes(TAG_OBJECT_AGAIN))
  assert.deepEqual(decode(frame, { mode: 'process' }), list)
})

test('a full process-wide table means keys in the frame, and nothing else', () => {
  const tables = new LocalTables(0)
  setProcessTables(tables)
  try {
    encode({ full: 0, table: 'x' })
    for (let use = 0; use < 100; use++) {
      const frame = encode({ full: use, table: 'x' }, { mode: 'process' })
      assert.equal(frame[HEADER], TAG_OBJECT_KEYS)
      assert.deepEqual(decode(frame, { mode: 'process' }), { full: use, table: 'x' })
    }
  } finally {
    setProcessTables(new LocalTables())
  }
})

test('a million shapes that come once leave neither numbers nor memory', () => {
  const tables = new LocalTables()
  setProcessTables(tables)
  const churn = (from: number, to: number) => {
    for (let id = from; id < to; id++) {
      const shape = (name: string, inner: unknown) => ({ [`${name}${id}`]: inner })
      const value = shape('a', shape('b', [shape('c', id), shape('d', 'text'), shape('e', null)]))
      const mode = id % 2 === 0 ? 'process' : 'self-contained'
      assert.deepEqual(decode(encode(value, { mode }), { mode }), value)
    }
  }
  churn(0, 20_000)
  const before = memoryInUse()
  // Five shapes each: a million in all, or that part of it which this run was given.
  churn(20_000, 20_000 + share(180_000))
  const grown = memoryInUse() - before
  assert.ok(grown < 4_000_000, `grown by ${grown} bytes`)
  assert.equal(tables.interned(TABLE_SHAPES, 1), undefined)
})

test('shapes in use beyond the budget of generated code still travel, in bounded memory', () => {
  const shape = (id: number) => ({
    [`w${id}`]: id,
    text: `${id}`,
    inner: { [`i${id % 500}`]: true },
  })
  const pass = () => {
    for (let id = 0; id < 3000; id++) {
      const value = shape(id)
      for (let use = 0; use < 20; use++)
        assert.deepEqual(decode(encode(value, { mode: 'process' }), { mode: 'process' }), value)
    }
  }
  pass()
  const before = memoryInUse()
  pass()
  pass()
  const grown = memoryInUse() - before
  assert.ok(grown < 30_000_000, `grown by ${grown} bytes`)
})

test('compiled writers stay in use after dictionary-mode objects and hundreds of hidden classes', () => {
  const shapes = new ShapeTable()
  const writer = new Writer(new Uint8Array(1024), shapes)
  const write = (value: object) => (writer.begin(++attempt, false), writer.value(value, 0))
  const spoilt = (id: number) => ({ id, label: `${id}`, rate: id / 3 })
  const other = (id: number) => ({ other: id, list: null, kept: `${id}` })
  for (let use = 0; use < 100; use++) [spoilt(use), other(use)].forEach(write)
  const compiled = [spoilt(0), other(0)].map((value) => countedWriter(shapes.find(value)))
  for (let id = 0; id < 2000; id++) {
    const dictionary: object = Object.assign({ dropped: 0 }, spoilt(id))
    delete (dictionary as { dropped?: number }).dropped
    const Made = function () {} as unknown as new () => object
    Made.prototype = Object.prototype
    const value = id % 2 === 0 ? dictionary : Object.assign(new Made(), spoilt(id))
    write(value)
    write([value, other(id)])
    write({ other: value, list: [other(id)], kept: '' })
  }
  // As the value itself, first in an array, in a field; the others after them and as what holds them.
  assert.deepEqual(
    compiled.map(({ written }) => written),
    [6000, 6000],
  )
})

test('where guesses are wrong they are not made, and made again where they are right', () => {
  const shapes = new ShapeTable()
  const writer = new Writer(new Uint8Array(65_536), shapes)
  const write = (value: object) => (writer.begin(++attempt, false), writer.value(value, 0))
  const one = (id: number) => ({ guessed: id })
  const other = (id: number) => ({ guessed: id, also: `${id}` })
  for (let use = 0; use < 100; use++) [one(use), other(use)].forEach(write)
  const counted = [one(0), other(0)].map((value) => countedWriter(shapes.find(value)))
  const wrong = () => counted.reduce((sum, { refused }) => sum + refused, 0)
  let found = 0
  const find = shapes.find.bind(shapes)
  shapes.find = (...given) => (found++, find(...given))
  const many = (make: (id: number) => object) => Array.from({ length: 500 }, (_, id) => make(id))
  const turns = (id: number) => (id % 2 === 0 ? one(id) : other(id))
  many(turns).forEach(write)
  write(many(turns))
  assert.ok(wrong() < 20, `${wrong()} wrong guesses`)
  found = 0
  many(one).forEach(write)
  write([...many(turns), ...many(other)])
  assert.ok(found < 520, `${found} look-ups`)
  assert.ok(wrong() < 40, `${wrong()} wrong guesses`)
  assert.equal(counted[0].written + counted[1].written, 500 + 500 + 500 + 1000)
})

let attempt = 1_000_000

/** Counts what the code of a shape writes. */
function countedWriter(shape: WriteShape | undefined): { written: number; refused: number } {
  const write = shape?.write
  assert.ok(shape !== undefined && write !== undefined, 'there is code for the shape')
  const counted = { written: 0, refused: 0 }
  shape.write = (sink, object, at) => {
    const end = write(sink, object, at)
    if (end >= 0) counted.written++
    else counted.refused++
    return end
  }
  return counted
}

test('a third shape whose set is full is kept as well', () => {
  const table = new ShapeTable()
  const values = ['customer', 'shipment', 'invoices'].map((name) => ({ [`${name}_ref_number`]: 1 }))
  for (const value of values) assert.equal(table.find(value), undefined, 'met once')
  const shapes = values.map((value) => table.find(value))
  for (let use = 0; use < 10; use++)
    assert.ok(values.every((value, index) => table.find(value) === shapes[index]))
})

test('shapes of one hash are written by the code of each', () => {
  const values = ['customer', 'shipment', 'invoices'].map((name, id) => ({ [`${name}_ref_number`]: id }))
  for (let use = 0; use < 100; use++)
    for (const value of [...values, values]) assert.deepEqual(decode(encode(value)), value)
  const table = new ShapeTable()
  for (let use = 0; use < 3; use++) for (const value of values) table.find(value)
  const [first, second] = values.map((value) => table.find(value))
  first!.write = () => -1
  assert.equal(table.find(values[1], false, false), first, 'whose code compares the keys')
  assert.equal(table.find(values[1]), second)
})

test('the table of shapes finds, keeps what is used and refuses what is too large', () => {
  const table = new ShapeTable()
  const find = (value: object) => table.find(value) ?? table.find(value)
  const kept = find({ kept: 1 })
  assert.ok(kept !== undefined)
  for (let id = 0; id < 50_000; id++) {
    table.find({ [`passing${id}`]: 1 })
    if (id % 10 === 0) assert.equal(table.find({ kept: id }), kept)
  }
  assert.notEqual(find({ a: 1, b: 2 }), find({ b: 1, a: 2 }))
  assert.equal(find({ ['x'.repeat(256)]: 1 }), undefined)
  assert.equal(find(Object.fromEntries(Array.from({ length: 257 }, (_, id) => [`k${id}`, id]))), undefined)
  assert.equal(
    find(Object.create({ inherited: 1 }, { own: { value: 1, enumerable: true } }) as object),
    undefined,
  )
})

for (const [row, flag] of ['--disallow-code-generation-from-strings', '--jitless'].entries()) {
  test(`everything works under ${flag}`, { timeout: 300_000, skip: leftOut(row) }, () => {
    const files = ['../values.test.js', './classes.test.js'].map((path) =>
      fileURLToPath(new URL(path, import.meta.url)),
    )
    for (const file of files)
      execFileSync(process.execPath, [flag, file], {
        stdio: 'pipe',
        env: { ...process.env, NODE_TEST_CONTEXT: '' },
      })
  })
}
