/**
 * The items of a generator that a call in this thread has returned, up to the limits of that call.
 *
 * In a worker the limits end the task, and with it the stream. Here the generator is the caller's own object;
 * what a limit ends is the reading: the `next()` that waits and each later one.
 */
import { Turns } from '../../base/index.ts'

type Items = AsyncIterator<unknown, unknown, unknown>

/** A value's items, if it is an async generator or another async iterator. */
export function itemsOf(value: unknown): Items | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { next, [Symbol.asyncIterator]: iterator } = value as Partial<Items & AsyncIterable<unknown>>
  return typeof next === 'function' && typeof iterator === 'function' ? (value as Items) : undefined
}

export class LimitedItems implements AsyncGenerator<unknown, unknown, unknown> {
  readonly #items: Items
  readonly #ended: () => void
  /** Reject each `next()` that waits. */
  readonly #waiting = new Set<(error: unknown) => void>()
  #failure: { readonly error: unknown } | undefined
  readonly #turns = new Turns()
  /** Behind the turn of the event loop that a limit may need. */
  readonly #requests: (() => void)[] = []
  #isOver = false

  /** @param ended Called once, when no limit matters any more. */
  constructor(items: Items, ended: () => void) {
    this.#items = items
    this.#ended = ended
  }

  /** A limit has passed. */
  fail(error: unknown): void {
    if (this.#isOver) return
    if (this.#waiting.size === 0) this.#failure = { error }
    for (const reject of this.#waiting) reject(error)
    this.#end()
    void this.#close()
  }

  /** Behind what it computes now; whoever reads does not wait for it. */
  async #close(): Promise<void> {
    try {
      await this.#items.return?.()
    } catch {
      // The reader has the limit's error.
    }
  }

  next(value?: unknown): Promise<IteratorResult<unknown, unknown>> {
    if (!this.#turns.pauses(this.#resumed)) return this.#next(value)
    return new Promise((resolve) => this.#requests.push(() => resolve(this.#next(value))))
  }

  readonly #resumed = (): void => {
    for (const request of this.#requests.splice(0)) request()
  }

  #next(value: unknown): Promise<IteratorResult<unknown, unknown>> {
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) return Promise.reject(failure.error)
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject)
      this.#items
        .next(value)
        .finally(() => this.#waiting.delete(reject))
        .then(
          (result) => {
            if (result.done === true) this.#end()
            resolve(result)
          },
          (error: unknown) => {
            this.#end()
            reject(error)
          },
        )
    })
  }

  async return(value?: unknown): Promise<IteratorResult<unknown, unknown>> {
    this.#failure = undefined
    this.#end()
    return (await this.#items.return?.(value)) ?? { done: true, value }
  }

  async throw(error: unknown): Promise<IteratorResult<unknown, unknown>> {
    if (this.#items.throw !== undefined) return this.#items.throw(error)
    await this.return()
    throw error
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#ended()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }
}
