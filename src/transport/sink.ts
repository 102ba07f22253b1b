/**
 * The members of the writer that the writers of rare kinds use; those need not import the writer.
 *
 * Writing past the end of `bytes` is allowed and ignored: the frame is then written again into larger memory,
 * so no single value checks the space that is left.
 */

import type { ClassEntry } from './class-entry.ts'

/** A number into `bytes`, threaded through every call: the next free position. */
export type Position = number

/** Something process-wide that happens only when the frame is complete; its id lands at `position`. */
export interface Commitment {
  readonly position: Position
  readonly buffer: ArrayBuffer | SharedArrayBuffer
}

export interface Sink {
  readonly bytes: Uint8Array
  /** True: numbers of this process are allowed. */
  readonly isProcess: boolean
  readonly isInside: boolean
  readonly commitments: Commitment[]
  value(value: unknown, at: Position): Position
  /** A string of any length; only its tag and length land at `at`, its characters in the text section. */
  string(text: string, at: Position): Position
  uint32(number: number, at: Position): Position
  float64(number: number, at: Position): Position
  raw(source: Uint8Array, at: Position): Position
  /** The values of an object's own enumerable string keys as a plain object. */
  fields(object: object, at: Position): Position
  /** The same, one level deeper: to be read as a value of its own. */
  savedFields(object: object, at: Position): Position
  /** An array, of whatever class. */
  array(array: readonly unknown[], at: Position): Position
  /** An object of a registered class without hooks. */
  instance(object: object, entry: ClassEntry, at: Position): Position
  /** The class and version of what follows. */
  classTag(entry: ClassEntry, at: Position): Position
  /** Counts one more resizable buffer. @throws {Refusal} when it is more than a frame may hold. */
  resizable(buffer: ArrayBuffer, length: number, lengthMax: number): void
  /** While open, no reference may lead back to `object`: it will exist only when its load hook has run. */
  opened(object: object, isOpen: boolean): void
  /** What `make` saved of `object`, made once per frame however often the frame is tried. */
  saved(object: object, make: () => unknown): unknown
}

/** Why a value cannot travel, before its path is known. Caught in frame.ts, never seen by users. */
export class Refusal {
  readonly value: unknown
  readonly kind: 'refused' | 'class' | 'function'
  readonly why: string
  readonly cause: unknown

  /**
   * @param value The value itself.
   * @param kind Which error it becomes.
   * @param why The rest of the sentence.
   */
  constructor(value: unknown, kind: Refusal['kind'], why: string, cause?: unknown) {
    this.value = value
    this.kind = kind
    this.why = why
    this.cause = cause
  }
}
