/**
 * The items that the other end sends, as an async iterator.
 *
 * A batch counts as received when its last item was given to the reader; the sender is notified when a
 * quarter of its window is free again, or with the next batch in the other direction. The error of the other
 * end comes behind the items before it. Where a reader computes between its items, its request waits for a
 * turn of the event loop now and then, as if no item were there.
 */
import { Turns } from '../../base/index.ts'
import type { Ahead } from '../call/call-options.ts'
import type { StreamWaits } from './waits.ts'

const DONE = Object.freeze({ value: undefined, done: true }) as IteratorReturnResult<undefined>

interface Waiter {
  resolve(result: IteratorResult<unknown, undefined>): void
  reject(why: unknown): void
}

interface Batch {
  readonly items: unknown[]
  readonly size: number
}

/** How a receiver notifies its end. */
export interface ReceiverEvents {
  /** So much is free again that the sender needs a message. */
  freed(items: number, bytes: number): void
  /** The reader needs no more. */
  left(): void
}

export class Receiver implements AsyncIterableIterator<unknown, undefined, undefined> {
  readonly #events: ReceiverEvents
  /** Those of the task that this end belongs to. */
  readonly #waits: StreamWaits | undefined
  readonly #itemsMin: number
  readonly #bytesMin: number
  #items: unknown[] = []
  #size = 0
  #at = 0
  #batches: Batch[] = []
  #waiters: Waiter[] = []
  readonly #turns = new Turns()
  #freedItems = 0
  #freedBytes = 0
  #emptied: (() => void) | undefined
  #hasEnded = false
  /** Nothing is given to the reader any more; it waits for the end. */
  #isDiscarding = false
  /** The error that ends the items; it is thrown once. */
  #failure: { readonly why: unknown } | undefined
  #sourceError: { readonly why: unknown } | undefined

  constructor(ahead: Ahead, events: ReceiverEvents, waits: StreamWaits | undefined) {
    this.#events = events
    this.#waits = waits
    this.#itemsMin = Math.max(1, ahead.aheadMax >>> 2)
    this.#bytesMin = ahead.aheadBytesMax / 4
  }

  /** Whether somebody waits for an item. */
  get isAwaited(): boolean {
    return this.#waiters.length > 0
  }

  /** Whether no item that has come is left. */
  get isRead(): boolean {
    return this.#at === this.#items.length
  }

  /** Calls `emptied` when it has ended and its last item was given to the reader or dropped. */
  onEmpty(emptied: () => void): void {
    this.#emptied = emptied
    this.#lookIfEmpty()
  }

  /** Whether it is the error that the other end's source has failed with. */
  isSourceError(error: unknown): boolean {
    return this.#sourceError !== undefined && this.#sourceError.why === error
  }

  /** The source of the other end has failed. */
  fail(why: unknown): void {
    this.#sourceError = { why }
    this.end(this.#sourceError)
  }

  /** What was received and not reported yet. */
  takeFreed(): readonly [items: number, bytes: number] {
    const freed = [this.#freedItems, this.#freedBytes] as const
    this.#freedItems = 0
    this.#freedBytes = 0
    return freed
  }

  /** The next items. */
  push(items: unknown[], size: number): void {
    if (this.#hasEnded || this.#isDiscarding || items.length === 0) return
    if (this.#at < this.#items.length) return void this.#batches.push({ items, size })
    this.#use(items, size)
    if (this.#waiters.length === 0 || this.#turns.isPausing) return
    this.#turns.had()
    this.#serve()
    if (this.#waiters.length === 0) this.#waits?.end()
    else this.#waits?.moved()
  }

  #serve(): void {
    while (this.#waiters.length > 0 && this.#at < this.#items.length)
      this.#waiters.shift()?.resolve({ value: this.#shift(), done: false })
  }

  /** The event loop has had its turn. */
  readonly #resumed = (): void => {
    this.#serve()
    if (this.#waiters.length === 0) return
    this.#waits?.begin()
    if (this.#hasEnded) this.#answerAll()
  }

  /** No further items come; after those that have come, `failure` is thrown, if there is one. */
  end(failure?: { readonly why: unknown }): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#failure = failure
    if (this.#waiters.length > 0 && !this.#turns.isPausing) this.#answerAll()
    this.#lookIfEmpty()
  }

  /** No item will come for those who wait. */
  #answerAll(): void {
    this.#waits?.end()
    const [first, ...others] = this.#waiters
    this.#waiters = []
    const failure = this.#takeFailure()
    if (failure === undefined) first.resolve(DONE)
    else first.reject(failure.why)
    for (const waiter of others) waiter.resolve(DONE)
  }

  #takeFailure(): { readonly why: unknown } | undefined {
    const failure = this.#failure
    this.#failure = undefined
    return failure
  }

  /** A limit has ended the stream: what has come is dropped, as is what still comes before the end. */
  discard(): void {
    this.#isDiscarding = true
    this.#items = []
    this.#batches = []
    this.#at = 0
  }

  /** As `end`, but the items that have come are dropped. */
  drop(failure?: { readonly why: unknown }): void {
    // An error replaces items that were not read, also behind the end.
    const isOver = this.isRead && this.#failure === undefined
    this.discard()
    if (this.#hasEnded && !isOver) this.#failure = failure
    this.end(failure)
    this.#lookIfEmpty()
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    if (!this.#turns.isPausing) {
      if (this.#at === this.#items.length) {
        if (this.#hasEnded) {
          const failure = this.#takeFailure()
          return failure === undefined ? Promise.resolve(DONE) : Promise.reject(failure.why)
        }
        if (this.#waiters.length === 0) this.#waits?.begin()
      } else if (!this.#turns.pauses(this.#resumed))
        return Promise.resolve({ value: this.#shift(), done: false })
    }
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.drop()
    this.#failure = undefined
    this.#events.left()
    return DONE
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #shift(): unknown {
    const items = this.#items
    const item = items[this.#at]
    items[this.#at++] = undefined
    if (this.#at === items.length) this.#used()
    return item
  }

  /** The last item of a batch was given to the reader. */
  #used(): void {
    this.#freedItems += this.#items.length
    this.#freedBytes += this.#size
    const next = this.#batches.shift()
    this.#use(next?.items ?? [], next?.size ?? 0)
    if (this.#hasEnded) return this.#lookIfEmpty()
    if (this.#freedItems >= this.#itemsMin || this.#freedBytes >= this.#bytesMin)
      this.#events.freed(...this.takeFreed())
  }

  #lookIfEmpty(): void {
    const emptied = this.#emptied
    if (emptied === undefined || !this.#hasEnded || this.#at < this.#items.length) return
    this.#emptied = undefined
    emptied()
  }

  #use(items: unknown[], size: number): void {
    this.#items = items
    this.#size = size
    this.#at = 0
  }
}
