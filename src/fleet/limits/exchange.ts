/**
 * The requests that the servers of one limit admit, reported to each other.
 *
 * Each interval, what was admitted here goes to all others as a batch, and each message has the two batches
 * before it again: what is lost with up to two messages in a row is counted an interval later. Batches are
 * numbered, so none is counted twice. Nothing waits for the servers: what they do not take stays in the store
 * of the process, which is bounded, and what still counts of it is reported later. Reading trusts nothing:
 * whoever may publish here may send anything.
 */
import type { SharedCounts } from '../../http/middleware/internal.ts'
import { decode, encode } from '../../transport/index.ts'
import { flushed } from '../certainly.ts'
import type { End, Messages } from '../engine/engine.ts'
import { FleetError } from '../errors.ts'
import { isCount, readParts, written } from '../wire.ts'

/** Batches of earlier messages that a message repeats. */
const REPEATS = 2
/** Most clients of a batch, and most whose requests are reported in an interval. */
const CLIENTS_MAX = 16_384
/** What of a message is not in its batches. */
const HEAD_BYTES = 4096
/** So many intervals without a report are a time in which this server was by itself. */
const LATE_INTERVALS = 10
const ID_CHARS_MAX = 128
const EMPTY = encode([])

export const limitsSubject = (name: string): string => `corespun.limits.${name}`

/** Counts of an exchange. */
export interface ExchangeLog {
  /** Whether the servers can be reached, as far as is known. */
  isLinked: boolean
  sent: number
  received: number
  missed: number
}

export class Exchange {
  readonly #messages: Messages
  readonly #subject: string
  readonly #counts: SharedCounts
  readonly #log: ExchangeLog
  readonly #intervalMs: number
  /** The id of this thread; others of the process begin alike. */
  readonly #id: string
  /** The newest first. */
  #batches: readonly Uint8Array[] = []
  #number = 0
  /** Messages that repeat what the last batch had. */
  #repeats = 0
  #isConfirming = false
  /** What was admitted before the first report is from a time alone. */
  #reportedMs = -Infinity
  #endTimer: End = () => {}
  #endListening: End = () => {}

  constructor(messages: Messages, name: string, counts: SharedCounts, log: ExchangeLog, intervalMs: number) {
    this.#messages = messages
    this.#subject = limitsSubject(name)
    this.#counts = counts
    this.#log = log
    this.#intervalMs = intervalMs
    this.#id = `${counts.id}.${crypto.randomUUID()}`
  }

  /** @throws {FleetError} `FLEET_CLOSED`, `FLEET_TIMEOUT`, `FLEET_DENIED`. */
  async begin(): Promise<void> {
    this.#endListening = await this.#messages.listen(this.#subject, ({ bytes }) => this.#receive(bytes))
    this.#next()
  }

  /** Ends it at once. */
  stop(): void {
    this.#endTimer()
    this.#endListening()
  }

  /** Ends it when the servers have what was admitted here, or soon. */
  async leave(): Promise<void> {
    this.stop()
    this.#report()
    await flushed(this.#messages) // what is lost is counted here alone
  }

  #next(): void {
    this.#endTimer = this.#messages.clock.after(this.#intervalMs, () => {
      this.#next()
      if (!this.#isConfirming) this.#report()
    })
  }

  #report(): void {
    if (!this.#log.isLinked) return
    const batches = this.#admitted()
    if (batches.length > 0) this.#repeats = REPEATS
    else if (this.#repeats > 0) {
      this.#repeats--
      batches.push(EMPTY)
    } else return
    try {
      for (const batch of batches) this.#send(batch)
    } catch (error) {
      // The connection has ended, as its owner reports. Otherwise the next message repeats the batch.
      if (error instanceof FleetError && error.code === 'FLEET_CLOSED') this.stop()
      return
    }
    this.#isConfirming = true
    const confirmed = (): void => void (this.#isConfirming = false)
    this.#messages.flush().then(confirmed, confirmed)
  }

  #send(batch: Uint8Array): void {
    this.#batches = [batch, ...this.#batches.slice(0, REPEATS)]
    this.#messages.send(this.#subject, written('limits', this.#id, this.#number++, this.#batches))
  }

  /** As many batches as the limit of a message demands: keys, each with its requests behind it. */
  #admitted(): Uint8Array[] {
    const bytesMax = (this.#messages.messageBytesMax - HEAD_BYTES) / (REPEATS + 1)
    const batches: Uint8Array[] = []
    let batch: (string | number)[] = []
    let bytes = 0
    const nowMs = this.#messages.clock.nowMs()
    const isLate = nowMs - this.#reportedMs > LATE_INTERVALS * this.#intervalMs
    this.#reportedMs = nowMs
    for (const [key, requests] of this.#counts.admitted(CLIENTS_MAX, isLate)) {
      const cost = 3 * key.length + 16
      if (bytes + cost > bytesMax) {
        batches.push(encode(batch))
        batch = []
        bytes = 0
      }
      batch.push(key, requests)
      bytes += cost
      this.#log.sent += requests
    }
    if (batch.length > 0) batches.push(encode(batch))
    return batches
  }

  #receive(bytes: Uint8Array): void {
    const [kind, id, number, batches] = readParts(bytes) ?? []
    if (kind !== 'limits' || typeof id !== 'string' || id.length > ID_CHARS_MAX) return
    if (id.startsWith(this.#counts.id) || !isCount(number)) return
    if (!Array.isArray(batches) || batches.length === 0 || batches.length > REPEATS + 1) return
    const { first, missed } = this.#counts.unseen(id, number, batches.length)
    this.#log.missed += missed
    for (let at = Math.min(batches.length - 1, number - first); at >= 0; at--) this.#add(batches[at])
  }

  #add(bytes: unknown): void {
    const batch = batchIn(bytes)
    for (let at = 0; at < batch.length; at += 2)
      if (this.#counts.add(batch[at], batch[at + 1])) this.#log.received += batch[at + 1] as number
  }
}

/** Nothing of bytes that are something else. */
function batchIn(bytes: unknown): readonly unknown[] {
  try {
    const batch = decode(bytes as Uint8Array)
    if (Array.isArray(batch) && batch.length % 2 === 0 && batch.length <= 2 * CLIENTS_MAX) return batch
  } catch {
    // From somebody who speaks something else, or who tries what happens.
  }
  return []
}
