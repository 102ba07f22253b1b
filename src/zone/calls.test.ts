/**
 * Calls that go well and calls that fail: run, execute, module, results, errors, `this`, the current zone.
 *
 * One zone of two workers serves the whole file; what a function returns or throws in a worker is compared
 * with what the same function does here.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { thisBridge } from '../bridge/index.ts'
import { FunctionError, TransportError, move, decode } from '../transport/index.ts'
import { Result, type Task, type Zone, ZoneError, currentTask, zone } from './index.ts'

const here = zone.create('calls', { workers: 2 })
after(() => here.close())

type Fn = (...args: never[]) => unknown

/**
 * A call in a worker has the outcome of the same call here: the value, or the error with its class, message,
 * code and name.
 */
function same(name: string, fn: Fn, ...args: unknown[]): void {
  test(name, async () => {
    const [there, there2, local] = await Promise.all([
      outcome(() => here.run(fn as never, ...(args as never[]))),
      outcome(async () => (await here.execute(fn as never, args as never)).value),
      outcome(() => (fn as (...given: unknown[]) => unknown)(...args)),
    ])
    assert.deepEqual(there, local)
    assert.deepEqual(there2, local)
  })
}

async function outcome(body: () => unknown): Promise<unknown> {
  try {
    return { value: await body() }
  } catch (error) {
    return error instanceof Error ? { error, ...described(error) } : { thrown: error }
  }
}

/** deepEqual compares errors by name and message only; this is the rest. */
function described(error: Error): object {
  const { stack: _, ...own } = Object.getOwnPropertyDescriptors(error)
  const fields = Object.entries(own).filter(([key]) => key !== 'cause' && key !== 'errors')
  const values = fields.map(([key, { value, enumerable }]) => [key, value as unknown, enumerable])
  const cause = error.cause instanceof Error ? described(error.cause) : error.cause
  const errors = error instanceof AggregateError ? (error.errors as Error[]).map(described) : undefined
  return {
    prototype: Object.getPrototypeOf(error) as object,
    values,
    cause,
    errors,
  }
}

same('no arguments and no value', () => {})
same(
  'arguments arrive in order and in number',
  (...args: unknown[]) => [args.length, ...args],
  1,
  undefined,
  null,
  'x',
)
same('values of many kinds there and back', (value: unknown) => value, {
  numbers: [0, -0, NaN, Infinity, 2 ** 53, 12n],
  texts: ['', 'ü', '🙂', '\ud800'],
  others: [undefined, null, true, new Date(5), /x/gi, new Map([[1, new Set([2])]]), new URL('http://a/b')],
  bytes: new Uint8Array([1, 2, 3]),
})
same('an asynchronous function', async (x: number) => (await Promise.resolve(x)) + 1, 4)
same('a promise of a promise', () => Promise.resolve(Promise.resolve(5)))
same('a thenable is adopted', () => ({
  then: (yes: (value: number) => void) => yes(7),
}))
same('a thenable that rejects', () => ({
  then: (_: unknown, no: (why: unknown) => void) => no(new RangeError('no')),
}))
same('a thenable that settles twice counts once', () => ({
  then(yes: (value: number) => void, no: (why: unknown) => void) {
    yes(1)
    yes(2)
    no(new Error('three'))
  },
}))
same('a thenable that throws after it settled', () => ({
  then(yes: (value: number) => void) {
    yes(1)
    throw new Error('too late')
  },
}))
same('a thenable whose then throws', () => ({
  then() {
    throw new TypeError('then threw')
  },
}))
same('a thenable whose getter of then throws', () => ({
  get then() {
    throw new TypeError('getter threw')
  },
}))
same('a then that is no function is a value', () => ({ then: 5 }))
same('a promise with a then of its own', () =>
  Object.assign(Promise.resolve(1), { then: (yes: Fn) => yes(2 as never) }),
)
same('an error of the language with its class', () => {
  throw new RangeError('out of range')
})
same('an error with code, own fields and cause', () => {
  const cause = Object.assign(new TypeError('inner'), { code: 'E_INNER' })
  throw Object.assign(new Error('outer', { cause }), {
    code: 'E_OUTER',
    status: 404,
    detail: { deep: [1, 2] },
  })
})
same('an AggregateError with its errors', () => {
  throw new AggregateError([new Error('a'), new SyntaxError('b')], 'both')
})
same('a rejection of an asynchronous function', async () => {
  await null
  throw new EvalError('later')
})
same('thrown values that are no errors', () => {
  throw { plain: 'object' }
})
same('thrown undefined', () => {
  throw undefined
})
same('a rejection with null', () => Promise.reject(null))
same('an abort error', () => {
  throw new DOMException('stop', 'AbortError')
})

