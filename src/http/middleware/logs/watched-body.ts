/**
 * Bodies of responses whose end is reported: how many bytes were read of them, and by what they ended.
 *
 * What is whole, and a file that the core sends itself, is reported at once, and its response is left as it
 * is. A stream passes through, chunk by chunk; it ends once, by its end, its error, or a cancel.
 */
import { type ChunkSource, LazyBody, StreamSource } from '../../fetch/lazy-body.ts'
import { CorespunResponse, bodyOf } from '../../fetch/response.ts'
import { TrailedBody } from '../../fetch/trailers.ts'

/** How a body has ended. */
export interface BodyEnd {
  readonly bytes: number
  /** Whether a chunk was read, so that the head was sent. */
  readonly hasBegun: boolean
  /** Why it has ended early; `undefined` if it has not. */
  readonly failure: { readonly why: unknown } | undefined
}

/** How a body is watched. */
export interface Watch {
  /** Called once. */
  ended(end: BodyEnd): void
  /** Runs each read. */
  within<R>(body: () => R): R
}

/**
 * The response to be sent instead, whose end is reported.
 * @param isBodiless Its body is not sent, as for HEAD.
 */
export function watched(response: Response, isBodiless: boolean, watch: Watch): Response {
  const body = isBodiless ? 0 : bodyOf(response)
  if (typeof body === 'number') {
    watch.ended({ bytes: body, hasBegun: true, failure: undefined })
    return response
  }
  const { status, statusText, headers } = response
  const source = body instanceof LazyBody ? body : new StreamSource(body)
  const passed = new WatchedBody(source, watch)
  const sent = source instanceof TrailedBody ? source.behind(passed) : passed
  return new CorespunResponse(sent as never, { status, statusText, headers })
}

class WatchedBody extends LazyBody {
  readonly #source: ChunkSource
  readonly #watch: Watch
  #bytes = 0
  #hasBegun = false
  #hasEnded = false

  constructor(source: ChunkSource, watch: Watch) {
    super()
    this.#source = source
    this.#watch = watch
  }

  override read(): unknown {
    return this.#watch.within(() => this.#source.read())
  }

  override chunk(result: unknown): Uint8Array | undefined {
    const chunk = this.#source.chunk(result)
    this.#hasBegun ||= chunk !== undefined
    if (chunk === undefined) this.#ended(undefined)
    else this.#bytes += chunk.byteLength
    return chunk
  }

  override failed(error: unknown): void {
    this.#ended({ why: error })
    this.#source.failed(error)
  }

  override cancel(reason: unknown): Promise<void> {
    this.#ended({ why: reason })
    return this.#source.cancel(reason)
  }

  override again(): undefined {
    return undefined
  }

  #ended(failure: BodyEnd['failure']): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#watch.ended({ bytes: this.#bytes, hasBegun: this.#hasBegun, failure })
  }
}
