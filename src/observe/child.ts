/**
 * The control socket of a process that is a worker of a zone, named after the process that has started it.
 *
 * Loaded by the URL that the parent sends, when the parent is observed. It allows no control.
 */
import type { ProcessObserved } from '../zone/internal.ts'
import { open } from './observe.ts'

/** Open it. Where that fails, the tasks go on without, and the process warns of it. */
export async function begin({ name, parent }: ProcessObserved): Promise<void> {
  try {
    await open(name, parent, {})
  } catch (error) {
    process.emitWarning(error as Error)
  }
}
