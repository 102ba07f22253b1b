/**
 * The interface between the app side of the HTTP server and its two cores.
 *
 * A core accepts connections, reads requests, enforces framing and limits, and writes responses. Routes and
 * `Request` belong to the app side, which receives one {@link Exchange} per request and responds once. An
 * exchange is lazy: a field that is not read never becomes a JavaScript value.
 */

import type { Counted } from '../../base/index.ts'
import { FLAG_LAST } from './layout.ts'
import type { CoreLimits } from './limits.ts'
import type { Refusals } from './refusals.ts'
import type { Hub } from './hub.ts'
import type { Grant, Wire, WireEvents } from './wire.ts'

/** A constant response, which the core sends without the app. */
export interface Constant {
  /** The method, upper case. A constant for GET also responds to HEAD. */
  readonly method: string
  /** The path, exactly as on the wire. The query of a request is not compared. */
  readonly path: string
  /** 200 to 599. */
  readonly status: number
  /** Complete header lines, each `name: value\r\n`, checked by the app. */
  readonly headers: string
  readonly body: Uint8Array
}

/**
 * A certificate: at run time an `X509Certificate` of node:crypto. Its type is here, so that programs need no
 * types of Node.
 */
export interface Certificate {
  /** Names of its owner, a line each: `CN=client`. */
  readonly subject: string
  /** Names of hosts: `DNS:example.com`. */
  readonly subjectAltName: string | undefined
  /** Names of its authority. */
  readonly issuer: string
  /** In hexadecimal digits. */
  readonly serialNumber: string
  /** A date that `Date.parse` reads. */
  readonly validFrom: string
  /** As `validFrom`. */
  readonly validTo: string
  /** SHA-256 of `raw`, in hexadecimal digits with colons. */
  readonly fingerprint256: string
  /** In DER. */
  readonly raw: Uint8Array
  /** In PEM. */
  toString(): string
}

/** A certificate that a server can show. */
export interface Credentials {
  /** Its own first, then those that lead to its authority. */
  readonly chain: readonly Certificate[]
  /** PKCS #8 in DER. */
  readonly key: Uint8Array
  /** Names of hosts in lower case; a leading `*` is for one label. */
  readonly names: readonly string[]
}

/** What a core needs for TLS. */
export interface Tls {
  /** The first is that of clients that ask for no known name. */
  readonly certificates: readonly Credentials[]
  readonly authorities: readonly Certificate[]
  readonly clients: 'require' | 'request' | 'none'
  readonly alpn: readonly string[]
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  /** The certificate for a name that none of `certificates` has. */
  readonly sni: ((name: string) => Promise<Credentials | undefined>) | undefined
  /** A client's certificate from its DER. */
  certificateOf(der: Uint8Array): Certificate
}

/** How a core is created. */
export interface CoreSettings {
  /** An IP address, or a name that the system resolves. */
  readonly host: string
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number
  /** The path of a Unix socket, instead of host and port. */
  readonly unixPath: string | undefined
  /** The descriptor of a listening socket that this process was started with, instead of the others. */
  readonly fd: number | undefined
  /** Whether other threads of this process may serve the same port. */
  readonly reusePort: boolean
  /** Whether each connection begins with a header of the PROXY protocol, version 1 or 2. */
  readonly proxyProtocol: boolean
  /** Certificates; undefined: connections are plain. */
  readonly tls: Tls | undefined
  readonly limits: CoreLimits
  readonly constants: readonly Constant[]
  /** What its WebSockets have in common. */
  readonly hub: Hub
  readonly refusals: Refusals
  /** Called for each request when its head has been read. Must not throw. */
  onExchange(exchange: Exchange): void
  /** Called with errors outside of exchanges, for example of accepting. */
  onFault(error: unknown): void
}

/** Where a core listens. */
export interface CoreAddress {
  /** The IP address; empty for a Unix socket. */
  readonly host: string
  /** The port that was bound; 0 for a Unix socket. */
  readonly port: number
  /** The path of a Unix socket. */
  readonly unixPath: string | undefined
}

