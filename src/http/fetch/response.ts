/**
 * `Response` as the Fetch standard has it, made of nothing but its arguments until somebody looks.
 *
 * A body that is a string or bytes stays one on its way to the core. Streams, forms and blobs, and everything
 * that reads a body back (`text()`, `clone()`, ...), are left to Node's own Response, which is made on demand
 * and then is the truth. Instances pass `instanceof Response` in both directions. Over 400 lines: the class
 * has all of the standard's members, and what they share is private to it.
 */
import { type Exchange, TypeOf } from '../message/core-interface.ts'
import { FileBody } from './file-body.ts'
import { headerLines, type HeaderLines, CorespunHeaders } from './headers.ts'
import { LazyBody } from './lazy-body.ts'
import { isNative, native, whenLoaded } from './native.ts'
import type { HeadersInit, Inspect } from '../message/standard.ts'

export { NativeResponse } from './native.ts'

/** What a body may be made from. */
export type ResponseBody = ConstructorParameters<typeof globalThis.Response>[0]
type Init = ResponseInit & { readonly headers?: HeadersInit }

/** A body without a stream. */
type Whole = string | Uint8Array

/** A head that is ready to be sent, and the same for who looks. */
interface Prepared {
  /** Default 200. */
  readonly status?: number
  readonly head: HeaderLines
  readonly headers: HeadersInit
}

/** What a response is on its way out: all there is when `stream` is undefined. */
export interface Parts {
  readonly status: number
  readonly head: HeaderLines
  readonly body: Whole | LazyBody | undefined
  readonly stream: ReadableStream<Uint8Array> | undefined
}

const EMPTY_HEAD: HeaderLines = { type: TypeOf.none, lines: '', length: undefined }
const TEXT_HEAD: HeaderLines = { type: TypeOf.text, lines: '', length: undefined }
const JSON_HEAD: HeaderLines = { type: TypeOf.json, lines: '', length: undefined }
const JSON_TYPE = 'application/json'
const TEXT_TYPE = 'text/plain;charset=UTF-8'
const FORM_TYPE = 'application/x-www-form-urlencoded;charset=UTF-8'
const NULL_BODY = new Set([101, 103, 204, 205, 304])
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Marks a body that `Response.json` made. */
const JSON_MADE = Symbol('json')

/** The bodies behind streams that `.body` made: one that nobody has read is taken back as it was. */
const sources = new WeakMap<ReadableStream, { source: Whole | LazyBody; touched: boolean }>()

let partsOf: (response: CorespunResponse) => Parts
let isOwn: (value: object) => value is CorespunResponse
let nativeOf: (response: CorespunResponse) => Response | undefined
let ownBody: (response: CorespunResponse) => Whole | LazyBody | null | undefined
let canRepeat: (response: CorespunResponse) => boolean
let prepare: (response: CorespunResponse, body: Whole | LazyBody | null, prepared: Prepared) => void

/**
 * The standard `Response`, without a stream for bodies that are whole.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { Response } from 'corespun/http'
 *
 * const response = Response.json({ id: 7 }, { status: 201 })
 * assert.equal(response.status, 201)
 * assert.deepEqual(await response.json(), { id: 7 })
 * ```
 */
export class CorespunResponse implements Response {
  readonly #status: number
  readonly #statusText: string
  #headers: CorespunHeaders | undefined
  /** String, bytes and lazy bodies as they are; `null`: none; undefined: it is in `#native`. */
  #body: Whole | LazyBody | null | undefined
  /** Content type that the body implies; '' when it implies none. */
  #type: string
  #native: Response | undefined
  /** Headers that were made ready before, until somebody looks. */
  #prepared: Prepared | undefined

