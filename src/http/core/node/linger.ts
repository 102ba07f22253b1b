/**
 * The end of a connection whose client still sends when its last response is complete (RFC 9112, 9.6).
 *
 * node:http closes such a connection with bytes unread, so the kernel resets it, and the reset may overtake
 * the response. Here the server ends its own side and drops what still arrives until the client closes. The
 * bounds are those of the native core: time, a rate, and a share of the connections.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { otherRuntime } from '../../../base/index.ts'
import type { CoreLimits } from '../../message/limits.ts'

/**
 * How often a connection is checked, ms, and the bytes that must arrive between two checks. The first check
 * that finds fewer reads on, the second in a row closes the connection.
 */
const CHECK_MS = 2000
const CHECK_BYTES = 1000
/** One in this many of `connectionsMax` may linger; others are closed at once. */
const LINGERING_SHARE = 4

export class Lingering {
  readonly #lingerMs: number
  readonly #most: number
  #count = 0

  constructor({ bodyMs, connectionsMax }: CoreLimits) {
    this.#lingerMs = bodyMs
    this.#most = Math.max(1, Math.floor(connectionsMax / LINGERING_SHARE))
  }

  /** If node:http closes the connection when this request has its response, the rest of it is read. */
  after(request: IncomingMessage, socket: Socket): void {
    if (!request.complete) this.#instead(socket, () => request.complete)
  }

  /** The client has sent more behind a request that closes the connection: that is dropped. */
  behind(socket: Socket): void {
    this.#instead(socket, () => false)
  }

  #instead(socket: Socket, isRead: () => boolean): void {
    // The sockets of other runtimes' node:http are not closed this way.
    if (otherRuntime() !== undefined) return
    const { destroySoon } = Object.getPrototypeOf(socket) as Socket
    socket.destroySoon = () => {
      if (isRead() || socket.destroyed || this.#count >= this.#most) destroySoon.call(socket)
      else this.#begin(socket)
    }
  }

  #begin(socket: Socket): void {
    this.#count += 1
    socket.destroySoon = () => {} // it ends when its client does
    socket.end()
    // Nobody parses it any more: node:http stops reading when nobody takes a body.
    socket.removeAllListeners('data').on('data', () => {})
    socket.once('end', () => socket.destroy()).resume()
    // This may run within the parser, which stops the socket behind this when the body's buffer is full.
    // Whether the stream then reads again by itself depends on what it did last.
    socket.pause = () => socket
    const readOn = (): void => {
      if (!socket.destroyed) socket.resume()._read(0)
    }
    setImmediate(readOn)
    const until = performance.now() + this.#lingerMs
    let before = socket.bytesRead
    let silent = 0
    const check = (): void => {
      silent = socket.bytesRead - before >= CHECK_BYTES ? 0 : silent + 1
      before = socket.bytesRead
      if (silent === 2 || performance.now() >= until) socket.destroy()
      else if (silent === 1) readOn()
    }
    // A loop that was blocked runs timers first: what has arrived meanwhile is read before it is judged.
    const timer = setInterval(() => setImmediate(check), Math.min(CHECK_MS, this.#lingerMs))
    socket.once('close', () => {
      clearInterval(timer)
      this.#count -= 1
    })
  }
}