test('an error of an unregistered class arrives under its name, as the class it extends', async () => {
  const failing = () => {
    class Odd extends TypeError {
      kind = 'odd'
    }
    throw new Odd('strange')
  }
  await assert.rejects(here.run(failing), (error) => {
    assert.ok(error instanceof TypeError)
    assert.deepEqual(
      [error.name, error.message, (error as { kind?: unknown }).kind],
      ['Odd', 'strange', 'odd'],
    )
    return true
  })
})

test('a stack shows the file and line where the function was written', async () => {
  const failing = () => {
    throw new Error('where')
  }
  await assert.rejects(here.run(failing), (error: Error) => {
    assert.match(error.stack ?? '', /calls\.test\.js:\d+/)
    assert.doesNotMatch(
      error.stack ?? '',
      /dispatcher\.js|AsyncLocalStorage/,
      "none of Corespun's own frames",
    )
    return true
  })
})

test('what cannot be carried back fails its call alone, with the path and the reason', async () => {
  const cases: [() => unknown, RegExp][] = [
    [() => Symbol('s'), /symbol/],
    [() => ({ deep: [{ map: new WeakMap() }] }), /deep\[0\]\.map/],
    [() => new (class Unknown {})(), /Unknown is not registered/],
    [() => new Promise(() => {}).constructor, /function|class/i],
  ]
  for (const [fn, words] of cases) {
    await assert.rejects(here.run(fn), (error: Error) => {
      assert.ok(error instanceof TransportError || error instanceof FunctionError, String(error))
      assert.match(error.message, words)
      return true
    })
  }
  const ended = here.stats().died
  assert.equal(await here.run(() => 1), 1)
  assert.equal(here.stats().died, ended)
})

/** What functions throw, and the message that must arrive. */
const HOSTILE: [() => unknown, RegExp][] = [
  [
    () => {
      throw Symbol('s')
    },
    /symbol/,
  ],
  [
    () => {
      throw Object.assign(new RangeError('kept'), {
        code: 'E_KEPT',
        odd: Symbol('s'),
      })
    },
    /^kept$/,
  ],
  [
    () => {
      throw Object.defineProperty(new Error(''), 'message', {
        get() {
          throw new Error('inner')
        },
      })
    },
    /./,
  ],
  [
    () => {
      throw Object.defineProperty(new Error('m'), 'stack', {
        get() {
          throw new Error('inner')
        },
      })
    },
    /./,
  ],
  [
    () => {
      throw Object.defineProperty(new Error('m'), 'name', {
        get() {
          throw new Error('inner')
        },
      })
    },
    /./,
  ],
  [
    () => {
      throw new Proxy(new Error('m'), {
        get() {
          throw new Error('trap')
        },
      })
    },
    /./,
  ],
  [
    () => {
      throw new Proxy(
        {},
        {
          ownKeys() {
            throw new Error('trap')
          },
        },
      )
    },
    /./,
  ],
  [
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      throw proxy
    },
    /./,
  ],
  [
    async () => {
      throw new Proxy(new Error('m'), {
        get() {
          throw new Error('trap')
        },
        getPrototypeOf() {
          throw 1
        },
      })
    },
    /./,
  ],
]

