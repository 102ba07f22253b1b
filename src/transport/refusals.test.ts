/**
 * What is refused: with which code, at which path, in which words.
 *
 * A value arrives as it was, or its sender receives an error.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEPTH_MAX } from './format.ts'
import { register, registerHandle } from './classes/classes.ts'
import { TransportError, type TransportCodes } from './errors.ts'
import { move } from './classes/memory.ts'
import { setProcessTables } from './process.ts'
import { LocalTables } from './tables.test.support.ts'
import { wasmMemory } from './hostile.test.support.ts'
import { decode, encode } from './codec.ts'
import { FrameWriter, isTransportable } from './frame.ts'

type Refused = {
  code: keyof TransportCodes
  path?: string
  message?: RegExp
  mode?: 'process' | 'self-contained'
}

/** `value` is refused with this code, at this path, and the sentence contains the path. */
function check(value: unknown, { code, path, message, mode = 'process' }: Refused): void {
  assert.throws(
    () => encode(value, { mode }),
    (error: unknown) => {
      assert.ok(error instanceof TransportError)
      assert.equal(error.code, code)
      if (path !== undefined) {
        assert.equal((error.facts as { path: string }).path, path)
        assert.ok(error.message.includes(path), error.message)
      }
      if (message !== undefined) assert.match(error.message, message)
      return true
    },
  )
  if (mode === 'process') assert.equal(isTransportable(value), false)
}

class Unknown {
  field = 1
}
const refused = { code: 'TRANSPORT_REFUSED', path: 'value' } as const

test('what has a meaning in one thread only is refused by name', () => {
  check(Symbol('mark'), { ...refused, message: /Symbol\(mark\)/ })
  check(new WeakMap(), { ...refused, message: /weak references/ })
  check(new WeakSet(), refused)
  check(new WeakRef({}), refused)
  check(Promise.resolve(1), { ...refused, message: /await it first/ })
  check(
    (function* () {
      yield 1
    })(),
    { ...refused, message: /generator/ },
  )
  check(new Map().entries(), { ...refused, message: /iterator/ })
  check(Object(Symbol('boxed')), refused)
})

test('a boxed value is what it holds, whatever prototype or valueOf it was given', () => {
  for (const [held, prototype] of [
    ['s', Number.prototype],
    [1, String.prototype],
    [true, BigInt.prototype],
    [1n, Boolean.prototype],
  ] as const)
    check(Object.setPrototypeOf(Object(held), prototype), { ...refused, message: /but is not one/ })
  const odd = Object.assign(Object(1) as object, { valueOf: () => ({}) })
  assert.deepEqual(decode(encode(odd)), Object(1))
})

test('a URL is what it names, whatever fields it was given', () => {
  const url = Object.defineProperty(new URL('http://a/'), 'href', { value: 'http://b/' })
  assert.equal(String(decode(encode(url))), 'http://a/')
  const claims = Object.create(URL.prototype, { href: { value: 'http://b/' } }) as object
  check(claims, { ...refused, message: /but is not one/ })
})

test('an object that only claims a prototype is refused', () => {
  const claims = [
    Date,
    RegExp,
    Map,
    Set,
    ArrayBuffer,
    SharedArrayBuffer,
    Uint8Array,
    DataView,
    Buffer,
    URL,
    Number,
  ]
  for (const claim of claims)
    check(Object.create(claim.prototype as object), {
      ...refused,
      message: /but is not one/,
    })
  check(Object.create(Uint8Array.prototype), refused)
  check(Object.setPrototypeOf(new Uint8Array(1), Float64Array.prototype), refused)
})

