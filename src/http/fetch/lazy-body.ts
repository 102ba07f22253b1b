/**
 * A body that is not a stream before somebody looks: a part of a file, the values of an iterable.
 *
 * A core reads it directly; `.body`, `text()` and the like make a stream of it. It is read once.
 */
import type { ReadResult } from './standard.ts'

export abstract class LazyBody {
  /** The next chunk, or the end. Rejects if the source fails. */
  abstract read(): Promise<ReadResult>

  /** Ends the reading early. */
  abstract cancel(reason: unknown): Promise<void>

  /** The same body for another response; `undefined` if its source can be read only once. */
  abstract again(): LazyBody | undefined

  /** The body as a stream; `onTouched` is called when somebody reads from it. */
  stream(onTouched: () => void): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          onTouched()
          const { done, value } = await this.read()
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: (reason) => {
          onTouched()
          return this.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
  }
}
