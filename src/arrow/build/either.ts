/**
 * Either: a value on one of two sides, made by `test` and taken by `choice`.
 *
 * A plain object with a `kind`, so it is compared, printed and sent to other threads like any other. All of
 * them are made by the same literal, here and in generated code, so they have one hidden class.
 */
import { wrong } from '../errors.ts'

/** A value on the left: by convention the one that passed a test. */
export interface Left<L> {
  /** Distinguishes the sides. */
  readonly kind: 'left'
  /** The value. */
  readonly value: L
}

/** A value on the right. */
export interface Right<R> {
  /** Distinguishes the sides. */
  readonly kind: 'right'
  /** The value. */
  readonly value: R
}

/** A value on the left or on the right; `kind` distinguishes them. */
export type Either<L, R> = Left<L> | Right<R>

/**
 * Constructors and type guards of {@link Either}.
 * @example
 * ```ts
 * import { Either, lift } from 'corespun/arrow'
 *
 * const size = lift((text: string) => text.length).choice(lift((x: number) => x))
 * console.log(size.run(Either.left('four')), size.run(Either.right(7))) // 4 7
 * console.log(Either.isLeft(Either.right(7))) // false
 * ```
 */
export const Either = Object.freeze({
  /** Make a value on the left. */
  left<L>(value: L): Left<L> {
    return either(true, value) as Left<L>
  },

  /** Make a value on the right. */
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

/**
 * Called for an input of `left`, `right` or `choice` with another `kind`.
 * @throws {ArrowError} `ARROW_ARGUMENT`, always.
 */
export function notEither(input: unknown, method: string): never {
  throw wrong(`${method}: input`, 'an Either, as test() and Either.left(value) return', input)
}

/** The only literal. */
export function either(isLeft: unknown, value: unknown): Either<unknown, unknown> {
  return { kind: isLeft ? 'left' : 'right', value }
}
