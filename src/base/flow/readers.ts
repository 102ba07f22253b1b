/**
 * What a flow reads its items from: an array, an iterable, an asynchronous one.
 *
 * A reader reads on request while there is capacity, and passes on whole chunks. The asynchronous one
 * requests one item at a time; if the source is slower than a turn of the loop, it passes on a partial chunk.
 * A source that computes and never waits leaves the event loop its turns: reading goes on behind them.
 */
import { shown } from '../errors.ts'
import { Turns } from '../turns.ts'

/** What a reader is given by its flow. */
export interface ReaderPlan {
  /** Whether `more` items may be read now. */
  hasCapacity(more: number): boolean
  /** How many items the next chunk should have. */
  sizeNow(): number
  chunk(items: ArrayLike<unknown>): void
  ended(): void
  failed(why: unknown): void
  /** An asynchronous source has returned an item, or has ended. Returns what `read` is to resolve with. */
  arrived(): unknown
}

export interface Reader {
  /** Read while there is capacity. Returns the promise of what the plan's `arrived` returns, if it waits. */
  read(): Promise<unknown> | void
  /** An item that is being read is not needed any more; `close` follows. */
  leave?(): void
  /** Read no more, and let the source clean up. */
  close(): Promise<void> | void
}

/** What items may be read from. */
export type AnyIterable<Item> = Iterable<Item> | AsyncIterable<Item>

/** An array or a typed array. */
export type Items<Item> = ArrayLike<Item> & Iterable<Item>

export function isItems(source: object): source is Items<unknown> {
  return Array.isArray(source) || (ArrayBuffer.isView(source) && !(source instanceof DataView))
}

export function readerOf(source: AnyIterable<unknown>, plan: ReaderPlan): Reader {
  const { [Symbol.asyncIterator]: isAsync } = source as Partial<AsyncIterable<unknown>>
  if (isAsync !== undefined && isAsync !== null)
    return new AsyncReader(source as AsyncIterable<unknown>, plan)
  return new IterableReader(source as Iterable<unknown>, plan)
}

/** Reads an array, or a typed one, by slices of it. */
export class ItemsReader implements Reader {
  readonly #items: Items<unknown>
  readonly #plan: ReaderPlan
  #next = 0

  constructor(items: Items<unknown>, plan: ReaderPlan) {
    this.#items = items
    this.#plan = plan
  }

  read(): void {
    try {
      this.#readAll()
    } catch (error) {
      // Thrown by a getter, or by a subclass of Array with a `slice` of its own.
      this.#plan.failed(error)
    }
  }

  #readAll(): void {
    const slice = (this.#items as unknown[]).slice
    for (let size = this.#plan.sizeNow(); this.#plan.hasCapacity(size); size = this.#plan.sizeNow()) {
      if (this.#next >= this.#items.length) return this.#plan.ended()
      const items = slice.call(this.#items, this.#next, this.#next + size)
      if (!(items.length > 0)) throw new TypeError('slice() of the array returned no items')
      this.#next += items.length
      this.#plan.chunk(items)
    }
  }

  close(): void {}
}

class IterableReader implements Reader {
  readonly #source: Iterable<unknown>
  readonly #plan: ReaderPlan
  #iterator: Iterator<unknown> | undefined
  readonly #turns = new Turns()
  #done = false
  #reading = false

  constructor(source: Iterable<unknown>, plan: ReaderPlan) {
    this.#source = source
    this.#plan = plan
  }

  read(): void {
    if (this.#reading || this.#done || this.#turns.isPausing) return
    this.#reading = true
    try {
      this.#iterator ??= this.#source[Symbol.iterator]()
      let size = this.#plan.sizeNow()
      // A chunk is not cut short for the time between two reads.
      if (size > 1) this.#turns.had()
      while (this.#plan.hasCapacity(size) && !this.#done && !this.#turns.isPausing) {
        this.#readChunk(this.#iterator, size)
        size = this.#plan.sizeNow()
      }
    } catch (error) {
      this.#done = true
      this.#plan.failed(error)
    }
    this.#reading = false
  }

  #readChunk(iterator: Iterator<unknown>, size: number): void {
    const items: unknown[] = []
    while (items.length < size) {
      const next = resultOf(iterator.next())
      if (next.done === true) {
        this.#done = true
        break
      }
      items.push(next.value)
      if (this.#turns.pauses(this.#resumed)) break
    }
    if (items.length > 0) this.#plan.chunk(items)
    if (this.#done) this.#plan.ended()
  }

  readonly #resumed = (): void => this.read()

  close(): void {
    if (!this.#done) this.#iterator?.return?.()
    this.#done = true
  }
}

class AsyncReader implements Reader {
  readonly #source: AsyncIterable<unknown>
  readonly #plan: ReaderPlan
  #iterator: AsyncIterator<unknown> | undefined
  #items: unknown[] = []
  /** The promise of the item that is being read. */
  #arrival: Promise<unknown> | undefined
  readonly #turns = new Turns()
  #done = false
  #soon: NodeJS.Immediate | undefined

  constructor(source: AsyncIterable<unknown>, plan: ReaderPlan) {
    this.#source = source
    this.#plan = plan
  }

  read(): Promise<unknown> | void {
    if (this.#arrival !== undefined) return this.#arrival
    if (this.#done || this.#turns.isPausing || !this.#plan.hasCapacity(this.#items.length + 1))
      return undefined
    try {
      this.#iterator ??= this.#source[Symbol.asyncIterator]()
      return (this.#arrival = Promise.resolve(this.#iterator.next()).then(this.#arrived, this.#failed))
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#done = true
    this.#plan.failed(error)
  }

  readonly #failed = (error: unknown): unknown => {
    this.#arrival = undefined
    this.#fail(error)
    return this.#plan.arrived()
  }

  readonly #arrived = (next: IteratorResult<unknown>): unknown => {
    this.#arrival = undefined
    if (this.#done) return undefined
    try {
      this.#take(resultOf(next))
    } catch (error) {
      this.#fail(error)
    }
    return this.#plan.arrived()
  }

  #take(next: IteratorResult<unknown>): void {
    if (next.done === true) {
      this.#done = true
      this.#flush()
      this.#plan.ended()
      return
    }
    const size = this.#plan.sizeNow()
    if (size === 1 && this.#items.length === 0) this.#plan.chunk([next.value])
    else {
      this.#items.push(next.value)
      if (this.#items.length >= size) this.#flush()
      else this.#soon ??= setImmediate(() => this.#flush())
    }
    if (!this.#turns.pauses(this.#resumed)) void this.read()
  }

  readonly #resumed = (): void => void this.read()

  #flush(): void {
    clearImmediate(this.#soon)
    this.#soon = undefined
    const items = this.#items
    if (items.length === 0) return
    this.#items = []
    this.#plan.chunk(items)
  }

  async close(): Promise<void> {
    clearImmediate(this.#soon)
    if (this.#done) return
    this.#done = true
    const returned = this.#iterator?.return?.()
    // One that still waits for its next item may never answer.
    if (this.#arrival !== undefined) void returned?.catch?.(() => {})
    else await returned
  }
}

/** What an iterator has given. @throws {TypeError} when it is no object, as a loop over it would. */
export function resultOf(given: unknown): IteratorResult<unknown> {
  if ((typeof given === 'object' && given !== null) || typeof given === 'function')
    return given as IteratorResult<unknown>
  throw new TypeError(`Iterator result ${shown(given)} is not an object`)
}
