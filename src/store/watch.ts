/**
 * Watching a store: an async iterator over a bounded queue that lies in the native core.
 *
 * What does not fit is counted, and one `gap` stands for it. The queue fills from the moment of the call,
 * whether anybody reads or not; ending the iteration, or the signal, ends the watch.
 */
import { Change, Fact, Scratch, type Waits } from '../bridge/index.ts'
import { native } from '../native/index.ts'

/** Something that happened to a watched key; `gap`: so many things happened that nobody kept. */
export type StoreEvent =
  | { readonly type: 'set' | 'delete' | 'expire' | 'evict'; readonly key: string }
  | { readonly type: 'clear' }
  | { readonly type: 'gap'; readonly missed: number }

/** What `watch` takes. */
export interface WatchOptions {
  /** Events that wait for their reader at most; 1024 by default. */
  readonly eventsMax?: number
  /** Ends the watch; the iteration then ends without an error. */
  readonly signal?: AbortSignal
}

const TYPES = new Map(Object.entries(Change).map(([type, number]) => [number as number, type]))
/** Bytes before the events of a batch: what was missed behind them. */
const BATCH_HEADER_BYTES = 8
const DONE = { done: true, value: undefined } as const

type Reader = (result: IteratorResult<StoreEvent, undefined>) => void

/** The changes of a key, or of all keys with a prefix, as an async iterable. */
export class Watch implements AsyncIterableIterator<StoreEvent, undefined, undefined> {
  readonly #waits: Waits
  readonly #watch: number
  readonly #ticket: number
  readonly #signal: AbortSignal | undefined
  readonly #abort = (): void => this.#end()
  readonly #readers: Reader[] = []
  #events: StoreEvent[] = []
  #at = 0
  #ended = false

  /** @param open Begins the watch under a ticket; its number in the core, -1 when the store is closed. */
  constructor(waits: Waits, open: (ticket: number) => number, signal: AbortSignal | undefined) {
    this.#waits = waits
    this.#signal = signal
    this.#ticket = waits.ticket()
    this.#watch = open(this.#ticket)
    if (this.#watch < 0 || signal?.aborted === true) {
      this.#end()
      return
    }
    waits.listen(this.#ticket, (fact) => this.#told(fact))
    signal?.addEventListener('abort', this.#abort, { once: true })
  }

  /** The next event, when there is one. */
  next(): Promise<IteratorResult<StoreEvent, undefined>> {
    if (this.#readers.length === 0) {
      const result = this.#shift()
      if (result !== undefined) return Promise.resolve(result)
    }
    this.#waits.hold()
    return new Promise((resolve) => this.#readers.push(resolve))
  }

  /** End the watch. */
  return(): Promise<IteratorResult<StoreEvent, undefined>> {
    this.#end()
    return Promise.resolve(DONE)
  }

  /** The watch itself. */
  [Symbol.asyncIterator](): this {
    return this
  }

  /** End the watch. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end()
  }

  #told(fact: number): void {
    if (fact === Fact.closed) {
      this.#fetch()
      this.#ended = true
      this.#forget()
    }
    while (this.#readers.length > 0) {
      const result = this.#shift()
      if (result === undefined) return
      this.#waits.release()
      this.#readers.shift()?.(result)
    }
  }

  #shift(): IteratorResult<StoreEvent, undefined> | undefined {
    if (this.#at === this.#events.length && !this.#ended) this.#fetch()
    const event = this.#events[this.#at]
    if (event === undefined) return this.#ended ? DONE : undefined
    this.#at++
    return { done: false, value: event }
  }

  #fetch(): void {
    const bytes = native.storeWatchTake(this.#watch)
    const view = new DataView(bytes.buffer)
    const events = this.#events.slice(this.#at)
    this.#at = 0
    for (let at = BATCH_HEADER_BYTES; at < bytes.length;) {
      const type = TYPES.get(bytes[at]) as 'set' | 'clear'
      const start = at + 5
      at = start + view.getUint32(at + 1, true)
      events.push(type === 'clear' ? { type } : { type, key: Scratch.keyOf(bytes, start, at) })
    }
    const missed = view.getFloat64(0, true)
    if (missed > 0) events.push({ type: 'gap', missed })
    this.#events = events
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#events = []
    this.#at = 0
    this.#forget()
    for (const reader of this.#readers.splice(0)) {
      this.#waits.release()
      reader(DONE)
    }
  }

  #forget(): void {
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#waits.forget(this.#ticket)
    if (this.#watch >= 0) native.storeUnwatch(this.#watch)
  }
}
