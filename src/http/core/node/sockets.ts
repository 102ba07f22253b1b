/**
 * WebSockets on node:http, by the package `ws`, which programs that use them there install.
 *
 * It frames, masks and compresses; this file adds the terms that it has no options for: pings with a
 * deadline, the bound of what is queued, the deadline of a close, and rooms.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { messageOf } from '../../../base/index.ts'
import { HttpError } from '../../errors.ts'
import { type Hub, MemberRooms } from '../../message/hub.ts'
import type { Grant, RawWire, SocketTerms, Wire, WireEvents } from '../../message/wire.ts'

/** What is used of the class `WebSocket` of `ws`. */
interface WsSocket {
  readonly bufferedAmount: number
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): this
  on(event: 'close', listener: (code: number, reason: Buffer) => void): this
  on(event: 'error', listener: (error: Error & { readonly code?: string }) => void): this
  send(data: string | Buffer, options: object, sent: () => void): void
  ping(data: Uint8Array): void
  close(code: number, reason?: string): void
  terminate(): void
}

interface WsServer {
  on(event: 'headers', listener: (headers: string[]) => void): this
  handleUpgrade(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    begun: (socket: WsSocket) => void,
  ): void
}

interface Ws {
  readonly WebSocketServer: new (options: object) => WsServer
}

/** A request for a WebSocket, its connection, and what was read behind it. */
export interface Offer {
  readonly request: IncomingMessage
  readonly socket: Socket
  readonly head: Buffer
}

/** Not a literal, so that bundlers leave it to the installation. */
const PACKAGE = 'ws'
const GOING_AWAY = 1001
const ABNORMAL = 1006
const TRY_LATER = 1013
/** The codes of the close frames that `ws` sends for faults of clients. */
const FAULTS: Readonly<Record<string, number>> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  Z_DATA_ERROR: 1007,
  Z_BUF_ERROR: 1007,
}

export class NodeSockets {
  readonly #name: string
  readonly #hub: Hub
  readonly #outBytesMax: number
  readonly #open = new Map<Socket, NodeSocket | RawSocket>()
  readonly rooms = new MemberRooms()
  readonly #servers = new WeakMap<SocketTerms, WsServer>()
  #ws: Ws | undefined
  #reason = ''
  /** The grant of the current handshake. */
  #grant: Grant | undefined

  /** @param name The package, for tests. */
  constructor(hub: Hub, outBytesMax: number, name = PACKAGE) {
    this.#name = name
    this.#hub = hub
    this.#outBytesMax = outBytesMax
  }

