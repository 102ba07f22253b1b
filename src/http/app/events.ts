/**
 * Answers that go on: server-sent events, lines of JSON, pieces of text, each from an iterable.
 *
 * The reader's pull is the iterable's: a client that reads slowly is not written ahead for, and a client that
 * goes ends the iterable, whose `finally` runs. A function gets a signal that is aborted then, for iterables
 * that wait.
 */
import {
  type Kind,
  type OptionsOf,
  TIMER_MS_MAX,
  abortSignal,
  anything,
  integer,
  optionsOf,
  shown,
} from '../../base/index.ts'
import { CorespunHeaders } from '../fetch/headers.ts'
import { wrong } from '../limits.ts'
import { CorespunResponse } from '../fetch/response.ts'
import type { HeadersInit } from '../fetch/standard.ts'

/** Values, in time or at once; a promise among the latter is awaited. */
export type BodySource<Value> =
  Iterable<Value> | AsyncIterable<Value> | ((signal: AbortSignal) => Iterable<Value> | AsyncIterable<Value>)

/** One server-sent event; a bare value is its `data`. */
export interface ServerEvent {
  /** A string as it is, anything else as JSON. */
  readonly data: unknown
  /** The event's name. Default: 'message', as the standard has it. */
  readonly event?: string
  /** What the browser sends as `last-event-id` when it connects again. */
  readonly id?: string
  /** After how many ms the browser shall connect again when the connection is lost: 0 to 2^31 - 1, whole. */
  readonly retryMs?: number
}

/** What streamed answers take. */
export interface BodyOptions {
  /** Default 200. */
  readonly status?: number
  readonly headers?: HeadersInit
  /** Ends the answer, well: a service that is about to stop. */
  readonly signal?: AbortSignal
}

/** What {@link events} takes. */
export interface EventsOptions extends BodyOptions {
  /**
   * A comment is sent when nothing else was for so long, in ms, so that nobody between gives up. Default
   * 15,000.
   */
  readonly heartbeatMs?: number
}

const STREAM = {
  status: integer(200, 599, 200),
  headers: anything as Kind<BodyOptions['headers']>,
  signal: abortSignal,
}
const EVENTS = { ...STREAM, heartbeatMs: integer(1, TIMER_MS_MAX, 15_000) }

const BEAT = ':\n\n'
const END = Symbol('end')
const BEAT_DUE = Symbol('beat')

/**
 * An answer of `text/event-stream`, for EventSource.
 * @param source Events ({@link ServerEvent}), or values that become their data. An event with a field that
 *   cannot be said cuts the answer.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function events(source: BodySource<unknown>, options?: EventsOptions): Response {
  const { heartbeatMs, signal, status, headers: given } = optionsOf(options, EVENTS, wrong, 'events()')
  const headers = new CorespunHeaders(given)
  headers.set('content-type', 'text/event-stream')
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  headers.set('x-accel-buffering', 'no')
  const stream = streamed(source, { encode: encodedEvent, signal, heartbeatMs, first: BEAT })
  return new CorespunResponse(stream, { status, headers })
}

/**
 * An answer of `application/x-ndjson`: each value as a line of JSON.
 * @throws {HttpError} `HTTP_ARGUMENT`. A value that JSON cannot say cuts the answer.
 */
export function ndjson(source: BodySource<unknown>, options?: BodyOptions): Response {
  const given = optionsOf(options, STREAM, wrong, 'ndjson()')
  const headers = new CorespunHeaders(given.headers)
  headers.set('content-type', 'application/x-ndjson')
  return continued(source, given, headers, (value) => {
    const text = JSON.stringify(value) as string | undefined
    if (text === undefined) throw new TypeError('ndjson: the value cannot be said in JSON')
    return `${text}\n`
  })
}

/**
 * An answer of pieces of text or bytes. Its content type is `text/plain` unless the headers say another.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function chunks(source: BodySource<string | Uint8Array>, options?: BodyOptions): Response {
  const given = optionsOf(options, STREAM, wrong, 'chunks()')
  const headers = new CorespunHeaders(given.headers)
  if (!headers.has('content-type')) headers.set('content-type', 'text/plain;charset=UTF-8')
  return continued(source, given, headers, (value) => value)
}

/**
 * What a handler gave, as {@link pieces}, when it goes on: an async iterable, or an iterator as of
 * `function*`.
 */
