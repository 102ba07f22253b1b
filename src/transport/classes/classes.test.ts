/**
 * Registered classes and errors: what they keep, what hooks may do, which registrations are refused.
 *
 * Every object is sent often enough to pass through the loops first and through generated code after.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { register, transportable } from './classes.ts'
import { TransportError } from '../errors.ts'
import { DEPTH_MAX } from '../format.ts'
import { decode, encode } from '../codec.ts'
import { FrameWriter, readFrame } from '../frame.ts'
import { setFirstLeaves } from '../write/kinds.ts'
import { move } from './memory.ts'
import { assertSame } from '../same.test.support.ts'
import '../tables.test.support.ts'

/** `make()` arrives the same in both modes, before and after code is generated for it. */
function check(make: () => unknown): void {
  for (let sighting = 0; sighting < 60; sighting++) {
    setFirstLeaves(sighting < 4 ? Infinity : 0)
    const value = make()
    assertSame(decode(encode(value)), value)
    assertSame(decode(encode(value, { mode: 'process' }), { mode: 'process' }), value)
  }
}

class Point {
  x: number
  y: number
  constructor(x: number, y: number) {
    if (new.target === undefined || arguments.length === 0)
      throw new Error('the constructor must not run again')
    this.x = x
    this.y = y
  }
  get length() {
    return Math.hypot(this.x, this.y)
  }
}
register(Point, { cid: 'test.Point' })

test('a registered class keeps prototype and fields, alone, in fields, arrays, maps and cycles', () => {
  let turn = 0
  check(() => new Point(3, 4))
  check(() => [
    new Point(1, 2),
    { at: new Point(turn++, 1.5), list: [new Point(0, -0)] },
    new Map([[1, new Point(5, 6)]]),
  ])
  check(() =>
    Array.from({ length: 100 }, (_, index) => (index % 3 === 0 ? { x: index, y: 0 } : new Point(index, 0))),
  )
  check(() => {
    const point = new Point(1, 2) as Point & { self?: unknown }
    point.self = point
    return [point, point]
  })
  assert.equal((decode(encode(new Point(3, 4))) as Point).length, 5)
})

test('fields named like methods, accessors and __proto__ stay fields', () => {
  class Odd {
    get given() {
      return 1
    }
    method() {
      return 2
    }
  }
  register(Odd, { cid: 'test.Odd' })
  check(() => {
    const odd = new Odd()
    for (const key of ['given', 'method', '__proto__', 'toString'])
      Object.defineProperty(odd, key, {
        value: { key },
        enumerable: true,
        writable: true,
        configurable: true,
      })
    return odd
  })
})

test('a subclass travels as what it is, or not at all', () => {
  class Point3 extends Point {
    z = 3
  }
  assert.throws(() => encode(new Point3(1, 2)), {
    code: 'TRANSPORT_CLASS_UNREGISTERED',
  })
  register(Point3, { cid: 'test.Point3' })
  check(() => [new Point3(1, 2), new Point(1, 2)])
})

test('save and load hooks decide what travels; load receives the version', () => {
  class Money {
    readonly #cents: bigint
    constructor(cents: bigint) {
      this.#cents = cents
    }
    get cents() {
      return this.#cents
    }
  }
  const versions: number[] = []
  const load = (saved: bigint | string, version: number) => {
    versions.push(version)
    return new Money(BigInt(saved))
  }
  register(Money, {
    cid: 'test.Money',
    version: 1,
    save: (money) => `${money.cents}`,
    load,
  })
  const old = encode(new Money(5n))
  register(Money, {
    cid: 'test.Money',
    version: 2,
    save: (money) => money.cents,
    load,
  })
  const money = new Money(7n)
  const [first, second] = decode(encode([money, money])) as Money[]
  assert.equal(first, second)
  assert.equal(first.cents, 7n)
  assert.equal((decode(old) as Money).cents, 5n)
  assert.deepEqual(versions, [2, 1])
})

test('a save hook runs once per object and frame, however often the frame is tried', () => {
  class Counted {}
  let runs = 0
  register(Counted, {
    cid: 'test.Counted',
    save: () => ({ run: ++runs }),
    load: () => new Counted(),
  })
  const counted = new Counted()
  const shared = {}
  new FrameWriter(new Uint8Array(10)).write([counted, shared, shared, 'x'.repeat(100)], 0)
  assert.equal(runs, 1)
})

