/**
 * What fibers meet that does not keep the rules: foreign thenables, ops used twice, crowds of errors, fibers
 * that wait for themselves. Nothing of it may stop, wake or forget another fiber.
 */
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { settled } from '../base/wait.test.support.ts'
import { zone } from '../zone/index.ts'
import {
  type Defect,
  type Fiber,
  type FiberError,
  type Interruption,
  type Operation,
  Exit,
  Schedule,
  Scope,
  addFinalizer,
  all,
  attempt,
  currentFiber,
  dump,
  dumpText,
  exitOf,
  forEach,
  fork,
  fromExit,
  never,
  on,
  scoped,
  sleep,
  timeout,
  uninterruptible,
  yieldNow,
} from './index.ts'

afterEach(() => assert.deepEqual(dump(), [], dumpText()))

const bad = new Error('bad then')

/** A thenable whose `then` is `then`. */
function thenable(then: (resolve: (value: unknown) => void) => void): PromiseLike<unknown> {
  // oxlint-disable-next-line unicorn/no-thenable -- it is what the test is about
  return { then } as PromiseLike<unknown>
}

/** The code of the error that ends a fiber. */
async function codeOf(fiber: Fiber<unknown, unknown>): Promise<unknown> {
  const exit = await fiber.await()
  const thrown = exit.kind === 'defect' ? exit.defect : exit.kind === 'failure' ? exit.error : undefined
  return (thrown as { code?: unknown } | undefined)?.code
}

const throwing = thenable(() => {
  throw bad
})

test('a thenable that throws fails the fiber that waits for it, and no other', async () => {
  const other = fork(function* () {
    yield* sleep(2)
    return 'here'
  })
  const one = fork(function* () {
    yield* sleep(1)
    return yield* attempt(throwing)
  })
  const two = fork(() => throwing)
  const failure = { kind: 'failure', error: bad, others: [] }
  assert.deepEqual(await Promise.all([one.await(), two.await()]), [failure, failure])
  assert.equal(await other.join(), 'here')
})

test('a thenable that calls back twice wakes its fiber once', async () => {
  const twice = thenable((resolve) => {
    resolve(1)
    setTimeout(resolve, 1, 2)
  })
  const begun = performance.now()
  const one = fork(function* () {
    const value = yield* attempt(twice)
    yield* sleep(100)
    return value
  })
  const two = fork(() => twice)
  assert.equal(await two.join(), 1)
  assert.equal(await one.join(), 1)
  assert.ok(performance.now() - begun > 50, 'the sleep was cut short')
})

test('a promise with a `then` of its own is asked by that of promises', async () => {
  const promise = Object.assign(Promise.resolve('value'), { then: throwing.then })
  assert.equal(await fork(() => attempt(promise)).join(), 'value')
})

test('the `then` of a subclass of Promise is called once for each wait, when it begins', async () => {
  let callCount = 0
  class Counting<A> extends Promise<A> {
    // oxlint-disable-next-line unicorn/no-thenable -- it is what the test is about
    override then<R, S>(
      fulfilled?: ((value: A) => R | PromiseLike<R>) | null,
      rejected?: ((why: unknown) => S | PromiseLike<S>) | null,
    ): Promise<R | S> {
      callCount += 1
      return super.then(fulfilled, rejected)
    }
  }
  const waiting = attempt(new Counting<string>((resolve) => resolve('value')))
  await undefined
  assert.equal(callCount, 0)
  assert.deepEqual(await Promise.all([fork(waiting).join(), fork(waiting).join()]), ['value', 'value'])
  assert.equal(callCount, 2)
})

test('a promise that cannot be waited for is a defect of its fiber, and no other', async () => {
  const hostile = Object.defineProperty(Promise.resolve('value'), 'constructor', {
    get: () => {
      throw bad
    },
  })
  const other = fork(function* () {
    yield* sleep(2)
    return 'here'
  })
  const one = fork(function* () {
    yield* sleep(1)
    return yield* attempt(hostile)
  })
  assert.deepEqual(await one.await(), { kind: 'defect', defect: bad, others: [] })
  assert.equal(await other.join(), 'here')
})

