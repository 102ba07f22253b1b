/**
 * Ref and SynchronizedRef: a value that fibers change, by functions or by bodies.
 *
 * Between two waits a fiber runs alone in its thread, so a change by a function needs no lock. A change by a
 * body that waits needs one: the other changes of that ref wait until it has ended.
 */
import { wrong } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import type { FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { within } from '../core/promises.ts'
import { type WaitOptions, waitOf } from './line.ts'
import { Semaphore } from './semaphore.ts'
import { waitable } from './waitable.ts'

/**
 * A value that is read and replaced.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Ref } from 'corespun/fiber'
 *
 * const tickets = new Ref(0)
 * const next = () => tickets.modify((last) => [`ticket ${last + 1}`, last + 1])
 * assert.deepEqual([next(), next(), tickets.get()], ['ticket 1', 'ticket 2', 2])
 * ```
 */
export class Ref<in out A> {
  #value: A

  /** @param initial The first value. */
  constructor(initial: A) {
    this.#value = initial
  }

  /** The value now. */
  get(): A {
    return this.#value
  }

  /** Replaces the value. */
  set(value: A): void {
    this.#value = value
  }

  /** Replaces the value by what `change` returns for it, and returns that. */
  update(change: (value: A) => A): A {
    return (this.#value = change(this.#value))
  }

  /**
   * `change` returns two values: the first is returned, the second replaces the value.
   * @throws {FiberError} `FIBER_ARGUMENT` when it returns anything else; the value is as it was.
   */
  modify<B>(change: (value: A) => readonly [B, A]): B {
    const [result, value] = pairOf(change(this.#value)) as [B, A]
    this.#value = value
    return result
  }
}

/**
 * A value whose changes may wait, one after the other, in order. A change that fails or is interrupted leaves
 * the value as it is.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { SynchronizedRef, sleep } from 'corespun/fiber'
 *
 * const sum = new SynchronizedRef(0)
 * function* slowly(value: number) {
 *   yield* sleep(1)
 *   return value + 1
 * }
 * await Promise.all([sum.update(slowly), sum.update(slowly)])
 * assert.equal(sum.get(), 2)
 * ```
 */
export class SynchronizedRef<in out A> {
  readonly #lock = new Semaphore({ permits: 1 }, 'a SynchronizedRef')
  #value: A

  /** @param initial The first value. */
  constructor(initial: A) {
    this.#value = initial
  }

  /** The value now; a change that has not ended is not in it. */
  get(): A {
    return this.#value
  }

  /** Replaces the value, after the changes that were requested before. */
  set(value: A, options?: WaitOptions): Waitable<A> {
    return this.update(() => value, options) as Waitable<A>
  }

  /** Replaces the value by that of the body which `change` makes of it, and returns it. */
  update<R>(change: (value: A) => R, options?: WaitOptions): Waitable<ValueOf<() => R>, FailureOf<() => R>> {
    return this.#changed('update()', change, (value) => [value, value as A], options)
  }

  /** As `update`; the body returns two values: the first is returned, the second replaces the value. */
  modify<R>(
    change: (value: A) => R,
    options?: WaitOptions,
  ): Waitable<ValueOf<() => R> extends readonly [infer B, A] ? B : never, FailureOf<() => R>> {
    return this.#changed('modify()', change, pairOf as (made: unknown) => [unknown, A], options)
  }

  #changed(
    call: string,
    change: (value: A) => unknown,
    toPair: (made: unknown) => readonly [unknown, A],
    options: WaitOptions | undefined,
  ): Waitable<never, never> {
    if (typeof change !== 'function') throw wrong(`${call}: change`, 'a function', change)
    const signal = waitOf(call, options)
    const work = (): Operation<unknown> => this.#replaced(change, toPair)
    return waitable(() => this.#lock.guarded(work, 1, signal)) as never
  }

  *#replaced(
    change: (value: A) => unknown,
    toPair: (made: unknown) => readonly [unknown, A],
  ): Operation<unknown> {
    const [result, value] = toPair(yield* within(() => change(this.#value)))
    this.#value = value
    return result
  }
}

/** @throws {FiberError} `FIBER_ARGUMENT`. */
function pairOf(made: unknown): [unknown, unknown] {
  if (Array.isArray(made) && made.length === 2) return made as [unknown, unknown]
  throw wrong('modify(): what change() returned', 'two values, [result, value]', made)
}