test('a class nobody registered is named, with what to do', () => {
  const code = 'TRANSPORT_CLASS_UNREGISTERED'
  check(new Unknown(), {
    code,
    path: 'value',
    message: /class Unknown.*register\(Unknown/,
  })
  check(new (class {})(), { code, path: 'value', message: /has no name.*register\(Class, / })
})

test('the path of the offending part is in the words of the caller', () => {
  const socket = Symbol('socket')
  const code = 'TRANSPORT_REFUSED'
  check([0, { user: { socket } }], { code, path: 'value[1].user.socket' })
  check({ 'two words': { 1: socket } }, { code, path: 'value["two words"]["1"]' })
  check(new Map([['key', [socket]]]), { code, path: 'value.get("key")[0]' })
  check(new Map([[socket, 1]]), { code, path: 'value.keys()[0]' })
  check(new Set([1, { socket }]), { code, path: 'value.values()[1].socket' })
  check(new Error('outer', { cause: { socket } }), {
    code,
    path: 'value.cause.socket',
  })
  check(new AggregateError([socket]), { code, path: 'value.errors[0]' })
  check(Object.assign(new Error('x'), { socket }), {
    code,
    path: 'value.socket',
  })
  const cyclic: Record<string, unknown> = { first: 1 }
  cyclic.self = cyclic
  cyclic.last = { socket }
  check(cyclic, { code, path: 'value.last.socket' })
  check(
    Array.from({ length: 50 }, (_, id) => ({
      id,
      deep: id === 49 ? { socket } : null,
    })),
    { code, path: 'value[49].deep.socket' },
  )
  const writer = new FrameWriter(new Uint8Array(1000))
  assert.throws(() => writer.write([1, { user: { socket } }], 0, 'args'), {
    message: /^args\[1\]\.user\.socket cannot/,
  })
})

test('functions are refused where code must not travel, and when they capture', () => {
  const captured = Math.random()
  const code = 'TRANSPORT_FUNCTION'
  check({ run: (a: number) => a + 1 }, { code, path: 'value.run', mode: 'self-contained' })
  check({ run: (a: number) => a + captured }, { code, path: 'value.run', message: /captured/ })
  const far = decode(encode({ run: (a: number) => a + 1 }, { mode: 'process' }), {
    mode: 'process',
  }) as {
    run(a: number): number
  }
  assert.equal(far.run(1), 2)
})

test('shared memory and handles stay in the process', () => {
  check(
    { memory: new SharedArrayBuffer(8) },
    { code: 'TRANSPORT_REFUSED', path: 'value.memory', mode: 'self-contained' },
  )
  class Door {
    #secret = 1
    get secret() {
      return this.#secret
    }
  }
  const door = new Door()
  registerHandle({
    tag: 'test.door',
    is: Door,
    save: () => 'the door',
    load: () => door,
  })
  check([door], {
    code: 'TRANSPORT_REFUSED',
    path: 'value[0]',
    mode: 'self-contained',
    message: /test\.door/,
  })
  assert.equal(
    (decode(encode({ door }, { mode: 'process' }), { mode: 'process' }) as { door: Door }).door,
    door,
  )
  assert.throws(
    () =>
      registerHandle({
        tag: 'test.door',
        is: Door,
        save: () => 1,
        load: () => door,
      }),
    { code: 'TRANSPORT_REGISTRATION' },
  )
})

test('a buffer that cannot be moved is refused by its path', () => {
  class Stuck extends LocalTables {
    override bufferMove(): number {
      throw new TypeError('not detachable')
    }
  }
  setProcessTables(new Stuck())
  try {
    const value = [1, { buffer: move(new ArrayBuffer(8)) }]
    const facts = { code: 'TRANSPORT_REFUSED', message: /^value\[1\]\.buffer .*cannot be detached/ }
    assert.throws(() => encode(value, { mode: 'process' }), facts)
    assert.throws(() => new FrameWriter(new Uint8Array(99)).write(value, 0), facts)
    assert.deepEqual(decode(encode(value)), value)
  } finally {
    setProcessTables(new LocalTables())
  }
})

test('an object whose prototype has an odd constructor is refused like any other', () => {
  for (const constructor of [null, undefined, 5, 'text', { name: 'Date' }]) {
    check(Object.create({ constructor }), { code: 'TRANSPORT_CLASS_UNREGISTERED', path: 'value' })
  }
})

test('a buffer whose memory was moved away is refused', () => {
  const buffer = new ArrayBuffer(8)
  const view = new Uint8Array(buffer)
  structuredClone(buffer, { transfer: [buffer] })
  check({ buffer }, { code: 'TRANSPORT_REFUSED', path: 'value.buffer', message: /moved away/ })
  check({ view }, { code: 'TRANSPORT_REFUSED', path: 'value.view.buffer' })
})

/** What a getter throws is what `encode` throws. */
function passes(mine: Error): void {
  const thrower = {
    get x(): number {
      throw mine
    },
  }
  assert.throws(
    () => encode({ thrower }),
    (error) => error === mine,
  )
}

test('an error thrown by a getter or a hook passes unchanged', () => {
  const mine = new RangeError('mine')
  passes(mine)
  class Hooked {}
  register(Hooked, {
    cid: 'test.refusals.Hooked',
    save: () => {
      throw mine
    },
  })
  assert.throws(
    () => encode([new Hooked()]),
    (error) => error === mine,
  )
  assert.throws(
    () => isTransportable(new Hooked()),
    (error) => error === mine,
  )
  assert.deepEqual(decode(encode([1])), [1])
})

test('a cycle through an object that its load hook must make first is refused', () => {
  class Node {
    next: unknown = undefined
  }
  register(Node, {
    cid: 'test.refusals.Node',
    save: (node) => [node.next],
    load: ([next]: unknown[]) => Object.assign(new Node(), { next }),
  })
  const node = new Node()
  node.next = { node }
  check({ node }, { code: 'TRANSPORT_REFUSED', message: /load hook/ })
  node.next = new Node()
  const far = decode(encode([node, node, node.next])) as Node[]
  assert.equal(far[0], far[1])
  assert.equal(far[0].next, far[2])
})

test('arguments of the doors are checked', () => {
  assert.throws(() => encode(1, { mode: 'fast' as 'process' }), {
    code: 'TRANSPORT_ARGUMENT',
    message: /mode.*"fast"/,
  })
  for (const wrong of [undefined, 'text', [1], new ArrayBuffer(9)]) {
    assert.throws(() => decode(wrong as unknown as Uint8Array), {
      code: 'TRANSPORT_ARGUMENT',
    })
  }
})

test('a view outside its buffer, a spoofed DOMException and a revoked Proxy are refused by path', () => {
  const buffer = new ArrayBuffer(8)
  const view = new DataView(buffer, 4)
  structuredClone(buffer, { transfer: [buffer] })
  check({ view }, { code: 'TRANSPORT_REFUSED', path: 'value.view', message: /moved away/ })
  const growing = new (ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer)(8, {
    maxByteLength: 16,
  })
  const outside = new DataView(growing, 4, 4)
  ;(growing as unknown as { resize(length: number): void }).resize(2)
  check({ outside }, { code: 'TRANSPORT_REFUSED', path: 'value.outside', message: /outside its buffer/ })
  const memory = new (ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer)(8, {
    maxByteLength: 16,
  })
  const views = [new Uint8Array(memory, 4, 4), new Float64Array(memory, 0, 1), new Uint8Array(memory, 6)]
  const empty = [new Uint8Array(memory, 0, 0), new Uint8Array(memory)]
  ;(memory as unknown as { resize(length: number): void }).resize(0)
  for (const outside of views)
    check(
      { outside },
      { code: 'TRANSPORT_REFUSED', path: 'value.outside', message: /outside its buffer|moved away/ },
    )
  assert.deepEqual(decode(encode(empty)), [new Uint8Array(0), new Uint8Array(0)])
  check([Object.create(DOMException.prototype)], {
    code: 'TRANSPORT_REFUSED',
    path: 'value[0]',
    message: /but is not one/,
  })
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  for (const value of [{ a: [1, proxy] }, { a: [1, proxy], twice: proxy }]) {
    check(value, { code: 'TRANSPORT_REFUSED', path: 'value.a[1]', message: /revoked/ })
  }
  check(
    { ok: 1, list: Proxy.revocable([], {}).proxy, symbol: Symbol('after') },
    { code: 'TRANSPORT_REFUSED' },
  )
})

test('a TypeError that speaks of something revoked and comes from a getter passes unchanged', () => {
  passes(new TypeError('my licence was revoked'))
})

test('a buffer that was given away and cannot leave is not transportable', () => {
  /** As the native tables: memory that is lent stays until it leaves. */
  class Lending extends LocalTables {
    override bufferLend(buffer: ArrayBuffer): number {
      if (buffer.byteLength === 65_536) throw new TypeError('not detachable')
      return 1
    }
  }
  setProcessTables(new Lending())
  try {
    assert.equal(isTransportable([move(wasmMemory())]), false)
    const free = new ArrayBuffer(8)
    assert.equal(isTransportable([move(free)]), true)
    assert.equal(free.byteLength, 8)
  } finally {
    setProcessTables(new LocalTables())
  }
  const kept = move(new ArrayBuffer(8))
  assert.equal(isTransportable(kept), true)
  assert.equal(kept.byteLength, 8)
})

test('nesting that is too deep is refused with the beginning of its path', () => {
  let value: unknown = 1
  for (let level = 0; level <= DEPTH_MAX; level++) value = { in: value }
  check({ ok: [[1]], deep: value }, { code: 'TRANSPORT_DEPTH', path: `value.deep${'.in'.repeat(14)}…` })
  const writer = new FrameWriter(new Uint8Array(1000))
  assert.throws(() => writer.write([value], 0, 'args'), { message: /^args\[0\]\.in\.in.* deeper than 1000/ })
  const error = new TransportError('TRANSPORT_TOO_LARGE', { path: 'args', bytes: 2, bytesMax: 1 })
  assert.match(error.message, /^args cannot be transported/)
})

test('what a save hook without load returns must be the fields of the object', () => {
  class Saving {
    saved: unknown
    constructor(saved: unknown) {
      this.saved = saved
    }
  }
  register(Saving, { cid: 'test.refusals.Saving', save: (object) => object.saved as object })
  for (const saved of [5, null, [1], new Map(), new Uint8Array(2), 'text']) {
    check([new Saving(saved)], { code: 'TRANSPORT_REFUSED', path: 'value[0]', message: /plain object/ })
  }
  const far = decode(encode(new Saving({ a: 1 }))) as Saving & { a: number }
  assert.ok(far instanceof Saving)
  assert.deepEqual(Object.keys(far), ['a'])
})

test('more resizable buffers than a frame may hold are refused, and one met often counts once', () => {
  const growing = (length: number, maxByteLength: number) =>
    new (ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer)(length, {
      maxByteLength,
    })
  const many = Array.from({ length: 65 }, () => growing(1, 2))
  check(many, { code: 'TRANSPORT_REFUSED', path: 'value[64]', message: /more than 64/ })
  assert.equal((decode(encode(many.slice(1))) as unknown[]).length, 64)
  check([growing(1, 0x200_0000)], { code: 'TRANSPORT_REFUSED', path: 'value[0]', message: /can grow/ })
  const one = growing(8, 0x100_0000)
  const views = Array.from({ length: 200 }, () => new Uint8Array(one, 0, 1))
  const far = decode(encode(views)) as Uint8Array[]
  assert.ok(far.every((view) => view.buffer === far[0].buffer))
  check(
    Array.from({ length: 17 }, () => growing(1, 0x100_0000)),
    { code: 'TRANSPORT_REFUSED', path: 'value[16]' },
  )
})
