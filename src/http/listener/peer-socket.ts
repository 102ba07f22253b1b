/**
 * The socket of a request, as apps for node:http read it: facts of the connection, its end, and its timeout.
 *
 * The core owns the connection and multiplexes it, so there is one such object per request, and nothing can
 * be read from or written to it. What Node's own classes call on a socket while they write does nothing here.
 */
import { EventEmitter } from 'node:events'
import { getDefaultHighWaterMark } from 'node:stream'
import { HttpError } from '../errors.ts'
import type { Certificate, Exchange } from '../message/core-interface.ts'

/** What it needs of the request that it belongs to. */
export interface Owner {
  readonly exchange: Exchange
  /** Bytes of the response that the core has not taken. */
  readonly writableLength: number
  /** The app ends the connection. */
  destroyed(error: Error | undefined): void
  /** Nothing was received or sent for the time of `setTimeout`. Returns whether somebody listens. */
  timedOut(): boolean
}

interface Address {
  readonly address?: string
  readonly family?: string
  readonly port?: number
}

/** Bytes of a response that wait before `write` returns false. */
const WAITING_BYTES_MAX = getDefaultHighWaterMark(false)
/** Node ends the corking of a socket there. */
const CORKED = { corked: 1 }

export class PeerSocket extends EventEmitter {
  readonly #owner: Owner
  #timer: NodeJS.Timeout | undefined
  #encrypted: boolean | undefined
  destroyed = false
  readonly connecting = false
  readonly pending = false
  /** The number of `setTimeout`, in ms. */
  timeout: number | undefined = undefined
  readonly writableHighWaterMark = WAITING_BYTES_MAX
  readonly readableHighWaterMark = WAITING_BYTES_MAX
  /** Node corks a socket for the time of a tick unless it is corked. */
  readonly writableCorked = 1
  readonly _writableState = CORKED

  constructor(owner: Owner) {
    super()
    this.#owner = owner
  }

  get readable(): boolean {
    return !this.destroyed
  }

  get writable(): boolean {
    return !this.destroyed
  }

  get readyState(): 'open' | 'closed' {
    return this.destroyed ? 'closed' : 'open'
  }

  get writableLength(): number {
    return this.#owner.writableLength
  }

  get remoteAddress(): string | undefined {
    return this.#owner.exchange.remoteAddress || undefined
  }

  get remoteFamily(): string | undefined {
    return familyOf(this.remoteAddress)
  }

  /** Undefined where a proxy states the client by the PROXY protocol. */
  get remotePort(): number | undefined {
    return this.#owner.exchange.remotePort || undefined
  }

  /** Undefined on all interfaces: the core does not ask which one a connection has come by. */
  get localAddress(): string | undefined {
    const host = this.#owner.exchange.hub?.address?.host
    return host === undefined || host === '' || host === '0.0.0.0' || host === '::' ? undefined : host
  }

  get localFamily(): string | undefined {
    return familyOf(this.localAddress)
  }

  get localPort(): number | undefined {
    return this.#owner.exchange.hub?.address?.port || undefined
  }

  get encrypted(): boolean | undefined {
    return this.#encrypted ?? (this.#owner.exchange.scheme === 'https' ? true : undefined)
  }

  /** As on Node's sockets: apps behind a proxy that ends TLS set it. */
  set encrypted(encrypted: boolean) {
    this.#encrypted = encrypted
  }

  /** Whether the client has shown a certificate, which has been verified. */
  get authorized(): boolean | undefined {
    return this.encrypted && this.#owner.exchange.clientCertificate !== undefined
  }

  /** Undefined without TLS, where Node's sockets lack it. */
  get getPeerCertificate(): (() => object) | undefined {
    return this.encrypted ? () => legacyOf(this.#owner.exchange.clientCertificate) : undefined
  }

  /** As `getPeerCertificate`. */
  get getPeerX509Certificate(): (() => Certificate | undefined) | undefined {
    return this.encrypted ? () => this.#owner.exchange.clientCertificate : undefined
  }

  address(): Address {
    const { localAddress: address, localFamily: family, localPort: port } = this
    return { ...(address && { address, family }), ...(port && { port }) } as Address
  }

  /** Ends the connection, as `destroy`: whatever the response is, the rest of it is not sent. */
  destroy(error?: Error): this {
    if (this.destroyed) return this
    this.closed()
    this.#owner.destroyed(error)
    return this
  }

  /** Without data it is `destroy`. @throws {HttpError} `HTTP_UPGRADE` with data. */
  end(data?: unknown): this {
    if (data !== undefined && typeof data !== 'function') throw ownedByCore()
    return this.destroy()
  }

  /** @throws {HttpError} `HTTP_UPGRADE`. */
  write(): never {
    throw ownedByCore()
  }

  /** The connection is closed. */
  closed(): void {
    this.destroyed = true
    this.released()
  }

  /** The response has ended; the connection is for other requests now. */
  released(): void {
    this.timeout = undefined
    this.#stop()
  }

  /**
   * Calls `callback`, and listeners of `timeout` of the request and the response, when no piece of a body was
   * received, written or sent for so long; without any, the connection ends. 0 stops it.
   */
  setTimeout(ms: number, callback?: () => void): this {
    this.timeout = ms
    if (callback !== undefined) this[ms === 0 ? 'off' : 'once']('timeout', callback)
    this.touched()
    return this
  }

  /** Something was received, written or sent: the time begins again. */
  touched(): void {
    if (this.timeout === undefined) return
    this.#stop()
    if (this.timeout === 0 || this.destroyed) return
    this.#timer = setTimeout(() => {
      const isHeard = this.emit('timeout')
      if (!this.#owner.timedOut() && !isHeard) this.destroy()
    }, this.timeout).unref()
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** Methods of a net.Socket that do nothing: the core has its own options of connections. */
const INERT = ['cork', 'uncork', 'setNoDelay', 'setKeepAlive', 'ref', 'unref', 'pause', 'resume']
inert(PeerSocket.prototype, INERT)

/** Adds methods that do nothing. */
export function inert(prototype: object, names: readonly string[]): void {
  for (const name of names)
    Object.defineProperty(prototype, name, {
      value(this: object) {
        return this
      },
    })
}

/** Why a connection cannot be taken over. */
export function ownedByCore(): HttpError {
  return new HttpError('HTTP_UPGRADE', {
    reason:
      'the core owns the connection behind (req, res); ' +
      'pass the http.Server to which a library attaches, or add a route with `websocket` beside the app',
  })
}

function familyOf(address: string | undefined): string | undefined {
  return address && (address.includes(':') ? 'IPv6' : 'IPv4')
}

/** As `getPeerCertificate` of node:tls: empty without a certificate. */
function legacyOf(certificate: Certificate | undefined): object {
  return (certificate as { toLegacyObject?(): object } | undefined)?.toLegacyObject?.() ?? {}
}
