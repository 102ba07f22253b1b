/**
 * Statistics of a store.
 *
 * The core writes them as doubles into memory of the caller.
 */
import { Counts } from '../bridge/index.ts'
import { native } from '../native/index.ts'

/** Statistics of a store since it was created. */
export interface StoreStats {
  /** Number of entries. */
  readonly entries: number
  /** Bytes of keys, encoded values and 96 bytes for each entry. */
  readonly bytes: number
  /** Reads that found a value. Reads of an unchanged view are added by up to 64 at a time. */
  readonly hits: number
  /** Reads that found no value. */
  readonly misses: number
  /** Entries removed because the store was full. */
  readonly evictions: number
  /** Expired entries that have been removed. */
  readonly expirations: number
}

export function statsOf(handle: number): StoreStats {
  const numbers = new Float64Array(Counts.numbers)
  native.storeStats(handle, new Uint8Array(numbers.buffer))
  return {
    entries: numbers[Counts.entries],
    bytes: numbers[Counts.bytes],
    hits: numbers[Counts.hits],
    misses: numbers[Counts.misses],
    evictions: numbers[Counts.evictions],
    expirations: numbers[Counts.expirations],
  }
}
