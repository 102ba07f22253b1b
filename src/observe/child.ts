/**
 * The control socket of a process that is a worker of a zone, named after the process that has started it.
 *
 * Loaded by the URL that the parent sends, when the parent is observed. It allows no control.
 */
import { isDenied } from '../base/index.ts'
import type { ProcessObserved } from '../zone/internal.ts'
import { open } from './observe.ts'

/**
 * Open it, unless it is open. Where that fails, the tasks go on without, and the process warns of it, unless
 * it is one that may not (`--permission`).
 */
export async function begin({ name, parent }: ProcessObserved): Promise<void> {
  try {
    await open(name, parent, {}, [])
  } catch (error) {
    const isExpected = (error as { readonly code?: string }).code === 'OBSERVE_ONCE' || isDenied(error)
    if (!isExpected) process.emitWarning(error as Error)
  }
}
