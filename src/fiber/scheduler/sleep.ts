/**
 * The plain ops: to wait for time, for ever, for a promise.
 *
 * Times are those of the scheduler's clock, so a test runtime can replace it.
 */
import { promiseOf } from '../../base/index.ts'
import { UNWIND } from '../core/causes.ts'
import { checkMs } from '../errors.ts'
import { Exit } from '../core/exit.ts'
import { Op, PENDING, type Step, type Waiter, outside, running, takeResult } from '../core/op.ts'
import { PromiseOp } from '../combine/promises.ts'
import { turn } from './scheduler.ts'
import type { Timed } from './timers.ts'

class Sleep extends Op<void> implements Timed {
  atMs: number
  index = -1
  order = 0
  #waiter: Waiter | undefined
  readonly #ms: number

  constructor(ms: number) {
    super()
    this.atMs = 0
    this.#ms = ms
  }

  /** A sleep that is in use by one fiber is another one for the next. */
  override [Symbol.iterator](): Iterator<Step, void, unknown> {
    running.asks = true
    return (this.index < 0 ? this : new Sleep(this.#ms)) as never
  }

  park(fiber: Waiter): void {
    this.#waiter = fiber
    this.atMs = turn.scheduler.nowMs() + this.#ms
    turn.scheduler.wait(this)
  }

  unpark(): boolean {
    turn.scheduler.forget(this)
    return true
  }

  take(): void {}

  due(): void {
    this.#waiter?.makeReady()
  }

  describe(): string {
    return `${this.#ms} ms`
  }
}

/**
 * Waits for `ms` milliseconds, 0 or more, and never less. The clock is monotonic. `Infinity` is `never()`.
 * @throws {FiberError} `FIBER_ARGUMENT` when `ms` is not a number from 0.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, sleep } from 'corespun/fiber'
 *
 * const startMs = performance.now()
 * await fork(sleep(5)).join()
 * assert.ok(performance.now() - startMs >= 5)
 * ```
 */
export function sleep(ms: number): Op<void> {
  checkMs('sleep(): ms', ms, Infinity)
  return ms === Infinity ? NEVER : new Sleep(ms)
}

class Never extends Op<never> {
  park(): void {}

  unpark(): boolean {
    return true
  }

  take(): never {
    throw outside('never')
  }

  describe(): string {
    return 'an interrupt'
  }
}

const NEVER = new Never()

/**
 * Waits until interrupted.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, never } from 'corespun/fiber'
 *
 * const exit = await fork(never()).interrupt()
 * assert.equal(exit.kind, 'interruption')
 * ```
 */
export function never(): Op<never> {
  return NEVER
}

/** A step of foreign code: run when `yield*` asks, and waited for only when it returned a promise. */
class Attempt extends Op<unknown, unknown> {
  readonly #what: unknown
  /** The value of one that had to step aside, or the wait for its promise. */
  #outcome: unknown
  #isParked = false

  constructor(what: unknown) {
    super()
    this.#what = what
    this.#outcome = undefined
  }

  /** An attempt that is in use by one fiber is another one for the next. */
  override [Symbol.iterator](): Iterator<Step<unknown>, unknown, unknown> {
    running.asks = true
    return this.#isParked ? new Attempt(this.#what) : this
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
      try {
        made = call(what as (signal?: AbortSignal) => unknown)
      } catch (thrown) {
        throw fiber.raise(Exit.failure(thrown))
      }
    }
    const promise = promiseOf(made)
    if (promise === undefined && --turn.steps > 0) return { done: true, value: made }
    const stays = promise !== undefined && typeof what === 'function' && what.length > 0
    this.#outcome = promise === undefined ? made : new PromiseOp(promise, stays)
    fiber.op = this
    return PENDING
  }

  park(fiber: Waiter): void {
    this.#isParked = true
    if (this.#outcome instanceof PromiseOp) this.#outcome.park(fiber)
    else fiber.makeReady()
  }

  unpark(): boolean {
    this.#isParked = false
    return !(this.#outcome instanceof PromiseOp) || this.#outcome.unpark()
  }

  leave(fiber: Waiter): boolean {
    const outcome = this.#outcome
    this.#isParked = outcome instanceof PromiseOp && !outcome.leave(fiber)
    return !this.#isParked
  }

  take(fiber: Waiter): unknown {
    this.#isParked = false
    const outcome = this.#outcome
    return outcome instanceof PromiseOp ? outcome.take(fiber) : outcome
  }

  describe(): string {
    return 'a promise'
  }
}

/** Only who takes a signal has one made. */
function call(what: (signal?: AbortSignal) => unknown): unknown {
  return what.length > 0 ? what((running.fiber as Fiberlike).signal) : what()
}

interface Fiberlike extends Waiter {
  readonly signal: AbortSignal
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
  return new Attempt(what) as Op<unknown, unknown> as Op<Awaited<A>, unknown>
}