test('what goes wrong in an attempt that an interrupt ends is kept with the exit', async () => {
  const failure = new Error('cannot roll back')
  const work = fork(() =>
    attempt(async (signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      throw failure
    }),
  )
  const others = [{ kind: 'failure', error: failure, others: [] }]
  assert.deepEqual(await work.interrupt('stop'), { kind: 'interruption', reason: 'stop', others })

  const echo = fork(() =>
    attempt(
      (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ),
  )
  assert.deepEqual(await echo.interrupt('stop'), { kind: 'interruption', reason: 'stop', others: [] })
})

test('a step on a zone is a new task each time, for each fiber', async () => {
  await using worker = zone.create('fiber-steps', { workers: 1 })
  const flaky = on(worker, () => {
    const counts = globalThis as { calls?: number }
    counts.calls = (counts.calls ?? 0) + 1
    if (counts.calls === 1) throw new Error('the first time')
    return counts.calls
  })
  const again = fork(function* () {
    try {
      yield* flaky
    } catch {
      return yield* flaky // The failure of the first is what the test begins with.
    }
    return 0
  })
  assert.equal(await again.join(), 2)
  const [one, two] = [fork(() => flaky), fork(() => flaky)]
  assert.deepEqual([await one.join(), await two.join()].toSorted(), [3, 4])
})

test('a step on zone.node that fibers share returns each its own value', async () => {
  let calls = 0
  const step = on(zone.node, () => (calls += 1))
  function* body(): Operation<number[], unknown> {
    const values: number[] = []
    for (let index = 0; index < 5000; index += 1) values.push(yield* step)
    return values
  }
  const fibers = [fork(body), fork(body)]
  const values = (await Promise.all(fibers.map((fiber) => fiber.join()))).flat()
  assert.equal(new Set(values).size, 10_000)
})

test('a scope that is closed leaves the fiber that made it', async () => {
  const left = fork(function* () {
    for (let index = 0; index < 10; index += 1) yield* new Scope().close()
    return currentFiber().children().takeFinalizer()
  })
  assert.equal(await left.join(), undefined)
})

test('a fiber that waits for itself is refused', async () => {
  const code = 'FIBER_DEADLOCK'
  const one = fork(function* () {
    yield* yieldNow()
    yield* currentFiber().await()
  })
  assert.equal(await codeOf(one), code)
  const two = fork(() => uninterruptible(() => currentFiber().interrupt('enough')))
  const { kind, others } = (await two.await()) as Interruption
  const defect = (others[0] as Defect).defect as FiberError
  assert.deepEqual([kind, others.length, defect.code], ['interruption', 1, code])
  const ended = fork(() => currentFiber().interrupt('enough'))
  assert.deepEqual(await ended.await(), { kind: 'interruption', reason: 'enough', others: [] })

  const scope = new Scope()
  const inner = scope.fork(function* () {
    yield* yieldNow()
    const child = fork(function* () {
      yield* yieldNow()
      yield* scope.join()
    })
    yield* child.join()
  })
  assert.equal(await codeOf(inner), code)
  await scope.close()
})

test('forEach closes an iterator that it leaves, and refuses what is not iterable', async () => {
  let closedCount = 0
  function* items(): Generator<number> {
    try {
      for (let item = 0; ; item += 1) yield item
    } finally {
      closedCount += 1
    }
  }
  const waiting = fork(() => forEach(items(), () => sleep(60_000), { concurrency: 2 }))
  await waiting.interrupt()
  assert.equal(closedCount, 1)
  const failing = fork(() => forEach(items(), () => Promise.reject(bad), { concurrency: 1 }))
  assert.deepEqual(await failing.await(), { kind: 'failure', error: bad, others: [] })
  assert.equal(closedCount, 2)
  const wrong = async function* (): AsyncGenerator<number> {}
  assert.equal(await codeOf(fork(() => forEach(wrong() as never, () => 1))), 'FIBER_ARGUMENT')
})

test('what is not an exit is a defect, not an interruption', async () => {
  const key = Symbol.for('corespun.runnable')
  for (const wrong of [5, undefined, null, {}, { kind: 'succes', value: 1 }]) {
    const bodies = {
      runnable: { [key]: () => wrong },
      'runnable that waits': { [key]: async () => wrong },
      fromExit: () => fromExit(wrong as never),
      'runnable in a combinator': () => timeout(60_000, { [key]: () => wrong } as never),
    }
    for (const [name, body] of Object.entries(bodies))
      assert.equal(await codeOf(fork(body as () => unknown)), 'FIBER_ARGUMENT', name)
  }
})

test('more errors at an end than a call takes arguments are all kept', async () => {
  const many = Array.from({ length: 200_000 }, () => Exit.failure(bad))
  function* failing(): Operation<void, unknown> {
    try {
      yield* never()
    } finally {
      yield* fromExit(Exit.failure(bad, many))
    }
  }
  const parent = fork(function* () {
    fork(failing)
    yield* yieldNow()
  })
  const scope = new Scope()
  scope.fork(failing)
  const nursed = fork(() => timeout(1, failing))
  for (const exit of [await parent.await(), await scope.close(), await nursed.await()])
    assert.ok(exit.kind === 'failure' && exit.others.length >= many.length, exit.kind)
})

test('a fiber that is interrupted before its op was asked does not wait for it', async () => {
  const fiber = fork((self: Fiber) => {
    void self.interrupt('no')
    return sleep(60_000)
  })
  assert.deepEqual(fiber.exit, { kind: 'interruption', reason: 'no', others: [] })
})

test('a time is a number', () => {
  for (const ms of ['5', null, Number.NaN, -1, 5n] as never[]) {
    for (const call of [() => sleep(ms), () => timeout(ms, sleep(1)), () => Schedule.spaced(ms)])
      assert.throws(call, { code: 'FIBER_ARGUMENT' }, String(ms))
    assert.throws(() => Schedule.forever.jittered(ms, 1), { code: 'FIBER_ARGUMENT' }, String(ms))
  }
})

test('a promise of a fiber that unwinds instead of waiting is handled, or waited for', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown): unknown => unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    const rejects = async (): Promise<never> => {
      throw new Error('of the promise')
    }
    const troubled = await fork(function* () {
      fork(() => {
        throw bad
      })
      yield* attempt(rejects)
    }).await()
    assert.deepEqual(troubled, Exit.defect(bad))
    const bodies: (() => unknown)[] = [() => attempt(rejects), () => attempt(rejects()), () => rejects()]
    for (const body of bodies) {
      const exit = await fork(function* (self: Fiber) {
        yield* exitOf((() => {
          void self.interrupt('enough')
          return body()
        }) as () => Promise<unknown>)
      }).await()
      assert.equal(exit.kind, 'interruption')
    }
    const bare = await fork(function* (self: Fiber) {
      void self.interrupt('enough')
      yield* attempt(rejects())
    }).await()
    assert.equal(bare.kind, 'interruption')
    let isDone = false
    const fiber = fork(function* (self: Fiber) {
      yield* attempt(async (signal) => {
        void self.interrupt('enough')
        assert.equal(signal.aborted, true)
        await new Promise((resolve) => setTimeout(resolve, 5))
        isDone = true
        throw new Error('late')
      })
    })
    const exit = await fiber.await()
    assert.equal(isDone, true, 'who takes the signal is waited for')
    assert.deepEqual(exit, Exit.interruption('enough', [Exit.failure(new Error('late'))]))
    await new Promise((resolve) => setTimeout(resolve, 1))
  } finally {
    process.off('unhandledRejection', note)
  }
  assert.deepEqual(unhandled, [])
})

