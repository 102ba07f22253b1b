/**
 * The connection of a request for a WebSocket, as listeners of `upgrade` of an http.Server take it (`ws`,
 * socket.io): they write the response, then both sides send what they like.
 *
 * The core owns the connection still. It sends the head of the response when that is complete, and passes
 * bytes in both directions from then on; over HTTP/2 it is a stream. A response that is no 101 is one like
 * any other.
 */
import { Duplex } from 'node:stream'
import { HttpError } from '../errors.ts'
import { onAbort } from '../fetch/request.ts'
import { CorespunResponse } from '../fetch/response.ts'
import type { Exchange } from '../message/core-interface.ts'
import type { RawWire, SocketTerms } from '../message/wire.ts'
import { fieldsIn, type Pairs } from './head.ts'
import { inert, type PeerSocket } from './peer-socket.ts'

type Callback = (error?: Error | null) => void

/** A response that is no 101 is kept until it is complete. */
const RESPONSE_BYTES_MAX = 1024 * 1024
const END_OF_HEAD = '\r\n\r\n'
/** Of HTTP/1.1 alone. */
const OF_CONNECTION = /^(connection|upgrade|sec-websocket-accept)$/i
/** Written by the core. */
const OF_FRAMING = /^(keep-alive|date|content-length|transfer-encoding)$/i
const NOTHING = Buffer.alloc(0)
/** Less is not worth asking the core whether it is full. */
const WAITING_BYTES_MIN = 64 * 1024
const LONGEST = 2 ** 32 - 1
/** Whoever frames also pings, and bounds messages and what waits. */
const TERMS: SocketTerms = {
  messageBytesMax: LONGEST,
  queuedBytesMax: LONGEST,
  pingMs: LONGEST,
  pongMs: LONGEST,
  closeMs: 5000,
  compressedBytesMin: undefined,
}
/** What it has of the socket of its request. */
const FACTS = [
  'remoteAddress',
  'remoteFamily',
  'remotePort',
  'localAddress',
  'localFamily',
  'localPort',
  'encrypted',
  'authorized',
  'getPeerCertificate',
  'getPeerX509Certificate',
  'timeout',
] as const

export class UpgradedSocket extends Duplex {
  /** Resolves when there is a response; that of an upgrade is sent already. */
  readonly response: Promise<Response>
  bytesWritten = 0
  readonly #exchange: Exchange
  readonly #peer: PeerSocket
  #respond!: (response: Response) => void
  #refuse!: (error: unknown) => void
  /** What was written before the connection was taken over. */
  #head = Buffer.alloc(0)
  #wire: RawWire | undefined
  /** Called when there is room for more. */
  #onRoom: Callback | undefined
  /** The core reads no more for now. */
  #isPaused = false
  #isOver = false

  static {
    for (const name of FACTS)
      Object.defineProperty(this.prototype, name, {
        get(this: UpgradedSocket) {
          return this.#peer[name]
        },
      })
    inert(this.prototype, ['setNoDelay', 'setKeepAlive', 'ref', 'unref'])
  }

