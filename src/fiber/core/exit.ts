/**
 * How a computation ended: with a value, a failure, a defect, or by interruption.
 *
 * A failure is a typed value that the computation names beforehand (`fail(e)`, the rejection of an async
 * body). A defect is anything else that was thrown: a bug. A defect is never turned into a failure; nothing
 * that handles failures (`retry`, `catchAll`, `any`) sees one. If there is more than one error, the first
 * is the exit and the rest are its `others`, in the order they happened: nothing is dropped.
 */
import { InterruptedError, wrong } from '../errors.ts'

/** It ended with a value. */
export interface Success<A> {
  /** The kind of exit. */
  readonly kind: 'success'
  /** What the body returned. */
  readonly value: A
}

/** It ended with a failure that it names in its type. */
export interface Failure<E> {
  /** The kind of exit. */
  readonly kind: 'failure'
  /** What the body failed with. */
  readonly error: E
  /** What else went wrong on the way out; empty when nothing did. */
  readonly others: readonly Failed[]
}

/** It threw what no type names. */
export interface Defect {
  /** The kind of exit. */
  readonly kind: 'defect'
  /** What the body threw. */
  readonly defect: unknown
  /** What else went wrong on the way out; empty when nothing did. */
  readonly others: readonly Failed[]
}

/** It was interrupted. */
export interface Interruption {
  /** The kind of exit. */
  readonly kind: 'interruption'
  /** What `interrupt` was given; `undefined` when nothing. */
  readonly reason: unknown
  /** What else went wrong on the way out; empty when nothing did. */
  readonly others: readonly Failed[]
}

/** An exit without a value. */
export type Failed<E = unknown> = Failure<E> | Defect | Interruption

/** How a computation with the value `A` and failures `E` ended. */
export type Exit<A, E = never> = Success<A> | Failed<E>

const NONE: readonly Failed[] = Object.freeze([])

/**
 * Constructors and guards of {@link Exit}. Exits are plain objects: compare `kind`, send them anywhere.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Exit } from 'corespun/fiber'
 *
 * assert.ok(Exit.isSuccess(Exit.success(1)))
 * assert.deepEqual(Exit.failure('busy'), { kind: 'failure', error: 'busy', others: [] })
 * ```
 */
export const Exit = Object.freeze({
  /** An exit with a value. */
  success<A>(value: A): Success<A> {
    return { kind: 'success', value }
  },

  /** An exit with a failure. @param others What else went wrong. Default: nothing. */
  failure<E>(error: E, others: readonly Failed[] = NONE): Failure<E> {
    return { kind: 'failure', error, others }
  },

  /** An exit with a defect. @param others What else went wrong. Default: nothing. */
  defect(defect: unknown, others: readonly Failed[] = NONE): Defect {
    return { kind: 'defect', defect, others }
  },

  /** An exit by interruption. @param others What else went wrong. Default: nothing. */
  interruption(reason?: unknown, others: readonly Failed[] = NONE): Interruption {
    return { kind: 'interruption', reason, others }
  },

  /** Whether it ended with a value. */
  isSuccess<A, E>(exit: Exit<A, E>): exit is Success<A> {
    return exit.kind === 'success'
  },

  /** Whether it ended with a failure; false for defects and interruptions. */
  isFailure<A, E>(exit: Exit<A, E>): exit is Failure<E> {
    return exit.kind === 'failure'
  },

  /** Whether it ended with a defect. */
  isDefect<A, E>(exit: Exit<A, E>): exit is Defect {
    return exit.kind === 'defect'
  },

  /** Whether it was interrupted. */
  isInterruption<A, E>(exit: Exit<A, E>): exit is Interruption {
    return exit.kind === 'interruption'
  },
})

/**
 * Returns the value of an exit; throws the failure or the defect itself otherwise.
 * @throws {InterruptedError} `FIBER_INTERRUPTED` when it is an interruption.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Exit, exitValue } from 'corespun/fiber'
 *
 * assert.equal(exitValue(Exit.success(7)), 7)
 * assert.throws(() => exitValue(Exit.failure(new RangeError('lost'))), RangeError)
 * ```
 */
export function exitValue<A, E>(exit: Exit<A, E>): A {
  if (isValue(exit)) return exit.value
  throw thrownBy(checkedFailed(exit))
}

/** Whether what foreign code has ended with is an exit with a value. */
export function isValue<A>(exit: Exit<A, unknown> | null | undefined): exit is Success<A> {
  return exit?.kind === 'success'
}

/** An exit of foreign code without a value; a defect instead of what is not an exit. */
export function checkedFailed(exit: unknown): Failed {
  const kind = (exit as Failed | null | undefined)?.kind
  if (kind === 'failure' || kind === 'defect' || kind === 'interruption') return exit as Failed
  return Exit.defect(
    wrong('the exit (of a runnable, of fromExit())', 'an Exit, as Exit.success(value) returns', exit),
  )
}

/** What {@link exitValue} throws for an exit without a value. */
export function thrownBy(exit: Failed): unknown {
  switch (exit.kind) {
    case 'failure':
      return exit.error
    case 'defect':
      return exit.defect
    default:
      return new InterruptedError(exit.reason)
  }
}

/**
 * `first` with `more` behind its others: one exit that keeps all. `first` itself when there are no more.
 */
export function withOthers<E>(first: Failed<E>, more: readonly Failed[]): Failed<E> {
  return more.length === 0 ? first : { ...first, others: [...first.others, ...more] }
}

/** `exit` with `errors` behind it; when it has a value the first of them is the exit. */
export function withErrors<A, E>(exit: Exit<A, E>, errors: readonly Failed[]): Exit<A, unknown> {
  const [first, ...rest] = errors
  if (first === undefined) return exit
  return exit.kind === 'success' ? withOthers(first, rest) : withOthers(exit, errors)
}

/** An exit and its others as one list, the first first, none with others of its own. */
export function flatExits(exit: Failed): Failed[] {
  const flat: Failed[] = []
  const rest: Failed[] = [exit]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    flat.push(next.others.length === 0 ? next : { ...next, others: NONE })
    for (let index = next.others.length - 1; index >= 0; index -= 1) rest.push(next.others[index])
  }
  return flat
}