test('a thrown value that cannot be transported is reported, and the worker keeps running', async () => {
  const died = here.stats().died
  for (const [fn, words] of HOSTILE) {
    await assert.rejects(here.run(fn), (error: { code?: unknown; message?: unknown }) => {
      assert.notEqual(error.code, 'WORKER_DIED', String(fn))
      assert.match(String(error.message ?? error), words, String(fn))
      return true
    })
  }
  assert.equal(here.stats().died, died)
})

test('an argument that cannot be carried is refused at the call, by its path; nothing is sent', async () => {
  const ended = here.stats().ended
  const cases: [unknown, string, RegExp][] = [
    [{ user: { socket: Symbol('s') } }, 'TRANSPORT_REFUSED', /args\[0\]\.user\.socket/],
    [new WeakRef({}), 'TRANSPORT_REFUSED', /args\[0\]/],
    [
      {
        get x() {
          throw new RangeError('getter')
        },
      },
      '',
      /getter/,
    ],
  ]
  for (const [value, code, words] of cases) {
    await assert.rejects(
      here.run((x: unknown) => x, value),
      (error: { code?: string; message: string }) => {
        if (code !== '') assert.equal(error.code, code)
        assert.match(error.message, words)
        return true
      },
    )
  }
  const outer = 5
  await assert.rejects(
    here.run(() => outer),
    { code: 'FUNCTION_CAPTURES', message: /outer \(line \d+, column \d+/ },
  )
  assert.equal(here.stats().ended, ended)
})

test('a value that is not a function is refused by name, by a rejection and not a throw', async () => {
  for (const value of [5, null, undefined, 'x', {}, []]) {
    const calls = [() => here.run(value as never), () => zone.node.run(value as never)]
    for (const call of calls)
      await assert.rejects(call(), {
        code: 'ZONE_ARGUMENT',
        message: /the first argument must be a function/,
      })
    if (value !== 'x')
      await assert.rejects(here.broadcast(value as never), {
        code: 'ZONE_ARGUMENT',
      })
  }
  await assert.rejects(here.execute(5 as never), {
    code: 'ZONE_ARGUMENT',
    message: /the first argument/,
  })
  await assert.rejects(
    here.execute(() => 1, 5 as never),
    { code: 'ZONE_ARGUMENT', message: /^zone\.\w+\(\): args must/ },
  )
  await assert.rejects(
    here.execute(() => 1, [], 5 as never),
    { code: 'ZONE_ARGUMENT', message: /^zone\.\w+\(\): options must/ },
  )
  await assert.rejects(here.execute('./m.js', ''), {
    code: 'ZONE_ARGUMENT',
    message: /name of an export/,
  })
})

test('a result is decoded when it is looked at, once', async () => {
  const result = await here.execute(() => ({ a: [1, 2] }))
  assert.ok(result instanceof Result)
  assert.deepEqual(decode(result.payload, { mode: 'process' }), { a: [1, 2] })
  assert.throws(() => decode(result.payload), { code: 'TRANSPORT_PROCESS_FRAME' })
  const first = result.value
  assert.deepEqual(first, { a: [1, 2] })
  assert.equal(result.value, first)
  const empty = await here.execute(() => {})
  assert.deepEqual([empty.value, decode(empty.payload, { mode: 'process' })], [undefined, undefined])
  const copied = await here.execute(() => 'text')
  copied.payload.fill(0xff)
  assert.equal(copied.value, 'text')
})

const MODULE = new URL('../../test/zone/modules/math.mjs', import.meta.url)

test('an export of a module by URL, by path and relative to the caller', async () => {
  for (const name of [MODULE, MODULE.href, fileURLToPath(MODULE), '../../test/zone/modules/math.mjs']) {
    const result = await here.execute(name, 'add', [2, 3])
    assert.equal(result.value, 5)
  }
  assert.equal((await here.execute(MODULE, 'later', [2])).value, 3)
  assert.equal((await here.execute(MODULE, 'default', [2])).value, 4)
  assert.equal((await here.execute('node:path', 'basename', ['/a/b.c'])).value, 'b.c')
})

test('a module, an export or a kind that is not there is an error that names it', async () => {
  const cases: [string | URL, string, string, RegExp][] = [
    [new URL('./none.mjs', MODULE), 'f', 'FUNCTION_MODULE', /none\.mjs/],
    [MODULE, 'none', 'FUNCTION_EXPORT_MISSING', /"none"; its exports: .*add/],
    [MODULE, 'five', 'FUNCTION_EXPORT_KIND', /"five" .* is 5, not a function/],
    ['data:text/javascript,export function f( {', 'f', 'FUNCTION_MODULE', /Unexpected/],
    [
      'data:text/javascript,throw new Error("thrown while it was loaded")',
      'f',
      'FUNCTION_MODULE',
      /thrown while/,
    ],
  ]
  for (const [module, name, code, words] of cases) {
    await assert.rejects(here.execute(module, name), (error: FunctionError) => {
      assert.ok(error instanceof Error)
      assert.equal(error.code, code)
      assert.match(error.message, words)
      return true
    })
  }
})

test('module() returns typed functions, loads at the first call, and is not a promise', async () => {
  const math = here.module<{
    add(a: number, b: number): number
    later(a: number): Promise<number>
    none(): void
  }>(MODULE)
  assert.equal(await math, math)
  assert.equal(math.add, math.add)
  assert.equal(await math.add(1, 2), 3)
  assert.equal(await math.later(1), 2)
  await assert.rejects(math.none(), { code: 'FUNCTION_EXPORT_MISSING' })
  const missing = here.module<{ f(): void }>('./not-there.mjs')
  await assert.rejects(missing.f(), { code: 'FUNCTION_MODULE' })
  assert.equal((math as Record<symbol, unknown>)[Symbol.iterator], undefined)
})

test('import() and import.meta work inside, relative to the file of the function', async () => {
  const url = await here.run(() => import.meta.url)
  assert.equal(url, import.meta.url)
  const keys = await here.run(async () => Object.keys(await import('./api/settings.js')))
  assert.ok(keys.includes('parseSettings'))
  assert.equal(await here.run(() => import.meta.resolve('./x.js')), new URL('./x.js', import.meta.url).href)
})

test('`this` and currentTask() are the task, also after it has waited', async () => {
  const seen = await here.run(async function (this: Task) {
    const { currentTask } = await import('./index.js')
    const before = currentTask() === this
    await new Promise((resolve) => setImmediate(resolve))
    return [
      this.zone,
      this.worker,
      before,
      currentTask() === this,
      this.signal.aborted,
      this.signal === this.signal,
    ]
  })
  assert.deepEqual([seen[0], ...seen.slice(2)], ['calls', true, true, false, true])
  assert.match(seen[1] as string, /^calls\/[01]$/)
  assert.equal(currentTask(), undefined)
})

test("zone.current is the worker's zone inside and zone.node outside; zone.get finds from both", async () => {
  assert.equal(zone.current, zone.node)
  assert.equal(zone.get('node'), zone.node)
  const ids = await here.run(async () => {
    const { zone } = await import('./index.js')
    return [
      zone.current.id,
      zone.get('calls').id,
      zone.get('node').id,
      zone.node.id,
      zone.current === zone.get('calls'),
    ]
  })
  assert.deepEqual(ids, ['calls', 'calls', 'node', 'node', true])
  assert.equal(zone.get('calls').id, 'calls')
  assert.equal(zone.get('calls'), zone.get('calls'))
})

test('finding a zone again and again costs no more each time', async () => {
  const start = performance.now()
  for (let index = 0; index < 20_000; index++) zone.get('calls')
  const first = performance.now() - start
  for (let index = 0; index < 100_000; index++) zone.get('calls')
  const rest = performance.now() - start - first
  assert.ok(
    rest < 5 * first * 5 + 50,
    `20,000 took ${first.toFixed(0)} ms, 100,000 more ${rest.toFixed(0)} ms`,
  )
  const inside = await here.run(async () => {
    const { zone } = await import('./index.js')
    for (let index = 0; index < 20_000; index++) void zone.current.id
    return zone.current.id
  })
  assert.equal(inside, 'calls')
})

test('names: a taken one, the reserved one, an unknown one with the list of those there are', () => {
  assert.throws(() => zone.create('calls'), {
    code: 'ZONE_EXISTS',
    facts: { zone: 'calls' },
    message: /"calls" already exists/,
  })
  assert.throws(() => zone.create('node'), { code: 'ZONE_EXISTS' })
  assert.throws(
    () => zone.get('nobody'),
    (error: ZoneError<'ZONE_UNKNOWN'>) => {
      assert.equal(error.code, 'ZONE_UNKNOWN')
      assert.ok(error.facts.known.includes('calls'))
      assert.match(error.message, /no zone is named "nobody"; existing zones: .*calls/)
      return true
    },
  )
  assert.throws(() => zone.get(''), { code: 'ZONE_ARGUMENT' })
})

test('a zone shows its complete settings, to every thread', async () => {
  assert.equal(here.settings.workers, 2)
  assert.ok(Object.isFrozen(here.settings))
  const there = await here.run(async () => {
    const { zone } = await import('./index.js')
    const { settings } = zone.get('calls') as { settings?: object }
    return [settings, Object.isFrozen(settings)]
  })
  assert.deepEqual(there, [here.settings, true])
})

test('tasks submit to their own zone and to others, and errors come through both hops', async () => {
  const other = zone.create('calls-other', { workers: 1 })
  try {
    const relay = async (ids: string[], depth: number): Promise<string> => {
      const { zone, currentTask } = await import('./index.js')
      const at = currentTask()?.zone ?? '?'
      if (depth === 0)
        throw Object.assign(new RangeError(`bottom in ${at}`), {
          code: 'E_BOTTOM',
        })
      const next = zone.get(ids[depth % ids.length])
      return `${at} ${await next.run((x: number) => x, depth)}`
    }
    assert.equal(await here.run(relay, ['calls', 'calls-other'], 3), 'calls 3')
    await assert.rejects(other.run(relay, ['calls'], 0), {
      code: 'E_BOTTOM',
      message: 'bottom in calls-other',
    })
  } finally {
    await other.close()
  }
})

test('a recursive task that submits to its own zone of overlapping tasks ends', async () => {
  const deep = zone.create('calls-deep', { workers: 2, tasksPerWorkerMax: 64 })
  try {
    const sum = await deep.execute(MODULE, 'treeSum', [
      'calls-deep',
      new URL('./index.js', import.meta.url).href,
      6,
    ])
    assert.equal(sum.value, 2 ** 6)
  } finally {
    await deep.close()
  }
})

for (const size of [0, 255 * 1024, 256 * 1024, 257 * 1024, 5 * 1024 ** 2]) {
  test(`${size} bytes go and come, alone and in a batch, and through a broadcast`, async () => {
    const bytes = Uint8Array.from({ length: size }, (_, index) => index * 31)
    const echo = (value: Uint8Array, more: number) => [value, more] as const
    const all = await Promise.all([1, 2, 3].map((n) => here.run(echo, bytes, n)))
    for (const [index, [back, n]] of all.entries()) {
      assert.equal(n, index + 1)
      assert.deepEqual(back, bytes)
    }
    const { value } = await here.execute((value: Uint8Array) => value, [bytes])
    assert.deepEqual(value, bytes)
    await here.broadcast(
      (value: Uint8Array) => void ((globalThis as { size?: number }).size = value.length),
      [bytes],
    )
    assert.equal(await here.run(() => (globalThis as { size?: number }).size), size)
    await assert.rejects(
      here.run((value: Uint8Array) => Promise.reject(Object.assign(new Error('big'), { value })), bytes),
      (error) => {
        assert.deepEqual((error as { value?: unknown }).value, bytes)
        return true
      },
    )
  })
}

test('a call made while the arguments of another are written harms neither', async () => {
  let inner: Promise<string> | undefined
  const args = {
    before: 'b'.repeat(1000),
    get middle() {
      inner ??= here.run((text: string) => text, 'i'.repeat(3000))
      return 'm'
    },
    after: 'a'.repeat(1000),
  }
  const outer = await here.run((value: object) => value, args)
  assert.deepEqual(outer, {
    before: 'b'.repeat(1000),
    middle: 'm',
    after: 'a'.repeat(1000),
  })
  assert.equal(await inner, 'i'.repeat(3000))
})

test('a worker starts tasks first in, first out', async () => {
  const one = zone.create('calls-order', { workers: 1 })
  try {
    const push = (n: number) => ((globalThis as { seen?: number[] }).seen ??= []).push(n)
    await Promise.all(Array.from({ length: 500 }, (_, n) => one.run(push, n)))
    const seen = await one.run(() => (globalThis as { seen?: number[] }).seen)
    assert.deepEqual(
      seen,
      Array.from({ length: 500 }, (_, n) => n),
    )
  } finally {
    await one.close()
  }
})

test('memory moves with move(), is shared with SharedArrayBuffer, both ways, and is let go', async () => {
  const { native } = await import('../native/index.ts')
  const before = native.bufferCount()
  const moved = new Uint8Array(1000).fill(7)
  const answer = await here.run(
    (bytes: Uint8Array) => bytes.reduce((sum, byte) => sum + byte, 0),
    move(moved),
  )
  assert.deepEqual([answer, moved.length], [7000, 0])
  const back = await here.run(async () => {
    const { move } = await import('../transport/index.js')
    return move(new Uint8Array(500).fill(3))
  })
  assert.deepEqual(back, new Uint8Array(500).fill(3))
  const shared = new Int32Array(new SharedArrayBuffer(8))
  await Promise.all(
    [1, 2, 3, 4].map((n) =>
      here.run((cell: Int32Array, n: number) => void Atomics.add(cell, 0, n), shared, n),
    ),
  )
  assert.equal(shared[0], 10)
  const returned = await here.run((cell: Int32Array) => cell.buffer, shared)
  new Int32Array(returned as SharedArrayBuffer)[1] = 5
  assert.equal(shared[1], 5)
  const lazy = await here.execute((cell: Int32Array) => cell, [shared])
  assert.equal(Atomics.add(lazy.value, 0, 1), 10)
  await assert.rejects(
    here.run((_: unknown, bad: symbol) => bad, shared, Symbol('s')),
    { code: 'TRANSPORT_REFUSED' },
  )
  await here.run(() => {})
  assert.equal(native.bufferCount(), before)
})

test('memory that cannot be detached is not transportable, and not changed by asking', async () => {
  const { isTransportable, encode } = await import('../transport/index.ts')
  const { native } = await import('../native/index.ts')
  const before = native.bufferCount()
  type Memory = new (options: { initial: number }) => { readonly buffer: ArrayBuffer }
  const { WebAssembly } = globalThis as unknown as { WebAssembly: { Memory: Memory } }
  const stuck = move(new WebAssembly.Memory({ initial: 1 }).buffer)
  assert.equal(isTransportable(stuck), false)
  assert.throws(() => encode(stuck, { mode: 'process' }), { code: 'TRANSPORT_REFUSED' })
  assert.deepEqual([stuck.byteLength, native.bufferCount()], [65_536, before])
})

test('memory that a frame of encode moved is let go when it has been read', async () => {
  const { native } = await import('../native/index.ts')
  const { isTransportable, encode } = await import('../transport/index.ts')
  const before = native.bufferCount()
  const moved = move(new Uint8Array(1000).fill(7))
  assert.ok(isTransportable(moved))
  assert.deepEqual([moved.length, native.bufferCount()], [1000, before])
  const frame = encode(moved, { mode: 'process' })
  assert.deepEqual([moved.length, native.bufferCount()], [0, before + 1])
  assert.deepEqual(decode(frame, { mode: 'process' }), new Uint8Array(1000).fill(7))
  assert.equal(native.bufferCount(), before)
  assert.throws(() => decode(frame, { mode: 'process' }), { code: 'TRANSPORT_MALFORMED' })
})

test('a refused call leaves moved memory where it was when the value is at fault', async () => {
  const kept = new Uint8Array(8).fill(1)
  await assert.rejects(here.run((..._: unknown[]) => {}, move(kept), Symbol('s')))
  assert.equal(kept.length, 8)
})

test('stats count what was done and what is there', async () => {
  await here.ready()
  const before = here.stats()
  await Promise.all(Array.from({ length: 10 }, () => here.run(() => {})))
  await assert.rejects(here.run(() => Promise.reject(new Error('x'))))
  const now = here.stats()
  assert.deepEqual(
    [
      now.ended - before.ended,
      now.died - before.died,
      now.waiting,
      now.waitingBytes,
      now.running,
      now.workers,
    ],
    [11, 0, 0, 0, 0, 2],
  )
  assert.ok(now.asleep <= 2 && now.wakeUps >= before.wakeUps)
  assert.deepEqual([now.done - before.done, now.failed - before.failed], [10, 1])
  assert.equal(now.runUs.count - before.runUs.count, 11)
  const { mean, p50, p90, p99, p999, max } = now.runUs
  assert.ok(0 < p50 && p50 <= p90 && p90 <= p99 && p99 <= p999 && p999 <= max && 0 < mean && mean <= max)
  assert.ok(now.waitUs.count >= 11 && now.waitUs.max < 60e6)
  assert.deepEqual(
    now.byWorker.map(({ worker }) => worker),
    ['calls/0', 'calls/1'],
  )
  const sum = (key: 'done' | 'failed'): number => now.byWorker.reduce((all, worker) => all + worker[key], 0)
  assert.deepEqual([sum('done'), sum('failed')], [now.done, now.failed])
  const { byWorker } = now
  const measured = (key: 'waitUs' | 'runUs'): number =>
    byWorker.reduce((all, each) => all + each[key].count, 0)
  assert.deepEqual([measured('waitUs'), measured('runUs')], [now.waitUs.count, now.runUs.count])
  // Not equal to the last digit: the length of a tick is measured anew at each question.
  const longest = Math.max(...byWorker.map(({ runUs }) => runUs.max))
  assert.ok(Math.abs(longest / now.runUs.max - 1) < 0.01)
  assert.ok(byWorker.every(({ waiting }) => waiting === 0))
  assert.equal(
    byWorker.reduce((all, { wakeUps }) => all + wakeUps, 0),
    now.wakeUps,
  )
  assert.ok(now.byWorker.every(({ utilisation }) => utilisation >= 0 && utilisation <= 1))
})

test('ZoneError crosses threads as itself, with code and facts', async () => {
  const error = await here.run(async () => {
    const { zone } = await import('./index.js')
    try {
      return zone.get('nobody')
    } catch (error) {
      return error
    }
  })
  assert.ok(error instanceof ZoneError)
  assert.equal(error.code, 'ZONE_UNKNOWN')
  assert.equal((error.facts as { zone: string }).zone, 'nobody')
  assert.match(pathToFileURL('/').href, /^file:/)
})

test('getOrCreate creates a zone once, whichever thread asks, and names an option that differs', async () => {
  const own = zone.create('get-or-create-maker', { workers: 2, tasksPerWorkerMax: 4 })
  const made = await Promise.all(
    Array.from({ length: 8 }, () =>
      own.run(async () => {
        const { zone } = await import('./index.js')
        const shared = zone.getOrCreate('get-or-create', { workers: 1, tasksMax: 77 })
        return [shared.settings.tasksMax, await shared.run(() => 'ran')]
      }),
    ),
  )
  assert.deepEqual(
    made,
    made.map(() => [77, 'ran']),
  )
  const found = zone.getOrCreate('get-or-create', { tasksMax: 77 })
  assert.equal(found, zone.getOrCreate('get-or-create'))
  assert.throws(() => zone.getOrCreate('get-or-create', { workers: 1, tasksMax: 5 }), {
    code: 'ZONE_ARGUMENT',
    message:
      'zone.getOrCreate(): tasksMax must be 77, as the zone "get-or-create" exists with it; received 5',
  })
  // It outlives the threads that asked for it.
  await own.close()
  assert.equal(await found.run(() => 'open'), 'open')
  assert.throws(() => zone.create('get-or-create'), {
    code: 'ZONE_EXISTS',
    message: /zone\.getOrCreate\(\) or zone\.get\(\) returns it/,
  })
  assert.throws(() => zone.getOrCreate('get-or-create', { tasksMax: 0 }), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => zone.getOrCreate('node'), { code: 'ZONE_EXISTS' })
  await found.close()
})

test('require in broadcast code is relative to the file that broadcasts it, in any order', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-require-'))
  try {
    const loads = ['a', 'b'].map((name) => {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'config.cjs'), `module.exports = 'config of ${name}'`)
      const code =
        `var now_${name} = require("./config.cjs"); var later_${name} = () => require("./config.cjs");` +
        `var path_${name} = () => require.resolve("./config.cjs")`
      writeFileSync(
        join(folder, name, 'load.cjs'),
        `exports.load = (z) => z.broadcast(${JSON.stringify(code)})`,
      )
      return createRequire(import.meta.url)(join(folder, name, 'load.cjs')) as {
        load(z: Zone): Promise<void>
      }
    })
    for (const order of [loads, [...loads].reverse()]) {
      const own = zone.create('requires', { workers: 1 })
      for (const each of order) await each.load(own)
      const found = await own.run(() => {
        const there = globalThis as unknown as Record<string, unknown> & Record<string, () => string>
        return ['a', 'b'].map((name) => [
          there[`now_${name}`],
          there[`later_${name}`]?.(),
          there[`path_${name}`]?.().endsWith(`/${name}/config.cjs`),
        ])
      })
      assert.deepEqual(found, [
        ['config of a', 'config of a', true],
        ['config of b', 'config of b', true],
      ])
      await own.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** How often this thread writes a frame while `body` runs. */
async function framesWritten(body: () => Promise<unknown>): Promise<number> {
  const bridge = thisBridge()
  const { write } = bridge
  let count = 0
  bridge.write = (...given) => {
    count++
    return write.apply(bridge, given)
  }
  try {
    await body()
  } finally {
    bridge.write = write
  }
  return count
}

test('arguments are written once, for a call site that is new and for one that is not', async () => {
  const long = 'é'.repeat(300_000)
  const makers = [
    () => (n: number, text: string) => n + text.length,
    () => (n: number, text: string) => n - text.length,
  ]
  for (const [index, text] of ['short', long].entries()) {
    const make = makers[index]
    for (let turn = 0; turn < 3; turn++) {
      const fn = make()
      let value: number | undefined
      assert.equal(await framesWritten(async () => (value = await here.run(fn, 1, text))), 1)
      assert.equal(value, fn(1, text))
    }
  }
  // Arguments that did not fit are not those of the next call.
  assert.equal(await here.run((...given: unknown[]) => given.length), 0)
})

test('a call by a getter of the function that is sent leaves the arguments as they were', async () => {
  const inner: Promise<unknown>[] = []
  const outer = (a: string, b: number): unknown[] => [a, b]
  Object.defineProperty(outer, 'name', {
    get: () => {
      inner.push(here.run((text: string) => text, 'another text of another length'))
      return 'outer'
    },
  })
  assert.deepEqual(await here.run(outer, 'mine', 7), ['mine', 7])
  assert.ok(inner.length > 0)
  for (const value of await Promise.all(inner)) assert.equal(value, 'another text of another length')
})

test('a new call site whose arguments are too large is refused, and the next call runs', async () => {
  await using small = zone.create('calls-small', { workers: 1, taskBytesMax: 1024 })
  const refused = small.run((text: string) => text.length, 'x'.repeat(2000))
  await assert.rejects(refused, { code: 'TASK_TOO_LARGE' })
  assert.equal(await small.run((text: string) => text.length + 1, 'x'), 2)
})
