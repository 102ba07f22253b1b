/**
 * Which classes are registered only with hooks, and which of their objects are refused: those with state that
 * no field shows.
 */
import assert from 'node:assert/strict'
import { BlockList, Server, Socket } from 'node:net'
import crypto from 'node:crypto'
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { decode, encode, register } from '../index.ts'
import { processFrame, readFrame } from '../internal.ts'

/** The value behind a frame between threads. */
function inside<Value>(value: Value): Value {
  const frame = processFrame(value)
  return readFrame(frame, 0, frame.length) as Value
}
const anywhere = <Value>(value: Value): Value => decode(encode(value)) as Value

test('classes whose content is not in their fields are not registered without hooks', () => {
  class Bus extends EventEmitter {}
  const classes = [
    ...[Blob, File, FormData, Headers, Request, Response, ReadableStream, TextDecoder, Intl.NumberFormat],
    ...[WeakMap, WeakRef, EventTarget, Promise, Socket, Server, PassThrough, EventEmitter, BlockList, Bus],
    ...[crypto.KeyObject, CryptoKey, MessageChannel, AbortController, URLSearchParams, DataView],
  ] as unknown as (abstract new () => object)[]
  for (const made of classes)
    assert.throws(
      () => register(made, { cid: 'platform.refused' }),
      { code: 'TRANSPORT_REGISTRATION' },
      made.name,
    )
  register(Bus, { cid: 'platform.Bus', save: () => 1, load: () => new Bus() })
  assert.ok(inside(new Bus()) instanceof Bus)
})

test('classes with private methods or accessors are not registered without save and load', () => {
  class Method {
    b = 2
    #m() {
      return this.b
    }
    read() {
      return this.#m()
    }
  }
  class Getter {
    get #g() {
      return 2
    }
    read() {
      return this.#g
    }
  }
  class Setter {
    set #s(_: number) {}
    write() {
      this.#s = 1
    }
  }
  class Extends extends Method {}
  const save = () => ({})
  for (const [made, names] of [
    [Method, '#m'],
    [Getter, '#g'],
    [Setter, '#s'],
    [Extends, '#m'],
  ] as const) {
    const message = `class 'platform.private' cannot be registered: it has private members (${names}); `
    for (const hooks of [{}, { save }])
      assert.throws(() => register(made as typeof Method, { cid: 'platform.private', ...hooks }), {
        code: 'TRANSPORT_REGISTRATION',
        message: message + 'pass save and load that keep them',
      })
  }
  register(Method, { cid: 'platform.private', save, load: () => new Method() })
  assert.equal(inside(new Method()).read(), 2)
  class Shared {
    b = 2
    static #count = 1
    static #next() {
      return this.#count++
    }
    static get #last() {
      return this.#next()
    }
    read() {
      return Shared.#last + this.b
    }
  }
  register(Shared, { cid: 'platform.Shared' })
  assert.equal(inside(new Shared()).read(), 3)
})

test('state under a symbol or in a hidden field is refused at the first object, by path', () => {
  const kept = Symbol('kept')
  class Marked {
    [kept]: number
    constructor(value: number) {
      this[kept] = value
    }
  }
  class Hidden {
    constructor() {
      Object.defineProperty(this, 'secret', { value: 1 })
    }
  }
  class Loading extends Hidden {}
  register(Marked, { cid: 'platform.Marked' })
  register(Hidden, { cid: 'platform.Hidden' })
  register(Loading, { cid: 'platform.Loading', load: () => new Loading() })
  const wide = Object.assign(
    new Marked(1),
    Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, index])),
  )
  for (const [value, message] of [
    [new Marked(5), /under Symbol\(kept\); register its class with save and load/],
    [wide, /under Symbol\(kept\)/],
    [new Hidden(), /in 'secret', which is not enumerable/],
    [new Loading(), /in 'secret'/],
  ] as const) {
    assert.throws(() => encode([{ value }]), { code: 'TRANSPORT_REFUSED', message: message })
    assert.throws(() => encode([{ value }]), { message: /^value\[0\]\.value / })
  }
  register(Marked, {
    cid: 'platform.Marked',
    save: (marked) => marked[kept],
    load: (saved) => new Marked(saved),
  })
  assert.equal(anywhere(new Marked(5))[kept], 5)
})
