/**
 * The lines of a group of items while it runs, in memory that outlives its worker.
 *
 * A worker stores each line when its item has ended, and which items have begun and ended; the main thread
 * reads them when the task of the group has ended, in whatever way. So a worker that dies takes no line with
 * it, and it is known which items have run. The worker is the only writer of lines; that an item begins and
 * that none begins any more are changes of one word, by compare-and-exchange, so the two cannot disagree.
 */
import { isFailure } from './records.ts'

/** What the memory of one group holds: its words, then its lines. */
export const JOURNAL_BYTES = 64 * 1024

/** How many items have begun; negative once no other one may begin. */
const BEGUN = 0
const ENDED = 1
const FAILED = 2
const BYTES = 3
const WORDS = 4
const CLOSED = -0x80000000
const HEADER_BYTES = WORDS * Int32Array.BYTES_PER_ELEMENT

/** What a group has written. */
export interface Entries {
  /** The lines of the items that have ended, joined by LF. */
  readonly text: string
  /** How many items have begun: as many as have ended, or one more. */
  readonly begunCount: number
  readonly endedCount: number
  /** How many of the lines are marked as failures. */
  readonly failedCount: number
}

export class Journal {
  readonly #words: Int32Array
  readonly #lines: Buffer

  /** @param memory That of all journals, `JOURNAL_BYTES` each. @param index Which of them, from 0. */
  constructor(memory: SharedArrayBuffer, index: number) {
    const start = index * JOURNAL_BYTES
    this.#words = new Int32Array(memory, start, WORDS)
    this.#lines = Buffer.from(memory, start + HEADER_BYTES, JOURNAL_BYTES - HEADER_BYTES)
  }

  /** Empty it for the next group. */
  clear(): void {
    this.#words.fill(0)
  }

  /** Whether the item after the last that has ended begins: not if the journal was closed before. */
  begin(): boolean {
    const endedCount = this.#words[ENDED]
    return Atomics.compareExchange(this.#words, BEGUN, endedCount, endedCount + 1) === endedCount
  }

  /** Let no item begin after those; `false` if one has meanwhile. */
  close(begunCount: number): boolean {
    return Atomics.compareExchange(this.#words, BEGUN, begunCount, begunCount | CLOSED) === begunCount
  }

  get begunCount(): number {
    return Atomics.load(this.#words, BEGUN) & ~CLOSED
  }

  /** The item that has begun ends with this line; `false`, and nothing is stored, if there is no capacity. */
  end(line: string): boolean {
    const words = this.#words
    const [endedCount, start] = [words[ENDED], words[BYTES]]
    const separator = endedCount === 0 ? '' : '\n'
    const room = this.#lines.length - start - separator.length
    if (3 * line.length > room && Buffer.byteLength(line) > room) return false
    words[BYTES] = start + this.#lines.write(separator + line, start, 'utf8')
    if (isFailure(line)) words[FAILED]++
    Atomics.store(words, ENDED, endedCount + 1)
    return true
  }

  /** All that was stored since `clear`, once nothing writes any more. */
  read(): Entries {
    const text = this.#lines.toString('utf8', 0, this.#words[BYTES])
    const [endedCount, failedCount] = [this.#words[ENDED], this.#words[FAILED]]
    return { text, begunCount: this.begunCount, endedCount, failedCount }
  }

  /** As `read`, while the last item that has begun may be storing its line. */
  peek(): Entries {
    // Acquire: pairs with the store of ENDED in `end`, so the lines of as many items are there.
    const endedCount = Atomics.load(this.#words, ENDED)
    const all = this.#lines.toString('utf8', 0, this.#words[BYTES]).split('\n')
    const lines = all.slice(0, endedCount)
    const failedCount = lines.filter(isFailure).length
    return { text: lines.join('\n'), begunCount: this.begunCount, endedCount, failedCount }
  }
}