  constructor(exchange: Exchange, peer: PeerSocket) {
    super({ allowHalfOpen: false })
    this.#exchange = exchange
    this.#peer = peer
    peer.on('timeout', () => this.emit('timeout')).once('close', () => this.destroy()) // as `req.destroy()`
    this.response = new Promise((resolve, reject) => {
      this.#respond = resolve
      this.#refuse = reject
    })
    const lose = (): void => {
      if (this.#wire === undefined) this.destroy()
    }
    if (exchange.aborted) process.nextTick(lose)
    else onAbort(exchange, lose)
  }

  override _read(): void {
    if (this.#isPaused) this.#pause(false)
  }

  #pause(isPaused: boolean): void {
    this.#isPaused = isPaused
    this.#wire!.pause(isPaused)
  }

  override _write(bytes: Buffer, _: BufferEncoding, callback: Callback): void {
    this.bytesWritten += bytes.length
    this.#peer.touched()
    if (this.#wire !== undefined || this.#isOver) return this.#send(bytes, callback)
    this.#head = Buffer.concat([this.#head, bytes])
    try {
      const rest = this.#respondBy(false)
      this.#send(rest, callback)
    } catch (error) {
      callback(error as Error)
    }
  }

  /** What was written while it was corked, as the parts of a frame, is one record. */
  override _writev(pieces: readonly { readonly chunk: Buffer }[], callback: Callback): void {
    this._write(Buffer.concat(pieces.map(({ chunk }) => chunk)), 'utf8', callback)
  }

  /**
   * Responds when the response is complete, and takes the connection over when that is a 101.
   * @returns What is written behind a 101.
   * @throws {unknown} For what cannot be a response.
   */
  #respondBy(isLast: boolean): Buffer {
    try {
      return this.#respondWith(this.#head, isLast)
    } catch (error) {
      this.#isOver = true
      this.#refuse(error)
      throw error
    }
  }

  #respondWith(written: Buffer, isLast: boolean): Buffer {
    const end = written.indexOf(END_OF_HEAD)
    const [[first], ...fields] = fieldsIn(written.toString('latin1', 0, Math.max(end, 0)))
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1])
    const rest = written.subarray(end + END_OF_HEAD.length)
    if (status === 101) {
      this.#begin(fields)
      return rest
    }
    const body = end < 0 ? undefined : bodyOf(status, fields, rest, isLast)
    if (body === undefined && !isLast) {
      if (written.length > RESPONSE_BYTES_MAX) throw new Error('the response to an upgrade is too long')
      return NOTHING
    }
    this.#isOver = true
    if (body === undefined || !(status >= 200)) this.#refuse(lost())
    else {
      const headers = fields.filter(([name]) => !OF_FRAMING.test(name))
      this.#respond(new CorespunResponse(body.length === 0 ? null : body, { status, headers }))
    }
    this.#end()
    return NOTHING
  }

  /** Nothing more is received. As on a net.Socket, the end is noticed also where nobody reads. */
  #end(): void {
    if (this.destroyed) return
    this.push(null)
    this.read(0)
  }

  #begin(fields: Pairs): void {
    const isStream = this.#exchange.hasNoKey === true
    const sent = isStream ? fields.filter(([name]) => !OF_CONNECTION.test(name)) : fields
    const grant = {
      key: isStream ? undefined : '',
      protocol: '',
      deflates: false,
      lines: sent.map(([name, value]) => `${name}: ${value}\r\n`).join(''),
      terms: TERMS,
      isRaw: true,
    }
    this.#wire = this.#exchange.upgrade!(grant, {
      onMessage: (bytes) => {
        this.#peer.touched()
        if (!this.push(bytes)) this.#pause(true)
      },
      onDrain: () => this.#goOn(),
      onClose: () => {
        this.#isOver = true
        this.#goOn()
        this.#end()
      },
    }) as RawWire
    this.#respond(new CorespunResponse(null, { status: 204 })) // as that of `upgrade`
  }

  #send(bytes: Buffer, callback: Callback): void {
    if (this.#wire === undefined || this.#isOver) return callback()
    const waiting = bytes.length > 0 ? this.#wire.send(bytes) : 0
    if (waiting > WAITING_BYTES_MIN && this.#wire.isFull()) this.#onRoom = callback
    else callback()
  }

  #goOn(): void {
    const callback = this.#onRoom
    this.#onRoom = undefined
    callback?.()
  }

  override _final(callback: Callback): void {
    if (!this.#isOver && this.#wire === undefined) this.#respondBy(true)
    this.#wire?.close(1000, '')
    this.#isOver = true
    callback()
  }

  override _destroy(error: Error | null, callback: Callback): void {
    this.#peer.released()
    try {
      // As in Node: what was written before is sent.
      if (!this.#isOver && this.#wire === undefined) this.#respondBy(true)
    } catch {} // the request is refused with it
    if (!this.#isOver) {
      this.#isOver = true
      // As in Node: what the kernel has is sent, what waits for its client is not.
      if (this.#onRoom === undefined) this.#wire!.close(1000, '')
      else this.#wire!.terminate()
    }
    // An error that nobody listens for would end the process.
    callback(this.listenerCount('error') === 0 ? null : error)
    this.#goOn()
  }

  address(): object {
    return this.#peer.address()
  }

  /** As of a net.Socket: `timeout` is emitted when nothing was received or written for so long. */
  setTimeout(ms: number, callback?: () => void): this {
    if (callback !== undefined) this[ms === 0 ? 'off' : 'once']('timeout', callback)
    this.#peer.setTimeout(ms)
    return this
  }

  /** As of a net.Socket. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }
}

/** The body of a response, of what was written behind its head; undefined: a part of it is missing. */
function bodyOf(status: number, fields: Pairs, written: Buffer, isLast: boolean): Buffer | undefined {
  if (status === 204 || status === 205 || status === 304) return NOTHING
  const valueOf = (name: string): string | undefined =>
    fields.find(([found]) => found.toLowerCase() === name)?.[1]
  const joined = valueOf('transfer-encoding') === undefined ? undefined : joinedOf(written)
  if (joined !== undefined) return joined
  const length = Number(valueOf('content-length') ?? NaN)
  if (written.length >= length) return written.subarray(0, length)
  return isLast && Number.isNaN(length) ? written : undefined
}

/** What chunks contain; undefined if they are not complete, or none, as what a proxy has decoded. */
function joinedOf(chunks: Buffer): Buffer | undefined {
  const pieces: Buffer[] = []
  for (let at = 0; ;) {
    const from = chunks.indexOf('\r\n', at) + 2
    const size = /^[\da-f]+/i.exec(chunks.toString('latin1', at, from))?.[0]
    const to = from + parseInt(size ?? '', 16)
    if (from === 1 || !(to + 2 <= chunks.length)) return undefined
    if (to === from) return Buffer.concat(pieces)
    pieces.push(chunks.subarray(from, to))
    at = to + 2
  }
}

function lost(): HttpError {
  return new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its response' })
}
