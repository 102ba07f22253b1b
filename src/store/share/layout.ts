/**
 * How a shared value lies in its memory: columns of numbers, one behind the other, and a plan of them.
 *
 * The memory begins with a header of words and ends with the plan, as JSON. A column has a row for each value
 * in its position: the prices of 200,000 records are one Float64Array. A list is two offsets into
 * the column of its elements; a string is its number among the distinct strings of the whole value. Columns
 * are aligned to eight bytes.
 */

/** The first word of the memory. */
export const MAGIC = 0x7368_6172
export const Header = { magic: 0, planAt: 1, planBytes: 2, words: 4 } as const
/** The beginning of the first column. */
export const HEADER_BYTES = Header.words * 4

/** The byte that states how a value is missing; only columns with such values have these bytes. */
export const Missing = { value: 0, null: 1, undefined: 2, absent: 3 } as const

const NUMBERS = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
} as const

/** The name of a class of typed arrays. */
export type NumbersName = keyof typeof NUMBERS
/** A typed array of any class, over memory of any kind. */
export type Numbers =
  | Int8Array<ArrayBufferLike>
  | Uint8Array<ArrayBufferLike>
  | Uint8ClampedArray<ArrayBufferLike>
  | Int16Array<ArrayBufferLike>
  | Uint16Array<ArrayBufferLike>
  | Int32Array<ArrayBufferLike>
  | Uint32Array<ArrayBufferLike>
  | Float32Array<ArrayBufferLike>
  | Float64Array<ArrayBufferLike>
  | BigInt64Array<ArrayBufferLike>
  | BigUint64Array<ArrayBufferLike>

/** Whether shared memory has typed arrays of that name. */
export function isNumbersName(name: string): name is NumbersName {
  return Object.hasOwn(NUMBERS, name)
}

/** The numbers of a column. @throws {TypeError | RangeError} for a damaged plan. */
export function numbersAt(name: NumbersName, memory: SharedArrayBuffer, at: number, rows: number): Numbers {
  const make = NUMBERS[name] as unknown as new (...args: [SharedArrayBuffer, number, number]) => Numbers
  return new make(memory, at, rows)
}

interface Column {
  /** The position of its rows: in a union the kind of each row, in a list the offset of each list. */
  readonly at: number
  /** The position of its bytes of {@link Missing}; 0 without any. */
  readonly missing: number
}

/** A column, and those below it. */
export type Plan =
  | (Column & { readonly kind: 'nothing' | 'boolean' | 'string' | 'date' })
  | (Column & { readonly kind: 'number'; readonly type: NumbersName })
  | (Column & { readonly kind: 'record'; readonly keys: readonly string[]; readonly of: readonly Plan[] })
  | (Column & {
      readonly kind: 'list'
      readonly of: Plan
      readonly rows: number
      /** Whether the lists were typed arrays. */
      readonly isTyped: boolean
    })
  | (Column & {
      readonly kind: 'union'
      /** The position of the rows of values among those of their kind. */
      readonly slots: number
      readonly of: readonly Plan[]
      /** Rows of each kind. */
      readonly rows: readonly number[]
    })

/** The distinct strings: where each begins (one more than there are), and whether it has wide characters. */
export interface StringsPlan {
  readonly count: number
  readonly starts: number
  readonly wide: number
  readonly text: number
  readonly textBytes: number
}

/** The plan of a whole value, which is the only row of its column. */
export interface WholePlan {
  readonly strings: StringsPlan
  readonly root: Plan
}
