/**
 * Takes items from the consumers of a queue, one for each rank, as many as there is room for.
 *
 * The requests for items are the server's own protocol, since the client's do not have `no_wait`: a round
 * asks each rank for what is there, the first rank first. At one that has nothing more a request for one
 * item waits, and while it does, that rank is empty and not asked: under load there is one request for each
 * item, or fewer. An item that comes when there is no room any more is returned at once.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'
import { CLOCK, type Lease, RANKS, type Rank, type TakeOptions } from '../engine.ts'
import { CONFIRM_MS, confirmed, keyOf } from './confirmed.ts'

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
  /** A new subject for replies. */
  inbox(): string
  /** Where items of a rank are requested. */
  readonly subjects: readonly string[]
  /** How much the server's clock, in ms since 1970, is ahead of this thread's. */
  readonly aheadMs: number
}

export class Taking {
  readonly #source: Source
  readonly #on: (lease: Lease) => void
  #room: number
  #isOver = false
  #wake: () => void = () => {}
  readonly #pulls = new Set<() => void>()
  readonly #waits = new Map<Rank, Promise<unknown>>()

  constructor(source: Source, on: (lease: Lease) => void, { leasesMax }: TakeOptions) {
    this.#source = source
    this.#on = on
    this.#room = leasesMax
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      if (this.#room === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
      else if (!(await this.#round())) await Promise.race(this.#waits.values())
    }
  }

  /** Each rank after the one that has no more; false when none has any, and a request waits at each. */
  async #round(): Promise<boolean> {
    for (const rank of RANKS) {
      const batch = this.#room
      if (this.#isOver || batch === 0) return true
      if (this.#waits.has(rank)) continue
      if ((await this.#pull(rank, { batch, no_wait: true })) === batch) return true
      this.#waitAt(rank)
    }
    return this.#waits.size < RANKS.length
  }

  /** Until an item has come, or nothing for some time. */
  #waitAt(rank: Rank): void {
    const wait = this.#pull(rank, { batch: 1, expires: WAIT_MS * NANOSECONDS })
    this.#waits.set(
      rank,
      wait.then(() => this.#waits.delete(rank)),
    )
  }

  #stop(): void {
    for (const stop of this.#pulls) stop()
  }

  /** One request; resolves with the count of items when it has ended. */
  #pull(rank: number, request: { batch: number; no_wait?: boolean; expires?: number }): Promise<number> {
    const { connection, inbox, subjects } = this.#source
    return new Promise((resolve) => {
      let count = 0
      let subscription: Subscription | undefined
      const end = (afterMs = 0, mayCome = false): void => {
        if (!this.#pulls.delete(stop)) return
        endTimer()
        // An item that is on its way would be lost for the time of its lease.
        if (mayCome) subscription?.drain().catch(() => {})
        else subscription?.unsubscribe()
        if (afterMs === 0) resolve(count)
        else CLOCK.after(afterMs, () => resolve(count))
      }
      const stop = (): void => end(0, true)
      this.#pulls.add(stop)
      const endTimer = CLOCK.after(WAIT_MS + GRACE_MS, stop)
      const callback = (error: Error | null, message: Msg): void => {
        if (error !== null || isStatus(message)) return end(isExpected(message) ? 0 : RETRY_MS)
        if (this.#lend(message) && ++count === request.batch) end()
      }
      try {
        const reply = inbox()
        subscription = connection.subscribe(reply, { callback })
        connection.publish(subjects[rank], JSON.stringify(request), { reply })
      } catch {
        // The connection ends.
        this.#isOver = true
        end()
      }
    })
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
    const { aheadMs, connection } = this.#source
    this.#room--
    this.#on({
      id: keyOf(message.subject.slice(message.subject.lastIndexOf('.') + 1)),
      bytes: message.data,
      attempt,
      addedMs,
      ageMs: () => Math.max(0, CLOCK.nowMs() + aheadMs - addedMs),
      extend: () => send(message, WORKING),
      done: async () => {
        over()
        const confirmation = connection.request(message.reply ?? '', DONE, { timeout: CONFIRM_MS })
        await confirmed('ending an item', confirmation)
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
    this.#stop()
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
