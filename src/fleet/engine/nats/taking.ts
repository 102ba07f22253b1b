/**
 * Takes items from the consumers of a queue, one for each rank, as many as there is room for.
 *
 * The requests for items are the server's own protocol, since the client's do not have `no_wait`: a round
 * asks each rank for what is there, the first rank first. At one that has nothing more a request waits, and
 * while it does, that rank is empty and not asked: its items come by themselves. It is for one item at
 * first, and for twice as many as before when they have all come. Items that come when there is no room any
 * more are returned at once.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'
import { CLOCK, type Lease, RANKS, type Rank, type TakeOptions } from '../engine.ts'
import { confirmed, keyOf } from './confirmed.ts'
import type { Requests } from './requests.ts'
import type { ServerTime } from './server-time.ts'

/** How long one request waits at the server, which may be killed meanwhile, and then here for its end. */
const WAIT_MS = 2000
const GRACE_MS = 1000
const RETRY_MS = 250
const NANOSECONDS = 1_000_000

const ack = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))
const DONE = ack('+ACK')
const WORKING = ack('+WPI')

/** What is taken from. */
export interface Source {
  readonly connection: NatsConnection
  readonly requests: Requests
  /** A new beginning for subjects of replies. */
  inbox(): string
  /** Where items of a rank are requested. */
  readonly subjects: readonly string[]
  /** What time the server has. */
  readonly time: ServerTime
}

/** A request at the server. */
interface Pull {
  readonly id: string
  /** How many items may still come. */
  left: number
  end(afterMs: number): void
}

export class Taking {
  readonly #source: Source
  readonly #on: (lease: Lease) => void
  readonly #inbox: string
  #subscription: Subscription | undefined
  #room: number
  #isOver = false
  #wake: () => void = () => {}
  #count = 0
  /** One for each rank at most. */
  readonly #pulls = new Map<number, Pull>()
  readonly #waits = new Map<Rank, Promise<unknown>>()
  /** How many items the next request that waits is for. */
  readonly #eager = RANKS.map(() => 1)

