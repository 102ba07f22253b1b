/**
 * From a request to a WebSocket: `upgrade` for fetch handlers, and the handler of a route with `websocket`.
 *
 * The response is written at once, so that frameworks may copy or replace the Response they are given: what
 * they return for a request that has its response is not sent.
 */
import { promiseOf } from '../../base/index.ts'
import { TypeOf } from '../message/core-interface.ts'
import { HttpError } from '../errors.ts'
import { exchangeOf, OWN_REQUEST } from '../fetch/request.ts'
import { CorespunResponse, isResponse } from '../fetch/response.ts'
import type { HttpRequest } from '../message/http-request.ts'
import { wrong } from '../message/limits.ts'
import { parseHandlers, parseUpgrade, type Parsed } from './handlers.ts'
import { handshake } from './handshake.ts'
import { checkRoom, payloadOf } from './message.ts'
import {
  beginSocket,
  ServerSocket,
  socketEvents,
  type UpgradeOptions,
  type WebSocketHandlers,
} from './socket.ts'

/**
 * Makes a WebSocket of a request, in a handler or in the `fetch` of an app, and calls `open`. The handler
 * returns the result, in place of a response that is written already: its status is 204 for the 101, or 400,
 * 403 or 426 if the handshake is refused.
 * @param request The request that the handler received, or `c.req.raw`, `event.req` and the like.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid handlers, options, or a request that is not a handler's;
 *   `HTTP_UPGRADE` for a request without a connection, that has its response already, or on node:http without
 *   the package `ws`.
 *
 * @example
 * ```ts
 * import { serve, upgrade } from 'corespun/http'
 *
 * const server = await serve({
 *   port: 0,
 *   fetch: (request) =>
 *     request.headers.has('upgrade')
 *       ? upgrade(request, { message: (socket, text) => void socket.send(text) }, { data: { name: 'a' } })
 *       : new Response('hello'),
 * })
 * await server.close()
 * ```
 */
export function upgrade<Data = unknown>(
  request: Request,
  handlers: WebSocketHandlers<Data>,
  options: UpgradeOptions<Data> = {},
): Response {
  return begun(request, parseHandlers(handlers, 'upgrade()'), parseUpgrade(options, 'upgrade()'))
}

/**
 * Sends a message to all WebSockets in a room, on all workers of the server that received the request: for
 * handlers of HTTP requests. Sockets have `publish` themselves, and so has the server.
 * @throws {HttpError} `HTTP_ARGUMENT` for a request that is not a handler's, or a message that is neither
 *   text nor bytes; `HTTP_ROOMS_FULL` as {@link ServerSocket.publish}.
 *
 * @example
 * ```ts
 * import { publish, serve } from 'corespun/http'
 *
 * const server = await serve({
 *   port: 0,
 *   routes: {
 *     '/live': { websocket: { open: (socket) => socket.subscribe('news') } },
 *     '/news': { POST: async (request) => (publish(request, 'news', await request.text()), 'sent') },
 *   },
 * })
 * await server.close()
 * ```
 */
export function publish(
  request: Request,
  room: string,
  message: string | ArrayBuffer | ArrayBufferView,
): void {
  checkRoom(room, 'publish()')
  const given = payloadOf(message, 'publish()')
  const exchange = exchangeOf(request)
  if (exchange === undefined) throw wrong('publish(): request', OWN_REQUEST, request)
  exchange.hub?.publish(room, given, undefined)
}

/** The handler of a route with `websocket`; other requests go to `otherwise`. */
export function socketHandler(
  value: unknown,
  option: string,
  otherwise: ((request: HttpRequest) => unknown) | undefined,
): (request: HttpRequest) => unknown {
  const parsed = parseHandlers(value, option)
  const { handlers } = parsed
  return (request) => {
    const isAsked = request.headers.get('upgrade')?.toLowerCase() === 'websocket'
    if (otherwise !== undefined && !isAsked) return otherwise(request)
    if (handlers.upgrade === undefined || !isAsked) return begun(request, parsed, {})
    const decided = handlers.upgrade(request)
    const promise = promiseOf(decided)
    if (promise === undefined) return decide(request, parsed, decided)
    return promise.then((found) => decide(request, parsed, found))
  }
}

function decide(request: HttpRequest, parsed: Parsed, decided: unknown): Response {
  if (isResponse(decided)) return decided
  return begun(request, parsed, parseUpgrade(decided ?? {}, 'websocket.upgrade()'))
}

function begun(request: Request, parsed: Parsed, options: UpgradeOptions): Response {
  const exchange = exchangeOf(request)
  if (exchange === undefined) throw wrong('upgrade(): request', OWN_REQUEST, request)
  const own = request as HttpRequest
  const { remoteAddress } = own
  const granted = handshake(exchange, new URL(own.url).host, parsed, options)
  if ('status' in granted) {
    const { status, why, lines } = granted
    exchange.respond(status, TypeOf.text, lines, `${why}\n`)
    return new CorespunResponse(`${why}\n`, { status })
  }
  const { hub } = exchange
  if (hub === undefined || exchange.upgrade === undefined)
    throw new HttpError('HTTP_UPGRADE', { reason: 'the request was injected and has no connection' })
  const { protocol } = granted
  const parts = { handlers: parsed.handlers, hub, request: own, data: options.data, protocol, remoteAddress }
  const socket = new ServerSocket(parts)
  beginSocket(socket, exchange.upgrade(granted, socketEvents(socket)))
  // Frameworks copy it, and no constructor accepts 101.
  return new CorespunResponse(null, { status: 204 })
}
