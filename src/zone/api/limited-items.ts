/**
 * A generator or a stream that a call in this thread has returned, up to the limits of that call.
 *
 * In a worker the limits end the task, and with it the stream. Here the object is the caller's own; what a
 * limit ends is the reading: the `next()` that waits and each later one. Deliberately absent: streams within
 * a value, as it is not copied, and iterators that are not asynchronous, as no limit passes in their loops.
 */
import type { Readable } from 'node:stream'
import { Turns, readerFor } from '../../base/index.ts'
import { arrived } from '../stream/carried/arrived.ts'
import { type Position, kindOf } from '../stream/carried/found.ts'

type Iterated = AsyncIterator<unknown, unknown, unknown>

/** What the caller receives, and what a limit does to it. */
interface Limited {
  readonly value: unknown
  fail(error: unknown): void
}

/**
 * A value that is read item by item, up to its limits; `undefined` for another one.
 * @param ended Called once, when no limit matters any more.
 */
export function limited(value: unknown, ended: () => void): Limited | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const kind = kindOf(value)
  if (kind === 'node') return limitedNodeStream(value as Readable, ended)
  if (kind === 'web' || kind === 'bytes') return limitedWebStream(value as ReadableStream, kind, ended)
  const { next, [Symbol.asyncIterator]: iterator } = value as Partial<Iterated & AsyncIterable<unknown>>
  if (typeof next !== 'function' || typeof iterator !== 'function') return undefined
  const items = new LimitedItems(value as Iterated, ended)
  return { value: items, fail: (error) => items.fail(error) }
}

/** It has properties of its own, such as a file's path. */
function limitedNodeStream(stream: Readable, ended: () => void): Limited | undefined {
  if (stream.destroyed) return undefined
  stream.once('close', ended)
  return { value: stream, fail: (error) => void stream.destroy(error as Error) }
}

function limitedWebStream(
  stream: ReadableStream,
  kind: Position['kind'],
  ended: () => void,
): Limited | undefined {
  if (stream.locked) return undefined
  const reader = readerFor(stream)
  const read = (): Promise<IteratorResult<unknown>> => reader.next() as Promise<IteratorResult<unknown>>
  const closed = async (): Promise<IteratorResult<unknown>> => {
    await reader.close()
    return { done: true, value: undefined }
  }
  const items = new LimitedItems({ next: read, return: closed }, ended)
  const next = (): Promise<IteratorResult<unknown, undefined>> =>
    items.next() as Promise<IteratorResult<unknown, undefined>>
  const leave = async (): Promise<void> => void (await items.return())
  const made = arrived({ next, leave }, { kind, objectMode: false, encoding: undefined })
  return { value: made, fail: (error) => items.fail(error) }
}

class LimitedItems implements AsyncGenerator<unknown, unknown, unknown> {
  readonly #items: Iterated
  readonly #ended: () => void
  /** Reject each `next()` that waits. */
  readonly #waiting = new Set<(error: unknown) => void>()
  #failure: { readonly error: unknown } | undefined
  readonly #turns = new Turns()
  /** Behind the turn of the event loop that a limit may need. */
  readonly #requests: (() => void)[] = []
  #isOver = false

  /** @param ended Called once, when no limit matters any more. */
  constructor(items: Iterated, ended: () => void) {
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
