/**
 * The one interface between the app side of the HTTP server and the two cores that carry it.
 *
 * A core accepts connections, reads requests, enforces framing and limits, and writes answers; it knows no
 * routes and no `Request`. The app gets one {@link Exchange} per request and answers it once. Everything an
 * exchange tells is lazy: a field that nobody reads is never made into a JavaScript value.
 */

/** Every limit a core enforces, complete and checked: the app decides names and defaults (limits.ts). */
export interface CoreLimits {
  /** Most bytes of request line and header fields together; more is answered with 431 (or 414). */
  readonly headerBytesMax: number
  /** Most header fields of a request, and of a chunked body's trailers; more is answered with 431. */
  readonly headersMax: number
  /** Most bytes of the request target; more is answered with 414. */
  readonly targetBytesMax: number
  /** Most bytes of a request's body; more is answered with 413. */
  readonly bodyBytesMax: number
  /** How long a connection without a request may stay open, milliseconds. */
  readonly idleMs: number
  /** How long the head of a request may take from its first byte, milliseconds; then 408. */
  readonly headersMs: number
  /** How long a body may stand still while the app wants more of it, milliseconds; then 408. */
  readonly bodyMs: number
  /** How long a client that still sends is listened to behind the last answer, milliseconds. */
  readonly lingerMs: number
  /** Most connections open at once on this core; further ones are closed when they are accepted. */
  readonly connectionsMax: number
  /** Requests after which a connection is closed in good order. */
  readonly requestsPerConnectionMax: number
  /** Most requests of one connection that are read ahead of its answers. */
  readonly pipelineMax: number
  /** Bytes of answers a connection may hold unsent before `write` says to wait. */
  readonly outBytesMax: number
  /** Bytes of large whole bodies that wait to be sent, on all connections together; 503 beyond. */
  readonly outBytesTotalMax: number
}

/** A constant answer: matched by the core on method and exact path, made without the app. */
export interface Constant {
  /** The method it answers, upper case. A constant for GET answers HEAD too. */
  readonly method: string
  /** The path it answers: exactly as on the wire, without a query (`?` and what follows is not compared). */
  readonly path: string
  /** Its status, 200 to 599. */
  readonly status: number
  /** Ready-made lines, each `name: value\r\n`, checked by the app. */
  readonly headers: string
  /** Its body. */
  readonly body: Uint8Array
}

/** What a core is made from. */
export interface CoreSettings {
  /** Where it listens: a numeric address or a name that the system resolves. */
  readonly host: string
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number
  /** A path of the file system to listen on instead of host and port. */
  readonly unixPath: string | undefined
  /** Connections that wait in the kernel to be accepted. */
  readonly backlog: number
  /** Whether other threads of this process may serve the same port. */
  readonly reusePort: boolean
  /** What is refused. */
  readonly limits: CoreLimits
  /** What is answered without the app. */
  readonly constants: readonly Constant[]
  /** Called for each request once its head has been read. Must not throw. */
  onExchange(exchange: Exchange): void
  /** Told what went wrong outside of any exchange (accepting, a handler of the core itself). */
  onFault(error: unknown): void
}

/** Where a core listens. */
export interface CoreAddress {
  /** The address as numbers; empty for a path. */
  readonly host: string
  /** The port that was bound; 0 for a path. */
  readonly port: number
  /** The path, when it listens on one. */
  readonly unixPath: string | undefined
}

/** Counts since the core began, but for `connections`. */
export interface CoreStats {
  /** Open now. */
  readonly connections: number
  /** Accepted. */
  readonly connectionsTotal: number
  /** Requests whose head was read and accepted, constants included. */
  readonly requests: number
  /** Of these, answered by the core from a constant. */
  readonly constants: number
  /** Requests that were malformed or too large, answered with 4xx or 5xx by the core. */
  readonly refused: number
  /** Exchanges whose client went before the answer was finished. */
  readonly aborted: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Connections that `stop` cut, its time being over, before all was answered. */
  readonly cut: number
  /** Bytes of large whole bodies that wait to be sent now. Equal bodies count once, constants not at all. */
  readonly heldBytes: number
}