  constructor(source: Source, on: (lease: Lease) => void, { leasesMax }: TakeOptions) {
    this.#source = source
    this.#on = on
    this.#room = leasesMax
    this.#inbox = source.inbox()
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      if (this.#room === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
      else if (this.#waits.size < RANKS.length) await this.#round()
      else await Promise.race(this.#waits.values())
    }
  }

  /** Each rank after the one that has no more, until one has more or a request waits at each. */
  async #round(): Promise<void> {
    for (const rank of RANKS) {
      if (this.#isOver || this.#room === 0) return
      if (this.#waits.has(rank)) continue
      const batch = this.#free
      if ((await this.#pull(rank, { batch, no_wait: true })) === batch || this.#isOver) return
      this.#waitAt(rank)
    }
  }

  /** Room that no request has, but for one item at each rank. */
  get #free(): number {
    let free = this.#room
    for (const { left } of this.#pulls.values()) free -= Math.max(0, left - 1)
    return Math.max(1, free)
  }

  /** Until items have come, or too few for some time. */
  #waitAt(rank: Rank): void {
    const batch = Math.max(1, Math.min(this.#eager[rank], this.#free >> 2))
    const wait = this.#pull(rank, { batch, expires: WAIT_MS * NANOSECONDS })
    const ended = wait.then((count) => {
      this.#eager[rank] = count === batch ? 2 * batch : 1
      this.#waits.delete(rank)
    })
    this.#waits.set(rank, ended)
  }

  /** One request; resolves with the count of items when it has ended. */
  #pull(rank: number, request: { batch: number; no_wait?: boolean; expires?: number }): Promise<number> {
    const { connection, subjects } = this.#source
    return new Promise((resolve) => {
      const { batch } = request
      const end = (afterMs: number): void => {
        if (this.#pulls.get(rank) !== pull) return
        this.#pulls.delete(rank)
        endTimer()
        if (afterMs === 0) resolve(batch - pull.left)
        else CLOCK.after(afterMs, () => resolve(batch - pull.left))
      }
      const pull: Pull = { id: String(++this.#count), left: batch, end }
      this.#pulls.set(rank, pull)
      const endTimer = CLOCK.after(WAIT_MS + GRACE_MS, () => end(0))
      try {
        this.#subscribe()
        const reply = `${this.#inbox}.${rank}.${pull.id}`
        connection.publish(subjects[rank], JSON.stringify(request), { reply })
      } catch {
        // The connection ends.
        this.#isOver = true
        end(0)
      }
    })
  }

  /** One subscription for all requests: that of each would cost the server more than the request does. */
  #subscribe(): void {
    if (this.#subscription?.isClosed() === false) return
    const callback = (error: Error | null, message: Msg): void => {
      // It has ended; what waits is asked for again, by another one.
      if (error !== null) for (const pull of this.#pulls.values()) pull.end(RETRY_MS)
      else this.#received(message)
    }
    this.#subscription = this.#source.connection.subscribe(`${this.#inbox}.*.*`, { callback })
  }

  #received(message: Msg): void {
    if (isStatus(message)) {
      const [rank, id] = message.subject.slice(this.#inbox.length + 1).split('.')
      const pull = this.#pulls.get(Number(rank))
      if (pull?.id === id) pull?.end(isExpected(message) ? 0 : RETRY_MS)
      return
    }
    if (!this.#lend(message)) return
    const pull = this.#pulls.get(rankOf(message.subject))
    if (pull !== undefined && --pull.left === 0) pull.end(0)
  }

  /** False: it is not from the server. */
  #lend(message: Msg): boolean {
    const lent = delivery(message.reply)
    if (lent === undefined) return false
    if (this.#isOver || this.#room === 0) {
      send(message, again(0))
      return true
    }
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      this.#room++
      this.#wake()
    }
    const { attempt, addedMs } = lent
    const { time, requests } = this.#source
    this.#room--
    this.#on({
      id: keyOf(message.subject.slice(message.subject.lastIndexOf('.') + 1)),
      bytes: message.data,
      attempt,
      addedMs,
      ageMs: () => Math.max(0, time.nowMs() - addedMs),
      extend: () => send(message, WORKING),
      done: async () => {
        over()
        await confirmed('ending an item', requests.request(message.reply ?? '', DONE))
      },
      again: (delayMs) => {
        over()
        send(message, again(delayMs))
      },
    })
    return true
  }

  end(): void {
    this.#isOver = true
    this.#source.time.end()
    // An item that is on its way would be lost for the time of its lease.
    this.#subscription?.drain().catch(() => {})
    for (const pull of this.#pulls.values()) pull.end(0)
    this.#wake()
  }
}

/** Not of a connection that has ended, where the lease runs out. */
function send(message: Msg, what: Uint8Array): void {
  try {
    message.respond(what)
  } catch {
    // It is lent again.
  }
}

const again = (delayMs: number): Uint8Array =>
  ack(delayMs < 1 ? '-NAK' : `-NAK {"delay": ${Math.round(delayMs) * NANOSECONDS}}`)

/** The rank of an item, by its subject. */
const rankOf = (subject: string): number => Number(subject.split('.').at(-2))

/** The end of a request. */
const isStatus = ({ data, headers }: Msg): boolean =>
  data.length === 0 && headers !== undefined && headers.code >= 400

/** There is nothing, or the time is over. */
const isExpected = (message: Msg | undefined): boolean =>
  message?.headers?.code === 404 || message?.headers?.code === 408

/** What the subject of an acknowledgement has: `….<attempt>.<sequence>.<sequence>.<ns>.<pending>`. */
function delivery(reply = ''): { readonly attempt: number; readonly addedMs: number } | undefined {
  const parts = reply.split('.')
  // With a domain and an account there are 11, and a random one behind them.
  const at = parts.length > 9 ? 6 : 4
  const [attempt, , , addedNs = ''] = parts.slice(at)
  if (!/^\d{6,20}$/.test(addedNs)) return undefined
  return { attempt: Number(attempt), addedMs: Number(addedNs.slice(0, -6)) }
}
