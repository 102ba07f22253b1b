/**
 * One of two: what `test` makes and `choice` takes.
 *
 * A plain object with a `kind`, so it is compared, printed and sent to other threads like any other. All of
 * them are made in this file and in generated code by the same literal, so they have one hidden class.
 */

/** A value on the left: by custom the one that passed a test, or the case that was looked for. */
export interface Left<L> {
  readonly kind: 'left'
  readonly value: L
}

/** A value on the right. */
export interface Right<R> {
  readonly kind: 'right'
  readonly value: R
}

/** One of two, told apart by `kind`. */
export type Either<L, R> = Left<L> | Right<R>

/** Constructors and guards of {@link Either}. */
export const Either = Object.freeze({
  /** A value on the left. */
  left<L>(value: L): Left<L> {
    return either(true, value) as Left<L>
  },

  /** A value on the right. */
  right<R>(value: R): Right<R> {
    return either(false, value) as Right<R>
  },

  /** Whether the value is on the left. */
  isLeft<L, R>(one: Either<L, R>): one is Left<L> {
    return one.kind === 'left'
  },

  /** Whether the value is on the right. */
  isRight<L, R>(one: Either<L, R>): one is Right<R> {
    return one.kind === 'right'
  },
})

/** The one literal: a value on the left if `isLeft`. */
export function either(isLeft: unknown, value: unknown): Either<unknown, unknown> {
  return { kind: isLeft ? 'left' : 'right', value }
}
