/**
 * A line: who came first is served first, and who is interrupted leaves it.
 *
 * A claim is an op that waits in a line. It is granted when its turn comes, which reserves what it waits for,
 * and collected when its fiber goes on. A fiber that is interrupted between the two returns the reservation,
 * so nothing is lost. What cannot be granted holds up all that came later: large requests do not starve.
 */
import { type Kind, abortSignal, optionsOf, unwatch, watch } from '../../base/index.ts'
import { FiberError, wrong } from '../errors.ts'
import { Exit, type Failed } from '../core/exit.ts'
import { Op, type Waiter } from '../core/op.ts'

/** Options of what waits. */
export interface WaitOptions {
  /** Ends the wait, which fails with the signal's reason. Fibers need none: an interrupt ends their waits. */
  readonly signal?: AbortSignal
}

/** Options of what is waited for in a line. */
export interface LineOptions {
  /** Most that may wait, 0 or more: further ones fail with `FIBER_FULL`. Default: no limit. */
  readonly waitingMax?: number
}

export const WAIT = { signal: abortSignal }
/** A limit of `least` or more; none by default. */
export function atMost(least: number): Kind<number> {
  const accepts = (most: unknown): boolean =>
    most === Infinity || (Number.isInteger(most) && (most as number) >= least)
  return { expected: `an integer from ${least}, or Infinity`, accepts, default: Infinity }
}

export const WAITING_MAX = atMost(0)

/** The checked options of a wait. @throws {FiberError} `FIBER_ARGUMENT`. */
export function waitOf(call: string, options: WaitOptions | undefined): AbortSignal | undefined {
  return options === undefined ? undefined : optionsOf(options, WAIT, wrong, call).signal
}

type AnyClaim = Claim<unknown, unknown, unknown>

export class Line {
  /** How messages call what is waited for: `a Queue`. */
  readonly title: string
  /** Called when another one may be the first, or none. */
  firstChanged: (() => void) | undefined = undefined
  readonly #waitingMax: number
  #first: AnyClaim | undefined
  #last: AnyClaim | undefined
  #size = 0

  constructor(title: string, waitingMax = Infinity) {
    this.title = title
    this.#waitingMax = waitingMax
  }

  /** How many wait. */
  get size(): number {
    return this.#size
  }

  get first(): AnyClaim | undefined {
    return this.#first
  }

  get isFull(): boolean {
    return this.#size >= this.#waitingMax
  }

  /** The error of one that may not wait. */
  fullError(): FiberError<'FIBER_FULL'> {
    return new FiberError('FIBER_FULL', { what: this.title, most: this.#waitingMax })
  }

  add(claim: AnyClaim): void {
    claim.before = this.#last
    if (this.#last === undefined) this.#first = claim
    else this.#last.behind = claim
    this.#last = claim
    this.#size += 1
    if (this.#first === claim) this.firstChanged?.()
  }

  remove(claim: AnyClaim): void {
    const { before, behind } = claim
    if (before === undefined) this.#first = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
    claim.before = claim.behind = undefined
    this.#size -= 1
  }

  /** Something has changed: grants in order, until one has to wait on. */
  serve(): void {
    for (let next = this.#first; next?.canGrant() === true; next = this.#first) next.leave(true)
    this.firstChanged?.()
  }
}

/** In no line, and nothing is reserved. */
const IDLE = 0
const QUEUED = 1
/** Reserved or failed, not collected. */
const GRANTED = 2

/** A wait in a line, of what has that line. */
export abstract class Claim<A, E = never, Of = undefined> extends Op<A, E> {
  readonly line: Line
  protected readonly of: Of
  /** Its neighbours; the line's own. */
  before: AnyClaim | undefined = undefined
  behind: AnyClaim | undefined = undefined
  readonly #signal: AbortSignal | undefined
  #state = IDLE
  #fiber: Waiter | undefined = undefined
  /** How it ends without what it waits for. */
  protected failed: Failed | undefined = undefined

  constructor(line: Line, signal: AbortSignal | undefined, of: Of) {
    super()
    this.line = line
    this.of = of
    this.#signal = signal
  }

  /** Whether it can be granted now, if it is the first. */
  abstract canGrant(): boolean
  /** Its turn has come: reserve what it waits for, or {@link Claim.fail}. */
  protected abstract grant(): void
  /** Its fiber goes on: take what was reserved. */
  protected abstract collect(): A
  /** Its fiber is interrupted instead: return what was reserved. */
  protected undo(): void {}

  /** Whether it is granted without a wait. */
  protected isNext(): boolean {
    return this.line.first === undefined && this.canGrant()
  }

  /** It ends without what it waits for. */
  protected fail(error: unknown): void {
    this.failed = Exit.failure(error)
  }

  override isReady(): boolean {
    return this.#signal?.aborted === true || this.isNext() || this.line.isFull
  }

  park(fiber: Waiter): void {
    this.#fiber = fiber
    if (this.isReady()) {
      this.#enter()
      return fiber.makeReady()
    }
    this.#state = QUEUED
    this.line.add(this)
    if (this.#signal !== undefined) watch(this.#signal, this.#aborted)
  }

  unpark(): boolean {
    if (this.#state === QUEUED) this.leave(false)
    return true
  }

  /** See {@link Waited}. */
  drop(): void {
    const isReserved = this.#state === GRANTED && this.failed === undefined
    this.#state = IDLE
    if (!isReserved) return
    this.undo()
    this.line.serve()
  }

  take(fiber: Waiter): A {
    if (this.#state === IDLE) this.#enter()
    this.#state = IDLE
    const failed = this.failed
    if (failed !== undefined) throw fiber.raise(failed)
    return this.collect()
  }

  describe(): string {
    return this.line.title
  }

  /** Leaves the line: granted, or since nobody waits any more; then those behind may be next. */
  leave(isGranted: boolean): void {
    this.line.remove(this)
    if (this.#signal !== undefined) unwatch(this.#signal, this.#aborted)
    this.#state = isGranted ? GRANTED : IDLE
    if (!isGranted) return this.line.serve()
    this.grant()
    this.#fiber?.makeReady()
  }

  /** It has not waited. */
  #enter(): void {
    this.#state = GRANTED
    if (this.#signal?.aborted === true) this.fail(this.#signal.reason)
    else if (this.isNext()) this.grant()
    else this.fail(this.line.fullError())
  }

  readonly #aborted = (): void => {
    this.leave(false)
    this.#state = GRANTED
    this.fail(this.#signal?.reason)
    this.#fiber?.makeReady()
  }
}
