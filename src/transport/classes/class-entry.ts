/**
 * Registered classes as those see them who write and read their objects; classes.ts makes them.
 *
 * Types alone: both sides of the codec need them, and neither may import the other.
 */
import type { WriteObject } from './generate.ts'

/** A constructor, of whatever arguments. */
export type Class<Instance = object> = abstract new (...args: never[]) => Instance

/** A class as the codec sees it: complete, no optionals. */
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
  /** The last frame whose writer saw that all fields of its objects are their own. */
  frame: number
  /** The class was registered anew: nothing is written by this entry any more. */
  isStale: boolean
}

/** How objects of one class and one shape are written: what a field remembers of its last object. */
export interface ClassWriter {
  readonly prototype: object
  uses: number
  write: WriteObject | undefined
}
