/**
 * How a failure travels inside of a run: wrapped, so that it is never mistaken for something a stage threw.
 *
 * The wrapper is thrown by stages that fail and taken off where a run ends; no code of users ever sees it.
 * Whatever else is thrown is a defect and passes everything that handles failures.
 */
import { Exit } from '../fiber/index.ts'

/** A typed failure on its way. Not an Error: it needs no stack, the error inside has its own. */
export class Raised {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** The run was told to stop; it ends here, whatever its stages still do. */
export class Stopped {
  readonly reason: unknown

  constructor(reason: unknown) {
    this.reason = reason
  }
}

/** What a run throws to its caller for something thrown inside. */
export function unwrapped(thrown: unknown): unknown {
  if (thrown instanceof Raised) return thrown.error
  return thrown instanceof Stopped ? thrown.reason : thrown
}

/** How a run ended that threw. */
export function exitOf(thrown: unknown): Exit<never, unknown> {
  if (thrown instanceof Raised) return Exit.failure(thrown.error)
  return thrown instanceof Stopped ? Exit.interruption(thrown.reason) : Exit.defect(thrown)
}

/**
 * Write the name of a stage into the stack of an error that passes through it; once for each error.
 * What is no Error, or cannot be written to, passes as it is.
 */
export function traced(thrown: unknown, name: string): unknown {
  const error = thrown instanceof Raised ? thrown.error : thrown
  if (!(error instanceof Error) || typeof error.stack !== 'string') return thrown
  const line = `\n    at stage ${name}`
  if (error.stack.includes(`${line}\n`) || error.stack.endsWith(line)) return thrown
  try {
    error.stack += line
  } catch {
    // Frozen: it keeps the stack it has.
  }
  return thrown
}
