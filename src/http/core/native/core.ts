/**
 * The JavaScript side of the native HTTP core: opening and stopping a server, and its batches of requests.
 *
 * The core calls `#onBatch` once per batch and takes the responses when it returns, microtasks included. Each
 * request becomes an exchange, which reads from and writes to the link's memory.
 */
import { messageOf, meters, otherRuntime } from '../../../base/index.ts'
import { NativeError, checkAttached, doublesOf, namedBy, native } from '../../../native/index.ts'
import {
  type Credentials,
  type Tls,
  type Core,
  type CoreAddress,
  type CoreSettings,
  type CoreStats,
} from '../../message/core-interface.ts'
import { NativeExchange } from './exchange.ts'
import { Counts, Event, Flag, HEADER_BYTES, Inbound, Opening } from '../../message/layout.ts'
import { HttpError } from '../../errors.ts'
import { NativeLink } from './link.ts'
import { wordsOf } from './memory.ts'
import { NativeSockets } from './sockets.ts'
import { reportAll } from './reported-refusals.ts'
import { packCredentials, packTls } from './tls.ts'

/** A warning: the length of the response was sent before. */
const FILE_SHORT = 'files(): a file became shorter while it was sent; its response was cut off'

/** The links of this thread whose servers run. */
const open = new Set<NativeLink>()

/** What handlers have returned is sent when the thread ends in a batch, by an uncaught error or an exit. */
function sendLast(): void {
  for (const { server } of open) if (server >= 0) native.httpFlush(server)
}

/** An uncaught error ends the ticks of its batch; Node runs the rest when other batches may have come. */
function keepNow(): void {
  for (const link of open) link.keepAll()
}

/**
 * A server on the native core.
 * @throws {NativeError} when the core does not load; `NATIVE_HTTP_MISSING` where it has no server
 *   (Windows, Bun).
 */
export function createNativeCore(settings: CoreSettings, build: { httpOpen: unknown } = native): Core {
  if (build.httpOpen === undefined)
    throw new NativeError('NATIVE_HTTP_MISSING', { platform: otherRuntime() ?? process.platform })
  return new NativeCore(settings)
}

class NativeCore implements Core {
  readonly kind = 'native'
  readonly #settings: CoreSettings
  readonly #link: NativeLink
  #stopped: (() => void) | undefined
  #stopping: Promise<void> | undefined
  #last: CoreStats | undefined
  #lastConstants: Float64Array = new Float64Array()

  constructor(settings: CoreSettings) {
    this.#settings = settings
    this.#link = new NativeLink(settings.limits, settings.hub, (link) => new NativeSockets(link))
  }

  async listen(): Promise<CoreAddress> {
    const { host, port, unixPath, fd, tls, constants } = this.#settings
    const address = (unixPath ?? fd) === undefined ? await addressOf(host) : ''
    const link = this.#link
    link.server = native.httpOpen(
      () => this.#onBatch(),
      link.bytes,
      link.out,
      link.body,
      numbersOf(this.#settings, port),
      address,
      new Uint8Array(Buffer.from(unixPath ?? '')),
      packed(constants),
    )
    try {
      if (tls !== undefined) this.setTls(tls)
    } catch (error) {
      native.httpClose(link.server)
      link.server = -1
      throw error
    }
    if (open.size === 0) process.on('exit', sendLast).on('uncaughtExceptionMonitor', keepNow)
    open.add(link)
    const text = native.httpAddress(link.server)
    const space = text.indexOf(' ')
    const where = text.slice(space + 1)
    if (unixPath !== undefined || (fd !== undefined && text.startsWith('0 ')))
      return { host: '', port: 0, unixPath: where }
    return { host: where, port: Number(text.slice(0, space)), unixPath: undefined }
  }

  get member(): number {
    return this.#link.server < 0 ? 0 : native.httpMember(this.#link.server)
  }

  stats(): CoreStats {
    const { server } = this.#link
    const counts = new Float64Array(Counts.numbers)
    if (server < 0) return this.#last ?? namedBy(Counts, counts)
    native.httpStats(server, new Uint8Array(counts.buffer))
    return namedBy(Counts, counts)
  }

  constantCounts(): Float64Array {
    const { server } = this.#link
    return server < 0 ? this.#lastConstants : new Float64Array(native.httpConstants(server).buffer)
  }

  announceStop(): void {
    this.#link.isClosing = true
  }

  setTls(tls: Tls): void {
    const { server } = this.#link
    if (server < 0) return // it has stopped
    try {
      native.httpTls(server, packTls(tls))
    } catch (cause) {
      const facts = { where: 'a key of tls', reason: messageOf(cause) }
      throw new HttpError('HTTP_TLS_KEY', facts, { cause })
    }
    this.#link.tls = tls
  }

  /** A handshake waits for a certificate that `sni` chooses. */
  async #onAsked(slot: number, generation: number): Promise<void> {
    const link = this.#link
    const name = native.httpAskedName(link.server, slot, generation)
    if (name === '') return
    let chosen: Credentials | undefined
    try {
      chosen = await link.tls?.sni?.(name)
    } catch (error) {
      this.#settings.onFault(error)
    }
    if (link.server < 0) return
    try {
      native.httpChoose(link.server, slot, generation, packCredentials(chosen))
    } catch (cause) {
      const facts = { where: `the key of tls.sni(${JSON.stringify(name)})`, reason: messageOf(cause) }
      this.#settings.onFault(new HttpError('HTTP_TLS_KEY', facts, { cause }))
    }
  }

