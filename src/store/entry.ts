/**
 * A key of a store in a transaction: the version that was read, and what is to be written.
 *
 * Complete from the start and of one shape: a transaction of one key costs little more than `update`.
 */

/** What a transaction does to a key. */
export const NONE = 0
export const SET = 1
const DELETE = 2

/** A key whose new value is being computed, by a function that must not write it. */
export interface Changing {
  readonly key: string
  readonly within: Changing | undefined
}

export class Entry<Store = unknown> implements Changing {
  store: Store
  key: string
  /** Whether its version is compared when the transaction commits. */
  isRead = false
  /** Whether `value` is what was read; not after a first way that `orElse` has left. */
  isFresh = false
  /** The version; 0 if the key is absent. */
  low = 0
  high = 0
  /** The index of its version word, and the word when it was read. */
  index = 0
  word = 0
  /** Milliseconds until it expires, when it was read; 0: never. */
  leftMs = 0
  value: unknown = undefined
  action = NONE
  /** Bits of the core's write, without the version. */
  mode = 0
  ttlMs = 0
  written: unknown = undefined
  /** Of what is being changed in the store; see `Changing`. */
  within: Changing | undefined = undefined

  constructor(store: Store, key: string) {
    this.store = store
    this.key = key
  }

  /** Makes it that of another key, as a new one is. */
  renew(store: Store, key: string): this {
    this.store = store
    this.key = key
    this.isRead = false
    this.isFresh = false
    this.leftMs = 0
    this.action = NONE
    return this
  }

  /** Drops what it refers to. */
  release(): void {
    this.store = this.value = this.written = undefined as never
  }

  /** What the transaction has for the key. */
  get current(): unknown {
    if (this.action === SET) return this.written
    return this.action === DELETE ? undefined : this.value
  }

  put(value: unknown, mode: number, ttlMs: number): void {
    this.action = value === undefined ? DELETE : SET
    this.written = value
    this.mode = mode
    this.ttlMs = ttlMs
  }
}
