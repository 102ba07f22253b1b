/**
 * Waiting for what foreign code calls a promise.
 *
 * A thenable may throw when asked, call back before `then` returns, or call back twice. Whoever keeps books
 * of who waits for what must not meet any of it.
 */

const { then } = Promise.prototype

/** Call one of the two, once and later, however the thing with a `then` behaves. */
export function whenSettled<A>(
  promise: PromiseLike<A>,
  fulfilled: (value: A) => void,
  rejected: (reason: unknown) => void,
): void {
  // A promise is itself, with the method of promises: no tick is added to it.
  void then.call(Promise.resolve(promise), fulfilled as (value: unknown) => void, rejected)
}
