/**
 * Streamed responses: server-sent events, lines of JSON, chunks of text, each from an iterable.
 *
 * The iterable is pulled as fast as the client reads. If the client disconnects, the iterable ends and its
 * `finally` runs; a function as source receives a signal that aborts then. Over 400 lines: three formats of
 * one body.
 */
import {
  type Kind,
  type OptionsOf,
  TIMER_MS_MAX,
  abortSignal,
  anything,
  integer,
  jsonFault,
  optionsOf,
  shown,
} from '../../base/index.ts'
import { CorespunHeaders, headerLines } from '../fetch/headers.ts'
import { bound } from '../../zone/internal.ts'
import { wrong } from '../message/limits.ts'
import { bytesOf, LazyBody } from '../fetch/lazy-body.ts'
import { CorespunResponse, type ResponseBody, preparedResponse } from '../fetch/response.ts'
import type { HeadersInit, ReadResult } from '../message/standard.ts'

/** The values of a streamed response: an iterable, or a function that returns one. Promises are awaited. */
export type BodySource<Value> =
  | Iterable<Value>
  | AsyncIterable<Value>
  | ((signal: AbortSignal) => Iterable<Value> | AsyncIterable<Value>)

/** One server-sent event. */
export interface ServerEvent {
  /** A string is sent unchanged, any other value as JSON. */
  readonly data: unknown
  /** The name of the event. Default: 'message', by the standard. */
  readonly event?: string
  /** The browser sends it as `last-event-id` when it reconnects. */
  readonly id?: string
  /** How long the browser waits before it reconnects, in ms: an integer from 0 to 2^31 - 1. */
  readonly retryMs?: number
}

/** Options of streamed responses. */
export interface BodyOptions {
  /** Status of the response, 200 to 599. Default 200. */
  readonly status?: number
  /** Headers of the response. Default: the content type alone. */
  readonly headers?: HeadersInit
  /** Ends the response normally when it aborts, for servers that are about to stop. */
  readonly signal?: AbortSignal
}

/** Options of {@link events}. */
export interface EventsOptions extends BodyOptions {
  /**
   * After this time without an event, in ms, a comment is sent so that proxies keep the connection open.
   * Default 15,000.
   */
  readonly heartbeatMs?: number
}

const STREAM = {
  status: integer(200, 599, 200),
  headers: anything as Kind<BodyOptions['headers']>,
  signal: abortSignal,
}
const EVENTS = { ...STREAM, heartbeatMs: integer(1, TIMER_MS_MAX, 15_000) }

/** The head of a response of chunks without options. */
const TEXT_HEADERS = { 'content-type': 'text/plain;charset=UTF-8' }
const TEXT = { head: headerLines(TEXT_HEADERS), headers: TEXT_HEADERS }
const HEARTBEAT = ':\n\n'
const DONE = Promise.resolve()
const END = Symbol('end')
const HEARTBEAT_DUE = Symbol('beat')

/**
 * Returns a response of `text/event-stream`, for EventSource.
 * @param source Events ({@link ServerEvent}), or values that become their `data`. An event with an invalid
 *   field aborts the response.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, events } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/': () => events([{ event: 'tick', data: 1 }]) } })
 * assert.match(await (await app.inject('/')).text(), /event: tick\ndata: 1/)
 * ```
 */
export function events(source: BodySource<unknown>, options?: EventsOptions): Response {
  const { heartbeatMs, signal, status, headers: given } = optionsOf(options, EVENTS, wrong, 'events()')
  const headers = new CorespunHeaders(given)
  headers.set('content-type', 'text/event-stream')
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  headers.set('x-accel-buffering', 'no')
  const body = new SourceBody(source, { encode: encodedEvent, signal, heartbeatMs, first: HEARTBEAT })
  return new CorespunResponse(body as unknown as ResponseBody, { status, headers })
}

/**
 * Returns a response of `application/x-ndjson`: each value is a line of JSON. A value that is not
 * JSON-serializable aborts the response.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, ndjson } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/': () => ndjson([{ id: 1 }, { id: 2 }]) } })
 * assert.equal(await (await app.inject('/')).text(), '{"id":1}\n{"id":2}\n')
 * ```
 */
export function ndjson(source: BodySource<unknown>, options?: BodyOptions): Response {
  const given = optionsOf(options, STREAM, wrong, 'ndjson()')
  const headers = new CorespunHeaders(given.headers)
  headers.set('content-type', 'application/x-ndjson')
  return continued(source, given, headers, (value) => {
    return `${jsonOfEvent('ndjson(): a value', value)}\n`
  })
}

/**
 * Returns a response of chunks of text or bytes. Its content type is `text/plain` unless `headers` has one.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { chunks, createApp } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/': () => chunks(['Hel', 'lo']) } })
 * assert.equal(await (await app.inject('/')).text(), 'Hello')
 * ```
 */
