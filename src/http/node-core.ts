/**
 * The core on node:http: used where the native one cannot be loaded, or when it is asked for.
 *
 * node:http reads and writes; this file adds what it leaves out: limits it does not have, refusals it does
 * not make, and answers to malformed requests that wait for the answers before them.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Core, CoreAddress, CoreSettings, CoreStats } from './core.ts'
import { NodeExchange } from './node-exchange.ts'
import { NodeFeed } from './node-feed.ts'
import { asksToClose, parserRefusal, refusalOf, refusalText } from './node-refusals.ts'

/**
 * Requests of one connection begun before others have their turn. Few, since one that was reset is known by
 * the first answer that cannot be sent: what is begun by then is work for nobody, while clients wait.
 */
const TURN_REQUESTS_MAX = 16

/** What is known of one connection. */
interface Line {
  /** Requests that were given to the app and are not answered. */
  readonly open: Set<NodeExchange>
  /** What is read from the connection, in portions. */
  readonly feed: NodeFeed
  /**
   * Requests that were parsed already and have to wait: for answers before them, or for other connections.
   */
  readonly waiting: { request: IncomingMessage; response: ServerResponse; owesContinue: boolean }[]
  requestsCount: number
  /** Requests begun since other connections had their turn. */
  turnCount: number
  /** Somebody will look at `waiting` again. */
  isScheduled: boolean
  /** How a broken request is answered once those before it are; 0: none is. */
  refusal: number
  /** A refusal is on its way: whatever else is wrong does not matter. */
  isRefused: boolean
  /** Nothing is answered behind the request that was begun last. */
  isLast: boolean
  /** The client sends nothing more. */
  isHalfClosed: boolean
  /** A request that was answered before its body had come. */
  answered: NodeExchange | undefined
  /** What had been counted of the socket's bytes. */
  counted: { in: number; out: number }
}

/** See the file's text. */
export class NodeCore implements Core {
  readonly kind = 'node'
  readonly #settings: CoreSettings
  readonly #server: Server
  readonly #lines = new Map<Socket, Line>()
  readonly #constants = new Map<string, CoreSettings['constants'][number]>()
  readonly #counts = { connectionsTotal: 0, requests: 0, constants: 0, refused: 0, aborted: 0, in: 0, out: 0 }
  #isStopping = false
  #isClosingIdle = false

