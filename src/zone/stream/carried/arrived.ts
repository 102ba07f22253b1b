/**
 * A stream as it arrives in the other thread: an iterator, a stream of the web, or one of Node.
 *
 * All three pull: nothing is taken from the receiver before somebody reads.
 */
import type { Readable } from 'node:stream'
import type { Position } from './found.ts'

/** What a stream is made from: its items, and how its reader leaves. */
export interface Items {
  next(): Promise<IteratorResult<unknown, undefined>>
  /** The reader needs no more. Resolves when the other side has cleaned up. @throws Its error. */
  leave(): Promise<void>
}

export function arrived(items: Items, { kind, objectMode, encoding }: Omit<Position, 'paths'>): object {
  switch (kind) {
    case 'web':
      return new ReadableStream(
        {
          pull: async (controller) => {
            const { done, value } = await items.next()
            if (done === true) controller.close()
            else controller.enqueue(value)
          },
          cancel: () => items.leave(),
        },
        { highWaterMark: 0 },
      )
    case 'bytes':
      return new ReadableStream({
        type: 'bytes',
        pull: async (controller) => {
          const { done, value } = await items.next()
          if (done === true) {
            controller.close()
            controller.byobRequest?.respond(0)
          } else controller.enqueue(alone(value))
        },
        cancel: () => items.leave(),
      })
    case 'node':
      return readable(items, objectMode, encoding)
    default:
      return new ItemsIterator(items)
  }
}

/** A chunk that has its memory alone: the stream detaches it. */
function alone(chunk: unknown): Uint8Array<ArrayBuffer> {
  const view = chunk as Uint8Array<ArrayBuffer>
  return view.byteLength === view.buffer.byteLength ? view : Uint8Array.from(view)
}

function readable(items: Items, objectMode: boolean, encoding: string | undefined): Readable {
  const stream = process.getBuiltinModule('node:stream')
  let hasEnded = false
  return new stream.Readable({
    objectMode,
    ...(encoding === undefined ? {} : { encoding: encoding as BufferEncoding }),
    // What is read ahead is the window of the link.
    highWaterMark: objectMode ? 1 : 16 * 1024,
    read(): void {
      void pushNext(this).catch((why: unknown) => this.destroy(why as Error))
    },
    destroy(why, done): void {
      void destroyed(why, done)
    },
  })

  async function destroyed(why: Error | null, done: (why: Error | null) => void): Promise<void> {
    const hasLeft = hasEnded
    hasEnded = true
    try {
      if (!hasLeft) await items.leave()
    } catch (failure) {
      return done(why ?? (failure as Error))
    }
    done(why)
  }

  async function pushNext(to: Readable): Promise<void> {
    for (;;) {
      const { done, value } = await items.next()
      if (done === true) {
        hasEnded = true
        return void to.push(null)
      }
      // Nothing would ask again after a chunk without bytes.
      if (objectMode || (value as { length?: number }).length !== 0) return void to.push(value)
    }
  }
}

class ItemsIterator implements AsyncIterableIterator<unknown, undefined, undefined>, AsyncDisposable {
  readonly #items: Items

  constructor(items: Items) {
    this.#items = items
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    return this.#items.next()
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    await this.#items.leave()
    return { value: undefined, done: true }
  }

  async throw(why: unknown): Promise<never> {
    await this.#items.leave()
    throw why
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#items.leave()
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