  /** Loads `ws`; without it `begin` throws. */
  async load(): Promise<void> {
    if (this.#ws !== undefined) return
    const name = this.#name
    try {
      this.#ws = (await import(name)) as Ws
      this.#hub.open(this.rooms)
    } catch (error) {
      this.#reason = messageOf(error)
    }
  }

  has(socket: Socket): boolean {
    return this.#open.has(socket)
  }

  /** @throws {HttpError} `HTTP_UPGRADE` without the package, or if it refuses the handshake. */
  begin({ request, socket, head }: Offer, grant: Grant, events: WireEvents): Wire {
    if (grant.isRaw) {
      const raw = new RawSocket({ request, socket, head }, grant, events, this.#outBytesMax)
      this.#open.set(socket, raw)
      socket.once('close', () => this.ended(socket))
      return raw
    }
    if (this.#ws === undefined) {
      const reason = `on node:http it needs the package ws, which cannot be loaded: ${this.#reason}`
      throw new HttpError('HTTP_UPGRADE', { reason: `${reason}; npm install ws` })
    }
    this.#grant = grant
    let begun: NodeSocket | undefined
    this.#serverOf(this.#ws, grant.terms).handleUpgrade(request, socket, head, (ws) => {
      begun = new NodeSocket({ ws, socket, grant, events, outBytesMax: this.#outBytesMax, sockets: this })
      this.#open.set(socket, begun)
    })
    this.#grant = undefined
    if (begun === undefined) throw new HttpError('HTTP_UPGRADE', { reason: 'ws refuses its handshake' })
    return begun
  }

  #serverOf(ws: Ws, terms: SocketTerms): WsServer {
    let server = this.#servers.get(terms)
    if (server !== undefined) return server
    const { compressedBytesMin: threshold } = terms
    server = new ws.WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: terms.messageBytesMax,
      handleProtocols: () => this.#grant!.protocol || false,
      perMessageDeflate: threshold !== undefined && {
        serverNoContextTakeover: true,
        clientNoContextTakeover: true,
        threshold,
      },
    })
    server.on('headers', (lines) => lines.push(...this.#grant!.lines.split('\r\n').filter(Boolean)))
    this.#servers.set(terms, server)
    return server
  }

  /** The server stops. */
  stop(): void {
    for (const socket of this.#open.values()) socket.stop()
  }

  ended(socket: Socket): void {
    this.#open.delete(socket)
  }
}

interface Parts {
  readonly ws: WsSocket
  readonly socket: Socket
  readonly grant: Grant
  readonly events: WireEvents
  readonly outBytesMax: number
  readonly sockets: NodeSockets
}

class NodeSocket implements Wire {
  readonly #parts: Parts
  /** Bytes that had arrived at the last look. */
  #receivedBytes: number
  #isPinged = false
  #isFull = false
  #timer: NodeJS.Timeout
  /** The code, if it is not that of a close frame. */
  #code: number | undefined

  constructor(parts: Parts) {
    const { ws, socket, grant, events } = parts
    this.#parts = parts
    this.#receivedBytes = socket.bytesRead
    this.#timer = setTimeout(this.#look, grant.terms.pingMs)
    ws.on('message', (data, isBinary) => events.onMessage(isBinary ? new Uint8Array(data) : data.toString()))
      .on('error', (error) => {
        const code = error.code ?? ''
        this.#code ??= FAULTS[code] ?? (code.startsWith('WS_ERR_') ? 1002 : ABNORMAL)
        this.#endSoon()
      })
      .on('close', (code, reason) => {
        clearTimeout(this.#timer)
        parts.sockets.ended(socket)
        events.onClose(this.#code ?? code, reason.toString())
      })
  }

  readonly #look = (): void => {
    const { ws, socket, grant } = this.#parts
    const { pingMs, pongMs } = grant.terms
    const isReceived = socket.bytesRead !== this.#receivedBytes
    this.#receivedBytes = socket.bytesRead
    if (this.#isPinged && !isReceived) return ws.terminate()
    this.#isPinged = !isReceived
    if (!isReceived) ws.ping(new Uint8Array())
    this.#timer = setTimeout(this.#look, isReceived ? pingMs : pongMs)
  }

  /** The client has `closeMs` to end the connection. */
  #endSoon(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#parts.ws.terminate(), this.#parts.grant.terms.closeMs)
  }

  send(message: string | Uint8Array): number {
    const { ws, grant, outBytesMax } = this.#parts
    const isText = typeof message === 'string'
    const data = isText ? message : Buffer.from(message)
    const compress = data.length >= (grant.terms.compressedBytesMin ?? Infinity)
    ws.send(data, { binary: !isText, compress }, () => this.#sent())
    const queued = ws.bufferedAmount
    this.#isFull ||= queued > outBytesMax
    if (queued > grant.terms.queuedBytesMax) {
      this.#code ??= TRY_LATER
      ws.terminate()
    }
    return queued
  }

  #sent(): void {
    const { ws, outBytesMax, events } = this.#parts
    if (!this.#isFull || ws.bufferedAmount > outBytesMax / 2) return
    this.#isFull = false
    events.onDrain()
  }

  queuedBytes(): number {
    return this.#parts.ws.bufferedAmount
  }

  ping(payload: Uint8Array): void {
    this.#parts.ws.ping(payload)
  }

  close(code: number, reason: string): void {
    this.#parts.ws.close(code, reason)
    this.#endSoon()
  }

  terminate(): void {
    this.#code ??= ABNORMAL
    this.#parts.ws.terminate()
  }

  stop(): void {
    this.close(GOING_AWAY, '')
  }

  join(room: string): void {
    this.#parts.sockets.rooms.join(room, this)
  }

  leave(room: string): void {
    this.#parts.sockets.rooms.leave(room, this)
  }
}

/** A connection whose bytes are the app's. */
class RawSocket implements RawWire {
  readonly #socket: Socket
  readonly #closeMs: number
  readonly #outBytesMax: number

  constructor({ socket, head }: Offer, { lines, terms }: Grant, events: WireEvents, outBytesMax: number) {
    this.#socket = socket
    this.#closeMs = terms.closeMs
    this.#outBytesMax = outBytesMax
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`, 'latin1')
    if (head.length > 0) socket.unshift(head)
    socket
      .on('data', (bytes: Buffer) => events.onMessage(bytes))
      .on('drain', () => events.onDrain())
      .once('end', () => socket.end())
      .once('close', () => events.onClose(ABNORMAL, ''))
  }

  send(message: string | Uint8Array): number {
    this.#socket.write(message)
    return this.#socket.writableLength
  }

  queuedBytes(): number {
    return this.#socket.writableLength
  }

  isFull(): boolean {
    return this.#socket.writableNeedDrain && this.#socket.writableLength > this.#outBytesMax
  }

  pause(isPaused: boolean): void {
    this.#socket[isPaused ? 'pause' : 'resume']()
  }

  close(): void {
    this.#socket.destroySoon()
  }

  terminate(): void {
    this.#socket.destroy()
  }

  /** The app may end it in its own way for a while, as on the native core. */
  stop(): void {
    const timer = setTimeout(() => this.#socket.destroy(), this.#closeMs)
    this.#socket.once('close', () => clearTimeout(timer))
  }

  // It frames nothing, and is in no room.
  ping(): void {}
  join(): void {}
  leave(): void {}
}
