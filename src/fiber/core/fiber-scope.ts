/**
 * The scopes that every thread has: the root, and one for each fiber that has children.
 *
 * What becomes of a child's failure is their difference. In a fiber a failure that nobody waits for fails the
 * fiber. At the root nobody is above, so a failure that nobody has joined when timers and I/O had their turn
 * goes to the listeners of `onError`, or is the process's uncaught exception: nothing is swallowed.
 */
import { shown } from '../../base/index.ts'
import { FiberError } from '../errors.ts'
import { type Failed, flatExits, thrownBy } from './exit.ts'
import { type Child, BaseScope } from './base-scope.ts'
import { turn } from '../scheduler/scheduler.ts'

/** A fiber, as the scope of its children sees it. */
export interface Host {
  /** Whose list it is in. */
  readonly scope: BaseScope | undefined
  /** How a message calls it. */
  readonly title: string
  /** A child has failed and nobody waits for it. */
  troubledBy(child: Child, failed: Failed): void
}

/** Owns what a fiber forks. */
export class FiberScope extends BaseScope {
  readonly host: Host

  constructor(host: Host, outer?: BaseScope) {
    super(outer)
    this.host = host
  }

  /** @throws {FiberError} `FIBER_SCOPE_CLOSED` while the fiber waits for its children. */
  override checkOpen(): void {
    if (this.isEmptying) throw new FiberError('FIBER_SCOPE_CLOSED', { scope: this.host.title })
  }

  override childEnded(child: Child, failed: Failed | undefined): void {
    if (failed === undefined || child.isObserved || !isTrouble(failed)) return
    if (this.isClosing) for (const trouble of troublesIn(failed)) this.errors.push(trouble)
    else this.host.troubledBy(child, failed)
  }
}

/** Owns those who were forked outside of any fiber, and the daemons. */
class RootScope extends BaseScope {
  #unhandled: Child[] = []

  override childEnded(child: Child, failed: Failed | undefined): void {
    if (failed === undefined || child.isObserved || !isTrouble(failed)) return
    if (this.#unhandled.push(child) === 1) turn.scheduler.later(() => this.#report())
  }

  #report(): void {
    const children = this.#unhandled
    this.#unhandled = []
    for (const child of children) {
      if (child.isObserved) continue
      const fiber = child.title
      for (const failed of troublesIn(child.exit as Failed)) {
        const { cause, error } = causeOf(failed)
        turn.scheduler.report(
          new FiberError('FIBER_UNHANDLED', { fiber, kind: failed.kind, error }, { cause }),
        )
      }
    }
  }
}

/** See {@link RootScope}. */
export const root: BaseScope = new RootScope()

/** Whether more than an interruption happened. */
export function isTrouble(failed: Failed): boolean {
  return failed.kind !== 'interruption' || (failed.others.length > 0 && troublesIn(failed).length > 0)
}

/** The failures and defects of an exit, flat: an interruption is what was asked for. */
export function troublesIn(failed: Failed): Failed[] {
  return flatExits(failed).filter(({ kind }) => kind !== 'interruption')
}

/**
 * Report what went wrong in a child that has lost against a value. A failure that it ended with by itself is
 * dropped, as `Promise.race` drops it; a defect, and what failed while it was on its way out, is not.
 * @param call What it has lost, as in `race()`.
 */
export function reportLoser(child: Child, call: string): void {
  for (const failed of troublesBeside(child)) {
    const { cause, error } = causeOf(failed)
    turn.scheduler.report(
      new FiberError('FIBER_LOSER_FAILED', { fiber: child.title, call, error }, { cause }),
    )
  }
}

/**
 * {@link troublesIn} of a child without the failure that it ended with by itself: also one whose finalizers
 * were running when it was interrupted.
 */
export function troublesBeside({
  exit,
  failedBefore,
}: Pick<Child, 'exit'> & Partial<Pick<Child, 'failedBefore'>>): Failed[] {
  if (exit === undefined || exit.kind === 'success') return []
  const troubles = troublesIn(exit)
  if (exit.kind === 'failure') return troubles.slice(1)
  return troubles.filter((trouble) => trouble.kind !== 'failure' || trouble !== failedBefore)
}

/** What was thrown, and how a message calls it. */
function causeOf(failed: Failed): { readonly cause: unknown; readonly error: string } {
  const cause = thrownBy(failed)
  return { cause, error: cause instanceof Error ? `${cause.name}: ${cause.message}` : shown(cause) }
}
