/**
 * `Request` of the Fetch standard over an exchange; its parts are created when they are read.
 *
 * It reads from the exchange, also after the response was sent. Only a body that was not read by then may be
 * lost, and reading it rejects with `HTTP_REQUEST_ENDED`. `clone()`, and whatever else needs a body twice,
 * creates Node's own Request, which is authoritative from then on. Instances pass `instanceof Request`.
 * Over 400 lines: one class, and what reads its private fields.
 */
import type { Certificate, Exchange } from '../message/core-interface.ts'
import { clientFault } from '../errors.ts'
import { CorespunHeaders } from './headers.ts'
import { decodeUtf8 } from '../message/text.ts'
import { NO_BYTES, bodyStream, gather, jsonOf, ownBytes, usedStream } from './request-body.ts'
import { areLoaded, native, whenLoaded } from './native.ts'
import { textStreamOf } from './response.ts'
import type { Inspect, RequestField } from '../message/standard.ts'
import { trailersOf } from './trailers.ts'
import type { ProxiedClient } from '../message/proxies.ts'
import { queryOf, type Target, urlOf } from '../message/target.ts'

export { NativeRequest } from './native.ts'

/** What is made when somebody looks. */
interface Looked {
  url: string
  headers: CorespunHeaders | undefined
  controller: AbortController | undefined
  /** The body as a stream, when it was asked for as one. */
  body: ReadableStream<Uint8Array> | undefined
  native: Request | undefined
  bodyUsed: boolean
}

/** For errors: what {@link exchangeOf} finds an exchange of. */
export const OWN_REQUEST = "a handler's request, by this copy of the package, before its response is sent"
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})
/**
 * The request itself, also where a `Proxy` of it or an object that inherits from it is `this`: those have no
 * private fields.
 */
const SELF = Symbol('self')

let ownOf: (request: CorespunRequest) => Request
let exchangeOfOwn: (request: CorespunRequest) => Exchange
/**
 * The whole body of a request, if it is there, has at most so many bytes and nobody has read or replaced it;
 * a view of the core's memory, which counts as read from now on.
 */
export let bodyNow: (request: object, bytesMax: number) => Uint8Array | undefined
/** A header, without making `Headers` for it; `undefined`: ask those, which exist, or are another's. */
export let headerNow: (request: object, name: string) => string | undefined
/** Names and values of the query in turn; `undefined`: read `url`, which is another's. */
export let queryNow: (request: object) => readonly string[] | undefined

/** The standard Request of one exchange, which handlers receive; parsed as far as they read it. */
export class CorespunRequest implements Request {
  readonly #exchange: Exchange
  readonly #params: Readonly<Record<string, string>>
  readonly #method: string
  readonly #target: Target
  #looked: Looked | undefined
  readonly [SELF]: this

