/**
 * What was once lost or changed on its way without a word, and must not be again.
 *
 * Each test is a value that passes every check of its kind and lies at the edge of one: names beside
 * elements, fields of prototypes, code that was made for something else.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { register } from './classes/classes.ts'
import { decode, encode } from './codec.ts'
import { setFirstLeaves } from './write/kinds.ts'
import { assertSame } from './same.test.support.ts'
import './tables.test.support.ts'

setFirstLeaves(0)

/** Objects of one shape before its code is generated, and some after. */
const SIGHTINGS = 60

/** `value` there and back, in a frame of this process. */
const sent = <Value>(value: Value): Value =>
  decode(encode(value, { mode: 'process' }), { mode: 'process' }) as Value

class Registered extends Error {}
register(Registered, { cid: 'losses.Registered' })

test('elements behind holes arrive whatever else the array has a name for', () => {
  for (const names of [['-1'], ['-1', '-2', '-3'], ['01', 'x', '4294967295', '1.5', 'Infinity']]) {
    for (const [length, ...present] of [[2, 1], [6, 0, 5], [9, 4], [3], [40, 7, 8, 33]] as number[][]) {
      const array: unknown[] = []
      array.length = length
      for (const index of present) array[index] = `at ${index}`
      const bare = array.slice()
      for (const name of names) (array as unknown as Record<string, unknown>)[name] = name
      assertSame(decode(encode(array)), bare)
    }
  }
  const hidden: unknown[] = [,]
  Object.defineProperty(hidden, 3, { value: 'an element', enumerable: false })
  assert.equal((decode(encode(hidden)) as unknown[])[3], 'an element')
})

test('the name of an error stays through any number of hops', () => {
  class MyError extends Error {}
  const given = Object.defineProperty(new TypeError('a'), 'name', { value: 'Custom', configurable: true })
  const cases: [Error, string][] = [
    [new MyError('x'), 'MyError'],
    [given, 'Custom'],
    [Object.defineProperty(new MyError('y'), 'name', { value: 'Hidden' }), 'Hidden'],
    [Object.defineProperty(new Registered('z'), 'name', { value: 'Renamed' }), 'Renamed'],
    [Object.assign(new RangeError('own'), { name: 'Shown' }), 'Shown'],
  ]
  for (const [error, name] of cases) {
    let far = error
    for (let hop = 0; hop < 3; hop++) {
      far = sent(far)
      assert.equal(far.name, name)
      assert.deepEqual(Object.keys(far), Object.keys(error))
    }
    assert.equal(far instanceof Registered, error instanceof Registered)
  }
})

test('a SuppressedError keeps both of its errors, also where the language has no such class', () => {
  const [first, second] = [new Error('first'), new Error('second')]
  type Made = new (error: unknown, suppressed: unknown, message?: string) => Error
  const Suppressed = (globalThis as { SuppressedError?: Made }).SuppressedError
  if (Suppressed !== undefined) {
    const near = new Suppressed(first, second, 'both')
    const far = decode(encode(near)) as Error
    assertSame(far, near)
    assert.deepEqual(Object.getOwnPropertyNames(far).sort(), Object.getOwnPropertyNames(near).sort())
    assert.equal(far.constructor, Suppressed)
  }
  // The same frame, written by hand as Node 24 writes it, with the strings of its parts at the end.
  const frame = Buffer.from([1, 1, 0, 0, 0, 0, 0xda, 9, 0x30, 0x84, 0xc6, 1, 2, 0xd4, 0, 0, 0, 0])
  frame.writeUInt32LE(frame.length - 6, 2)
  const text = Buffer.from([8, 0, 0, 0, ...Buffer.from('both')])
  let far = decode(Buffer.concat([frame, text])) as Error & { error: unknown; suppressed: unknown }
  for (let hop = 0; hop < 3; hop++, far = sent(far)) {
    assert.deepEqual([far.name, far.message, far.error, far.suppressed], ['SuppressedError', 'both', 1, 2])
    assert.ok(far instanceof Error)
  }
})

test('what an object inherits does not become its own', () => {
  class Shape {
    x = 1
  }
  register(Shape, { cid: 'losses.Shape' })
  class Keyed extends Error {}
  const both = () => Object.assign(new Shape(), { kind: 2 })
  const keysOf = (value: object) => Object.keys(sent([value])[0])
  const pass = () => {
    for (let sighting = 0; sighting < SIGHTINGS; sighting++) {
      sent({ x: 1, kind: 2 })
      sent([both()])
      sent([new Shape()])
    }
    assert.deepEqual(keysOf(new Shape()), ['x'])
    assert.deepEqual(keysOf(both()), ['x', 'kind'])
    assert.deepEqual(keysOf(new Keyed('e')), [])
  }
  pass()
  // Enumerable, as by old ways to write classes, and only now: there is code for both shapes.
  const prototypes = [Shape.prototype, Keyed.prototype] as object[] as { kind: unknown }[]
  for (const prototype of prototypes) prototype.kind = () => 'a method'
  sent({ kind: 2 })
  pass()
})

test("a property added to Object.prototype is nobody's own, whatever there is code for", () => {
  const own = { a: 1, added: 2 }
  for (let sighting = 0; sighting < SIGHTINGS; sighting++) sent(own)
  const added = { value: 9, enumerable: true, configurable: true, writable: true }
  Object.defineProperty(Object.prototype, 'added', added)
  try {
    assert.deepEqual(Object.keys(sent({ a: 1 })), ['a'])
    const [far, inner] = sent([{ a: 1 }, { list: [{ a: 1 }, { a: 1, added: 3 }] }])
    assert.deepEqual(Object.keys(far as object), ['a'])
    assert.deepEqual((inner as { list: object[] }).list.map(Object.keys), [['a'], ['a', 'added']])
  } finally {
    delete (Object.prototype as { added?: unknown }).added
  }
})

