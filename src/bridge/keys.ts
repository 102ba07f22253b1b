/**
 * Keys that this thread uses again and again: the core keeps their bytes and hashes under a number.
 *
 * A known key is one look into a Map instead of its characters and their hash, written and read. The table is
 * bounded and starts over when it is full; where keys hardly ever come again it rests, because then it costs
 * more than it saves.
 */
import { KEY_LENGTH_BITS } from './layout.ts'

/** Keys of more characters are not kept. */
export const KNOWN_LENGTH_MAX = 64
/** Keys kept at once; each has some hundred bytes here and as many in the core. */
const KEYS_MAX = 8192
/** Looks for which a table rests that did not pay off. */
const REST = 16 * KEYS_MAX
export class KnownKeys {
  readonly #words = new Map<string, number>()
  #hits = 0
  #rest = 0

  /** The word that stands for a key, 0 when it is not known. */
  get(key: string): number {
    const word = this.#words.get(key)
    if (word === undefined) return 0
    this.#hits++
    return word
  }

  /** Whether the key that has just been looked for in vain should be kept. */
  takes(): boolean {
    if (this.#rest > 0) {
      this.#rest--
      return false
    }
    return true
  }

  /**
   * Know a key from now on: what is to be added to its length so that the core does as well. The text should
   * be no part of a larger one, which would be kept with it; the very string that will be asked for is found
   * fastest.
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
