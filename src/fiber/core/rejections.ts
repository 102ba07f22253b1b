/**
 * What the rejection of a promise means for a fiber that waits for it.
 *
 * A promise keeps one reason and not what kind of reason it is. So the defects that left a fiber through a
 * promise are remembered, weakly, and are defects again when they come back; the end of an interrupted fiber
 * is known by its error. Everything else that a promise rejects with is a failure. A defect that is no object
 * (`throw 'text'`) cannot be remembered and comes back as a failure.
 */
import { InterruptedError } from '../errors.ts'
import { Exit, type Failed } from './exit.ts'

const defects = new WeakSet<object>()

/** `defect` is about to leave through a promise. */
export function rememberDefect(defect: unknown): void {
  if ((typeof defect === 'object' && defect !== null) || typeof defect === 'function') defects.add(defect)
}

/** The exit that a promise's rejection represents. */
export function failedFrom(reason: unknown): Failed {
  if (reason instanceof InterruptedError) return Exit.interruption(reason.reason)
  const isDefect = typeof reason === 'object' && reason !== null && defects.has(reason)
  return isDefect ? Exit.defect(reason) : Exit.failure(reason)
}
