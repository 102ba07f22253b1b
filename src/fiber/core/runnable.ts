/**
 * The protocol by which `fork` runs an arrow, or a program of another library.
 *
 * Whoever has a method under this symbol can be a fiber's body. The symbol is registered (`Symbol.for`), so
 * neither side imports the other.
 */
import type { Exit } from './exit.ts'

/** The name of the method of a {@link Runnable}: `Symbol.for('corespun.runnable')`. */
export const RUNNABLE: unique symbol = Symbol.for('corespun.runnable') as never

/** Something with an input that runs and ends with an {@link Exit}. */
export interface Runnable<In, A, E = never> {
  /**
   * Run now, on this thread.
   *
   * It never throws and its promise never rejects: all that can happen is in the exit. What does throw or
   * reject all the same is a defect of the fiber.
   * @param input What it runs with.
   * @param signal Aborted when the fiber is interrupted; the reason is `interrupt`'s. The fiber ends when the
   *   promise settles, so it should settle soon then. `undefined` when nobody can interrupt it.
   * @returns The exit at once when nothing had to be waited for, otherwise a promise of it.
   */
  [RUNNABLE](input: In, signal: AbortSignal | undefined): Exit<A, E> | PromiseLike<Exit<A, E>>
}

/** Whether `value` has the protocol's method. */
export function isRunnable(value: unknown): value is Runnable<unknown, unknown, unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as Partial<Runnable<unknown, unknown, unknown>>)[RUNNABLE] === 'function'
  )
}
