/**
 * The members of the reader that read-special.ts uses. Each checks the bytes that are left and throws
 * TransportError; read-special.ts need not import the reader.
 */

import type { Resizables } from '../format.ts'

/** Carries what a load hook threw past the reader, which turns every other error into its own. */
export class HookError {
  readonly thrown: unknown

  /** @param thrown What the hook threw. */
  constructor(thrown: unknown) {
    this.thrown = thrown
  }
}

/**
 * Counts what the frames of this thread have contained besides trees of plain objects, arrays and primitive
 * values: objects of other kinds, and objects that are referred to again. Whoever finds it unchanged after a
 * read has a value without cycles, accessors, symbols and hidden properties.
 */
export const beyondTrees = { count: 0 }

export interface FrameSource {
  /** True: numbers of this process are allowed. */
  readonly isProcess: boolean
  value(): unknown
  string(): string
  uint8(): number
  uint32(): number
  float64(): number
  /** A count of values that take `bytesMin` bytes or more each. */
  count(bytesMin: number): number
  /** The next `length` bytes, still in the frame: copy what outlives the call. */
  raw(length: number): Uint8Array
  /** The next `length` bytes, in memory of their own. */
  copy(length: number): Uint8Array
  /** The same, or a view of the frame where the caller asked for views. */
  content(length: number): Uint8Array
  /** The bytes of the buffer that comes next, if it has `length` of them and nothing else refers to it. */
  wholeBuffer(length: number): Uint8Array | undefined
  /** `object` is what is being read: references to it may follow. Before anything inside is read. */
  claim(object: object): void
  /** An object of this prototype and the fields that follow. */
  instance(prototype: object): object
  /** Read the fields of an object into `object`. */
  fieldsInto(object: object): void
  /** What is being read cannot be referred to before it is complete. */
  unclaimed(): void
  /** The resizable buffers read so far. */
  resizables(): Resizables
  fail(why: string, cause?: unknown): never
}