test('a class registered anew is written by its new registration, whatever there is code for', () => {
  class Rate {
    percent = 5
  }
  register(Rate, { cid: 'losses.Rate', version: 1 })
  const value = () => ({ rate: new Rate(), rates: [new Rate(), new Rate()] })
  for (let sighting = 0; sighting < SIGHTINGS; sighting++) sent(value())
  const versions: number[] = []
  const load = (saved: string, version: number) => {
    versions.push(version)
    return Object.assign(new Rate(), { percent: Number(saved) })
  }
  register(Rate, { cid: 'losses.Rate', version: 2, save: ({ percent }) => `${percent}`, load })
  assertSame(sent(value()), value())
  assert.deepEqual(versions, [2, 2, 2])
})

test('a Buffer over part of shared memory goes on sharing it', () => {
  const memory = new SharedArrayBuffer(16)
  const far = sent(Buffer.from(memory, 4, 8))
  far[0] = 7
  assert.equal(new Uint8Array(memory)[4], 7)
  assert.deepEqual([Buffer.isBuffer(far), far.byteOffset, far.length], [true, 4, 8])
  assert.throws(() => encode(Buffer.from(memory, 4, 8)), { code: 'TRANSPORT_REFUSED' })
})

test('classes that travel without a registration cannot be registered', () => {
  const hooks = { save: () => 1, load: () => new URL('https://example.org') }
  for (const made of [URL, Map, Array, Date, Uint8Array, Buffer, DataView, Number, ArrayBuffer]) {
    assert.throws(() => register(made as new () => object, { cid: 'losses.builtin', ...hooks }), {
      code: 'TRANSPORT_REGISTRATION',
      message: /travels without a registration/,
    })
  }
})

test('an object whose prototype has no class is refused with the remedy', () => {
  const above = { a: 1 }
  const instead = { code: 'TRANSPORT_REFUSED', message: /^value\.x cannot .*plain object/ }
  assert.throws(() => encode({ x: Object.create(above) as object }), instead)
  class Named {}
  assert.throws(() => encode(new Named()), { code: 'TRANSPORT_CLASS_UNREGISTERED', message: /Named/ })
})

test('keys that Object.prototype has are fields, also when it is frozen', () => {
  const script = `
    import { encode, decode } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)}
    Object.freeze(Object.prototype)
    for (let use = 0; use < 50; use++) {
      const value = JSON.parse('{"toString":1,"constructor":{"valueOf":2},"__proto__":3}')
      for (const mode of ['process', 'self-contained']) {
        const far = decode(encode(value, { mode }), { mode })
        if (JSON.stringify(far) !== JSON.stringify(value)) throw new Error(JSON.stringify(far))
      }
    }`
  execFileSync(process.execPath, ['--input-type=module', '-e', script], { stdio: 'pipe' })
})

test('an object with state in no field is refused after others of its class and keys', () => {
  const cache = Symbol('cache')
  class Lazy {
    a = 1
    b = 2
  }
  register(Lazy, { cid: 'losses.Lazy' })
  const cases: [add: (object: Lazy) => unknown, message: RegExp][] = [
    [(object) => Object.assign(object, { [cache]: 42 }), /under Symbol\(cache\)/],
    [(object) => Object.defineProperty(object, cache, { value: 42 }), /under Symbol\(cache\)/],
    [(object) => Object.defineProperty(object, 'h', { value: 5 }), /in 'h', which is not enumerable/],
    [(object) => Object.defineProperty(object, 'h', { get: () => 5 }), /in 'h', which is not enumerable/],
    [
      (object) => Object.defineProperty(object, 'b', { enumerable: false }),
      /in 'b', which is not enumerable/,
    ],
    [(object) => Object.freeze(Object.assign(object, { [cache]: 42 })), /under Symbol\(cache\)/],
  ]
  const refuse = () => {
    for (const [add, message] of cases) {
      const object = new Lazy()
      add(object)
      for (const encoded of [encode, (value: unknown) => encode(value, { mode: 'process' })]) {
        assert.throws(() => encoded(object), { code: 'TRANSPORT_REFUSED', message })
        assert.throws(() => encoded([new Lazy(), object]), { message: /^value\[1\] / })
        assert.throws(() => encoded({ first: new Lazy(), of: { object } }), {
          message: /^value\.of\.object /,
        })
      }
    }
  }
  assertSame(sent(new Lazy()), new Lazy())
  refuse()
  // With the code that is generated for a class and its keys.
  for (let use = 0; use < 2000; use++) sent([{ object: new Lazy() }, new Lazy()])
  refuse()
  const [sealed, frozen] = [Object.seal(new Lazy()), Object.freeze(new Lazy())]
  assertSame(sent([sealed, frozen]), [new Lazy(), new Lazy()])
  const read = Object.defineProperty(new Lazy(), 'b', { get: () => 7, enumerable: true })
  assertSame(sent(read), Object.assign(new Lazy(), { b: 7 }))
})

test('a value that takes some bytes more at each attempt arrives, one that keeps growing is refused', () => {
  let reads = 0
  const growing = (lengthOf: (read: number) => number): object => {
    reads = 0
    return {
      get text() {
        return 'a'.repeat(lengthOf(reads++))
      },
    }
  }
  // As of a value of many shapes, whose tables are different at each attempt.
  const little = sent(growing((read) => 100_000 + 100 * read)) as { text: string }
  assert.deepEqual([little.text.length, reads], [100_200, 3])
  assert.throws(() => sent(growing((read) => 100_000 * 2 ** read)), {
    code: 'TRANSPORT_REFUSED',
    message: /it changed while it was written/,
  })
})
