/**
 * What this thread waits for without blocking: tickets, and a listener for each.
 *
 * A ticket is used again only after 2^31 others. A wait keeps the event loop alive.
 */
import { effects } from '../base/index.ts'
import { Mail } from '../native/index.ts'
import { thisBridge } from './bridge.ts'

/** Called with each fact about a ticket. */
export type TicketListener = (fact: number) => void

/** The interval only keeps the event loop alive, so it is as long as an interval can be. */
const LONG_MS = 0x7fff_ffff

export class Waits {
  readonly #listeners = new Map<number, TicketListener>()
  #ticketLast = 0
  #held = 0
  #timer: NodeJS.Timeout | undefined

  constructor() {
    thisBridge().onMail(Mail.shared, (ticket, fact) => this.notify(ticket, fact))
  }

  /** A new ticket, without a listener. */
  ticket(): number {
    return (this.#ticketLast = (this.#ticketLast + 1) & 0x7fff_ffff)
  }

  /** Call `listener` with each fact about the ticket, until `forget`. */
  listen(ticket: number, listener: TicketListener): void {
    const seeded = effects.seeded?.()
    if (seeded === undefined) this.#listeners.set(ticket, listener)
    else this.#listeners.set(ticket, (fact) => seeded.deliver('a grant', () => listener(fact)))
  }

  forget(ticket: number): void {
    this.#listeners.delete(ticket)
  }

  /** Keep the loop alive until `release` has been called as often as `hold`. */
  hold(): void {
    if (this.#held++ === 0) this.#timer = setInterval(() => {}, LONG_MS)
  }

  release(): void {
    if (--this.#held === 0) clearInterval(this.#timer)
  }

  /** Wait for one fact about `ticket`, which the core has not received yet. */
  once(ticket: number): Promise<number> {
    this.hold()
    return new Promise((resolve) => {
      this.listen(ticket, (fact) => {
        this.forget(ticket)
        this.release()
        resolve(fact)
      })
    })
  }

  /** Call the ticket's listener, as the core does: for a wait that ends for a reason of this thread. */
  notify(ticket: number, fact: number): void {
    this.#listeners.get(ticket)?.(fact)
  }
}

let waits: Waits | undefined

/** This thread's waits. @throws {NativeError} when the core does not load. */
export function thisWaits(): Waits {
  return (waits ??= new Waits())
}
