/**
 * The types of registered classes: the writing and the reading half of the codec need them, and neither may
 * import the other.
 */
import type { WriteObject } from './generate.ts'

/** A constructor with any arguments. */
export type Class<Instance = object> = abstract new (...args: never[]) => Instance

export interface ClassEntry {
  readonly cid: string
  readonly version: number
  readonly prototype: object
  readonly constructor: Class
  readonly save: ((object: object) => unknown) | undefined
  readonly load: ((saved: unknown, version: number) => object) | undefined
  /** The number in process-wide frames, 0 until it is first needed. */
  number: number
  /** Generated writers by shape, and those of shapes that wait for theirs. */
  readonly writers: Map<object, ClassWriter>
  /** The last frame in which the prototype was checked for enumerable properties. */
  frame: number
  /** A later registration of the class has replaced this entry. */
  isStale: boolean
}

/** How objects of one class and one shape are written; cached in the field that contained the last one. */
export interface ClassWriter {
  readonly prototype: object
  uses: number
  write: WriteObject | undefined
}
