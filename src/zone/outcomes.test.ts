/**
 * A call has the outcome of the same call here: values, thenables, errors, and what cannot travel back.
 *
 * One zone of two workers serves the whole file; what a function returns or throws in a worker is compared
 * with what the same function does here.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { inspect } from 'node:util'
import { FunctionError, TransportError } from '../transport/index.ts'
import { zone } from './index.ts'

const here = zone.create('outcomes', { workers: 2 })
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

same('a then that is not a function is a value', () => ({ then: 5 }))

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

same('thrown values that are not errors', () => {
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
    assert.match(error.stack ?? '', /outcomes\.test\.js:\d+/)
    assert.doesNotMatch(
      error.stack ?? '',
      /dispatcher\.js|AsyncLocalStorage/,
      "none of Corespun's own frames",
    )
    return true
  })
})

test('a result is printed and stringified as its value', async () => {
  const result = await here.execute(() => ({ path: 'a/b', sizes: [1, 2] }), [])
  assert.equal(inspect(result), "Result { value: { path: 'a/b', sizes: [ 1, 2 ] } }")
  assert.equal(inspect([[[result]]]), '[ [ [ [Result] ] ] ]')
  assert.equal(JSON.stringify({ result }), '{"result":{"path":"a/b","sizes":[1,2]}}')
  assert.equal(inspect(await here.execute('node:path', 'join', ['a', 'b'])), "Result { value: 'a/b' }")
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
