/**
 * One end of a stream: a sender and a receiver that share a link.
 *
 * The caller's end sends the source and receives the results, the task's end the other way round. An end
 * takes the messages of the other one until the link is closed.
 */
import { Turns } from '../../base/index.ts'
import { Kind, type Link, type Message } from './link.ts'
import type { Ahead } from '../call/call-options.ts'
import { Receiver } from './receiver.ts'
import { Sender } from './sender.ts'
import type { StreamWaits } from './waits.ts'

/** What the link must have capacity for beyond the items in transit: what is freed and how the ends leave. */
const EXTRA_MESSAGES = 64

export function messagesMaxOf({ aheadMax }: Ahead): number {
  return aheadMax + EXTRA_MESSAGES
}

/** How an end notifies its owner. */
export interface EndEvents {
  /** This end's reader needs no more. */
  leaves(): void
  /** The other end's reader needs no more. */
  left(): void
  /** The other end has received that this one's reader needs no more. */
  noticed?(): void
  /** The other end's source has failed. */
  failed?(why: unknown): void
  /** The other end's source has ended. Returns true where the end of the task is that of the items. */
  ended?(): boolean
}

export class End {
  readonly sender: Sender
  readonly receiver: Receiver
  readonly #link: Link
  readonly #events: EndEvents

  /** @param waits Those of the task that this end belongs to; none in its caller's thread. */
  constructor(link: Link, ahead: Ahead, events: EndEvents, waits?: StreamWaits) {
    this.#link = link
    this.#events = events
    const freed = (items: number, bytes: number): void => void link.send([Kind.freed, items, bytes])
    this.receiver = new Receiver(ahead, { freed, left: () => events.leaves() }, waits)
    this.sender = new Sender(link, ahead, () => this.receiver.takeFreed(), waits)
  }

  /**
   * Takes messages until the link is closed.
   * @throws {TransportError} when this thread cannot read one.
   */
  async listen(): Promise<void> {
    const turns = new Turns()
    for await (const message of this.#link.received()) {
      this.#take(message)
      if (turns.isDue()) await turns.taken()
    }
  }

  #take(message: Message): void {
    switch (message[0]) {
      case Kind.batch:
        this.receiver.push(message[1] as unknown[], message[2])
        if (message[3] > 0) this.sender.freed(message[3], message[4])
        break
      case Kind.freed:
        this.sender.freed(message[1], message[2])
        break
      case Kind.ended:
        if (this.#events.ended?.() !== true) this.receiver.end()
        break
      case Kind.failed:
        this.receiver.fail(message[1])
        this.#events.failed?.(message[1])
        break
      case Kind.left:
        this.#events.left()
        break
      default:
        this.#events.noticed?.()
    }
  }
}
