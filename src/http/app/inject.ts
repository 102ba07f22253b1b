/**
 * Responds to a standard request without a socket: the client of the exchange is this process.
 *
 * The app sees no difference. What cores do (framing, limits, `date`) does not happen. Backpressure applies:
 * a streamed response is written as fast as it is read.
 */
import { type Moment, type RequestCount, turn } from '../../base/index.ts'
import { type Certificate, type Exchange, TYPE_LAST, TYPES, TypeOf } from '../message/core-interface.ts'
import { pairsOf } from '../message/lines.ts'
import { HttpError } from '../errors.ts'
import type { Hub } from '../message/hub.ts'
import type { Grant, Wire, WireEvents } from '../message/wire.ts'
import { NativeRequest, nativeRequest } from '../fetch/request.ts'
import { type ResponseBody, NativeResponse } from '../fetch/response.ts'

/** What can be injected: a request, or what `new Request(input, init)` takes; a path alone is enough. */
export type InjectInput = string | URL | Request

/**
 * Passes the request to `onExchange` and returns its response, which is Node's own.
 * @throws {TypeError} If `input` is not a request.
 */
export function inject(
  onExchange: (exchange: Exchange) => void,
  input: InjectInput,
  init?: RequestInit,
): Promise<Response> {
  const given = typeof input === 'string' && input.startsWith('/') ? `http://localhost${input}` : input
  return responded(onExchange, new NativeRequest(nativeRequest(given) as Request, init)) as Promise<Response>
}

/** Where a request comes from. */
export interface Client {
  /** Aborts when the client goes. Default: that of the request. */
  readonly signal?: AbortSignal
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  /** Default: it comes through no server. */
  isServerClosing?(): boolean
  /** What its server has for WebSockets. */
  readonly hub?: Hub
  /** Makes one of the connection. Default: there is no connection. */
  readonly upgrade?: (grant: Grant, events: WireEvents) => Wire
  /** As those of its exchange. Default: no trailers, and hints are not sent. */
  trailerPairs?(): string[]
  hint?(headers: string): boolean
  /** Sends a response that is there as a whole; false: it becomes a `Response`, as others do. */
  whole?(status: number, headers: string[], body: string | Uint8Array | null): boolean
  /** The response has ended with these trailers, before its body does. */
  onTrailers?(pairs: string[]): void
  /** Default 'http'. */
  readonly scheme?: 'http' | 'https'
  readonly clientCertificate?: Certificate | undefined
}

/** The same for a request of Node's own class; undefined: `client.whole` has sent the response. */
export function responded(
  onExchange: (exchange: Exchange) => void,
  request: Request,
  client: Client = {},
): Promise<Response | undefined> {
  return new Promise((resolve, reject) => {
    const exchange = new InjectedExchange(request, client, resolve, reject)
    onExchange(exchange)
  })
}

type Controller = ReadableStreamDefaultController<Uint8Array>

class InjectedExchange implements Exchange {
  readonly method: string
  readonly target: string
  readonly targetNumber = -1
  readonly remoteAddress: string
  readonly remotePort: number
  readonly scheme: 'http' | 'https'
  readonly clientCertificate: Certificate | undefined
  readonly bodyBytes: number
  onAbort: (() => void) | undefined
  count: RequestCount | undefined
  begun: Moment | undefined = undefined
  #status = 0
  #bytes = 0
  aborted = false
  onClose: (() => void) | undefined
  readonly #client: Client
  readonly hub?: Hub
  readonly upgrade?: NonNullable<Exchange['upgrade']>
  readonly #request: Request
  readonly #signal: AbortSignal
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  readonly #resolve: (response: Response | undefined) => void
  readonly #reject: (error: unknown) => void
  #hasResponded = false
  /** Its response has ended. */
  #isOver = false
  /** Rejects the last pull. */
  #pulling: ((error: Error) => void) | undefined
  #controller: Controller | undefined
  #wake: (() => void) | undefined

