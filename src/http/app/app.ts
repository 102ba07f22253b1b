/**
 * An app: routes, a fallback `fetch` and error handling. It responds to exchanges and owns no socket.
 *
 * If a handler returns a response synchronously, the app responds before `onExchange` returns, without a
 * promise. No error leaves this file: each becomes a response and is reported.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import diagnostics from 'node:diagnostics_channel'
import { isAbort, meters, promiseOf, whenSettled } from '../../base/index.ts'
import { type TransportCodes, TransportError } from '../../transport/internal.ts'
import { here } from '../../zone/internal.ts'
import { sendResponse } from './respond.ts'
import { type Exchange, TypeOf } from '../message/core-interface.ts'
import { carriedHeaders, getRequestId, withCarried } from './carried.ts'
import { type FailureRecord, recording, takeRecord } from './logged.ts'
import { HANDLES_REFUSALS, pathOf, StatusError, statusResponse } from './status-error.ts'
import { HttpError, statusOf } from '../errors.ts'
import { Finder, type Found } from './finder.ts'
import { HAS_PRIVATE_STATE, CorespunRequest } from '../fetch/request.ts'
import { ProxiedRequest } from '../fetch/proxied-request.ts'
import { bodyOf, CorespunResponse, isResponse } from '../fetch/response.ts'
import type { Compiled, CompiledRoutes, ErrorHandler, HttpRequest, Wrap } from './routes.ts'
import type { Proxies } from '../message/proxies.ts'
import type { Route } from './router.ts'
import type { Target } from '../message/target.ts'
import { Hub } from '../message/hub.ts'
import { responseOf } from './value.ts'

/** A message on the diagnostics channel `corespun:http:error`. */
export interface ErrorEvent {
  /** The value that was thrown. */
  readonly error: unknown
  /** The request; its body is readable until its response has been sent. */
  readonly request: HttpRequest
}

export interface AppParts {
  readonly routes: CompiledRoutes
  readonly fetch: ((request: Request) => unknown) | undefined
  readonly error: ErrorHandler | undefined
  readonly proxies: Proxies | undefined
}

/** A request whose asynchronous context is followed. */
interface Followed {
  readonly exchange: Exchange
  readonly request: CorespunRequest
  readonly where: string
  hasResponse: boolean
}

