/**
 * Messages to rooms as they arrive: each at most once, in the order of its publisher.
 *
 * A batch that comes late or again is dropped, and so is one of which a part is missing; the numbers of later
 * ones show how many messages that were. Reading trusts nothing: whoever may publish here may send anything.
 */
import { decode } from '../../transport/index.ts'
import { isCount, readParts } from '../wire.ts'
import type { RoomsLog } from './events.ts'
import { ROOMS_BYTES_MAX, isMessage, isRoom } from './sending.ts'

/** Publishers that are remembered: the one that was silent for longest is forgotten first. */
const PUBLISHERS_MAX = 4096

interface Publisher {
  /** The number of its next message. */
  next: number
  /** The parts of the batch that begins there. */
  parts: Uint8Array[]
}

type Receive = (room: string, message: string | Uint8Array) => void

export class Receiving {
  readonly #own: string
  readonly #log: RoomsLog
  readonly #receive: Receive
  readonly #publishers = new Map<string, Publisher>()
  /** The bytes of all batches that are incomplete. */
  #partsBytes = 0

  /** @param own The publisher whose messages are not received. */
  constructor(own: string, log: RoomsLog, receive: Receive) {
    this.#own = own
    this.#log = log
    this.#receive = receive
  }

  take(bytes: Uint8Array): void {
    const [kind, id, first, part, isLast, piece] = readParts(bytes) ?? []
    if (kind !== 'rooms' || typeof id !== 'string' || id === this.#own) return
    if (!isCount(first) || !isCount(part) || !(piece instanceof Uint8Array)) return
    const publisher = this.#publisher(id, first)
    if (first < publisher.next) return // late, or again
    if (first > publisher.next) {
      this.#log.count('missed', first - publisher.next)
      this.#forget(publisher)
      publisher.next = first
    }
    if (part !== publisher.parts.length || !this.#fits(piece.length, publisher)) return
    if (isLast === true && part === 0) return this.#batch(publisher, piece)
    publisher.parts.push(new Uint8Array(piece))
    this.#partsBytes += piece.length
    if (isLast === true) this.#batch(publisher, Buffer.concat(publisher.parts))
  }

  #publisher(id: string, first: number): Publisher {
    const publisher = this.#publishers.get(id) ?? { next: first, parts: [] }
    this.#publishers.delete(id)
    this.#publishers.set(id, publisher)
    if (this.#publishers.size > PUBLISHERS_MAX) {
      const [[oldest, forgotten]] = this.#publishers
      this.#publishers.delete(oldest)
      this.#forget(forgotten)
    }
    return publisher
  }

  /** Batches that publishers have not ended, of those that are silent for longest, make room. */
  #fits(bytes: number, publisher: Publisher): boolean {
    for (const other of this.#publishers.values()) {
      if (this.#partsBytes + bytes <= 2 * ROOMS_BYTES_MAX) return true
      if (other !== publisher) this.#forget(other)
    }
    return this.#partsBytes + bytes <= 2 * ROOMS_BYTES_MAX
  }

  #forget(publisher: Publisher): void {
    for (const { length } of publisher.parts) this.#partsBytes -= length
    publisher.parts = []
  }

  #batch(publisher: Publisher, bytes: Uint8Array): void {
    this.#forget(publisher)
    const batch = batchIn(bytes)
    publisher.next += batch.length / 2
    let refused = 0
    for (let at = 0; at < batch.length; at += 2) {
      try {
        this.#receive(batch[at] as string, batch[at + 1])
        this.#log.received++
      } catch {
        refused++
      }
    }
    if (refused > 0) this.#log.count('refused', refused)
  }
}

/** Rooms, each with a message behind it; nothing of bytes that are something else. */
function batchIn(bytes: Uint8Array): readonly (string | Uint8Array)[] {
  try {
    const batch = decode(bytes, { bytes: 'view' })
    if (Array.isArray(batch) && batch.length % 2 === 0 && batch.every(isPart)) return batch
  } catch {
    // From somebody who speaks something else, or who tries what happens.
  }
  return []
}

const isPart = (value: unknown, index: number): boolean =>
  index % 2 === 1 ? isMessage(value) : isRoom(value)
