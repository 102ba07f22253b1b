/**
 * One exchange as the `req` and `res` of node:http, and what an app does with them as a Response.
 *
 * Both are objects of Node's own classes, so headers, events, states and errors are Node's. Only the seams to
 * its parser and socket are replaced: `_read` and `_destroy` of the request; `_storeHeader`, `_send`,
 * `_writeRaw` and `end` of the response. They are properties of the objects, because express replaces the
 * prototypes of both. A response that the app ends at once is sent whole. Over 400 lines: both objects share
 * the state of one exchange.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { promiseOf } from '../../base/index.ts'
import { HttpError } from '../errors.ts'
import { type HeaderLines, headerLines } from '../fetch/headers.ts'
import type { LazyBody } from '../fetch/lazy-body.ts'
import { onAbort } from '../fetch/request.ts'
import { isBodiless, preparedResponse } from '../fetch/response.ts'
import { TrailedBody } from '../fetch/trailers.ts'
import type { Exchange } from '../message/core-interface.ts'
import { fieldsIn, type Pairs, pairsOf } from './head.ts'
import { ownedByCore, type Owner, PeerSocket } from './peer-socket.ts'
import { UpgradedSocket } from './upgraded-socket.ts'
import { WrittenBody } from './written-body.ts'

/** An app for node:http. */
export type Listener = (req: IncomingMessage, res: ServerResponse) => unknown

type Callback = (error?: unknown) => void
type Data = string | Uint8Array

const PAIR = Symbol('corespun.pair')

/** What Node has on a request, beyond its documentation. */
interface NodeRequest extends IncomingMessage {
  [PAIR]: NodeExchange
  _consumed: boolean
  _readableState: { readingMore: boolean }
  _addHeaderLines(pairs: string[], count: number): void
  _dump(): void
}

/** The same on a response. */
interface NodeResponse extends ServerResponse {
  [PAIR]: NodeExchange
  _header: string | null
  _trailer: string
  _closed: boolean
  _contentLength: number | null
  chunkedEncoding: boolean
  _storeHeader(line: string, headers: unknown): void
  _send(data: Data, encoding?: BufferEncoding | null, callback?: Callback | null): boolean
  _writeRaw(data: string, encoding?: BufferEncoding | Callback, callback?: Callback): boolean
}

/** By which Node remembers that `write` has returned false. */
const NEED_DRAIN = symbolOf('kNeedDrain')

function symbolOf(description: string): symbol {
  const request = { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1 } as IncomingMessage
  const symbols = Object.getOwnPropertySymbols(new ServerResponse(request))
  return symbols.find((symbol) => symbol.description === description) ?? Symbol(description)
}

/** Calls an app for node:http. Throws, or rejects, with what it throws before its response. */
export function respondedBy(listen: Listener, exchange: Exchange): Response | Promise<Response> {
  const pair = new NodeExchange(exchange)
  try {
    promiseOf(listen(pair.req, pair.res))?.then(undefined, (error: unknown) => pair.fail(error))
  } catch (error) {
    pair.fail(error) // its events release what the app has opened
    throw error
  }
  return pair.responded()
}

/** What an http.Server has that takes connections over. */
export interface Upgrader {
  listenerCount(event: 'upgrade'): number
  emit(event: 'upgrade', req: IncomingMessage, socket: UpgradedSocket, head: Buffer): boolean
}

/** Passes the connection to listeners of `upgrade`; undefined without one, or where it is not asked for. */
export function upgradedBy(server: Upgrader, exchange: Exchange): Promise<Response> | undefined {
  if (exchange.upgrade === undefined || server.listenerCount('upgrade') === 0 || !isAsked(exchange))
    return undefined
  const { req, socket: peer } = new NodeExchange(exchange)
  const socket = new UpgradedSocket(exchange, peer)
  ;(req as { socket: unknown }).socket = socket
  req.complete = true
  socket.response.catch(() => {}) // nobody awaits it after an error
  try {
    server.emit('upgrade', req, socket, Buffer.alloc(0))
  } catch (error) {
    socket.destroy() // its events release what the app has opened
    throw error
  }
  return socket.response
}

/** Whether a request asks for a WebSocket as node:http decides, which emits `request` for others. */
function isAsked(exchange: Exchange): boolean {
  const options = exchange.header('connection')?.toLowerCase().split(',') ?? []
  return (
    exchange.method === 'GET' &&
    exchange.bodyBytes === 0 &&
    exchange.header('upgrade')?.toLowerCase() === 'websocket' &&
    options.some((option) => option.trim() === 'upgrade')
  )
}

