/**
 * Options of stores and of their calls, and their checks.
 *
 * A store's options are parsed once into a complete, frozen record.
 */
import { resolve } from 'node:path'
import {
  type Kind,
  type OptionsOf,
  abortSignal,
  flag,
  integer,
  oneOf,
  optionsOf,
  ownOptions,
  text,
  valueOfKind,
} from '../base/index.ts'
import { wrong } from './errors.ts'

/** Options of a new store. */
export interface StoreOptions {
  /** Most entries; unlimited by default. */
  readonly entriesMax?: number
  /** Most bytes of keys, encoded values and 96 bytes for each entry; unlimited by default. */
  readonly bytesMax?: number
  /** Longest encoded value in bytes; 64 MiB by default. */
  readonly valueBytesMax?: number
  /** Time to live in milliseconds of entries written without one; 0, the default, means no expiration. */
  readonly ttlMs?: number
  /**
   * What a full store does. `'lru'` (the default) evicts entries that have not been used recently, by an
   * approximation of LRU that resists scans; `'none'` refuses new entries with `STORE_FULL`.
   */
  readonly eviction?: 'lru' | 'none'
  /**
   * The path of a file that keeps the entries beyond the process; created if it does not exist. `flush()`
   * resolves when it contains what was written. Without it, the entries end with the process.
   */
  readonly file?: string
  /**
   * With `file`: most bytes of keys, values and 96 for each that wait to be written to it; 256 MiB by
   * default. Beyond it a write throws `STORE_FILE_BEHIND`.
   */
  readonly unflushedBytesMax?: number
  /**
   * Whether the store closes when no thread has a reference to it any more: when the garbage collectors of
   * all threads that had one have found that, which may be late, and never in a thread that idles. A store
   * that is on its way to another thread does not count: keep a reference until it has arrived. Not with
   * `file`. Default false.
   */
  readonly weak?: boolean
}

/** The complete, frozen options of a store; the path of its file is absolute. */
export type StoreSettings = Required<Omit<StoreOptions, 'file'>> & { readonly file: string | undefined }

/** Options of calls that write an entry. */
export interface WriteOptions {
  /** Time to live of the entry in milliseconds; the store's `ttlMs` by default. */
  readonly ttlMs?: number
}

/** Options of `getOrCompute`. */
export interface ComputeOptions extends WriteOptions {
  /** Ends the wait for another call's computation. It does not end this call's own computation. */
  readonly signal?: AbortSignal
}

/** Options of `watch`. */
export interface WatchOptions {
  /** Most events in the queue; 1024 by default. */
  readonly eventsMax?: number
  /** Ends the watcher; its iteration then ends without an error. */
  readonly signal?: AbortSignal
}

const VALUE_BYTES_MAX = 64 * 1024 * 1024
const UNFLUSHED_BYTES_MAX = 256 * 1024 * 1024
/** Longer than any process runs, and an exact integer. */
const TTL_MS_MAX = 2 ** 48

function limit(otherwise: number): Kind<number> {
  const accepts = (value: unknown): boolean =>
    value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 1)
  return { expected: 'an integer of at least 1', accepts, default: otherwise }
}

const TTL: Kind<number> = {
  expected: 'a number of milliseconds above 0',
  accepts: (value) => typeof value === 'number' && value > 0 && value <= TTL_MS_MAX,
  default: 0,
}
const WRITE_OPTIONS = new Set(['ttlMs'])
const STORE = {
  entriesMax: limit(Infinity),
  bytesMax: limit(Infinity),
  valueBytesMax: limit(VALUE_BYTES_MAX),
  ttlMs: {
    ...TTL,
    expected: 'a number of milliseconds from 0',
    accepts: (value: unknown) => value === 0 || TTL.accepts(value),
  },
  eviction: oneOf<'lru' | 'none'>(['lru', 'none'], 'lru'),
  file: text<string | undefined>(undefined),
  unflushedBytesMax: integer(1, Number.MAX_SAFE_INTEGER, UNFLUSHED_BYTES_MAX),
  weak: flag(false),
}
const WATCH = { eventsMax: integer(1, 2 ** 31, 1024), signal: abortSignal }

/** @throws {StoreError} `STORE_ARGUMENT`. */
export function parseOptions(given: StoreOptions, call: string): StoreSettings {
  const { ttlMs, valueBytesMax, file, ...others } = optionsOf(given ?? null, STORE, wrong, call)
  if (others.weak && file !== undefined) throw wrong(`${call}: weak`, 'absent, or false, with a file', true)
  return Object.freeze({
    ...others,
    valueBytesMax: valueBytesMax === Infinity ? VALUE_BYTES_MAX : valueBytesMax,
    ttlMs: Math.ceil(ttlMs),
    file: file === undefined ? undefined : resolve(file),
  })
}

/** The `ttlMs` of a call, 0 if absent. @throws {StoreError} `STORE_ARGUMENT`. */
export function ttlOf(
  call: string,
  options: WriteOptions | undefined,
  known: ReadonlySet<string> = WRITE_OPTIONS,
): number {
  if (options === undefined) return 0
  const { ttlMs } = ownOptions(options, known, wrong, call)
  return Math.ceil(valueOfKind(call, 'ttlMs', ttlMs, TTL, wrong))
}

/** @throws {StoreError} `STORE_ARGUMENT`. */
export function watchOf(options: WatchOptions | undefined): OptionsOf<typeof WATCH> {
  return optionsOf(options, WATCH, wrong, 'store.watch()')
}
