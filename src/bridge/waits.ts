/**
 * What this thread waits for without blocking: tickets, and who is told about each.
 *
 * A ticket is used again only after 2^31 others. The loop is kept alive while somebody waits.
 */
import { Mail } from '../native/index.ts'
import { thisPort } from './port.ts'

/** Is told about a ticket. */
export type Told = (fact: number) => void

/** Any time that is longer than a program waits at once: what the timer is for is to keep the loop alive. */
const LONG_MS = 0x7fff_ffff
export class Waits {
  readonly #told = new Map<number, Told>()
  #ticketLast = 0
  #held = 0
  #timer: NodeJS.Timeout | undefined

  constructor() {
    thisPort().onMail(Mail.shared, (ticket, fact) => this.#told.get(ticket)?.(fact))
  }

  /** A new ticket; nobody is told about it yet. */
  ticket(): number {
    return (this.#ticketLast = (this.#ticketLast + 1) & 0x7fff_ffff)
  }

  /** Tell `told` whatever is said about the ticket, until `forget`. */
  listen(ticket: number, told: Told): void {
    this.#told.set(ticket, told)
  }

  /** Tell nobody any more. */
  forget(ticket: number): void {
    this.#told.delete(ticket)
  }

  /** Keep the loop alive until as many `release` as `hold`. */
  hold(): void {
    if (this.#held++ === 0) this.#timer = setInterval(() => {}, LONG_MS)
  }

  /** The opposite of `hold`. */
  release(): void {
    if (--this.#held === 0) clearInterval(this.#timer)
  }

  /** Wait once for word about `ticket`, which must not have been given to the core yet. */
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

  /** Say it here: for a wait that ends for a reason of this thread. */
  tell(ticket: number, fact: number): void {
    this.#told.get(ticket)?.(fact)
  }
}

let waits: Waits | undefined

/** This thread's waits. @throws {NativeError} when the core does not load. */
export function thisWaits(): Waits {
  return (waits ??= new Waits())
}
