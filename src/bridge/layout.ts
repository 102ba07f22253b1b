/**
 * The numbers that this side and the core agree on for stores, locks, channels and counters.
 *
 * Those of crates/store/src/layout.rs, which explains each; src/contract.test.ts compares the two files.
 */

/** The handle, in every thread, on a store that is closed. */
export const CLOSED_HANDLE = 0

/** Bits of the word of a key that are its length; above them is its number. */
export const KEY_LENGTH_BITS = 17

/** Words of `out` that a call reads; the bytes of value and key follow the header. */
export const Given = {
  handle: 0,
  key: 1,
  ticket: 1,
  counting: 1,
  length: 2,
  amount: 2,
  mode: 3,
  looks: 3,
  wait: 3,
  version: 4,
  versionHigh: 5,
} as const
/** Doubles of `out`. */
export const GivenDouble = { operand: 2, ttlMs: 3, expected: 3 } as const

/** Words of `inbound` that a call writes; the bytes of a value follow the header. */
export const Found = {
  status: 0,
  length: 1,
  removed: 1,
  version: 2,
  versionHigh: 3,
  index: 4,
  word: 5,
  refers: 8,
} as const
/** Doubles of `inbound`. */
export const FoundDouble = { leftMs: 3, before: 3 } as const

/** Bits of the mode of a write. */
export const Mode = { expects: 1, keepsTtl: 2, hasTtl: 4 } as const

/** Status of a read. */
export const Read = { found: 0, absent: 1, closed: 2, large: 3 } as const
/** Status of a write. */
export const Written = { done: 0, conflict: 1, closed: 2, tooLarge: 3, full: 4, behind: 5 } as const
/** Status of a request to enter a gate. */
export const Acquire = { granted: 0, abandoned: 1, busy: 2, queued: 3, own: 4 } as const
/** Status of a channel's call. */
export const Passed = { done: 0, large: 1, none: 2, queued: 3, closed: 4 } as const

/** What the file of a store is doing. */
export const Stage = { opening: 0, open: 1, closing: 2, ended: 3 } as const
/** The result of a request to flush. */
export const Flush = { done: 0, waits: 1, ended: 2 } as const

/** How a channel's call waits. */
export const Wait = { not: 0, mail: 1, blocking: 2 } as const
/** What a counter does. */
export const Counting = { add: 0, set: 1, swap: 2 } as const
/** Kinds of synchronization objects. */
export const Kind = { lock: 1, rwLock: 2, semaphore: 3, channel: 4, counter: 5 } as const

/** What a wait receives; 0 is nothing. */
export const Fact = {
  granted: 1,
  abandoned: 2,
  look: 3,
  lead: 4,
  closed: 5,
  durable: 6,
  failed: 7,
} as const
/** What happened to a key. */
export const Change = { set: 1, delete: 2, expire: 3, evict: 4, clear: 5 } as const

/** Numbers of a store's counts. */
export const Counts = {
  entries: 0,
  bytes: 1,
  hits: 2,
  misses: 3,
  evictions: 4,
  expirations: 5,
  numbers: 6,
} as const
