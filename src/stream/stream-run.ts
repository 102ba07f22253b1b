/**
 * What the sinks of a stream return: it runs when somebody waits for it.
 *
 * It is lazy, so that a fiber may run it in its own name; a promise would run elsewhere, and could not be
 * interrupted.
 */
import { type Op, type Operation, type Step, fork } from '../fiber/index.ts'
import { Yieldable } from '../fiber/internal.ts'

/**
 * A run of a stream that has not begun. `await` runs it in a fiber of its own. `yield*` in a fiber runs it in
 * that one, so that an interrupt of the fiber reaches the source. It is a body for `fork`, whose fiber can be
 * interrupted. Each time it runs again.
 */
export interface StreamRun<out A, out E = never> extends Op<A, E>, PromiseLike<A> {}

class LazyRun extends Yieldable<unknown, unknown> implements PromiseLike<unknown> {
  readonly #begin: () => Operation<unknown, unknown>

  constructor(begin: () => Operation<unknown, unknown>) {
    super()
    this.#begin = begin
  }

  [Symbol.iterator](): Iterator<Step<unknown>, unknown, unknown> {
    return this.#begin()
  }

  // oxlint-disable-next-line unicorn/no-thenable -- `await stream.runCount()` is what it is for
  then<B, C>(
    fulfilled?: ((value: unknown) => B | PromiseLike<B>) | null,
    rejected?: ((reason: unknown) => C | PromiseLike<C>) | null,
  ): Promise<B | C> {
    const fiber = fork(this as unknown as Op<unknown, unknown>)
    return fiber.join().then<B, C>(fulfilled, rejected)
  }
}

/** @param begin Called by each run. */
export function runBy<A, E>(begin: () => Operation<unknown, unknown>): StreamRun<A, E> {
  return new LazyRun(begin) as unknown as StreamRun<A, E>
}