  constructor(
    request: Request,
    client: Client,
    resolve: (response: Response | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    const { pathname, search } = new URL(request.url)
    const {
      signal = request.signal,
      remoteAddress = '',
      remotePort = 0,
      scheme = 'http',
      clientCertificate,
      hub,
      upgrade,
    } = client
    this.#client = client
    this.method = request.method
    this.target = pathname + search
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
    this.scheme = scheme
    this.clientCertificate = clientCertificate
    this.#request = request
    if (hub !== undefined) this.hub = hub
    if (upgrade !== undefined) this.upgrade = this.#upgrading(upgrade)
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
    this.#reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
    this.bodyBytes = this.#reader === undefined ? 0 : Number(request.headers.get('content-length') ?? -1)
    if (signal.aborted) this.#disconnect()
    else signal.addEventListener('abort', () => this.#disconnect(), { once: true })
  }

  get isServerClosing(): boolean {
    return this.#client.isServerClosing?.() === true
  }

  /** A client without a socket cannot half-close its connection. */
  get isClosed(): boolean {
    return this.aborted
  }

  get isOver(): boolean {
    return this.#isOver && !this.aborted
  }

  header(name: string): string | undefined {
    if (name === 'host') return this.#request.headers.get('host') ?? new URL(this.#request.url).host
    return this.#request.headers.get(name) ?? undefined
  }

  headerPairs(): string[] {
    const pairs = [...this.#request.headers].flat()
    return this.#request.headers.has('host') ? pairs : ['host', this.header('host')!, ...pairs]
  }

  bodyNow(): Uint8Array | undefined {
    return undefined
  }

  pull(): Promise<Uint8Array | undefined> {
    const reader = this.#reader
    if (reader === undefined) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#pulling = reject
      reader.read().then(({ done, value }) => resolve(done ? undefined : value), reject)
      if (this.#isOver) void this.#loseRest()
    })
  }

  #counted(isAborted: boolean): void {
    const { count } = this
    this.count = undefined
    count?.ended(this.#status, this.#bytes, this, isAborted)
  }

  #end(isAborted = false): void {
    this.#isOver = true
    this.#counted(isAborted)
    if (this.#pulling !== undefined) void this.#loseRest()
  }

  /** Nobody sends the rest of a body whose response has ended. What has arrived is read within a turn. */
  async #loseRest(): Promise<void> {
    const reject = this.#pulling!
    await turn()
    if (this.aborted) reject(new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its body' }))
    else reject(new HttpError('HTTP_REQUEST_ENDED', { what: 'the body' }))
  }

  retain(): void {
    // nothing here is ever used again
  }

  respond(status: number, type: number, headers: string, body: string | Uint8Array | undefined): void {
    if (this.#hasResponded) return
    const isNull = status === 204 || status === 205 || status === 304
    const isSent = !isNull && this.method !== 'HEAD'
    const { whole } = this.#client
    this.#bytes = typeof body === 'string' ? Buffer.byteLength(body) : (body?.byteLength ?? 0)
    const pairs = pairsFrom(type, headers, isNull ? undefined : this.#bytes)
    const copy = (): Buffer => Buffer.from((body ?? '') as Uint8Array)
    const text = typeof body === 'string' ? body : undefined
    if (whole?.(status, pairs, isSent ? (text ?? copy()) : null) === true) {
      this.#hasResponded = true
      this.#status = status
      this.#resolve(undefined)
    } else {
      // A `Response` copies bytes, but not shared ones, and adds a type to a text.
      const isOwn = body instanceof Uint8Array && body.byteLength > 0 && body.buffer instanceof ArrayBuffer
      this.#respond(!isSent ? null : isOwn ? body : copy(), status, pairs)
    }
    this.#end()
  }

  start(status: number, type: number, headers: string, length: number | undefined): void {
    if (this.#hasResponded) return
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller
      },
      pull: () => this.#wake?.(),
      cancel: () => this.#disconnect(),
    })
    const isNull = status === 204 || status === 205 || status === 304 || this.method === 'HEAD'
    this.#respond(isNull ? null : stream, status, pairsFrom(type, headers, length))
  }

  #respond(body: ResponseBody, status: number, pairs: readonly string[]): void {
    this.#hasResponded = true
    this.#status = status
    const headers = new Headers()
    for (let at = 0; at < pairs.length; at += 2) headers.append(pairs[at], pairs[at + 1])
    this.#resolve(new NativeResponse(body, { status, headers }))
  }

  /** Its promise resolves with a response that is not sent. */
  #upgrading(upgrade: NonNullable<Exchange['upgrade']>): NonNullable<Exchange['upgrade']> {
    return (grant, events) => {
      if (this.#hasResponded || this.aborted)
        throw new HttpError('HTTP_UPGRADE', { reason: 'it has its response already' })
      const wire = upgrade(grant, events)
      this.#respond(null, 204, [])
      this.#isOver = true
      this.#status = 101
      this.#counted(false)
      return wire
    }
  }

  write(chunk: Uint8Array): boolean {
    if (this.aborted) return true
    this.#controller!.enqueue(new Uint8Array(chunk))
    this.#bytes += chunk.byteLength
    return this.#controller!.desiredSize! > 0
  }

  drained(): Promise<void> {
    if (this.aborted || this.#controller!.desiredSize! > 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  end(trailers?: string): void {
    if (this.aborted) return
    if (trailers !== undefined) this.#client.onTrailers?.(pairsOf(trailers))
    this.#controller!.close()
    this.#end()
  }

  trailerPairs(): string[] {
    return this.#client.trailerPairs?.() ?? []
  }

  hint(headers: string): boolean {
    return !this.#hasResponded && this.#client.hint?.(headers) === true
  }

  abort(): void {
    const error = new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'a response that the server aborted' })
    if (this.#hasResponded) this.#controller?.error(error)
    else this.#reject(error)
    this.#hasResponded = true
    this.#end(true)
  }

  #disconnect(): void {
    if (this.aborted) return
    this.aborted = true
    if (!this.#hasResponded) this.#reject(this.#signal.reason)
    this.#hasResponded = true
    this.#end(true)
    this.#wake?.()
    // The app is notified asynchronously, as with a socket.
    queueMicrotask(() => {
      this.onClose?.()
      this.onAbort?.()
    })
  }
}

function pairsFrom(type: number, lines: string, length: number | undefined): string[] {
  const pairs = pairsOf(lines)
  const content = type & ~TYPE_LAST
  if (content !== TypeOf.none) pairs.push('content-type', TYPES[content as 1])
  if (content !== type) pairs.push('connection', 'close')
  if (length !== undefined) pairs.push('content-length', String(length))
  return pairs
}
