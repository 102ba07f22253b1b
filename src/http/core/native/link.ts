/**
 * The memory that a server shares with the native core, and the records that are written to it.
 *
 * Three buffers are registered once: `inbound`, to which the core writes records of requests and their bytes;
 * `out`, to which responses are written; `body`, which receives pieces of bodies that are pulled. Records
 * that are written outside of a batch are passed on after the microtasks of that turn. Over 400 lines: each
 * kind of record has its writer here, and the plain response writes its head by hand, as the hottest.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { native, sharedMemory } from '../../../native/index.ts'
import type { CoreFile, FilePart, Tls } from '../../message/core-interface.ts'
import type { CoreLimits } from '../../message/limits.ts'
import { HttpError } from '../../errors.ts'
import {
  Found,
  Head,
  HEADER_BYTES,
  Out,
  Pull,
  READ_BYTES_MAX,
  Reply,
  Request,
  TARGETS,
  WORDS_BYTES,
} from '../../message/layout.ts'
import type { Hub } from '../../message/hub.ts'
import type { Grant, Wire, WireEvents } from '../../message/wire.ts'
import { Memory } from './memory.ts'
import { Peer } from './peers.ts'
import { latin1At, putLatin1, putUtf8 } from '../../message/text.ts'

/** Bytes of the out region: a batch of some thousand small responses. */
const OUT_BYTES = 256 * 1024
/** Responses that may be longer than this are passed outside of it. */
const PIECE_BYTES_MAX = 64 * 1024
/** Bytes of the inbound region beyond the needs of one connection. */
const BATCH_BYTES = 192 * 1024
/** Bytes of bodies that are pulled in one turn of the event loop. */
const TURN_BYTES_MAX = 256 * 1024
/** Most bytes of pieces before the core is asked whether the client reads slowly. */
const ASK_BYTES_MAX = 64 * 1024
/** Questions at least before `outBytesMax` is reached. */
const ASKS_MIN = 4
const HEAD_BYTES = Head.words * 4
const EMPTY = new Uint8Array()
const DONE = Promise.resolve()

/** An exchange in the core: the slot of its connection, and its own number. */
export interface ExchangeId {
  readonly slot: number
  readonly stamp: number
}

/** An exchange that receives events of its connection. */
export interface Listed extends ExchangeId {
  /** The next one with the same slot. */
  next: Listed | undefined
  onDisconnect(): void
  onClosed(): void
  onBody(): void
  onDrained(): void
  /** Copies its data out of the batch's memory. */
  keep(): void
}

/** The WebSockets of a link. */
export interface LinkedSockets {
  /** Writes the response 101. */
  begin(exchange: ExchangeId, grant: Grant, events: WireEvents): Wire
  /** A record of a message or of a close frame begins at word `at`. */
  onMessage(at: number): void
  onClosed(slot: number, stamp: number, code: number): void
}