interface Refusal {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

const errors = diagnostics.channel('corespun:http:error')
const BAD_REQUEST = 'Bad Request'
const REASONS: Readonly<Record<number, string>> = {
  400: BAD_REQUEST,
  408: 'Request Timeout',
  413: 'Content Too Large',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

export class App {
  readonly #finder: Finder
  readonly #fetch: ((request: Request) => unknown) | undefined
  readonly #error: ErrorHandler | undefined
  readonly #proxies: Proxies | undefined
  readonly #unmatched: Wrap | undefined
  /** Set if `error` also makes 404 and 405 responses. */
  readonly #refusal: ErrorHandler | undefined
  /** What the WebSockets of its server have in common. */
  readonly hub: Hub
  #errorsCount = 0
  /** Set once an error has strayed: until then no request pays for it. */
  #contexts: AsyncLocalStorage<Followed> | undefined = undefined

  constructor({ routes, fetch, error, proxies }: AppParts) {
    this.#finder = new Finder(routes.router)
    this.#fetch = fetch
    this.#error = error
    this.#proxies = proxies
    this.#unmatched = routes.unmatched
    this.#refusal = error !== undefined && HANDLES_REFUSALS in error ? error : undefined
    this.hub = new Hub((cause, request, where) => void this.#report(cause, request as CorespunRequest, where))
  }

  /** Number of errors that no handler caught and no client caused. */
  get errorsCount(): number {
    return this.#errorsCount
  }

  /** From now on requests are followed through their promises and timers, so that `strayed` finds them. */
  follow(): void {
    this.#contexts ??= new AsyncLocalStorage()
  }

  /**
   * An error that no handler has caught. The request in whose context it happened fails with it, unless it
   * has its response. Returns whether one has failed.
   */
  strayed(error: unknown): boolean {
    const followed = this.#contexts?.getStore()
    if (followed === undefined || followed.hasResponse) return false
    followed.hasResponse = true
    this.#fail(followed.exchange, followed.request, error, followed.where)
    return true
  }

  /** Responds to a request, synchronously or later. Never throws. */
  readonly onExchange = (exchange: Exchange): void => {
    const found = this.#finder.find(exchange)
    const within = meters.request?.(exchange, found?.route?.pattern)
    if (within === undefined) this.#onFound(exchange, found)
    else within(this.#onFound.bind(this, exchange, found)) // a closure takes memory for each request
  }

  #onFound(exchange: Exchange, found: Found | undefined): void {
    if (found === undefined) return respondText(exchange, 400, BAD_REQUEST)
    const { route, onGet } = found
    if (onGet !== undefined && exchange.method === 'GET') this.#dispatch(exchange, onGet, found)
    else if (found.read.path === '*') this.#onAsterisk(exchange)
    else if (route === undefined) this.#onOther(exchange, found)
    else {
      const { methods } = route
      const { method } = exchange
      const compiled = methods.get(method) ?? (method === 'HEAD' ? onGet : undefined) ?? methods.get('*')
      if (compiled === undefined) this.#onOtherMethod(exchange, route, found)
      else this.#dispatch(exchange, compiled, found)
    }
  }

  #dispatch(exchange: Exchange, compiled: Compiled, { params, read }: Found): void {
    if (compiled.run !== undefined)
      return this.#run(exchange, compiled.run, this.#request(exchange, params, read), compiled.where)
    const { status, type, lines, body } = compiled.constant!
    exchange.respond(status, type, lines, body)
  }

  #onOtherMethod(exchange: Exchange, route: Route<Compiled>, found: Found): void {
    if (this.#fetch !== undefined) return this.#onOther(exchange, found)
    const allow = `allow: ${route.allow}\r\n`
    const isAsked = exchange.method === 'OPTIONS'
    if (this.#unmatched !== undefined || (this.#refusal !== undefined && !isAsked)) {
      const [status, body] = isAsked ? [204, null] : [405, 'Method Not Allowed']
      return this.#refuse(exchange, found.read, body, { status, headers: { allow: route.allow } })
    }
    if (isAsked) exchange.respond(204, TypeOf.none, allow, undefined)
    else exchange.respond(405, TypeOf.text, allow, 'Method Not Allowed')
  }

  /** Responds to a request without a route; runs the middleware for such requests. */
  #refuse(exchange: Exchange, target: Target, body: string | null, init: Refusal): void {
    const responded = (request: HttpRequest): unknown =>
      body === null || this.#refusal === undefined
        ? new CorespunResponse(body, init)
        : this.#refusal(new StatusError(init.status, body, init), request)
    const run = (this.#unmatched?.(responded) ?? responded) as (request: unknown) => unknown
    this.#run(exchange, run, this.#request(exchange, undefined, target), `${init.status}`)
  }

  /** Only `OPTIONS` may have the target `*` (RFC 9112, 3.2.4). */
  #onAsterisk(exchange: Exchange): void {
    if (exchange.method !== 'OPTIONS') return respondText(exchange, 400, BAD_REQUEST)
    exchange.respond(204, TypeOf.none, 'allow: GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE\r\n', undefined)
  }

  #onOther(exchange: Exchange, { read }: Found): void {
    if (this.#fetch === undefined && (this.#unmatched ?? this.#refusal) !== undefined)
      this.#refuse(exchange, read, 'Not Found', { status: 404 })
    else if (this.#fetch === undefined) respondText(exchange, 404, 'Not Found')
    else this.#run(exchange, this.#fetch, this.#request(exchange, undefined, read), 'fetch')
  }

  #request(exchange: Exchange, params: Found['params'], target: Target): CorespunRequest {
    const proxies = this.#proxies
    if (proxies === undefined) return new CorespunRequest(exchange, params, target)
    return new ProxiedRequest(exchange, params, target, proxies)
  }

  #run(
    exchange: Exchange,
    handle: (request: CorespunRequest) => unknown,
    request: CorespunRequest,
    where: string,
  ): void {
    if (here.labels === undefined) this.#begin(exchange, handle, request, where)
    else here.labels.run(where, () => this.#begin(exchange, handle, request, where))
  }

  #begin(
    exchange: Exchange,
    handle: (request: CorespunRequest) => unknown,
    request: CorespunRequest,
    where: string,
  ): void {
    if (this.#contexts === undefined) return this.#call(exchange, handle, request, where)
    const followed: Followed = { exchange, request, where, hasResponse: false }
    this.#contexts.run(followed, () => this.#call(exchange, handle, request, where))
  }

  #call(
    exchange: Exchange,
    handle: (request: CorespunRequest) => unknown,
    request: CorespunRequest,
    where: string,
  ): void {
    try {
      const value = handle(request)
      const promise = promiseOf(value)
      if (promise !== undefined) this.#later(exchange, request, promise, where)
      else this.#respond(exchange, request, value, where)
    } catch (error) {
      this.#fail(exchange, request, error, where)
    }
  }

