/**
 * Failures inside of a run: wrapped, so that they are never mistaken for an error that a stage has thrown.
 *
 * Stages that fail throw the wrapper, and the end of the run removes it; code of users never sees it.
 * Whatever else is thrown is a defect and passes all that handles failures.
 */
import { isAbort } from '../../base/index.ts'
import { Exit, type Failed, InterruptedError } from '../../fiber/index.ts'

const NONE: readonly Failed[] = Object.freeze([])

/** A typed failure. Not an Error: it needs no stack of its own. */
export class Raised {
  readonly error: unknown
  /** Other failures and defects of the fiber that failed. */
  readonly others: readonly Failed[]

  constructor(error: unknown, others: readonly Failed[] = NONE) {
    this.error = error
    this.others = others
  }
}

/** A defect with others beside it; a single defect is thrown as it is. */
export class Broken {
  readonly defect: unknown
  readonly others: readonly Failed[]

  constructor(defect: unknown, others: readonly Failed[]) {
    this.defect = defect
    this.others = others
  }
}

/** The run was interrupted: it ends here, whatever its stages still do. */
export class Stopped {
  readonly reason: unknown
  /** Failures and defects of the finalizers. */
  readonly others: readonly Failed[]

  constructor(reason: unknown, others: readonly Failed[] = NONE) {
    this.reason = reason
    this.others = others
  }
}

/**
 * The error that a run throws to its caller for what was thrown inside: the signal's reason when that signal
 * has interrupted it; an InterruptedError when a fiber in it was interrupted by something else.
 */
export function unwrapped(thrown: unknown, signal: AbortSignal | undefined): unknown {
  if (thrown instanceof Raised) return thrown.error
  if (thrown instanceof Broken) return thrown.defect
  if (!(thrown instanceof Stopped)) return thrown
  return signal?.aborted === true ? thrown.reason : new InterruptedError(thrown.reason)
}

export function exitOf(thrown: unknown): Failed {
  if (thrown instanceof Raised) return Exit.failure(thrown.error, thrown.others)
  if (thrown instanceof Broken) return Exit.defect(thrown.defect, thrown.others)
  return thrown instanceof Stopped ? Exit.interruption(thrown.reason, thrown.others) : Exit.defect(thrown)
}

/** The wrapper of an exit without a value. */
export function thrownFor(exit: Failed): unknown {
  switch (exit.kind) {
    case 'failure':
      return new Raised(exit.error, exit.others)
    case 'defect':
      return exit.others.length === 0 ? exit.defect : new Broken(exit.defect, exit.others)
    default:
      return new Stopped(exit.reason, exit.others)
  }
}

/** The failures of an interrupted stage; throwing the signal's reason or an AbortError is not one. */
export function besides(thrown: unknown, signal: AbortSignal): readonly Failed[] {
  if (thrown instanceof Stopped) return thrown.others
  const exit = exitOf(thrown)
  const what = exit.kind === 'failure' ? exit.error : exit.kind === 'defect' ? exit.defect : undefined
  const isEcho = what === signal.reason || isAbort(what)
  return isEcho ? exit.others : [exit]
}

/**
 * Add the name of a stage to the stack of an error that passes through it, once for each name. Values that
 * are not Errors, and errors that cannot be written to, are returned unchanged.
 */
export function traced(thrown: unknown, name: string): unknown {
  const error = thrown instanceof Raised ? thrown.error : thrown instanceof Broken ? thrown.defect : thrown
  try {
    if (!(error instanceof Error) || typeof error.stack !== 'string') return thrown
    const line = `\n    at stage ${name}`
    if (!error.stack.includes(`${line}\n`) && !error.stack.endsWith(line)) error.stack += line
  } catch {
    // Frozen, or its stack is a getter that throws: it keeps the stack it has.
  }
  return thrown
}
