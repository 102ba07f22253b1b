/**
 * Running a body inside the fiber that is already there, and failing in it.
 *
 * What is foreign becomes steps of a generator. A rejection is a failure, see rejections.ts.
 */
import { promiseOf } from '../../base/index.ts'
import { Settling } from './attempt.ts'
import { yieldNow } from '../scheduler/yielding.ts'
import { notABody } from '../errors.ts'
import { Exit, type Failed, checkedFailed, isValue } from './exit.ts'
import type { Extra } from './extra.ts'
import {
  Op,
  type Operation,
  PENDING,
  type Step,
  type Waited,
  type Waiter,
  Yieldable,
  isGenerator,
  outside,
  running,
  takeResult,
} from './op.ts'
import { isYieldable } from './endings.ts'
import { RUNNABLE, type Runnable, isRunnable } from './runnable.ts'
import { turn } from '../scheduler/scheduler.ts'

/**
 * What a body's call has made, run by the fiber that is there: a generator, an op, a promise, or a value as
 * it is. Runnables are not among them.
 */
export function* inline(made: unknown): Operation<unknown> {
  if (isGenerator(made)) return yield* made as Operation<unknown>
  if (isYieldable(made)) return yield* made as Yieldable<unknown>
  const promise = promiseOf(made)
  return promise === undefined ? made : yield* new Settling(promise, true) as Op<unknown>
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

/**
 * Fails with `error`: `yield* fail(error)` throws it as a failure, which the type of the body contains.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fail, fork } from 'corespun/fiber'
 *
 * function* ask() {
 *   yield* fail('busy' as const)
 * }
 * const exit = await fork(ask()).await()
 * assert.deepEqual(exit, { kind: 'failure', error: 'busy', others: [] })
 * ```
 */
export function fail<E>(error: E): Op<never, E> {
  return new Raised(Exit.failure(error))
}

/**
 * Continues with `exit`: returns its value, or fails, throws or is interrupted as it was.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Exit, fork, fromExit } from 'corespun/fiber'
 *
 * assert.equal(await fork(fromExit(Exit.success(1))).join(), 1)
 * ```
 */
export function* fromExit<A, E>(exit: Exit<A, E>): Operation<A, E> {
  if (--turn.steps <= 0) yield* yieldNow()
  return isValue(exit) ? exit.value : yield* new Raised<E>(checkedFailed(exit))
}

/**
 * Runs a body inside the running fiber, however deep, as `fork` would run it in one of its own.
 * @throws {FiberError} `FIBER_REQUIRED`; and what the body throws.
 */
export function within(body: unknown): Operation<unknown> {
  return new Caught(body, null) as unknown as Operation<unknown>
}

/**
 * Runs a body inside the running fiber and returns its exit.
 * @throws {InterruptedError} When the running fiber itself is interrupted: nothing else gets past.
 */
export function* exitWithin(body: unknown): Operation<Exit<unknown, unknown>> {
  const before = new Raising(inFiber())
  try {
    const value = yield* within(body)
    before.raiseAgain()
    return Exit.success(value)
  } catch (thrown) {
    return before.failedBy(thrown)
  }
}

/** Most bodies of {@link Caught} inside of each other on one stack, of which each takes some 400 bytes. */
const NESTED_MAX = 200

/**
 * Runs a body inside the running fiber; when it fails, `handler` with the failure, if there is one. `null`:
 * it need not remember an older failure that is under way.
 *
 * It is no generator: of bodies inside of each other each is on the stack with all that lies between, and a
 * call of `next` takes less of it. Many of them continue on a stack of their own.
 */
export class Caught extends Yieldable<unknown> {
  readonly #body: unknown
  readonly #handler: ((error: never) => unknown) | undefined | null
  #before: Raising | undefined
  #inner: Iterator<Step, unknown, unknown> | undefined

  constructor(body: unknown, handler: ((error: never) => unknown) | undefined | null) {
    super()
    this.#body = body
    this.#handler = handler
  }

  override [Symbol.iterator](): Iterator<Step, unknown, unknown> {
    return this.#inner === undefined ? this : new Caught(this.#body, this.#handler)
  }

  /** See Generator. @throws What the body throws that is no failure, and what the handler throws. */
  next(): IteratorResult<Step, unknown> {
    running.nested += 1
    let result
    try {
      result = (this.#inner ??= this.#begin()).next()
    } catch (thrown) {
      running.nested -= 1
      return this.#caught(thrown)
    }
    running.nested -= 1
    return this.#passed(result)
  }

  /** See Generator. @throws What the body does with it that is no failure. */
  throw(error: unknown): IteratorResult<Step, unknown> {
    running.nested += 1
    let result
    try {
      result = (this.#inner ??= this.#begin()).throw?.(error) as IteratorResult<Step, unknown>
    } catch (thrown) {
      running.nested -= 1
      return this.#caught(thrown)
    }
    running.nested -= 1
    return this.#passed(result)
  }

  /** See Generator. */
  return(value: unknown): IteratorResult<Step, unknown> {
    return this.#inner?.return?.(value) ?? { done: true, value }
  }

  #begin(): Iterator<Step, unknown, unknown> {
    const fiber = inFiber()
    if (this.#handler !== null) this.#before = new Raising(fiber)
    return placed(--turn.steps > 0 ? this.#body : beside(this.#body), fiber)
  }

  #passed(result: IteratorResult<Step, unknown>): IteratorResult<Step, unknown> {
    if (result.done === true) this.#before?.raiseAgain()
    return result
  }

  #caught(thrown: unknown): IteratorResult<Step, unknown> {
    const before = this.#before
    const handler = this.#handler
    if (before === undefined || handler === undefined || handler === null) throw thrown
    this.#before = undefined
    const exit = before.failedBy(thrown)
    if (exit.kind !== 'failure') this.#inner = fromExit(exit)
    else this.#inner = placed(() => handler(exit.error as never), before.fiber)
    return this.next()
  }
}

/**
 * Runs a body, apart when many are on the stack. It is called there: of one that is interrupted before, what
 * the call has made would be nobody's, as a promise that rejects.
 */
function placed(body: unknown, fiber: Waiter): Iterator<Step, unknown, unknown> {
  return running.nested <= NESTED_MAX ? begun(body, fiber) : new Apart(later(body))
}

function* later(body: unknown): Operation<unknown> {
  return yield* begun(body, inFiber())
}

/** A fiber, as what runs a generator apart needs it. */
interface Descending extends Waiter {
  takeFirst(op: Waited): void
  descend(inner: unknown): void
}

/** The fiber leaves its stack, goes on in `inner` from an empty one, and returns here when that has ended. */
class Apart implements Waited, Iterator<Step, unknown, unknown> {
  readonly #inner: Operation<unknown>
  #isBegun = false

  constructor(inner: Operation<unknown>) {
    this.#inner = inner
  }

  next(): IteratorResult<Step, unknown> {
    if (this.#isBegun) return { done: true, value: takeResult() }
    this.#isBegun = true
    inFiber().op = this
    return PENDING
  }

  /** @throws `error`: `inner` has not begun, or has ended with it. */
  throw(error: unknown): never {
    throw error
  }

  park(fiber: Waiter): void {
    ;(fiber as Descending).takeFirst(this)
  }

  unpark(): boolean {
    return true
  }

  take(fiber: Waiter): void {
    ;(fiber as Descending).descend(this.#inner)
  }

  describe(): string {
    return 'its turn'
  }
}

/** A body for which no step is left. */
function* beside(body: unknown): Operation<unknown> {
  yield* yieldNow()
  return yield* begun(body, inFiber())
}

/** What was thrown into the fiber on purpose before a body inside of it began. */
class Raising {
  readonly fiber: Waiter
  readonly extra: Extra | undefined
  readonly raised: Failed | undefined
  readonly thrown: unknown

  constructor(fiber: Waiter) {
    this.fiber = fiber
    this.extra = (fiber as unknown as { readonly extra: Extra | undefined }).extra
    this.raised = this.extra?.raised
    this.thrown = this.extra?.thrown
  }

  /** In a `finally` block an older failure is under way: it must be known again when it goes on. */
  raiseAgain(): void {
    if (this.raised !== undefined) this.extra?.raiseAgain(this.thrown, this.raised)
  }

  /** The exit of the body that threw. @throws What unwinds the fiber. */
  failedBy(thrown: unknown): Failed {
    const isToken = this.fiber.isToken(thrown)
    const failed = isToken ? undefined : this.fiber.failedBy(thrown)
    this.raiseAgain()
    if (failed === undefined) throw thrown
    return failed
  }
}

function inFiber(): Waiter {
  if (running.fiber === undefined) throw outside('a combinator')
  return running.fiber
}

/**
 * What `yield*` runs for a body: its own generator where it has one, so that bodies inside of each other add
 * few generators.
 */
function begun(body: unknown, fiber: Waiter): Operation<unknown> {
  const made = typeof body === 'function' ? (body as (fiber: Waiter) => unknown)(fiber) : body
  if (isGenerator(made)) return made as Operation<unknown>
  if (made !== body || isYieldable(body)) return inline(made)
  if (isRunnable(body)) return ran(body, fiber)
  throw notABody('the body of a combinator', body)
}

function* ran(body: Runnable<unknown, unknown, unknown>, fiber: Waiter): Operation<unknown> {
  const made = body[RUNNABLE](undefined, (fiber as unknown as { signal: AbortSignal }).signal)
  return yield* fromExit((yield* inline(made)) as Exit<unknown>)
}
