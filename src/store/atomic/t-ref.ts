/**
 * A value of one thread that transactions read and change, beside the keys of stores.
 *
 * JavaScript of a thread runs alone, and so does the function of a transaction: what it has read cannot have
 * changed when it commits. Kept here are the value and who waits for a change of it.
 */

/**
 * A value that only transactions change: `tx.get(ref)`, `tx.set(ref, value)`, `tx.update(ref, fn)`. It is not
 * copied: replace objects, and do not change them.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { TRef, atomicallySync } from 'corespun/store'
 *
 * const [free, used] = [new TRef(2), new TRef(0)]
 * atomicallySync((tx) => {
 *   tx.update(free, (n) => n - 1)
 *   tx.update(used, (n) => n + 1)
 * })
 * assert.deepEqual([free.get(), used.get()], [1, 1])
 * ```
 */
export class TRef<in out A> {
  #value: A
  readonly #waiting = new Set<() => void>()

  /** @param initial The first value. */
  constructor(initial: A) {
    this.#value = initial
  }

  /** The value that the last transaction has left. */
  get(): A {
    return this.#value
  }

  /** @internal Replaces the value and wakes who waits for another one. */
  static put<A>(ref: TRef<A>, value: A): void {
    if (Object.is(ref.#value, value)) return
    ref.#value = value
    // Each removes itself.
    for (const wake of ref.#waiting) wake()
  }

  /** @internal */
  static wait(ref: TRef<unknown>, wake: () => void): void {
    ref.#waiting.add(wake)
  }

  /** @internal */
  static leave(ref: TRef<unknown>, wake: () => void): void {
    ref.#waiting.delete(wake)
  }
}
