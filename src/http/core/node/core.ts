/**
 * An adapter from node:http to the app, for platforms that have no native core and for development there.
 *
 * Over 400 lines: all that node:http does otherwise than the native core is here.
 *
 * node:http parses, waits, refuses and closes as usual; docs/guide/http-serving.md lists where that is laxer
 * than the native core. A request becomes Node's `Request`, is handled like one of `inject`, and the
 * `Response` is written. The adapter adds only the limits of `serve` that node:http lacks.
 */
import { once } from 'node:events'
import { createServer, IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { SecureContext, TLSSocket } from 'node:tls'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { otherRuntime } from '../../../base/index.ts'
import {
  type Certificate,
  type Tls,
  type Core,
  type CoreAddress,
  type CoreSettings,
  type CoreStats,
} from '../../message/core-interface.ts'
import { HttpError } from '../../errors.ts'
import { BACKLOG, REQUESTS_PER_CONNECTION_MAX } from '../../message/layout.ts'
import type { CoreLimits } from '../../message/limits.ts'
import { type Refused, reasonOf } from '../../message/refusals.ts'
import { isClusterWorker } from '../cluster-worker.ts'
import { Lingering } from './linger.ts'
import { readProxyHeader } from './proxy-header.ts'
import { hint, send, sendWhole } from './response.ts'
import { NodeSockets } from './sockets.ts'
import { type Client, responded } from '../../app/inject.ts'
import { StatusError } from '../../app/status-error.ts'
import { NativeRequest } from '../../fetch/request.ts'
import type { Grant, Wire, WireEvents } from '../../message/wire.ts'

/**
 * A target with a character that is not allowed in a URI: the URL class would turn `\\` into `/`, and drop
 * what
 * follows `#`, behind a proxy's rules.
 */
const NOT_IN_PATHS = /^[^?]*[\\^`{|}]|["#<>]/

/** node:http's own bound on the time of a whole request, ms; it may not be less than that of the head. */
const REQUEST_MS = 300_000
/** One in this many of `connectionsMax` may be in a handshake. */
const BEGINNING_SHARE = 4

/** The module for TLS, which is loaded only for it. */
type Secure = typeof import('./tls.ts')

/**
 * node:http leaves every request that offers an upgrade to its listener, if it has one. Only those that ask
 * for a WebSocket are left to ours; offers of h2c go on as HTTP/1.1, and so does a request for a WebSocket
 * behind one that has no response yet: a socket cannot be left to both.
 */
class Incoming extends IncomingMessage {
  declare private offers: boolean
  declare private isBehind: boolean | undefined

  get upgrade(): boolean {
    const isAsked = this.offers && this.method === 'GET' && this.httpVersion !== '1.0'
    if (!isAsked || this.headers.upgrade?.toLowerCase() !== 'websocket') return false
    return !(this.isBehind ??= Boolean((this.socket as Busy)._httpMessage))
  }

  set upgrade(offers: boolean) {
    this.offers = offers
  }
}

export class NodeCore implements Core {
  readonly kind = 'node'
  readonly #settings: CoreSettings
  readonly #server: Server | TlsServer
  /** Sockets whose handshake is not complete. */
  readonly #beginning = new Set<Socket>()
  readonly #secured: Secure | undefined
  #names: InstanceType<Secure['Names']> | undefined
  /** Connections, and what aborts their requests that have no whole response yet. */
  readonly #open = new Map<Socket, Map<ServerResponse, AbortController>>()
  readonly #counts = { connectionsTotal: 0, requests: 0, constants: 0, refused: 0, aborted: 0, cut: 0 }
  /**
   * Connections that end with the response to the last request: one that was refused, whose response closes,
   * or that offered an upgrade, where node:http loses what was read behind it. Nothing behind it is taken for
   * a request.
   */
  readonly #ending = new WeakSet<Socket>()
  /** What ends a connection whose parser has failed, when no more than so many responses are left. */
  readonly #failed = new WeakMap<Socket, { readonly end: () => void; readonly left: number }>()
  /** The last request of a connection: what fails within its body belongs to it. */
  readonly #last = new WeakMap<Socket, IncomingMessage>()
  /** The clients that proxies have stated, and the peers of connections with TLS. */
  readonly #clients = new WeakMap<Socket, string>()
  readonly #closedBytes = { in: 0, out: 0 }
  #isAnnounced = false
  readonly #isServerClosing = (): boolean => this.#isAnnounced
  readonly #sockets: NodeSockets
  readonly #lingering: Lingering
  #isStopping = false

  /** @param secure What TLS needs, with the setting `tls`. */
  constructor(settings: CoreSettings, secure?: Secure) {
    const { limits, tls } = settings
    this.#settings = settings
    this.#sockets = new NodeSockets(settings.hub, limits.outBytesMax)
    this.#lingering = new Lingering(limits)
    this.#secured = secure
    const options = {
      IncomingMessage: Incoming,
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersMs,
      requestTimeout: Math.max(REQUEST_MS, limits.headersMs),
      connectionsCheckingInterval: Math.max(10, Math.min(1000, limits.headersMs / 2)),
      keepAliveTimeout: limits.idleMs,
      highWaterMark: limits.outBytesMax,
      noDelay: true,
      requireHostHeader: false, // checked here: node:http refuses without a word
    }
    this.#server = tls === undefined ? createServer(options) : this.#secure(tls, options, secure!)
    this.#server.maxHeadersCount = 0 // counted here: node:http drops what exceeds its limit
    this.#server.maxConnections = limits.connectionsMax
    this.#server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX
    if (settings.proxyProtocol) this.#expectProxy()
    if (tls === undefined) this.#server.on('connection', (socket: Socket) => this.#onConnection(socket))
    this.#server
      .on('request', (request, response) => void this.#onRequest(request, response))
      .on('upgrade', (request, socket, head) => void this.#onUpgrade(request, socket as Socket, head))
      .on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
        if (this.#isEnding(request.socket)) return
        this.#last.set(request.socket, request)
        this.#refuse(request, response, [417, 'expectation'])
      })
      .on('clientError', (error: NodeJS.ErrnoException, socket) =>
        this.#onClientError(error, socket as Socket),
      )
      .on('drop', (dropped) => this.#closed('connections-max', dropped?.remoteAddress))
  }

  async listen(): Promise<CoreAddress> {
    const { host, port, unixPath, fd } = this.#settings
    const where = unixPath === undefined ? { host, port } : { path: unixPath }
    // The workers of node:cluster share a port through its primary.
    this.#server.listen(
      fd === undefined ? { ...where, backlog: BACKLOG, exclusive: !isClusterWorker() } : { fd },
    )
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
    for (const socket of this.#beginning) socket.destroy()
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

  setTls(tls: Tls): void {
    const { Names, renew } = this.#secured!
    renew(this.#server as TlsServer, tls, this.#names!.tls)
    this.#names = new Names(tls)
  }

  #secure(tls: Tls, options: object, { Names, createSecure }: Secure): TlsServer {
    const { limits } = this.#settings
    this.#names = new Names(tls)
    const server = createSecure(tls, { ...options, handshakeTimeout: limits.headersMs }, (name, done) => {
      void this.#choose(name, done)
    })
    const most = Math.max(1, Math.floor(limits.connectionsMax / BEGINNING_SHARE))
    before(server, (socket, serve) => {
      if (this.#beginning.size >= most) {
        this.#closed('handshakes-max', socket.remoteAddress)
        return void socket.destroy()
      }
      const { remoteAddress } = socket // unknown once it has ended, as by a handshake that fails
      if (remoteAddress !== undefined && !this.#clients.has(socket)) this.#clients.set(socket, remoteAddress)
      this.#beginning.add(socket)
      socket.once('close', () => this.#beginning.delete(socket))
      serve(socket)
    })
    return server
      .on('secureConnection', (socket: TLSSocket) => {
        this.#beginning.delete(rawOf(socket))
        if (isInvalid(socket)) this.#onTlsError(new Error('no authority has signed it'), socket)
        else this.#onConnection(socket)
      })
      .on('tlsClientError', (error, socket) => this.#onTlsError(error, socket))
  }

  /** A handshake has failed. */
  #onTlsError(error: NodeJS.ErrnoException, socket: TLSSocket): void {
    const { authorizationError } = socket
    const reason = this.#secured!.failureOf(error, authorizationError)
    if (reason !== undefined) {
      const detail = String(authorizationError ?? error.message)
      this.#count({ what: 'handshake', reason, protocol: 'TLS', detail }, socket)
    }
    socket.destroy()
  }

  /** node:http has no request: its parser has refused the bytes, or waited too long for them. */
  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const status = statusOf(error)
    // Behind the last request of a connection (RFC 9112, 9.6), whose response is still to be sent.
    const isLast = error.code === 'HPE_CLOSED_CONNECTION' || this.#ending.has(socket)
    const isWhole = this.#last.get(socket)?.complete !== false
    if (isLast && isWhole && status !== 0) return this.#lingering.behind(socket)
    // A request whose body has failed has no response; those before it have theirs first.
    const left = isWhole ? 0 : 1
    const isLater = status !== 0 && (this.#open.get(socket)?.size ?? 0) > left
    const isHeard =
      isLater || (socket.writable && status !== 0 && !(socket as Busy)._httpMessage?.headersSent)
    if (status !== 0 && isWhole) {
      const detail = (error as { reason?: string }).reason ?? error.message
      const refused = { what: 'request', reason: reasonOf(status), protocol: 'HTTP/1.1', detail } as const
      this.#count({ ...refused, status: isHeard ? status : 0 }, socket)
    }
    const end = (): void => {
      if (isHeard && socket.writable)
        socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`)
      if (isLater && isWhole) socket.destroySoon()
      else socket.destroy(error)
    }
    if (!isLater) return end()
    this.#ending.add(socket)
    this.#failed.set(socket, { end, left })
    if (isWhole) this.#lingering.behind(socket)
  }

  #closed(reason: string, remoteAddress = ''): void {
    this.#counts.refused += 1
    const what = 'connection'
    this.#settings.refusals.report({ what, reason, status: 0, protocol: '', remoteAddress, detail: '' })
  }

  #count(one: Omit<Refused, 'remoteAddress' | 'status'> & { status?: number }, socket: Socket): void {
    this.#counts.refused += 1
    const remoteAddress = this.#clients.get(rawOf(socket)) ?? socket.remoteAddress ?? ''
    this.#settings.refusals.report({ status: 0, ...one, remoteAddress })
  }

  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    [status, detail]: readonly [number, string],
  ): void {
    const { socket } = request
    this.#count({ what: 'request', reason: reasonOf(status), status, protocol: 'HTTP/1.1', detail }, socket)
    this.#lingering.after(request, socket)
    // node:http would read a body of any length away, to keep the connection.
    const closes = status === 413 || status === 400
    if (closes) {
      this.#ending.add(socket)
      this.#last.delete(socket) // what fails within its body changes nothing
    }
    const close = closes ? { connection: 'close' } : {}
    response.writeHead(status, { 'content-length': 0, ...close }).end()
  }

  async #choose(name: string, done: (error: Error | null, context?: SecureContext) => void): Promise<void> {
    let context: SecureContext | undefined
    try {
      context = await this.#names!.contextFor(name)
    } catch (error) {
      this.#settings.onFault(error)
      return done(error as Error)
    }
    done(null, context)
  }

  /** node:http gets a socket once the header before its first request has been read. */
  #expectProxy(): void {
    const { headersMs, headerBytesMax } = this.#settings.limits
    before(this.#server, (socket, serve) => {
      const served = (client: string | undefined): void => {
        if (client !== undefined) this.#clients.set(socket, client)
        serve(socket)
      }
      const detail = 'the connection must begin with a valid PROXY protocol header'
      const refused = { what: 'connection', reason: 'proxy-header', status: 400, protocol: 'PROXY' } as const
      const within = { timeoutMs: headersMs, bytesMax: headerBytesMax }
      readProxyHeader(socket, within, served, () => this.#count({ ...refused, detail }, socket))
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
    if (this.#isEnding(socket)) return
    this.#last.set(socket, request)
    if (request.headers.upgrade === undefined) return this.#respond(request, response, {})
    this.#ending.add(socket)
    response.shouldKeepAlive = false
    await this.#respond(request, response, { upgrade: tooLate })
  }

  /** Whether a request is behind the last one of its connection; then it is dropped. */
  #isEnding(socket: Socket): boolean {
    for (const before of this.#open.get(socket)?.keys() ?? [])
      if ((before as Closing)._last === true) this.#ending.add(socket)
    const isEnding = this.#ending.has(socket)
    if (isEnding) this.#lingering.behind(socket)
    return isEnding
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
    const standard = refusalOf(request, limits) ?? requestOf(request, limits)
    if (!('method' in standard)) return this.#refuse(request, response, standard)
    this.#counts.requests += 1
    const stated = this.#clients.get(rawOf(socket))
    const disconnected = new AbortController()
    this.#open.get(socket)?.set(response, disconnected)
    response.once('close', () => this.#onOver(socket, response))
    try {
      const { signal } = disconnected
      let trailers: string[] | undefined
      const made = await responded(onExchange, standard, {
        signal,
        remoteAddress: stated ?? socket.remoteAddress,
        remotePort: stated === undefined ? socket.remotePort : 0,
        hub,
        isServerClosing: this.#isServerClosing,
        trailerPairs: () => request.rawTrailers,
        hint: (headers) => hint(response, headers),
        onTrailers: (pairs) => (trailers = pairs),
        whole: (...made) => {
          // Behind the response node:http reads away what the app may still read.
          if (standard.body !== null && !request.readableEnded) return false
          this.#lingering.after(request, socket)
          sendWhole(response, ...made)
          return true
        },
        ...secured(socket),
        ...more,
      })
      if (made === undefined || this.#sockets.has(socket)) return
      this.#lingering.after(request, socket)
      await send(made, response, () => trailers)
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
    if ((response as Closing)._last === true) this.#ending.add(socket)
    const failed = this.#failed.get(socket)
    if (failed !== undefined && open.size <= failed.left) failed.end()
    if (this.#isStopping && open.size === 0) socket.destroySoon()
  }
}

/** Have `first` decide which connections a server gets, and when. */
function before(server: NetServer, first: (socket: Socket, serve: (socket: Socket) => void) => void): void {
  const [own] = server.listeners('connection') as ((this: NetServer, socket: Socket) => void)[]
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    first(socket, (ready) => own.call(server, ready))
  })
}

/** As the native core responds to a request for a WebSocket behind one that has no response yet. */
function tooLate(): never {
  throw new StatusError(503, 'the connection cannot become a WebSocket now')
}

/** The socket below the TLS of another. */
function rawOf(socket: Socket): Socket {
  return (socket as { _parent?: Socket })._parent ?? socket
}

function isSecure(socket: Socket): socket is TLSSocket {
  // Other runtimes' sockets have the property without TLS, too.
  return (socket as Partial<TLSSocket>).encrypted === true
}

/** Whether the client has shown a certificate that no authority has signed. */
function isInvalid(socket: TLSSocket): boolean {
  return !socket.authorized && socket.getPeerX509Certificate() !== undefined
}

function secured(socket: Socket): {
  scheme: 'http' | 'https'
  clientCertificate?: Certificate | undefined
} {
  if (!isSecure(socket)) return { scheme: 'http' }
  return { scheme: 'https', clientCertificate: socket.getPeerX509Certificate() }
}

type Busy = Socket & { readonly _httpMessage?: ServerResponse }
/** Whether node:http has sent the head of a response that closes its connection. */
type Closing = ServerResponse & { readonly _last?: boolean }

/** The status for an error of node:http's parser or clock; 0: the connection has failed. */
function statusOf({ code = '' }: NodeJS.ErrnoException): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 413
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408
  return code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE' ? 400 : 0
}

/** Status of the response that refuses a request, and why; undefined: it is not refused. */
function refusalOf(request: IncomingMessage, limits: CoreLimits): readonly [number, string] | undefined {
  const { url, rawHeaders, headers } = request
  if (NOT_IN_PATHS.test(url!)) return [400, 'target']
  if (url!.length > limits.targetBytesMax) return [414, 'target too long']
  if (rawHeaders.length > 2 * limits.headersMax) return [431, 'too many fields']
  if (headers.host === undefined && request.httpVersion !== '1.0') return [400, 'no host']
  const isLong = Number(headers['content-length'] ?? 0) > limits.bodyBytesMax
  return isLong ? [413, 'body too long'] : undefined
}

/**
 * The same as a standard request; 400 for a target or a method that it cannot have, 421 for a scheme in its
 * target that is not that of the connection.
 */
function requestOf(request: IncomingMessage, limits: CoreLimits): Request | readonly [number, string] {
  const { method, url, rawHeaders } = request
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at], rawHeaders[at + 1])
  if (request.httpVersion === '1.0') headers.delete('upgrade') // as if absent (RFC 9110, 7.8)
  const hasBody = headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0
  const body = hasBody && method !== 'GET' && method !== 'HEAD' ? piecesOf(request, limits) : null
  try {
    const target = url!.startsWith('/') ? `http://localhost${url}` : url!
    const standard = new NativeRequest(target, { method, headers, body, duplex: 'half' } as RequestInit)
    const isOther = !url!.startsWith('/') && /^https:/i.test(target) !== isSecure(request.socket)
    return isOther ? [421, 'the scheme of the target is not that of the connection'] : standard
  } catch {
    return [400, 'method or target']
  }
}

async function* piecesOf(request: IncomingMessage, limits: CoreLimits): AsyncGenerator<Buffer> {
  const { bodyBytesMax, headerBytesMax, headersMax } = limits
  let bytes = 0
  // Behind the response node:http reads away what nobody has begun to read.
  if (request.readableDidRead) throw new HttpError('HTTP_REQUEST_ENDED', { what: 'the body' })
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
