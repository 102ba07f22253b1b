/**
 * Keys that this thread uses repeatedly: the core stores their bytes and hashes under a number.
 *
 * A cached key takes one look-up in a Map instead of writing and hashing its characters. The table is bounded
 * and is cleared when full; where keys are hardly ever repeated it pauses, because it costs more than it
 * saves.
 */
import { KEY_LENGTH_BITS } from './layout.ts'

/** Keys of more characters are not kept. */
export const KNOWN_LENGTH_MAX = 64
/** Most keys in the cache; each takes some hundred bytes here and as many in the core. */
const KEYS_MAX = 8192
/** Look-ups for which a table pauses that had too few hits. */
const REST = 16 * KEYS_MAX

export class KnownKeys {
  readonly #words = new Map<string, number>()
  #hits = 0
  #rest = 0

  /** The word of a cached key, 0 for any other. */
  get(key: string): number {
    const word = this.#words.get(key)
    if (word === undefined) return 0
    this.#hits++
    return word
  }

  /** Whether to add the key that was just not found. */
  takes(): boolean {
    if (this.#rest > 0) {
      this.#rest--
      return false
    }
    return true
  }

  /**
   * Add a key; returns the value to add to its length so that the core adds it too. A string that is a slice
   * of a larger one would keep all of it; the same string object is found fastest.
   */
  add(key: string): number {
    const words = this.#words
    if (words.size === KEYS_MAX) {
      if (this.#hits < KEYS_MAX) this.#rest = REST
      this.#hits = 0
      words.clear()
    }
    const word = (words.size + 1) << KEY_LENGTH_BITS
    words.set(key, word)
    return word
  }
}
