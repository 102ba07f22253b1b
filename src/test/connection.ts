/**
 * A connection of a run, between two tasks: two directions, each of which keeps its order and ends alone.
 *
 * A message is a head, bytes of a body, the end of one, or what a WebSocket sends. Messages are delayed, wait
 * for a reader that is slow, and stop when the connection is reset: by the seed, or with one of its tasks.
 */
import type { Grant, MemberRooms, Wire, WireEvents, served } from '../http/internal.ts'
import type { SeededNetwork } from './network.ts'
import { type Actor, type Play, type Wait, current } from './play.ts'
import { type Carrier, type ClientEnd, ServerEnd } from './sockets.ts'

/** What the handler of a lost request receives. */
const DISCONNECTED = ['HTTP_CLIENT_DISCONNECTED', { during: 'its request' }] as const
/** Bytes of a direction that are sent and not read. */
const WINDOW_BYTES = 65_536

/** What is loaded before a run, since loading is not decided by a seed. */
export type HttpParts = Awaited<ReturnType<typeof served>>

/** A server that listens. */
export interface Served {
  readonly app: ReturnType<HttpParts['appOf']>
  readonly rooms: MemberRooms
  readonly owner: Actor
  readonly connections: Set<Connection>
  /** Who waits for the end of them. */
  readonly waiting: Wait<void>[]
}

/** What a connection has of its run. */
export interface Link {
  readonly play: Play
  readonly network: SeededNetwork
  readonly parts: HttpParts
  readonly client: Actor
  readonly served: Served
  /** How many messages reset it. */
  readonly resets: number
  carry(from: Actor, to: Actor, arrive: () => void, notBeforeMs: number): number
}

/** One end of a connection: who has it, and what is done there when the connection is lost. */
interface End {
  readonly actor: Actor
  readonly lost: ((reason: unknown) => void)[]
}

export class Connection implements Carrier {
  readonly client: End
  readonly server: End
  /** What its request has become, if that is a WebSocket. */
  socket: ServerEnd | undefined
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
    this.server = { actor: link.served.owner, lost: [] }
    this.#up = new Way(this, link, this.client, this.server)
    this.#down = new Way(this, link, this.server, this.client)
    const died = (): void => void (link.play.isOver || this.reset())
    this.#forget = [forget, link.client.whenDead(died), link.served.owner.whenDead(died)]
  }

  /** Both ends learn of it, each after a delay. */
  reset(reason: unknown = failed('ECONNRESET', this.#label)): void {
    if (!this.end()) return
    const { HttpError } = this.#link.parts
    for (const side of [this.client, this.server]) {
      const { actor, lost } = side
      const why = side === this.client ? reason : new HttpError(...DISCONNECTED)
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
    const { connections, waiting } = this.#link.served
    connections.delete(this)
    if (connections.size === 0) for (const wait of waiting.splice(0)) wait.resolve()
    return true
  }

  up(what: string, arrive: () => void): void {
    this.#up.send(what, arrive)
  }

  down(what: string, arrive: () => void): void {
    this.#down.send(what, arrive)
  }

  after(ms: number, run: () => void): () => void {
    return this.#link.play.after(ms, run)
  }

  whenSilent(ms: number, lost: () => void): void {
    const { network, client, served } = this.#link
    this.#forget.push(network.whenCut([client, served.owner], ms, lost))
  }

  /** The request goes to its server, and the response to its client, or `socket` is open. */
  exchange(request: Request, outcome: Wait<Response | undefined>, socket: ClientEnd | undefined): void {
    const { app, rooms, connections } = this.#link.served
    connections.add(this)
    const { url, method } = request
    const controller = new AbortController()
    this.server.lost.push((reason) => controller.abort(reason))
    const upgrade = (grant: Grant, events: WireEvents): Wire => {
      if (grant.isRaw)
        throw new Error('a simulated connection has messages, not bytes: nothing attaches to it')
      outcome.resolve(undefined)
      return (this.socket = new ServerEnd(this, rooms, grant, events, socket!))
    }
    const respond = async (): Promise<void> => {
      const { headers, body: source } = request
      // Who reads no more of a request may still respond.
      const body = source && this.#up.body(source, `the body of ${this.#label}`, () => {})
      const init = { method, headers, body, signal: controller.signal, duplex: 'half' }
      const received = new Request(url, init as RequestInit)
      const response = await app.respond(received, { hub: app.hub, ...(socket && { upgrade }) })
      if (this.socket !== undefined || response === undefined) return
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
    const { play, resets } = this.#link
    if (play.happens(resets)) return this.#connection.reset()
    this.#onTheWay.push(arrive)
    const { actor } = this.#to
    const next = (): void => {
      const arrive = this.#onTheWay.shift()!
      if (!this.#connection.isOver) arrive()
    }
    const deliver = (): void => play.ready(actor, what, () => current.run(actor, next))
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
export function failed(code: string, where: string): TypeError {
  const cause = Object.assign(new Error(`${code} ${where}`), { code })
  return new TypeError('fetch failed', { cause })
}
