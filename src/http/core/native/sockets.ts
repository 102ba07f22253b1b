/**
 * The WebSockets of the native core: records of messages in, records of frames out, and rooms by number.
 *
 * Errors of handlers never get here: the app side reports them. A room has a number as long as it has members
 * in this thread.
 */
import type { Grant, RawWire, Rooms, Wire, WireEvents } from '../../message/wire.ts'
import { Flag, Event, Message, Reply, Send, Terms } from '../../message/layout.ts'
import type { ExchangeId, LinkedSockets, Listed, NativeLink } from './link.ts'
import { utf8At } from '../../message/text.ts'

/** RFC 6455, 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const EXTENSION =
  'sec-websocket-extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n'
/** Messages to rooms from this length on are compressed, for members that have agreed to it. */
const COMPRESSED_BYTES_MIN = 1024
/** The connection has ended without a close frame. */
const ABNORMAL = 1006
const NOBODY: ExchangeId = { slot: -1, stamp: 0 }
const PLAIN = { status: 0, room: 0 }
/** Why the core has ended a connection, where no close frame states it. */
const REASONS: Readonly<Record<number, string>> = {
  1002: 'protocol error',
  1007: 'invalid text or compression',
  1008: 'too many fragments',
  1009: 'message too large',
  1013: 'the client does not read',
}

interface Room {
  readonly number: number
  members: number
}

export class NativeSockets implements Rooms, LinkedSockets {
  readonly link: NativeLink
  readonly #rooms = new Map<string, Room>()
  #lastRoom = 0

  constructor(link: NativeLink) {
    this.link = link
    link.hub.open(this)
  }

  /** Writes the response: 101, or 200 over HTTP/2. */
  begin({ slot, stamp }: ExchangeId, grant: Grant, events: WireEvents): Wire {
    const { key, isRaw } = grant
    const protocol = grant.protocol === '' ? '' : `sec-websocket-protocol: ${grant.protocol}\r\n`
    const accepts = key === undefined || isRaw ? '' : acceptLines(key)
    const lines = accepts + protocol + (grant.deflates ? EXTENSION : '') + grant.lines
    const { messageBytesMax, queuedBytesMax, pingMs, pongMs, closeMs, compressedBytesMin } = grant.terms
    const words = new Uint32Array(Terms.words)
    words[Terms.messageBytesMax] = messageBytesMax
    words[Terms.queuedBytesMax] = queuedBytesMax
    words[Terms.pingMs] = pingMs
    words[Terms.pongMs] = pongMs
    words[Terms.closeMs] = closeMs
    words[Terms.deflates] = grant.deflates ? 1 : 0
    words[Terms.isRaw] = isRaw ? 1 : 0
    this.link.upgrade({ slot, stamp }, lines, new Uint8Array(words.buffer))
    // A stream gets a slot of its own; 0: it has ended, which is reported.
    const own = key === undefined ? this.link.ask() : 0
    const id = { slot: own === 0 ? slot : own - 1, stamp }
    const compressedMin = grant.deflates ? compressedBytesMin! : Infinity
    const socket = new NativeSocket(this, id, events, compressedMin)
    this.link.list(socket)
    return socket
  }

  /** A record of a message or of a close frame begins at word `at`. */
  onMessage(at: number): void {
    const { words, bytes } = this.link
    const socket = this.#find(words[at + 1], words[at + 2])
    if (socket === undefined) return
    const kind = words[at]
    const [start, length] = [words[at + Message.at], words[at + Message.bytes]]
    const isText = (kind & Flag.text) !== 0
    const isHere = (kind & Flag.elsewhere) === 0
    if ((kind & 0xff) === Event.closing) {
      socket.reason = utf8At(this.link.gathered(start, length), 0, length)
    } else if (isHere && isText) socket.events.onMessage(utf8At(bytes, start, length))
    else if (isHere) socket.events.onMessage(bytes.slice(start, start + length))
    else {
      const message = this.link.gathered(start, length)
      socket.events.onMessage(isText ? utf8At(message, 0, length) : message)
    }
  }

  onClosed(slot: number, stamp: number, code: number): void {
    const socket = this.#find(slot, stamp)
    if (socket === undefined) return
    this.link.unlist(socket)
    socket.isOver = true
    socket.events.onClose(code, socket.reason ?? REASONS[code] ?? '')
  }

