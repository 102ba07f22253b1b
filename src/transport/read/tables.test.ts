/**
 * Dictionaries whose keys come back: they are read into copies of a table, and arrive as structuredClone has
 * them, whatever their keys and however often they come.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { share } from '../../base/part.test.support.ts'
import { decode, encode } from '../codec.ts'
import { HEADER_BYTES } from '../format.ts'
import { readFrame } from '../frame.ts'
import { damaged, frameIn, memoryInUse, randomFrom, readHostile } from '../hostile.test.support.ts'
import { setFirstLeaves } from '../write/kinds.ts'
import { ReadShape } from './read-shapes.ts'
import '../tables.test.support.ts'

const MODES = ['process', 'self-contained'] as const

type Fields = Record<string, unknown>

setFirstLeaves(0)

/** Uses after which the reader has code for a shape. */
const OFTEN = 20
/** Keys that a prototype has, and keys that the engine keeps apart. */
const ODD_KEYS = [
  'toString',
  'constructor',
  '7',
  '0',
  '4294967295',
  'ключ',
  '',
  'a"b\u2028',
  '__defineGetter__',
]

function dictionary(name: string, count: number, value: (at: number) => unknown, odd = ODD_KEYS): Fields {
  const keys = [...odd, ...Array.from({ length: count - odd.length }, (_, at) => `${name} ${at}`)]
  return JSON.parse(JSON.stringify(Object.fromEntries(keys.map((key, at) => [key, value(at)])))) as Fields
}

/** As `structuredClone` makes it, field by field and in order. */
function assertCloned(far: unknown, near: Fields): void {
  const cloned = structuredClone(near)
  assert.deepEqual(far, cloned)
  assert.deepEqual(Object.entries(far), Object.entries(cloned))
  const fields = Object.values(Object.getOwnPropertyDescriptors(far))
  assert.ok(fields.every(({ writable, enumerable, configurable }) => writable && enumerable && configurable))
  assert.equal(Object.getPrototypeOf(far), Object.prototype)
}

function shapeOf(name: string): ReadShape {
  return new ReadShape(Array.from({ length: 200 }, (_, at) => `${name} ${at}`))
}

test('a shape of rows keeps its hidden class, and one among others is read into tables', () => {
  const [row, passing, narrow] = [shapeOf('row'), shapeOf('passing'), new ReadShape(['narrow'])]
  const anyClass = Object.create(null) as object
  for (let use = 0; use < OFTEN; use++) row.used()
  assert.notEqual(row.readOf(anyClass), undefined, 'the code of a literal, which classes can have too')
  for (let use = 0; use < OFTEN; use++) for (const shape of [passing, narrow, narrow]) shape.used()
  assert.notEqual(passing.read, undefined)
  assert.equal(passing.readOf(anyClass), undefined, 'the code of a table')
  passing.forget()
  assert.equal(passing.read, undefined)
})

test('a dictionary among a hundred has a reader of its own once it has come often enough', () => {
  const shapes = Array.from({ length: 100 }, (_, id) => shapeOf(`shape ${id}`))
  for (let use = 0; use < OFTEN; use++) for (const shape of shapes) shape.used()
  assert.ok(shapes.every(({ read }) => read !== undefined))
})

test('dictionaries whose keys come back arrive as structuredClone has them, each with its own values', () => {
  const makes = [128, 129, 256].flatMap((count) =>
    ['one', 'other'].map(
      (name) => (use: number) =>
        dictionary(`${name} of ${count}`, count, (at) =>
          at % 9 === 0 ? { inner: use } : at % 7 === 0 ? [`${use}`, null] : use + at / 4,
        ),
    ),
  )
  for (const mode of MODES) {
    let kept: { near: Fields; far: unknown }[] = []
    for (let use = 0; use < 2 * OFTEN; use++) {
      for (const { near, far } of kept) assertCloned(far, near)
      kept = makes.map((make) => {
        const near = make(use)
        return { near, far: decode(encode(near, { mode }), { mode }) }
      })
      // By the key that is no field of a literal, in a cycle, and twice.
      const odd = dictionary('odd', 200, (at) => at, ['__proto__'])
      assertCloned(decode(encode(odd, { mode }), { mode }), odd)
      const first = kept[0].near
      const cyclic: Fields = { ...dictionary('cyclic', 150, (at) => at), first, again: first }
      cyclic['itself'] = cyclic
      const far = decode(encode([cyclic, cyclic], { mode }), { mode }) as Fields[]
      assert.equal(far[0], far[1])
      assert.equal(far[0]['itself'], far[0])
      assert.equal(far[0]['first'], far[0]['again'])
      assertCloned(far[0]['first'], first)
    }
  }
})

test('a dictionary that is damaged or cut is refused or a value, once its reader has code', () => {
  const random = randomFrom(200)
  for (const mode of MODES) {
    const values = ['cut', 'also', 'passing'].map((name) =>
      dictionary(name, 200, (at) => (at % 2 === 0 ? at : `text ${at}`)),
    )
    // In turn: one after the other they would be taken for rows.
    for (let use = 0; use < 2 * OFTEN; use++)
      for (const value of values) assertCloned(read(frameIn(mode, value)), value)
    const [frame, other] = values.map((value) => frameIn(mode, value))
    const bodyEnd = HEADER_BYTES + new DataView(frame.buffer, frame.byteOffset).getUint32(2, true)
    for (let end = HEADER_BYTES + 1; end < bodyEnd; end++) {
      const cut = frame.slice(0, end)
      new DataView(cut.buffer).setUint32(2, end - HEADER_BYTES, true)
      assert.throws(() => read(cut), { name: 'TransportError' })
    }
    for (let round = 0; round < share(3000); round++) readHostile(damaged(frame, other, random))
  }
})

test('readers of thousands of dictionaries are forgotten rather than kept', () => {
  const before = memoryInUse()
  const shapes = Array.from({ length: 2000 }, (_, id) => shapeOf(`more ${id}`))
  for (let use = 0; use < OFTEN; use++) for (const shape of shapes) shape.used()
  const count = shapes.filter(({ read }) => read !== undefined).length
  assert.ok(count > 0 && count * 200 <= 32_768, `${count} readers`)
  const grown = memoryInUse() - before
  assert.ok(grown < 40_000_000, `grown by ${grown} bytes`)
})

/** As threads read what they hand to each other. */
function read(frame: Uint8Array): unknown {
  return readFrame(frame, 0, frame.length)
}
