/**
 * Errors of the HTTP server.
 *
 * Programs use `code` and `facts`; the message is for people. A method of a web standard throws the error
 * that the standard specifies instead, such as a `TypeError` for a body that has already been read.
 */
import { type ArgumentFacts, CorespunError, type Sentences, argumentSentence } from '../base/index.ts'

/** The facts of each code. */
export type HttpCodes = {
  /** An argument or option is invalid. */
  HTTP_ARGUMENT: ArgumentFacts
  /** Another server listens on this address. */
  HTTP_PORT_TAKEN: { readonly where: string }
  /** Listening failed for another reason. */
  HTTP_LISTEN: { readonly where: string; readonly reason: string }
  /** A file that `tls` names cannot be read. */
  HTTP_TLS_UNREADABLE: { readonly where: string; readonly reason: string }
  /** A certificate of `tls` is not PEM, or cannot be parsed. */
  HTTP_TLS_CERTIFICATE: { readonly where: string; readonly reason: string }
  /** A certificate of `tls` is not valid now. */
  HTTP_TLS_EXPIRED: { readonly where: string; readonly validFrom: string; readonly validTo: string }
  /** A private key of `tls` cannot be used, or belongs to another certificate. */
  HTTP_TLS_KEY: { readonly where: string; readonly reason: string }
  /** The folder of `files()` cannot be served. */
  HTTP_FILES_FOLDER: { readonly folder: string; readonly reason: string }
  /** A pattern of `routes` is invalid. */
  HTTP_ROUTE: { readonly pattern: string; readonly reason: string }
  /** Two patterns of `routes` match the same requests. */
  HTTP_ROUTE_CONFLICT: { readonly pattern: string; readonly other: string; readonly method: string }
  /** A response header has an invalid value, such as a line break; `name` is '' if all are too long. */
  HTTP_HEADER: { readonly name: string; readonly received: string }
  /** A handler returned a value that cannot be sent as a response. */
  HTTP_RESPONSE: { readonly where: string; readonly received: string; readonly expected?: string }
  /** A response does not fit the contract of its route; not checked where NODE_ENV is `production`. */
  HTTP_CONTRACT: { readonly where: string; readonly status: number; readonly reason: string }
  /** A handler is made for `(req, res)` of node:http. */
  HTTP_NODE_HANDLER: { readonly where: string; readonly reason: string }
  /** The length of a streamed response differs from its content-length. */
  HTTP_RESPONSE_LENGTH: { readonly where: string; readonly expected: number; readonly received: number }
  /** The body of a request is longer than `bodyBytesMax`. */
  HTTP_BODY_TOO_LARGE: { readonly bodyBytesMax: number }
  /** No byte of a request body arrived for `bodyMs`. */
  HTTP_BODY_TIMEOUT: { readonly bodyMs: number }
  /**
   * The chunk extensions and trailers of a body exceed `headerBytesMax`, or the trailers are more than
   * `headersMax`, a 128th of that.
   */
  HTTP_TRAILERS_TOO_LARGE: { readonly headerBytesMax: number; readonly headersMax: number }
  /** The framing of a request body is invalid. */
  HTTP_BODY_MALFORMED: { readonly reason: string }
  /** The client closed its connection before the response was complete. */
  HTTP_CLIENT_DISCONNECTED: { readonly during: string }
  /** Code read a part of a request after its response had been sent. */
  HTTP_REQUEST_ENDED: { readonly what: string }
  /** A request was sent to another thread, for example as the input of an arrow with a remote first stage. */
  HTTP_REQUEST_NOT_TRANSPORTABLE: { readonly path: string }
  /** A class or function of Node cannot read a handler's request (Node 24 and later). */
  HTTP_REQUEST_CLASS: { readonly reason: string }
  /** The native core was requested and cannot be loaded. */
  HTTP_CORE: { readonly reason: string }
  /** The module of an app failed to load, does not export an app, or failed to close. */
  HTTP_APP: { readonly app: string; readonly reason: string }
  /** A handler has asked for a value of its request that no middleware has set. */
  HTTP_VALUE_MISSING: { readonly name: string }
  /** A request cannot become a WebSocket here. */
  HTTP_UPGRADE: { readonly reason: string }
  /** Messages to rooms wait for workers that are too busy to receive them. */
  HTTP_ROOMS_FULL: { readonly worker: string; readonly bytesMax: number }
  /** The data of a session is larger than `dataBytesMax`; nothing was written. */
  HTTP_SESSION_TOO_LARGE: { readonly bytes: number; readonly dataBytesMax: number }
  /** A session was created or rotated after the response, which has its cookie. */
  HTTP_SESSION_LATE: { readonly cookie: string }
  /** Workers of a zone were too busy to close in time; they close when they return to their event loops. */
  HTTP_CLOSE_TIMEOUT: { readonly timeoutMs: number; readonly workers: readonly string[] }
}

