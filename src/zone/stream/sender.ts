/**
 * Reads a source and sends its items in batches, never further ahead than its window.
 *
 * A batch leaves when it is full, when the window is, when it is half a millisecond old, or when the source
 * has no further item for now: then by `process.nextTick`, that is, when all promises that can settle have.
 * So a single item leaves at once, and a fast source fills its batches. Strings and memory have a size; other
 * items count as much as those before them took on average, and what a batch took beyond that is added to the
 * next one. Both ends count the size in the batch, so they agree.
 */
import { type ItemReader, Turns, isThenable, readerFor, shown } from '../../base/index.ts'
import { TransportError, move } from '../../transport/internal.ts'
import { portable } from '../call/portable.ts'
import { Kind, type Link } from './link.ts'
import type { Ahead } from '../call/call-options.ts'
import type { StreamWaits } from './waits.ts'

/** Most items of a batch: with more, an item costs no less. */
const BATCH_MAX = 512
/** How long a batch is filled, in ms. */
const BATCH_MS = 0.5
/** The size of an item of no known size until one was sent. */
const ITEM_BYTES = 64
/** Smaller memory is copied faster than it is moved. */
const MOVED_BYTES_MIN = 16 * 1024

const NOTHING = Promise.resolve()
/** To look it up for each item costs as much as the call. */
const now = performance.now.bind(performance)

/** How a sender's loop ended. */
export type Sent = 'all' | 'stopped'

export class Sender {
  readonly #link: Link
  readonly #aheadMax: number
  readonly #aheadBytesMax: number
  readonly #batchMax: number
  readonly #batchBytesMax: number
  /** What the receiver of this end has freed meanwhile, to travel along. */
  readonly #freed: () => readonly [items: number, bytes: number]
  /** Those of the task that this end belongs to. */
  readonly #waits: StreamWaits | undefined
  #reader: ItemReader | undefined
  #isReading = false
  #isStopped = false
  #isFlushing = false
  #items: unknown[] = []
  #size = 0
  /** In transit: sent, and not freed by the other end. */
  #aheadItems = 0
  #aheadBytes = 0
  #sentCount = 0
  /** What batches took beyond the size that they were sent with. */
  #debt = 0
  /** When the last batch left, or the other end had freed its window. */
  #flushedMs = 0
  readonly #turns = new Turns()
  #itemBytes = ITEM_BYTES
  #closing: Promise<unknown> = NOTHING
  #wake: (() => void) | undefined
  #broken: ((why: unknown) => void) | undefined

  constructor(
    link: Link,
    ahead: Ahead,
    freed: () => readonly [items: number, bytes: number],
    waits: StreamWaits | undefined,
  ) {
    this.#link = link
    this.#aheadMax = ahead.aheadMax
    this.#aheadBytesMax = ahead.aheadBytesMax
    this.#freed = freed
    this.#waits = waits
    this.#batchMax = Math.max(1, Math.min(BATCH_MAX, ahead.aheadMax >>> 2))
    this.#batchBytesMax = ahead.aheadBytesMax / 4
  }

  /** Whether the source is producing an item. */
  get isReading(): boolean {
    return this.#isReading
  }

  /**
   * Sends all items of `source`; resolves when the last one was sent, or after {@link Sender.stop}.
   * @throws What the source throws, or why an item cannot travel. The items before it have been sent.
   */
  send(source: object): Promise<Sent> {
    return new Promise((resolve, reject) => {
      this.#broken = reject
      this.#read(source).then(resolve, reject)
    })
  }

  /** Sends the error that the source has failed with. */
  fail(error: unknown): void {
    try {
      this.#link.send([Kind.failed, error])
    } catch (why) {
      this.#link.send([Kind.failed, portable(error, why)])
    }
  }