class NodeExchange implements Owner {
  readonly exchange: Exchange
  readonly socket: PeerSocket
  readonly req: NodeRequest
  readonly res: NodeResponse
  readonly #hasBody: boolean
  /** `end` of the response is running. */
  #isEnding = false
  /** `end` has received one. */
  #hasCallback = false
  #head: HeaderLines | undefined
  #pairs: Pairs = []
  /** Names of trailers that its head announces; undefined: it has no trailers. */
  #trailers: string | undefined
  /** The body of a response that ended at once. */
  #whole: Data | null = null
  /** That of one that is streamed. */
  #body: WrittenBody | undefined
  /** The core sends no body, as for HEAD: what is written is dropped. */
  #isDropped = false
  /** Emits `finish`. */
  #onFinish: Callback | undefined
  #response: Response | undefined
  #failure: { readonly error: unknown } | undefined
  #waiting: { resolve(response: Response): void; reject(error: unknown): void } | undefined
  /** The response is complete, or given up. */
  #isOver = false
  /** The request's body, which nobody had read when the response was made. */
  #unread: Promise<Uint8Array | undefined> | undefined
  /** What is left of the request's body is not for the app. */
  #isDumped = false
  /** The request failed by what its client has sent; its response may follow. */
  #isRefused = false

  constructor(exchange: Exchange) {
    this.exchange = exchange
    this.#hasBody = exchange.bodyBytes !== 0
    this.socket = new PeerSocket(this)
    this.req = this.#request()
    this.res = this.#responseOf(this.req)
  }

