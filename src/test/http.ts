/**
 * Servers and requests of a run. Each request has a connection of its own, between two tasks.
 *
 * A message is a head, bytes of a body, or the end of one. Messages of a direction stay in their order, are
 * delayed, and wait for a reader that is slow; the seed resets connections. A direction ends alone: while a
 * client sends no more, it still receives. The app is that of `createApp()`; what a core does (framing,
 * limits, TLS, connections that are used again) does not happen.
 */
import { generator, integer, optionsOf } from '../base/index.ts'
import type { AppOptions, CloseOptions, HttpError, InjectableApp, createApp } from '../http/index.ts'
import { wrong } from './errors.ts'
import type { SeededNetwork } from './network.ts'
import type { Settings } from './options.ts'
import { type Actor, type Play, type Wait, current } from './play.ts'

/** Options of a server of a {@link World}: those of `createApp`, and of `serve` what a run has. */
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
  /** Accepts no more, and waits for what is open: up to 10 s, by default; then that is reset. */
  close(options?: CloseOptions): Promise<void>
}

/** What is loaded before a run, since loading is not decided by a seed. */
export interface HttpParts {
  readonly createApp: typeof createApp
  readonly HttpError: typeof HttpError
}

interface Listening {
  readonly app: InjectableApp
  readonly owner: Actor
  readonly connections: Set<Connection>
  readonly waiting: Wait<void>[]
}

/** Bytes of a direction that are sent and not read. */
const WINDOW_BYTES = 65_536
const CLOSE_MS = 10_000
const PORT_DEFAULT = 3000
const PORTS_FREE = 49_152
/** A message to a task that is cut off is sent again after this, then after twice that, and so on. */
const AGAIN_MS = 50

