/**
 * A body that is not a stream before somebody looks: a part of a file, the values of an iterable.
 *
 * A core reads it directly; `.body`, `text()` and the like make a stream of it. It is read once.
 */
import { shown } from '../../base/index.ts'
import { HttpError } from '../errors.ts'
import type { ReadResult } from '../message/standard.ts'

/**
 * What a response is streamed from. Only `read` waits: a chunk is taken from its result synchronously, so
 * that no promise is between the source's own and the core.
 */
export interface ChunkSource {
  /** Asks for the next chunk; what it returns is awaited. */
  read(): unknown
  /** The chunk in a result of `read`; `undefined` at the end. Throws if it cannot be sent. */
  chunk(result: unknown): Uint8Array | undefined
  /** `read` threw or rejected. */
  failed(error: unknown): void
  /** Ends the reading early. */
  cancel(reason: unknown): Promise<void>
}

export class StreamSource implements ChunkSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader()
  }

  read(): Promise<ReadResult> {
    return this.#reader.read()
  }

  chunk(result: unknown): Uint8Array | undefined {
    const { done, value } = result as ReadResult
    return done ? undefined : bytesOf(value)
  }

  failed(): void {
    // a stream that has failed is over
  }

  cancel(reason: unknown): Promise<void> {
    return this.#reader.cancel(reason)
  }
}

export abstract class LazyBody implements ChunkSource {
  abstract read(): unknown

  /** As {@link ChunkSource}: of a {@link ReadResult}. */
  chunk(result: unknown): Uint8Array | undefined {
    return (result as ReadResult).value
  }

  /** As {@link ChunkSource}: nothing is left to end. */
  failed(_error: unknown): void {}

  abstract cancel(reason: unknown): Promise<void>

  /** The same body for another response; `undefined` if its source can be read only once. */
  abstract again(): LazyBody | undefined

  /** The body as a stream; `onTouched` is called when somebody reads from it. */
  stream(onTouched: () => void): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          onTouched()
          const chunk = await this.#next()
          if (chunk === undefined) controller.close()
          else controller.enqueue(chunk)
        },
        cancel: (reason) => {
          onTouched()
          return this.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
  }

  async #next(): Promise<Uint8Array | undefined> {
    let result: unknown
    try {
      result = await this.read()
    } catch (error) {
      this.failed(error)
      throw error
    }
    try {
      return this.chunk(result)
    } catch (error) {
      void this.cancel(error)
      throw error
    }
  }
}

/**
 * A piece of a body; strings are sent as UTF-8, as most servers do.
 * @throws {HttpError} `HTTP_RESPONSE` for any other.
 */
export function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'string') return Buffer.from(chunk)
  const facts = { expected: 'bytes or strings', received: shown(chunk) }
  throw new HttpError('HTTP_RESPONSE', { where: 'the stream of a body', ...facts })
}
