/**
 * The settings of a store: parsed once at the door, complete and frozen behind it.
 *
 * A name that is not known is refused, so that a misspelt bound is not a missing one.
 */
import { type Kind, oneOf, optionsOf, ownOptions, refuser, valueOfKind } from '../base/index.ts'
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

/** An integer of at least 1, or `Infinity` for the widest. */
function bound(otherwise: number): Kind<number> {
  const accepts = (value: unknown): boolean =>
    value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 1)
  return { expected: 'an integer of at least 1', accepts, default: otherwise }
}

const LIFE: Kind<number> = {
  expected: 'a number of milliseconds above 0',
  accepts: (value) => typeof value === 'number' && value > 0 && value <= TTL_MS_MAX,
  default: 0,
}
const WRITE_OPTIONS = new Set(['ttlMs'])
const KINDS = {
  entriesMax: bound(Infinity),
  bytesMax: bound(Infinity),
  valueBytesMax: bound(VALUE_BYTES_MAX),
  ttlMs: { ...LIFE, accepts: (value) => value === 0 || LIFE.accepts(value) } as Kind<number>,
  eviction: oneOf<'hot' | 'none'>(['hot', 'none'], 'hot'),
}

/** @throws {StoreError} `STORE_SETTING`. */
export function parseSettings(given: StoreSettings, call: string): Settings {
  const { ttlMs, valueBytesMax, ...settings } = optionsOf(given ?? null, KINDS, wrong, call)
  return Object.freeze({
    ...settings,
    valueBytesMax: valueBytesMax === Infinity ? VALUE_BYTES_MAX : valueBytesMax,
    ttlMs: Math.ceil(ttlMs),
  })
}

/** The life in ms that `call` was given; 0 for none. @throws {StoreError} `STORE_SETTING`. */
export function ttlOf(
  call: string,
  options: { readonly ttlMs?: number } | undefined,
  known: ReadonlySet<string> = WRITE_OPTIONS,
): number {
  if (options === undefined) return 0
  const { ttlMs } = ownOptions(options, known, wrong, call)
  return Math.ceil(valueOfKind(call, 'ttlMs', ttlMs, LIFE, wrong))
}

/** The error for a value that a setting cannot have. */
const wrong = refuser((facts) => new StoreError('STORE_SETTING', facts))
