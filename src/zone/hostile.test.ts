/**
 * Values, errors and signals that do what no well-meaning ones do: each harms its own call, or nobody.
 *
 * A test fails here, too, by an error that nobody catches: the runner reports those of the process.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { register } from '../transport/index.ts'
import { type Zone, type ZoneError, zone } from './index.ts'
import { inZone, until } from './api/zones.test.support.ts'

/** What ends a worker when it is thrown, and the reason in the error of the caller. */
const UNCAUGHT: readonly (readonly [name: string, () => unknown, reason: RegExp])[] = [
  [
    'an object that cannot be a string',
    () => ({ toString: null, valueOf: null }),
    /\[Object\]|toString: null/,
  ],
  [
    'an error whose message cannot be a string',
    () => Object.assign(new Error(), { message: { toString: null } }),
    /\[Object|toString: null/,
  ],
  ['an error with a cause that cannot be a string', () => new Error('x', { cause: { toString: null } }), /x/],
  [
    'an error that is its own cause',
    () => {
      const error = new Error('round')
      error.cause = new Error('and round', { cause: error })
      return error
    },
    /round/,
  ],
  ['a symbol', () => Symbol('thrown'), /Symbol\(thrown\)/],
  ['nothing', () => undefined, /undefined/],
]

for (const [name, make, reason] of UNCAUGHT) {
  test(`${name}, thrown and not caught, ends its worker alone and is in the reason`, () =>
    inZone({ workers: 1 }, async (own) => {
      const dies = (source: string): Promise<never> => {
        const value: unknown = new Function(`return (${source})()`)()
        setImmediate(() => {
          throw value
        })
        return new Promise(() => {})
      }
      const error = await own.run(dies, String(make)).catch((why: unknown) => why as ZoneError)
      assert.equal(error.code, 'WORKER_DIED')
      assert.match(error.message, reason)
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

/** The reason that a task reads when the signal among its arguments is aborted with `reason`. */
async function received(own: Zone, controller: AbortController, reason: unknown): Promise<unknown> {
  const begun = new Int32Array(new SharedArrayBuffer(4))
  const call = own.run(reasonOf, controller.signal, begun)
  await until(() => begun[0] === 1)
  controller.abort(reason)
  return call
}

test('a signal is aborted with a reason that the other thread cannot read: it is aborted with that', () =>
  inZone({ workers: 1 }, async (own) => {
    const controller = new AbortController()
    const first = await received(own, controller, new Known())
    // The same signal, aborted before it is sent.
    const later = await received(own, controller, undefined)
    for (const reason of [first, later])
      assert.equal((reason as { code?: unknown }).code, 'TRANSPORT_CLASS_UNKNOWN')
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
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    await own.run(() => (globalThis as unknown as { abort(): void }).abort())
    await aborted
    assert.equal((signal.reason as { code?: unknown }).code, 'TRANSPORT_CLASS_UNKNOWN')
  }))

test('a signal is aborted with a reason that will not be read, and whose error cannot travel either', () =>
  inZone({ workers: 1 }, async (own) => {
    const hostile = {
      get field(): never {
        // oxlint-disable-next-line typescript/only-throw-error -- not an error, on purpose
        throw new WeakMap()
      },
    }
    assert.match(String(await received(own, new AbortController(), hostile)), /WeakMap/)
  }))

/** Options that are something else when they are read again. */
function changing(first: object, later: object): object {
  const reads = new Map<string, number>()
  const get = (name: 'timeoutMs' | 'signal') => (): unknown => {
    const count = reads.get(name) ?? 0
    reads.set(name, count + 1)
    return ((count === 0 ? first : later) as Record<string, unknown>)[name]
  }
  return Object.defineProperties(
    {},
    {
      timeoutMs: { get: get('timeoutMs'), enumerable: true },
      signal: { get: get('signal'), enumerable: true },
    },
  )
}

test('options are read once: what they become later does not matter', () =>
  inZone({ workers: 1 }, async (own) => {
    const later = { timeoutMs: 'soon', signal: { aborted: false } }
    const controller = new AbortController()
    for (const first of [{}, { timeoutMs: 5000 }, { signal: controller.signal }]) {
      const options = (): object => changing(first, later)
      assert.equal((await own.execute(() => 1, [], options())).value, 1)
      await own.broadcast(() => {}, [], options())
      assert.equal((await zone.node.execute(() => 1, [], options())).value, 1)
    }
    const signal = { get: 0 }
    const options = Object.defineProperty({}, 'signal', {
      enumerable: true,
      get: () => (signal.get++ === 0 ? undefined : { aborted: false }),
    })
    assert.deepEqual(await own.map([1, 2, 3], (x) => x, options), [1, 2, 3])
  }))

test('a signal that cannot be listened to fails its call, and nothing is sent', () =>
  inZone({ workers: 1 }, async (own) => {
    const real = new AbortController().signal
    const deaf = Object.defineProperty(real, 'addEventListener', {
      value: () => {
        throw new RangeError('deaf')
      },
    })
    const ran = new Int32Array(new SharedArrayBuffer(4))
    const count = (cell: Int32Array): number => Atomics.add(cell, 0, 1)
    const options = { signal: deaf }
    await assert.rejects(own.execute(count, [ran], options), { message: 'deaf' })
    await assert.rejects(own.broadcast(count, [ran], options), { message: 'deaf' })
    await assert.rejects(
      zone.node.execute(() => 1, [], options),
      { message: 'deaf' },
    )
    await own.run(() => 1)
    assert.equal(ran[0], 0)
  }))

/** Sources that are no good, and what the loop over them throws. */
const BAD_SOURCES: readonly (readonly [string, () => AsyncIterable<number> | Iterable<number>, RegExp])[] = [
  [
    'an async iterator whose next() returns nothing',
    () => asyncOf(() => Promise.resolve(undefined)),
    /undefined is not/,
  ],
  [
    'one whose next() returns a number and not a promise',
    () => asyncOf(() => 5),
    /Iterator result 5 is not an object/,
  ],
  ['one whose result cannot be read', () => asyncOf(() => Promise.resolve(unreadable('done'))), /done/],
  ['one whose value cannot be read', () => asyncOf(() => Promise.resolve(unreadable('value'))), /value/],
  ['one that rejects', () => asyncOf(() => Promise.reject(new Error('no more'))), /no more/],
  [
    'a sync iterator whose next() returns a number',
    () => syncOf(() => 5),
    /Iterator result 5 is not an object/,
  ],
  ['one whose done cannot be read', () => syncOf(() => unreadable('done')), /done/],
]

function asyncOf(next: () => unknown): AsyncIterable<number> {
  return { [Symbol.asyncIterator]: () => ({ next }) as AsyncIterator<number> }
}

function syncOf(next: () => unknown): Iterable<number> {
  return { [Symbol.iterator]: () => ({ next }) as Iterator<number> }
}

function unreadable(name: string): object {
  return Object.defineProperty({ done: false }, name, {
    get: () => {
      throw new Error(name)
    },
  })
}

for (const [name, source, message] of BAD_SOURCES) {
  test(`${name} is the error of the call, which ends`, () =>
    inZone({ workers: 1 }, async (own) => {
      const all = async (): Promise<void> => {
        for await (const _ of own.map(source(), (x) => x));
      }
      await assert.rejects(all(), { message })
      await assert.rejects(
        own.forEach(source(), () => {}),
        { message },
      )
      const sum = (a: number, b: number): number => a + b
      await assert.rejects(own.reduce(source(), sum, 0), { message })
      await assert.rejects(zone.node.reduce(source(), sum, 0), { message })
    }))
}

test('an array that throws when it is read, far behind its beginning, fails its call', () =>
  inZone({ workers: 2 }, async (own) => {
    const items = Array.from({ length: 2000 }, (_, index) => index)
    Object.defineProperty(items, 1900, {
      get: () => {
        throw new RangeError('not this one')
      },
    })
    class Odd extends Array<number> {
      override slice(): number[] {
        return []
      }
    }
    for (const options of [{ chunkMax: 20, aheadMax: 200 }, { chunkMax: 20 }, {}]) {
      await assert.rejects(
        own.map(items, (x) => x, options),
        { message: 'not this one' },
      )
      await assert.rejects(
        own.map(Odd.from([1, 2]), (x) => x, options),
        TypeError,
      )
    }
  }))

test("what a source's clean-up throws does not hide the error of an item", () =>
  inZone({ workers: 1 }, async (own) => {
    function* endless(): Generator<number> {
      try {
        for (let n = 0; ; n++) yield n
      } finally {
        // oxlint-disable-next-line no-unsafe-finally -- the point
        throw new Error('clean-up')
      }
    }
    const fails = (): never => {
      throw new RangeError('the item')
    }
    await assert.rejects(own.forEach(endless(), fails), { message: 'the item' })
    // As a loop does, which throws it where nothing else is thrown.
    const values = own.map(endless(), (n) => n)
    await values.next()
    await assert.rejects(values.return(undefined), { message: 'clean-up' })
  }))

test('a signal cancels its call although its first listener stops the event', () =>
  inZone({ workers: 1, graceMs: 50, tasksMax: 1 }, async (own) => {
    const stopping = (): AbortController => {
      const made = new AbortController()
      made.signal.addEventListener('abort', (event) => event.stopImmediatePropagation())
      return made
    }
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const endless = (cell: Int32Array): never => {
      Atomics.store(cell, 0, 1)
      for (;;);
    }
    const calls: [string, (signal: AbortSignal) => Promise<unknown>][] = [
      ['execute', (signal) => own.execute(endless, [begun], { signal })],
      ['node', (signal) => zone.node.execute(() => new Promise(() => {}), [], { signal })],
      ['broadcast', (signal) => own.broadcast(() => {}, [], { signal })],
      ['sent', (signal) => own.run(reasonOf, signal, begun).then((why) => Promise.reject(why as Error))],
      ['forEach', (signal) => own.forEach([begun], endless, { signal })],
    ]
    for (const [name, call] of calls) {
      const controller = stopping()
      begun[0] = 0
      const blocks =
        name === 'broadcast'
          ? own.run(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100))
          : undefined
      const called = call(controller.signal)
      if (name !== 'node' && name !== 'broadcast') await until(() => begun[0] === 1)
      controller.abort(new Error(name))
      await assert.rejects(called, { message: name })
      await blocks
    }
    // Full: one waits, one runs.
    await until(() => own.stats().running === 0)
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const running = own.run((cell: Int32Array) => Atomics.wait(cell, 0, 0), gate)
    await until(() => own.stats().running === 1)
    const waiting = own.run(() => 1)
    const controller = stopping()
    const ready = own.ready({ signal: controller.signal })
    controller.abort(new Error('ready'))
    await assert.rejects(ready, { message: 'ready' })
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await Promise.all([running, waiting])
  }))

test('a broadcast that calls its own zone is refused it, and the zone goes on', () =>
  inZone({ workers: 2, executor: 'work-stealing' }, async (own) => {
    const code = { code: 'ZONE_DEADLOCK' }
    const tries: (() => Promise<unknown>)[] = [
      async () => (await import('./index.ts')).zone.current.run(() => 1),
      async () => (await import('./index.ts')).zone.current.run((x: object) => x, {}),
      async () => (await import('./index.ts')).zone.current.execute(() => 1, []),
      async () => (await import('./index.ts')).zone.current.execute('node:path', 'join', ['a']),
      async () => (await import('./index.ts')).zone.current.map([1, 2], (x) => x),
      async () =>
        (await import('./index.ts')).zone.current.run((x: Uint8Array) => x, new Uint8Array(1 << 20)),
      async () => (await import('./index.ts')).zone.current.ready(),
    ]
    for (const tried of tries) {
      await assert.rejects(own.broadcast(tried), code)
      assert.equal(await own.run(() => 1), 1)
    }
    // Once it is over what it has left behind may call.
    await own.broadcast(async () => {
      const { zone } = await import('./index.ts')
      const later = new Promise((resolve) => setTimeout(resolve, 50)).then(() =>
        zone.current.run(() => 'later'),
      )
      Object.assign(globalThis, { later })
    })
    assert.equal(await own.run(() => (globalThis as unknown as { later: Promise<string> }).later), 'later')
  }))
