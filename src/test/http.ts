/**
 * Servers, requests and WebSockets of a run. Each request has a connection of its own, between two tasks.
 *
 * The app is that of `createApp()`; what a core does (framing, limits, TLS, connections that are used again)
 * does not happen.
 */
import { generator, integer, optionsOf } from '../base/index.ts'
import type { AppOptions, CloseOptions } from '../http/index.ts'
import { Connection, type HttpParts, type Served, failed } from './connection.ts'
import { wrong } from './errors.ts'
import type { SeededNetwork } from './network.ts'
import type { Settings } from './options.ts'
import type { Actor, Play } from './play.ts'
import { ClientEnd } from './sockets.ts'

/** Options of a server: those of `createApp`, and `port`. */
export interface SeededServeOptions<Pattern extends string = string> extends AppOptions<Pattern> {
  /** 0 chooses a free one; default 3000. */
  readonly port?: number
}

/** A server of a run. It ends with its task. */
export interface SeededServer extends AsyncDisposable {
  /** As `http://localhost:3000`. */
  readonly url: string
  /** That it listens on. */
  readonly port: number
  /** Sends a message to all WebSockets in a room. @throws {HttpError} `HTTP_ARGUMENT`. */
  publish(room: string, message: string | ArrayBuffer | ArrayBufferView): void
  /** Accepts no more, closes WebSockets, and resets what is open after 10 s, by default. */
  close(options?: CloseOptions): Promise<void>
}

const CLOSE_MS = 10_000
const PORT_DEFAULT = 3000
const PORTS_FREE = 49_152
/** A message to a task that is cut off is sent again after this, then after twice that, and so on. */
const AGAIN_MS = 50
/** Each connection has one socket, so the key identifies nothing. */
const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': `${'A'.repeat(22)}==`,
}

export class SeededHttp {
  readonly #play: Play
  readonly #network: SeededNetwork
  readonly #faults: Settings['network']
  readonly #parts: HttpParts
  readonly #random: () => number
  readonly #listening = new Map<number, Served>()

  constructor(play: Play, network: SeededNetwork, faults: Settings['network'], parts: HttpParts) {
    this.#play = play
    this.#network = network
    this.#faults = faults
    this.#parts = parts
    this.#random = generator(play.seed ^ 0x27d4eb2f)
  }

  async serve<Pattern extends string>(options: SeededServeOptions<Pattern>): Promise<SeededServer> {
    const { port: asked, ...app } = options
    const kinds = { port: integer(0, 65_535, PORT_DEFAULT) }
    const { port: chosen } = optionsOf(asked === undefined ? {} : { port: asked }, kinds, wrong, 'serve()')
    const owner = this.#play.actor('serve()')
    const made = this.#parts.appOf(app)
    const rooms = new this.#parts.MemberRooms()
    made.hub.open(rooms)
    const listening: Served = { app: made, rooms, owner, connections: new Set(), waiting: [] }
    await owner.step('serve()')
    let port = chosen || PORTS_FREE
    while (chosen === 0 && this.#listening.has(port)) port++
    const url = `http://localhost:${port}`
    if (this.#listening.has(port)) throw new this.#parts.HttpError('HTTP_PORT_TAKEN', { where: url.slice(7) })
    this.#listening.set(port, listening)
    const closed = this.#play.opened(owner, `the server ${url}`)
    const end = (): void => {
      closed()
      if (this.#listening.get(port) === listening) this.#listening.delete(port)
    }
    owner.whenDead(end)
    const close = async ({ timeoutMs = CLOSE_MS }: CloseOptions = {}): Promise<void> => {
      end()
      await this.#closed(listening, timeoutMs)
    }
    const publish: SeededServer['publish'] = (room, message) => {
      this.#parts.checkRoom(room, 'server.publish()')
      made.hub.publish(room, this.#parts.payloadOf(message, 'server.publish()'), undefined)
    }
    return { url, port, publish, close, [Symbol.asyncDispose]: close }
  }

  async #closed({ connections, waiting }: Served, timeoutMs: number): Promise<void> {
    if (connections.size === 0) return
    const wait = this.#play.wait<void>(this.#play.actor('close()'), 'open requests')
    waiting.push(wait)
    for (const { socket } of connections) socket?.goAway()
    const late = this.#play.after(timeoutMs, () => {
      for (const connection of connections) connection.reset()
    })
    await wait.promise
    late()
  }

  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const client = this.#play.actor('fetch()')
    return (await this.#sent(client, new Request(input, init)))!
  }

  /** A WebSocket of the task that calls. @throws {DOMException} `SyntaxError` for another URL. */
  socket(input: string | URL, protocols: string | readonly string[] = []): ClientEnd {
    const client = this.#play.actor('new WebSocket()')
    const url = URL.canParse(String(input)) ? new URL(input) : undefined
    if (url === undefined || !/^(ws|http)s?:$/.test(url.protocol) || url.hash !== '')
      throw new DOMException(`a URL of ws: or wss: is expected, received ${String(input)}`, 'SyntaxError')
    url.protocol = url.protocol.replace('http', 'ws')
    const closed = this.#play.opened(client, `the WebSocket ${url.href}`)
    const survived = client.whenDead(closed)
    const socket = new ClientEnd(url.href, () => (survived(), closed()))
    const headers = new Headers(UPGRADE)
    for (const protocol of [protocols].flat()) headers.append('sec-websocket-protocol', protocol)
    const ended = (): void => socket.ended()
    const sent = this.#sent(client, new Request(url.href.replace('ws', 'http'), { headers }), socket)
    void sent.then((refused) => refused && ended(), ended)
    return socket
  }

  /** Resolves with nothing when `socket` is granted. */
  async #sent(client: Actor, request: Request, socket?: ClientEnd): Promise<Response | undefined> {
    const { signal } = request
    signal.throwIfAborted()
    const { protocol, port, pathname, host } = new URL(request.url)
    const label = `${request.method} ${pathname}`
    const outcome = this.#play.wait<Response | undefined>(client, `the response of ${label}`)
    let reset = (): void => {}
    const abort = (): void => {
      outcome.reject(signal.reason)
      reset()
    }
    signal.addEventListener('abort', abort, { once: true })
    const begin = (): void => {
      const listening = this.#listening.get(Number(port) || (protocol === 'https:' ? 443 : 80))
      if (listening === undefined) return outcome.reject(failed('ECONNREFUSED', host))
      const carry = this.#carry.bind(this)
      const own = {
        play: this.#play,
        network: this.#network,
        parts: this.#parts,
        resets: this.#faults.resets,
      }
      const connection = new Connection({ ...own, client, served: listening, carry }, label, () => {
        signal.removeEventListener('abort', abort)
      })
      connection.client.lost.push((reason) => outcome.reject(reason))
      reset = () => connection.reset(signal.reason)
      connection.exchange(request, outcome, socket)
    }
    this.#carry(client, client, () => signal.aborted || client.isDead || begin())
    return outcome.promise
  }

  /** Call `arrive` after a delay, when none of both is cut off. @returns The time of that. */
  #carry(from: Actor, to: Actor, arrive: () => void, notBeforeMs = 0): number {
    const nowMs = this.#play.nowMs()
    const atMs = Math.max(notBeforeMs, nowMs + this.#random() * this.#faults.delayMs)
    const deliver = (againMs: number) => (): void => {
      if (!this.#network.isCut(from) && !this.#network.isCut(to)) arrive()
      else this.#play.after(againMs, deliver(2 * againMs))
    }
    this.#play.after(atMs - nowMs, deliver(AGAIN_MS))
    return atMs
  }
}