test('a join of the scope around is an error wherever it is called', async () => {
  const scope = new Scope()
  const join = function* (): Operation<void, unknown> {
    yield* scope.join()
  }
  const bodies: Record<string, () => Operation<unknown, unknown>> = {
    'in a combinator': () => all([join]),
    'in a combinator, later': () =>
      all([
        function* () {
          yield* sleep(1)
          yield* join()
        },
      ]),
    *'in the first step of a child'() {
      yield* fork(join).join()
    },
    *'in the first step of a child of a child'() {
      yield* fork(function* () {
        yield* fork(join).join()
      }).join()
    },
    *'in an async body'() {
      yield* fork(async () => await scope.join()).join()
    },
  }
  for (const [name, body] of Object.entries(bodies)) {
    const fiber = scope.fork(() => exitOf(body))
    const exit = await settled(fiber.join(), `the exit of a fiber that joins ${name}`)
    assert.ok(exit.kind === 'defect', name)
    assert.equal((exit.defect as { code?: unknown }).code, 'FIBER_DEADLOCK', name)
  }
  await scope.join()
})

test('a body that yields wrong values without end lets others go on and can be interrupted', async () => {
  let count = 0
  let isUnwound = false
  function* wrong(times: number): Operation<string> {
    try {
      while (count < times) {
        try {
          yield 'wrong' as never
        } catch (error) {
          if ((error as { code?: unknown }).code !== 'FIBER_YIELD') throw error
          count += 1
        }
      }
    } finally {
      isUnwound = true
    }
    yield* sleep(1)
    return 'done'
  }
  assert.equal(await fork(() => wrong(12_000)).join(), 'done')
  assert.equal(count, 12_000)
  const child = fork(() => wrong(Infinity))
  await fork(() => sleep(3)).join()
  isUnwound = false
  assert.equal((await child.interrupt('enough')).kind, 'interruption')
  assert.equal(isUnwound, true)
  const maskedCount = count + 3000
  const masked = fork(() => uninterruptible(() => wrong(maskedCount)))
  assert.deepEqual(await masked.interrupt(), Exit.interruption(undefined))
  assert.equal(count, maskedCount)
})