const SENTENCES: Sentences<HttpCodes> = {
  HTTP_ARGUMENT: argumentSentence,
  HTTP_PORT_TAKEN: (f) =>
    `address already in use: ${f.where}; stop the other server, or pass another port (0 selects a free one)`,
  HTTP_LISTEN: (f) => `cannot listen on ${f.where}: ${f.reason}; ${listenAdvice(f)}`,
  HTTP_TLS_UNREADABLE: (f) =>
    `cannot read ${f.where}: ${f.reason}; pass the path of a file that this user may read, or its PEM text`,
  HTTP_TLS_CERTIFICATE: (f) =>
    `${f.where} is not a usable certificate: ${f.reason}; ` +
    'pass PEM: the certificate of the server, then those that lead to its authority',
  HTTP_TLS_EXPIRED: (f) =>
    `${f.where} is valid from ${f.validFrom} to ${f.validTo}; renew it, or correct the clock of this machine`,
  HTTP_TLS_KEY: (f) =>
    `${f.where} is not a usable private key: ${f.reason}; ` +
    'pass the PEM key (RSA, ECDSA on P-256 or P-384, Ed25519) that the certificate was made for',
  HTTP_FILES_FOLDER: (f) =>
    `files() cannot serve ${f.folder}: ${f.reason}; correct the path, or create the folder first`,
  HTTP_ROUTE: (f) => `invalid route '${f.pattern}': ${f.reason}`,
  HTTP_ROUTE_CONFLICT: (f) =>
    `the routes '${f.pattern}' and '${f.other}' match the same requests` +
    `${f.method === '*' ? '' : ` of ${f.method}`}; remove one, or put their methods in one table`,
  HTTP_HEADER: (f) =>
    f.name === ''
      ? `the headers of a response are too long: received ${f.received}; send fewer or shorter ones`
      : `invalid value of the response header ${f.name}: received ${f.received}; ` +
        'encode it, for example with encodeURIComponent()',
  HTTP_RESPONSE: (f) =>
    `${handlerAt(f.where)} must return ` +
    `${f.expected ?? 'a Response, a string, bytes, a stream or a JSON value'}; received ${f.received}` +
    (f.expected === undefined && f.received === 'undefined'
      ? '; for an empty response return new Response(null, { status: 204 })'
      : ''),
  HTTP_CONTRACT: (f) =>
    `the response ${f.status} of ${f.where} does not fit its contract: ${f.reason}; ` +
    'return what `responses` declares, or declare what is returned',
  HTTP_NODE_HANDLER: (f) =>
    `${handlerAt(f.where)} uses a response of node:http: ${f.reason}; a handler here receives (request) ` +
    'and returns a Response: pass one for (req, res) as nodeHandler(handler)',
  HTTP_RESPONSE_LENGTH: (f) =>
    `${f.where} streamed ${f.received} bytes, content-length was ${f.expected}; response aborted; ` +
    'omit content-length, or correct it',
  HTTP_BODY_TOO_LARGE: (f) =>
    `the request body exceeds bodyBytesMax, ${f.bodyBytesMax} bytes; ` +
    'send less, or raise it in the limits of serve()',
  HTTP_BODY_TIMEOUT: (f) =>
    `no byte of the request body arrived for bodyMs, ${f.bodyMs} ms; send it without pauses, or raise bodyMs`,
  HTTP_TRAILERS_TOO_LARGE: (f) =>
    `the request body has more than ${f.headersMax} trailers, or its trailers and chunk extensions exceed ` +
    `headerBytesMax, ${f.headerBytesMax} bytes; send fewer, or raise headerBytesMax`,
  HTTP_BODY_MALFORMED: (f) =>
    `malformed request body: ${f.reason}; correct the client, or a proxy that changes its bodies`,
  HTTP_CLIENT_DISCONNECTED: (f) =>
    `the client closed its connection during ${f.during}; pass request.signal to end work for it`,
  HTTP_REQUEST_ENDED: (f) =>
    `${f.what} of the request was read after its response had been sent; read it earlier, or clone() the ` +
    'request before responding (a body that has not arrived must be read before, from a clone too)',
  HTTP_REQUEST_NOT_TRANSPORTABLE: (f) =>
    `${f.path} is a request, which cannot be sent to another thread: read it first and send the data, ` +
    'as in liftAsync((request) => request.text()).andThen(work.on(zone))',
  HTTP_REQUEST_CLASS: (f) =>
    "Node's own Request, a class that extends it, or its fetch cannot read a handler's request: " +
    `${f.reason}; pass request.clone(), or (request.url, request)`,
  HTTP_CORE: (f) => `cannot load the native HTTP core: ${f.reason}`,
  HTTP_APP: (f) => `the app ${f.app}: ${f.reason}`,
  HTTP_VALUE_MISSING: (f) =>
    `no value of ${f.name} for this request; use() the middleware that sets it around the route`,
  HTTP_UPGRADE: (f) => `the request cannot become a WebSocket: ${f.reason}`,
  HTTP_ROOMS_FULL: (f) =>
    `${f.bytesMax} bytes of messages to rooms wait for ${f.worker}, which is busy: ` +
    'move long work from handlers to a zone, or publish less',
  HTTP_SESSION_TOO_LARGE: (f) =>
    `the data of a session has ${f.bytes} bytes; dataBytesMax is ${f.dataBytesMax}: ` +
    'store what is large elsewhere and its key in the session, or raise it',
  HTTP_SESSION_LATE: (f) =>
    `the cookie ${f.cookie} of a session cannot be set, since the response has begun; ` +
    'create and rotate sessions before the handler returns',
  HTTP_CLOSE_TIMEOUT: (f) =>
    `${f.workers.join(', ')} did not close within ${f.timeoutMs} ms: busy with something else; ` +
    'move long work from handlers to a zone, or raise timeoutMs',
}