  #request(): NodeRequest {
    const { exchange } = this
    const req = new IncomingMessage(this.socket as unknown as Socket) as NodeRequest
    req[PAIR] = this
    req._read = read
    req._destroy = destroy
    req.httpVersionMajor = 1
    req.httpVersionMinor = 1
    req.httpVersion = '1.1'
    req.method = exchange.method
    req.url = exchange.target
    const pairs = exchange.headerPairs()
    // Over HTTP/2 nothing else shows that there is a body, and parsers of bodies look for it.
    if (exchange.bodyBytes < 0 && exchange.header('transfer-encoding') === undefined)
      pairs.push('Transfer-Encoding', 'chunked')
    // Over HTTP/2 there is no key, and libraries look for one.
    if (exchange.hasNoKey) pairs.push('Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA==')
    req._addHeaderLines(pairs, pairs.length)
    return req
  }

  #responseOf(req: NodeRequest): NodeResponse {
    const res = new ServerResponse(req) as unknown as NodeResponse
    res[PAIR] = this
    res._storeHeader = storeHeader
    res._send = send
    res._writeRaw = writeRaw
    res.end = end as NodeResponse['end']
    ;(res as { socket: unknown }).socket = this.socket
    return res
  }

  /** The response, now if there is one. */
  responded(): Response | Promise<Response> {
    if (this.#response !== undefined) return this.#response
    if (this.#failure !== undefined) throw this.#failure.error
    this.#watch()
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  #respond(response: Response): void {
    if (this.#waiting === undefined) this.#response = response
    else this.#waiting.resolve(response)
  }

  /** The app has failed. @throws {unknown} The same error after the whole response. */
  fail(error: unknown): void {
    // The client has left, or the app has closed the connection: the error is what that led to.
    if (this.#failure !== undefined) return
    if (this.#isOver) throw error
    this.#giveUp(error)
  }

  /** The app has closed its socket. */
  destroyed(): void {
    this.#lose()
  }

  get writableLength(): number {
    return this.#body?.bytes ?? 0
  }

  timedOut(): boolean {
    const isHeardByRequest = !this.req.complete && this.req.emit('timeout', this.socket)
    return this.res.emit('timeout', this.socket) || isHeardByRequest
  }

  #watch(): void {
    const lose = (): void => this.#lose()
    if (this.exchange.aborted) process.nextTick(lose)
    else onAbort(this.exchange, lose)
  }

  /** The client has left, or the app has closed its connection. */
  #lose(): void {
    if (!this.#isOver) this.#giveUp(new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its response' }))
  }

  /** There is no response, or no more of it. */
  #giveUp(error: unknown): void {
    const { socket, req, res } = this
    this.#isOver = true
    this.#failure = { error }
    this.#waiting?.reject(error)
    this.#body?.fail(error)
    socket.closed()
    req.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }))
    process.nextTick(() => {
      socket.emit('close', false)
      close(res)
    })
  }

  /**
   * The core has all of the response. Who listens may end the process, so the core sends first what it has,
   * which is at the end of the turn.
   */
  readonly #sent = (): void => {
    this.#isOver = true
    if (this.#isHeard()) setImmediate(this.#done)
    else this.#done()
  }

  #isHeard(): boolean {
    return this.#hasCallback || this.res.listenerCount('finish') + this.res.listenerCount('close') > 0
  }

  readonly #done = (): void => {
    const { req, res } = this
    this.socket.released()
    this.#onFinish?.()
    close(res)
    // An app may read what has arrived after its response.
    if (req._consumed || req.readableFlowing === true || req.listenerCount('readable') > 0) return
    const isHeard = req.listenerCount('close') + req.listenerCount('end') > 0
    if (!this.#hasBody && !isHeard) {
      req.complete = true
      return
    }
    this.#isDumped = true
    req._dump()
  }

  // The seams of the response.

  storeHeader(line: string, headers: unknown): void {
    const { res, exchange } = this
    const { statusCode: status } = res
    if (status === 101) throw ownedByCore()
    if (status < 200 || status > 599) {
      const where = `${exchange.method} ${exchange.target.split('?')[0]}`
      const expected = 'a response with a status of 200 to 599'
      throw new HttpError('HTTP_RESPONSE', { where, received: String(status), expected })
    }
    const pairs = pairsOf(res, headers)
    if (!res.shouldKeepAlive) pairs.push(['connection', 'close'])
    const trailer = pairs.findIndex(([name]) => name === 'trailer' || name === 'Trailer')
    if (trailer >= 0) [[, this.#trailers]] = pairs.splice(trailer, 1)
    this.#head = headerLines(pairs)
    this.#pairs = pairs
    res._header = line
    res._contentLength = this.#head.length ?? null
    res.chunkedEncoding = false
  }

  /** A piece of the body; within `end` also the end of it, with the callback that emits `finish`. */
  send(data: Data, encoding: BufferEncoding | null | undefined, callback: Callback | undefined): boolean {
    if (this.#isOver) {
      if (callback !== undefined && !this.#isEnding) process.nextTick(callback, this.#failure?.error)
      return false
    }
    this.socket.touched()
    const isLast = this.#isEnding && data.length === 0
    // Of its last two calls, or of one since Node 24, the last one has it.
    if (this.#isEnding) this.#onFinish = callback
    if (this.#body === undefined) {
      if (this.#isEnding && this.#trailers === undefined) {
        if (!isLast) this.#whole = isUtf8(encoding) ? data : bytesOf(data, encoding)
        return true
      }
      this.#begin()
    }
    if (isLast) return true
    const taken = this.#isEnding ? undefined : callback
    // After its callback the app may reuse the bytes, and the core may take them later.
    const given = taken === undefined ? data : ownOf(data)
    if (!this.#isDropped) return this.#body!.write(bytesOf(given, encoding), taken)
    if (taken !== undefined) process.nextTick(taken)
    return true
  }

  /** An informational response: early hints are sent, others by the core alone. */
  inform(data: string, callback: Callback | undefined): boolean {
    if (data.startsWith('HTTP/1.1 103')) {
      const { lines } = headerLines(fieldsIn(data).slice(1, -2))
      if (lines !== '') this.exchange.hint(lines)
    }
    if (callback !== undefined) process.nextTick(callback)
    return true
  }

  end(given: unknown[]): void {
    const { res } = this
    const wasFinished = res.finished
    const node = Object.getPrototypeOf(res) as { end(...given: unknown[]): unknown }
    this.#isEnding = true
    this.#hasCallback ||= given.some((one) => typeof one === 'function')
    try {
      node.end.apply(res, given)
    } finally {
      this.#isEnding = false
    }
    if (wasFinished || !res.finished || this.#isOver) return
    if (this.#body !== undefined && !this.#isDropped) return this.#body.end()
    if (this.#body === undefined) {
      const isUnread = this.#hasBody && !this.req._consumed
      if (isUnread && this.exchange.bodyNow() !== undefined) this.#unread = this.exchange.pull()
      // The same after its callback and these events.
      if (this.#whole !== null && this.#isHeard()) this.#whole = ownOf(this.#whole)
      const body = res.statusCode === 205 ? null : this.#whole
      this.#respond(preparedResponse(body, this.#prepared()))
    }
    this.#finishSoon()
  }

  #finishSoon(): void {
    this.#isOver = true
    process.nextTick(this.#sent)
  }

  #prepared(): { readonly status: number; readonly head: HeaderLines; readonly headers: Pairs } {
    return { status: this.res.statusCode, head: this.#head!, headers: this.#pairs }
  }

  /** The response is sent from here on, as it is written. */
  #begin(): void {
    const body = (this.#body = new WrittenBody(this.socket.writableHighWaterMark, this))
    const sent: LazyBody =
      this.#trailers === undefined ? body : new TrailedBody(body, this.#trailers, this.#trailersOf())
    if (this.#waiting === undefined) this.#watch()
    this.#respond(preparedResponse(sent, this.#prepared()))
  }

  /** What `addTrailers` has added when the body has ended. */
  #trailersOf(): Record<string, () => string | undefined> {
    const valueOf = (name: string): string | undefined => {
      const fields = fieldsIn(this.res._trailer)
      return fields.find(([found]) => found.toLowerCase() === name.toLowerCase())?.[1]
    }
    const names = this.#trailers!.split(',').map((name) => name.trim())
    return Object.fromEntries(names.map((name) => [name, () => valueOf(name)]))
  }

  onTaken(): void {
    this.socket.touched()
  }

  onDrain(): void {
    process.nextTick(() => {
      ;(this.res as unknown as Record<symbol, boolean>)[NEED_DRAIN] = false
      this.res.emit('drain')
    })
  }

  onEnd(): void {
    process.nextTick(this.#sent)
  }

  onCancel(reason: unknown): void {
    // Middleware may cancel a body for which it has another response.
    if (reason !== undefined || !isBodiless(this.exchange, this.res.statusCode)) return this.#lose()
    this.#isDropped = true
    if (this.res.finished) this.#finishSoon()
  }

  // The seams of the request.

  read(): void {
    const { req } = this
    if (!req._consumed) {
      req._readableState.readingMore = false
      req._consumed = true
    }
    if (!this.#hasBody || this.#isDumped) return this.#endOfBody()
    const pulled = this.#unread ?? this.exchange.pull()
    this.#unread = undefined
    pulled.then(
      (piece) => {
        this.socket.touched()
        if (piece === undefined) this.#endOfBody()
        else req.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
      },
      (error: unknown) => {
        if (this.exchange.aborted) return this.#lose()
        this.#isRefused = true
        // Nobody else would respond.
        if (!this.#isOver && req.listenerCount('error') === 0) this.#giveUp(error)
        req.destroy(error as Error)
      },
    )
  }

  #endOfBody(): void {
    const { req } = this
    const pairs = this.#hasBody && !this.#isDumped ? this.exchange.trailerPairs() : []
    req.complete = true
    if (pairs.length > 0) req._addHeaderLines(pairs, pairs.length) // of a complete request they are trailers
    req.push(null)
  }

  destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const { req } = this
    if (!this.#isRefused && (!req.readableEnded || !req.complete)) {
      req.aborted = true
      req.emit('aborted')
      if (!this.#isOver) this.socket.destroy(error ?? undefined)
    }
    // As in Node: without a listener the error is not emitted, which would end the process.
    process.nextTick(() => callback(req.listenerCount('error') === 0 ? null : error))
  }
}

function read(this: NodeRequest): void {
  this[PAIR].read()
}

function destroy(this: NodeRequest, error: Error | null, callback: (error?: Error | null) => void): void {
  this[PAIR].destroy(error, callback)
}

function storeHeader(this: NodeResponse, line: string, headers: unknown): void {
  this[PAIR].storeHeader(line, headers)
}

function send(
  this: NodeResponse,
  data: Data,
  encoding?: BufferEncoding | null,
  callback?: Callback | null,
): boolean {
  return this[PAIR].send(data, encoding, callback ?? undefined)
}

function writeRaw(
  this: NodeResponse,
  data: string,
  encoding?: BufferEncoding | Callback,
  callback?: Callback,
): boolean {
  return this[PAIR].inform(data, typeof encoding === 'function' ? encoding : callback)
}

function end(this: NodeResponse, ...given: unknown[]): NodeResponse {
  this[PAIR].end(given)
  return this
}

function close(res: NodeResponse): void {
  if (res._closed) return
  res.destroyed = true
  res._closed = true
  res.emit('close')
}

function isUtf8(encoding: BufferEncoding | null | undefined): boolean {
  return !encoding || encoding === 'utf8' || encoding === 'utf-8'
}

function ownOf(data: Data): Data {
  return typeof data === 'string' ? data : new Uint8Array(data)
}

function bytesOf(data: Data, encoding: BufferEncoding | null | undefined): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data, encoding ?? 'utf8') : data
}
