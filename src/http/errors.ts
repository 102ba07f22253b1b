/**
 * What the HTTP server refuses.
 *
 * Decide by `code`, read `facts`; the sentence is for people. Where a web standard says which error a method
 * throws (a `TypeError` for a body that was read twice, say), that one is thrown instead of these.
 */
import { type ArgumentFacts, CorespunError, type Sentences, argumentSentence } from '../base/index.ts'

/** The facts of each code. */
export type HttpCodes = {
  /** A setting of `serve` is not what it must be. */
  HTTP_ARGUMENT: ArgumentFacts
  /** Somebody else listens there. */
  HTTP_PORT_TAKEN: { readonly where: string }
  /** Listening failed for another reason. */
  HTTP_LISTEN: { readonly where: string; readonly reason: string }
  /** A pattern of `routes` cannot be read. */
  HTTP_ROUTE: { readonly pattern: string; readonly reason: string }
  /** Two patterns of `routes` match the same requests. */
  HTTP_ROUTE_CONFLICT: { readonly pattern: string; readonly other: string; readonly method: string }
  /** A header of an answer has a name or value that HTTP cannot carry, such as one with a line break. */
  HTTP_HEADER: { readonly name: string; readonly received: string }
  /** A handler gave something that is no answer. */
  HTTP_RESPONSE: { readonly where: string; readonly received: string; readonly expected?: string }
  /** A streamed answer's bytes do not agree with its content-length. */
  HTTP_RESPONSE_LENGTH: { readonly expected: number; readonly received: number }
  /** The body of a request is longer than `bodyBytesMax`. */
  HTTP_BODY_TOO_LARGE: { readonly bodyBytesMax: number }
  /** The body of a request stood still for longer than `bodyMs`. */
  HTTP_BODY_TIMEOUT: { readonly bodyMs: number }
  /**
   * Chunk extensions and trailers of a body are longer than `headerBytesMax`, or trailers more than
   * `headersMax`.
   */
  HTTP_TRAILERS_TOO_LARGE: { readonly headerBytesMax: number; readonly headersMax: number }
  /** The framing of a body is broken. */
  HTTP_BODY_MALFORMED: { readonly reason: string }
  /** The client closed its connection before it had its answer. */
  HTTP_CLIENT_GONE: { readonly during: string }
  /** Something of a request was asked for after its answer had been given. */
  HTTP_REQUEST_OVER: { readonly what: string }
  /** A request was sent to another thread, as the input of an arrow whose first stage is placed, say. */
  HTTP_REQUEST_TRAVELS: { readonly path: string }
  /** A class or function of Node received a handler's request, which it cannot read (Node 24 and later). */
  HTTP_REQUEST_CLASS: { readonly reason: string }
  /** The native core was asked for and cannot be had. */
  HTTP_CORE: { readonly reason: string }
  /** The module of an app failed to load, does not export an app, or failed at its end. */
  HTTP_APP: { readonly app: string; readonly reason: string }
  /** Workers of a zone were too busy to stop in time; they stop when they come to it. */
  HTTP_STOP_TIMEOUT: { readonly drainMs: number; readonly workers: readonly string[] }
}

