/**
 * An adapter from node:http to the app, for platforms that have no native core and for development there.
 *
 * node:http parses, waits, refuses and closes as usual; docs/guide/http.md lists where that is laxer than the
 * native core. A request becomes Node's `Request`, is handled like one of `inject`, and the `Response` is
 * written. The adapter adds only the limits of `serve` that node:http lacks.
 */
import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { otherRuntime } from '../../../base/index.ts'
import type { Core, CoreAddress, CoreLimits, CoreSettings, CoreStats } from '../core.ts'
import { HttpError } from '../../errors.ts'
import { isClusterWorker } from '../cluster-worker.ts'
import { readProxyHeader } from './proxy-header.ts'
import { NodeSockets } from './sockets.ts'
import { type Client, responded } from '../../app/inject.ts'
import { NativeRequest } from '../../fetch/request.ts'
import type { Grant, Wire, WireEvents } from '../../websocket/wire.ts'

/**
 * A path with a character that is not allowed in a URI; the URL class would turn `\\` into `/` behind a
 * proxy's rules.
 */
const NOT_IN_PATHS = /^[^?]*["<>\\^`{|}]/

/** node:http's own bound on the time of a whole request, ms; it may not be less than that of the head. */
const REQUEST_MS = 300_000

/**
 * node:http leaves every request that offers an upgrade to its listener, if it has one. Only those that ask
 * for a WebSocket are left to ours; offers of h2c go on as HTTP/1.1.
 */
class Incoming extends IncomingMessage {
  declare private offers: boolean

  get upgrade(): boolean {
    return this.offers && this.method === 'GET' && this.headers.upgrade?.toLowerCase() === 'websocket'
  }

  set upgrade(offers: boolean) {
    this.offers = offers
  }
}

export class NodeCore implements Core {
  readonly kind = 'node'
  readonly #settings: CoreSettings
  readonly #server: ReturnType<typeof createServer>
  /** Connections, and what aborts their requests that have no whole response yet. */
  readonly #open = new Map<Socket, Map<ServerResponse, AbortController>>()
  readonly #counts = { connectionsTotal: 0, requests: 0, constants: 0, refused: 0, aborted: 0, cut: 0 }
  /**
   * Connections that a request offered to upgrade. node:http loses what was read after it, so the next bytes
   * may be the body of a request whose head is lost: nothing after it is taken for a request.
   */
  readonly #offered = new WeakSet<Socket>()
  /** The clients that proxies have stated. */
  readonly #clients = new WeakMap<Socket, string>()
  readonly #closedBytes = { in: 0, out: 0 }
  #isAnnounced = false
  readonly #isServerClosing = (): boolean => this.#isAnnounced
  readonly #sockets: NodeSockets
  #isStopping = false

  constructor(settings: CoreSettings) {
    const { limits } = settings
    this.#settings = settings
    this.#sockets = new NodeSockets(settings.hub, limits.outBytesMax)
    this.#server = createServer({
      IncomingMessage: Incoming,
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersMs,
      requestTimeout: Math.max(REQUEST_MS, limits.headersMs),
      connectionsCheckingInterval: Math.max(10, Math.min(1000, limits.headersMs / 2)),
      keepAliveTimeout: limits.idleMs,
      highWaterMark: limits.outBytesMax,
      noDelay: true,
    })
    this.#server.maxHeadersCount = 0 // counted here: node:http drops what exceeds its limit
    this.#server.maxConnections = limits.connectionsMax
    this.#server.maxRequestsPerSocket = limits.requestsPerConnectionMax
    if (settings.proxyProtocol) this.#expectProxy()
    this.#server
      .on('connection', (socket: Socket) => this.#onConnection(socket))
      .on('request', (request, response) => void this.#onRequest(request, response))
      .on('upgrade', (request, socket, head) => void this.#onUpgrade(request, socket as Socket, head))
  }

  async listen(): Promise<CoreAddress> {
    const { host, port, unixPath, fd, backlog } = this.#settings
    const where = unixPath === undefined ? { host, port } : { path: unixPath }
    // The workers of node:cluster share a port through its primary.
    this.#server.listen(fd === undefined ? { ...where, backlog, exclusive: !isClusterWorker() } : { fd })
    await once(this.#server, 'listening') // rejects with the server's error
    this.#server.on('error', this.#settings.onFault)
    if (unixPath !== undefined) return { host: '', port: 0, unixPath }
    const bound = this.#server.address() as AddressInfo | string
    if (typeof bound === 'string') return { host: '', port: 0, unixPath: bound }
    return { host: bound.address, port: bound.port, unixPath: undefined }
  }

  stats(): CoreStats {
    let { in: bytesIn, out: bytesOut } = this.#closedBytes
    for (const socket of this.#open.keys()) {
      bytesIn += socket.bytesRead
      bytesOut += socket.bytesWritten
    }
    return { connections: this.#open.size, ...this.#counts, bytesIn, bytesOut, heldBytes: 0, openFiles: 0 }
  }

  announceStop(): void {
    this.#isAnnounced = true
  }

  async stop(graceMs: number): Promise<void> {
    this.#isAnnounced = this.#isStopping = true
    // node:http's own `close` also destroys connections whose last response is unsent.
    const closed = new Promise<void>((resolve) => {
      const close = otherRuntime() === undefined ? NetServer.prototype.close : this.#server.close
      close.call(this.#server, () => resolve())
    })
    for (const [socket, open] of this.#open)
      if (open.size === 0 && !this.#sockets.has(socket)) socket.destroySoon()
    this.#sockets.stop()
    const late = setTimeout(() => {
      for (const responses of this.#open.values()) this.#counts.cut += responses.size > 0 ? 1 : 0
      this.#server.closeAllConnections()
      for (const socket of this.#open.keys()) socket.destroy() // those that node:http has handed over
    }, graceMs)
    await closed
    while (this.#open.size > 0) await nextTurn() // the last events of their sockets
    clearTimeout(late)
    this.#server.close(() => {}) // clears the timer that checks heads
  }

  /** node:http gets a socket once the header before its first request has been read. */
  #expectProxy(): void {
    const server = this.#server
    const [serve] = server.listeners('connection') as ((this: unknown, socket: Socket) => void)[]
    const { headersMs, headerBytesMax } = this.#settings.limits
    server.removeAllListeners('connection').on('connection', (socket: Socket) => {
      readProxyHeader(socket, { timeoutMs: headersMs, bytesMax: headerBytesMax }, (client) => {
        if (client !== undefined) this.#clients.set(socket, client)
        serve.call(server, socket)
      })
    })
  }

  #onConnection(socket: Socket): void {
    this.#counts.connectionsTotal += 1
    this.#open.set(socket, new Map())
    socket.once('close', () => {
      this.#closedBytes.in += socket.bytesRead
      this.#closedBytes.out += socket.bytesWritten
      // Pipelined responses that wait for others have no socket, so node:http does not close them.
      for (const response of [...this.#open.get(socket)!.keys()]) this.#onOver(socket, response)
      this.#open.delete(socket)
    })
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request
    if (this.#offered.has(socket)) return
    if (request.headers.upgrade !== undefined) {
      this.#offered.add(socket)
      response.shouldKeepAlive = false
    }
    await this.#respond(request, response, {})
  }

  /** A request for a WebSocket; without one it gets a response like any other, the last of its connection. */
  async #onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once('finish', () => socket.destroySoon())
    socket.on('error', () => response.destroy())
    await this.#sockets.load()
    const begin = (grant: Grant, events: WireEvents): Wire => {
      response.detachSocket(socket)
      this.#open.get(socket)?.delete(response)
      return this.#sockets.begin({ request, socket, head }, grant, events)
    }
    await this.#respond(request, response, { hub: this.#settings.hub, upgrade: begin })
  }

  async #respond(request: IncomingMessage, response: ServerResponse, more: Partial<Client>): Promise<void> {
    const { limits, onExchange, hub } = this.#settings
    const { socket } = request
    const standard = refusalOf(request, limits) || requestOf(request, limits)
    if (typeof standard === 'number') {
      this.#counts.refused += 1
      response.writeHead(standard, { 'content-length': 0 }).end()
      return
    }
    this.#counts.requests += 1
    const remoteAddress = this.#clients.get(socket) ?? socket.remoteAddress
    const disconnected = new AbortController()
    this.#open.get(socket)?.set(response, disconnected)
    response.once('close', () => this.#onOver(socket, response))
    try {
      const { signal } = disconnected
      let trailers: string[] | undefined
      const made = await responded(onExchange, standard, {
        signal,
        remoteAddress,
        hub,
        isServerClosing: this.#isServerClosing,
        trailerPairs: () => request.rawTrailers,
        hint: (headers) => hint(response, headers),
        onTrailers: (pairs) => (trailers = pairs),
        ...more,
      })
      if (!this.#sockets.has(socket)) await send(made, response, () => trailers)
    } catch {
      response.destroy() // the client has disconnected, or the app has aborted its response
    }
  }

  /** The response has been sent, or its connection has closed. */
  #onOver(socket: Socket, response: ServerResponse): void {
    const open = this.#open.get(socket)
    const controller = open?.get(response)
    if (open?.delete(response) !== true) return
    if (!response.writableFinished) {
      this.#counts.aborted += 1
      controller!.abort()
    }
    if (this.#isStopping && open.size === 0) socket.destroySoon()
  }
}

/** Status of the response that refuses a request; 0: it is not refused. */
function refusalOf({ url, rawHeaders, headers }: IncomingMessage, limits: CoreLimits): number {
  if (NOT_IN_PATHS.test(url!)) return 400
  if (url!.length > limits.targetBytesMax) return 414
  if (rawHeaders.length > 2 * limits.headersMax) return 431
  return Number(headers['content-length'] ?? 0) > limits.bodyBytesMax ? 413 : 0
}

/**
 * The same as a standard request; 400 for a target or a method that it cannot have, 421 for `https` in its
 * target, since the connection has no TLS.
 */
function requestOf(request: IncomingMessage, limits: CoreLimits): Request | number {
  const { method, url, rawHeaders } = request
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at], rawHeaders[at + 1])
  const hasBody = headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0
  const body = hasBody && method !== 'GET' && method !== 'HEAD' ? piecesOf(request, limits) : null
  try {
    const target = url!.startsWith('/') ? `http://localhost${url}` : url!
    const standard = new NativeRequest(target, { method, headers, body, duplex: 'half' } as RequestInit)
    return /^https:/i.test(target) ? 421 : standard
  } catch {
    return 400
  }
}

async function* piecesOf(request: IncomingMessage, limits: CoreLimits): AsyncGenerator<Buffer> {
  const { bodyBytesMax, headerBytesMax, headersMax } = limits
  let bytes = 0
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      if ((bytes += piece.byteLength) > bodyBytesMax) break
      yield piece
    }
  } catch (cause) {
    throw new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its body' }, { cause })
  }
  if (bytes > bodyBytesMax) throw new HttpError('HTTP_BODY_TOO_LARGE', { bodyBytesMax })
  if (request.rawTrailers.length > 2 * headersMax)
    throw new HttpError('HTTP_TRAILERS_TOO_LARGE', { headerBytesMax, headersMax })
}

/** Sends a 103 in the response's turn. Node's own `writeEarlyHints` refuses valid links, and needs one. */
function hint(response: ServerResponse, headers: string): boolean {
  // The connections of other runtimes' node:http are not written to directly.
  if (response.req.httpVersion === '1.0' || response.headersSent || otherRuntime() !== undefined) return false
  const head = `HTTP/1.1 103 Early Hints\r\n${headers}\r\n`
  if (response.socket !== null) response.socket.write(head, 'latin1')
  else response.once('socket', (socket: Socket) => socket.write(head, 'latin1'))
  return true
}

/** @param trailersOf Those of the response, when its body has ended. */
async function send(
  { status, headers, body }: Response,
  response: ServerResponse,
  trailersOf: () => string[] | undefined,
): Promise<void> {
  const { req: request } = response
  // HTTP/1.0 has no chunks, and node:http refuses to announce trailers without.
  if (request.httpVersion === '1.0') headers.delete('trailer')
  const pairs = [...headers].flat()
  // node:http reads away a body that nobody has begun to read, and no other.
  if (request.readableDidRead && !request.complete) pairs.push('connection', 'close')
  response.writeHead(status, pairs)
  if (body === null) response.end()
  else {
    const stream = Readable.fromWeb(body)
    // Before the listener of `pipeline`, which ends the response.
    stream.once('end', () => response.addTrailers(entriesOf(trailersOf() ?? [])))
    await pipeline(stream, response)
  }
}

function entriesOf(pairs: readonly string[]): [string, string][] {
  return Array.from({ length: pairs.length / 2 }, (_, at) => [pairs[2 * at], pairs[2 * at + 1]])
}