  static {
    ownOf = (request) => request.#own()
    exchangeOfOwn = (request) => request.#exchange
    bodyNow = (request, bytesMax) => {
      if (!(#exchange in request) || request.text !== CorespunRequest.prototype.text) return undefined
      const looked = request.#look()
      if (looked.bodyUsed || looked.body !== undefined || looked.native !== undefined) return undefined
      if (request.#hasNoBody()) return NO_BYTES
      const bytes = request.#exchange.bodyNow()
      if (bytes === undefined || bytes.byteLength > bytesMax) return undefined
      looked.bodyUsed = true
      return bytes
    }
    headerNow = (request, name) => {
      if (!(#exchange in request) || request.#looked?.headers !== undefined) return undefined
      return Object.hasOwn(request, 'headers') ? undefined : request.#exchange.header(name)
    }
    queryNow = (request) =>
      #target in request && !Object.hasOwn(request, 'url') ? queryOf(request.#target) : undefined
  }

  /** @internal */
  constructor(exchange: Exchange, params: Readonly<Record<string, string>> | undefined, target: Target) {
    this.#exchange = exchange
    this.#params = params ?? NO_PARAMS
    this.#method = exchange.method
    this.#target = target
    this.#looked = undefined
    this[SELF] = this
  }

  #look(): Looked {
    return (this.#looked ??= {
      url: '',
      headers: undefined,
      controller: undefined,
      body: undefined,
      native: undefined,
      bodyUsed: false,
    })
  }

  get method(): string {
    return this[SELF].#method
  }

  get url(): string {
    const self = this[SELF]
    const looked = self.#look()
    if (looked.url !== '') return looked.url
    const exchange = self.#exchange
    const { tail, host } = self.#target
    const client = self.clientOf(exchange)
    const named = client?.host || host || exchange.header('host') || 'localhost'
    return (looked.url = urlOf(client?.scheme || exchange.scheme, named, tail))
  }

  /** What the route's pattern named, decoded and frozen; empty outside of a route. */
  get params(): Readonly<Record<string, string>> {
    return this[SELF].#params
  }

  /** Routers put their own here. */
  set params(value: unknown) {
    Object.defineProperty(this, 'params', { value, writable: true, configurable: true, enumerable: true })
  }

  /**
   * What trusted proxies state of the client; undefined where none is trusted.
   * @internal
   */
  protected clientOf(_exchange: Exchange): ProxiedClient | undefined {
    return undefined
  }

  /** The client's address; '' on a Unix socket and for injected requests. */
  get remoteAddress(): string {
    const self = this[SELF]
    const exchange = self.#exchange
    return self.clientOf(exchange)?.address ?? exchange.remoteAddress
  }

  /** The same, under the name that frameworks read. */
  get ip(): string {
    return this[SELF].remoteAddress
  }

  /** Some frameworks store their own here. */
  set ip(value: unknown) {
    Object.defineProperty(this, 'ip', { value, writable: true, configurable: true, enumerable: true })
  }

  /** @internal The port of the client's connection; 0: unknown, or a trusted proxy states the client. */
  get remotePort(): number {
    return this[SELF].clientOf(this[SELF].#exchange) === undefined ? this[SELF].#exchange.remotePort : 0
  }

  /** The certificate that the client has shown, verified; undefined without one. */
  get clientCertificate(): Certificate | undefined {
    return this[SELF].#exchange.clientCertificate
  }

  get headers(): CorespunHeaders {
    const self = this[SELF]
    const looked = self.#look()
    return (looked.headers ??= new CorespunHeaders(undefined, self.#exchange))
  }

  /** The trailers of a chunked body, once it has been read to its end; empty before. */
  get trailers(): CorespunHeaders {
    return trailersOf(this[SELF].#exchange)
  }

  /** Aborts if the client disconnects before the response is sent. */
  get signal(): AbortSignal {
    const self = this[SELF]
    const looked = self.#look()
    if (looked.controller === undefined) {
      const controller = (looked.controller = new AbortController())
      const exchange = self.#exchange
      if (exchange.aborted) controller.abort()
      else onAbort(exchange, () => controller.abort())
    }
    return looked.controller.signal
  }

  get body(): ReadableStream<Uint8Array<ArrayBuffer>> | null {
    type Body = ReadableStream<Uint8Array<ArrayBuffer>>
    const self = this[SELF]
    const looked = self.#look()
    if (looked.native !== undefined) return looked.native.body as Body | null
    if (looked.body !== undefined) return looked.body as Body
    if (looked.bodyUsed) return (looked.body = usedStream()) as Body
    if (self.#hasNoBody()) return null
    return (looked.body = bodyStream(self.#exchange)) as Body
  }

  get bodyUsed(): boolean {
    const looked = this[SELF].#looked
    if (looked === undefined) return false
    if (looked.native !== undefined) return looked.native.bodyUsed
    return looked.bodyUsed || (looked.body !== undefined && isDisturbed(looked.body))
  }

  #hasNoBody(): boolean {
    return this.#method === 'GET' || this.#method === 'HEAD' || this.#exchange.bodyBytes === 0
  }

  /** The whole body: at once when it is there. */
  #bytes(): Uint8Array | Promise<Uint8Array> {
    const looked = this.#look()
    if (looked.native !== undefined)
      return looked.native.arrayBuffer().then((buffer) => new Uint8Array(buffer))
    if (looked.bodyUsed) throw new TypeError('Request: the body has been read already')
    if (looked.body !== undefined) {
      return new (native().Response)(looked.body).arrayBuffer().then((buffer) => new Uint8Array(buffer))
    }
    if (this.#hasNoBody()) return NO_BYTES
    looked.bodyUsed = true
    const exchange = this.#exchange
    return exchange.bodyNow() ?? gather(exchange)
  }

  /**
   * The whole body, converted by `use`. The rejection of a pending read that nobody awaits is handled, so a
   * client that disconnects, or a response that is sent first, does not end the process.
   */
  #read<Found>(use: (bytes: Uint8Array, isOwn: boolean) => Found): Promise<Found> {
    try {
      const bytes = this.#bytes()
      if (!(bytes instanceof Promise)) return Promise.resolve(use(bytes, false))
      const read = bytes.then((found) => use(found, true))
      read.catch(() => {})
      return read
    } catch (error) {
      return Promise.reject(error)
    }
  }

  text(): Promise<string> {
    return this[SELF].#read(decodeUtf8)
  }

  /** The body's text as it comes. */
  textStream(): ReadableStream<string> {
    return textStreamOf(this.body)
  }

  /**
   * As the standard's.
   * @throws {SyntaxError} If the body is not JSON; the response is 400 unless the handler catches the error.
   */
  json(): Promise<unknown> {
    return this[SELF].#read(jsonOf)
  }

  bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return this[SELF].#read(ownBytes)
  }

  arrayBuffer(): Promise<ArrayBuffer> {
    return this[SELF].#read((bytes, isOwn) => {
      const { buffer, byteOffset, byteLength } = ownBytes(bytes, isOwn)
      return byteLength === buffer.byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)
    })
  }

  async blob(): Promise<Blob> {
    const headers = { 'content-type': this.headers.get('content-type') ?? '' }
    return new (native().Response)(await this.bytes(), { headers }).blob()
  }

  /**
   * As the standard's.
   * @throws {TypeError} If the body is not a form; the response is 400 unless the handler catches the error.
   */
  async formData(): Promise<FormData> {
    const type = this.headers.get('content-type')
    const headers: Record<string, string> = type === null ? {} : { 'content-type': type }
    const body = await this.bytes()
    try {
      return await new (native().Request)('http://localhost', { method: 'POST', headers, body }).formData()
    } catch (error) {
      throw clientFault(error)
    }
  }

  /** @throws {TypeError} When the body was read. */
  clone(): Request {
    return this[SELF].#own().clone()
  }

  /** The same in Node's own class, made once; it has the body from now on. */
  #own(): Request {
    const looked = this.#look()
    if (looked.native !== undefined) return looked.native
    const { headers, signal, bodyUsed } = this
    const body = bodyUsed ? NO_BYTES : (this.#whole() ?? this.body)
    const init = { method: this.#method, headers, signal, ...(body === null ? {} : { body, duplex: 'half' }) }
    const made = new (native().Request)(this.url, init as RequestInit)
    if (bodyUsed) void made.arrayBuffer() // never fails; Node's refuses what needs a body
    return (looked.native = made)
  }

  /** A copy of a body that has fully arrived and was not read yet; it remains valid after the response. */
  #whole(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#look().body !== undefined || this.#hasNoBody()) return undefined
    const body = this.#exchange.bodyNow()
    return body && new Uint8Array(body)
  }

  get cache(): RequestField<'cache'> {
    return 'default'
  }

  get credentials(): RequestField<'credentials'> {
    return 'same-origin'
  }

  get destination(): RequestField<'destination'> {
    return ''
  }

  get duplex(): RequestField<'duplex', 'half'> {
    return 'half'
  }

  get integrity(): string {
    return ''
  }

  get keepalive(): boolean {
    return false
  }

  get mode(): RequestField<'mode'> {
    return 'cors'
  }

  get redirect(): RequestField<'redirect'> {
    return 'follow'
  }

  get referrer(): string {
    return 'about:client'
  }

  get referrerPolicy(): RequestField<'referrerPolicy'> {
    return ''
  }

  get isReloadNavigation(): boolean {
    return false
  }

  get isHistoryNavigation(): boolean {
    return false
  }

  get [Symbol.toStringTag](): string {
    return 'Request'
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth: number, options: object, inspect: Inspect): string {
    const { method, url, headers, params } = this
    return `Request ${inspect({ method, url, headers, params }, options)}`
  }
}

whenLoaded(({ Request }) => Reflect.setPrototypeOf(CorespunRequest.prototype, Request.prototype))

/**
 * Where Node 20 and 22 keep what a Request is: its constructor, `fetch` and the getters of its prototype find
 * it on ours too. Later versions, and with them all that are loaded late, have private fields there, so the
 * list is empty.
 */
const STATE = areLoaded() ? Object.getOwnPropertySymbols(new (native().Request)('http://localhost')) : []
for (const symbol of STATE) {
  Object.defineProperty(CorespunRequest.prototype, symbol, {
    get(this: CorespunRequest): unknown {
      return Reflect.get(ownOf(this[SELF]), symbol)
    },
  })
}

/** Whether Node's Request reads requests of handlers only after they are unwrapped. */
export const HAS_PRIVATE_STATE = STATE.length === 0

/** Whether a stream has been read from; the types of Node lack this function. */
function isDisturbed(body: ReadableStream): boolean {
  const stream = process.getBuiltinModule('node:stream') as { isDisturbed?(body: ReadableStream): boolean }
  return stream.isDisturbed?.(body) === true
}

/** The request of a handler behind `value`, which may be a `Proxy` of it or inherit from it. */
function selfOf(value: unknown): CorespunRequest | undefined {
  return typeof value === 'object' && value !== null ? (value as Partial<CorespunRequest>)[SELF] : undefined
}

/** The exchange of a handler's request, until its response has been sent. */
export function exchangeOf(request: unknown): Exchange | undefined {
  const self = selfOf(request)
  const exchange = self === undefined ? undefined : exchangeOfOwn(self)
  return exchange?.isOver === true ? undefined : exchange
}

/** Node's own request behind any: ours is unwrapped, others are what they are. */
export function nativeRequest(request: unknown): unknown {
  const self = selfOf(request)
  return self === undefined ? request : ownOf(self)
}

/** Adds a listener for the client's disconnection; earlier listeners are kept. */
export function onAbort(exchange: Exchange, act: () => void): void {
  const before = exchange.onAbort
  exchange.onAbort =
    before === undefined
      ? act
      : () => {
          before()
          act()
        }
}
