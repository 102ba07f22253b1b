/**
 * What is refused: with which code, at which path, in which words.
 *
 * A refusal is half of the promise: a value either arrives as it was or its sender is told.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { register, registerHandle } from './classes.ts'
import { TransportError, type TransportCodes } from './errors.ts'
import { move } from './memory.ts'
import { LocalTables, setProcessTables } from './process.ts'
import { FrameWriter, isTransportable, marshall, unmarshall } from './frame.ts'

type Refused = {
  code: keyof TransportCodes
  path?: string
  says?: RegExp
  mode?: 'process' | 'self-contained'
}

/** `value` is refused with this code, at this path, and the sentence contains the path. */
function check(value: unknown, { code, path, says, mode = 'process' }: Refused): void {
  assert.throws(
    () => marshall(value, { mode }),
    (error: unknown) => {
      assert.ok(error instanceof TransportError)
      assert.equal(error.code, code)
      if (path !== undefined) {
        assert.equal((error.facts as { path: string }).path, path)
        assert.ok(error.message.includes(path), error.message)
      }
      if (says !== undefined) assert.match(error.message, says)
      return true
    },
  )
  if (mode === 'process') assert.equal(isTransportable(value), false)
}

class Unknown {
  field = 1
}
class Derived extends Map {}
const refused = { code: 'TRANSPORT_REFUSED', path: 'value' } as const

test('what has a meaning in one thread only is refused by name', () => {
  check(Symbol('mark'), { ...refused, says: /Symbol\(mark\)/ })
  check(new WeakMap(), { ...refused, says: /weakly/ })
  check(new WeakSet(), refused)
  check(new WeakRef({}), refused)
  check(Promise.resolve(1), { ...refused, says: /await it first/ })
  check(
    (function* () {
      yield 1
    })(),
    { ...refused, says: /generator/ },
  )
  check(new Map().entries(), { ...refused, says: /iterator/ })
  check(Object(Symbol('boxed')), refused)
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
      says: /and is none/,
    })
  check(Object.create(Uint8Array.prototype as object), refused)
  check(Object.setPrototypeOf(new Uint8Array(1), Float64Array.prototype), refused)
})

test('a class nobody registered is named, with what to do', () => {
  const code = 'TRANSPORT_CLASS_UNREGISTERED'
  check(new Unknown(), {
    code,
    path: 'value',
    says: /class Unknown.*register\(Unknown/,
  })
  check(new Derived(), { code, path: 'value', says: /Derived/ })
  check([new (class extends Array {})()], { code, path: 'value[0]' })
  check(new (class {})(), { code, path: 'value', says: /without a name/ })
  check(new AbortController(), { code, path: 'value' })
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
  check({ run: (a: number) => a + captured }, { code, path: 'value.run', says: /captured/ })
  const far = unmarshall(marshall({ run: (a: number) => a + 1 }, { mode: 'process' })) as {
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
    says: /test\.door/,
  })
  assert.equal((unmarshall(marshall({ door }, { mode: 'process' })) as { door: Door }).door, door)
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
    const facts = { code: 'TRANSPORT_REFUSED', message: /^value\[1\]\.buffer .*let go/ }
    assert.throws(() => marshall(value, { mode: 'process' }), facts)
    assert.throws(() => new FrameWriter(new Uint8Array(99)).write(value, 0), facts)
    assert.deepEqual(unmarshall(marshall(value)), value)
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
  check({ buffer }, { code: 'TRANSPORT_REFUSED', path: 'value.buffer', says: /moved away/ })
  check({ view }, { code: 'TRANSPORT_REFUSED', path: 'value.view.buffer' })
})

test('an error thrown by a getter or a hook passes unchanged', () => {
  const mine = new RangeError('mine')
  const thrower = {
    get x(): number {
      throw mine
    },
  }
  assert.throws(
    () => marshall({ thrower }),
    (error) => error === mine,
  )
  class Hooked {}
  register(Hooked, {
    cid: 'test.refusals.Hooked',
    save: () => {
      throw mine
    },
  })
  assert.throws(
    () => marshall([new Hooked()]),
    (error) => error === mine,
  )
  assert.throws(
    () => isTransportable(new Hooked()),
    (error) => error === mine,
  )
  assert.deepEqual(unmarshall(marshall([1])), [1])
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
  check({ node }, { code: 'TRANSPORT_REFUSED', says: /load hook/ })
  node.next = new Node()
  const far = unmarshall(marshall([node, node, node.next])) as Node[]
  assert.equal(far[0], far[1])
  assert.equal(far[0].next, far[2])
})

test('arguments of the doors are checked', () => {
  assert.throws(() => marshall(1, { mode: 'fast' as 'process' }), {
    code: 'TRANSPORT_ARGUMENT',
    message: /mode.*"fast"/,
  })
  for (const wrong of [undefined, 'text', [1], new ArrayBuffer(9)]) {
    assert.throws(() => unmarshall(wrong as unknown as Uint8Array), {
      code: 'TRANSPORT_ARGUMENT',
    })
  }
})
