/**
 * Sends a handler's result as the response of an exchange.
 *
 * A body that is available at once is sent in one synchronous call. A stream is sent chunk by chunk: each
 * read waits until the client has received the previous chunk.
 */
import { Turns, shown } from '../../base/index.ts'
import { type Exchange, TypeOf } from '../message/core-interface.ts'
import { HttpError } from '../errors.ts'
import { isBodiless, isResponse, type Parts, responseParts } from '../fetch/response.ts'
import { onAbort } from '../fetch/request.ts'
import { FileBody } from '../fetch/file-body.ts'
import { type ChunkSource, LazyBody, StreamSource } from '../fetch/lazy-body.ts'
import { takesTrailers, TrailedBody } from '../fetch/trailers.ts'
import type { ReadResult } from '../message/standard.ts'
import { jsonOf, objectAsResponse } from './value.ts'

/** Most bytes of one streamed response that are written in one turn of the event loop. */
const TURN_BYTES_MAX = 256 * 1024
/** How many microtasks a stream has to end before its response is streamed. */
const LOOKS_MAX = 8
/** A stream without a chunk for this time, in ms, is cancelled if its client has closed its sending side. */
const QUIET_MS = 1000

/**
 * Sends `value`; `where` names the handler in errors.
 * @returns A promise if the response continues after the call; it rejects if the response is aborted.
 * @throws {HttpError} `HTTP_RESPONSE` if `value` is not a response; `HTTP_HEADER` for an invalid header.
 * @throws {TypeError} If the body of the response was already read.
 */
export function sendResponse(exchange: Exchange, value: unknown, where: string): Promise<void> | undefined {
  switch (typeof value) {
    case 'string':
      exchange.respond(200, TypeOf.text, '', value)
      return undefined
    case 'object':
      if (value !== null) return sendObject(exchange, value, where)
      break
    case 'number':
    case 'boolean':
      break
    default:
      throw new HttpError('HTTP_RESPONSE', {
        where: where.startsWith('/') ? `${exchange.method} ${where}` : where,
        received: shown(value),
      })
  }
  exchange.respond(200, TypeOf.json, '', JSON.stringify(value))
  return undefined
}

function sendObject(exchange: Exchange, value: object, where: string): Promise<void> | undefined {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === Array.prototype) {
    const text = jsonOf(value, where)
    // An iterable made by hand has nothing that JSON shows, so only what shows nothing is looked at again.
    if (text === '{}') return sendOther(exchange, value, where)
    exchange.respond(200, TypeOf.json, '', text)
    return undefined
  }
  if (isResponse(value)) {
    const parts = responseParts(value)
    if (parts.status < 200) throw new HttpError('HTTP_RESPONSE', { where, received: 'Response.error()' })
    return parts.stream === undefined ? sendWhole(exchange, parts) : sendStream(exchange, parts, parts.stream)
  }
  if (value instanceof Uint8Array) exchange.respond(200, TypeOf.bytes, '', value)
  else if (value instanceof ArrayBuffer) exchange.respond(200, TypeOf.bytes, '', new Uint8Array(value))
  else if (value instanceof ReadableStream) {
    const head = { type: TypeOf.bytes, lines: '', length: undefined }
    return sendStream(exchange, { status: 200, head }, value as ReadableStream<Uint8Array>)
  } else return sendOther(exchange, value, where)
  return undefined
}

/** An object that is not a response of ours and not plain. */
function sendOther(exchange: Exchange, value: object, where: string): Promise<void> | undefined {
  const response = objectAsResponse(value, where)
  if (response !== undefined) return sendObject(exchange, response, where)
  exchange.respond(200, TypeOf.json, '', jsonOf(value, where))
  return undefined
}

function sendWhole(exchange: Exchange, parts: Parts): Promise<void> | undefined {
  const { status, head, body } = parts
  if (body instanceof LazyBody) return sendLazy(exchange, parts, body)
  if (body === undefined && exchange.method === 'HEAD') {
    // Without a body nothing is known of its length: an app that responds to HEAD itself left it out.
    exchange.start(status, head.type, head.lines, head.length)
    exchange.end()
  } else exchange.respond(status, head.type, head.lines, body)
  return undefined
}

/** A file that is open in the core is sent by it; other lazy bodies are read as streams are. */
function sendLazy(exchange: Exchange, { status, head }: Parts, body: LazyBody): Promise<void> | undefined {
  const { type, lines } = head
  if (body instanceof FileBody && exchange.respondFile?.(status, type, lines, body.part) === true)
    return undefined
  const trailers = body instanceof TrailedBody && takesTrailers(exchange) ? body : undefined
  return sendChunks(exchange, { status, head }, body, trailers)
}

function sendStream(
  exchange: Exchange,
  parts: Pick<Parts, 'status' | 'head'>,
  stream: ReadableStream<Uint8Array>,
): Promise<void> {
  return sendChunks(exchange, parts, new StreamSource(stream))
}

function sendChunks(
  exchange: Exchange,
  { status, head }: Pick<Parts, 'status' | 'head'>,
  source: ChunkSource,
  trailers?: TrailedBody,
): Promise<void> {
  exchange.retain()
  if (isBodiless(exchange, status)) {
    exchange.start(status, head.type, head.lines, head.length)
    exchange.end()
    return source.cancel(undefined)
  }
  const { type, lines, length } = head
  const begun: Head =
    trailers === undefined
      ? { status, type, lines, length, trailers }
      : // Only a chunked body has room for them.
        { status, type, lines: `${lines}trailer: ${trailers.names}\r\n`, length: undefined, trailers }
  return new StreamedResponse(exchange, source, begun).run()
}

