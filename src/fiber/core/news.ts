/**
 * Waiting for something that others of this thread bring, or for a time.
 *
 * One fiber waits for a source at once; whoever has many makes a source for each.
 */
import { Op, type Waiter } from './op.ts'
import { turn } from '../scheduler/scheduler.ts'
import type { Timed } from '../scheduler/timers.ts'

/** What {@link News} waits for. */
export interface NewsSource<A> {
  /** Whether the fiber that waits has something to do. */
  readonly isReady: boolean
  /** Call `listener` once, when `isReady` may have become true; `undefined`: nobody waits. */
  onNews(listener: (() => void) | undefined): void
  /** What the wait returns. */
  take(): A
  /** What it is, for `dump`. */
  describe(): string
}

/** Waits until `source` is ready, or until `untilMs` of the scheduler's clock. */
export class News<A> extends Op<A> implements Timed {
  readonly #source: NewsSource<A>
  readonly atMs: number
  index = -1
  order = 0
  #waiter: Waiter | undefined

  constructor(source: NewsSource<A>, untilMs = Infinity) {
    super()
    this.#source = source
    this.atMs = untilMs
  }

  override isReady(): boolean {
    return this.#source.isReady
  }

  park(fiber: Waiter): void {
    if (this.#source.isReady) return fiber.makeReady()
    this.#waiter = fiber
    this.#source.onNews(this.#wake)
    if (this.atMs < Infinity) turn.scheduler.wait(this)
  }

  unpark(): boolean {
    this.#leave()
    return true
  }

  take(): A {
    return this.#source.take()
  }

  due(): void {
    this.#wake()
  }

  describe(): string {
    return this.#source.describe()
  }

  readonly #wake = (): void => {
    this.#leave()
    this.#waiter?.makeReady()
  }

  #leave(): void {
    this.#source.onNews(undefined)
    if (this.index >= 0) turn.scheduler.forget(this)
  }
}