/** Totals since the start, except for `connections`, `heldBytes` and `openFiles`. */
export interface CoreStats {
  /** Open connections. */
  readonly connections: number
  /** Accepted connections. */
  readonly connectionsTotal: number
  /** Requests whose head was read and accepted, constants included. */
  readonly requests: number
  /** Of these, requests that a constant responded to. */
  readonly constants: number
  /** Malformed or too large requests, which the core refused. */
  readonly refused: number
  /** Exchanges whose client disconnected before the end of the response. */
  readonly aborted: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Connections that `stop` closed after `graceMs`, before all responses were sent. */
  readonly cut: number
  /** Bytes of large whole bodies that wait to be sent. Equal bodies count once, constants do not count. */
  readonly heldBytes: number
  /** Files of `files()` that are open for the next request. */
  readonly openFiles: number
}

/** A server without an app. */
export interface Core {
  readonly kind: 'native' | 'node'
  /** Binds and begins to accept. Rejects when the address is in use or not available. */
  listen(): Promise<CoreAddress>
  stats(): CoreStats
  /**
   * New certificates and settings, for connections that are accepted from now on.
   * @throws {HttpError} `HTTP_TLS_KEY` for a key that the core cannot use; nothing changes then.
   */
  setTls(tls: Tls): void
  /** How often it has sent each constant by itself: to its own method, and to HEAD in place of GET. */
  constantCounts?(): Float64Array
  /**
   * The number by which any thread can check that this one returns to its event loop; undefined: it cannot.
   */
  readonly member?: number
  /** From now on `isServerClosing` is true; the core goes on accepting until `stop`. */
  announceStop(): void
  /**
   * Stops accepting and finishes the open exchanges: idle connections close at once, others after their
   * response. Remaining connections are closed after `graceMs`. Resolves when no connection is left.
   */
  stop(graceMs: number): Promise<void>
}

/** Content types that a core writes by number: {@link Exchange.respond}'s `type`. */
export const TypeOf = { none: 0, text: 1, json: 2, html: 3, bytes: 4 } as const

/** Added to a response's `type`: the connection closes after it, and its client is notified. */
export const TYPE_LAST = FLAG_LAST >> 8

export { TYPES } from './layout.ts'

/** A file that is open in a core. */
export interface CoreFile {
  /** Unique in the thread; another one as soon as the file has changed. */
  readonly file: number
  readonly bytes: number
  /** When it was modified last, since 1970. */
  readonly seconds: number
  readonly nanoseconds: number
  /** Whether it is the index of the folder that the path leads to. */
  readonly isIndex: boolean
}

/** A part of an open file. */
export interface FilePart {
  readonly file: number
  readonly start: number
  readonly bytes: number
}

/**
 * One request and its response.
 *
 * The request can be read until `onExchange` returns or, after `retain()`, until the response ends. The
 * response is sent once, by `respond`, or by `start`, `write` and `end`; calls after the connection has
 * closed or the response has ended do nothing.
 */
