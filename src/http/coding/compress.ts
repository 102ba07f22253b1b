/**
 * Compression of responses, by what they are and what the client accepts.
 *
 * It is part of Corespun because streams must be flushed as their sources wait, and because the number of
 * compressors must be bounded. Levels are small by default: a server compresses each response anew, and
 * above them CPU grows several times faster than responses shrink (docs/design/http-app.md has the figures).
 * Files are better compressed once: `files(folder, { precompressed: true })`.
 */
import { type Kind, type OptionsOf, callback, integer, isPlainObject, optionsOf } from '../../base/index.ts'
import { carry } from '../app/carried.ts'
import type { HttpRequest } from '../app/routes.ts'
import { CorespunHeaders } from '../fetch/headers.ts'
import { type ChunkSource, LazyBody, StreamSource } from '../fetch/lazy-body.ts'
import { type ResponseBody, CorespunResponse, type Parts, responseParts } from '../fetch/response.ts'
import { wrong } from '../message/limits.ts'
import type { Middleware } from '../app/middleware.ts'
import type { Coding } from './coding.ts'
import { acceptedOf, compressed, compressor, hasZstd } from './codings.ts'
import { TrailedBody } from '../fetch/trailers.ts'
import { CompressedBody } from './compressed-body.ts'

/** Options of {@link compress}. */
export interface CompressOptions {
  /**
   * The codings, those that the server prefers first: of several that a client accepts equally, the first is
   * used. Default zstd, br, gzip: zstd takes a third of br's time, and about 5 % more bytes. Nodes before
   * 22.15 have no zstd and omit it.
   */
  readonly codings?: readonly Coding[]
  /** Least bytes of a body whose length is known. Default 1024: less fits into one packet anyway. */
  readonly bytesMin?: number
  /**
   * Which content types are compressed; receives the type without parameters, in lower case. Default: text,
   * JSON, XML, JavaScript, SVG, WebAssembly and what is made of them.
   */
  readonly types?: (type: string) => boolean
  /** Levels: br 0 to 11, default 4; gzip 1 to 9, default 6; zstd 1 to 19, default 3. */
  readonly levels?: Readonly<Partial<Record<Coding, number>>>
  /**
   * Most responses of this thread that are compressed at once, 1 to 65,536; those beyond it are sent as they
   * are. Each takes a compressor of up to some MB. Default 128.
   */
  readonly concurrencyMax?: number
}

const CODINGS: readonly Coding[] = ['zstd', 'br', 'gzip']
const OPTIONS = {
  codings: {
    expected: "an array of 'br', 'gzip' and 'zstd'",
    accepts: (codings) =>
      Array.isArray(codings) && codings.every((coding) => CODINGS.includes(coding as Coding)),
    default: CODINGS,
  } as Kind<readonly Coding[]>,
  bytesMin: integer(0, 2 ** 40, 1024),
  types: callback as Kind<CompressOptions['types']>,
  levels: { expected: 'an object', accepts: isPlainObject, default: {} } as Kind<object>,
  concurrencyMax: integer(1, 65_536, 128),
}
const LEVELS = { br: integer(0, 11, 4), gzip: integer(1, 9, 6), zstd: integer(1, 19, 3) }

/** Statuses without a body, and parts of one: they are sent as they are. */
const UNTOUCHED = new Set([204, 205, 206, 304])
/** Headers that describe the uncompressed body. */
const OF_BODY = ['content-length', 'accept-ranges', 'content-md5', 'digest', 'content-digest', 'repr-digest']
/** Formats of text that are not called text. */
const FORMATS =
  'javascript|ecmascript|x-javascript|x-ndjson|jsonl|json-seq|wasm|graphql|x-www-form-urlencoded|rtf|toml|sql'
const TEXTUAL = new RegExp(
  `^text/|[/+](?:json|xml|text|yaml)$|^application/(?:${FORMATS})$|^font/(?:ttf|otf)$|^image/(?:bmp|x-icon)$`,
)

/**
 * Middleware that compresses responses. It leaves alone what has a `content-encoding` or
 * `cache-control: no-transform`, parts (206) and small bodies; a strong ETag becomes a weak one, and `vary`
 * names `accept-encoding`.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { compress, createApp, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': () => 'Hello '.repeat(1000) }, compress()) })
 * const response = await app.inject('/', { headers: { 'accept-encoding': 'gzip, br' } })
 * assert.equal(response.headers.get('content-encoding'), 'br')
 * ```
 */
export function compress(options?: CompressOptions): Middleware {
  const compressing = new Compression(optionsOf(options, OPTIONS, wrong, 'compress()'))
  return async (request, next) => compressing.of(request, await next())
}