test('hooks may encode and decode themselves', () => {
  class Box {
    content: unknown
    constructor(content: unknown) {
      this.content = content
    }
  }
  register(Box, {
    cid: 'test.Box',
    save: (box) => encode(box.content),
    load: (saved: Uint8Array) => new Box(decode(saved)),
  })
  check(() => ({
    a: { b: 1 },
    boxes: [new Box({ b: 2 }), new Box([new Box('text'), { b: 3 }])],
    c: 'after',
  }))
  const scratch = new Uint8Array(1000)
  const writer = new FrameWriter(scratch)
  class Outer {}
  register(Outer, {
    cid: 'test.Outer',
    save: () => writer.write('inner frame', 0),
    load: (saved) => Object.assign(new Outer(), { saved }),
  })
  const end = writer.write(['outer', new Outer()], 0)
  assert.deepEqual(readFrame(scratch, 0, end), ['outer', Object.assign(new Outer(), { saved: -1 })])
})

test('another version needs a load hook', () => {
  class Plain {
    a = 1
  }
  register(Plain, { cid: 'test.Plain', version: 3 })
  const frame = encode(new Plain())
  register(Plain, { cid: 'test.Plain', version: 4 })
  assert.throws(() => decode(frame), {
    code: 'TRANSPORT_CLASS_VERSION',
    message: /version 3 of class 'test\.Plain'.*version 4/,
  })
  register(Plain, {
    cid: 'test.Plain',
    version: 4,
    load: (saved: object, version) => Object.assign(new Plain(), saved, { version }),
  })
  assert.deepEqual({ ...(decode(frame) as Plain) }, { a: 1, version: 3 })
})

test('an unknown cid is an error that names it', () => {
  const frame = Buffer.from(encode(new Point(1, 2)))
  const at = frame.indexOf('test.Point')
  frame.write('Test', at, 'latin1')
  assert.throws(() => decode(frame), {
    code: 'TRANSPORT_CLASS_UNKNOWN',
    facts: { cid: 'Test.Point' },
  })
})

