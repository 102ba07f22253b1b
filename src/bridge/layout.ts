/**
 * The numbers that both sides of the border have, printed from crates/store/src/layout.rs when the core
 * is compiled: change that file. It explains each of them.
 */

/**
 * The handle, in every thread, on a closed store. It replaces the handle of a store that a thread finds
 * closed.
 */
export const CLOSED_HANDLE = 0

/** Bits of the word of a key that are its length in bytes; above them is its number, 0 for none. */
export const KEY_LENGTH_BITS = 17

/** Words of the out scratch that a call reads; the bytes of the value, then of the key, follow the header. */
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

/** Doubles of the out scratch. */
export const GivenDouble = { operand: 2, ttlMs: 3, expected: 3 } as const

/** Words of the inbound scratch that a call writes; the bytes of a value or message follow the header. */
export const Found = {
  status: 0,
  length: 1,
  removed: 1,
  step: 1,
  version: 2,
  versionHigh: 3,
  index: 4,
  word: 5,
  refers: 8,
} as const

/** Doubles of the inbound scratch. */
export const FoundDouble = { leftMs: 3, before: 3 } as const

/** Bits of the mode of a write. Without one of the last two, an entry has the store's TTL. */
export const Mode = { expects: 1, keepsTtl: 2, hasTtl: 4, checks: 8, removes: 16 } as const

/** Status of a read. */
export const Read = { found: 0, absent: 1, closed: 2, large: 3 } as const

/** Status of a write; see `Refusal`. */
export const Written = { done: 0, conflict: 1, closed: 2, tooLarge: 3, full: 4, behind: 5 } as const

/** The result of a request for permits. */
export const Acquire = { granted: 0, abandoned: 1, busy: 2, queued: 3, own: 4 } as const

/** What the file of a store is doing. */
export const Stage = { opening: 0, open: 1, closing: 2, ended: 3 } as const

/** The result of a request to flush. */
export const Flush = { done: 0, waits: 1, ended: 2 } as const

/** How a channel's call waits. */
export const Wait = { not: 0, mail: 1, blocking: 2 } as const

/** Status of a channel's call. */
export const Passed = { done: 0, large: 1, none: 2, queued: 3, closed: 4 } as const

/** What a counter does. */
export const Counting = { add: 0, set: 1, swap: 2 } as const

/** Kinds of named objects. */
export const Kind = { lock: 1, rwLock: 2, semaphore: 3, channel: 4, counter: 5 } as const

/** A fact that a wait receives. */
export const Fact = { granted: 1, abandoned: 2, look: 3, lead: 4, closed: 5, durable: 6, failed: 7 } as const

/** What happened to a key. */
export const Change = { set: 1, delete: 2, expire: 3, evict: 4, clear: 5 } as const

/** Indices of a store's statistics, as doubles; see `Stats`. */
export const Counts = {
  entries: 0,
  bytes: 1,
  hits: 2,
  misses: 3,
  evictions: 4,
  expirations: 5,
  syncs: 6,
  numbers: 7,
} as const
