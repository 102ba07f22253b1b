/**
 * The settings of a store: parsed once at the door, complete and frozen behind it.
 *
 * A name that is not known is refused, so that a misspelt bound is not a missing one.
 */
import { shown } from '../base/index.ts'
import { StoreError } from './errors.ts'

/** What `store.create` takes; everything has a default. */
export interface StoreSettings {
  /** Most entries; unlimited by default. */
  readonly entriesMax?: number
  /** Most bytes: keys, values as the transport writes them, and 96 for each entry; unlimited by default. */
  readonly bytesMax?: number
  /** Longest value in bytes, as the transport writes it; 64 MiB by default. */
  readonly valueBytesMax?: number
  /** Life of an entry whose writer gives none; 0, the default: it does not end. */
  readonly ttlMs?: number
  /** What a full store does: drop what is cold (`'hot'`, the default: it keeps what is hot), or refuse. */
  readonly eviction?: 'hot' | 'none'
}

/** All of them. */
export type Settings = Required<StoreSettings>

const VALUE_BYTES_MAX = 64 * 1024 * 1024
/** Longer than any program runs, and exact in every number here. */
const TTL_MS_MAX = 2 ** 48

/** @throws {StoreError} `STORE_SETTING`. */
export function parseSettings(settings: StoreSettings): Settings {
  if (typeof settings !== 'object' || settings === null) throw wrong('settings', 'an object', settings)
  const known = ['entriesMax', 'bytesMax', 'valueBytesMax', 'ttlMs', 'eviction']
  for (const name of Object.keys(settings)) {
    if (!known.includes(name)) throw wrong(name, `one of ${known.join(', ')}`, name)
  }
  const eviction = settings.eviction ?? 'hot'
  if (eviction !== 'hot' && eviction !== 'none') throw wrong('eviction', "'hot' or 'none'", eviction)
  return Object.freeze({
    entriesMax: bound('entriesMax', settings.entriesMax, Infinity),
    bytesMax: bound('bytesMax', settings.bytesMax, Infinity),
    valueBytesMax: bound('valueBytesMax', settings.valueBytesMax, VALUE_BYTES_MAX),
    ttlMs: settings.ttlMs === undefined || settings.ttlMs === 0 ? 0 : parseTtl('ttlMs', settings.ttlMs),
    eviction,
  })
}

/** A life in ms, above 0. @throws {StoreError} `STORE_SETTING`. */
export function parseTtl(name: string, ttlMs: number): number {
  if (typeof ttlMs !== 'number' || !(ttlMs > 0) || ttlMs > TTL_MS_MAX) {
    throw wrong(name, 'a number of milliseconds above 0', ttlMs)
  }
  return Math.ceil(ttlMs)
}

function bound(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined || value === Infinity) return otherwise
  if (!Number.isSafeInteger(value) || value < 1) throw wrong(name, 'an integer of at least 1', value)
  return value
}

function wrong(name: string, expected: string, received: unknown): StoreError {
  return new StoreError('STORE_SETTING', { name, expected, received: shown(received) })
}
