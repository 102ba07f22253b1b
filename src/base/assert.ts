/**
 * Assertions: what must be true unless Corespun itself is wrong.
 *
 * A failed one is a bug report, so it carries no code and no module promises it in `@throws`. Input of users
 * is never checked here: it gets its module's error.
 */

/** Thrown by {@link assert}: a bug in Corespun, not in the program that uses it. */
export class AssertionFailure extends Error {
  override readonly name = 'AssertionFailure'
}

/**
 * Stop here when `condition` is false.
 * @throws {AssertionFailure} with `what`, which names the broken invariant.
 */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new AssertionFailure(`corespun: broken invariant: ${what}`)
}