test('a registration that would lose data or confuse is refused', () => {
  class Private {
    #x = 1
    static #shared = 2
    read() {
      return this.#x + Private.#shared
    }
  }
  class BelowPrivate extends Private {}
  class OnlyStatic {
    static #count = 1
    static count() {
      return OnlyStatic.#count
    }
  }
  const cid = 'test.refused'
  const code = 'TRANSPORT_REGISTRATION'
  assert.throws(() => register(Private, { cid }), { code, message: /#x/ })
  assert.throws(() => register(BelowPrivate, { cid }), { code, message: /#x/ })
  register(OnlyStatic, { cid: 'test.OnlyStatic' })
  assert.throws(() => register(class extends Map {}, { cid }), {
    code,
    message: /extends Map/,
  })
  assert.throws(() => register(class {}, { cid: 'test.Point' }), {
    code,
    message: /another class/,
  })
  assert.throws(() => register(Point, { cid: 'test.Other' }), {
    code,
    message: /registered as 'test\.Point'/,
  })
  assert.throws(() => register(Object, { cid }), { code })
  const wrong: unknown[][] = [
    [undefined, { cid }],
    [{}, { cid }],
    [class {}, undefined],
    [class {}, { cid: '' }],
    [class {}, { cid, version: -1 }],
    [class {}, { cid, save: 1 }],
  ]
  for (const [first, second] of wrong) {
    assert.throws(() => register(first as typeof Point, second as { cid: string }), {
      code: 'TRANSPORT_ARGUMENT',
    })
  }
  assert.throws(() => register(class {}, undefined as never), { message: 'register() needs { cid }' })
})

test('the decorator registers', () => {
  class Decorated {
    value = 1
  }
  transportable('test.Decorated', { version: 2 })(Decorated)
  check(() => new Decorated())
})

test('the decorator infers the class from its hooks', () => {
  @transportable('test.Priced', {
    version: 3,
    save: (priced: Priced) => priced.cents,
    load: (cents: number, version: number) => new Priced(cents + (version === 3 ? 0 : 1)),
  })
  class Priced {
    readonly #cents: number
    constructor(cents: number) {
      this.#cents = cents
    }
    get cents(): number {
      return this.#cents
    }
  }
  assert.equal((decode(encode(new Priced(12))) as Priced).cents, 12)
  class Other {
    unlike = true
  }
  // @ts-expect-error The hooks are of another class.
  transportable('test.Unlike', { save: (priced: Priced) => priced.cents })(Other)
})

test('errors keep class, code, own fields, cause, errors and stack', () => {
  const kinds = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]
  for (const kind of kinds) check(() => new kind('message', { cause: { deep: new kind('inner') } }))
  check(() => new Error())
  check(() => new AggregateError([new Error('a'), { b: 1 }], 'all'))
  check(() =>
    Object.assign(new Error('own'), {
      code: 'E_OWN',
      errno: -2,
      nested: { a: 1 },
      name: 'Named',
    }),
  )
  check(() => Object.assign(new Error('x'), { cause: 'enumerable', message: 'changed' }))
  check(() => new DOMException('stopped', 'AbortError'))
  assert.equal(decode(encode(new DOMException('x', 'AbortError'))) instanceof DOMException, true)
})

test('an error without a stack of text arrives without one', () => {
  const error = Object.assign(new Error('bare'), { stack: undefined })
  assert.equal((decode(encode(error)) as Error).stack, undefined)
})

test('an error of a class nobody registered arrives under its name as the class it extends', () => {
  class LoadError extends TypeError {
    code = 'E_LOAD'
  }
  const far = decode(encode(new LoadError('missing'))) as LoadError
  assert.ok(far instanceof TypeError)
  assert.deepEqual([far.name, far.message, far.code], ['LoadError', 'missing', 'E_LOAD'])
  assert.deepEqual(Object.keys(far), ['code'])
})

test('a registered error class is itself, with and without hooks', () => {
  class AppError extends Error {
    readonly status: number
    constructor(status: number, options?: ErrorOptions) {
      super(`status ${status}`, options)
      this.status = status
    }
    override get name() {
      return 'AppError'
    }
  }
  register(AppError, { cid: 'test.AppError' })
  check(() => new AppError(404, { cause: new AppError(500) }))
  class HookedError extends Error {}
  register(HookedError, {
    cid: 'test.HookedError',
    save: (error) => error.message,
    load: (saved: string) => new HookedError(saved),
  })
  const far = decode(encode(new HookedError('kept'))) as Error
  assert.ok(far instanceof HookedError)
  assert.equal(far.message, 'kept')
})

test('errors of the transport itself travel', () => {
  const error = new TransportError('TRANSPORT_DEPTH', { depthMax: 7 })
  register(TransportError, { cid: 'corespun.TransportError' })
  check(() => error)
})

test('a moved buffer arrives whole and is empty here; a refused value loses nothing', () => {
  const scratch = new Uint8Array(1000)
  const writer = new FrameWriter(scratch)
  const buffer = Uint8Array.from([1, 2, 3]).buffer
  move(buffer)
  assert.throws(() => writer.write([buffer, Symbol('no')], 0), {
    code: 'TRANSPORT_REFUSED',
  })
  assert.equal(buffer.byteLength, 3)
  assert.deepEqual(decode(encode(buffer)), Uint8Array.from([1, 2, 3]).buffer, 'self-contained frames copy')
  const end = writer.write({ view: new Uint8Array(buffer, 1), buffer }, 0)
  assert.equal(writer.attachments.length, 1)
  assert.equal(buffer.byteLength, 0)
  const far = readFrame(scratch, 0, end) as {
    view: Uint8Array
    buffer: ArrayBuffer
  }
  assert.deepEqual([...far.view], [2, 3])
  assert.equal(far.view.buffer, far.buffer)
  assert.throws(() => readFrame(scratch, 0, end), { code: 'TRANSPORT_MALFORMED' }, 'memory is taken once')
  for (const wrong of [{}, new SharedArrayBuffer(1), Buffer.from('pooled')]) {
    assert.throws(() => move(wrong as ArrayBuffer), {
      code: 'TRANSPORT_ARGUMENT',
    })
  }
})

test('shared memory is the same memory on the other side', () => {
  const memory = new SharedArrayBuffer(8)
  const far = decode(encode({ memory, view: new Int32Array(memory, 4) }, { mode: 'process' }), {
    mode: 'process',
  }) as {
    memory: SharedArrayBuffer
    view: Int32Array
  }
  far.view[0] = 77
  assert.equal(new Int32Array(memory)[1], 77)
  assert.equal(far.view.buffer, far.memory)
})

test('an object with load and without save is as deep as any other', () => {
  class Loading {
    in: unknown = 1
  }
  register(Loading, { cid: 'test.classes.Loading', load: (saved) => Object.assign(new Loading(), saved) })
  for (const levels of [DEPTH_MAX - 3, DEPTH_MAX - 2, DEPTH_MAX - 1, DEPTH_MAX]) {
    let value: unknown = new Loading()
    for (let level = 0; level < levels; level++) value = [value]
    let frame: Uint8Array
    try {
      frame = encode(value)
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'TRANSPORT_DEPTH')
      assert.ok(levels > DEPTH_MAX - 2)
      continue
    }
    assert.ok(levels <= DEPTH_MAX - 2)
    let far = decode(frame)
    while (Array.isArray(far)) far = far[0]
    assert.ok(far instanceof Loading)
  }
})