  static {
    partsOf = (response) => response.#parts()
    isOwn = (value): value is CorespunResponse => #native in value
    nativeOf = (response) => response.#native
    ownBody = (response) => response.#body
    canRepeat = (response) => !(response.#body instanceof LazyBody) || response.#body.again() !== undefined
    prepare = (response, body, prepared) => {
      response.#body = body
      response.#prepared = prepared
    }
  }

  /**
   * @param body A string, bytes, a stream or whatever else the standard takes.
   * @param init `status` (200 to 599), `statusText` and `headers`.
   * @throws {RangeError} For a status outside of 200 to 599.
   * @throws {TypeError} For a body with a status that does not allow one, and for invalid headers.
   */
  constructor(body?: ResponseBody, init?: Init)
  /** @internal */
  constructor(body?: ResponseBody, init?: Init, made?: unknown)
  constructor(body?: ResponseBody, init?: Init, made?: unknown) {
    this.#status = 200
    this.#statusText = ''
    this.#headers = undefined
    this.#type = ''
    this.#native = undefined
    this.#prepared = undefined
    if (init !== undefined && init !== null) {
      const { status, statusText, headers } = init
      if (status !== undefined) this.#status = statusOf(status)
      if (statusText !== undefined && statusText !== '') this.#statusText = checkedText(statusText)
      // Copied now: later changes of `headers` are not seen, and bad ones throw here.
      if (headers !== undefined) this.#headers = new CorespunHeaders(headers)
    }
    if (typeof body === 'string') {
      this.#body = body
      this.#type = made === JSON_MADE ? JSON_TYPE : TEXT_TYPE
    } else if (body === null || body === undefined) {
      this.#body = null
    } else {
      this.#body = undefined
      this.#takeBody(body)
    }
    if (NULL_BODY.has(this.#status) && this.#body !== null)
      throw new TypeError(`Response: status ${this.#status} has no body`)
  }

  #takeBody(body: NonNullable<ResponseBody>): void {
    // `slice` of a Buffer shares its memory.
    if (body instanceof Uint8Array) this.#body = new Uint8Array(body)
    else if (body instanceof LazyBody) this.#body = body
    else if (body instanceof ArrayBuffer) this.#body = new Uint8Array(body.slice(0))
    else if (ArrayBuffer.isView(body))
      this.#body = new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice()
    else if (body instanceof URLSearchParams) {
      this.#body = body.toString()
      this.#type = FORM_TYPE
    } else if (body instanceof ReadableStream) this.#takeStream(body as ReadableStream<Uint8Array>)
    else if (typeof body !== 'object') {
      this.#body = String(body)
      this.#type = TEXT_TYPE
    } else {
      this.#native = new (native().Response)(body, { status: this.#status })
      this.#type = this.#native.headers.get('content-type') ?? ''
    }
  }

  #takeStream(stream: ReadableStream<Uint8Array>): void {
    const known = sources.get(stream)
    if (known !== undefined && !known.touched && !stream.locked) {
      known.touched = true // what is taken back cannot be read there as well
      this.#body = known.source
    } else this.#native = new (native().Response)(stream, { status: this.#status })
  }

  /** As the standard's: 200, `application/json`. @throws {TypeError} If JSON cannot express it. */
  static json(data: unknown, init?: Init): CorespunResponse {
    const text = JSON.stringify(data)
    if (text === undefined) throw new TypeError('Response.json: the value is not JSON-serializable')
    return new CorespunResponse(text, init, JSON_MADE)
  }

  /** As the standard's: a status of 3xx and `location`. @throws {RangeError} For another status. */
  static redirect(url: string | URL, status = 302): CorespunResponse {
    const location = new URL(url).href
    if (!REDIRECTS.has(status)) throw new RangeError(`Response.redirect: ${status} is not a redirect status`)
    return new CorespunResponse(null, { status, headers: { location } })
  }

  /** As the standard's: a response that represents a network error. */
  static error(): Response {
    return native().Response.error()
  }

  /** The status code. Default 200. */
  get status(): number {
    return this.#status
  }

  /** The reason phrase. Default ''. */
  get statusText(): string {
    return this.#statusText
  }

  /** Whether the status is 200 to 299. */
  get ok(): boolean {
    return this.#status >= 200 && this.#status <= 299
  }

  /** Always `default`: a server makes no other kind. */
  get type(): Response['type'] {
    return 'default'
  }

  /** Always '': it was not fetched. */
  get url(): string {
    return ''
  }

  /** Always false: it was not fetched. */
  get redirected(): boolean {
    return false
  }

  /** Its headers, mutable. */
  get headers(): CorespunHeaders {
    const headers = (this.#headers ??= new CorespunHeaders(this.#prepared?.headers))
    this.#prepared = undefined
    if (this.#type !== '') {
      if (!headers.has('content-type')) headers.set('content-type', this.#type)
      this.#type = ''
    }
    return headers
  }

  /** The body as a stream; `null` without one. */
  get body(): ReadableStream<Uint8Array<ArrayBuffer>> | null {
    type Body = ReadableStream<Uint8Array<ArrayBuffer>>
    if (this.#native !== undefined) return this.#native.body as Body | null
    if (this.#body === null || this.#body === undefined) return null
    const stream = streamOf(this.#body)
    this.#body = undefined
    this.#native = new (native().Response)(stream, { status: this.#status })
    // Node's Response may wrap its stream, and callers only see the wrapper that `.body` returns.
    const shown = this.#native.body as Body
    const record = sources.get(stream)!
    if (shown !== stream) sources.set(shown, record)
    return shown
  }

  /** Whether the body has been read. */
  get bodyUsed(): boolean {
    return this.#native?.bodyUsed ?? false
  }

  /** The same in Node's own class, made once; the body is there from now on. */
  #own(): Response {
    if (this.#native !== undefined) return this.#native
    const body = this.#body instanceof LazyBody ? streamOf(this.#body) : this.#body
    this.#body = undefined
    this.#native = new (native().Response)(body as ResponseBody, { status: this.#status })
    return this.#native
  }

  /** The body as a string. @throws {TypeError} If it has been read. */
  async text(): Promise<string> {
    return this.#own().text()
  }

  /** The body's text as it comes. */
  textStream(): ReadableStream<string> {
    return textStreamOf(this.body)
  }

  /** The body, parsed as JSON. @throws {SyntaxError} If it is not JSON. */
  async json(): Promise<unknown> {
    return this.#own().json()
  }

  /** The body as bytes. */
  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#own().arrayBuffer()
  }

  /** The body as bytes. */
  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await this.#own().arrayBuffer())
  }

  /** The body as a Blob of its content type. */
  async blob(): Promise<Blob> {
    const headers = { 'content-type': this.headers.get('content-type') ?? '' }
    return new (native().Response)(await this.#own().arrayBuffer(), { headers }).blob()
  }

  /** The body as a form. */
  async formData(): Promise<FormData> {
    const type = this.headers.get('content-type')
    const headers = type === null ? {} : { 'content-type': type }
    return new (native().Response)(await this.#own().arrayBuffer(), { headers }).formData()
  }

  /** A copy with a body of its own. @throws {TypeError} If the body has been read. */
  clone(): CorespunResponse {
    const init = { status: this.#status, statusText: this.#statusText, headers: this.headers }
    const again = this.#body instanceof LazyBody ? this.#body.again() : this.#body
    if (again === undefined) return new CorespunResponse(this.#own().clone().body, init)
    const copy = new CorespunResponse(null, init)
    copy.#body = again
    return copy
  }

  /** `Response`. */
  get [Symbol.toStringTag](): string {
    return 'Response'
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth: number, options: object, inspect: Inspect): string {
    const { status, statusText, headers, ok, bodyUsed } = this
    return `Response ${inspect({ status, statusText, headers, ok, bodyUsed }, options)}`
  }

  #parts(): Parts {
    const body = this.#body
    if (body === undefined) return this.#streamParts()
    return { status: this.#status, head: this.#head(), body: body ?? undefined, stream: undefined }
  }

  #head(): HeaderLines {
    if (this.#prepared !== undefined) return this.#prepared.head
    if (this.#headers !== undefined) return headerLines(this.headers)
    if (this.#type === '') return EMPTY_HEAD
    if (this.#type === JSON_TYPE) return JSON_HEAD
    return this.#type === TEXT_TYPE ? TEXT_HEAD : headerLines({ 'content-type': this.#type })
  }

  #streamParts(): Parts {
    const native = this.#native!
    if (native.bodyUsed) throw new TypeError('Response: the body was read before the response was sent')
    const stream = native.body as ReadableStream<Uint8Array> | null
    const known = stream === null ? undefined : sources.get(stream)
    const head = this.#head()
    if (known !== undefined && !known.touched && !stream!.locked)
      return { status: this.#status, head, body: known.source, stream: undefined }
    return { status: this.#status, head, body: undefined, stream: stream ?? undefined }
  }
}

whenLoaded(({ Response }) => {
  Reflect.setPrototypeOf(CorespunResponse, Response)
  Reflect.setPrototypeOf(CorespunResponse.prototype, Response.prototype)
})
Object.defineProperty(CorespunResponse, 'name', { value: 'Response' })
Object.defineProperty(CorespunResponse, Symbol.hasInstance, {
  value(this: { prototype: object }, value: unknown) {
    if (typeof value !== 'object' || value === null) return false
    return this === CorespunResponse ? isResponse(value) : this.prototype.isPrototypeOf(value)
  },
})

/** Whether `value` is a response, ours or Node's. */
export function isResponse(value: unknown): value is Response {
  return typeof value === 'object' && value !== null && (isOwn(value) || isNative('Response', value))
}

/**
 * The same with headers of its own: a whole body belongs to both then, a stream to the copy.
 * @throws {TypeError} When its body was read.
 */
export function copyOf(response: Response): CorespunResponse {
  if (isOwn(response) && nativeOf(response) === undefined && canRepeat(response)) return response.clone()
  // What can be read only once is taken over: of a clone, each half would wait for the other to be cancelled.
  const { status, statusText, headers, body } = response
  return new CorespunResponse(body, { status, statusText, headers })
}

/**
 * The same with headers that can be changed, as those of our `Response.redirect`. Those of Node's cannot,
 * which a handler calls that reads the global before anybody else does.
 */
export function changeable(response: Response): Response {
  if (isOwn(response) || !REDIRECTS.has(response.status)) return response
  // A fetched one stays as it was, and so does a class of the program's own.
  const isMade = response.url === '' && response.body === null
  const isNodes = Object.getPrototypeOf(response) === native().Response.prototype
  return isMade && isNodes ? copyOf(response) : response
}

/** How many bytes a body has that is whole, or a file; otherwise what it is read from, which takes it. */
export function bodyOf(response: Response): number | LazyBody | ReadableStream<Uint8Array> {
  const body = isOwn(response) ? ownBody(response) : undefined
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (body instanceof FileBody) return body.part.bytes
  if (body instanceof LazyBody) return body
  return body?.byteLength ?? (response.body as ReadableStream<Uint8Array> | null) ?? 0
}

/** Take a response apart for sending. @throws {TypeError} When its body was read. */
export function responseParts(response: Response): Parts {
  if (isOwn(response)) return partsOf(response)
  if (response.bodyUsed) throw new TypeError('Response: the body was read before the response was sent')
  const { status, headers, url } = response
  const stream = (response.body ?? undefined) as ReadableStream<Uint8Array> | undefined
  return { status, head: headerLines(fitted(headers, url, stream)), body: undefined, stream }
}

/** The headers that fit the body: `fetch` decodes one and leaves the headers of the encoded one. */
export function fitted(headers: Headers, url: string | undefined, body: unknown): Headers {
  const isFetched = url !== undefined && url !== '' && body !== undefined && body !== null
  if (!isFetched || !headers.has('content-encoding')) return headers
  const left = new CorespunHeaders(headers)
  left.delete('content-encoding')
  left.delete('content-length')
  return left
}

/**
 * A response to be sent with headers that were made ready before. Bytes are not copied, and no content type
 * is added.
 */
export function preparedResponse(body: Whole | LazyBody | null, prepared: Prepared): CorespunResponse {
  const { status } = prepared
  const response = new CorespunResponse(null, status === undefined ? undefined : { status })
  prepare(response, body, prepared)
  return response
}

/** A stream that is made when somebody reads: of one chunk, or of those of a lazy body. */
function streamOf(source: Whole | LazyBody): ReadableStream<Uint8Array> {
  const record = { source, touched: false }
  if (source instanceof LazyBody) {
    const stream = source.stream(() => (record.touched = true))
    sources.set(stream, record)
    return stream
  }
  const stream = new ReadableStream(
    {
      type: 'bytes' as const,
      pull(controller: ReadableByteStreamController) {
        record.touched = true
        const bytes = typeof source === 'string' ? new TextEncoder().encode(source) : new Uint8Array(source)
        if (bytes.byteLength > 0) controller.enqueue(bytes)
        controller.close()
        controller.byobRequest?.respond(0) // a reader that brought its own buffer gets it back
      },
      cancel() {
        record.touched = true
      },
    },
    { highWaterMark: 0 },
  )
  sources.set(stream, record)
  return stream
}

/** A body's text, piece by piece, whole characters each. */
export function textStreamOf(body: ReadableStream<Uint8Array> | null): ReadableStream<string> {
  const bytes = body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() })
  return bytes.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
}

function statusOf(status: unknown): number {
  const number = Math.trunc(Number(status))
  if (!(number >= 200 && number <= 599))
    throw new RangeError(`Response: status must be from 200 to 599; received ${String(status)}`)
  return number
}

function checkedText(text: string): string {
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) throw new TypeError('Response: statusText cannot be sent')
  return text
}

/** Whether the response of an exchange is sent without its body. */
export function isBodiless(exchange: Exchange, status: number): boolean {
  return exchange.method === 'HEAD' || status === 204 || status === 304
}
