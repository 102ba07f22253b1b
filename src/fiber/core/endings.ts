/**
 * What `join`, `await` and `interrupt` of a fiber return: its end, for `yield*` in a fiber and `await`
 * everywhere.
 *
 * Outside of fibers that is a promise, wired to the fiber at once. In the code of a running fiber `yield*`
 * follows nearly always, and a promise would cost more than the join: there it is a `Joining` or an
 * `Ending`, which V8 does not even allocate when `yield*` follows at once. These inherit from
 * `Promise.prototype`, and make a promise when `then`, `catch` or `finally` is called.
 */
import { type Exit, thrownBy } from './exit.ts'
import { Op, type Step, type Waiter, Yieldable, running } from './op.ts'
import { rememberDefect } from './rejections.ts'
import { DONE } from './states.ts'
import type { Wakeable } from './waiters.ts'

/** The part of a fiber that its ends use. */
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
}

export type { Waitable } from '../../base/index.ts'

/** What `join` returns inside a fiber. The joined fiber is the iterator: a parked joiner holds only that. */
export class Joining {
  readonly target: Target

  constructor(target: Target) {
    this.target = target
  }

  [Symbol.iterator](): object {
    running.asks = true
    return this.target
  }

  // oxlint-disable-next-line unicorn/no-thenable -- `await fiber.join()` is what it is for
  then(...listeners: never[]): Promise<unknown> {
    return new EndPromise(this.target, true).then(...listeners)
  }
}

/** What `await` and `interrupt` return inside a fiber. */
export class Ending {
  readonly target: Target

  constructor(target: Target) {
    this.target = target
  }

  [Symbol.iterator](): object {
    running.asks = true
    return new EndOp(this.target)
  }

  // oxlint-disable-next-line unicorn/no-thenable -- as above
  then(...listeners: never[]): Promise<unknown> {
    return new EndPromise(this.target, false).then(...listeners)
  }
}
// For `instanceof`, `catch` and `finally`, which call `then`; `extends Promise` would make a promise of each.
for (const { prototype } of [Joining, Ending]) Object.setPrototypeOf(prototype, Promise.prototype)

/** What all three return outside of fibers. */
export class EndPromise extends Promise<unknown> {
  readonly #target: Target
  readonly #isJoin: boolean

  constructor(target: Target, isJoin: boolean) {
    super((resolve, reject) => target.addWaiter(isJoin ? new Joiner(resolve, reject) : new Observer(resolve)))
    this.#target = target
    this.#isJoin = isJoin
  }

  [Symbol.iterator](): object {
    running.asks = true
    return this.#isJoin ? this.#target : new EndOp(this.#target)
  }
}
// `await` takes it as it is instead of wrapping it, and its `then` makes plain promises.
Reflect.defineProperty(EndPromise.prototype, 'constructor', { value: Promise })

/** Whether `value` is an op or a {@link Waitable}. */
export function isYieldable(value: unknown): value is Yieldable<unknown, unknown> {
  if (value instanceof Yieldable) return true
  // Asked of the promise of every async body, so without a list.
  return value instanceof Joining || value instanceof Ending || value instanceof EndPromise
}

/** Waits for a fiber's end and returns its exit. */
class EndOp extends Op<Exit<unknown, unknown>> implements Wakeable {
  readonly #fiber: Target
  #waiter: Waiter | undefined

  constructor(fiber: Target) {
    super()
    this.#fiber = fiber
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

  take(): Exit<unknown, unknown> {
    return this.#fiber.exit as Exit<unknown, unknown>
  }

  describe(): string {
    return `the end of ${this.#fiber.title}`
  }
}

/** Resolves a promise with a fiber's exit. */
class Observer implements Wakeable {
  protected readonly resolve: (value: unknown) => void

  constructor(resolve: (value: unknown) => void) {
    this.resolve = resolve
  }

  waitsFor(): boolean {
    return true
  }

  wakeBy(target: object): void {
    this.resolve((target as Target).exit)
  }
}

/** Settles a promise as a fiber has ended. A rejection loses the kind of the exit: defects are remembered. */
class Joiner extends Observer {
  readonly #reject: (reason: unknown) => void

  constructor(resolve: (value: unknown) => void, reject: (reason: unknown) => void) {
    super(resolve)
    this.#reject = reject
  }

  override wakeBy(target: object): void {
    const exit = (target as Target).exit as Exit<unknown, unknown>
    if (exit.kind === 'success') return this.resolve(exit.value)
    if (exit.kind === 'defect') rememberDefect(exit.defect)
    this.#reject(thrownBy(exit))
  }
}