  /** The other end has received so much. */
  freed(items: number, bytes: number): void {
    this.#aheadItems -= items
    this.#aheadBytes -= bytes
    if (this.#wake !== undefined && this.#hasCapacity()) this.#wake()
  }

  /**
   * Takes no further item, and closes the source if it has not ended.
   * @throws What the source throws.
   */
  stop(): Promise<unknown> {
    this.#isStopped = true
    this.#items = []
    this.#wake?.()
    const reader = this.#reader
    this.#reader = undefined
    if (reader !== undefined) this.#closing = reader.close()
    return this.#closing
  }

  async #read(source: object): Promise<Sent> {
    const reader = readerFor(source)
    this.#reader = reader
    this.#turns.had()
    if (this.#isStopped) {
      await this.stop()
      return 'stopped'
    }
    for (;;) {
      if (!this.#hasCapacity()) {
        this.#flush()
        while (!this.#isStopped && !this.#hasCapacity()) await this.#room()
        if (this.#isStopped) return 'stopped'
      }
      let next: IteratorResult<unknown>
      // In the loop itself: a function that waits would cost each item a promise and a turn more.
      try {
        let given: unknown = reader.next()
        if (isThenable(given)) {
          this.#isReading = true
          given = await given
        }
        next = resultOf(given)
        if (reader.isSync && isThenable(next.value)) {
          this.#isReading = true
          next = { done: next.done === true, value: await next.value }
        }
      } catch (error) {
        return this.#threw(error)
      } finally {
        this.#isReading = false
      }
      if (this.#isStopped) return 'stopped'
      if (next.done === true) break
      if (reader.isOwned) moveLarge(next.value)
      this.#take(next.value)
      // A source that never waits would fill the window first, and its thread would not read that it is left.
      if (this.#turns.isDue()) {
        await this.#turns.taken()
        if (this.#isStopped) return 'stopped'
      }
    }
    this.#reader = undefined
    this.#flush()
    return 'all'
  }

  /** The source has thrown: the items before its error are sent first. */
  #threw(error: unknown): never {
    this.#reader = undefined
    this.#flush()
    throw error
  }

  #hasCapacity(): boolean {
    return (
      this.#aheadItems + this.#items.length < this.#aheadMax &&
      this.#aheadBytes + this.#size < this.#aheadBytesMax
    )
  }

  #room(): Promise<void> {
    this.#waits?.begin()
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined
        this.#waits?.end()
        this.#flushedMs = now()
        this.#turns.had()
        resolve()
      }
    })
  }

  #take(item: unknown): void {
    // Not by `push`, which the engine calls and does not inline where items of several kinds were pushed.
    const items = this.#items
    items[items.length] = item
    const count = items.length
    this.#size += sizeOf(item) ?? this.#itemBytes
    if (count >= this.#batchMax || this.#size >= this.#batchBytesMax) return this.#flush()
    // While a source computes, no tick has its turn: items leave by the clock, which costs some 40 ns.
    if ((count === 1 || count % 8 === 0) && now() - this.#flushedMs > BATCH_MS) return this.#flush()
    if (this.#isFlushing) return
    this.#isFlushing = true
    process.nextTick(this.#flushSoon)
  }

  readonly #flushSoon = (): void => {
    this.#isFlushing = false
    this.#flush()
  }

  #flush(): void {
    const items = this.#items
    if (items.length === 0 || this.#isStopped) return
    this.#flushedMs = now()
    const size = this.#size
    this.#items = []
    this.#size = 0
    if (this.#sent(items, size)) return
    // The items before the one that cannot travel are sent before its error.
    const each = size / items.length
    for (const item of items) if (!this.#sent([item], each)) return
  }

  /** Whether the items were sent; one that is alone and cannot travel ends the sending. */
  #sent(items: readonly unknown[], size: number): boolean {
    const counted = Math.max(0, size + this.#debt)
    const [freed, freedBytes] = this.#freed()
    let bytes: number
    try {
      bytes = this.#link.send([Kind.batch, items, counted, freed, freedBytes])
    } catch (error) {
      if (freed > 0) this.#link.send([Kind.freed, freed, freedBytes])
      if (items.length === 1) {
        this.#isStopped = true
        this.#broken?.(asItem(error, this.#sentCount))
      }
      return false
    }
    this.#aheadItems += items.length
    this.#aheadBytes += counted
    this.#sentCount += items.length
    if (bytes > 0) {
      this.#debt += bytes - counted
      this.#itemBytes += (bytes / items.length - this.#itemBytes) / 2
    }
    return true
  }
}

/** The bytes of an item where they are known without writing it. */
function sizeOf(item: unknown): number | undefined {
  if (typeof item === 'string') return item.length
  if (typeof item !== 'object' || item === null) return undefined
  return ArrayBuffer.isView(item) || item instanceof ArrayBuffer ? item.byteLength : undefined
}

/** Mark a chunk that has its memory alone, so that it travels without a copy. */
function moveLarge(item: unknown): void {
  if (!ArrayBuffer.isView(item) || item.byteLength < MOVED_BYTES_MIN) return
  if (item.byteLength === item.buffer.byteLength && item.buffer instanceof ArrayBuffer) move(item)
}

/** The error of an item that cannot travel, by its position in the stream. */
function asItem(error: unknown, index: number): unknown {
  if (!(error instanceof TransportError)) return error
  const facts = error.facts as { readonly path?: string }
  const path = facts.path?.replace(/^value\[1\]\[0\]/, `items[${index}]`)
  if (path === undefined) return error
  const options = error.cause === undefined ? undefined : { cause: error.cause }
  return new TransportError(error.code, { ...facts, path }, options)
}

/** What an iterator has given. @throws {TypeError} when it is no object, as a loop over it would. */
function resultOf(given: unknown): IteratorResult<unknown> {
  if ((typeof given === 'object' && given !== null) || typeof given === 'function')
    return given as IteratorResult<unknown>
  throw new TypeError(`Iterator result ${shown(given)} is not an object`)
}