  stop(graceMs: number): Promise<void> {
    this.announceStop()
    return (this.#stopping ??= new Promise((resolve) => {
      if (this.#link.server < 0) return resolve()
      this.#stopped = resolve
      native.httpStop(this.#link.server, graceMs)
    }))
  }

  #onBatch(): void {
    const { bytes, words } = this.#link
    checkAttached(bytes)
    this.#link.turn += 1
    const count = words[Inbound.count]
    let at = HEADER_BYTES / 4
    let hasRequests = false
    meters.isInBatch = true
    for (let index = 0; index < count; index++) {
      const kind = words[at]
      const next = at + wordsOf(words, at)
      if ((kind & 0xff) === Event.request) {
        hasRequests = true
        this.#onRequest(at, kind)
      } else if ((kind & 0xff) === Event.message || (kind & 0xff) === Event.closing)
        this.#link.sockets.onMessage(at)
      else this.#onEvent(kind, words[at + 1], words[at + 2])
      at = next
    }
    meters.isInBatch = false
    meters.batchEnded?.()
    if (hasRequests) this.#link.endBatch()
  }

  #onRequest(at: number, kind: number): void {
    if ((kind & Flag.first) !== 0) this.#link.meet(at)
    const exchange = new NativeExchange(this.#link, at)
    try {
      this.#settings.onExchange(exchange)
    } catch (error) {
      this.#settings.onFault(error)
      exchange.abort()
    }
    exchange.settle()
  }

  #onEvent(kind: number, slot: number, stamp: number): void {
    if (kind === Event.stopped) return this.#onStopped()
    if ((kind & 0xff) === Event.socketClosed) return this.#link.sockets.onClosed(slot, stamp, kind >>> 16)
    if (kind === Event.refused) return this.#onRefused()
    if (kind === Event.asks) return void this.#onAsked(slot, stamp)
    if (kind === Event.fileShort) return this.#settings.onFault(new Error(FILE_SHORT))
    const exchange = this.#link.find(slot, stamp)
    if (exchange === undefined) return
    try {
      if (kind === Event.disconnected) exchange.onDisconnect()
      else if (kind === Event.body) exchange.onBody()
      else if (kind === Event.drained) exchange.onDrained()
      else if (kind === Event.closed) exchange.onClosed()
    } catch (error) {
      this.#settings.onFault(error)
    }
  }

  #onRefused(): void {
    const { refusals } = this.#settings
    if (refusals.isHeard) reportAll(native.httpRefusals(this.#link.server), refusals)
  }

  #onStopped(): void {
    this.#last = this.stats()
    this.#lastConstants = this.constantCounts()
    native.httpClose(this.#link.server)
    this.#link.server = -1
    open.delete(this.#link)
    if (open.size === 0) process.off('exit', sendLast).off('uncaughtExceptionMonitor', keepNow)
    this.#stopped?.()
  }
}

/** An address as mostly written. The module of Node that looks up all else loads a dozen others. */
const ADDRESS = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$|^::1?$/

async function addressOf(host: string): Promise<string> {
  if (ADDRESS.test(host)) return host
  return (await process.getBuiltinModule('node:dns/promises').lookup(host)).address
}

/** The numbers that `httpOpen` expects. */
function numbersOf({ reusePort, proxyProtocol, fd, limits }: CoreSettings, port: number): Uint8Array {
  return doublesOf(Opening, {
    ...limits,
    port,
    isShared: reusePort ? 1 : 0,
    isProxied: proxyProtocol ? 1 : 0,
    inherited: fd === undefined ? 0 : fd + 1,
  })
}

/** Constants as the core reads them: five words each, then method, path, header lines and body. */
function packed(constants: CoreSettings['constants']): Uint8Array {
  const parts: Uint8Array[] = []
  for (const { method, path, status, headers, body } of constants) {
    const texts = [method, path, headers].map((text) => Buffer.from(text, 'latin1'))
    const lengths = [...texts.map((text) => text.byteLength), body.byteLength, status]
    parts.push(new Uint8Array(Uint32Array.from(lengths).buffer), ...texts, body)
  }
  return new Uint8Array(Buffer.concat(parts))
}
