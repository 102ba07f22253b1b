/**
 * What table `store` keeps: the eighteen payloads of the napajs report, and text and bytes of two sizes.
 *
 * Seventeen are those of table `transport`; the seed's first one has one integer. Text costs the transport no
 * more than a copy, so it shows how a store's own cost grows. Bytes do not: a buffer is made for each that is
 * read, and that costs the engine microseconds, now more, now less.
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

/** Integers that take more than a byte each; and fractions, whose arrays the engine keeps without objects. */
export const NUMBER_PAYLOADS: readonly StorePayload[] = [
  {
    label: 'array of 100 integers up to 100,000',
    seedRow: undefined,
    values: () => hundreds((random) => random % 100_001),
  },
  {
    label: 'object of 100 integers up to 100,000',
    seedRow: undefined,
    values: () =>
      hundreds((random) => random % 100_001).map((numbers) =>
        Object.fromEntries(numbers.map((number, at) => [`key${at}`, number])),
      ),
  },
  { label: 'array of 100 fractions', seedRow: undefined, values: () => hundreds((random) => random / 7) },
]

function hundreds(numberOf: (random: number) => number): readonly number[][] {
  let state = 20_261_123
  return all64(() =>
    Array.from({ length: 100 }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return numberOf(state)
    }),
  )
}

/** Sizes between which the growth is measured. */
export const SMALL_BYTES = 100
export const LARGE_BYTES = 18 * 1024
/** What is of these sizes. */
export const SIZE_KINDS = ['characters', 'bytes'] as const

/** Text and bytes of these two sizes. */
export const SIZE_PAYLOADS: readonly StorePayload[] = [SMALL_BYTES, LARGE_BYTES].flatMap((bytes) => [
  {
    label: `${bytes} characters`,
    seedRow: undefined,
    // Flat strings, as they come from files and sockets: of a repeated one the engine keeps the parts.
    values: () => all64((index) => Buffer.alloc(bytes, 65 + index).toString('latin1')),
  },
  {
    label: `${bytes} bytes`,
    seedRow: undefined,
    values: () => all64((index) => new Uint8Array(bytes).fill(index)),
  },
])

function all64<Value>(make: (index: number) => Value): Value[] {
  return Array.from({ length: 64 }, (_, index) => make(index))
}
