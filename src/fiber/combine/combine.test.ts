/**
 * Combinators where something goes wrong beside, records of bodies, and what is refused.
 *
 * What several fibers do at once is run under seeds, so each order that may come is tried.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callbackify, types } from 'node:util'
import {
  Exit,
  type FiberError,
  InterruptedError,
  type Operation,
  Scope,
  addFinalizer,
  all,
  allSettled,
  any,
  attempt,
  catchAll,
  exitOf,
  fail,
  forEach,
  fork,
  never,
  race,
  scoped,
  sleep,
  timeout,
} from '../index.ts'
import { simulate } from '../../test/played.test.support.ts'

function* after<A>(ms: number, value: A): Operation<A> {
  yield* sleep(ms)
  return value
}

function* losesBadly(): Operation<never> {
  addFinalizer(() => {
    throw new RangeError('the finalizer of the loser')
  })
  return yield* never()
}

for (const [name, winner] of Object.entries({ race, any }))
  test(`${name} keeps its winner when the finalizer of a loser throws; the error is reported`, async () => {
    for (let seed = 0; seed < 50; seed += 1) {
      const { exit, reported } = await simulate(seed, function* () {
        const value = yield* winner([() => after(1, 'won'), losesBadly, losesBadly])
        return `${value} and went on`
      })
      assert.deepEqual(exit, Exit.success('won and went on'))
      assert.deepEqual(
        reported.map((error) => [error.code, (error.cause as Error).message]),
        [1, 2].map(() => ['FIBER_LOSER_FAILED', 'the finalizer of the loser']),
      )
    }
  })

test('the failure of a loser that ended in the same turn is dropped, as Promise.race drops it', async () => {
  for (let seed = 0; seed < 50; seed += 1) {
    const { exit, reported } = await simulate(seed, () =>
      race([
        () => after(1, 'won'),
        () =>
          catchAll(
            () => after(1, 0),
            () => fail('lost'),
          ),
        never(),
      ]),
    )
    assert.deepEqual([exit.kind, reported], ['success', []])
  }
})

test('what fails beside a failure is kept behind it', async () => {
  const exit = await fork(() => race([fail('first'), losesBadly])).await()
  assert.equal(exit.kind, 'failure')
  const one = await fork(() =>
    all([
      losesBadly,
      () =>
        catchAll(
          () => after(1, 0),
          () => 0,
        ),
      losing,
    ]),
  ).await()
  assert.deepEqual([one.kind, (one as { others: readonly unknown[] }).others.length], ['failure', 1])
  function* losing(): Operation<never, string> {
    yield* sleep(2)
    return yield* fail('lost')
  }
})

test('who is interrupted because a sibling failed has that failure as the cause', async () => {
  const why = new RangeError('why')
  const seen: Record<string, unknown> = {}
  function* sibling(name: string): Operation<never> {
    try {
      return yield* never()
    } catch (error) {
      assert.ok(error instanceof InterruptedError)
      seen[name] = error.cause
      throw error
    }
  }
  const failing = (): Operation<never, RangeError> =>
    (function* () {
      yield* sleep(1)
      return yield* fail(why)
    })()
  const scope = new Scope()
  scope.fork(() => sibling('scope'))
  scope.fork(failing).observe()
  const exits = [
    await fork(() => all([() => sibling('all'), failing])).await(),
    await fork(() => race([() => sibling('race'), failing])).await(),
    await fork(() => forEach([1, 2], (n) => (n === 1 ? sibling('forEach') : failing()))).await(),
    await fork(() =>
      scoped(function* () {
        fork(() => sibling('scoped'))
        return yield* failing()
      }),
    ).await(),
    await fork(function* () {
      fork(() => sibling('fiber'))
      return yield* failing()
    }).await(),
    await scope.close(),
  ]
  for (const exit of exits) assert.equal((exit as { error: unknown }).error, why)
  const names = ['all', 'fiber', 'forEach', 'race', 'scope', 'scoped']
  assert.deepEqual(Object.keys(seen).sort(), names)
  for (const name of names) assert.equal(seen[name], why, name)
})

test('all and allSettled of a record return a record', async () => {
  const sum = await fork(function* () {
    const {
      a,
      b,
      ['__proto__']: own,
    } = yield* all({
      a: () => after(2, 1),
      b: fork(() => 'two'),
      ['__proto__']: () => 3,
    })
    const values: [number, string, number] = [a, b, own]
    return values
  }).join()
  assert.deepEqual(sum, [1, 'two', 3])
  const exits = await fork(() => allSettled({ good: () => 1, bad: fail('no') })).join()
  assert.deepEqual(exits, { good: Exit.success(1), bad: Exit.failure('no') })
  assert.deepEqual(await fork(() => all({})).join(), {})
  const failed = await fork(() => all({ good: () => 1, bad: fail('no') })).await()
  assert.deepEqual(failed, Exit.failure('no'))
})

test('what is neither a list nor a record of bodies is refused by name', async () => {
  const bad: (() => Operation<unknown, unknown>)[] = [
    () => all(new Map([[1, 2]]) as never),
    () => all(new Date() as never),
    () => all(5 as never),
    () => race({ a: () => 1 } as never),
    () => all([{} as never]),
    () => all({ a: Promise.resolve(1) as never }),
    () => catchAll(fail(1), undefined as never),
  ]
  for (const [index, make] of bad.entries()) {
    const exit = await fork(function* () {
      return yield* make()
    }).await()
    // A Map is a list of pairs, each of which is no body.
    assert.equal(exit.kind === 'defect' && (exit.defect as FiberError).code, 'FIBER_ARGUMENT', String(index))
  }
})

for (const [name, body] of Object.entries({
  'an object': {},
  'an array': [],
  'a promise': Promise.resolve(1),
  'a date': new Date(),
}))
  test(`${name} as a body is refused by name, by fork and inside of a fiber`, async () => {
    const isRefused = (error: unknown): boolean => {
      const { code, message } = error as FiberError
      assert.match(message, name === 'a promise' ? /attempt\(promise\)/ : /a generator/)
      return code === 'FIBER_ARGUMENT'
    }
    assert.throws(() => fork(body as never), isRefused)
    const inside = await fork(() => scoped(body as never)).await()
    assert.ok(inside.kind === 'defect' && isRefused(inside.defect))
  })

test('catchAll 2,000 deep does not overflow the stack', async () => {
  const fails = (depth: number): Operation<unknown, unknown> =>
    catchAll(
      function* () {
        return depth === 0 ? yield* sleep(1) : yield* fails(depth - 1)
      },
      () => 'caught',
    )
  assert.deepEqual(await fork(() => fails(2000)).await(), Exit.success(undefined))
  const rethrows = (depth: number): Operation<unknown, number> =>
    catchAll(
      function* () {
        return depth === 0 ? yield* fail(0) : yield* rethrows(depth - 1)
      },
      (error) => fail(error + 1),
    )
  assert.deepEqual(await fork(() => rethrows(2000)).await(), Exit.failure(2001))
})

test('a time of Infinity waits without an end, in sleep and in timeout', async () => {
  assert.equal(await fork(() => timeout(Infinity, () => after(1, 'done'))).join(), 'done')
  const exit = await fork(() => exitOf(timeout(5, sleep(Infinity)))).join()
  assert.equal(exit.kind === 'failure' && exit.error.code, 'FIBER_TIMEOUT')
})

test('join, await, interrupt and close return values with the methods of a promise', async () => {
  const lost = new RangeError('lost')
  assert.equal(
    await fork(fail(lost))
      .join()
      .catch((error: unknown) => error),
    lost,
  )
  await assert.rejects(fork(fail(lost)).join(), lost)
  let ends = 0
  const count = (): void => void (ends += 1)
  await assert.rejects(fork(fail(lost)).join().finally(count), lost)
  assert.deepEqual(
    await fork(() => 1)
      .await()
      .finally(count),
    Exit.success(1),
  )
  const interrupted = (await fork(never()).interrupt().catch(count)) as Exit<never>
  assert.equal(interrupted.kind, 'interruption')
  const scope = new Scope()
  assert.deepEqual(await scope.close().finally(count), Exit.success(undefined))
  await scope.join().finally(count)
  assert.equal(ends, 4)
  const typed: Promise<number> = fork(() => 1).join()
  assert.equal(await typed, 1)
  assert.equal(String(typed), '[object Promise]')
})

test('outside of fibers join, await, interrupt, close and scope.join return native promises', async () => {
  const fiber = fork(() => after(1, 'value'))
  const scope = new Scope()
  const promises = [fiber.join(), fiber.await(), fork(never()).interrupt(), scope.close(), scope.join()]
  for (const promise of promises) {
    assert.ok(promise instanceof Promise && types.isPromise(promise))
    assert.equal(promise.finally(() => {}).constructor, Promise)
  }
  const [value, exit, interrupted] = await Promise.all(promises)
  assert.deepEqual([value, exit], ['value', Exit.success('value')])
  assert.equal((interrupted as Exit<never>).kind, 'interruption')
  assert.equal(await Promise.race([fiber.join(), new Promise(() => {})]), 'value')
  // Also past any `then` of theirs, as Node's own callbackify waits.
  await new Promise<void>((resolve) => callbackify(() => fiber.join())(() => resolve()))
})

test('a promise of an end is yieldable in a fiber, more than once and by more than one', async () => {
  const fiber = fork(() => after(1, 'value'))
  const joined = fiber.join()
  const ended = fiber.await()
  const body = function* () {
    return [yield* joined, yield* joined, (yield* ended).kind, (yield* ended).kind]
  }
  const expected = ['value', 'value', 'success', 'success']
  assert.deepEqual(await fork(all([body, body])).join(), [expected, expected])
  assert.equal(await fork(() => joined).join(), 'value')
})

test('inside a fiber a join is an instance of Promise and can be awaited, raced and collected', async () => {
  const fiber = fork(function* () {
    const child = fork(() => after(1, 'child'))
    const failing = fork(function* () {
      yield* sleep(2)
      return yield* fail('lost' as const)
    })
    const [joined, ended, failed] = [child.join(), child.await(), failing.join()]
    assert.ok(joined instanceof Promise && ended instanceof Promise)
    const caught = failed.catch((error: unknown) => error)
    return yield* attempt(() => Promise.all([joined, Promise.race([ended, ended]), caught]))
  })
  assert.deepEqual(await fiber.join(), ['child', Exit.success('child'), 'lost'])
})

test('a promise of a join that nobody handles rejects as any promise does', async () => {
  const lost = new RangeError('lost')
  const reasons: unknown[] = []
  const onReason = (reason: unknown): void => void reasons.push(reason)
  const others = process.listeners('unhandledRejection') // the test runner's own
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', onReason)
  try {
    void fork(function* () {
      yield* sleep(1)
      throw lost
    }).join()
    const untilMs = performance.now() + 30_000
    while (reasons.length === 0 && performance.now() < untilMs) await fork(sleep(1)).join()
  } finally {
    process.off('unhandledRejection', onReason)
    for (const other of others) process.on('unhandledRejection', other)
  }
  assert.deepEqual(reasons, [lost], 'the rejection is reported once')
})