  #later(exchange: Exchange, request: CorespunRequest, value: Promise<unknown>, where: string): void {
    exchange.retain()
    whenSettled(
      value,
      (response) => {
        try {
          this.#respond(exchange, request, response, where)
        } catch (error) {
          this.#fail(exchange, request, error, where)
        }
      },
      (error: unknown) => this.#fail(exchange, request, error, where),
    )
  }

  #respond(exchange: Exchange, request: CorespunRequest, value: unknown, where: string): void {
    if (this.#contexts !== undefined || recording.count > 0)
      return this.#respondWatched(exchange, request, value, where)
    const rest = sendResponse(exchange, value, where)
    if (rest !== undefined) this.#untilSent(exchange, request, rest, where)
  }

  /** The same where requests are followed or recorded. */
  #respondWatched(exchange: Exchange, request: CorespunRequest, value: unknown, where: string): void {
    const followed = this.#contexts?.getStore()
    if (followed !== undefined) followed.hasResponse = true
    const record = takeRecord(request)
    // An outer middleware has replaced an error.
    const sent = record === undefined ? value : responseOf(value, where)
    const rest = sendResponse(exchange, sent, where)
    if (record !== undefined) recordResponse(record, exchange, sent, 200)
    if (rest !== undefined) this.#untilSent(exchange, request, rest, where)
  }

  #untilSent(exchange: Exchange, request: CorespunRequest, rest: Promise<void>, where: string): void {
    // A response that has begun is already aborted; the exchange ignores the new one.
    rest.catch((error: unknown) => this.#fail(exchange, request, error, where))
  }

  #fail(exchange: Exchange, request: CorespunRequest, cause: unknown, where: string): void {
    try {
      this.#respondError(exchange, request, cause, where)
    } catch (error) {
      // Inspecting the thrown value throws: a proxy with such traps.
      this.#apologize(exchange, request, error)
    }
  }

  #respondError(exchange: Exchange, request: CorespunRequest, thrown: unknown, where: string): void {
    const cause = withAdvice(thrown, where)
    if (isResponse(cause)) return this.#respondLast(exchange, request, cause)
    // A client that has only half-closed would wait for a response.
    if (isClientDisconnected(cause) || (exchange.aborted && isAbort(cause))) return exchange.abort()
    const handled = this.#report(cause, request, where)
    const promise = promiseOf(handled)
    if (promise === undefined) return this.#respondLast(exchange, request, handled, cause)
    exchange.retain()
    whenSettled(
      promise,
      (response) => this.#respondLast(exchange, request, response, cause),
      (error: unknown) => {
        this.#reportFailure(error, request)
        this.#respondLast(exchange, request, undefined, cause)
      },
    )
  }

  /** Sends what `error` returned; a failure here ends with a plain 500. */
  #respondLast(exchange: Exchange, request: CorespunRequest, given: unknown, cause?: unknown): void {
    try {
      const value = carrying(request, given ?? statusResponse(cause, request), statusOf(cause))
      const record = recording.count > 0 ? takeRecord(request) : undefined
      const sent = record === undefined || value === undefined ? value : responseOf(value, 'error')
      const rest = sent === undefined ? undefined : sendResponse(exchange, sent, 'error')
      if (sent === undefined) respondText(exchange, statusOf(cause))
      if (record !== undefined) recordResponse(record, exchange, sent, statusOf(cause))
      rest?.catch((error: unknown) => {
        this.#reportFailure(error, request)
        exchange.abort()
      })
    } catch (error) {
      this.#apologize(exchange, request, error)
    }
  }

  #apologize(exchange: Exchange, request: CorespunRequest, error: unknown): void {
    this.#reportFailure(error, request)
    try {
      const value = carrying(request, undefined, 500)
      if (value === undefined) respondText(exchange, 500)
      else sendResponse(exchange, value, 'error')?.catch(() => exchange.abort()) // reported already
    } catch {
      respondText(exchange, 500) // the headers of the request's response cannot be sent
    }
  }

  /** Publishes the error and returns the result of `error`. */
  #report(cause: unknown, request: CorespunRequest, where: string): unknown {
    const isOurs = statusOf(cause) >= 500
    if (isOurs) this.#errorsCount += 1
    if (errors.hasSubscribers) errors.publish({ error: cause, request } satisfies ErrorEvent)
    if (this.#error === undefined) {
      if (!isOurs) return undefined // clients must not be able to fill the log
      const id = getRequestId(request)
      const named = `route ${where}${id === undefined ? '' : `, request ${id}`}`
      console.error(`corespun/http: ${request.method} ${pathOf(request)} failed (${named}):`, cause)
      return undefined
    }
    try {
      return this.#error(cause, request)
    } catch (error) {
      this.#reportFailure(error, request)
      return undefined
    }
  }

  /** Reports an error of the error handling itself. */
  #reportFailure(error: unknown, request: CorespunRequest): void {
    this.#errorsCount += 1
    if (errors.hasSubscribers) errors.publish({ error, request } satisfies ErrorEvent)
    console.error('corespun/http: the `error` option failed to make a response:', error)
  }
}

