/**
 * A program that replaces methods of Uint8Array and Buffer, and detaches every large buffer that it sees:
 * those through which the core is called are among them.
 *
 * Each test is a program of its own. What it does afterwards ends with the right result or with an error that
 * has a code; no signal ends it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { program } from './run.mjs'

const side = { concurrency: 2 }
const module = (path) => import.meta.resolve(`corespun/${path}`)

const RIGHT = /^true\nend$/
/** A batch that arrives after the detaching fails in a callback of the core, where no caller can catch it. */
const RIGHT_OR_CODED = /^true\n(end|uncaught NATIVE_DETACHED)$/

/** Ways to detach a buffer, as functions of it. `transfer` is of Node 22 and newer. */
const WAYS = {
  structuredClone: ['(buffer) => structuredClone(buffer, { transfer: [buffer] })', RIGHT],
  postMessage: ['(buffer) => new MessageChannel().port1.postMessage(buffer, [buffer])', RIGHT],
  transfer: ['(buffer) => buffer.transfer?.()', RIGHT_OR_CODED],
  'a byte stream': [
    `(buffer) => void new ReadableStream({ type: 'bytes' }).getReader({ mode: 'byob' })
      .read(new Uint8Array(buffer)).catch(() => {})`,
    RIGHT_OR_CODED,
  ],
}

const ATTACK = (way) => `
  import { serve } from '${module('http')}'
  import { store } from '${module('store')}'
  import { Lock } from '${module('sync')}'
  const seen = new Set()
  const see = (view) => {
    if (view?.buffer instanceof ArrayBuffer && view.buffer.byteLength > 65_536) seen.add(view.buffer)
  }
  for (const owner of [Object.getPrototypeOf(Uint8Array.prototype), Buffer.prototype]) {
    for (const name of Object.getOwnPropertyNames(owner)) {
      const { value, writable } = Object.getOwnPropertyDescriptor(owner, name)
      if (typeof value !== 'function' || !writable || name === 'constructor') continue
      owner[name] = function (...args) {
        see(this)
        for (const each of args) see(each)
        return Reflect.apply(value, this, args)
      }
    }
  }
  const used = store.create('used')
  const z = zone.create('z', { workers: 1 })
  const lock = new Lock()
  const server = await serve({ quiet: true, port: 0, routes: { '/': async (request) => request.text() } })
  const text = 'x'.repeat(50_000), wide = '☃'.repeat(5000), key = 'k'.repeat(100)
  const steps = (n) => [
    [() => used.set(key + n, { text, wide, bytes: new Uint8Array(40_000), n }), undefined],
    [() => used.get(key + n).n, n],
    [() => z.run((value) => value.n + value.text.length, { text, wide, n }), 50_000 + n],
    [() => lock.guard(() => n), n],
    [() => used.update('count', () => n), n],
    [async () => (await (await fetch(server.url, { method: 'POST', body: text + n })).text()).length, 50_001],
  ]
  for (const n of [1, 2]) for (const [step] of steps(n)) await step()
  await z.run(() => globalThis.gc?.())
  console.log(seen.size > 2)
  process.on('uncaughtException', (error) => {
    console.log('uncaught', error.code)
    process.exit(0)
  })
  for (const buffer of seen) try { (${way})(buffer) } catch {}
  for (let n = 0; n < 50; n++) new Uint8Array(300_000).fill(255)
  for (const n of [3, 4]) {
    for (const [step, right] of steps(n)) {
      try {
        const value = await step()
        if (value !== right) console.log('wrong', String(step), value)
      } catch (error) {
        if (!/^[A-Z_]+$/.test(error.code ?? error.cause?.code)) console.log('wrong', String(step), error)
      }
    }
  }
  console.log('end')
  process.exit(0)`

for (const [name, [way, out]] of Object.entries(WAYS)) {
  test(`the core does not use its memory after a program has detached it by ${name}`, side, async () => {
    const ended = await program(ATTACK(way), { flags: ['--no-warnings', '--expose-gc'] })
    const shown = JSON.stringify(ended, undefined, 1)
    assert.deepEqual([ended.code, ended.signal], [0, null], shown)
    assert.match(ended.out, out, shown)
  })
}

const ITERATORS = `
  const seen = new Set()
  const typed = Object.getPrototypeOf(Uint8Array.prototype)
  for (const name of ['values', 'entries', Symbol.iterator]) {
    const method = typed[name]
    typed[name] = function (...args) {
      for (const view of [this, ...args]) if (ArrayBuffer.isView(view)) seen.add(view.buffer)
      return Reflect.apply(method, this, args)
    }
  }
  const z = zone.create('z', { workers: 1 })
  const step = (n) => z.run((value) => value.n + value.half, { n, half: n + 0.5 })
  await step(1)
  for (const buffer of seen) try { structuredClone(buffer, { transfer: [buffer] }) } catch {}
  console.log(await step(2))
  console.log('end')
  process.exit(0)`

test('a program that replaces iterators of typed arrays sees no memory of the call sites', async () => {
  const ended = await program(ITERATORS, { flags: ['--no-warnings'] })
  assert.equal(ended.out, '4.5\nend', JSON.stringify(ended, undefined, 1))
})

const KEYS = `
  import { decode, encode } from '${module('transport')}'
  const { set } = Uint8Array.prototype
  const seen = new Set()
  Object.getPrototypeOf(Uint8Array.prototype).set = function (source, ...rest) {
    if (ArrayBuffer.isView(source)) seen.add(source.buffer)
    return Reflect.apply(set, this, [source, ...rest])
  }
  const value = (n) => ({ first: n, second: n + 0.5 })
  // The first values of a thread are written without shapes.
  for (let n = 0; n < 20; n++) encode(Array.from({ length: 2000 }, (_, index) => value(index)))
  console.log(seen.size > 0)
  for (const buffer of seen) try { structuredClone(buffer, { transfer: [buffer] }) } catch {}
  try {
    console.log(decode(encode(value(1))).second)
  } catch (error) {
    console.log(error.code)
  }
  console.log(decode(encode({ other: 5 })).other)
  process.exit(0)`

test('a program that detaches the keys of a shape receives an error with a code', async () => {
  const ended = await program(KEYS, { flags: ['--no-warnings'] })
  assert.equal(ended.out, 'true\nNATIVE_DETACHED\n5', JSON.stringify(ended, undefined, 1))
})
