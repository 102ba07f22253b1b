/**
 * One WebSocket, as handlers see it.
 *
 * It outlives its request. Handlers run one after the other as messages arrive; what they return is awaited
 * only to report a rejection. After the end, every method does nothing.
 */
import { promiseOf } from '../../base/index.ts'
import { refuseClass } from '../../transport/internal.ts'
import type { HttpRequest } from '../message/http-request.ts'
import type { HeadersInit } from '../message/standard.ts'
import { wrong } from '../message/limits.ts'
import type { Hub } from '../message/hub.ts'
import { checkRoom, payloadOf } from './message.ts'
import type { Wire, WireEvents } from '../message/wire.ts'

/** What an upgrade adds: the result of `upgrade` of a route, or the last argument of {@link upgrade}. */
export interface UpgradeOptions<Data = unknown> {
  /** The value of `socket.data`. */
  readonly data?: Data
  /** Further headers of the response that grants it. */
  readonly headers?: HeadersInit
  /** The subprotocol, one of those that the client offers. Default: the first of `protocols` it offers. */
  readonly protocol?: string
}

/** Which origins may connect; see {@link WebSocketHandlers.origins}. */
export type AllowedOrigins = 'same' | 'any' | readonly string[] | ((origin: string) => boolean)

/**
 * What handles the WebSockets of a route. All functions run in the thread that has the connection; one that
 * throws, or whose promise rejects, closes the socket with 1011, and its error is reported like that of a
 * request.
 */
export interface WebSocketHandlers<Data = unknown> {
  /**
   * Called with the request before it is granted. Returns what the socket begins with, or a Response, which
   * refuses it. Default: it is granted.
   */
  upgrade?(
    request: HttpRequest,
  ): UpgradeOptions<Data> | Response | void | Promise<UpgradeOptions<Data> | Response | void>
  /** Called when the response has been written: 101, or 200 over HTTP/2. */
  open?(socket: ServerSocket<Data>): void | Promise<void>
  /** Called with each message: a string for text, bytes of their own otherwise. */
  message?(socket: ServerSocket<Data>, message: string | Uint8Array<ArrayBuffer>): void | Promise<void>
  /** Called when less than half of `outBytesMax` waits to be sent, after more than that did. */
  drain?(socket: ServerSocket<Data>): void | Promise<void>
  /**
   * Called once, last. The code is that of the client's close frame (1005: without one), or the reason of
   * the server: docs/guide/websocket.md lists them. 1006: the connection ended without a close frame.
   */
  close?(socket: ServerSocket<Data>, code: number, reason: string): void | Promise<void>
  /** Subprotocols, the preferred one first. Default: none. */
  readonly protocols?: readonly string[]
  /**
   * The pages that may connect, by the `Origin` header that browsers send; others get 403. `'same'`: those
   * of the host that the request names; a list: these origins, such as `'https://example.com'`; `'any'`.
   * Requests without the header, which browsers do not send, are not refused. Default `'same'`: a page of
   * another site could otherwise act with the cookies of its visitor.
   */
  readonly origins?: AllowedOrigins
  /** Most bytes of a message, after decompression; beyond it 1009. 1 to 1 GiB, default 1 MiB. */
  readonly messageBytesMax?: number
  /**
   * Most bytes that wait to be sent, since the client does not read: then it is closed with 1013. 1024 to
   * 1 GiB, default 16 MiB.
   */
  readonly queuedBytesMax?: number
  /** Time without a byte from the client after which it is pinged, in ms. Default 30,000. */
  readonly pingMs?: number
  /** Time for its response, in ms; then the connection is closed with 1006. Default 10,000. */
  readonly pongMs?: number
  /** Time for the client to respond to a close frame, in ms. Default 5000. */
  readonly closeMs?: number
  /**
   * Whether messages of 1024 bytes or more are compressed (`permessage-deflate`) for clients that offer it,
   * or the length from which they are. Both sides compress each message by itself, so a connection needs no
   * memory for it. Default false.
   */
  readonly compression?: boolean | number
}