const SENTENCES: Sentences<HttpCodes> = {
  HTTP_ARGUMENT: argumentSentence,
  HTTP_PORT_TAKEN: (f) => `${f.where} is taken: another server listens there`,
  HTTP_LISTEN: (f) => `cannot listen on ${f.where}: ${f.reason}`,
  HTTP_ROUTE: (f) => `the route '${f.pattern}' cannot be read: ${f.reason}`,
  HTTP_ROUTE_CONFLICT: (f) =>
    `the routes '${f.pattern}' and '${f.other}' match the same requests` +
    (f.method === '*' ? '' : ` of ${f.method}`),
  HTTP_HEADER: (f) => `the header ${f.name} cannot be sent: received ${f.received}`,
  HTTP_RESPONSE: (f) =>
    `${f.where} must return ${f.expected ?? 'a Response, a string, bytes, a stream or a JSON value'}; ` +
    `received ${f.received}`,
  HTTP_RESPONSE_LENGTH: (f) =>
    `a streamed answer said content-length ${f.expected} and gave ${f.received} bytes; it was cut`,
  HTTP_BODY_TOO_LARGE: (f) => `the body of the request is longer than bodyBytesMax, ${f.bodyBytesMax}`,
  HTTP_BODY_TIMEOUT: (f) => `no byte of the request's body came for bodyMs, ${f.bodyMs} ms`,
  HTTP_TRAILERS_TOO_LARGE: (f) =>
    "trailers or chunk extensions of the request's body are more than headersMax, " +
    `${f.headersMax}, or longer than headerBytesMax, ${f.headerBytesMax}`,
  HTTP_BODY_MALFORMED: (f) => `the body of the request is malformed: ${f.reason}`,
  HTTP_CLIENT_GONE: (f) => `the client closed its connection during ${f.during}`,
  HTTP_REQUEST_OVER: (f) =>
    `${f.what} of a request was asked for after its answer had been given; take what is needed before, ` +
    'or clone() the request, and read the clone of a body that has yet to arrive before too',
  HTTP_REQUEST_TRAVELS: (f) =>
    `${f.path} is a request, which stays in the thread that it came to: read what is needed of it first, ` +
    'and send that, as in liftAsync((request) => request.text()).andThen(work.on(zone))',
  HTTP_REQUEST_CLASS: (f) =>
    "Node's own Request, a class that extends it, or its fetch cannot read a handler's request: " +
    `${f.reason}; pass request.clone(), or (request.url, request)`,
  HTTP_CORE: (f) => `the native HTTP core cannot be used here: ${f.reason}`,
  HTTP_APP: (f) => `the app ${f.app}: ${f.reason}`,
  HTTP_STOP_TIMEOUT: (f) =>
    `${f.workers.join(', ')} did not stop within drainMs, ${f.drainMs} ms: busy with something else`,
}

/** The HTTP server refused. */
export class HttpError<Code extends keyof HttpCodes = keyof HttpCodes> extends CorespunError<
  HttpCodes,
  Code
> {
  /** @param code The failure. @param facts What it is about. @param options `cause`. */
  constructor(code: Code, facts: HttpCodes[Code], options?: ErrorOptions) {
    super(SENTENCES, code, facts, options)
  }

  /** The status that answers a request which failed so: 4xx when the client is to blame, else 500. */
  get status(): number {
    return statusOf(this)
  }
}

/**
 * The status that answers a request which failed for this reason, by the code of an error of Corespun.
 * Whatever is not listed is an error of the program: 500.
 */
const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  HTTP_BODY_TOO_LARGE: 413,
  HTTP_BODY_TIMEOUT: 408,
  HTTP_TRAILERS_TOO_LARGE: 431,
  HTTP_BODY_MALFORMED: 400,
  TASK_TOO_LARGE: 413,
  WORKER_DIED: 502,
  ZONE_FULL: 503,
  ZONE_BYTES_FULL: 503,
  ZONE_BROADCASTS_FULL: 503,
  ZONE_CLOSED: 503,
  ZONE_OWNER_DIED: 503,
  STORE_FULL: 503,
  TASK_TIMEOUT: 504,
  BROADCAST_TIMEOUT: 504,
  ARROW_TIMEOUT: 504,
  FIBER_TIMEOUT: 504,
  SYNC_TIMEOUT: 504,
}

/** Errors that a client's bytes caused inside of a standard method, such as a SyntaxError of `json()`. */
const clientFaults = new WeakSet<object>()

/** Mark an error as caused by what a client sent, with `status` 400; returns it. */
export function clientFault(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  clientFaults.add(error)
  if (Object.isExtensible(error)) Object.defineProperty(error, 'status', { value: 400, configurable: true })
  return error
}

/** The status of the response to a request that failed so: below 500 when the client is to blame. */
export function statusOf(cause: unknown): number {
  if (cause instanceof CorespunError) {
    const { code, facts } = cause as CorespunError<Record<string, { status?: number }>>
    return code === 'HTTP_STATUS' ? facts.status! : (STATUS_OF_CODE[code] ?? 500)
  }
  return typeof cause === 'object' && cause !== null && clientFaults.has(cause) ? 400 : 500
}