export class SeededHttp {
  readonly #play: Play
  readonly #network: SeededNetwork
  readonly #faults: Settings['network']
  readonly #parts: HttpParts
  readonly #random: () => number
  readonly #listening = new Map<number, Listening>()

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
    const made = this.#parts.createApp(app)
    const listening: Listening = { app: made, owner, connections: new Set(), waiting: [] }
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
    return { url, port, close, [Symbol.asyncDispose]: close }
  }

  async #closed({ connections, waiting }: Listening, timeoutMs: number): Promise<void> {
    if (connections.size === 0) return
    const wait = this.#play.wait<void>(this.#play.actor('close()'), 'open requests')
    waiting.push(wait)
    const late = this.#play.after(timeoutMs, () => {
      for (const connection of connections) connection.reset()
    })
    await wait.promise
    late()
  }

  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const client = this.#play.actor('fetch()')
    const request = new Request(input, init)
    const { signal } = request
    signal.throwIfAborted()
    const { protocol, port, pathname, host } = new URL(request.url)
    const label = `${request.method} ${pathname}`
    const outcome = this.#play.wait<Response>(client, `the response of ${label}`)
    let reset = (): void => {}
    const abort = (): void => {
      outcome.reject(signal.reason)
      reset()
    }
    signal.addEventListener('abort', abort, { once: true })
    const begin = (): void => {
      const listening = this.#listening.get(Number(port) || (protocol === 'https:' ? 443 : 80))
      if (listening === undefined) return outcome.reject(failed('ECONNREFUSED', host))
      const connection = new Connection(this.#linkOf(client, listening), label, () => {
        signal.removeEventListener('abort', abort)
      })
      connection.client.lost.push((reason) => outcome.reject(reason))
      reset = () => connection.reset(signal.reason)
      connection.exchange(listening, request, outcome)
    }
    this.#carry(client, client, () => signal.aborted || client.isDead || begin())
    return outcome.promise
  }

  #linkOf(client: Actor, { owner, connections, waiting }: Listening): Link {
    const happens = (): boolean => this.#play.happens(this.#faults.resets)
    const ended = (connection: Connection): void => {
      connections.delete(connection)
      if (connections.size === 0) for (const wait of waiting.splice(0)) wait.resolve()
    }
    const carry: Link['carry'] = (from, to, arrive, notBeforeMs) => this.#carry(from, to, arrive, notBeforeMs)
    const disconnected = (): Error =>
      new this.#parts.HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its request' })
    return { play: this.#play, client, owner, happens, disconnected, ended, carry }
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

/** What a connection has of its run. */
interface Link {
  readonly play: Play
  readonly client: Actor
  readonly owner: Actor
  /** Whether the next message resets it. */
  happens(): boolean
  /** What the handler of a lost request receives. */
  disconnected(): Error
  ended(connection: Connection): void
  carry(from: Actor, to: Actor, arrive: () => void, notBeforeMs: number): number
}

/** One end of a connection: who has it, and what is done there when the connection is lost. */
interface End {
  readonly actor: Actor
  readonly lost: ((reason: unknown) => void)[]
}

class Connection {
  readonly client: End
  readonly #server: End
  readonly #link: Link
  readonly #label: string
  readonly #forget: (() => void)[]
  readonly #up: Way
  readonly #down: Way
  isOver = false

  constructor(link: Link, label: string, forget: () => void) {
    this.#link = link
    this.#label = label
    this.client = { actor: link.client, lost: [] }
    this.#server = { actor: link.owner, lost: [] }
    this.#up = new Way(this, link, this.client, this.#server)
    this.#down = new Way(this, link, this.#server, this.client)
    const died = (): void => this.reset()
    this.#forget = [forget, link.client.whenDead(died), link.owner.whenDead(died)]
  }

  /** Both ends learn of it, each after a delay. */
  reset(reason: unknown = failed('ECONNRESET', this.#label)): void {
    if (!this.end()) return
    for (const side of [this.client, this.#server]) {
      const { actor, lost } = side
      const why = side === this.client ? reason : this.#link.disconnected()
      const end = (): void => lost.forEach((each) => each(why))
      const what = `the connection of ${this.#label} is reset`
      const arrive = (): void => this.#link.play.ready(actor, what, () => current.run(actor, end))
      this.#link.carry(actor, actor, arrive, 0)
    }
  }

  /** False if it was over. */
  end(): boolean {
    if (this.isOver) return false
    this.isOver = true
    this.#up.stop()
    for (const forget of this.#forget) forget()
    this.#link.ended(this)
    return true
  }

  /** The request goes to its server, and the response to its client. */
  exchange({ app, connections }: Listening, request: Request, outcome: Wait<Response>): void {
    connections.add(this)
    const { url, method } = request
    const controller = new AbortController()
    this.#server.lost.push((reason) => controller.abort(reason))
    const respond = async (): Promise<void> => {
      const { headers, body: source } = request
      // Who reads no more of a request may still respond.
      const body = source && this.#up.body(source, `the body of ${this.#label}`, () => {})
      const init = { method, headers, body, signal: controller.signal, duplex: 'half' }
      const response = await app.inject(new Request(url, init as RequestInit))
      const head = { status: response.status, headers: response.headers }
      const arrive = (content: ReadableStream<Uint8Array> | null): void =>
        outcome.resolve(Object.defineProperty(new Response(content, head), 'url', { value: url }))
      if (response.body === null) return this.#down.send('a response', () => void (arrive(null), this.end()))
      const what = `the response of ${this.#label}`
      const content = this.#down.body(
        response.body,
        what,
        () => this.reset(),
        () => void this.end(),
      )
      this.#down.send('a response', () => arrive(content))
    }
    this.#up.send(this.#label, () => void respond().catch(() => this.reset()))
  }
}

/** A direction of a connection. */
class Way {
  readonly #connection: Connection
  readonly #link: Link
  readonly #from: End
  readonly #to: End
  readonly #onTheWay: (() => void)[] = []
  #lastMs = 0
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined

  constructor(connection: Connection, link: Link, from: End, to: End) {
    this.#connection = connection
    this.#link = link
    this.#from = from
    this.#to = to
  }

  /** Call `arrive` at the other end, behind what was sent before. */
  send(what: string, arrive: () => void): void {
    if (this.#connection.isOver) return
    if (this.#link.happens()) return this.#connection.reset()
    this.#onTheWay.push(arrive)
    const { actor } = this.#to
    const next = (): void => {
      const arrive = this.#onTheWay.shift()!
      if (!this.#connection.isOver) arrive()
    }
    const deliver = (): void => this.#link.play.ready(actor, what, () => current.run(actor, next))
    this.#lastMs = this.#link.carry(this.#from.actor, actor, deliver, this.#lastMs)
  }

  /**
   * Send a body, as fast as it is read.
   * @param cancelled Its reader has cancelled it. @param ended All has arrived.
   * @returns It, at the other end.
   */
  body(
    source: ReadableStream<Uint8Array>,
    what: string,
    cancelled: () => void,
    ended = (): void => {},
  ): ReadableStream<Uint8Array> {
    let [sent, arrived, read, isRead] = [0, 0, 0, true]
    let room: Wait<void> | undefined
    let controller!: ReadableStreamDefaultController<Uint8Array>
    const readable = new ReadableStream<Uint8Array>(
      {
        start: (made) => {
          controller = made
        },
        pull: () => {
          read = arrived - WINDOW_BYTES + controller.desiredSize!
          room?.resolve()
        },
        cancel: () => {
          isRead = false
          room?.resolve()
          cancelled()
        },
      },
      { highWaterMark: WINDOW_BYTES, size: (chunk) => chunk.byteLength },
    )
    this.#to.lost.push((reason) => controller.error(reason))
    this.#from.lost.push(() => room?.resolve())
    const reader = (this.#reader = source.getReader())
    const sendAll = async (): Promise<void> => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return this.send(`the end of ${what}`, () => (isRead && controller.close(), ended()))
        sent += value.byteLength
        this.send(`bytes of ${what}`, () => {
          arrived += value.byteLength
          if (isRead) controller.enqueue(value)
        })
        while (isRead && sent - read >= WINDOW_BYTES && !this.#connection.isOver) {
          room = this.#link.play.wait(this.#from.actor, `a reader of ${what}`)
          await room.promise
        }
      }
    }
    void sendAll().catch(() => this.#connection.reset())
    return readable
  }

  /** What is left of a body is not sent. */
  stop(): void {
    const { actor } = this.#from
    if (!actor.isDead && !this.#link.play.isOver)
      current.run(actor, () => void this.#reader?.cancel().catch(() => {}))
  }
}

/** As Node's fetch fails. */
function failed(code: string, where: string): TypeError {
  const cause = Object.assign(new Error(`${code} ${where}`), { code })
  return new TypeError('fetch failed', { cause })
}