/** Adds the pending headers of the request to the response to an error. */
function carrying(request: CorespunRequest, value: unknown, status: number): unknown {
  const headers = carriedHeaders(request)
  if (headers === undefined) return value
  const text = (): Response => new CorespunResponse(REASONS[status] ?? BAD_REQUEST, { status })
  return withCarried(value === undefined ? text() : responseOf(value, 'error'), headers)
}

/** @param sent A response; `undefined`: the text of the status. */
function recordResponse(record: FailureRecord, exchange: Exchange, sent: unknown, status: number): void {
  const bytes =
    sent === undefined ? Buffer.byteLength(REASONS[status] ?? BAD_REQUEST) : bodyOf(sent as Response)
  const isSent = exchange.method !== 'HEAD' && typeof bytes === 'number'
  record(sent === undefined ? status : (sent as Response).status, isSent ? bytes : 0)
}

function respondText(exchange: Exchange, status: number, text = REASONS[status] ?? BAD_REQUEST): void {
  exchange.respond(status, TypeOf.text, '', text)
}

function isClientDisconnected(cause: unknown): boolean {
  return cause instanceof HttpError && cause.code === 'HTTP_CLIENT_DISCONNECTED'
}

/** Replaces errors caused by passing a request on, or by a handler for node:http, by errors with advice. */
function withAdvice(cause: unknown, where: string): unknown {
  if (cause instanceof TypeError && NODE_RESPONSE.test(cause.message))
    return new HttpError('HTTP_NODE_HANDLER', { where, reason: cause.message }, { cause })
  if (cause instanceof TypeError && isForeignRead(cause))
    return new HttpError('HTTP_REQUEST_CLASS', { reason: cause.message }, { cause })
  if (!(cause instanceof TransportError) || cause.code !== 'TRANSPORT_REFUSED') return cause
  const { path, what } = cause.facts as TransportCodes['TRANSPORT_REFUSED']
  const isRequest = what === `a ${CorespunRequest.name}`
  return isRequest ? new HttpError('HTTP_REQUEST_NOT_TRANSPORTABLE', { path }, { cause }) : cause
}

/** In the engine's sentences about an object that was taken for a response of node:http. */
const NODE_RESPONSE =
  /\b(?:setHeader|writeHead) is not a function$|\((?:reading|setting) '(?:setHeader|writeHead|statusCode)'\)$/

/** In the sentences of Node about an object that is not of its own class. */
const FOREIGN = /^Cannot read private member #| URL from \[object Request\]$|^Illegal invocation$/

/**
 * Whether a class of Node failed to read its private fields, which only its own objects have. Node 26 takes
 * other objects for a URL, and since 26.12 its getters check the class first.
 */
function isForeignRead({ message, stack }: TypeError): boolean {
  return (
    HAS_PRIVATE_STATE && FOREIGN.test(message) && /^\s+at .*node:internal\/deps\/undici\//m.test(stack ?? '')
  )
}