export function iterated(value: object): Response | undefined {
  const { toJSON, next } = value as { readonly toJSON?: unknown; readonly next?: unknown }
  const { [Symbol.asyncIterator]: later, [Symbol.iterator]: now } = value as AsyncIterable<string> &
    Iterable<string>
  const isIterator = typeof later === 'function' || (typeof next === 'function' && typeof now === 'function')
  return isIterator && typeof toJSON !== 'function' ? chunks(value as Iterable<string>) : undefined
}

/** An answer whose body is each value, encoded, as it comes. */
function continued<Value>(
  source: BodySource<Value>,
  { signal, status }: OptionsOf<typeof STREAM>,
  headers: CorespunHeaders,
  encode: How<Value>['encode'],
): Response {
  const stream = streamed(source, { encode, signal, heartbeatMs: 0, first: '' })
  return new CorespunResponse(stream, { status, headers })
}

interface How<Value> {
  readonly encode: (value: Value) => string | Uint8Array
  readonly signal: AbortSignal | undefined
  /** 0: none. */
  readonly heartbeatMs: number
  /** Sent before there is a value. */
  readonly first: string
}

function streamed<Value>(source: BodySource<Value>, how: How<Value>): ReadableStream<Uint8Array> {
  const reader = new SourceReader(source, how)
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => reader.pull(controller),
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** What a source gave: a value, its end, or why it failed. */
type Come<Value> = { readonly value: Value } | { readonly error: unknown } | typeof END

/**
 * One answer's way through its source.
 *
 * The signal may outlive thousands of answers, so it knows a reader by one listener that goes with it, and
 * nothing that was sent hangs on a promise that is still open.
 */
class SourceReader<Value> {
  readonly #how: How<Value>
  readonly #gone = new AbortController()
  readonly #values: AsyncIterator<Value> | Iterator<Value>
  /** Whether the source is asynchronous itself. */
  readonly #isLater: boolean
  readonly #onSignal = (): void => this.#wake?.()
  #first: string
  #isListening = false
  /** A value was asked for and has not been sent; a heartbeat does not ask for another. */
  #isAsked = false
  /** What the source gave last, until it is sent. */
  #come: Come<Value> | undefined
  /** The source has ended by itself: it need not be closed. */
  #isOver = false
  /** Ends the wait of the pull that goes on. */
  #wake: (() => void) | undefined

  constructor(source: BodySource<Value>, how: How<Value>) {
    this.#how = how
    this.#first = how.first
    ;[this.#values, this.#isLater] = iteratorOf(source, this.#gone.signal)
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (this.#first !== '') {
      controller.enqueue(bytesOf(this.#first))
      this.#first = ''
      return
    }
    try {
      const found = await this.#next()
      if (this.#gone.signal.aborted) return
      if (found === BEAT_DUE) return controller.enqueue(bytesOf(BEAT))
      if (found !== END && 'error' in found) throw found.error
      if (found !== END) return controller.enqueue(bytesOf(this.#how.encode(found.value)))
    } catch (error) {
      this.cancel(error)
      throw error
    }
    controller.close()
    // Ended by the signal, the source may still wait for its next value.
    this.cancel(this.#how.signal?.reason)
  }

  /** The client has gone, or the answer is over. */
  cancel(reason: unknown): void {
    this.#how.signal?.removeEventListener('abort', this.#onSignal)
    if (!this.#isOver) {
      this.#isOver = true
      this.#gone.abort(reason)
      const close = async (): Promise<unknown> => this.#values.return?.()
      // What a source throws while it is closed has nobody left to hear it.
      close().catch(() => {})
    }
    this.#wake?.()
  }

  /** What is to be sent next; waits for the source, the signal or the heartbeat, whichever is first. */
  async #next(): Promise<Come<Value> | typeof BEAT_DUE> {
    const { heartbeatMs, signal } = this.#how
    const isEnded = (): boolean => this.#come === undefined && signal?.aborted === true
    if (isEnded()) return END
    this.#listen()
    if (!this.#isAsked) this.#ask()
    if (this.#come === undefined) {
      const timer = heartbeatMs === 0 ? undefined : setTimeout(() => this.#wake?.(), heartbeatMs).unref()
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = undefined
      clearTimeout(timer)
    }
    if (isEnded()) return END
    const come = this.#come
    if (come === undefined) return BEAT_DUE
    this.#come = undefined
    this.#isAsked = false
    return come
  }

  #listen(): void {
    if (this.#isListening || this.#how.signal === undefined) return
    this.#isListening = true
    this.#how.signal.addEventListener('abort', this.#onSignal)
  }

  #ask(): void {
    this.#isAsked = true
    const come = (found: Come<Value>): void => {
      this.#come = found
      this.#wake?.()
    }
    this.#step().then(come, (error: unknown) => come({ error }))
  }

  /** The source's next value or its end; it is over when it ended, or failed to give one. */
  async #step(): Promise<Come<Value>> {
    let result: IteratorResult<Value>
    try {
      result = await this.#values.next()
      if (result === null || typeof result !== 'object')
        throw new TypeError(`the source of an answer: next() must give an object; received ${shown(result)}`)
      if (result.done === true) {
        this.#isOver = true
        return END
      }
    } catch (error) {
      this.#isOver = true
      throw error
    }
    // As `for await` has it: of an iterable that is not asynchronous each value is awaited.
    return { value: this.#isLater ? result.value : await result.value }
  }
}

/** What a source is read by, and whether that is asynchronous. */
function iteratorOf<Value>(
  source: BodySource<Value>,
  signal: AbortSignal,
): readonly [AsyncIterator<Value> | Iterator<Value>, boolean] {
  const values: unknown = typeof source === 'function' ? source(signal) : source
  if (values !== null && typeof values === 'object') {
    const { [Symbol.asyncIterator]: later, [Symbol.iterator]: now } = values as AsyncIterable<Value> &
      Iterable<Value>
    if (typeof later === 'function') return [later.call(values), true]
    if (typeof now === 'function') return [now.call(values), false]
  }
  throw wrong('events() and ndjson(): the source', 'an iterable, or a function that gives one', values)
}

function bytesOf(text: string | Uint8Array): Uint8Array {
  return typeof text === 'string' ? Buffer.from(text) : text
}

function encodedEvent(value: unknown): string {
  const { data, event, id, retryMs } = isEvent(value) ? value : ({ data: value } as ServerEvent)
  let text = ''
  if (event !== undefined) text += `event: ${oneLine('event', event)}\n`
  if (id !== undefined) text += `id: ${oneLine('id', id)}\n`
  if (retryMs !== undefined) text += `retry: ${wholeMs(retryMs)}\n`
  const body = typeof data === 'string' ? data : (JSON.stringify(data) as string | undefined)
  if (body === undefined) throw new TypeError('events: the data cannot be said in JSON')
  for (const line of body.split(/\r\n|\n|\r/)) text += `data: ${line}\n`
  return `${text}\n`
}

function isEvent(value: unknown): value is ServerEvent {
  if (value === null || typeof value !== 'object' || !('data' in value)) return false
  return Object.keys(value).every((key) => ['data', 'event', 'id', 'retryMs'].includes(key))
}

/** @throws {TypeError} For what is no text, or would become other lines of the stream. */
function oneLine(name: string, text: unknown): string {
  if (typeof text !== 'string')
    throw new TypeError(`events: ${name} must be a string; received ${shown(text)}`)
  if (/[\r\n\0]/.test(text)) throw new TypeError(`events: ${name} has a line break`)
  return text
}

/** @throws {TypeError} For what a browser would not read as a time. */
function wholeMs(retryMs: unknown): number {
  if (Number.isInteger(retryMs) && (retryMs as number) >= 0 && (retryMs as number) <= TIMER_MS_MAX)
    return retryMs as number
  const expected = `an integer from 0 to ${TIMER_MS_MAX}`
  throw new TypeError(`events: retryMs must be ${expected}; received ${shown(retryMs)}`)
}
