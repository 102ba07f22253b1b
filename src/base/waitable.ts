/**
 * What fibers lend to the modules below them: calls that a fiber waits for with `yield*`.
 *
 * A module that fibers are made of cannot import them. It makes its promises here, and `fiber` fills the slot
 * when it is loaded. Without fibers in the program a call is a promise and costs no more.
 */

/** Where a type keeps which failures a step can bring; no value has it. */
declare const FAILS: unique symbol

/** What a generator body yields; `E`: the failures that waiting can throw into it. */
export interface Step<out E = never> {
  /** Carries `E` for the compiler; no value has it. */
  readonly [FAILS]?: E
}

/**
 * A promise that a fiber's generator can wait for with `yield*` as well, which costs less there than
 * `attempt(promise)` and keeps the type of the failures.
 *
 * Outside of fibers it is an instance of `Promise` in every respect. In the code of a running fiber the
 * native promise is made when `then`, `catch` or `finally` is first called, by `await` or `Promise.all` for
 * example; until then `util.types.isPromise` returns false for it.
 */
export interface Waitable<out A, out E = never> extends Promise<A> {
  /** For `yield*` in a fiber's generator. */
  [Symbol.iterator](): Iterator<Step<E>, A, unknown>
}

/** What begins when a fiber waits for it; its signal is aborted when the fiber is interrupted. */
type Begin<A> = (signal: AbortSignal | undefined) => Promise<A>

/** Filled by fibers when they are loaded. */
export const fibers: {
  /** What begins at `yield*` or `await`; `undefined` outside of the code of a fiber. */
  later: (<A>(begin: Begin<A>) => Waitable<A, unknown> | undefined) | undefined
} = { later: undefined }

/**
 * Begins when the running fiber waits for it; outside of fibers at once, as a promise and nothing more: steps
 * of its own would cost each call half as much again.
 */
export function waitableOf<A>(begin: Begin<A>): Waitable<A, unknown> {
  return fibers.later?.(begin) ?? (begin(undefined) as Waitable<A, unknown>)
}
