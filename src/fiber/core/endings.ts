/**
 * What a fiber's `join`, `await` and `interrupt` give: its end, for `yield*` in a fiber and `await`
 * elsewhere.
 *
 * A join has a `next` of its own, apart from that of other ops, so that compiled code knows what it meets: a
 * join of a fiber that has ended costs one look.
 */
import { type Exit, exitValue } from './exit.ts'
import { Op, type Step, type Waiter, Yieldable, running } from './op.ts'
import { rememberDefect } from './rejections.ts'
import { DONE } from './states.ts'
import type { Wakeable } from './waiters.ts'

/** A fiber, as its ends see it. */
export interface Target<out A = unknown, out E = unknown> {
  readonly flags: number
  readonly state: unknown
  readonly exit: Exit<A, E> | undefined
  readonly title: string
  next(): IteratorResult<Step, unknown>
  observe(): void
  checkAwaited(): void
  addWaiter(one: Wakeable): void
  dropWaiter(one: Wakeable): void
  promise(): Promise<Exit<A, E>>
}

/**
 * What both `yield*` in a fiber and `await` anywhere can wait for. It has the methods of a promise, and makes
 * one when one of them is called: `instanceof Promise` does not hold.
 */
export interface Waitable<out A, out E = never> extends Promise<A> {
  [Symbol.iterator](): Iterator<Step<E>, A, unknown>
}

/** What `join` gives. */
export class Join<A, E> extends Yieldable<A, E> implements Waitable<A, E> {
  readonly fiber: Target<A, E>

  constructor(fiber: Target<A, E>) {
    super()
    this.fiber = fiber
  }

  /** Its fiber goes on as the iterator: who is parked holds that and no join. */
  override [Symbol.iterator](): Iterator<Step<E>, A, unknown> {
    running.asks = true
    return this.fiber as Iterator<Step<E>, A, unknown>
  }

  // oxlint-disable-next-line unicorn/no-thenable -- `await fiber.join()` is what it is for
  then<R1 = A, R2 = never>(
    fulfilled?: ((value: A) => R1 | PromiseLike<R1>) | null,
    rejected?: ((reason: unknown) => R2 | PromiseLike<R2>) | null,
  ): Promise<R1 | R2> {
    return this.fiber
      .promise()
      .then(valueOf<A>)
      .then(fulfilled, rejected)
  }

  /** As that of promises. */
  catch<R = never>(rejected?: ((reason: unknown) => R | PromiseLike<R>) | null): Promise<A | R> {
    return this.then(undefined, rejected)
  }

  /** As that of promises. */
  finally(ended?: (() => void) | null): Promise<A> {
    return this.then(undefined, undefined).finally(ended)
  }

  /** For messages. */
  get [Symbol.toStringTag](): string {
    return 'Join'
  }
}

/** A rejection loses what kind of exit it stands for, so defects are remembered. */
function valueOf<A>(exit: Exit<A, unknown>): A {
  if (exit.kind === 'defect') rememberDefect(exit.defect)
  return exitValue(exit)
}

/** Waits for a fiber's end and gives its exit. */
export class Ending<A, E> extends Op<Exit<A, E>> implements Waitable<Exit<A, E>>, Wakeable {
  readonly #fiber: Target<A, E>
  #waiter: Waiter | undefined

  constructor(fiber: Target<A, E>) {
    super()
    this.#fiber = fiber
  }

  // oxlint-disable-next-line unicorn/no-thenable -- `await fiber.await()` is what it is for
  then<R1 = Exit<A, E>, R2 = never>(
    fulfilled?: ((value: Exit<A, E>) => R1 | PromiseLike<R1>) | null,
    rejected?: ((reason: unknown) => R2 | PromiseLike<R2>) | null,
  ): Promise<R1 | R2> {
    return this.#fiber.promise().then(fulfilled, rejected)
  }

  /** As that of promises. */
  catch<R = never>(rejected?: ((reason: unknown) => R | PromiseLike<R>) | null): Promise<Exit<A, E> | R> {
    return this.then(undefined, rejected)
  }

  /** As that of promises. */
  finally(ended?: (() => void) | null): Promise<Exit<A, E>> {
    return this.then(undefined, undefined).finally(ended)
  }

  /** For messages. */
  get [Symbol.toStringTag](): string {
    return 'Ending'
  }

  /** One that is in use by one fiber is another one for the next. */
  override [Symbol.iterator](): Iterator<Step, Exit<A, E>, unknown> {
    running.asks = true
    return (this.#waiter === undefined ? this : new Ending(this.#fiber)) as never
  }

  override isReady(): boolean {
    this.#fiber.checkAwaited()
    this.#fiber.observe()
    return (this.#fiber.flags & DONE) !== 0
  }

  park(fiber: Waiter): void {
    this.#waiter = fiber
    this.#fiber.addWaiter(this)
  }

  unpark(): boolean {
    this.#waiter = undefined
    this.#fiber.dropWaiter(this)
    return true
  }

  waitsFor(): boolean {
    return this.#waiter !== undefined
  }

  wakeBy(): void {
    this.#waiter?.makeReady()
    this.#waiter = undefined
  }

  take(): Exit<A, E> {
    return this.#fiber.exit as Exit<A, E>
  }

  describe(): string {
    return `the end of ${this.#fiber.title}`
  }
}

/** Gives a promise of a fiber's end. */
export class PromisedEnding implements Wakeable {
  readonly #resolve: (exit: Exit<unknown, unknown>) => void

  constructor(resolve: (exit: never) => void) {
    this.#resolve = resolve as (exit: Exit<unknown, unknown>) => void
  }

  waitsFor(): boolean {
    return true
  }

  wakeBy(target: object): void {
    this.#resolve((target as Target).exit as Exit<unknown, unknown>)
  }
}
