/**
 * How a failure travels inside of a run: wrapped, so that it is never mistaken for something a stage threw.
 *
 * The wrapper is thrown by stages that fail and taken off where a run ends; no code of users ever sees it.
 * Whatever else is thrown is a defect and passes everything that handles failures.
 */
import { Exit, type Failed, InterruptedError } from '../../fiber/index.ts'

const NONE: readonly Failed[] = Object.freeze([])

/** A typed failure on its way. Not an Error: it needs no stack, the error inside has its own. */
export class Raised {
  readonly error: unknown
  /** What else went wrong in the fiber that it comes from. */
  readonly others: readonly Failed[]

  constructor(error: unknown, others: readonly Failed[] = NONE) {
    this.error = error
    this.others = others
  }
}

/** A defect beside which more went wrong; one that came alone is thrown as it is. */
export class Broken {
  readonly defect: unknown
  readonly others: readonly Failed[]

  constructor(defect: unknown, others: readonly Failed[]) {
    this.defect = defect
    this.others = others
  }
}

/** The run was told to stop; it ends here, whatever its stages still do. */
export class Stopped {
  readonly reason: unknown
  /** What went wrong on the way out. */
  readonly others: readonly Failed[]

  constructor(reason: unknown, others: readonly Failed[] = NONE) {
    this.reason = reason
    this.others = others
  }
}

/**
 * What a run throws to its caller for something thrown inside. A run that its own signal has interrupted
 * throws the signal's reason; one that ends because a fiber in it was interrupted, what a join of that fiber
 * throws.
 */
export function unwrapped(thrown: unknown, signal: AbortSignal | undefined): unknown {
  if (thrown instanceof Raised) return thrown.error
  if (thrown instanceof Broken) return thrown.defect
  if (!(thrown instanceof Stopped)) return thrown
  return signal?.aborted === true ? thrown.reason : new InterruptedError(thrown.reason)
}

/** How a run ended that threw. */
export function exitOf(thrown: unknown): Failed {
  if (thrown instanceof Raised) return Exit.failure(thrown.error, thrown.others)
  if (thrown instanceof Broken) return Exit.defect(thrown.defect, thrown.others)
  return thrown instanceof Stopped ? Exit.interruption(thrown.reason, thrown.others) : Exit.defect(thrown)
}

/** What is thrown inside of a run for an exit without a value. */
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

/** What went wrong in a stage that was told to stop: nothing, when it has only said so. */
export function besides(thrown: unknown, signal: AbortSignal): readonly Failed[] {
  if (thrown instanceof Stopped) return thrown.others
  const exit = exitOf(thrown)
  const what = exit.kind === 'failure' ? exit.error : exit.kind === 'defect' ? exit.defect : undefined
  const isEcho = what === signal.reason || (what instanceof Error && what.name === 'AbortError')
  return isEcho ? exit.others : [exit]
}

/**
 * Write the name of a stage into the stack of an error that passes through it; once for each error.
 * What is no Error, or cannot be written to, passes as it is.
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
