/**
 * An async iterator over the changes of a store, which the core queues.
 *
 * The queue is bounded: events beyond it are counted and reported as one `gap`. It fills from the moment of
 * the call. The end of the iteration or the signal ends the watcher.
 */
import { Turns } from '../base/index.ts'
import { Change, Fact, Scratch, type Waits } from '../bridge/index.ts'
import { native } from '../native/index.ts'

/** A change of a watched key. `gap` replaces `missed` events that did not fit the queue. */
export type StoreEvent =
  | { readonly type: 'set' | 'delete' | 'expire' | 'evict'; readonly key: string }
  | { readonly type: 'clear' }
  | { readonly type: 'gap'; readonly missed: number }

const TYPES = new Map(Object.entries(Change).map(([type, number]) => [number as number, type]))
/** Bytes before the events of a batch: the number of events missed after them. */
const BATCH_HEADER_BYTES = 8
const DONE = { done: true, value: undefined } as const

type Waiting = (result: IteratorResult<StoreEvent, undefined>) => void

/**
 * The changes of a key, or of all keys with a prefix, as an async iterable; `store.watch` returns it. Leaving
 * the loop ends it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { store } from 'corespun'
 *
 * const jobs = store.create<string>('jobs')
 * const watcher = jobs.watch({ prefix: 'job:' })
 * jobs.set('job:1', 'new')
 * for await (const event of watcher) {
 *   assert.deepEqual(event, { type: 'set', key: 'job:1' })
 *   break
 * }
 * jobs.close()
 * ```
 */
export class Watcher implements AsyncIterableIterator<StoreEvent, undefined, undefined> {
  readonly #waits: Waits
  readonly #watch: number
  readonly #ticket: number
  readonly #signal: AbortSignal | undefined
  readonly #abort = (): void => this.#end()
  readonly #readers: Waiting[] = []
  readonly #turns = new Turns()
  #events: StoreEvent[] = []
  #at = 0
  #ended = false

  /** @internal @param open Starts watching and returns its number in the core, -1 if the store is closed. */
  constructor(waits: Waits, open: (ticket: number) => number, signal: AbortSignal | undefined) {
    this.#waits = waits
    this.#signal = signal
    this.#ticket = waits.ticket()
    this.#watch = open(this.#ticket)
    if (this.#watch < 0 || signal?.aborted === true) {
      this.#end()
      return
    }
    waits.listen(this.#ticket, (fact) => this.#onFact(fact))
    signal?.addEventListener('abort', this.#abort, { once: true })
  }

  /** Waits for the next event. */
  next(): Promise<IteratorResult<StoreEvent, undefined>> {
    // The signal of a reader that computes aborts meanwhile.
    if (this.#readers.length === 0 && !this.#turns.pauses(this.#serve)) {
      const result = this.#shift()
      if (result !== undefined) return Promise.resolve(result)
    }
    this.#waits.hold()
    return new Promise((resolve) => this.#readers.push(resolve))
  }

  /** Ends the watcher. */
  return(): Promise<IteratorResult<StoreEvent, undefined>> {
    this.#end()
    return Promise.resolve(DONE)
  }

  /** Returns this watcher. */
  [Symbol.asyncIterator](): this {
    return this
  }

  /** Ends the watcher. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end()
  }

  #onFact(fact: number): void {
    if (fact === Fact.closed) {
      this.#fetch()
      this.#ended = true
      this.#forget()
    }
    this.#serve()
  }

  readonly #serve = (): void => {
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
