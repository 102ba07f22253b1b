/**
 * What table `store` keeps: the eighteen payloads of the napajs report, and bytes of two sizes.
 *
 * Seventeen are those of table `transport`; the seed's first one has one integer. Bytes cost the transport no
 * more than a copy, so they show how a store's own cost grows.
 */
import { SEED_PAYLOADS, objectsOf } from '../transport/payloads.ts'

/** One line of the table. */
export interface StorePayload {
  readonly label: string
  /** Row of the seed's table; undefined for bytes. */
  readonly seedRow: string | undefined
  /** The 64 values. */
  readonly values: () => readonly unknown[]
}

/** The eighteen of the seed, in its order. */
export const STORE_PAYLOADS: readonly StorePayload[] = [
  {
    label: '1 level - 1 integers',
    seedRow: '1',
    values: () => Array.from({ length: 64 }, (_, index) => ({ key0: index % 10 })),
  },
  ...SEED_PAYLOADS.map((payload, at) => ({
    label: payload.label,
    seedRow: String(at + 2),
    values: () => objectsOf(payload, 'assigned'),
  })),
]

/** Sizes between which the growth is measured. */
export const SMALL_BYTES = 100
export const LARGE_BYTES = 18 * 1024

/** Bytes of these two sizes. */
export const BYTE_PAYLOADS: readonly StorePayload[] = [SMALL_BYTES, LARGE_BYTES].map((bytes) => ({
  label: `${bytes} bytes`,
  seedRow: undefined,
  values: () => Array.from({ length: 64 }, (_, index) => new Uint8Array(bytes).fill(index)),
}))
