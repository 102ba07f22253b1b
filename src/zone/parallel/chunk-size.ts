/**
 * How many items the next chunk should have, from what the last ones cost in time and bytes.
 *
 * A chunk that takes CHUNK_MS is long against a hop and short against the whole.
 */

/** Target duration of a chunk: fifty to a thousand hops. */
const CHUNK_MS = 2
/** Most items per chunk. */
export const CHUNK_ITEMS_MAX = 4096
/** Most bytes of a chunk, or of its values: half of what fits into the scratch. */
const CHUNK_BYTES = 128 * 1024
/** Most growth from one chunk to the next: one measurement may be of compiling. */
const GROWTH_MAX = 8

export class ChunkSize {
  #size = 1
  #bytes = CHUNK_BYTES
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get now(): number {
    return this.#size
  }

  /** @param bytes Of the arguments or the values, whichever are more. */
  learn(items: number, ms: number, bytes: number): void {
    const byTime = Math.ceil((CHUNK_MS * items) / Math.max(ms, 0.001))
    const byBytes = Math.floor((this.#bytes * items) / Math.max(bytes, 1))
    this.#size = Math.max(1, Math.min(byTime, byBytes, this.#size * GROWTH_MAX, this.#max))
  }

  /** The zone never takes more bytes at once; as items differ, chunks stay well below. */
  bytesMax(most: number): void {
    this.#bytes = Math.min(this.#bytes, most / 2)
    this.#size = Math.max(1, this.#size >> 1)
  }
}
