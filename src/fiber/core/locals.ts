/**
 * Values that belong to a fiber and go to the fibers that it forks, such as the user of a request.
 *
 * A fork takes the values of that moment; later changes on either side are not seen on the other. They are
 * those of the fiber that forks, whoever owns the new one; outside of fibers, those of the fiber that owns
 * it.
 */
import { wrong } from '../errors.ts'
import type { Fiber } from './fiber.ts'
import type { AnyBody, FailureOf, ValueOf } from './fork.ts'
import { type Operation, running } from './op.ts'
import { within } from './promises.ts'
import { currentFiber } from './resources.ts'

/**
 * A value per fiber, which the fibers that it forks inherit.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { FiberLocal, fork } from 'corespun/fiber'
 *
 * const user = new FiberLocal('nobody')
 * function* program(name: string) {
 *   user.set(name)
 *   return yield* fork(() => user.get()).join()
 * }
 * assert.equal(await fork(program('Ann')).join(), 'Ann')
 * assert.equal(user.get(), 'nobody')
 * ```
 */
export class FiberLocal<A> {
  readonly #initial: A

  /** @param initial The value in fibers that have set or inherited none, and outside of fibers. */
  constructor(initial: A) {
    this.#initial = initial
  }

  /**
   * The value in the running fiber.
   * @param fiber Another fiber. Async bodies pass theirs: after an `await` the running fiber is unknown.
   */
  get(fiber: Fiber | undefined = running.fiber as Fiber | undefined): A {
    const locals = fiber?.extra?.locals
    return locals !== undefined && locals.has(this) ? (locals.get(this) as A) : this.#initial
  }

  /**
   * Sets the value in the running fiber, until its end, and in the fibers that it forks from now on.
   * @throws {FiberError} `FIBER_REQUIRED` outside of a fiber, unless `fiber` is passed.
   */
  set(value: A, fiber: Fiber = currentFiber('set()')): void {
    const extra = fiber.more()
    extra.locals = new Map(extra.locals).set(this, value)
  }

  /**
   * Runs `body` in this fiber with the value; afterwards the former value is set again.
   * @throws {FiberError} `FIBER_ARGUMENT`, `FIBER_REQUIRED`.
   */
  *with<const B extends AnyBody>(value: A, body: B): Operation<ValueOf<B>, FailureOf<B>> {
    if (body === undefined) throw wrong('with(): the body', 'a body', body)
    const fiber = currentFiber('with()')
    const former = this.get(fiber)
    this.set(value, fiber)
    try {
      return yield* within(body)
    } finally {
      this.set(former, fiber)
    }
  }
}
