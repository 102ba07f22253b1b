/**
 * `store.share`: puts a value into shared memory once, for all threads to read in place.
 *
 * There is neither a name nor a version here: a view is a handle, so a store keeps it under a key, replaces
 * it atomically and notifies watchers.
 */
import { integer, optionsOf } from '../../base/index.ts'
import { wrong } from '../errors.ts'
import { build } from './build.ts'
import { kindOf } from './kinds.ts'
import type { ListMembers } from './views.ts'
import { openNew } from './whole.ts'

/** Options of `store.share`. */
export interface ShareOptions {
  /** Most bytes of shared memory; 256 MiB by default, 4 GiB at most. */
  readonly bytesMax?: number
}

/** A list that is read in place: the methods of a read-only array, and `toJSON`, which returns a copy. */
export type SharedList<T> = ReadonlyArray<Shared<T>> & ListMembers<T>

/** A record that is read in place. `toJSON` returns a plain copy. */
export type SharedRecord<T> = { readonly [Key in keyof T]: Shared<T[Key]> } & { toJSON(): T }

/** What `store.share` returns for a value. */
export type Shared<T> = T extends string | number | boolean | bigint | null | undefined | Date
  ? T
  : T extends { readonly BYTES_PER_ELEMENT: number; readonly [index: number]: infer Element }
    ? SharedNumbers<T, Element>
    : T extends readonly (infer Element)[]
      ? SharedList<Element>
      : SharedRecord<T>

/** A typed array that is read in place. `toJSON` returns a copy of its class. */
export type SharedNumbers<T, Element> = ReadonlyArray<Element> & { toJSON(): T }

const OPTIONS = { bytesMax: integer(1, 2 ** 32, 256 * 1024 * 1024) }

export function share<T extends object>(value: T, options?: ShareOptions): Shared<T> {
  const { bytesMax } = optionsOf(options, OPTIONS, wrong, 'store.share()')
  const kind = kindOf(value)
  if (kind === 'view') return value as Shared<T>
  if (typeof value !== 'object' || value === null)
    throw wrong('store.share(): value', 'an array or an object', value)
  return openNew(build(value, bytesMax)) as unknown as Shared<T>
}