/** A server without an app. */
export interface Core {
  /** Which one it is. */
  readonly kind: 'native' | 'node'
  /** Binds and begins to accept. Rejects when the address is taken or not to be had. */
  listen(): Promise<CoreAddress>
  /** What it has counted. */
  stats(): CoreStats
  /** By this number any thread sees whether this one returns to its loop; undefined: it cannot be seen. */
  readonly member?: number
  /**
   * Stops accepting and finishes what was accepted: idle connections close at once, others after the answer
   * in progress. What is left after `graceMs` is cut. Resolves when no connection is left.
   */
  stop(graceMs: number): Promise<void>
}

/** Content types that a core writes by number: {@link Exchange.respond}'s `type`. */
export const TypeOf = { none: 0, text: 1, json: 2, html: 3, bytes: 4 } as const

/** What stands on the wire for each number of {@link TypeOf}. */
export const TYPES = [
  '',
  'text/plain;charset=UTF-8',
  'application/json',
  'text/html;charset=UTF-8',
  'application/octet-stream',
] as const

/**
 * One request and its answer.
 *
 * What it tells of the request is valid until `onExchange` returns, unless `retain()` was called: then until
 * the answer ended. It is answered once, by `respond`, or by `start`, `write`s and `end`; calls after the
 * connection has closed or the answer has ended do nothing.
 */
export interface Exchange {
  /** As on the wire, upper case where it is a known one. */
  readonly method: string
  /** As on the wire: origin-form, absolute-form, or `*`. */
  readonly target: string
  /** A small number under which this core remembers the target, until another takes it; -1: it does not. */
  readonly targetNumber: number
  /** The client's address without its port; empty on a path. */
  readonly remoteAddress: string
  /** The value of a header; repeated ones are joined by ', ' (cookie by '; '). `name` is in lower case. */
  header(name: string): string | undefined
  /** All headers, flat: name, value, name, value, in the order and spelling of the wire. */
  headerPairs(): string[]
  /** Content-Length; -1: chunked, unknown; 0: no body. */
  readonly bodyBytes: number
  /** The whole body if it has arrived already, as a view that is valid as long as the request is. */
  bodyNow(): Uint8Array | undefined
  /**
   * The body's next piece, a copy that belongs to the caller; undefined at its end. Pulling is the
   * back-pressure: a body that nobody pulls stays in the kernel. Rejects when the client goes, a limit is
   * passed, or the answer has been given.
   */
  pull(): Promise<Uint8Array | undefined>
  /** Keep the request's data past `onExchange`. Called by the app when an answer is not ready at once. */
  retain(): void
  /**
   * Called once when the client has gone before the answer was finished, or sends nothing more, which may
   * mean the same: what is answered is still sent.
   */
  onAbort: (() => void) | undefined
  /** Whether that has happened. */
  readonly aborted: boolean
  /** Called once when the connection has closed before the answer was finished; before `onAbort`. */
  onClose: (() => void) | undefined
  /** Whether that has happened: whatever is answered now goes nowhere. */
  readonly isClosed: boolean
  /**
   * The whole answer.
   * @param status 200 to 599.
   * @param type Its content type by number, see {@link TypeOf}; `none` when `headers` has it or none is sent.
   * @param headers Ready-made lines, each `name: value\r\n` in Latin-1, checked by the app. The core adds
   *   date, content-length and connection.
   * @param body A string is sent as UTF-8. Bytes are copied before the call returns. Not sent for HEAD, 204
   *   and 304.
   */
  respond(status: number, type: number, headers: string, body: string | Uint8Array | undefined): void
  /**
   * The head of an answer whose body follows by `write`.
   * @param length Bytes of the body; undefined sends it chunked (to a client of HTTP/1.0: until the
   *   connection closes).
   */
  start(status: number, type: number, headers: string, length: number | undefined): void
  /** A piece of the body, copied before it returns. False: the peer reads slowly, wait for `drained()`. */
  write(chunk: Uint8Array): boolean
  /** Resolves when less than half of `outBytesMax` is unsent, or the connection has closed. */
  drained(): Promise<void>
  /** The end of the body. */
  end(): void
  /** Cut the connection: an answer that failed half-way. */
  abort(): void
}
