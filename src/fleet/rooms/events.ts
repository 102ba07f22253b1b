/**
 * What happens to rooms between machines, for those who watch: counts, and a channel of diagnostics.
 *
 * Nothing of it is per message, but for the counts.
 */
import { channel } from 'node:diagnostics_channel'

/** The message of `corespun:fleet:rooms`. */
export interface RoomsEvent {
  /** The name of the rooms. */
  readonly rooms: string
  /**
   * `lost`: the servers cannot be reached, and messages stay on this machine; `found`: they can again.
   * `dropped`: messages published here were not sent, since the servers cannot be reached or do not read;
   * `missed`: messages of another publisher have not arrived; `refused`: messages have arrived, and the
   * workers here were too busy to receive them.
   */
  readonly kind: 'lost' | 'found' | 'dropped' | 'missed' | 'refused'
  /** How many; 0 for `lost` and `found`. */
  readonly messages: number
}

/** Counts of rooms in this process, since their first use. */
export interface RoomsStats {
  /** Whether the servers can be reached, as far as is known. */
  readonly isLinked: boolean
  /** Messages sent to the other machines. */
  readonly sent: number
  /** Messages received from them. */
  readonly received: number
  /** Messages that were published here and not sent. */
  readonly dropped: number
  /** Messages of other publishers that have not arrived. */
  readonly missed: number
  /** Messages that have arrived and that the workers here were too busy to receive. */
  readonly refused: number
}

const events = channel('corespun:fleet:rooms')

export class RoomsLog {
  readonly name: string
  isLinked = true
  sent = 0
  received = 0
  readonly #counts = { dropped: 0, missed: 0, refused: 0 }

  constructor(name: string) {
    this.name = name
  }

  count(kind: 'dropped' | 'missed' | 'refused', messages: number): void {
    this.#counts[kind] += messages
    this.#publish(kind, messages)
  }

  /** The way to the servers is lost, or found again. */
  link(isLinked: boolean, reason = ''): void {
    if (isLinked === this.isLinked) return
    this.isLinked = isLinked
    if (!isLinked)
      process.emitWarning(
        `rooms ${this.name}: the servers cannot be reached${reason}; ` +
          'what is published reaches the members on this machine alone',
      )
    this.#publish(isLinked ? 'found' : 'lost', 0)
  }

  #publish(kind: RoomsEvent['kind'], messages: number): void {
    if (events.hasSubscribers) events.publish({ rooms: this.name, kind, messages } satisfies RoomsEvent)
  }

  stats(): RoomsStats {
    const { isLinked, sent, received } = this
    return { isLinked, sent, received, ...this.#counts }
  }
}
