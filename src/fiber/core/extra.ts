/**
 * What few fibers have: a name, locals, a signal, children, errors. Made when the first of them is needed.
 *
 * A parked fiber without any of it is small; that is why these are not fields of the fiber.
 */
import type { InterruptedError } from '../errors.ts'
import type { Exit, Failed } from './exit.ts'
import type { Ready } from '../scheduler/scheduler.ts'
import type { Child, BaseScope } from './base-scope.ts'

/** Values of fiber-locals by their keys; never changed, only replaced. */
export type Locals = ReadonlyMap<object, unknown>

/** A generator that waits for the end of one that runs on a stack of its own. */
export interface Frame {
  readonly generator: unknown
  readonly outer: Frame | undefined
}

/** Called with each fiber that has it among its locals, under {@link SUPERVISOR}, before it starts. */
export type Supervising = (fiber: object) => void
/** See {@link Supervising}. */
export const SUPERVISOR = {}

let ids = 0
export class Extra {
  readonly id = (ids += 1)
  name = ''
  locals: Locals | undefined = undefined
  /** Makes it go on where its fork was: in the contexts of AsyncLocalStorages. */
  resumer: Ready | undefined = undefined
  /** The last value that was thrown into the body on purpose, and the exit that it represents. */
  thrown: unknown = undefined
  raised: Failed | undefined = undefined
  /** The exit that `raiseAgain` replaced: see `exitWithin`. */
  replaced: Failed | undefined = undefined
  /**
   * Of one that was interrupted while that was masked, as in finalizers: what was raised last before. Of one
   * whose combinator was ending with a failure then: that.
   */
  before: Failed | undefined = undefined
  /** Why it is interrupted. */
  cause: Failed | undefined = undefined
  /** What was thrown into the body to unwind it. */
  token: InterruptedError | undefined = undefined
  /** How the body ended, while what it owns is being closed. */
  exit: Exit<unknown, unknown> | undefined = undefined
  /** What went wrong beside. */
  errors: Failed[] | undefined = undefined
  /** Children that failed while it ran. */
  troubles: Child[] | undefined = undefined
  controller: AbortController | undefined = undefined
  /** What goes on when its generator has ended, before the fiber does. */
  frame: Frame | undefined = undefined
  /** The scope of what it forks and acquires now; see {@link BaseScope.outer}. */
  scope: BaseScope | undefined = undefined

  /** `thrown` represents `raised` again; what was raised since is kept in `replaced`. */
  raiseAgain(thrown: unknown, raised: Failed): void {
    if (this.raised === raised) return
    this.replaced = this.raised
    this.thrown = thrown
    this.raised = raised
  }

  addError(failed: Failed): void {
    ;(this.errors ??= []).push(failed)
  }
}
