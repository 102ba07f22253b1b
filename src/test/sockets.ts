/**
 * WebSockets of a run: one end is what handlers of `corespun/http` have, the other one a client with the
 * interface of browsers. Messages travel over a connection of the run, whole; frames, pings and compression
 * do not happen.
 *
 *   client: connecting --granted--> open --close() or a close frame--> closing --the server's end--> closed
 *   A connection that is lost is 1006 at both ends; the server notices one that is cut off by its pings.
 */
import type { Grant, MemberRooms, Wire, WireEvents } from '../http/internal.ts'

/** What both ends use of their connection. */
export interface Carrier {
  /** To the server, behind what was sent there before. */
  up(what: string, arrive: () => void): void
  /** To the client. */
  down(what: string, arrive: () => void): void
  /** Nothing arrives any more. */
  end(): boolean
  /** As an end of the network does. */
  reset(): void
  after(ms: number, run: () => void): () => void
  /** Call `lost` when one of both tasks is cut off for so long. */
  whenSilent(ms: number, lost: () => void): void
  readonly server: { readonly lost: ((reason: unknown) => void)[] }
  readonly client: { readonly lost: ((reason: unknown) => void)[] }
}

type Data = string | Uint8Array
/** What listeners of a {@link SeededSocket} receive. */
export interface SocketEvent extends Event {
  /** Of a message: a string, a Blob or an ArrayBuffer. */
  readonly data?: unknown
  /** Of a close: that of the server, or 1006 where the connection was lost. */
  readonly code?: number
  /** Of a close. */
  readonly reason?: string
  /** Of a close: whether both sides have agreed on it. */
  readonly wasClean?: boolean
}

/** The WebSocket of a client of a run: as the global one, without blobs to send and extensions. */
export interface SeededSocket {
  /** The one that it connects to. */
  readonly url: string
  /** That the server has chosen; '' before, and without one. */
  readonly protocol: string
  /** 0 connecting, 1 open, 2 closing, 3 closed. */
  readonly readyState: 0 | 1 | 2 | 3
  /** Bytes that have not arrived. */
  readonly bufferedAmount: number
  /** As what bytes are received. Default `'blob'`. */
  binaryType: 'blob' | 'arraybuffer'
  /** Called when it is open. */
  onopen: ((event: SocketEvent) => void) | null
  /** Called with each message. */
  onmessage: ((event: SocketEvent) => void) | null
  /** Called before the close of a connection that was refused or lost. */
  onerror: ((event: SocketEvent) => void) | null
  /** Called once, last. */
  onclose: ((event: SocketEvent) => void) | null
  /** Bytes are copied. @throws {DOMException} `InvalidStateError` before it is open. */
  send(data: string | ArrayBuffer | ArrayBufferView): void
  /** Sends a close frame, and waits for that of the server. @throws {DOMException} For another code. */
  close(code?: number, reason?: string): void
  /** As of other targets of events; what a listener throws fails the run. */
  addEventListener(
    type: string,
    listener: ((event: SocketEvent) => void) | { handleEvent(event: SocketEvent): void },
    options?: { readonly once?: boolean },
  ): void
  /** Undoes it. */
  removeEventListener(type: string, listener: object): void
}

type Handler = ((event: SocketEvent) => void) | null
type Listener = Parameters<SeededSocket['addEventListener']>[1]

const ABNORMAL = 1006
const GOING_AWAY = 1001
const TOO_BIG = 1009
const TRY_LATER = 1013
/** As the default of `serve()`: from half of it on, less is a drain. */
const OUT_BYTES_MAX = 262_144

const bytesOf = (data: Data): number => (typeof data === 'string' ? Buffer.byteLength(data) : data.byteLength)

/** The client's end. */
export class ClientEnd implements SeededSocket {
  static readonly CONNECTING = 0
  static readonly OPEN = 1
  static readonly CLOSING = 2
  static readonly CLOSED = 3
  readonly url: string
  protocol = ''
  readonly extensions = ''
  readyState: 0 | 1 | 2 | 3 = 0
  bufferedAmount = 0
  binaryType: 'blob' | 'arraybuffer' = 'blob'
  onopen: Handler = null
  onmessage: Handler = null
  onerror: Handler = null
  onclose: Handler = null
  readonly #listeners = new Map<string, Map<object, [Listener, isOnce: boolean]>>()
  #end: ServerEnd | undefined
  readonly #closed: () => void

  /** @param closed Called once, when it is closed. */
  constructor(url: string, closed: () => void) {
    this.url = url
    this.#closed = closed
  }

