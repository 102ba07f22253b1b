/**
 * One request of node:http and its answer, as an exchange.
 *
 * Bodies are read when the app pulls; what it leaves is read away up to a bound, beyond which the connection
 * closes behind the answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type CoreLimits, type Exchange, TYPES, TypeOf } from './core.ts'
import { HttpError } from './errors.ts'

/** Bytes of an unwanted body that are read away to keep the connection. */
const DISCARD_BYTES_MAX = 256 * 1024

/** See the file's text. */
export class NodeExchange implements Exchange {
  readonly method: string
  readonly target: string
  readonly targetNumber = -1
  readonly bodyBytes: number
  onAbort: (() => void) | undefined
  aborted = false
  onClose: (() => void) | undefined
  isClosed = false
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #limits: CoreLimits
  #owesContinue: boolean
  #isAnswered = false
  #hasEnded = false
  #pulledBytes = 0
  #failure: Error | undefined
  #timer: NodeJS.Timeout | undefined
  /** Settles the pull that waits. */
  #wake: (() => void) | undefined
  /** Ends the wait for a slow reader. */
  #wakeWriter: (() => void) | undefined

  constructor(request: IncomingMessage, response: ServerResponse, limits: CoreLimits, owesContinue: boolean) {
    this.method = request.method!
    this.target = request.url!
    this.#request = request
    this.#response = response
    this.#limits = limits
    this.#owesContinue = owesContinue
    const length = request.headers['content-length']
    this.bodyBytes = request.headers['transfer-encoding'] !== undefined ? -1 : Number(length ?? 0)
    request.on('error', () => this.#wake?.()) // the close that follows says that the client has gone
    response.on('error', () => {})
    // Its turn has come, behind other answers of its connection.
    response.on('socket', (socket: Socket) => {
      if (this.#hasEnded || this.#wakeWriter !== undefined) this.#watch()
      else socket.setTimeout(0)
    })
  }

  get remoteAddress(): string {
    return this.#request.socket.remoteAddress ?? ''
  }

  header(name: string): string | undefined {
    const { headers } = this.#request
    if (!Object.hasOwn(headers, name)) return undefined
    const value = headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  headerPairs(): string[] {
    return this.#request.rawHeaders
  }

  bodyNow(): Uint8Array | undefined {
    return undefined
  }

  /**
   * See {@link Exchange}.
   * @throws {HttpError} `HTTP_BODY_TOO_LARGE`, `_TIMEOUT`, `_MALFORMED`, `HTTP_TRAILERS_TOO_LARGE`,
   *   `HTTP_CLIENT_GONE`, `HTTP_REQUEST_OVER` behind the answer.
   */
  async pull(): Promise<Uint8Array | undefined> {
    if (this.bodyBytes === 0) return undefined
    if (this.#owesContinue) {
      this.#owesContinue = false
      this.#response.writeContinue()
    }
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      if (this.isClosed) throw new HttpError('HTTP_CLIENT_GONE', { during: 'its body' })
      // What is left is thrown away: a part of it must not pass for the whole.
      if (this.#hasEnded) throw new HttpError('HTTP_REQUEST_OVER', { what: 'the body' })
      const chunk = this.#request.read() as Buffer | null
      if (chunk !== null) return this.#count(chunk)
      if (this.#request.readableEnded || (this.#request.complete && this.#request.readableLength === 0)) {
        if (!this.#request.readableEnded) this.#request.resume()
        if (this.#hasTrailersTooMany()) throw this.overlong()
        return undefined
      }
      if (this.aborted) throw new HttpError('HTTP_CLIENT_GONE', { during: 'its body' })
      await this.#readable()
    }
  }

  #count(chunk: Buffer): Uint8Array {
    this.#pulledBytes += chunk.byteLength
    if (this.#pulledBytes <= this.#limits.bodyBytesMax) return new Uint8Array(chunk)
    const { bodyBytesMax } = this.#limits
    this.#failure = new HttpError('HTTP_BODY_TOO_LARGE', { bodyBytesMax })
    throw this.#failure
  }

  /** Waits until there is something to read or to say. */
  #readable(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(this.#timer)
        this.#request.off('readable', done).off('end', done)
        this.#wake = undefined
        resolve()
      }
      this.#wake = done
      this.#request.on('readable', done).on('end', done)
      const { bodyMs } = this.#limits
      this.#timer = setTimeout(() => {
        this.#failure = new HttpError('HTTP_BODY_TIMEOUT', { bodyMs })
        done()
      }, bodyMs)
    })
  }

  retain(): void {
    // node:http keeps what it has given
  }

  /** Bytes of its answer that Node holds. */
  get unsentBytes(): number {
    return this.#response.writableLength
  }

  /** Whether its body has not come to its end. */
  get isReading(): boolean {
    return this.bodyBytes !== 0 && !this.#request.complete
  }

  /** node:http takes as many as fit into `headerBytesMax`. */
  #hasTrailersTooMany(): boolean {
    return this.#request.rawTrailers.length > 2 * this.#limits.headersMax
  }

  /** Extensions or trailers of this request's body pass a limit. */
  overlong(): Error {
    const { headerBytesMax, headersMax } = this.#limits
    this.#failure ??= new HttpError('HTTP_TRAILERS_TOO_LARGE', { headerBytesMax, headersMax })
    this.#wake?.()
    return this.#failure
  }

  /** The parser gave up inside of this request's body. */
  malformed(reason: string): void {
    this.#failure ??= new HttpError('HTTP_BODY_MALFORMED', { reason })
    this.#wake?.()
  }

  /** The client sends nothing more: it has gone, or waits for an answer that may still come. */
  gone(): void {
    if (this.aborted || this.#hasEnded) return
    this.aborted = true
    this.#wake?.()
    this.onAbort?.()
  }

  /** Nothing more will be sent; when the answer had not ended, the client has gone. */
  closed(): void {
    clearTimeout(this.#timer)
    if (this.#hasEnded && this.#response.writableFinished) return
    const wasGone = this.aborted
    this.isClosed = true
    this.aborted = true
    this.#wake?.()
    this.#wakeWriter?.()
    this.onClose?.()
    if (!wasGone) this.onAbort?.()
  }

  /** More can be written, for all that is known. */
  wakeWriter(): void {
    this.#wakeWriter?.()
  }

  respond(status: number, type: number, headers: string, body: string | Uint8Array | undefined): void {
    if (this.#isAnswered || this.isClosed) return
    this.#hasEnded = true
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    this.#head(status, type, headers, status === 204 || status === 304 ? undefined : (bytes?.byteLength ?? 0))
    // Node may hold what it is given until it can be sent; the caller may use its bytes again at once.
    this.#response.end(typeof body === 'string' || bytes === undefined ? bytes : Buffer.from(bytes))
    this.#watch()
    this.#discard()
  }

  start(status: number, type: number, headers: string, length: number | undefined): void {
    if (this.#isAnswered || this.isClosed) return
    this.#head(status, type, headers, length)
    this.#response.flushHeaders()
  }

  #head(status: number, type: number, headers: string, length: number | undefined): void {
    this.#isAnswered = true
    const pairs: string[] = []
    if (type !== TypeOf.none) pairs.push('content-type', TYPES[type as 1])
    if (length !== undefined) pairs.push('content-length', String(length))
    if (this.#mustClose()) pairs.push('connection', 'close')
    for (let at = 0; at < headers.length;) {
      const colon = headers.indexOf(':', at)
      const end = headers.indexOf('\r\n', colon)
      pairs.push(headers.slice(at, colon), headers.slice(colon + 2, end))
      at = end + 2
    }
    this.#response.writeHead(status, pairs)
  }

  /** Whether what is left of the body, or its failure, leaves the connection without use. */
  #mustClose(): boolean {
    if (!this.#response.shouldKeepAlive || this.#failure !== undefined || this.#owesContinue) return true
    if (this.#hasTrailersTooMany()) return true
    if (this.bodyBytes === 0 || this.#request.complete) return false
    return this.bodyBytes < 0 || this.bodyBytes - this.#pulledBytes > DISCARD_BYTES_MAX
  }

  #discard(): void {
    this.#wake?.()
    if (this.bodyBytes !== 0 && !this.#request.readableEnded) this.#request.resume()
  }

  write(chunk: Uint8Array): boolean {
    if (this.isClosed || this.#hasEnded) return true
    return this.#response.write(Buffer.from(chunk))
  }

  drained(): Promise<void> {
    const response = this.#response
    if (this.isClosed || !response.writableNeedDrain) return Promise.resolve()
    this.#watch()
    return new Promise((resolve) => {
      const done = (): void => {
        response.off('drain', done)
        response.socket?.setTimeout(0)
        this.#wakeWriter = undefined
        resolve()
      }
      this.#wakeWriter = done // closed() calls it, also for an answer whose turn never came
      response.on('drain', done)
    })
  }

  /**
   * A client that takes nothing for `bodyMs` of what is to be sent is gone for all we know: node:http closes
   * a connection whose time is up. Node looks at what has left, so one that reads slowly is not cut. Behind
   * the last answer node:http sets its own time for idle connections.
   */
  #watch(): void {
    const { socket, writableFinished } = this.#response
    if (!writableFinished) socket?.setTimeout(this.#limits.bodyMs)
  }

  end(): void {
    if (this.isClosed || this.#hasEnded) return
    this.#hasEnded = true
    this.#response.end()
    this.#watch()
    this.#discard()
  }

  abort(): void {
    // To HTTP/1.0 the end of the connection is the end of the body: only a reset says that it is not whole.
    if (this.#request.httpVersionMinor === 0) this.#request.socket.resetAndDestroy()
    else this.#response.destroy()
  }
}
