/**
 * What users see of a store's values and their changes.
 *
 * A value is a frame of the transport, whole. Other bytes are left out where many are read.
 */
import { decode } from '../../transport/index.ts'
import type { Entry } from '../engine/engine.ts'

/** A value of a store. */
export interface FarEntry<Value> {
  /** As it was written. */
  readonly key: string
  /** A copy of what was written. */
  readonly value: Value
  /** The number of the write; later ones are larger, of other keys too. */
  readonly revision: number
}

/** A change of a store. */
export interface FarChange<Value> {
  /** The key of the value. */
  readonly key: string
  /** `undefined` of one that was deleted. */
  readonly value: Value | undefined
  /** Whether it has no value any more. */
  readonly isDeleted: boolean
  /** The number of the change. */
  readonly revision: number
}

/** `undefined` for bytes that cannot be read here. */
export function changeOf<Value>({ key, bytes, revision }: Entry): FarChange<Value> | undefined {
  if (bytes === undefined) return { key, value: undefined, isDeleted: true, revision }
  try {
    return { key, value: decode(bytes) as Value, isDeleted: false, revision }
  } catch {
    return undefined // of a class that is not registered here, or from somebody who writes something else
  }
}
