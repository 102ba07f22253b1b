/**
 * Waiting for a promise, or for what a function returns.
 *
 * Foreign code runs when `yield*` asks, and the fiber waits only for a promise. When that settles the fiber
 * goes on in the same microtask, unless others are ready before it.
 */
import { promiseOf, whenSettled } from '../../base/index.ts'
import { UNWIND } from '../core/causes.ts'
import { Exit, type Failed } from '../core/exit.ts'
import { Op, PENDING, type Step, type Waiter, outside, running, takeResult } from '../core/op.ts'
import { failedFrom } from '../core/rejections.ts'
import { turn } from '../scheduler/scheduler.ts'

/** A fiber, as a function with a parameter needs it. */
interface Signalled extends Waiter {
  readonly signal: AbortSignal
}

export class Attempt extends Op<unknown, unknown> {
  readonly #what: unknown
  /** Whether an interrupted fiber waits until the promise has settled. */
  #isHeld: boolean
  /** `undefined` when what was made is a value, and the fiber steps aside. */
  #promise: Promise<unknown> | undefined
  #value: unknown
  #failed: Failed | undefined
  #waiter: Waiter | undefined
  /** In use, or left by an interrupted fiber before its promise had settled. */
  #isTaken = false
  /** The fiber was interrupted and waits for the promise all the same: it will not take the result. */
  #isLate = false

  /** @param isHeld Of a promise: whether an interrupted fiber waits until it has settled. */
  constructor(what: unknown, isHeld: boolean) {
    super()
    this.#what = what
    this.#isHeld = isHeld
    this.#promise = undefined
    this.#value = undefined
    this.#failed = undefined
    this.#waiter = undefined
  }

  /** An attempt that is in use by one fiber is another one for the next. */
  override [Symbol.iterator](): Iterator<Step<unknown>, unknown, unknown> {
    running.asks = true
    return this.#isTaken ? new Attempt(this.#what, this.#isHeld) : this
  }

  /** For `yield*`, apart from that of other ops, so that its call sites are monomorphic. */
  override next(): IteratorResult<Step, unknown> {
    if (!running.asks) return { done: true, value: takeResult() }
    running.asks = false
    const fiber = running.fiber
    if (fiber === undefined) throw outside('yield* attempt()')
    const what = this.#what
    let made = what
    if (typeof what === 'function') {
      // A fiber that was interrupted while it ran has no steps left: it makes no further one.
      if (turn.steps <= 0 && fiber.isStopped) {
        fiber.op = UNWIND
        return PENDING
      }
      // Only who takes a signal has one made, and is waited for when it is aborted.
      const takesSignal = (this.#isHeld = what.length > 0)
      try {
        made = takesSignal
          ? (what as (signal: AbortSignal) => unknown)((fiber as Signalled).signal)
          : (what as () => unknown)()
      } catch (thrown) {
        throw fiber.raise(Exit.failure(thrown))
      }
    }
    const promise = promiseOf(made)
    if (promise === undefined && --turn.steps > 0) return { done: true, value: made }
    this.#promise = promise
    this.#value = made
    fiber.op = this
    return PENDING
  }

  park(fiber: Waiter): void {
    this.#isTaken = true
    const promise = this.#promise
    if (promise === undefined) return fiber.makeReady()
    this.#waiter = fiber
    whenSettled(
      promise,
      (value) => this.settled(value, undefined),
      (reason: unknown) => this.settled(undefined, failedFrom(reason)),
    )
  }

  unpark(): boolean {
    if (this.#promise === undefined) return true
    if (this.#isHeld) this.#isLate = true
    else this.#waiter = undefined
    return !this.#isHeld
  }

  /** What was made is there already, and so may be the rejection of a promise. */
  leave(fiber: Waiter): boolean {
    if (this.#promise === undefined) return true
    this.park(fiber)
    return this.unpark()
  }

  /** @throws What the promise has rejected with. */
  take(fiber: Waiter): unknown {
    const failed = this.#failed
    this.#isTaken = false
    this.#failed = undefined
    if (failed !== undefined) throw fiber.raise(failed)
    return this.#value
  }

  describe(): string {
    return 'a promise'
  }

  /** The promise has settled. */
  private settled(value: unknown, failed: Failed | undefined): void {
    const fiber = this.#waiter
    if (fiber === undefined) return
    this.#waiter = undefined
    this.#value = value
    this.#failed = failed
    if (failed !== undefined && this.#isLate) fiber.failedBeside(failed)
    const { scheduler } = turn
    const isTurn = scheduler.beginTurn()
    fiber.makeReady()
    if (isTurn) scheduler.endTurn()
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
 * const program = fork(function* () {
 *   return yield* attempt((signal) => delay(1, 'loaded', { signal }))
 * })
 * assert.equal(await program.join(), 'loaded')
 * ```
 */
export function attempt<A>(
  what: PromiseLike<A> | ((signal: AbortSignal) => A | PromiseLike<A>),
): Op<Awaited<A>, unknown> {
  return new Attempt(what, false) as Op<unknown, unknown> as Op<Awaited<A>, unknown>
}