class Compression {
  readonly #codings: readonly Coding[]
  readonly #bytesMin: number
  readonly #isCompressible: (type: string) => boolean
  readonly #levels: Readonly<Record<Coding, number>>
  readonly #concurrencyMax: number
  #runningCount = 0

  constructor({ codings, bytesMin, types, levels, concurrencyMax }: OptionsOf<typeof OPTIONS>) {
    this.#levels = optionsOf(levels, LEVELS, wrong, 'compress()', 'levels')
    this.#codings = hasZstd() ? codings : codings.filter((coding) => coding !== 'zstd')
    this.#bytesMin = bytesMin
    this.#isCompressible = types ?? ((type) => TEXTUAL.test(type))
    this.#concurrencyMax = concurrencyMax
  }

  async of(request: HttpRequest, response: Response): Promise<Response> {
    const { status, headers } = response
    if (status === 304) return revalidated(request, response)
    if (status < 200 || UNTOUCHED.has(status) || response.bodyUsed || isFinal(headers)) return response
    if (!this.#isCompressible(typeOf(headers))) return response
    const parts = responseParts(response)
    const bytes = bytesOf(parts)
    if (bytes < this.#bytesMin || bytes === 0) return response
    carry(request).append('vary', 'accept-encoding')
    const [coding] = acceptedOf(request.headers.get('accept-encoding'), this.#codings)
    const isHead = request.method === 'HEAD' // nothing is compressed, so it is always possible
    if (coding === undefined || (this.#runningCount >= this.#concurrencyMax && !isHead)) return response
    const { body } = parts
    if (body instanceof LazyBody) {
      const coded = this.#streamed(body, coding)
      return recoded(response, body instanceof TrailedBody ? body.behind(coded) : coded, coding)
    }
    if (body !== undefined && !isHead) return await this.#whole(response, body, coding)
    const source = new StreamSource(response.body ?? new Blob([]).stream())
    return recoded(response, this.#streamed(source, coding), coding)
  }

  async #whole(response: Response, body: string | Uint8Array, coding: Coding): Promise<Response> {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    this.#runningCount += 1
    try {
      const result = await compressed(bytes, coding, this.#levels)
      return result.byteLength < bytes.byteLength ? recoded(response, result, coding) : response
    } finally {
      this.#runningCount -= 1
    }
  }

  #streamed(source: ChunkSource, coding: Coding): CompressedBody {
    return new CompressedBody(source, {
      start: () => {
        this.#runningCount += 1
        return compressor(coding, this.#levels)
      },
      ended: () => (this.#runningCount -= 1),
    })
  }
}

/** The length of a body; Infinity if it is not known. */
function bytesOf({ head, body, stream }: Parts): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (body instanceof Uint8Array) return body.byteLength
  return head.length ?? ((stream ?? body) === undefined ? 0 : Infinity)
}

/** Whether it is encoded already, a part of something, or must not be changed. */
function isFinal(headers: Headers): boolean {
  return (
    headers.has('content-encoding') ||
    headers.has('content-range') ||
    /(?:^|[\s,])no-transform(?:$|[\s,])/i.test(headers.get('cache-control') ?? '')
  )
}

function typeOf(headers: Headers): string {
  return (headers.get('content-type') ?? '').split(';')[0].trim().toLowerCase()
}

/** The response with another body, in a coding. */
function recoded(response: Response, body: Uint8Array | LazyBody, coding: Coding): Response {
  const { status, statusText } = response
  const headers = new CorespunHeaders(response.headers)
  headers.set('content-encoding', coding)
  for (const name of OF_BODY) headers.delete(name)
  const etag = headers.get('etag')
  if (etag !== null) headers.set('etag', weak(etag))
  return new CorespunResponse(body as ResponseBody, { status, statusText, headers })
}

/** A strong tag promises the same bytes, and those of two codings differ. */
function weak(etag: string): string {
  return etag.startsWith('W/') ? etag : `W/${etag}`
}

/** 304 for a response that was compressed has the tag and the `vary` that this had. */
function revalidated(request: HttpRequest, response: Response): Response {
  const etag = response.headers.get('etag')
  const known = request.headers.get('if-none-match') ?? ''
  if (etag === null || etag.startsWith('W/') || !known.includes(`W/${etag}`)) return response
  carry(request).append('vary', 'accept-encoding')
  const headers = new CorespunHeaders(response.headers)
  headers.set('etag', weak(etag))
  return new CorespunResponse(null, { status: 304, statusText: response.statusText, headers })
}
