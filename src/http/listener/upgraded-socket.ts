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

const HEAD_BYTES_MAX = 64 * 1024
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
  #isOver = false

  static {
    for (const name of FACTS)
      Object.defineProperty(this.prototype, name, {
        get(this: UpgradedSocket) {
          return this.#peer[name]
        },
      })
    inert(this.prototype, ['setTimeout', 'setNoDelay', 'setKeepAlive', 'ref', 'unref'])
  }

  constructor(exchange: Exchange, peer: PeerSocket) {
    super({ allowHalfOpen: false })
    this.#exchange = exchange
    this.#peer = peer
    this.response = new Promise((resolve, reject) => {
      this.#respond = resolve
      this.#refuse = reject
    })
    onAbort(exchange, () => {
      if (this.#wire === undefined) this.destroy()
    })
  }

  override _read(): void {
    this.#wire?.pause(false)
  }

  override _write(bytes: Buffer, _: BufferEncoding, callback: Callback): void {
    this.bytesWritten += bytes.length
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
   */
  #respondBy(isLast: boolean): Buffer {
    const head = this.#head
    const end = head.indexOf(END_OF_HEAD)
    if (end < 0 && head.length > HEAD_BYTES_MAX) throw new Error('its head is too long')
    const [[first], ...fields] = fieldsIn(head.toString('latin1', 0, Math.max(end, 0)))
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1])
    const body = head.subarray(end + END_OF_HEAD.length)
    if (status === 101) {
      this.#begin(fields)
      return body
    }
    const { 1: length = Infinity } = fields.find(([name]) => /^content-length$/i.test(name)) ?? []
    if (!isLast && (end < 0 || body.length < Number(length))) return NOTHING
    this.#isOver = true
    if (!(status >= 200)) this.#refuse(lost())
    else {
      const headers = fields.filter(([name]) => !OF_FRAMING.test(name))
      this.#respond(new CorespunResponse(body.length === 0 ? null : body, { status, headers }))
    }
    this.push(null)
    return NOTHING
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
        if (!this.push(bytes)) this.#wire!.pause(true)
      },
      onDrain: () => this.#goOn(),
      onClose: () => {
        this.#isOver = true
        this.#goOn()
        this.push(null)
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
    if (!this.#isOver) {
      this.#isOver = true
      // As in Node: what the kernel has is sent, what waits for its client is not.
      if (this.#onRoom === undefined) this.#wire?.close(1000, '')
      else this.#wire!.terminate()
      this.#refuse(lost())
    }
    this.#onRoom = undefined
    // An error that nobody listens for would end the process.
    callback(this.listenerCount('error') === 0 ? null : error)
  }

  address(): object {
    return this.#peer.address()
  }

  /** As of a net.Socket. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }
}

function lost(): HttpError {
  return new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its response' })
}