export function chunks(source: BodySource<string | Uint8Array>, options?: BodyOptions): Response {
  if (options === undefined) return preparedResponse(new SourceBody(source, UNCHANGED), TEXT)
  const given = optionsOf(options, STREAM, wrong, 'chunks()')
  const headers = new CorespunHeaders(given.headers)
  if (!headers.has('content-type')) headers.set('content-type', TEXT_HEADERS['content-type'])
  return continued(source, given, headers, UNCHANGED.encode)
}

/**
 * Returns the response of a handler's value that is an async iterable, or an iterator such as that of
 * `function*`. Other values return `undefined`.
 */
export function iterated(value: object): Response | undefined {
  const { toJSON, next } = value as { readonly toJSON?: unknown; readonly next?: unknown }
  const { [Symbol.asyncIterator]: later, [Symbol.iterator]: now } = value as AsyncIterable<string> &
    Iterable<string>
  const isIterator = typeof later === 'function' || (typeof next === 'function' && typeof now === 'function')
  return isIterator && typeof toJSON !== 'function' ? chunks(value as Iterable<string>) : undefined
}

function continued<Value>(
  source: BodySource<Value>,
  { signal, status }: OptionsOf<typeof STREAM>,
  headers: CorespunHeaders,
  encode: How<Value>['encode'],
): Response {
  const body = new SourceBody(source, { encode, signal, heartbeatMs: 0, first: '' })
  return new CorespunResponse(body as unknown as ResponseBody, { status, headers })
}

interface How<Value> {
  readonly encode: (value: Value) => string | Uint8Array
  readonly signal: AbortSignal | undefined
  /** 0: none. */
  readonly heartbeatMs: number
  /** Sent before there is a value. */
  readonly first: string
}

/** A result of the source: a value, the end, or an error. */
type Result<Value> = { readonly value: Value } | { readonly error: unknown } | typeof END

/** Chunks as the source yields them. */
const UNCHANGED: How<string | Uint8Array> = {
  encode: (chunk) => chunk,
  signal: undefined,
  heartbeatMs: 0,
  first: '',
}

/**
 * The body of a response that is read from its source: no stream is between the source and the core.
 *
 * The signal may outlive thousands of responses, so a body adds one listener and removes it at its end.
 */
class SourceBody<Value> extends LazyBody {
  readonly #how: How<Value>
  /** Passed to a source that is a function. */
  readonly #closed: AbortController | undefined
  /** Nothing but an asynchronous source is waited for. */
  readonly #isPlain: boolean
  #isCancelled = false
  readonly #values: AsyncIterator<Value> | Iterator<Value>
  /** Whether the source is asynchronous itself. */
  readonly #isLater: boolean
  readonly #onSignal = (): void => this.#wake?.()
  #first: string
  #isListening = false
  /** A value was asked for and has not been sent; a heartbeat does not ask for another. */
  #isAsked = false
  /** The last result of the source, until it is sent. */
  #result: Result<Value> | undefined
  /** The source has ended and need not be closed. */
  #isOver = false
  /** Ends the wait of the pull that goes on. */
  #wake: (() => void) | undefined