/** Most bytes of a control frame (RFC 6455, 5.5), and of a reason behind its code. */
const PING_BYTES_MAX = 125
const REASON_BYTES_MAX = 123
/** Most rooms of one socket. */
const ROOMS_MAX = 1024
/** The code for an error of a handler. */
const INTERNAL_ERROR = 1011

const State = { open: 1, closing: 2, closed: 3 } as const

interface Parts {
  readonly handlers: WebSocketHandlers
  readonly hub: Hub
  readonly request: HttpRequest
  readonly data: unknown
  readonly protocol: string
  readonly remoteAddress: string
}

let begin: (socket: ServerSocket, wire: Wire) => void
let eventsOf: (socket: ServerSocket) => WireEvents

/**
 * A WebSocket of a server; the handlers of a route and of {@link upgrade} receive it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { type ServerSocket, serve } from 'corespun/http'
 *
 * const message = (socket: ServerSocket, text: string | Uint8Array) => {
 *   socket.send(`${socket.protocol}: ${String(text)}`)
 * }
 * const server = await serve({ port: 0, routes: { '/': { websocket: { message, protocols: ['echo'] } } } })
 * if (typeof WebSocket === 'function') { // Node 22 and later have a client
 *   const client = new WebSocket(server.url.replace('http', 'ws'), 'echo')
 *   client.onopen = () => client.send('hello')
 *   const { data } = await new Promise<MessageEvent>((resolve) => (client.onmessage = resolve))
 *   assert.equal(data, 'echo: hello')
 * }
 * await server.close()
 * ```
 */
export class ServerSocket<Data = unknown> {
  /** The program's own: what the upgrade has set. */
  data: Data
  /** The subprotocol that was agreed on; '' without one. */
  readonly protocol: string
  /** The client's address, as `request.remoteAddress`. */
  readonly remoteAddress: string
  readonly #parts: Parts
  readonly #rooms = new Set<string>()
  #wire: Wire | undefined
  #state: 1 | 2 | 3 = State.open

  static {
    begin = (socket, wire) => {
      socket.#wire = wire
      socket.#run('open', (handlers) => handlers.open?.(socket))
    }
    eventsOf = (socket) => socket.#events()
  }

  /** @internal */
  constructor(parts: Parts) {
    this.#parts = parts
    this.data = parts.data as Data
    this.protocol = parts.protocol
    this.remoteAddress = parts.remoteAddress
  }

  /** As of the standard's WebSocket: 1 open, 2 closing, 3 closed. */
  get readyState(): 1 | 2 | 3 {
    return this.#state
  }

  /** How many bytes wait to be sent. */
  get queuedBytes(): number {
    return this.#state === State.closed ? 0 : this.#wire!.queuedBytes()
  }

