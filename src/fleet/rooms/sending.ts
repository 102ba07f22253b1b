/**
 * One publisher's messages to rooms, on their way to the servers.
 *
 * The messages of a turn are one batch, encoded once, in as many parts as the limit of a message demands.
 * Messages are numbered, those too that are dropped, so that receivers find out what they miss. What the
 * servers have not confirmed is bounded: an engine keeps what a socket does not take.
 */
import { encode } from '../../transport/index.ts'
import type { Messages } from '../engine/engine.ts'
import { written } from '../wire.ts'
import type { RoomsLog } from './events.ts'

/** Most bytes of messages that the servers have not confirmed. */
export const ROOMS_BYTES_MAX = 64 * 2 ** 20
/** What a message costs beside its bytes, and a part beside its share of the batch. */
const MESSAGE_BYTES = 64
const PART_BYTES = 1024
/** How long the last messages of a publisher that leaves are waited for. */
const LEAVE_MS = 1000

/** As for the rooms of a server. */
export const ROOM_CHARS_MAX = 512

export const isRoom = (room: unknown): room is string =>
  typeof room === 'string' && room !== '' && room.length <= ROOM_CHARS_MAX

export const isMessage = (message: unknown): message is string | Uint8Array =>
  typeof message === 'string' || message instanceof Uint8Array

export const roomsSubject = (name: string): string => `corespun.rooms.${name}`

export class Sending {
  readonly id: string
  readonly #messages: Messages
  readonly #subject: string
  readonly #log: RoomsLog
  /** Rooms, each with a message behind it. */
  #unsent: (string | Uint8Array)[] = []
  /** Messages of this turn that are not sent. */
  #dropped = 0
  #number = 0
  /** The bytes of batches, and of messages that are not in one. */
  #unconfirmedBytes = 0
  #isConfirming = false

  constructor(messages: Messages, id: string, log: RoomsLog) {
    this.#messages = messages
    this.id = id
    this.#log = log
    this.#subject = roomsSubject(log.name)
  }

  /** False: it is dropped. */
  send(room: string, message: string | Uint8Array): boolean {
    if (this.#unsent.length === 0 && this.#dropped === 0) queueMicrotask(() => this.#flush())
    const bytes = MESSAGE_BYTES + room.length + message.length
    if (!this.#log.isLinked || this.#unconfirmedBytes + bytes > ROOMS_BYTES_MAX) {
      this.#dropped++
      return false
    }
    this.#unconfirmedBytes += bytes
    // The bytes are the caller's, who may write to them in this turn.
    this.#unsent.push(room, typeof message === 'string' ? message : new Uint8Array(message))
    return true
  }

  #flush(): void {
    const [unsent, first] = [this.#unsent, this.#number]
    const count = unsent.length / 2
    this.#unsent = []
    this.#number += count + this.#dropped
    if (count > 0 && this.#post(first, encode(unsent))) this.#log.sent += count
    else this.#dropped += count
    if (this.#dropped > 0) this.#log.count('dropped', this.#dropped)
    this.#dropped = 0
    if (!this.#isConfirming) void this.#confirm()
  }

  /** False when it cannot be sent. */
  #post(first: number, batch: Uint8Array): boolean {
    const bytesMax = this.#messages.messageBytesMax - PART_BYTES
    try {
      for (let at = 0, part = 0; at < batch.length; at += bytesMax, part++) {
        const isLast = at + bytesMax >= batch.length
        // A view would take all of its buffer with it.
        const bytes = isLast && part === 0 ? batch : batch.slice(at, at + bytesMax)
        this.#messages.send(this.#subject, written('rooms', this.id, first, part, isLast, bytes))
      }
      return true
    } catch {
      return false // the connection has ended, or a server with another limit has taken over
    }
  }

  /** One question at a time, however much is sent meanwhile. */
  async #confirm(): Promise<void> {
    this.#isConfirming = true
    while (this.#unconfirmedBytes > 0) {
      const bytes = this.#unconfirmedBytes
      // What was on its way to a server that is lost does not wait any more either.
      await this.#messages.flush().catch(() => {})
      this.#unconfirmedBytes -= bytes
    }
    this.#isConfirming = false
  }

  /** Resolves when what was sent is with the servers, if they take it soon. */
  async leave(): Promise<void> {
    await Promise.resolve() // behind the messages of this turn
    await new Promise<void>((resolve) => {
      const end = this.#messages.clock.after(LEAVE_MS, resolve)
      const flushed = this.#messages.flush().catch(() => {})
      void flushed.then(end).then(resolve)
    })
  }
}
