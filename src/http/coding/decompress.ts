/**
 * Request bodies in a content coding (`content-encoding: gzip`), decoded while they are read.
 *
 * It is part of Corespun because it replaces the body of a lazy request. What a small body can become is
 * bounded twice: by bytes, and by the ratio of decoded to received bytes, since some MB of zeros take a kB.
 * Nothing is decoded before the handler reads, nor further than it reads. Defaults: 16 MiB, 100.
 */
import { type OptionsOf, integer, optionsOf } from '../../base/index.ts'
import type { HttpRequest } from '../app/routes.ts'
import { StatusError } from '../app/status-error.ts'
import { replaceBody } from '../fetch/replaced-body.ts'
import { wrong } from '../message/limits.ts'
import type { Middleware } from '../app/middleware.ts'
import { decompressors, drained, type Engine } from './codings.ts'

/** Options of {@link decompress}. */
export interface DecompressOptions {
  /** Most bytes of a decoded body; beyond it 413. Default 16 MiB. */
  readonly bodyBytesMax?: number
  /**
   * Most decoded bytes for each byte received, 1 to 1,000,000; beyond it 413. Bodies of up to 1 MiB may have
   * any ratio. Default 100: JSON and CSV rarely reach 30, zeros 1000 and more.
   */
  readonly ratioMax?: number
}

const MEBI = 1024 * 1024
const OPTIONS = {
  bodyBytesMax: integer(0, 2 ** 40, 16 * MEBI),
  ratioMax: integer(1, 1_000_000, 100),
}
/** Decoded bytes from which the ratio is compared. */
const RATIO_BYTES_MIN = MEBI

type Bounds = OptionsOf<typeof OPTIONS>

/**
 * Middleware that decodes request bodies of the codings gzip, deflate, br and, on Node 22.15 and later, zstd.
 * Others get 415 with the `accept-encoding` that would do (`CODING_UNSUPPORTED`), malformed and truncated
 * bodies 400 (`CODING_MALFORMED`), bodies beyond a limit 413 (`BODY_TOO_LARGE`). `content-encoding` and
 * `content-length` are no longer among the headers of a request that is decoded.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { gzipSync } from 'node:zlib'
 * import { createApp, decompress, use } from 'corespun/http'
 *
 * const routes = use({ '/': { POST: (request) => request.text() } }, decompress())
 * const init = { method: 'POST', body: gzipSync('Hello'), headers: { 'content-encoding': 'gzip' } }
 * const response = await createApp({ routes }).inject('/', init)
 * assert.equal(await response.text(), 'Hello')
 * ```
 */
export function decompress(options?: DecompressOptions): Middleware {
  const bounds = optionsOf(options, OPTIONS, wrong, 'decompress()')
  const makers = decompressors()
  return (request, next) => {
    const coding = request.headers.get('content-encoding')
    if (coding !== null) decode(request, coding, makers, bounds)
    return next()
  }
}

/** @throws {StatusError} 415. */
function decode(
  request: HttpRequest,
  given: string,
  makers: ReturnType<typeof decompressors>,
  bounds: Bounds,
): void {
  const coding = given.trim().toLowerCase()
  if (coding !== 'identity') {
    const make = makers.get(coding)
    if (make === undefined) {
      const names = [...makers.keys()].filter((name) => !name.startsWith('x-')).join(', ')
      throw new StatusError(415, `the body has the content coding ${JSON.stringify(coding.slice(0, 64))}`, {
        code: 'CODING_UNSUPPORTED',
        headers: { 'accept-encoding': names },
      })
    }
    const { body } = request
    if (body !== null) {
      const decoded = new Decoded(body, make, coding, bounds)
      replaceBody(request, decoded.stream(), () => decoded.error)
    }
  }
  request.headers.delete('content-encoding')
  if (coding !== 'identity') request.headers.delete('content-length')
}

class Decoded {
  readonly #body: ReadableStream<Uint8Array>
  readonly #make: () => Engine
  readonly #coding: string
  readonly #bounds: Bounds
  #receivedBytes = 0
  /** What ended the body itself. */
  #cause: unknown
  /** Why it cannot be decoded. */
  error: unknown

  constructor(body: ReadableStream<Uint8Array>, make: () => Engine, coding: string, bounds: Bounds) {
    this.#body = body
    this.#make = make
    this.#coding = coding
    this.#bounds = bounds
  }

  stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const pieces = this.#pieces()
    return new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        pull: async (controller) => {
          const { done, value } = await pieces.next()
          if (done === true) controller.close()
          else controller.enqueue(value)
        },
        cancel: async () => {
          await pieces.return(undefined)
        },
      },
      { highWaterMark: 0 },
    )
  }

  async *#pieces(): AsyncGenerator<Uint8Array<ArrayBuffer>, undefined> {
    const { bodyBytesMax, ratioMax } = this.#bounds
    const decoder = this.#make()
    decoder.on('error', () => {}) // the loop has it
    const fed = this.#feed(decoder)
    let bytes = 0
    try {
      for await (const piece of decoder as AsyncIterable<Uint8Array<ArrayBuffer>>) {
        bytes += piece.byteLength
        if (bytes > bodyBytesMax) throw tooLarge(`the decoded body is longer than ${bodyBytesMax} bytes`)
        if (bytes > RATIO_BYTES_MIN && bytes > this.#receivedBytes * ratioMax)
          throw tooLarge(`the body becomes more than ${ratioMax} times as long when it is decoded`)
        yield piece
      }
      await fed
      // A decoder drops what follows the end of what it decodes, and nobody would notice that it is missing.
      if (decoder.bytesWritten !== this.#receivedBytes) throw this.#malformed('bytes follow its end')
    } catch (error) {
      const isKnown = this.#cause !== undefined || error instanceof StatusError
      throw (this.error = isKnown
        ? (this.#cause ?? error)
        : this.#malformed('it is invalid or cut off', error))
    } finally {
      decoder.destroy()
    }
    return undefined
  }

  /** Never rejects: an error of the body ends the decoder, whose reader receives it. */
  async #feed(decoder: Engine): Promise<void> {
    const reader = this.#body.getReader()
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (decoder.destroyed) return
        if (done) break
        this.#receivedBytes += value.byteLength
        if (!decoder.write(value)) await drained(decoder)
      }
      decoder.end()
    } catch (error) {
      this.#cause = error
      decoder.destroy(error as Error)
    }
  }

  #malformed(what: string, cause?: unknown): StatusError {
    const reason = `the body is not valid ${this.#coding}: ${what}`
    return new StatusError(400, reason, { code: 'CODING_MALFORMED', cause })
  }
}

function tooLarge(reason: string): StatusError {
  return new StatusError(413, reason, { code: 'BODY_TOO_LARGE' })
}