export class NativeLink {
  /** Records and the bytes of requests; valid during a batch. */
  readonly bytes: Uint8Array
  /** `bytes` as words. */
  readonly words: Int32Array
  /** The same: where the requests of the batch are. */
  memory: Memory
  readonly out: Uint8Array
  readonly body: Uint8Array
  /** Targets by number. */
  readonly targets: string[] = new Array<string>(TARGETS).fill('')
  /** Bytes of pieces after which the core is asked whether the client reads slowly. */
  readonly askBytes: number
  /** The server's number; -1 before it listens and after it has stopped. */
  server = -1
  /** Whether `close` of the server has been called. */
  isClosing = false
  /** Increases when what was written has been sent, as far as the clients read. */
  turn = 0
  readonly hub: Hub
  readonly #makeSockets: (link: NativeLink) => LinkedSockets
  #sockets: LinkedSockets | undefined
  /** Certificates; undefined: connections are plain. */
  tls: Tls | undefined = undefined
  readonly #limits: CoreLimits
  readonly #outWords: Int32Array
  /** The clients of the connections, by slot. */
  readonly peers: Peer[] = []
  readonly #listed: (Listed | undefined)[] = []
  /** Retained exchanges whose data is still in the batch's memory. */
  #unkept: Listed[] = []
  /** A tick queued by a microtask runs after all microtasks of the batch. */
  readonly #keepSoon = (): void => process.nextTick(this.keepAll)
  /** Have the requests that wait for it copy their data, while the memory still has it. */
  readonly keepAll = (): void => {
    const unkept = this.#unkept
    this.#unkept = []
    for (const listed of unkept) listed.keep()
  }
  /** Bytes of bodies that were pulled in this turn. */
  #turnBytes = 0
  readonly #found = new Float64Array(Found.numbers)
  readonly #foundBytes = new Uint8Array(this.#found.buffer)
  #isFlushQueued = false
  readonly #flush = (): void => {
    this.#isFlushQueued = false
    this.turn += 1
    if (this.server >= 0) native.httpFlush(this.server)
  }

  /** @param makeSockets Called for the first WebSocket. */
  constructor(limits: CoreLimits, hub: Hub, makeSockets: (link: NativeLink) => LinkedSockets) {
    this.#limits = limits
    this.#makeSockets = makeSockets
    this.hub = hub
    this.askBytes = Math.min(ASK_BYTES_MAX, limits.outBytesMax / ASKS_MIN)
    const dataBytes = limits.headerBytesMax + 2 * READ_BYTES_MAX + BATCH_BYTES
    const bytes = (WORDS_BYTES + dataBytes + 7) & ~7
    const memory = sharedMemory<Uint8Array[]>(native, bytes, OUT_BYTES, READ_BYTES_MAX)
    ;[this.bytes, this.out, this.body] = memory as [Uint8Array, Uint8Array, Uint8Array]
    this.words = new Int32Array(this.bytes.buffer, this.bytes.byteOffset, bytes / 4)
    this.memory = new Memory(this.words, 0, this.bytes, 0)
    this.#outWords = new Int32Array(this.out.buffer, this.out.byteOffset, OUT_BYTES / 4)
  }

  /** Its WebSockets; made for the first one. */
  get sockets(): LinkedSockets {
    return (this.#sockets ??= this.#makeSockets(this))
  }

  /** The text whose offset and length are the words at `at`. */
  text(at: number): string {
    return latin1At(this.bytes, this.words[at], this.words[at + 1])
  }

  /** Pass events to this exchange. */
  list(exchange: Listed): void {
    exchange.next = this.#listed[exchange.slot]
    this.#listed[exchange.slot] = exchange
  }

  unlist(exchange: Listed): void {
    const { slot } = exchange
    let before = this.#listed[slot]
    if (before === exchange) this.#listed[slot] = exchange.next
    else {
      while (before !== undefined && before.next !== exchange) before = before.next
      if (before !== undefined) before.next = exchange.next
    }
    exchange.next = undefined
  }

  find(slot: number, stamp: number): Listed | undefined {
    let listed = this.#listed[slot]
    while (listed !== undefined && listed.stamp !== stamp) listed = listed.next
    return listed
  }

  /** Have it copy its data before the batch's memory is reused. */
  keepLater(exchange: Listed): void {
    if (this.#unkept.push(exchange) === 1) void DONE.then(this.#keepSoon)
  }

  /** The batch ends: whoever has one of its requests reads a copy from now on. */
  endBatch(): void {
    this.memory.close()
    this.memory = new Memory(this.words, 0, this.bytes, 0)
  }

  /** The record at `at` is the first request of its connection. */
  meet(at: number): void {
    const slot = this.words[at + Request.slot]
    this.peers[slot] = this.#peer(slot, this.words[at + Request.stamp])
  }

  #peer(slot: number, stamp: number): Peer {
    const { tls, server } = this
    const hasShown = server >= 0 && tls !== undefined && tls.clients !== 'none'
    const der = hasShown ? native.httpClientCertificate(server, slot, stamp) : EMPTY
    return new Peer(server < 0 ? '' : native.httpRemote(server, slot, stamp), der, tls?.certificateOf)
  }

  /** The trailer lines of a body that has ended. */
  trailers(slot: number, stamp: number): string {
    return this.server < 0 ? '' : native.httpTrailers(this.server, slot, stamp)
  }

  /** Write an informational response; whether it is sent. */
  hint(exchange: ExchangeId, headers: string): boolean {
    if (this.server < 0) return false
    this.#put(Reply.hint, exchange, 103, headers, 0, 0, 0)
    native.httpPut(this.server)
    this.#flushSoon()
    return this.#outWords[Out.found] === 1
  }

  /** End a streamed response with trailers. */
  endWith(exchange: ExchangeId, trailers: string): void {
    this.#put(Reply.trailers, exchange, 0, trailers, 0, 0, 0)
  }

  get outBytesMax(): number {
    return this.#limits.outBytesMax
  }

  get scheme(): 'http' | 'https' {
    return this.tls === undefined ? 'http' : 'https'
  }

  /** The next piece of a body, or one of `Pull`, or minus a status. */
  pull(slot: number, stamp: number): Uint8Array | number {
    if (this.server < 0) return Pull.disconnected
    const found = native.httpPull(this.server, slot, stamp)
    return found > 0 ? this.body.slice(0, found) : found
  }

  /**
   * A piece that was available at once. After `TURN_BYTES_MAX` it waits for the next turn: a body that always
   * has more would otherwise keep the thread in its microtasks.
   */
  async inTurn(piece: Uint8Array): Promise<Uint8Array> {
    this.#turnBytes += piece.byteLength
    if (this.#turnBytes > TURN_BYTES_MAX) {
      await nextTurn()
      this.#turnBytes = 0
    }
    return piece
  }

  /** The error for a negative result of a pull. */
  bodyError(found: number): HttpError {
    const { bodyBytesMax, bodyMs, headerBytesMax, headersMax } = this.#limits
    switch (found) {
      case Pull.disconnected:
        return new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its body' })
      case -413:
        return new HttpError('HTTP_BODY_TOO_LARGE', { bodyBytesMax })
      case -408:
        return new HttpError('HTTP_BODY_TIMEOUT', { bodyMs })
      case -431:
        return new HttpError('HTTP_TRAILERS_TOO_LARGE', { headerBytesMax, headersMax })
      default:
        return new HttpError('HTTP_BODY_MALFORMED', { reason: 'its chunks, extensions or trailers' })
    }
  }

  /** Write a whole response. Returns the bytes of its body. */
  respond(
    { slot, stamp }: ExchangeId,
    status: number,
    type: number,
    headers: string,
    body: string | Uint8Array | undefined,
  ): number {
    const bytesMax = body === undefined ? 0 : typeof body === 'string' ? body.length * 3 : body.byteLength
    const recordBytes = headers.length + bytesMax
    if (recordBytes > PIECE_BYTES_MAX) return this.#respondLarge({ slot, stamp, status, type, headers, body })
    const at = this.#reserve(recordBytes)
    if (at < 0) return 0
    const words = this.#outWords
    const word = at >> 2
    const lines = headers.length
    let end = at + HEAD_BYTES
    words[word + Head.kind] = Reply.respond | (type << 8)
    words[word + Head.slot] = slot
    words[word + Head.stamp] = stamp
    words[word + Head.status] = status
    words[word + Head.lines] = lines
    words[word + Head.bytesHigh] = 0
    words[word + Head.elsewhere] = 0
    if (lines > 0) {
      putLatin1(this.out, headers, end)
      end += lines
    }
    let bytes = 0
    if (typeof body === 'string') bytes = putUtf8(this.out, body, end)
    else if (body !== undefined && body.byteLength > 0) {
      this.out.set(body, end) // throws for a detached buffer, whose length is 0
      bytes = body.byteLength
    }
    words[word + Head.bytes] = bytes
    words[Out.end] = (end + bytes + 3) & ~3
    return bytes
  }

  #respondLarge(response: {
    readonly slot: number
    readonly stamp: number
    readonly status: number
    readonly type: number
    readonly headers: string
    readonly body: string | Uint8Array | undefined
  }): number {
    const { slot, stamp, status, type, headers, body } = response
    const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array())
    this.#put(Reply.respond | (type << 8), { slot, stamp }, status, headers, 0, 0, 1)
    if (this.server >= 0) native.httpLarge(this.server, bytes)
    this.#flushSoon()
    return bytes.byteLength
  }

  /** Find a file; `undefined` without one, and after the server has stopped. */
  findFile(folder: string, path: string, index: string): CoreFile | undefined {
    const numbers = this.#found
    if (this.server < 0) return undefined
    if (native.httpFindFile(this.server, folder, path, index, this.#foundBytes) === 0) return undefined
    return {
      file: numbers[Found.file],
      bytes: numbers[Found.bytes],
      seconds: numbers[Found.seconds],
      nanoseconds: numbers[Found.nanoseconds],
      isIndex: numbers[Found.isIndex] === 1,
    }
  }

  /** Respond with a part of a file; false when it is not open any more. */
  respondFile(
    exchange: ExchangeId,
    status: number,
    type: number,
    headers: string,
    { file, start, bytes }: FilePart,
  ): boolean {
    if (this.server < 0) return true
    this.#put(Reply.respond | (type << 8), exchange, status, headers, 0, 0, 1)
    native.httpFile(this.server, file, start, bytes)
    this.#flushSoon()
    return this.#outWords[Out.found] === 1
  }

  /** Write the head of a streamed response. */
  start(
    exchange: ExchangeId,
    status: number,
    type: number,
    headers: string,
    length: number | undefined,
  ): void {
    const low = length === undefined ? -1 : length | 0
    const high = length === undefined ? -1 : Math.floor(length / 0x1_0000_0000)
    this.#put(Reply.start | (type << 8), exchange, status, headers, low, high, 0)
  }

  /** Write a piece of a response; false when its client reads slowly. */
  write(exchange: ExchangeId, chunk: Uint8Array): boolean {
    if (this.server < 0) return true
    if (chunk.byteLength > PIECE_BYTES_MAX) {
      this.#put(Reply.write, exchange, 0, '', 0, 0, 1)
      native.httpLarge(this.server, chunk)
    } else {
      this.record(Reply.write, exchange, chunk)
      native.httpPut(this.server)
    }
    this.#flushSoon()
    return this.#outWords[Out.found] <= this.#limits.outBytesMax
  }

  /** Write a small piece, which the core takes at the end of the batch. */
  writeSoon(exchange: ExchangeId, chunk: Uint8Array): void {
    if (this.server < 0) return
    this.record(Reply.write, exchange, chunk)
    this.#flushSoon()
  }

  /** Whether `write` would return false. */
  isFull(exchange: ExchangeId): boolean {
    return this.server >= 0 && !this.write(exchange, EMPTY)
  }

  /** Write a record with or without a piece of a body. */
  record(kind: number, exchange: ExchangeId, piece: Uint8Array | undefined): void {
    const bytes = piece === undefined ? 0 : piece.byteLength
    const start = this.#head(kind, exchange, 0, '', bytes)
    if (start >= 0 && bytes > 0) this.out.set(piece!, start)
  }

  /**
   * Write a record that is for a WebSocket, or for a room whose number is `room`.
   * @param kind One of `Reply`, and the bits of `Send` in the second byte.
   */
  frame(
    kind: number,
    exchange: ExchangeId,
    message: string | Uint8Array,
    { status, room }: { readonly status: number; readonly room: number },
  ): void {
    const isText = typeof message === 'string'
    const bytesMax = isText ? message.length * 3 : message.byteLength
    if (bytesMax > PIECE_BYTES_MAX) {
      this.#put(kind, exchange, status, '', 0, room, 1)
      if (this.server >= 0) native.httpLarge(this.server, isText ? Buffer.from(message) : message)
      return this.#flushSoon()
    }
    const start = this.#head(kind, exchange, status, '', bytesMax)
    if (start < 0) return
    const words = this.#outWords
    const word = (start - HEAD_BYTES) >> 2
    words[word + Head.bytesHigh] = room
    if (isText) {
      const bytes = putUtf8(this.out, message, start)
      words[word + Head.bytes] = bytes
      words[Out.end] = (start + bytes + 3) & ~3
    } else if (bytesMax > 0) this.out.set(message, start)
  }

  /** Write the record that makes a WebSocket of an exchange: header lines, and the words of its terms. */
  upgrade(exchange: ExchangeId, lines: string, terms: Uint8Array): void {
    const start = this.#head(Reply.upgrade, exchange, 101, lines, terms.byteLength)
    if (start >= 0) this.out.set(terms, start)
  }

  /** How many bytes wait to be sent to the client of the record that was written last. */
  ask(): number {
    if (this.server < 0) return 0
    // A long message was taken as it was written, and the count is there.
    if (this.#outWords[Out.end] > HEADER_BYTES) native.httpPut(this.server)
    this.#flushSoon()
    return this.#outWords[Out.found]
  }

  /** Bytes of a message of the batch that are not in its memory. */
  gathered(number: number, bytes: number): Uint8Array<ArrayBuffer> {
    const message = new Uint8Array(bytes)
    native.httpTake(this.server, number, message)
    return message
  }

  /** Write a record without a body; `low` and `high` are the length of one that follows elsewhere. */
  #put(
    kind: number,
    exchange: ExchangeId,
    status: number,
    headers: string,
    low: number,
    high: number,
    elsewhere: number,
  ): void {
    const start = this.#head(kind, exchange, status, headers, 0)
    if (start < 0) return
    const words = this.#outWords
    const word = (start - headers.length - HEAD_BYTES) >> 2
    words[word + Head.bytes] = low
    words[word + Head.bytesHigh] = high
    words[word + Head.elsewhere] = elsewhere
  }

  /**
   * Write the words and header lines of a record with `bytes` bytes of body. Returns where the body begins;
   * -1 when the server is closed.
   */
  #head(kind: number, { slot, stamp }: ExchangeId, status: number, lines: string, bytes: number): number {
    const at = this.#reserve(lines.length + bytes)
    if (at < 0) return -1
    const words = this.#outWords
    const word = at >> 2
    const start = at + HEAD_BYTES + lines.length
    words[word + Head.kind] = kind
    words[word + Head.slot] = slot
    words[word + Head.stamp] = stamp
    words[word + Head.status] = status
    words[word + Head.lines] = lines.length
    words[word + Head.bytes] = bytes
    words[word + Head.bytesHigh] = 0
    words[word + Head.elsewhere] = 0
    if (lines !== '') putLatin1(this.out, lines, at + HEAD_BYTES)
    words[Out.end] = (start + bytes + 3) & ~3
    return start
  }

  /**
   * The offset of the next record, with capacity for `bytes` after its words; -1 when the server is closed.
   * @throws {HttpError} `HTTP_HEADER` when they exceed the region; nothing is written then.
   */
  #reserve(bytes: number): number {
    const words = this.#outWords
    if (this.server < 0) return -1
    if (words[Out.inBatch] === 0) this.#flushSoon()
    const at = words[Out.end]
    if (at + HEAD_BYTES + bytes <= OUT_BYTES) return at
    native.httpPut(this.server)
    const from = words[Out.end]
    if (from + HEAD_BYTES + bytes <= OUT_BYTES) return from
    throw new HttpError('HTTP_HEADER', { name: '', received: `${bytes} bytes` })
  }

  /** Outside of a batch, responses are sent together after the microtasks of this turn. */
  #flushSoon(): void {
    if (this.#isFlushQueued || this.#outWords[Out.inBatch] !== 0) return
    this.#isFlushQueued = true
    process.nextTick(this.#flush)
  }
}
