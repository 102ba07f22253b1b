/**
 * Trailers: fields behind a chunked body, of requests and of responses.
 *
 * Both directions have the same list of names that have no meaning there. Trailers are never merged with
 * headers, so nothing that was checked before a body can change behind it.
 */
import type { Exchange } from '../message/core-interface.ts'
import { wrong } from '../message/limits.ts'
import { CorespunHeaders, headerLines } from './headers.ts'
import { type ChunkSource, LazyBody, StreamSource } from './lazy-body.ts'
import { type ResponseBody, CorespunResponse, isResponse, responseParts } from './response.ts'

/** What makes the value of each trailer when the body has ended; `undefined` leaves it out. */
export type Trailers = Readonly<Record<string, () => string | undefined | Promise<string | undefined>>>

/**
 * Names of fields that must be known before the body: of framing, routing, conditions, authentication,
 * control and the content's form (RFC 9110, 6.5.1).
 */
const FORBIDDEN = new Set(
  [
    'transfer-encoding content-length connection keep-alive proxy-connection upgrade te trailer host expect',
    'max-forwards cache-control pragma range if-match if-range if-none-match if-modified-since',
    'if-unmodified-since authorization proxy-authorization www-authenticate proxy-authenticate cookie',
    'set-cookie age date expires location retry-after vary warning content-encoding content-type',
    'content-range',
  ].flatMap((line) => line.split(' ')),
)

/** The trailers of a request's body; without those that must not be there. */
export function trailersOf(exchange: Exchange): CorespunHeaders {
  const headers = new CorespunHeaders()
  const pairs = exchange.trailerPairs()
  for (let at = 0; at < pairs.length; at += 2)
    if (!FORBIDDEN.has(pairs[at].toLowerCase())) headers.append(pairs[at], pairs[at + 1])
  return headers
}

/**
 * Adds trailers to a response: fields that are sent behind its body, made when that has ended. Clients that
 * sent `te: trailers` receive them, in a chunked body without `content-length`; others receive the response
 * without them.
 * @param response Its body is taken over.
 * @param trailers By name, a function for the value. If it throws or rejects, the response is aborted.
 * @returns Another response; the same one if it has no body.
 * @throws {HttpError} `HTTP_ARGUMENT` for values that are not functions, and for names that cannot be
 *   trailers, such as `content-length` (RFC 9110, 6.5.1).
 * @throws {TypeError} If `response` was read, or a name cannot be sent.
 *
 * @example
 * ```ts
 * import { createHash } from 'node:crypto'
 * import { createApp, withTrailers } from 'corespun/http'
 *
 * const app = createApp({
 *   routes: {
 *     '/rows': () => {
 *       const hash = createHash('sha256')
 *       async function* rows() {
 *         for (const row of ['a\n', 'b\n']) yield (hash.update(row), Buffer.from(row))
 *       }
 *       return withTrailers(new Response(ReadableStream.from(rows())), {
 *         'content-digest': () => `sha-256=:${hash.digest('base64')}:`,
 *       })
 *     },
 *   },
 * })
 * console.log(await (await app.inject('/rows')).text())
 * ```
 */
export function withTrailers(response: Response, trailers: Trailers): Response {
  if (!isResponse(response)) throw wrong('withTrailers(): response', 'a Response', response)
  if (typeof trailers !== 'object' || trailers === null)
    throw wrong('withTrailers(): trailers', 'an object of functions', trailers)
  const names = new CorespunHeaders()
  for (const [name, make] of Object.entries(trailers)) {
    names.append(name, '')
    const option = `withTrailers(): trailers['${name}']`
    if (FORBIDDEN.has(name.toLowerCase())) throw wrong(option, 'a field that may come after a body', name)
    if (typeof make !== 'function') throw wrong(option, 'a function that returns the value', make)
  }
  const { body } = responseParts(response)
  const source = body instanceof LazyBody ? body : response.body && new StreamSource(response.body)
  if (source === null) return response
  const { status, statusText, headers } = response
  const trailed = new TrailedBody(source, [...names.keys()].join(', '), trailers)
  return new CorespunResponse(trailed as unknown as ResponseBody, { status, statusText, headers })
}

/** A body behind which trailers are sent. */
export class TrailedBody extends LazyBody {
  readonly #source: ChunkSource
  readonly #trailers: Trailers
  /** The names of the trailers, joined by commas. */
  readonly names: string

  constructor(source: ChunkSource, names: string, trailers: Trailers) {
    super()
    this.#source = source
    this.names = names
    this.#trailers = trailers
  }

  /** The same trailers behind another form of the body. */
  behind(source: ChunkSource): TrailedBody {
    return new TrailedBody(source, this.names, this.#trailers)
  }

  /** The trailer lines, once the body has ended. Rejects with what a function throws. */
  async lines(): Promise<string> {
    const pairs: [string, string][] = []
    for (const [name, make] of Object.entries(this.#trailers)) {
      const value = await make()
      if (value !== undefined) pairs.push([name, value])
    }
    return headerLines(pairs).lines
  }

  read(): unknown {
    return this.#source.read()
  }

  override chunk(result: unknown): Uint8Array | undefined {
    return this.#source.chunk(result)
  }

  override failed(error: unknown): void {
    this.#source.failed(error)
  }

  cancel(reason: unknown): Promise<void> {
    return this.#source.cancel(reason)
  }

  /** A body is read once. */
  again(): undefined {
    return undefined
  }
}

/** Whether a client takes trailers (RFC 9110, 10.1.4). */
export function takesTrailers(exchange: Exchange): boolean {
  const members = exchange.header('te')?.split(',') ?? []
  return members.some((member) => member.trim().toLowerCase() === 'trailers')
}
