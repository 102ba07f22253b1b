/**
 * What the types of arrows say beyond input, output and failures: whether running one waits.
 *
 * The kind of a composition follows from its parts, so `run` gives a value or a promise, and the compiler
 * knows which.
 */

/** Whether an arrow's `run` gives a value (`sync`) or a promise (`async`). `Kind` itself: not known. */
export type Kind = 'sync' | 'async'

/** The kind of what is composed of two. */
export type Join<K1 extends Kind, K2 extends Kind> = [K1] extends ['sync']
  ? K2
  : [K2] extends ['sync']
    ? K1
    : 'sync' extends K1
      ? 'sync' extends K2
        ? Kind
        : 'async'
      : 'async'

/** What running gives, by kind. */
interface Runs<B> {
  readonly sync: B
  readonly async: Promise<B>
}

/** What running gives: the value, a promise of it, or one of both where the kind is not known. */
export type Run<B, K extends Kind> = Runs<B>[K]
