/**
 * How many items the next chunk should have, from what the last ones cost in time and bytes.
 *
 * A chunk that takes CHUNK_MS is long against a hop and short against the whole. One that turns out to be
 * slower ends early in its worker (chunks.ts), so an estimate that is too high costs one hop. Therefore the
 * size may follow what several chunks took: items differ, and on a busy machine any chunk may have waited for
 * a core.
 */

/** Target duration of a chunk: a hundred to two thousand hops. */
const CHUNK_MS = 4
/** Most items per chunk. */
export const CHUNK_ITEMS_MAX = 4096
/** Most bytes of a chunk, or of its values: half of what fits into the scratch. */
const CHUNK_BYTES = 128 * 1024
/** Most growth from one chunk to the next: one measurement may be of compiling. */
const GROWTH_MAX = 8
/** What a chunk's cost counts when the next one has ended. */
const DECAY = 0.5
/** The last chunks are at least this part of the right size: hops must not outweigh the items. */
const TAIL_MIN = 1 / 8

export class ChunkSize {
  #size = 1
  #bytes = CHUNK_BYTES
  /** Of the last chunks, each worth half of the one after it. */
  #items = 0
  #ms = 0
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get now(): number {
    return this.#size
  }

  /**
   * The size where only `left` items are left for so many workers: chunks shrink, so that all workers end
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
