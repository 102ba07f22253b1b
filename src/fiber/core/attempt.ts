/**
 * Waiting for a promise, or for what a function returns.
 *
 * Foreign code runs when `yield*` asks, and the fiber waits only for a promise. When that settles the fiber
 * goes on in the same microtask, unless others are ready before it.
 */
import { promiseOf, whenSettled } from '../../base/index.ts'
import { UNWIND } from './causes.ts'
import { Exit, type Failed } from './exit.ts'
import {
  Op,
  PENDING,
  type Step,
  type Waited,
  type Waiter,
  Yieldable,
  outside,
  running,
  takeResult,
} from './op.ts'
import { failedFrom } from './rejections.ts'
import { turn } from '../scheduler/scheduler.ts'

/** A fiber, as a function with a parameter needs it. */
interface Signalled extends Waiter {
  readonly signal: AbortSignal
}

/** The promise is in use, or was left by an interrupted fiber before it had settled. */
const TAKEN = 1
/** An interrupted fiber waits until the promise has settled. */
const HELD = 2
/** The fiber was interrupted and waits for the promise all the same: it will not take the result. */
const LATE = 4
/** The promise was rejected. */
const FAILED = 8

export class Settling extends Op<unknown, unknown> {
  readonly #promise: Promise<unknown>
  #flags: number
  #waiter: Waiter | undefined
  /** The promise's value, or what its rejection represents. */
  #result: unknown

  constructor(promise: Promise<unknown>, isHeld: boolean) {
    super()
    this.#promise = promise
    this.#flags = isHeld ? HELD : 0
    this.#waiter = undefined
    this.#result = undefined
  }

  /** One that is in use by a fiber is another one for the next. */
  override [Symbol.iterator](): Iterator<Step<unknown>, unknown, unknown> {
    running.asks = true
    const isFree = (this.#flags & TAKEN) === 0
    return isFree ? this : new Settling(this.#promise, (this.#flags & HELD) !== 0)
  }

  /** For `yield*`, apart from that of other ops, so that its call sites are monomorphic. */
  override next(): IteratorResult<Step, unknown> {
    const fiber = running.fiber
    if (!running.asks) {
      // Its value is taken here, by what `takeResult` does: a call less, of a `take` that is one of many.
      if (fiber === undefined || fiber.op !== this || (this.#flags & FAILED) !== 0)
        return { done: true, value: takeResult() }
      fiber.op = undefined
      return { done: true, value: this.#taken() }
    }
    running.asks = false
    if (fiber === undefined) throw outside('yield* attempt()')
    // Returns it as it is, except one of a subclass, whose own `then` may be called, or throw.
    const promise = Promise.resolve(this.#promise)
    fiber.op = promise === this.#promise ? this : new Settling(promise, (this.#flags & HELD) !== 0)
    return PENDING
  }

  park(fiber: Waiter): void {
    this.#flags |= TAKEN
    this.#waiter = fiber
    whenSettled(
      this.#promise,
      (value) => this.settled(value),
      (reason: unknown) => this.rejected(reason),
    )
  }

  unpark(): boolean {
    const isHeld = (this.#flags & HELD) !== 0
    if (isHeld) this.#flags |= LATE
    else this.#waiter = undefined
    return !isHeld
  }

  /** The promise may be rejected already. */
  leave(fiber: Waiter): boolean {
    this.park(fiber)
    return this.unpark()
  }

  /** @throws What the promise has rejected with. */
  take(fiber: Waiter): unknown {
    const isFailed = (this.#flags & FAILED) !== 0
    const result = this.#taken()
    if (isFailed) throw fiber.raise(result as Failed)
    return result
  }

  /** It is free for the next fiber. */
  #taken(): unknown {
    const result = this.#result
    this.#flags &= HELD
    this.#result = undefined
    return result
  }

  describe(): string {
    return 'a promise'
  }

  private rejected(reason: unknown): void {
    const failed = failedFrom(reason)
    this.#flags |= FAILED
    if ((this.#flags & LATE) !== 0) this.#waiter?.failedBeside(failed)
    this.settled(failed)
  }

  private settled(result: unknown): void {
    const fiber = this.#waiter
    if (fiber === undefined) return
    this.#waiter = undefined
    this.#result = result
    const { scheduler } = turn
    if (scheduler.beginTurn()) scheduler.runTurn(fiber)
    else fiber.makeReady()
  }
}

/** A value that was made when the steps of the turn were used up. */
export class Made implements Waited {
  readonly #value: unknown

  constructor(value: unknown) {
    this.#value = value
  }

  park(fiber: Waiter): void {
    fiber.makeReady()
  }

  unpark(): boolean {
    return true
  }

  take(): unknown {
    return this.#value
  }

  describe(): string {
    return 'its turn'
  }
}

/** Calls a function, or adopts a thenable, each time that a fiber asks for it. */
class Attempt extends Yieldable<unknown, unknown> {
  readonly #what: unknown

  constructor(what: unknown) {
    super()
    this.#what = what
  }

  [Symbol.iterator](): Iterator<Step<unknown>, unknown, unknown> {
    running.asks = true
    return this
  }

  /** For `yield*`, apart from that of other ops, so that its call sites are monomorphic. */
  next(): IteratorResult<Step, unknown> {
    if (!running.asks) return { done: true, value: takeResult() }
    running.asks = false
    const fiber = running.fiber
    if (fiber === undefined) throw outside('yield* attempt()')
    const what = this.#what
    let made = what
    let isHeld = false
    if (typeof what === 'function') {
      // A fiber that was interrupted while it ran has no steps left: it makes no further one.
      if (turn.steps <= 0 && fiber.isStopped) {
        fiber.op = UNWIND
        return PENDING
      }
      // Only who takes a signal has one made, and is waited for when it is aborted.
      isHeld = what.length > 0
      try {
        made = isHeld
          ? (what as (signal: AbortSignal) => unknown)((fiber as Signalled).signal)
          : (what as () => unknown)()
      } catch (thrown) {
        throw fiber.raise(Exit.failure(thrown))
      }
    }
    const promise = promiseOf(made)
    if (promise === undefined && --turn.steps > 0) return { done: true, value: made }
    fiber.op = promise === undefined ? new Made(made) : new Settling(promise, isHeld)
    return PENDING
  }
}

/**
 * Waits for a promise, or for what a function returns. A rejection, and what the function throws, is a
 * failure. The function is called by each `yield*`, unless the fiber was interrupted before.
 *
 * A function is called with a signal that is aborted when the fiber is interrupted. One that takes it is
 * waited for then, until its promise settles; one that does not, and a bare promise, are left behind.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { setTimeout as delay } from 'node:timers/promises'
 * import { attempt, fork } from 'corespun/fiber'
 *
 * function* load(ms: number) {
 *   return yield* attempt((signal) => delay(ms, 'loaded', { signal }))
 * }
 * assert.equal(await fork(load(1)).join(), 'loaded')
 * ```
 */
export function attempt<A>(
  what: PromiseLike<A> | ((signal: AbortSignal) => A | PromiseLike<A>),
): Op<Awaited<A>, unknown> {
  return (what instanceof Promise ? new Settling(what, false) : new Attempt(what)) as unknown as Op<
    Awaited<A>,
    unknown
  >
}
