/**
 * Deferred: an exit that comes from somewhere else, once.
 *
 * All who wait go on in the order they came. A failure that nobody waits for is not reported.
 */
import { Exit, type Failed, checkedFailed, isValue } from '../core/exit.ts'
import type { Waitable } from '../core/endings.ts'
import { Claim, Line, type WaitOptions, waitOf } from './line.ts'
import { waitable } from './waitable.ts'

/**
 * A value or a failure that is set once and that any number of fibers wait for.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Deferred, fork } from 'corespun/fiber'
 *
 * const ready = new Deferred<number>()
 * const fiber = fork(function* () {
 *   return (yield* ready.await()) + 1
 * })
 * assert.equal(ready.succeed(41), true)
 * assert.equal(ready.succeed(0), false)
 * assert.equal(await fiber.join(), 42)
 * ```
 */
export class Deferred<A, E = never> {
  readonly #line = new Line('a Deferred')
  #exit: Exit<A, E> | undefined

  /** What it was set to; `undefined` before. */
  get exit(): Exit<A, E> | undefined {
    return this.#exit
  }

  /** Sets the value, unless it is set already; returns whether it did. */
  succeed(value: A): boolean {
    return this.done(Exit.success(value))
  }

  /** Sets a failure, unless it is set already; returns whether it did. */
  fail(error: E): boolean {
    return this.done(Exit.failure(error))
  }

  /** Sets any exit, unless it is set already; returns whether it did. */
  done(exit: Exit<A, E>): boolean {
    if (this.#exit !== undefined) return false
    this.#exit = isValue(exit) ? exit : (checkedFailed(exit) as Failed<E>)
    this.#line.serve()
    return true
  }

  /** Waits until it is set: its value, or its failure, defect or interruption thrown. */
  await(options?: WaitOptions): Waitable<A, E> {
    const signal = waitOf('deferred.await()', options)
    return waitable(() => new Awaiting<A, E>(this.#line, signal, this))
  }
}

class Awaiting<A, E> extends Claim<A, E, Deferred<A, E>> {
  canGrant(): boolean {
    return this.of.exit !== undefined
  }

  protected grant(): void {
    const exit = this.of.exit as Exit<A, E>
    if (exit.kind !== 'success') this.failed = exit
  }

  protected collect(): A {
    return (this.of.exit as { readonly value: A }).value
  }
}
