/**
 * The kind of an arrow: whether `run` returns a value or a promise.
 *
 * The kind of a composition follows from its parts, so the type of `run` is always exact.
 */

/** `sync`: `run` returns the value. `async`: it returns a promise. `Kind` itself: unknown until it runs. */
export type Kind = 'sync' | 'async'

/** The kind of a composition of two arrows: `sync` only when both are. */
export type Join<K1 extends Kind, K2 extends Kind> = [K1] extends ['sync']
  ? K2
  : [K2] extends ['sync']
    ? K1
    : 'sync' extends K1
      ? 'sync' extends K2
        ? Kind
        : 'async'
      : 'async'

interface Runs<B> {
  readonly sync: B
  readonly async: Promise<B>
}

/** The type that `run` returns: `B`, a promise of it, or either when the kind is unknown. */
export type Run<B, K extends Kind> = Runs<B>[K]