  /** The rooms that it has entered. */
  get rooms(): readonly string[] {
    return [...this.#rooms]
  }

  /**
   * Sends a message: a string as text, anything else as bytes, which are copied.
   * @returns How many bytes wait to be sent, with this message: as far as the core has been asked, which is
   *   at most 64 KiB ago. A program that produces without end pauses above `outBytesMax` until `drain`.
   *   -1: it is not sent, since the socket closes or has closed.
   * @throws {HttpError} `HTTP_ARGUMENT` for another value.
   */
  send(message: string | ArrayBuffer | ArrayBufferView): number {
    const given = payloadOf(message, 'socket.send()')
    return this.#state === State.open ? this.#wire!.send(given) : -1
  }

  /**
   * Sends a ping. The server sends its own: see `pingMs`.
   * @throws {HttpError} `HTTP_ARGUMENT` for a payload of more than 125 bytes.
   */
  ping(payload: string | Uint8Array = ''): void {
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
    if (!(bytes instanceof Uint8Array) || bytes.byteLength > PING_BYTES_MAX)
      throw wrong('socket.ping(): the payload', `at most ${PING_BYTES_MAX} bytes`, payload)
    if (this.#state === State.open) this.#wire!.ping(bytes)
  }

  /**
   * Begins to close: sends a close frame and waits for that of the client, at most `closeMs`.
   * @param code 1000 to 1003, 1007 to 1014, or 3000 to 4999. Default 1000.
   * @param reason At most 123 bytes of UTF-8.
   * @throws {HttpError} `HTTP_ARGUMENT` for another code or reason.
   */
  close(code = 1000, reason = ''): void {
    if (!mayBeSent(code))
      throw wrong('socket.close(): code', 'one of 1000 to 1003, 1007 to 1014, 3000 to 4999', code)
    if (typeof reason !== 'string' || Buffer.byteLength(reason) > REASON_BYTES_MAX)
      throw wrong('socket.close(): reason', `a string of at most ${REASON_BYTES_MAX} bytes`, reason)
    if (this.#state !== State.open) return
    this.#state = State.closing
    this.#wire!.close(code, reason)
  }

  /** Closes the connection at once, without a close frame. */
  terminate(): void {
    if (this.#state === State.closed) return
    this.#state = State.closing
    this.#wire!.terminate()
  }

  /**
   * Enters a room: what is published there is sent to this socket from now on.
   * @throws {HttpError} `HTTP_ARGUMENT` for a name that is empty or longer than 512 characters, and for the
   *   1025th room of a socket.
   */
  subscribe(room: string): void {
    checkRoom(room, 'socket.subscribe()')
    if (this.#state === State.closed || this.#rooms.has(room)) return
    if (this.#rooms.size === ROOMS_MAX)
      throw wrong('socket.subscribe()', `at most ${ROOMS_MAX} rooms of one socket`, room)
    this.#rooms.add(room)
    this.#wire!.join(room)
  }

  /** Leaves a room. A socket that closes leaves its rooms by itself. */
  unsubscribe(room: string): void {
    if (this.#rooms.delete(room)) this.#wire!.leave(room)
  }

  /**
   * Sends a message to all other sockets in a room, on all workers of the server; this one need not be in it.
   * @throws {HttpError} `HTTP_ARGUMENT` for another value; `HTTP_ROOMS_FULL` if a worker is too busy to
   *   receive more, in which case only sockets of this worker have received the message.
   */
  publish(room: string, message: string | ArrayBuffer | ArrayBufferView): void {
    checkRoom(room, 'socket.publish()')
    this.#parts.hub.publish(room, payloadOf(message, 'socket.publish()'), this.#wire)
  }

  #events(): WireEvents {
    return {
      onMessage: (message) => {
        if (this.#state !== State.open) return
        this.#run('message', (handlers) =>
          handlers.message?.(this, message as string | Uint8Array<ArrayBuffer>),
        )
      },
      onDrain: () => this.#run('drain', (handlers) => handlers.drain?.(this)),
      onClose: (code, reason) => {
        this.#state = State.closed
        for (const room of this.#rooms) this.#wire!.leave(room)
        this.#rooms.clear()
        this.#run('close', (handlers) => handlers.close?.(this, code, reason))
      },
    }
  }

  #run(name: string, call: (handlers: WebSocketHandlers) => void | Promise<void>): void {
    try {
      const promise = promiseOf(call(this.#parts.handlers))
      promise?.then(undefined, (error: unknown) => this.#fail(error, name))
    } catch (error) {
      this.#fail(error, name)
    }
  }

  #fail(error: unknown, name: string): void {
    const { hub, request } = this.#parts
    hub.report(error, request, `websocket.${name}`)
    this.close(INTERNAL_ERROR)
  }
}

/** @internal */
export function beginSocket(socket: ServerSocket, wire: Wire): void {
  begin(socket, wire)
}

/** @internal */
export function socketEvents(socket: ServerSocket): WireEvents {
  return eventsOf(socket)
}

function mayBeSent(code: unknown): boolean {
  if (!Number.isInteger(code)) return false
  const number = code as number
  if (number >= 3000) return number <= 4999
  return (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014)
}

refuseClass(ServerSocket, 'a socket belongs to its thread; use publish() to reach others')
