/**
 * What calls of a store take and tell: options of writing and computing, and its counts.
 *
 * Types only.
 */

/** How an entry is written. */
export interface WriteOptions {
  /** Life of the entry in ms. */
  readonly ttlMs?: number
}

/** What `getOrCompute` takes. */
export interface ComputeOptions extends WriteOptions {
  /** Ends the waiting for another thread's computation, not a computation of one's own. */
  readonly signal?: AbortSignal
}

/** What a store has done since it was made. */
export interface StoreStats {
  /** Entries now. */
  readonly entries: number
  /** Bytes now: keys, values as the transport writes them, and 96 for each entry. */
  readonly bytes: number
  /** Reads that found a value; looks at an unchanged view are counted by up to 64 at a time. */
  readonly hits: number
  /** Reads that did not. */
  readonly misses: number
  /** Entries dropped for room. */
  readonly evictions: number
  /** Entries whose time was over. */
  readonly expirations: number
}