test('forks in microtasks do not keep timers from their turn', async () => {
  let count = 0
  let isDue = false
  setTimeout(() => (isDue = true), 1)
  await fork(function* () {
    for (; !isDue && count < 200_000; count += 1) {
      yield* attempt(async () => {
        await null
        fork(() => 1)
      })
    }
  }).join()
  assert.equal(isDue, true)
  assert.ok(count < 200_000)
})

test('a fiber that was interrupted while it ran makes no further step', async () => {
  const steps: Record<string, (ran: () => void) => Operation<unknown, unknown>> = {
    *attempt(ran) {
      yield* attempt(ran)
    },
    *'on this thread'(ran) {
      yield* on(zone.node, ran)
    },
    exitOf,
    *scoped(ran) {
      yield* scoped(ran)
    },
    *uninterruptible(ran) {
      yield* uninterruptible(ran)
    },
    *all(ran) {
      yield* all([ran])
    },
  }
  for (const [name, step] of Object.entries(steps)) {
    let ranCount = 0
    const exit = await fork(function* (self: Fiber) {
      fork(() => self.interrupt('stop'))
      yield* step(() => void (ranCount += 1))
    }).await()
    assert.equal(ranCount, 0, name)
    assert.deepEqual(exit, Exit.interruption('stop'), name)
  }
})

test('where interrupts are masked an interrupted fiber makes its steps', async () => {
  let ranCount = 0
  const ran = (): void => void (ranCount += 1)
  const exit = await fork(function* (self: Fiber) {
    addFinalizer(() => attempt(ran))
    try {
      yield* uninterruptible(function* () {
        void self.interrupt('stop')
        yield* attempt(ran)
        yield* on(zone.node, ran)
      })
      yield* yieldNow()
    } finally {
      yield* attempt(ran)
    }
  }).await()
  assert.equal(ranCount, 4)
  assert.deepEqual(exit, Exit.interruption('stop'))
})

test('a fiber that waits for its children takes no more: it does not wait for ever', async () => {
  let refused: unknown
  const byScope = fork(function* (self: Fiber) {
    fork(function* () {
      try {
        yield* never()
      } finally {
        refused = yield* exitOf(() => fork(never(), { scope: self }).join())
      }
    })
    yield* never()
  })
  const byListener = fork(function* () {
    fork(
      ({ signal }: Fiber) =>
        new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => {
            fork(never())
            resolve()
          }),
        ),
    )
    yield* never()
  })
  await new Promise(setImmediate)
  for (const fiber of [byScope, byListener]) {
    assert.deepEqual(await settled(fiber.interrupt('stop'), 'the end of a fiber'), Exit.interruption('stop'))
  }
  const { kind, defect } = refused as { kind: string; defect: { code: string } }
  assert.deepEqual([kind, defect.code], ['defect', 'FIBER_SCOPE_CLOSED'])
})

test('a finalizer may fork into its fiber, and what it forks is joined', async () => {
  let done = ''
  const fiber = fork(function* (self: Fiber) {
    addFinalizer(function* () {
      done = yield* fork(
        function* () {
          yield* yieldNow()
          return 'done'
        },
        { scope: self },
      ).join()
    })
  })
  assert.equal((await fiber.await()).kind, 'success')
  assert.equal(done, 'done')
})
