/**
 * How many items the next chunk should have, from what the last ones cost in time and bytes.
 *
 * A chunk that takes CHUNK_MS is long against a hop and short against the whole. One that turns out to be
 * slower ends early in its worker (ChunkBudget), so an estimate that is too high costs one hop. Therefore the
 * size may follow what several chunks took: items differ, and on a busy machine any chunk may have waited for
 * a core.
 */

/** Target duration of a chunk: a hundred to two thousand hops. */
const CHUNK_MS = 4
/** Most items per chunk. */
export const CHUNK_ITEMS_MAX = 4096
/** A chunk that has taken as long begins no further item, in ms; twice what one should take. */
const LATE_MS = 8
/** In chunks of more items, which are quick ones, the clock is read after every fourth. */
const CLOCK_ITEMS = 64
/** Most growth from one chunk to the next: one measurement may be of compiling. */
const GROWTH_MAX = 8
/** What a chunk's cost counts when the next one has ended. */
const DECAY = 0.5
/** The last chunks are at least this part of the right size: hops must not outweigh the items. */
const TAIL_MIN = 1 / 8

export class ChunkSize {
  #size = 1
  #bytes: number
  /** Items and time of the last chunks, each worth half of the one after it. */
  #items = 0
  #ms = 0
  readonly #max: number

  /** @param max Most items of a chunk. @param bytes Most bytes of a chunk, or of its values. */
  constructor(max: number, bytes: number) {
    this.#max = max
    this.#bytes = bytes
  }

  get now(): number {
    return this.#size
  }

  /**
   * The size where only `left` items are left for `workers`: chunks shrink, so that all workers end
   * together.
   */
  tail(left: number, workers: number): number {
    const share = Math.ceil(left / (2 * workers))
    return Math.min(this.#size, Math.max(share, Math.ceil(this.#size * TAIL_MIN)))
  }

  /** @param bytes Of the arguments or the values, whichever are more. */
  learn(items: number, ms: number, bytes: number): void {
    this.#items = this.#items * DECAY + items
    this.#ms = this.#ms * DECAY + Math.max(ms, 0.001)
    const byTime = Math.ceil((CHUNK_MS * this.#items) / this.#ms)
    const byBytes = Math.floor((this.#bytes * items) / Math.max(bytes, 1))
    this.#size = Math.max(1, Math.min(byTime, byBytes, this.#size * GROWTH_MAX, this.#max))
  }

  /** The zone never takes more bytes at once; as items differ, chunks stay well below. */
  bytesMax(most: number): void {
    this.#bytes = Math.min(this.#bytes, most / 2)
    this.#size = Math.max(1, this.#size >> 1)
  }
}

/** The time of one chunk, in its worker. */
export class ChunkBudget {
  readonly #begun = performance.now()
  readonly #mask: number

  /** @param items How many the chunk has. */
  constructor(items: number) {
    this.#mask = items > CLOCK_ITEMS ? 3 : 0
  }

  /** Whether the items that have not begun should run elsewhere; `count` have ended. */
  isSpent(count: number): boolean {
    return (count & this.#mask) === 0 && this.isLate()
  }

  /** As `isSpent`, for items that wait: each may have taken any time. */
  isLate(): boolean {
    return this.ms > LATE_MS
  }

  get ms(): number {
    return performance.now() - this.#begun
  }
}