interface Head {
  readonly status: number
  readonly type: number
  readonly lines: string
  readonly length: number | undefined
  /** What makes the trailers behind the body. */
  readonly trailers: TrailedBody | undefined
}

class StreamedResponse {
  readonly #exchange: Exchange
  readonly #source: ChunkSource
  readonly #head: Head
  #sentBytes = 0
  /** Nothing more is read of the stream. */
  #isOver = false
  /** The client is what is waited for, not the stream. */
  #isDraining = false
  /** Pieces given and waits for the client that have ended. */
  #movesCount = 0
  #quietTimer: NodeJS.Timeout | undefined

  constructor(exchange: Exchange, source: ChunkSource, head: Head) {
    this.#exchange = exchange
    this.#source = source
    this.#head = head
  }

  /**
   * Rejects with the source's error. Aborts a response that has begun if the source fails or the client
   * disconnects. One function and one `await` per chunk: a response has thousands of them.
   */
  async run(): Promise<void> {
    const exchange = this.#exchange
    const source = this.#source
    exchange.onClose = () => this.#cancel()
    if (exchange.aborted) this.#onDisconnect()
    else onAbort(exchange, () => this.#onDisconnect())
    let hasBegun = false
    /** An error of `read` ends the source; after any other it has to be cancelled. */
    let isReading = true
    try {
      let result = await source.read()
      isReading = false
      if (this.#isOver) return exchange.abort()
      let chunk = source.chunk(result)
      this.#movesCount += 1
      const { status, type, lines, length, trailers } = this.#head
      isReading = true
      const next = chunk === undefined ? undefined : Promise.resolve(source.read())
      isReading = false
      const mayEnd = next !== undefined && trailers === undefined
      const end = mayEnd ? await endAtOnce(next) : undefined
      if (trailers === undefined && (next === undefined || end !== undefined)) {
        if (end !== undefined) source.chunk(end)
        if (this.#isOver) return exchange.abort()
        this.#sentBytes = chunk?.byteLength ?? 0
        if (length !== undefined && this.#sentBytes !== length) throw this.#wrongLength()
        exchange.respond(status, type, lines, chunk)
        return
      }
      next?.catch(() => {}) // awaited below, perhaps after the client has taken the first chunk
      exchange.start(status, type, lines, length)
      hasBegun = true
      const turns = new Turns()
      let turnBytes = 0
      for (let isFirst = true; chunk !== undefined; isFirst = false) {
        if (!this.#write(chunk)) await this.#drained()
        else if (this.#sentBytes - turnBytes > TURN_BYTES_MAX || turns.isDue()) {
          // A stream that always has more, or computes it, would keep the loop from others, and from noticing
          // that its client has left.
          await turns.taken()
          turnBytes = this.#sentBytes
        }
        if (this.#isOver) return exchange.abort()
        isReading = true
        result = await (isFirst ? next : source.read())
        isReading = false
        if (this.#isOver) return exchange.abort()
        chunk = source.chunk(result)
      }
      if (length !== undefined && this.#sentBytes !== length) throw this.#wrongLength()
      exchange.end(trailers === undefined ? undefined : await trailers.lines())
    } catch (error) {
      if (hasBegun) exchange.abort()
      if (isReading) source.failed(error)
      else source.cancel(error).catch(() => {}) // it receives the reason
      throw error
    } finally {
      this.#isOver = true
      clearInterval(this.#quietTimer)
    }
  }

  /**
   * The client has closed its sending side, or the whole connection. Only sending a chunk shows which, so a
   * stream without chunks is cancelled after a while.
   */
  #onDisconnect(): void {
    if (this.#exchange.isClosed) return this.#cancel()
    let before = this.#movesCount
    this.#quietTimer = setInterval(() => {
      const isQuiet = before === this.#movesCount && !this.#isDraining
      before = this.#movesCount
      if (isQuiet) this.#cancel()
    }, QUIET_MS)
  }

  #cancel(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearInterval(this.#quietTimer)
    this.#source.cancel(this.#disconnected()).catch(() => {}) // the source has the reason already
  }

  async #drained(): Promise<void> {
    this.#isDraining = true
    await this.#exchange.drained()
    this.#isDraining = false
    this.#movesCount += 1
  }

  #write(chunk: Uint8Array): boolean {
    this.#movesCount += 1
    this.#sentBytes += chunk.byteLength
    if (this.#head.length !== undefined && this.#sentBytes > this.#head.length) throw this.#wrongLength()
    return chunk.byteLength === 0 || this.#exchange.write(chunk)
  }

  #disconnected(): HttpError {
    return new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'a streamed response' })
  }

  #wrongLength(): HttpError {
    const { method, target } = this.#exchange
    return new HttpError('HTTP_RESPONSE_LENGTH', {
      where: `${method} ${target.split('?')[0]}`,
      expected: this.#head.length!,
      received: this.#sentBytes,
    })
  }
}

/**
 * The end of a stream that comes without anybody waiting for anything: it was a string or bytes before Node's
 * Response made a stream of it, and goes out whole, with its length.
 */
async function endAtOnce(next: Promise<unknown>): Promise<ReadResult | undefined> {
  let result: ReadResult | undefined
  next.then(
    (found) => (result = found as ReadResult),
    () => {}, // whoever reads on will see it
  )
  for (let look = 0; look < LOOKS_MAX && result === undefined; look += 1) await Promise.resolve()
  return result?.done === true ? result : undefined
}
