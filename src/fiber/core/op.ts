/**
 * What a fiber's generator can wait for, and how `yield*` reaches the fiber that runs it.
 *
 * `yield* op` asks the op for an iterator and calls its `next` at once. Each op is its own iterator: it looks
 * whether it is ready, and if it is not, leaves itself with the running fiber and yields. So waiting
 * allocates nothing beside the op, and an op that is ready does not suspend the generator at all.
 */
import type { Step } from '../../base/index.ts'
import { FiberError } from '../errors.ts'
import type { Failed } from './exit.ts'
import { turn } from '../scheduler/scheduler.ts'

export type { Step } from '../../base/index.ts'

/** A generator that runs inside a fiber, returns an `A` and may fail with `E`. */
export type Operation<A, E = never> = Generator<Step<E>, A, unknown>

/** A fiber, as what it waits for sees it. */
export interface Waiter {
  /** What it waits for, or has waited for and not yet taken. */
  op: Waited | undefined
  /** Whether it is interrupted, and unwinds instead of waiting again. */
  readonly isStopped: boolean
  /** Let it go on, soon. */
  makeReady(): void
  /** Let it go on now. */
  resume(): void
  /** Remember that `failed` is thrown into it, and return what is to be thrown. */
  raise(failed: Failed): unknown
  /** The exit that a value thrown by its body represents: what was raised is that again, else a defect. */
  failedBy(thrown: unknown): Failed
  /** Keep `failed`, which went wrong on its way out, unless it only repeats the interrupt. */
  failedBeside(failed: Failed): void
  /** Whether `thrown` is what unwinds it: it must pass. */
  isToken(thrown: unknown): boolean
}

/** What a fiber can wait for, as the fiber sees it. */
export interface Waited {
  /** The fiber has stopped; make it ready when the time has come, at once if it has come already. */
  park(fiber: Waiter): void
  /** The fiber is interrupted. False: it has to wait on, and is made ready when it need not any more. */
  unpark(fiber: Waiter): boolean
  /**
   * The fiber is to unwind before it has parked: let go what has begun already. False as in
   * {@link Waited.unpark}. Absent where nothing begins before `park`.
   */
  leave?(fiber: Waiter): boolean
  /**
   * The fiber was made ready, and unwinds instead of taking the result: pass on what is in it. Absent where
   * nothing is.
   */
  drop?(fiber: Waiter): void
  /** Returns the result, once, or throws what {@link Waiter.raise} returned. */
  take(fiber: Waiter): unknown
  /** What it is, for `dump`. */
  describe(): string
}

/** The code that runs now. */
export const running: {
  /** Whose it is. */
  fiber: Waiter | undefined
  /** How many forks it lies deep in. */
  depth: number
  /** How many fibers on the stack have parked there. */
  below: number
  /** How many bodies of `Caught` are on the stack, inside of each other. */
  nested: number
  /** A `yield*` has begun and its op's first `next` is due: later ones come when the fiber goes on. */
  asks: boolean
} = { fiber: undefined, depth: 0, below: 0, nested: 0, asks: false }

/** What an op returns when the fiber has to wait. */
export const PENDING: IteratorYieldResult<Step> = { done: false, value: Object.freeze({}) }

/** Whether a generator has yielded `step`: in JavaScriptCore `yield*` passes on the value alone. */
export function isStep(result: IteratorResult<unknown>, step: IteratorYieldResult<Step>): boolean {
  return result === step || result.value === step.value
}

/** What a join returns when the fiber has parked already. */
export const PARKED: IteratorYieldResult<Step> = { done: false, value: Object.freeze({}) }

/** What `yield*` in a fiber understands beside generators. */
export abstract class Yieldable<out A, out E = never> {
  /** For `yield*`; the `next` must follow at once. */
  abstract [Symbol.iterator](): Iterator<Step<E>, A, unknown>
}

/** What the running fiber has waited for. @throws {FiberError} `FIBER_REQUIRED`. */
export function takeResult(): unknown {
  const fiber = running.fiber
  const waited = fiber?.op
  if (fiber === undefined) throw outside('yield*')
  if (waited === undefined) {
    const expected = 'a generator that has not begun; pass the generator function to run it again'
    throw new FiberError('FIBER_ARGUMENT', {
      name: 'the body',
      expected,
      received: 'one that another fiber runs',
    })
  }
  fiber.op = undefined
  return waited.take(fiber)
}

/**
 * Something that `yield*` waits for inside a fiber's generator: it returns an `A` or fails with `E`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, type Op, sleep } from 'corespun/fiber'
 *
 * const pause: Op<void> = sleep(1)
 * const fiber = fork(function* () {
 *   yield* pause
 *   return 'done'
 * })
 * assert.equal(await fiber.join(), 'done')
 * ```
 */
export abstract class Op<out A, out E = never> extends Yieldable<A, E> {
  /** For `yield*`; the `next` must follow at once. */
  [Symbol.iterator](): Iterator<Step<E>, A, unknown> {
    running.asks = true
    return this as unknown as Iterator<Step<E>, A, unknown>
  }

  /** For `yield*`. @throws What waiting brings; {@link FiberError} `FIBER_REQUIRED`. @internal */
  next(): IteratorResult<Step, unknown> {
    if (!running.asks) return { done: true, value: takeResult() }
    running.asks = false
    const fiber = running.fiber
    if (fiber === undefined) throw outside(`yield* of an operation (${this.describe()})`)
    if (this.isReady() && --turn.steps > 0) return { done: true, value: this.take(fiber) }
    fiber.op = this
    return PENDING
  }

  /** Whether {@link Op.take} may be called without waiting. @internal */
  isReady(): boolean {
    return false
  }

  /** See {@link Waited}. @internal */
  abstract park(fiber: Waiter): void
  /** See {@link Waited}. @internal */
  abstract unpark(fiber: Waiter): boolean
  /** See {@link Waited}. @internal */
  abstract take(fiber: Waiter): A
  /** See {@link Waited}. @internal */
  abstract describe(): string
}

/** The error for what works in a fiber only. */
export function outside(call: string): FiberError {
  return new FiberError('FIBER_REQUIRED', { call })
}

/** What all generator objects are instances of: a test that needs no property of theirs. */
function GeneratorObject(): void {}
const prototype = Object.getPrototypeOf(
  Object.getPrototypeOf((function* (): Generator<undefined> {})()),
) as Generator
GeneratorObject.prototype = prototype

type GeneratorMethod = (this: unknown, value?: unknown) => IteratorResult<unknown>

/** The methods of generators, taken once: looking them up on each generator costs more than the call. */
export const generatorNext = prototype.next as GeneratorMethod
/** See {@link generatorNext}. */
export const generatorThrow = prototype.throw as GeneratorMethod

/** Whether `value` is a generator object. */
export function isGenerator(value: unknown): value is Generator<unknown, unknown, unknown> {
  return value instanceof (GeneratorObject as unknown as new () => object)
}
