/**
 * How a scope ends: its children are interrupted and waited for, then its finalizers run, the last added
 * first.
 *
 * Finalizers may fork and may add finalizers, so this goes on until nothing is left. What throws is kept and
 * does not stop the rest. It runs where interrupts are masked.
 */
import { yieldNow } from '../scheduler/yielding.ts'
import { interruptReason } from './causes.ts'
import { type Failed, Exit } from './exit.ts'
import { Op, type Operation, type Waiter, running } from './op.ts'
import type { BaseScope } from './base-scope.ts'
import { inline } from './promises.ts'

/** The reason that children see whose scope ends with a value; otherwise it is what the scope ends with. */
const SCOPE_ENDED = 'its scope has ended'

/** Waits until a scope's last child has ended. */
class Emptied extends Op<void> {
  readonly #scope: BaseScope
  #waiter: Waiter | undefined

  constructor(scope: BaseScope) {
    super()
    this.#scope = scope
  }

  park(fiber: Waiter): void {
    this.#waiter = fiber
    this.#scope.whenEmpty(this.#wake)
  }

  unpark(): boolean {
    this.#scope.forgetEmpty(this.#wake)
    return true
  }

  take(): void {}

  describe(): string {
    return 'the end of its children'
  }

  readonly #wake = (): void => this.#waiter?.makeReady()
}

/** Wait until `scope` has no children. */
export function* emptied(scope: BaseScope): Operation<void> {
  while (scope.hasChildren) yield* new Emptied(scope)
}

/**
 * Close `scope` and those around it, up to and without `end`.
 * @param exit What finalizers are called with; what went wrong in it is the reason that children see.
 * @returns What went wrong on the way.
 */
export function* closeScopes(
  scope: BaseScope,
  end: BaseScope | undefined,
  exit: Exit<unknown, unknown>,
): Operation<Failed[]> {
  const errors: Failed[] = []
  const why = Exit.interruption(exit.kind === 'success' ? SCOPE_ENDED : interruptReason(exit))
  for (let next: BaseScope | undefined = scope; next !== undefined && next !== end; next = next.outer) {
    next.isClosing = true
    while (!next.isIdle) {
      next.isEmptying = true
      next.interruptChildren(why)
      while (next.hasNewcomers) {
        yield* yieldNow()
        next.interruptChildren(why)
      }
      yield* emptied(next)
      next.isEmptying = false
      const finalizer = next.takeFinalizer()
      if (finalizer === undefined) continue
      try {
        yield* inline(finalizer(exit))
      } catch (thrown) {
        next.errors.push((running.fiber as Waiter).failedBy(thrown))
      }
    }
    for (const error of next.errors) errors.push(error)
  }
  return errors
}