  constructor(source: BodySource<Value>, how: How<Value>) {
    super()
    this.#how = how
    this.#first = how.first
    this.#closed = typeof source === 'function' ? new AbortController() : undefined
    const [values, isLater] = iteratorOf(source, this.#closed?.signal)
    // It is read when the handler has returned.
    this.#values = bound(values)
    this.#isLater = isLater
    this.#isPlain = this.#isLater && how.signal === undefined && how.heartbeatMs === 0 && how.first === ''
  }

  override read(): unknown {
    return this.#isPlain ? this.#values.next() : this.#readAny()
  }

  override chunk(result: unknown): Uint8Array | undefined {
    if (!this.#isPlain) return super.chunk(result)
    const wasOver = this.#isOver
    this.#isOver = true // as `for await`: a source whose result is broken is not closed
    const { done, value } = checked(result as IteratorResult<Value>)
    if (done === true) return undefined
    this.#isOver = wasOver
    return bytesOf(this.#how.encode(value))
  }

  override failed(error: unknown): void {
    this.#isOver = true
    this.#end(error)
  }

  async #readAny(): Promise<ReadResult> {
    if (this.#first !== '') {
      const value = bytesOf(this.#first)
      this.#first = ''
      return { done: false, value }
    }
    try {
      const found = await this.#next()
      if (this.#isCancelled) return { done: true }
      if (found === HEARTBEAT_DUE) return { done: false, value: bytesOf(HEARTBEAT) }
      if (found !== END && 'error' in found) throw found.error
      if (found !== END) return { done: false, value: bytesOf(this.#how.encode(found.value)) }
    } catch (error) {
      this.#end(error)
      throw error
    }
    // Ended by the signal, the source may still wait for its next value.
    this.#end(this.#how.signal?.reason)
    return { done: true }
  }

  /** The client disconnected. */
  override cancel(reason: unknown): Promise<void> {
    this.#end(reason)
    return DONE
  }

  override again(): undefined {
    return undefined
  }

  #end(reason: unknown): void {
    this.#how.signal?.removeEventListener('abort', this.#onSignal)
    this.#isCancelled = true
    if (!this.#isOver) {
      this.#isOver = true
      this.#closed?.abort(reason)
      const close = async (): Promise<unknown> => this.#values.return?.()
      // Errors of a source that is being closed are ignored.
      close().catch(() => {})
    }
    this.#wake?.()
  }

  /** Waits for the source, the signal or the heartbeat, whichever comes first. */
  async #next(): Promise<Result<Value> | typeof HEARTBEAT_DUE> {
    const { heartbeatMs, signal } = this.#how
    const isEnded = (): boolean => this.#result === undefined && signal?.aborted === true
    if (isEnded()) return END
    this.#listen()
    if (!this.#isAsked) this.#ask()
    if (this.#result === undefined) {
      const timer = heartbeatMs === 0 ? undefined : setTimeout(() => this.#wake?.(), heartbeatMs).unref()
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = undefined
      clearTimeout(timer)
    }
    if (isEnded()) return END
    const result = this.#result
    if (result === undefined) return HEARTBEAT_DUE
    this.#result = undefined
    this.#isAsked = false
    return result
  }

  #listen(): void {
    if (this.#isListening || this.#how.signal === undefined) return
    this.#isListening = true
    this.#how.signal.addEventListener('abort', this.#onSignal)
  }

  #ask(): void {
    this.#isAsked = true
    const settle = (found: Result<Value>): void => {
      this.#result = found
      this.#wake?.()
    }
    this.#step().then(settle, (error: unknown) => settle({ error }))
  }

  async #step(): Promise<Result<Value>> {
    let result: IteratorResult<Value>
    try {
      result = checked(await this.#values.next())
      if (result.done === true) {
        this.#isOver = true
        return END
      }
    } catch (error) {
      this.#isOver = true
      throw error
    }
    // Like `for await`: values of a synchronous iterable are awaited.
    return { value: this.#isLater ? result.value : await result.value }
  }
}

/** @throws {TypeError} If `result` is not what `next()` may return. */
function checked<Value>(result: IteratorResult<Value>): IteratorResult<Value> {
  if (result !== null && typeof result === 'object') return result
  throw new TypeError(`the source of a response: next() must return an object; received ${shown(result)}`)
}

/** The iterator of a source, and whether it is asynchronous. */
function iteratorOf<Value>(
  source: BodySource<Value>,
  signal: AbortSignal | undefined,
): readonly [AsyncIterator<Value> | Iterator<Value>, boolean] {
  const values: unknown = typeof source === 'function' ? source(signal!) : source
  if (values !== null && typeof values === 'object') {
    const { [Symbol.asyncIterator]: later, [Symbol.iterator]: now } = values as AsyncIterable<Value> &
      Iterable<Value>
    if (typeof later === 'function') return [later.call(values), true]
    if (typeof now === 'function') return [now.call(values), false]
  }
  throw wrong(
    'the source of events(), ndjson() or chunks()',
    'an iterable, or a function that returns one',
    values,
  )
}

function encodedEvent(value: unknown): string {
  const { data, event, id, retryMs } = isEvent(value) ? value : ({ data: value } as ServerEvent)
  let text = ''
  if (event !== undefined) text += `event: ${oneLine('event', event)}\n`
  if (id !== undefined) text += `id: ${oneLine('id', id)}\n`
  if (retryMs !== undefined) text += `retry: ${wholeMs(retryMs)}\n`
  const body = typeof data === 'string' ? data : jsonOfEvent('events(): data', data)
  for (const line of body.split(/\r\n|\n|\r/)) text += `data: ${line}\n`
  return `${text}\n`
}

/** @throws {TypeError} that names the part which is not JSON-serializable. */
function jsonOfEvent(name: string, value: unknown): string {
  try {
    const text = JSON.stringify(value) as string | undefined
    if (text !== undefined) return text
  } catch (cause) {
    const fault = jsonFault(value)
    if (fault === undefined) throw cause // of a toJSON() or a getter
    throw new TypeError(`${name} must be JSON-serializable; received ${fault}`, { cause })
  }
  throw new TypeError(`${name} must be JSON-serializable; received ${shown(value)}`)
}

function isEvent(value: unknown): value is ServerEvent {
  if (value === null || typeof value !== 'object' || !('data' in value)) return false
  return Object.keys(value).every((key) => ['data', 'event', 'id', 'retryMs'].includes(key))
}

function oneLine(name: string, text: unknown): string {
  if (typeof text !== 'string')
    throw new TypeError(`events: ${name} must be a string; received ${shown(text)}`)
  if (/[\r\n\0]/.test(text)) throw new TypeError(`events: ${name} has a line break`)
  return text
}

function wholeMs(retryMs: unknown): number {
  if (Number.isInteger(retryMs) && (retryMs as number) >= 0 && (retryMs as number) <= TIMER_MS_MAX)
    return retryMs as number
  const expected = `an integer from 0 to ${TIMER_MS_MAX}`
  throw new TypeError(`events: retryMs must be ${expected}; received ${shown(retryMs)}`)
}
