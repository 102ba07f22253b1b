/**
 * Stores and transactions as Effects.
 *
 * A store's operations are synchronous, so `use` with any function covers them; only what waits has a
 * method of its own here.
 */
import type { Cause } from 'effect/Cause'
import * as Effect from 'effect/Effect'
import * as Option from 'effect/Option'
import type { Scope } from 'effect/Scope'
import * as Stream from 'effect/Stream'
import { isAbort } from '../base/index.ts'
import {
  type AtomicOptions,
  type Store,
  type StoreCodes,
  StoreError,
  type StoreEvent,
  type StoreOptions,
  type Transaction,
  type WatchOptions,
  type WriteOptions,
  atomically as atomicallyPromised,
  store,
} from '../store/index.ts'
import { type Failures, TaskError, awaiting, failed, refusing } from './errors.ts'

/** A store for Effects. */
export interface EffectStore<Value> {
  /** The store itself. */
  readonly store: Store<Value>
  /** The value of a key. */
  get(key: string): Effect.Effect<Option.Option<Value>, Failures<StoreCodes>>
  /** Any synchronous use: `users.use((store) => store.set('a', user))`. */
  use<A>(body: (store: Store<Value>) => A): Effect.Effect<A, Failures<StoreCodes>>
  /**
   * The value of a key; if it is absent, that of the Effect, which one fiber of all threads runs while the
   * others wait. If it fails or is interrupted, one of those runs its own.
   */
  getOrCompute<E, R>(
    key: string,
    compute: Effect.Effect<Value, E, R>,
    options?: WriteOptions,
  ): Effect.Effect<Value, E | Failures<StoreCodes>, R>
  /** The changes of a key, or of all with a prefix. */
  watch(
    what: string | { readonly prefix: string },
    options?: Pick<WatchOptions, 'eventsMax'>,
  ): Stream.Stream<StoreEvent, Failures<StoreCodes>>
}

/**
 * A store that is closed with its scope: `Layer.effect(Users, makeStore<User>('users'))`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect, Option } from 'effect'
 * import { makeStore } from 'corespun/effect'
 *
 * const program = Effect.gen(function* () {
 *   const ages = yield* makeStore<number>('ages')
 *   yield* ages.use((store) => store.set('Ann', 41))
 *   return yield* ages.get('Ann')
 * })
 * assert.deepEqual(await Effect.runPromise(Effect.scoped(program)), Option.some(41))
 * ```
 */
export function makeStore<Value = unknown>(
  id: string,
  options?: StoreOptions,
): Effect.Effect<EffectStore<Value>, Failures<StoreCodes>, Scope> {
  return Effect.acquireRelease(
    refusing<StoreCodes, Store<Value>>(() => store.create<Value>(id, options)),
    (made) => Effect.sync(() => made.close()),
  ).pipe(Effect.map(fromStore))
}

/**
 * A store that something else closes, such as `store.get('users')`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { store } from 'corespun'
 * import { fromStore } from 'corespun/effect'
 *
 * const squares = fromStore(store.create<number>('squares'))
 * assert.equal(await Effect.runPromise(squares.getOrCompute('12', Effect.succeed(144))), 144)
 * assert.equal(squares.store.get('12'), 144)
 * squares.store.close()
 * ```
 */
export function fromStore<Value>(of: Store<Value>): EffectStore<Value> {
  const use: EffectStore<Value>['use'] = (body) => refusing(() => body(of))
  return {
    store: of,
    use,
    get: (key) => use((values) => Option.fromUndefinedOr(values.get(key))) as never,
    getOrCompute: (key, compute, options) =>
      Effect.contextWith((context) => computed(of, key, Effect.provideContext(compute, context), options)),
    watch: (what, options) =>
      Stream.unwrap(
        use((values) => Stream.fromAsyncIterable(values.watch(what, options), (error) => error as never)),
      ),
  }
}

/** The end of a computation that has failed: this call's own, since nobody else receives it. */
class Failing {
  readonly cause: Cause<never>

  constructor(cause: Cause<never>) {
    this.cause = cause
  }
}

function computed<Value, E>(
  of: Store<Value>,
  key: string,
  compute: Effect.Effect<Value, E>,
  options: WriteOptions | undefined,
): Effect.Effect<Value, E | Failures<StoreCodes>> {
  const refused = (error: unknown): Effect.Effect<never, E | Failures<StoreCodes>> =>
    error instanceof Failing ? Effect.failCause(error.cause) : failed(error)
  return awaiting((signal) => {
    const run = async (): Promise<Value> => {
      const exit = await Effect.runPromiseExit(compute, { signal })
      if (exit._tag === 'Success') return exit.value
      throw new Failing(exit.cause as Cause<never>)
    }
    return of.getOrCompute(key, run, { ...options, signal })
  }, refused)
}

/**
 * Changes several keys of stores, and `TRef`s, at one moment: `atomically` of corespun/store. `tx.retry()`
 * waits; an interrupt ends that. What the function throws is a `TaskError`, and nothing is written.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { atomically } from 'corespun/effect'
 * import { TRef } from 'corespun/store'
 *
 * const [left, right] = [new TRef(3), new TRef(0)]
 * const move = atomically((tx) => {
 *   const value = tx.get(left)
 *   tx.set(left, 0)
 *   return tx.update(right, (other) => other + value)
 * })
 * assert.equal(await Effect.runPromise(move), 3)
 * ```
 */
export function atomically<A>(
  fn: (tx: Transaction) => A,
  options?: Omit<AtomicOptions, 'signal'>,
): Effect.Effect<A, TaskError | Failures<StoreCodes>> {
  const refused = (error: unknown): Effect.Effect<never, TaskError | Failures<StoreCodes>> =>
    error instanceof StoreError || isAbort(error) ? failed(error) : Effect.fail(new TaskError(error))
  return awaiting((signal) => atomicallyPromised(fn, { ...options, signal }), refused)
}