export interface Exchange extends Counted {
  /** As on the wire. */
  readonly method: string
  /** As on the wire: origin-form, absolute-form, or `*`. */
  readonly target: string
  /** The number of the target in the core, until another target takes it; -1: no number. */
  readonly targetNumber: number
  /** The client's IP address; empty for a Unix socket. */
  readonly remoteAddress: string
  /** The port of the client's connection; 0 if it is unknown, as behind a proxy that states the client. */
  readonly remotePort: number
  /** Whether `close` of the server has been called. */
  readonly isServerClosing: boolean
  /** Whether its connection has TLS. */
  readonly scheme: 'http' | 'https'
  /** The certificate that the client has shown, which has been verified. */
  readonly clientCertificate: Certificate | undefined
  /** The value of a header; repeated ones are joined by ', ' (cookie by '; '). `name` is in lower case. */
  header(name: string): string | undefined
  /** All headers, flat: name, value, name, value, in the order and spelling of the wire. */
  headerPairs(): string[]
  /** Content-Length; -1: chunked, unknown; 0: no body. */
  readonly bodyBytes: number
  /** The whole body if it has arrived, as a view that is valid as long as the request. */
  bodyNow(): Uint8Array | undefined
  /**
   * The body's next piece, a copy; undefined at its end. Pulling is the back-pressure: a body that is not
   * pulled stays in the kernel. Rejects when the client disconnects, a limit is exceeded, or the response has
   * been sent.
   */
  pull(): Promise<Uint8Array | undefined>
  /** Keeps the request's data after `onExchange`, for a response that is not ready at once. */
  retain(): void
  /**
   * Called once when the client has disconnected before the end of the response, or sends nothing more, which
   * may mean the same. The response is still sent.
   */
  onAbort: (() => void) | undefined
  /** Whether that has happened. */
  readonly aborted: boolean
  /** Called once when the connection has closed before the end of the response; before `onAbort`. */
  onClose: (() => void) | undefined
  /** Whether that has happened: the rest of the response is dropped. */
  readonly isClosed: boolean
  /** Whether the response has been sent, or given up by `abort`. */
  readonly isOver: boolean
  /**
   * Sends a whole response.
   * @param status 200 to 599.
   * @param type Its content type by number, see {@link TypeOf}; `none` when `headers` has it or none is sent.
   *   With {@link TYPE_LAST}, the connection closes after it.
   * @param headers Complete header lines, each `name: value\r\n` in Latin-1, checked by the app. The core
   * adds
   *   date, content-length and connection.
   * @param body A string is sent as UTF-8. Bytes are copied before the call returns. Not sent for HEAD, 204
   *   and 304.
   */
  respond(status: number, type: number, headers: string, body: string | Uint8Array | undefined): void
  /**
   * Finds a file, which stays open for a while. Undefined: this core does not read files.
   * @param path Relative to `folder`, which is not left; a slash at its end excludes files.
   * @param index The file for a folder; empty: none.
   * @returns `undefined` if there is no file that may be read.
   * @throws The system's error if it does not depend on the path, for example `EMFILE`.
   */
  findFile?(folder: string, path: string, index: string): CoreFile | undefined
  /**
   * Sends a whole response whose body is a part of a file that `findFile` has found, without reading it.
   * False: the file has been closed since; nothing is sent.
   */
  respondFile?(status: number, type: number, headers: string, part: FilePart): boolean
  /**
   * Sends the head of a response whose body follows by `write`.
   * @param length Bytes of the body; undefined sends it chunked (to a client of HTTP/1.0: until the
   *   connection closes).
   */
  start(status: number, type: number, headers: string, length: number | undefined): void
  /** Sends a copy of a piece of the body. False: the client reads slowly, wait for `drained()`. */
  write(chunk: Uint8Array): boolean
  /** Resolves when less than half of `outBytesMax` is unsent, or the connection has closed. */
  drained(): Promise<void>
  /**
   * Ends the body.
   * @param trailers Complete trailer lines, checked by the app; only a chunked body is sent with them.
   */
  end(trailers?: string): void
  /** The trailers of the request's body, once it has ended, flat as `headerPairs`, not checked. */
  trailerPairs(): string[]
  /**
   * Sends an informational response, 103, with these header lines.
   * @returns Whether it is sent: not to clients of HTTP/1.0, and not after the response has begun.
   */
  hint(headers: string): boolean
  /** Closes the connection: the response failed. */
  abort(): void
  /** Whether it asks for a WebSocket over HTTP/2, where the handshake has no key (RFC 8441). */
  readonly hasNoKey?: boolean
  /** What the WebSockets of its server have in common. Undefined: it has no server. */
  readonly hub?: Hub
  /**
   * Makes a WebSocket of it: writes the response, 101 or 200 over HTTP/2, and ends the exchange. Undefined:
   * it has no connection.
   * @throws {HttpError} `HTTP_UPGRADE` if it has a response already, or this core cannot.
   */
  upgrade?(grant: Grant, events: WireEvents): Wire
}
