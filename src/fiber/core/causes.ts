/**
 * How an interrupted fiber ends: what is thrown into its body, and what its exit contains.
 *
 * Nothing here runs while a fiber goes its usual way; that is in fiber.ts.
 */
import { stackIn } from '../../base/index.ts'
import type { InterruptedError } from '../errors.ts'
import { type Exit, type Failed, thrownBy, withErrors, withOthers } from './exit.ts'
import type { Extra } from './extra.ts'
import type { Waited, Waiter } from './op.ts'

/** A fiber, as what unwinds it sees it. */
interface Unwound extends Waiter {
  token(): InterruptedError
}

/** What an interrupted fiber is given in place of what it waited for. */
export const UNWIND: Waited = {
  park: (fiber) => fiber.makeReady(),
  unpark: () => true,
  take(fiber) {
    throw (fiber as Unwound).token()
  },
  describe: () => 'its end',
}

/** What a fiber with an async body waits for. */
export const BODY: Waited = {
  park() {},
  unpark: () => false,
  take: () => undefined,
  describe: () => 'its promise',
}

/** What a fiber is given in its next turn: an error. */
export class Thrown implements Waited {
  readonly #error: unknown

  constructor(error: unknown) {
    this.#error = error
  }

  park(fiber: Waiter): void {
    fiber.makeReady()
  }

  unpark(): boolean {
    return true
  }

  /** @throws what the body did wrong. */
  take(): never {
    throw this.#error
  }

  describe(): string {
    return 'its turn'
  }
}

/** What a generator has thrown into the one that waits for it. */
export class Ascended extends Thrown {
  readonly #error: unknown

  constructor(error: unknown) {
    super(error)
    this.#error = error
  }

  /** The fiber was interrupted meanwhile. */
  drop(fiber: Waiter): void {
    fiber.failedBeside(fiber.failedBy(this.#error))
  }
}

/** What an interrupt was given, or what else unwinds a fiber as it is thrown. */
export function interruptReason(cause: Failed | undefined): unknown {
  return cause === undefined ? undefined : cause.kind === 'interruption' ? cause.reason : thrownBy(cause)
}

/** The exit of a body that has ended with `exit`, and may have been interrupted meanwhile. */
export function exitWithCause(
  exit: Exit<unknown, unknown>,
  extra: Extra | undefined,
  isUnwinding: boolean,
): Exit<unknown, unknown> {
  const cause = extra?.cause
  if (cause === undefined) return exit
  // A child's failure that the body did not meet comes behind the body's own.
  if (!isUnwinding && cause.kind !== 'interruption') return withErrors(exit, [cause])
  const isEcho = exit.kind === 'success' || exit === cause || isEchoOf(exit, extra?.controller?.signal)
  if (isEcho) return cause
  // The cause contains the interrupt; errors of the unwinding are added to its others.
  return withOthers(cause, exit.kind === 'interruption' ? exit.others : [exit])
}

/** Whether `exit`, of what an interrupted fiber waited for, only repeats the interrupt. */
export function isEchoOf(exit: Failed, signal: AbortSignal | undefined): boolean {
  if (exit.kind === 'interruption') return exit.others.length === 0
  const thrown = thrownBy(exit)
  return signal?.aborted === true && (thrown === signal.reason || isAbort(thrown))
}

function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'AbortError'
}

/** Whether `yield*` had to throw into an iterator that has no `throw`, such as that of an array. */
export function isWithoutThrow(thrown: unknown): boolean {
  return (
    thrown instanceof TypeError &&
    /^The iterator.* does not (provide|have) a 'throw' method\.$/.test(thrown.message)
  )
}

/** The engine's error for `yield*` of a promise, with what to write instead; any other error as it is. */
export function withAdvice(thrown: unknown): unknown {
  if (!(thrown instanceof TypeError) || !/^yield\* .* is not iterable$/s.test(thrown.message)) return thrown
  const { message } = thrown
  const advised = `${message}; in a fiber, yield* attempt(promise) waits for a promise`
  thrown.message = advised
  thrown.stack = String(stackIn(thrown) ?? '').replace(message, () => advised)
  return thrown
}
