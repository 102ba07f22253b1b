/**
 * Values, errors and signals that do what no well-meaning ones do: each harms its own call, or nobody.
 *
 * A test fails here, too, by an error that nobody catches: the runner reports those of the process.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { register } from '../transport/index.ts'
import type { ZoneError } from './index.ts'
import { inZone, until } from './zones.test.support.ts'

/** What a worker that dies of it threw, and what its caller is told of that. */
const UNCAUGHT: readonly (readonly [name: string, () => unknown, reason: RegExp])[] = [
  ['an object that is no text', () => ({ toString: null, valueOf: null }), /\[Object\]|toString: null/],
  [
    'an error whose message is no text',
    () => Object.assign(new Error(), { message: { toString: null } }),
    /\[Object|toString: null/,
  ],
  ['an error with a cause that is no text', () => new Error('x', { cause: { toString: null } }), /x/],
  ['a symbol', () => Symbol('thrown'), /Symbol\(thrown\)/],
  ['nothing', () => undefined, /undefined/],
]

for (const [name, make, reason] of UNCAUGHT) {
  test(`${name}, thrown where nobody catches it, ends its worker alone, which says so`, () =>
    inZone({ workers: 1 }, async (own) => {
      const dies = (source: string): Promise<never> => {
        const value: unknown = new Function(`return (${source})()`)()
        setImmediate(() => {
          throw value
        })
        return new Promise(() => {})
      }
      const error = await own.run(dies, String(make)).catch((why: unknown) => why as ZoneError)
      assert.equal((error as ZoneError).code, 'WORKER_DIED')
      assert.match((error as ZoneError).message, reason)
      assert.equal(await own.run(() => 'next'), 'next')
    }))
}

/** Registered here alone. */
class Known {
  readonly why = 'here alone'
}
register(Known, { cid: 'test.hostile.Known' })

/** What a signal is aborted with, once it is. */
function reasonOf(signal: AbortSignal, begun: Int32Array): unknown {
  Atomics.store(begun, 0, 1)
  if (signal.aborted) return signal.reason
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)))
}

test('a signal is aborted with a reason that the other thread cannot read: it is aborted with that', () =>
  inZone({ workers: 1 }, async (own) => {
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const controller = new AbortController()
    const call = own.run(reasonOf, controller.signal, begun)
    await until(() => begun[0] === 1)
    controller.abort(new Known())
    assert.equal(((await call) as { code?: unknown }).code, 'TRANSPORT_CLASS_UNKNOWN')
    // One that is aborted before it is sent.
    const late = await own.run(reasonOf, controller.signal, begun)
    assert.equal((late as { code?: unknown }).code, 'TRANSPORT_CLASS_UNKNOWN')
    assert.equal(own.stats().died, 0)
  }))

test('the same for a signal that a task has returned', () =>
  inZone({ workers: 1 }, async (own) => {
    const { signal } = await own.run(async () => {
      const transport = await import('../transport/index.ts')
      class Theirs {
        readonly why = 'there alone'
      }
      transport.register(Theirs, { cid: 'test.hostile.Theirs' })
      const controller = new AbortController()
      Object.assign(globalThis, { abort: () => controller.abort(new Theirs()) })
      return { signal: controller.signal }
    })
    const heard = new Promise((resolve) => signal.addEventListener('abort', resolve))
    await own.run(() => (globalThis as unknown as { abort(): void }).abort())
    await heard
    assert.equal((signal.reason as { code?: unknown }).code, 'TRANSPORT_CLASS_UNKNOWN')
  }))

test('a signal is aborted with a reason that will not be read, and whose error cannot travel either', () =>
  inZone({ workers: 1 }, async (own) => {
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const controller = new AbortController()
    const call = own.run(reasonOf, controller.signal, begun)
    await until(() => begun[0] === 1)
    const hostile = {
      get field(): never {
        // oxlint-disable-next-line typescript/only-throw-error -- what is no error, on purpose
        throw new WeakMap()
      },
    }
    controller.abort(hostile)
    assert.match(String(await call), /WeakMap/)
  }))