  send(data: string | ArrayBuffer | ArrayBufferView): void {
    if (this.readyState === ClientEnd.CONNECTING)
      throw new DOMException('the WebSocket is not open yet', 'InvalidStateError')
    if (this.readyState !== ClientEnd.OPEN) return
    const message: Data =
      data instanceof ArrayBuffer
        ? new Uint8Array(data.slice(0))
        : ArrayBuffer.isView(data)
          ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice()
          : String(data)
    const size = bytesOf(message)
    this.bufferedAmount += size
    this.#end!.carrier.up('a message', () => {
      this.bufferedAmount -= size
      this.#end!.receive(message, size)
    })
  }

  close(code = 1005, reason = ''): void {
    if (code !== 1005 && code !== 1000 && !(code >= 3000 && code <= 4999))
      throw new DOMException(`a code is 1000, or 3000 to 4999, received ${code}`, 'InvalidAccessError')
    if (this.readyState === ClientEnd.OPEN) return this.#sendClose(code, reason)
    if (this.readyState !== ClientEnd.CONNECTING) return
    this.readyState = ClientEnd.CLOSING
    queueMicrotask(() => this.ended())
  }

  addEventListener(type: string, listener: Listener, { once = false } = {}): void {
    const all = this.#listeners.get(type) ?? new Map<object, [Listener, boolean]>()
    this.#listeners.set(type, all.set(listener, [listener, once]))
  }

  removeEventListener(type: string, listener: object): void {
    this.#listeners.get(type)?.delete(listener)
  }

  opened(end: ServerEnd, protocol: string): void {
    if (this.readyState !== ClientEnd.CONNECTING) return end.carrier.reset()
    this.#end = end
    this.protocol = protocol
    this.readyState = ClientEnd.OPEN
    this.#emit('open')
  }

  receive(message: Data): void {
    if (this.readyState !== ClientEnd.OPEN) return
    const isText = typeof message === 'string'
    const inBlob = !isText && this.binaryType === 'blob'
    const data = isText ? message : inBlob ? new Blob([message as never]) : message.buffer
    this.#emit('message', { data })
  }

  /** The server's close frame: the client sends its own. */
  closing(code: number, reason: string): void {
    if (this.readyState === ClientEnd.OPEN) this.#sendClose(code, reason)
  }

  ended(code = ABNORMAL, reason = ''): void {
    if (this.readyState === ClientEnd.CLOSED) return
    this.readyState = ClientEnd.CLOSED
    this.#closed()
    const wasClean = code !== ABNORMAL
    if (!wasClean) this.#emit('error')
    this.#emit('close', { code, reason, wasClean })
  }

  #sendClose(code: number, reason: string): void {
    this.readyState = ClientEnd.CLOSING
    this.#end!.carrier.up('a close frame', () => this.#end!.closed(code, reason))
  }

  #emit(type: 'open' | 'message' | 'error' | 'close', facts: object = {}): void {
    const event: SocketEvent = Object.assign(new Event(type), facts)
    Object.defineProperty(event, 'target', { value: this })
    this[`on${type}`]?.(event)
    for (const [listener, isOnce] of [...(this.#listeners.get(type)?.values() ?? [])]) {
      if (isOnce) this.removeEventListener(type, listener)
      if (typeof listener === 'function') listener(event)
      else listener.handleEvent(event)
    }
  }
}

/** A socket of a server, as its handlers have it. */
export class ServerEnd implements Wire {
  readonly carrier: Carrier
  readonly #rooms: MemberRooms
  readonly #grant: Grant
  readonly #events: WireEvents
  readonly #client: ClientEnd
  #queued = 0
  #isFull = false
  #isOver = false
  /** Why the server closes it, if not for a call. */
  #code: number | undefined
  #late = (): void => {}

  constructor(carrier: Carrier, rooms: MemberRooms, grant: Grant, events: WireEvents, client: ClientEnd) {
    this.carrier = carrier
    this.#rooms = rooms
    this.#grant = grant
    this.#events = events
    this.#client = client
    const { pingMs, pongMs } = grant.terms
    carrier.whenSilent(pingMs + pongMs, () => this.terminate())
    carrier.server.lost.push(() => this.#over(this.#code ?? ABNORMAL, ''))
    carrier.client.lost.push(() => client.ended())
    carrier.down('a WebSocket', () => client.opened(this, grant.protocol))
  }

  send(message: Data): number {
    // slice() of a Buffer copies nothing.
    const copy = typeof message === 'string' ? message : new Uint8Array(message)
    const size = bytesOf(copy)
    this.#queued += size
    this.#isFull ||= this.#queued > OUT_BYTES_MAX
    this.carrier.down('a message', () => {
      this.#queued -= size
      if (this.#isFull && this.#queued <= OUT_BYTES_MAX / 2) {
        this.#isFull = false
        this.carrier.up('that it has read', () => this.#isOver || this.#events.onDrain())
      }
      this.#client.receive(copy)
    })
    if (this.#queued > this.#grant.terms.queuedBytesMax) this.#lose(TRY_LATER)
    return this.#queued
  }

  queuedBytes(): number {
    return this.#queued
  }

  /** Whether the peer still receives is looked for by the run. */
  ping(): void {}

  close(code: number, reason: string): void {
    if (this.#isOver) return
    this.carrier.down('a close frame', () => this.#client.closing(code, reason))
    this.#late = this.carrier.after(this.#grant.terms.closeMs, () => this.terminate())
  }

  terminate(): void {
    this.#lose(ABNORMAL)
  }

  /** The server stops. */
  goAway(): void {
    this.close(GOING_AWAY, '')
  }

  join(room: string): void {
    this.#rooms.join(room, this)
  }

  leave(room: string): void {
    this.#rooms.leave(room, this)
  }

  receive(message: Data, size: number): void {
    if (size <= this.#grant.terms.messageBytesMax) return this.#events.onMessage(message)
    this.#code ??= TOO_BIG
    this.close(TOO_BIG, '')
  }

  /** The client's close frame: the connection ends with the server's. */
  closed(code: number, reason: string): void {
    this.#over(this.#code ?? code, reason)
    this.carrier.down('a close frame', () => {
      if (this.carrier.end()) this.#client.ended(code, reason)
    })
  }

  #lose(code: number): void {
    this.#code ??= code
    this.carrier.reset()
  }

  #over(code: number, reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#late()
    this.#events.onClose(code, reason)
  }
}