  constructor(settings: CoreSettings) {
    const { limits } = settings
    this.#settings = settings
    for (const constant of settings.constants) {
      this.#constants.set(`${constant.method} ${constant.path}`, constant)
      if (constant.method === 'GET') this.#constants.set(`HEAD ${constant.path}`, constant)
    }
    this.#server = createServer({
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersMs,
      requestTimeout: 0,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: Math.max(10, Math.min(1000, limits.headersMs / 2)),
      highWaterMark: limits.outBytesMax,
      joinDuplicateHeaders: true,
      requireHostHeader: false, // refused with the rest, by refusalOf
      noDelay: true,
    })
    this.#server.maxHeadersCount = 0
    this.#server.maxConnections = limits.connectionsMax
    // A client that only stopped sending is answered; node:http reads this of its server and has no option.
    Object.assign(this.#server, { httpAllowHalfOpen: true })
    this.#server
      .on('connection', (socket: Socket) => this.#onConnection(socket))
      .on('request', (request, response) => this.#onRequest(request, response, false))
      .on('checkContinue', (request, response) => this.#onRequest(request, response, true))
      .on('checkExpectation', (request, response) => this.#onRequest(request, response, false))
      .on('connect', (_request, socket) => this.#onConnect(socket as Socket))
      .on('clientError', (error, socket) => this.#onBroken(error, socket as Socket))
  }

  async listen(): Promise<CoreAddress> {
    const { host, port, unixPath, backlog, reusePort } = this.#settings
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      const place = unixPath === undefined ? { host, port, reusePort } : { path: unixPath }
      this.#server.listen({ ...place, backlog, exclusive: true }, () => {
        this.#server.off('error', reject).on('error', this.#settings.onFault)
        resolve()
      })
    })
    if (unixPath !== undefined) return { host: '', port: 0, unixPath }
    const { address, port: bound } = this.#server.address() as AddressInfo
    return { host: address, port: bound, unixPath: undefined }
  }

  stats(): CoreStats {
    const { in: bytesIn, out: bytesOut, ...counts } = this.#counts
    let [more, sent] = [0, 0]
    for (const [socket, { counted }] of this.#lines) {
      more += socket.bytesRead - counted.in
      sent += socket.bytesWritten - counted.out
    }
    return { connections: this.#lines.size, ...counts, bytesIn: bytesIn + more, bytesOut: bytesOut + sent }
  }

  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    // node:http's own `close` destroys what it takes for idle at once, requests in the kernel included.
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(this.#server, () => resolve())
    })
    // A request that has reached the kernel before this call is still taken.
    await nextTurn()
    await nextTurn()
    for (const [socket, { open, waiting, answered }] of this.#lines) {
      const isIdle = open.size + waiting.length === 0
      // Nobody waits for a body that nobody wants either.
      if (isIdle && (socket.bytesRead === 0 || answered?.isReading === true)) socket.destroySoon()
    }
    this.#closeIdle(() => this.#server.close(() => {})) // which also ends its clock; `closed` says the rest
    const late = setTimeout(() => {
      for (const socket of this.#lines.keys()) socket.destroy()
    }, graceMs)
    await closed
    while (this.#lines.size > 0) await nextTurn() // their last events follow
    clearTimeout(late)
  }

  /**
   * Close connections that are between two requests: node:http alone can tell these from those in the middle
   * of a head. It takes an answer that has ended for one that has left; these connections are kept from it.
   */
  #closeIdle(close: () => void): void {
    const busy = [...this.#lines].filter(
      ([, line]) => line.open.size > 0 || line.waiting.length > 0 || line.feed.hasRest,
    )
    for (const [socket] of busy) socket.destroy = () => socket
    try {
      close()
    } finally {
      for (const [socket] of busy) Reflect.deleteProperty(socket, 'destroy') // the method is there again
    }
  }

  /** The same once for all that were answered in this turn. */
  #closeIdleSoon(): void {
    if (this.#isClosingIdle) return
    this.#isClosingIdle = true
    setImmediate(() => {
      this.#isClosingIdle = false
      this.#closeIdle(() => this.#server.closeIdleConnections())
    })
  }

  #onConnection(socket: Socket): void {
    this.#counts.connectionsTotal += 1
    const line: Line = {
      open: new Set(),
      feed: new NodeFeed(socket, {
        ended: () => this.#onEnd(socket, line),
        stuck: () => this.#onBroken(new Error('not a request, or its body is broken'), socket),
      }),
      waiting: [],
      requestsCount: 0,
      turnCount: 0,
      isScheduled: false,
      refusal: 0,
      isRefused: false,
      isLast: false,
      isHalfClosed: false,
      answered: undefined,
      counted: { in: 0, out: 0 },
    }
    this.#lines.set(socket, line)
    socket.on('error', () => {}) // a reset; the close that follows does the rest
    socket.once('close', () => {
      this.#counts.in += socket.bytesRead
      this.#counts.out += socket.bytesWritten
      this.#lines.delete(socket)
      // node:http tells the answer in front alone; those behind it have no socket yet.
      for (const exchange of [...line.open]) this.#onOver(socket, line, exchange)
    })
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, owesContinue: boolean): void {
    const line = this.#lines.get(request.socket)
    if (line === undefined) return // closed in the same turn
    if (line.isLast) return line.feed.stop()
    line.feed.note(Number(request.headers['content-length']) || 0)
    if (line.waiting.length > 0 || !this.#hasRoom(line)) {
      line.waiting.push({ request, response, owesContinue })
      line.feed.hold()
    } else this.#begin(line, request, response, owesContinue)
    this.#schedule(request.socket, line)
  }

  /** Whether a request more may be begun: of the connection's share in this turn, and of what it may hold. */
  #hasRoom({ open, turnCount }: Line): boolean {
    const { pipelineMax, outBytesMax } = this.#settings.limits
    if (open.size >= pipelineMax || turnCount >= TURN_REQUESTS_MAX) return false
    let unsentBytes = 0
    for (const exchange of open) unsentBytes += exchange.unsentBytes
    return unsentBytes < outBytesMax
  }

  /** Go on when all other connections have had their turn. */
  #schedule(socket: Socket, line: Line): void {
    if (line.isScheduled) return
    line.isScheduled = true
    setImmediate(() => {
      line.isScheduled = false
      line.turnCount = 0
      this.#beginWaiting(socket, line)
    })
  }

  #beginWaiting(socket: Socket, line: Line): void {
    // Who has gone gets no answers: without this, clients that reset behind long pipelines keep others
    // waiting.
    if (socket.destroyed) line.waiting.length = 0
    if (line.waiting.length === 0) return
    while (line.waiting.length > 0 && this.#hasRoom(line)) {
      const { request, response, owesContinue } = line.waiting.shift()!
      this.#begin(line, request, response, owesContinue)
      if (line.isLast) line.waiting.length = 0
    }
    if (line.waiting.length === 0) line.feed.release()
    else if (line.turnCount > 0) this.#schedule(socket, line)
  }

  #begin(line: Line, request: IncomingMessage, response: ServerResponse, owesContinue: boolean): void {
    const { limits, onExchange } = this.#settings
    line.requestsCount += 1
    line.turnCount += 1
    line.isLast = line.requestsCount >= limits.requestsPerConnectionMax || asksToClose(request)
    if (line.isLast || (this.#isStopping && line.waiting.length === 0)) response.shouldKeepAlive = false
    const refusal = refusalOf(request, limits)
    if (refusal !== 0) {
      this.#counts.refused += 1
      line.isRefused = true
      const lines = { 'content-length': 0, connection: 'close' }
      response.writeHead(refusal, lines).end(() => request.socket.destroySoon())
      return
    }
    this.#counts.requests += 1
    const exchange = new NodeExchange(request, response, limits, owesContinue)
    line.open.add(exchange)
    const { socket } = request
    response.on('close', () => this.#onOver(socket, line, exchange))
    const constant = this.#constantFor(exchange)
    if (constant === undefined) this.#give(exchange, onExchange)
    else {
      this.#counts.constants += 1
      exchange.respond(constant.status, 0, constant.headers, constant.body)
    }
    // When it has had the chance to answer at once.
    if (!line.isHalfClosed) return
    setImmediate(() => {
      // A body that waits to be parsed is still read.
      if (!exchange.isReading || line.feed.isOver) exchange.gone()
    })
  }

  /**
   * The client sends nothing more. Those who work for it are told, and their answers are sent; when nothing
   * is for `bodyMs`, nothing will be.
   */
  #onEnd(socket: Socket, line: Line): void {
    for (const exchange of [...line.open]) if (!exchange.isReading || line.feed.isOver) exchange.gone()
    if (line.isHalfClosed) return
    line.isHalfClosed = true
    if (line.open.size === 0 && line.waiting.length === 0 && !line.feed.hasRest) return
    let sentBytes = leftBytes(socket)
    const late = setTimeout(() => {
      if (leftBytes(socket) === sentBytes) return void socket.destroy()
      sentBytes = leftBytes(socket)
      late.refresh()
    }, this.#settings.limits.bodyMs)
    socket.once('close', () => clearTimeout(late))
  }

  /** What follows CONNECT is not ours to read, so it is the last; answers that are due go first. */
  #onConnect(socket: Socket): void {
    const line = this.#lines.get(socket)
    if (line === undefined || line.open.size + line.waiting.length === 0) return this.#refuse(socket, 501)
    line.feed.stop()
    line.refusal = 501
    socket.resume() // what comes is thrown away; that it ends is seen
    // node:http has let go of the connection; whom it told to wait is told here to go on.
    socket.on('drain', () => {
      for (const exchange of line.open) exchange.wakeWriter()
    })
  }

  /** Its answer has been sent, or nobody is left to send it to. */
  #onOver(socket: Socket, line: Line, exchange: NodeExchange): void {
    if (!line.open.delete(exchange)) return
    exchange.closed()
    line.answered = exchange.isReading ? exchange : undefined
    if (exchange.isClosed) this.#counts.aborted += 1
    this.#onAnswered(socket, line, exchange)
  }

  #give(exchange: NodeExchange, onExchange: CoreSettings['onExchange']): void {
    try {
      onExchange(exchange)
    } catch (error) {
      this.#settings.onFault(error)
      exchange.abort()
    }
  }

  #constantFor({ method, target }: NodeExchange): CoreSettings['constants'][number] | undefined {
    if (this.#constants.size === 0) return undefined
    const cut = target.indexOf('?')
    return this.#constants.get(`${method} ${cut < 0 ? target : target.slice(0, cut)}`)
  }

  #onAnswered(socket: Socket, line: Line, { isReading }: NodeExchange): void {
    if (line.waiting.length > 0) this.#schedule(socket, line)
    else if (line.open.size === 0) {
      if (line.refusal !== 0) this.#refuse(socket, line.refusal)
      else if (line.feed.isOver || (this.#isStopping && isReading)) socket.destroySoon()
      else if (this.#isStopping) this.#closeIdleSoon()
    }
  }

  /** node:http's parser gave up, or a head took too long. Answers that are due go first. */
  #onBroken(
    error: NodeJS.ErrnoException & { reason?: string; rawPacket?: Uint8Array },
    socket: Socket,
  ): void {
    const line = this.#lines.get(socket)
    if (line === undefined || error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    line.feed.stop()
    if (line.isRefused) return
    const last = [...line.open].at(-1)
    if (last !== undefined && last.isReading) {
      // Its body ends before its length: the client has gone, and nobody is to blame.
      if (error.code === 'HPE_INVALID_EOF_STATE') return last.gone()
      if (parserRefusal(error) === 431) return void last.overlong()
      return last.malformed(error.reason ?? error.message)
    }
    // What has been answered already is not answered again.
    if (error.code === 'HPE_INVALID_EOF_STATE' && line.answered?.isReading === true)
      return void socket.destroySoon()
    if (line.isLast) return
    const refusal = parserRefusal(error)
    if (line.open.size + line.waiting.length === 0) this.#refuse(socket, refusal)
    else line.refusal = refusal
  }

  #refuse(socket: Socket, status: number): void {
    this.#counts.refused += 1
    this.#lines.get(socket)?.feed.stop()
    if (socket.writable) socket.write(refusalText(status, STATUS_CODES[status]!))
    socket.destroySoon()
  }
}

/** Bytes that the kernel has taken: what was written counts as that before it has left. */
function leftBytes(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null }
  return socket.bytesWritten - (handle?.writeQueueSize ?? 0)
}
