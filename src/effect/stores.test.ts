/**
 * Stores and transactions as Effects: values, failures by tag, computations and waits that an interrupt ends.
 *
 * The scope of each test closes its store.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as Cause from 'effect/Cause'
import * as Effect from 'effect/Effect'
import * as Exit from 'effect/Exit'
import * as Fiber from 'effect/Fiber'
import * as Option from 'effect/Option'
import * as Stream from 'effect/Stream'
import { until } from '../base/wait.test.support.ts'
import { store } from '../store/index.ts'
import { TaskError, atomically, makeStore } from './index.ts'

const scoped = <A, E>(body: (of: Awaited<ReturnType<typeof opened>>) => Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(makeStore<number>('effect store'), body)))
const opened = () => Effect.runPromise(Effect.scoped(makeStore<number>('effect store')))

test('a store is closed with its scope', async () => {
  const closed = await opened()
  assert.throws(() => store.get('effect store'), { code: 'STORE_UNKNOWN' })
  const exit = await Effect.runPromise(Effect.flip(closed.get('a')))
  assert.equal(exit._tag, 'STORE_CLOSED')
  const taken = await scoped(() => Effect.flip(Effect.scoped(makeStore('effect store'))))
  assert.equal((taken as { _tag: string })._tag, 'STORE_EXISTS')
})

test('get has an Option, and use any operation', () =>
  scoped((of) =>
    Effect.gen(function* () {
      assert.deepEqual(yield* of.get('a'), Option.none())
      yield* of.use((values) => values.set('a', 1))
      assert.equal(yield* of.use((values) => values.increment('a', 2)), 3)
      assert.deepEqual(yield* of.get('a'), Option.some(3))
      const wrong = yield* Effect.exit(of.use((values) => values.set(5 as never, 1)))
      assert.ok(Exit.isFailure(wrong) && Cause.hasDies(wrong.cause))
    }),
  ))

test('getOrCompute runs one Effect, and its failure is that of the call', () =>
  scoped((of) =>
    Effect.gen(function* () {
      let runs = 0
      const compute = Effect.promise(async () => (runs += 1))
      const values = yield* Effect.all([of.getOrCompute('a', compute), of.getOrCompute('a', compute)], {
        concurrency: 2,
      })
      assert.deepEqual([values, runs], [[1, 1], 1])
      assert.equal(yield* Effect.flip(of.getOrCompute('b', Effect.fail('no' as const))), 'no')
      const dead = yield* Effect.exit(of.getOrCompute('b', Effect.die('bug')))
      assert.ok(Exit.isFailure(dead) && Cause.hasDies(dead.cause))
    }),
  ))

test('an interrupt ends a computation, and the next call computes', () =>
  scoped((of) =>
    Effect.gen(function* () {
      const state = { begun: false, ended: false }
      const compute = Effect.sync(() => void (state.begun = true)).pipe(
        Effect.andThen(Effect.never),
        Effect.onInterrupt(() => Effect.sync(() => void (state.ended = true))),
      )
      const fiber = yield* Effect.forkChild(of.getOrCompute('a', compute))
      yield* Effect.promise(() => until(() => state.begun))
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => until(() => state.ended))
      assert.equal(yield* of.getOrCompute('a', Effect.succeed(2)), 2)
    }),
  ))

test('watch is a stream of changes', () =>
  scoped((of) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Stream.runCollect(Stream.take(of.watch({ prefix: 'a' }), 2)))
      const change = (): boolean => {
        of.store.set('a', 1)
        of.store.delete('a')
        return fiber.pollUnsafe() !== undefined
      }
      yield* Effect.promise(() => until(change, 'two changes'))
      const events = yield* Fiber.join(fiber)
      assert.deepEqual(
        events.map(({ type }) => type),
        ['set', 'delete'],
      )
    }),
  ))

test('a transaction waits, fails and is interrupted', () =>
  scoped((of) =>
    Effect.gen(function* () {
      const take = atomically((tx) => {
        const value = tx.get(of.store, 'job')
        if (value === undefined) return tx.retry()
        tx.delete(of.store, 'job')
        return value
      })
      const waiting = yield* Effect.forkChild(take)
      const stopped = yield* Effect.forkChild(take)
      yield* Effect.yieldNow
      yield* Fiber.interrupt(stopped)
      of.store.set('job', 7)
      assert.equal(yield* Fiber.join(waiting), 7)
      const thrown = yield* Effect.flip(
        atomically((tx) => {
          tx.set(of.store, 'a', 1)
          throw new RangeError('mine')
        }),
      )
      assert.ok(thrown instanceof TaskError && thrown.cause instanceof RangeError)
      assert.deepEqual(yield* of.get('a'), Option.none())
      const late = yield* Effect.flip(
        atomically((tx) => (tx.get(of.store, 'a'), tx.retry()), { timeoutMs: 1 }),
      )
      assert.equal(late._tag, 'STORE_ATOMIC_TIMEOUT')
    }),
  ))
