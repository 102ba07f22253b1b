/**
 * Sends a handler's result as the response of an exchange.
 *
 * A body that is available at once is sent in one synchronous call. A stream is sent chunk by chunk: each
 * read waits until the client has received the previous chunk.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { shown } from '../../base/index.ts'
import { type Exchange, TypeOf } from '../core/core.ts'
import { HttpError } from '../errors.ts'
import {
  isBodiless,
  isCorespunResponse,
  NativeResponse,
  type Parts,
  responseParts,
} from '../fetch/response.ts'
import { onAbort } from '../fetch/request.ts'
import { FileBody } from '../fetch/file-body.ts'
import { LazyBody } from '../fetch/lazy-body.ts'
import type { ReadResult } from '../fetch/standard.ts'
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
      throw new HttpError('HTTP_RESPONSE', { where, received: shown(value) })
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
  if (isCorespunResponse(value) || value instanceof NativeResponse) {
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
  if (body === undefined && head.length !== undefined && exchange.method === 'HEAD') {
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
  return sendRead(exchange, { status, head }, body)
}

function sendStream(
  exchange: Exchange,
  parts: Pick<Parts, 'status' | 'head'>,
  stream: ReadableStream<Uint8Array>,
): Promise<void> {
  return sendRead(exchange, parts, stream.getReader())
}

function sendRead(
  exchange: Exchange,
  { status, head }: Pick<Parts, 'status' | 'head'>,
  reader: Reader,
): Promise<void> {
  exchange.retain()
  if (isBodiless(exchange, status)) {
    exchange.start(status, head.type, head.lines, head.length)
    exchange.end()
    return reader.cancel(undefined)
  }
  const { type, lines, length } = head
  return new StreamedResponse(exchange, reader, { status, type, lines, length }).run()
}

/** What a body is read from. */
interface Reader {
  read(): Promise<ReadResult>
  cancel(reason: unknown): Promise<void>
}

interface Head {
  readonly status: number
  readonly type: number
  readonly lines: string
  readonly length: number | undefined
}

class StreamedResponse {
  readonly #exchange: Exchange
  readonly #reader: Reader
  readonly #head: Head
  #sentBytes = 0
  /** Nothing more is read of the stream. */
  #isOver = false
  /** The client is what is waited for, not the stream. */
  #isDraining = false
  /** Pieces given and waits for the client that have ended. */
  #movesCount = 0
  #quietTimer: NodeJS.Timeout | undefined

  constructor(exchange: Exchange, reader: Reader, head: Head) {
    this.#exchange = exchange
    this.#reader = reader
    this.#head = head
  }

  /**
   * Rejects with the stream's error. Aborts a response that has begun if the stream fails or the client
   * disconnects.
   */
  async run(): Promise<void> {
    this.#exchange.onClose = () => this.#cancel()
    if (this.#exchange.aborted) this.#onDisconnect()
    else onAbort(this.#exchange, () => this.#onDisconnect())
    try {
      await this.#send()
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
    this.#reader.cancel(this.#disconnected()).catch(() => {}) // the source has the reason already
  }

  async #send(): Promise<void> {
    const first = await this.#reader.read()
    if (this.#isOver) return this.#exchange.abort()
    this.#movesCount += 1
    const next = first.done ? undefined : this.#reader.read()
    next?.catch(() => {}) // whoever reads on will see it; nobody may before the client has taken the first
    const { status, type, lines, length } = this.#head
    if (next === undefined || (length === undefined && (await endsAtOnce(next)))) {
      if (this.#isOver) this.#exchange.abort()
      else this.#exchange.respond(status, type, lines, first.done ? undefined : bytesOf(first.value))
      return
    }
    this.#exchange.start(status, type, lines, length)
    try {
      await this.#rest(first.value!, next)
      if (this.#isOver) return this.#exchange.abort()
      if (length !== undefined && this.#sentBytes !== length) throw this.#wrongLength()
      this.#exchange.end()
    } catch (error) {
      this.#exchange.abort()
      this.#reader.cancel(error).catch(() => {}) // the stream failed itself, or receives the reason
      throw error
    }
  }

  async #rest(first: Uint8Array, second: Promise<ReadResult>): Promise<void> {
    let turnBytes = this.#sentBytes
    if (!this.#write(first)) await this.#drained()
    for (let next = await second; !next.done; next = await this.#reader.read()) {
      if (!this.#write(next.value)) await this.#drained()
      else if (this.#sentBytes - turnBytes > TURN_BYTES_MAX) {
        // A stream that always has more would keep the loop from others, and from hearing that its reader
        // left.
        await nextTurn()
        turnBytes = this.#sentBytes
      }
      if (this.#isOver) return
    }
  }

  async #drained(): Promise<void> {
    this.#isDraining = true
    await this.#exchange.drained()
    this.#isDraining = false
    this.#movesCount += 1
  }

  #write(chunk: unknown): boolean {
    const bytes = bytesOf(chunk)
    this.#movesCount += 1
    this.#sentBytes += bytes.byteLength
    if (this.#head.length !== undefined && this.#sentBytes > this.#head.length) throw this.#wrongLength()
    return bytes.byteLength === 0 || this.#exchange.write(bytes)
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
 * Whether a stream turns out to have ended without anybody waiting for anything: it was a string or bytes
 * before Node's Response made a stream of it, and goes out whole, with its length.
 */
async function endsAtOnce(next: Promise<ReadResult>): Promise<boolean> {
  let result: ReadResult | undefined
  next.then(
    (found) => (result = found),
    () => {}, // whoever reads on will see it
  )
  for (let look = 0; look < LOOKS_MAX && result === undefined; look += 1) await Promise.resolve()
  return result?.done === true
}

/**
 * A piece of a body; strings are sent as UTF-8, as most servers do.
 * @throws {HttpError} `HTTP_RESPONSE` for any other.
 */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'string') return Buffer.from(chunk)
  const facts = { expected: 'bytes or strings', received: shown(chunk) }
  throw new HttpError('HTTP_RESPONSE', { where: 'the stream of a body', ...facts })
}
