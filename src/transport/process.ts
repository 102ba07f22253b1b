/**
 * The tables that all threads of a process share.
 *
 * The native module provides them: `setProcessTables` is called once per thread, before the first frame.
 * Numbers start at 1 and are never reused; 0 means "no number", and the frame contains the name itself.
 */

import { TOKEN_BYTES } from './format.ts'

/** Table of shapes: the JSON text of the keys. */
export const TABLE_SHAPES = 0
// 1 is the table of functions.
/** Table of classes: the cid. */
export const TABLE_CLASSES = 2

/** Process-wide numbering and memory that changes threads without being copied. */
export interface ProcessTables {
  /** The number of `key` in `table`, assigned at its first use; 0 when the table is full. */
  intern(table: number, key: string): number
  /** The key that has this number, or `undefined`. */
  interned(table: number, id: number): string | undefined
  /** The id of the shared memory of `buffer`; the same memory has one id while it exists. */
  bufferShare(buffer: SharedArrayBuffer): number
  /** Detach `buffer` and keep its memory under an id. Throws when it cannot be detached. */
  bufferMove(buffer: ArrayBuffer): number
  /**
   * Keep the memory of `buffer` under an id, without detaching it yet where that is possible. Throws when it
   * could not be detached.
   */
  bufferLend(buffer: ArrayBuffer): number
  /** Detach a buffer that was lent. */
  bufferLeave(buffer: ArrayBuffer): void
  /** The memory of an id: moved memory once, shared memory any number of times. Throws for an unknown id. */
  bufferTake(id: number): ArrayBuffer | SharedArrayBuffer
  /** Drop one reference to an id. */
  bufferRelease(id: number): void
  /**
   * Replace the bytes of `offer` by the token of this process. The first offer of any thread becomes the
   * token.
   */
  frameToken(offer: Uint8Array): void
}

/** The two words of the token. */
type Token = readonly [first: number, second: number]

let tables!: ProcessTables
let token: Token | undefined

export function processTables(): ProcessTables {
  return tables
}

/**
 * Use `shared` in this thread. Called by the module that loads the native core, before the first frame.
 */
export function setProcessTables(shared: ProcessTables): void {
  tables = shared
  token = undefined
}

/** The token in frames of process mode that users hold: 64 random bits, the same in all threads. */
export function processToken(): Token {
  return token ?? firstToken()
}

function firstToken(): Token {
  const { randomFillSync } = process.getBuiltinModule('node:crypto')
  const bytes = randomFillSync(new Uint8Array(TOKEN_BYTES))
  tables.frameToken(bytes)
  const view = new DataView(bytes.buffer)
  token = [view.getInt32(0), view.getInt32(4)]
  return token
}
