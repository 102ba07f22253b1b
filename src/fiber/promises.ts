/**
 * Waiting for a promise inside a fiber, and running a body inside the fiber that is already there.
 *
 * Both turn what is foreign into a generator's steps. A rejection is a failure, see rejections.ts.
 */
import { whenSettled } from '../base/index.ts'
import { yieldNow } from './aside.ts'
import { Exit, type Failed } from './exit.ts'
import type { Extra } from './extra.ts'
import {
  Op,
  type Yieldable,
  type Operation,
  type Waiter,
  isGenerator,
  isThenable,
  isYieldable,
  outside,
  running,
} from './op.ts'
import { failedFrom } from './rejections.ts'
import { RUNNABLE, isRunnable } from './runnable.ts'
import { turn } from './scheduler.ts'

/** Waits for a promise; interrupted, it leaves the promise behind or waits on, as it was told. */
export class PromiseOp<A> extends Op<A, unknown> {
  readonly #promise: PromiseLike<A>
  readonly #staysFor: boolean
  #waiter: Waiter | undefined
  #value: A | undefined
  #failed: Failed | undefined
  /** The fiber was interrupted and waits for the promise all the same: it will not take the result. */
  #isLate = false

  /** @param staysFor Whether an interrupted fiber waits until the promise has settled. */
  constructor(promise: PromiseLike<A>, staysFor: boolean) {
    super()
    this.#promise = promise
    this.#staysFor = staysFor
  }

  park(fiber: Waiter): void {
    this.#waiter = fiber
    whenSettled(
      this.#promise,
      (value) => {
        this.#value = value
        this.#wake()
      },
      (reason: unknown) => {
        this.#failed = failedFrom(reason)
        if (this.#isLate) fiber.failedBeside(this.#failed)
        this.#wake()
      },
    )
  }

  unpark(): boolean {
    if (this.#staysFor) this.#isLate = true
    else this.#waiter = undefined
    return !this.#staysFor
  }

  /** The promise is there already, and so may be its rejection. */
  leave(fiber: Waiter): boolean {
    this.park(fiber)
    return this.unpark()
  }

  /** @throws What the promise has rejected with. */
  take(fiber: Waiter): A {
    if (this.#failed !== undefined) throw fiber.raise(this.#failed)
    return this.#value as A
  }

  describe(): string {
    return 'a promise'
  }

  #wake(): void {
    this.#waiter?.makeReady()
  }
}

/**
 * What a body's call has made, run by the fiber that is there: a generator, an op, a promise, or a value as
 * it is. Runnables are not among them.
 */
export function* inline(made: unknown): Operation<unknown> {
  if (isGenerator(made)) return yield* made as Operation<unknown>
  if (isYieldable(made)) return yield* made as Yieldable<unknown>
  return isThenable(made) ? yield* new PromiseOp(made, true) as Op<unknown> : made
}

/** An op that is ready: it brings an exit that is no value. */
class Raised<E> extends Op<never, E> {
  readonly #failed: Failed

  constructor(failed: Failed) {
    super()
    this.#failed = failed
  }

  override isReady(): boolean {
    return true
  }

  park(fiber: Waiter): void {
    fiber.makeReady()
  }

  unpark(): boolean {
    return true
  }

  take(fiber: Waiter): never {
    throw fiber.raise(this.#failed)
  }

  describe(): string {
    return 'a failure'
  }
}

/** Fail with `error`: `yield* fail(error)` throws it as a failure that the body's type names. */
export function fail<E>(error: E): Op<never, E> {
  return new Raised(Exit.failure(error))
}

/** Go on as `exit` says: its value, or its failure, defect or interruption as one's own. */
export function* fromExit<A, E>(exit: Exit<A, E>): Operation<A, E> {
  if (--turn.steps <= 0) yield* yieldNow()
  return exit.kind === 'success' ? exit.value : yield* new Raised<E>(exit)
}

/**
 * Run a body inside the running fiber, as `fork` would run it in one of its own.
 * @throws {FiberError} `FIBER_OUTSIDE`; and what the body throws.
 */
export function* within(body: unknown): Operation<unknown> {
  const fiber = running.fiber
  if (fiber === undefined) throw outside('a combinator')
  if (--turn.steps <= 0) yield* yieldNow()
  if (typeof body === 'function') return yield* inline((body as (fiber: Waiter) => unknown)(fiber))
  if (!isRunnable(body)) return yield* inline(body)
  const made = body[RUNNABLE](undefined, (fiber as unknown as { signal: AbortSignal }).signal)
  const exit = (yield* inline(made)) as Exit<unknown>
  return yield* fromExit(exit)
}

/**
 * Run a body inside the running fiber and give its exit.
 * @throws {InterruptedError} When the running fiber itself is interrupted: nothing else gets past.
 */
export function* exitWithin(body: unknown): Operation<Exit<unknown, unknown>> {
  const fiber = running.fiber
  const former = (fiber as Raising | undefined)?.extra
  const { raised, thrown: formerThrown } = former ?? NOTHING_RAISED
  try {
    return Exit.success(yield* within(body))
  } catch (thrown) {
    if (fiber === undefined || fiber.isToken(thrown)) throw thrown
    return fiber.failedBy(thrown)
  } finally {
    // In a `finally` block an older failure is under way: it must be known again when it goes on.
    if (raised !== undefined) former?.raiseAgain(formerThrown, raised)
  }
}

const NOTHING_RAISED = { raised: undefined, thrown: undefined }

/** A fiber with what it remembers of what was thrown into it. */
interface Raising extends Waiter {
  readonly extra: Extra | undefined
}