/** The handler of a route, which is `GET /` or `/` where it responds to every method. */
function handlerAt(where: string): string {
  return /^(?:[A-Z]+ )?\//.test(where) ? `the handler of ${where}` : where
}

/** What to do about the system's reason not to listen. */
function listenAdvice({ where, reason }: HttpCodes['HTTP_LISTEN']): string {
  if (where.startsWith('descriptor '))
    return 'pass the number of a listening socket that this process inherited'
  if (reason.includes('EACCES')) return 'pass a port from 1024 on, or allow this one to the user'
  if (/EADDRNOTAVAIL|ENOTFOUND|EAI_AGAIN/.test(reason))
    return 'pass a host that is an address of this machine'
  return 'pass another host, port or path'
}

/**
 * An error of `corespun/http`; its `code` is a key of {@link HttpCodes}.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, HttpError } from 'corespun/http'
 *
 * assert.throws(
 *   () => createApp({ routes: { '/a/:': 'x' } }),
 *   (error) => error instanceof HttpError && error.code === 'HTTP_ROUTE',
 * )
 * ```
 */
export class HttpError<Code extends keyof HttpCodes = keyof HttpCodes> extends CorespunError<
  HttpCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES

  /** The response status of a request that fails with this error; 4xx if the client caused it. */
  get status(): number {
    return statusOf(this)
  }
}

/**
 * The response status by error code. A code that is not listed is an error of the program: 500.
 */
const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  HTTP_BODY_TOO_LARGE: 413,
  HTTP_BODY_TIMEOUT: 408,
  HTTP_TRAILERS_TOO_LARGE: 431,
  HTTP_BODY_MALFORMED: 400,
  TASK_TOO_LARGE: 413,
  WORKER_DIED: 502,
  ZONE_TENANT_FULL: 429,
  HTTP_ROOMS_FULL: 503,
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
  STREAM_TIMEOUT: 504,
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

/** The response status for an error; below 500 if the client caused it. */
export function statusOf(cause: unknown): number {
  if (cause instanceof CorespunError) {
    const { code, facts } = cause as CorespunError<Record<string, { status?: number }>>
    return code === 'HTTP_STATUS' ? facts.status! : (STATUS_OF_CODE[code] ?? 500)
  }
  return typeof cause === 'object' && cause !== null && clientFaults.has(cause) ? 400 : 500
}