  #find(slot: number, stamp: number): NativeSocket | undefined {
    const found = this.link.find(slot, stamp)
    return found instanceof NativeSocket ? found : undefined
  }

  publish(name: string, message: string | Uint8Array, except: Wire | undefined): void {
    const room = this.#rooms.get(name)
    if (room === undefined) return
    const id = except instanceof NativeSocket ? except : NOBODY
    const bits = bitsOf(message, COMPRESSED_BYTES_MIN)
    this.link.frame(Reply.publish | (bits << 8), id, message, { status: 0, room: room.number })
  }

  /** The number of a room, for one more member. */
  enter(name: string): number {
    let room = this.#rooms.get(name)
    if (room === undefined) {
      room = { number: (this.#lastRoom += 1), members: 0 }
      this.#rooms.set(name, room)
    }
    room.members += 1
    return room.number
  }

  /** The number of a room, for one member less. */
  exit(name: string): number {
    const room = this.#rooms.get(name)!
    room.members -= 1
    if (room.members === 0) this.#rooms.delete(name)
    return room.number
  }
}

class NativeSocket implements RawWire, Listed {
  readonly slot: number
  readonly stamp: number
  readonly events: WireEvents
  /** Why the client has closed, by its close frame. */
  reason: string | undefined = undefined
  isOver = false
  next: Listed | undefined = undefined
  readonly #sockets: NativeSockets
  readonly #compressedMin: number
  /** Bytes that waited when the core was asked last, and bytes sent since then. */
  #known = 0
  #unasked = 0
  /** Bytes sent in this turn. */
  #now = 0
  #turn = -1

  constructor(
    sockets: NativeSockets,
    { slot, stamp }: ExchangeId,
    events: WireEvents,
    compressedMin: number,
  ) {
    this.#sockets = sockets
    this.slot = slot
    this.stamp = stamp
    this.events = events
    this.#compressedMin = compressedMin
  }

  send(message: string | Uint8Array): number {
    const { link } = this.#sockets
    const bits = bitsOf(message, this.#compressedMin)
    link.frame(Reply.send | (bits << 8), this, message, PLAIN)
    const isNewTurn = this.#turn !== link.turn
    if (isNewTurn) {
      this.#turn = link.turn
      this.#now = 0
    }
    const bytes = typeof message === 'string' ? message.length : message.byteLength
    this.#now += bytes
    this.#unasked += bytes
    if (this.#unasked >= link.askBytes || (isNewTurn && this.#known > 0)) {
      this.#known = link.ask()
      this.#unasked = this.#now = 0
    }
    return this.#known + this.#now
  }

  queuedBytes(): number {
    this.#record(Reply.ask, '')
    this.#known = this.#sockets.link.ask()
    this.#unasked = this.#now = 0
    return this.#known
  }

  isFull(): boolean {
    return this.queuedBytes() > this.#sockets.link.outBytesMax
  }

  pause(isPaused: boolean): void {
    this.#record(Reply.pause, '', isPaused ? 1 : 0)
  }

  ping(payload: Uint8Array): void {
    this.#record(Reply.ping, payload)
  }

  close(code: number, reason: string): void {
    this.#record(Reply.close, reason, code)
  }

  terminate(): void {
    this.#record(Reply.terminate, '')
  }

  join(room: string): void {
    this.#record(Reply.join, '', 0, this.#sockets.enter(room))
  }

  leave(room: string): void {
    const number = this.#sockets.exit(room)
    if (!this.isOver) this.#record(Reply.leave, '', 0, number)
  }

  #record(kind: number, message: string | Uint8Array, status = 0, room = 0): void {
    this.#sockets.link.frame(kind, this, message, { status, room })
  }

  onDrained(): void {
    this.#known = 0
    this.events.onDrain()
  }

  /** The request was lost before its upgrade arrived in the core. */
  onClosed(): void {
    this.#sockets.onClosed(this.slot, this.stamp, ABNORMAL)
  }

  // What else concerns requests does not concern it.
  onDisconnect(): void {}
  onBody(): void {}
  keep(): void {}
}

function acceptLines(key: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64')
  return `upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n`
}

function bitsOf(message: string | Uint8Array, compressedMin: number): number {
  const isText = typeof message === 'string'
  const length = isText ? message.length : message.byteLength
  return (isText ? Send.text : 0) | (length >= compressedMin ? Send.compress : 0)
}
