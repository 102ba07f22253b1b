/**
 * What the writer asks of an array or a dictionary before and while it writes it.
 *
 * Nothing here writes. An array of fractions takes 8 bytes for each element, holes are counted.
 */

/** Fields from which an object is more likely a dictionary, whose values are read by one call. */
export const DICTIONARY_MIN = 24
/** Keys from which an object is tested for being a table of the engine: smaller ones rarely are. */
const TABLE_KEYS_MIN = 64
/**
 * Nanoseconds per key below which `Object.keys` has listed no table. A table takes 17 (keys that all such
 * objects share) to 75, a hidden class two.
 */
const TABLE_KEY_NS = 8

/** Node loads a dozen modules when a thread looks at `performance` first, which most threads never do. */
let now = (): number => {
  now = performance.now.bind(performance)
  return now()
}

export interface Listed {
  readonly keys: readonly string[]
  /** The engine keeps it as a table: a look-up takes 10 ns, and a list of all values 100 for each. */
  readonly isTable: boolean
}

/**
 * List the keys of a large object. The engine does not show whether it keeps an object as a table, but it
 * has to sort the keys of one, and has those of a hidden class in a list: the time shows it. If a thread is
 * interrupted meanwhile, only time is lost.
 */
export function listed(object: object): Listed {
  const from = now()
  const keys = Object.keys(object)
  return { keys, isTable: (now() - from) * 1e6 > keys.length * TABLE_KEY_NS }
}

/**
 * The values of an object's own enumerable `keys`: of a hidden class by one call, because the engine's caches
 * hold none of a dictionary's 200 keys and a look-up of each takes 20 times as long; of a table by look-ups.
 */
export function valuesOf(object: object, keys: readonly string[]): readonly unknown[] {
  if (keys.length >= TABLE_KEYS_MIN && listed(object).isTable) return lookedUp(object, keys)
  return allValues(object, keys)
}

/** As {@link valuesOf}, for callers that have found out how the engine keeps the object. */
export function valuesOfListed(object: object, { keys, isTable }: Listed): readonly unknown[] {
  return isTable ? lookedUp(object, keys) : allValues(object, keys)
}

function allValues(object: object, keys: readonly string[]): readonly unknown[] {
  const values: unknown[] = Object.values(object)
  // Fewer when a getter has removed fields.
  return values.length === keys.length ? values : lookedUp(object, keys)
}

function lookedUp(object: object, keys: readonly string[]): readonly unknown[] {
  return keys.map((key) => (object as Record<string, unknown>)[key])
}

/** True when all elements are numbers and most of them are not small integers. */
export function isFractions(array: readonly unknown[]): boolean {
  let fractions = 0
  for (let index = 0; index < array.length; index++) {
    const value = array[index]
    if (typeof value !== 'number') return false
    if ((value | 0) !== value) fractions++
  }
  return fractions * 2 > array.length
}

/** The indices at which the array has an element, ascending, as the engine lists them: before all names. */
export function presentIndices(array: readonly unknown[]): string[] {
  const keys = Object.getOwnPropertyNames(array)
  while (keys.length > 0 && !isIndex(keys[keys.length - 1])) keys.pop()
  return keys
}

/** True for the names of elements; '-1', '01' and '4294967295' are named properties. */
function isIndex(key: string): boolean {
  const index = Number(key) >>> 0
  return String(index) === key && index !== 0xffff_ffff
}

/** The first index after the hole at `hole` that is present, by {@link presentIndices}. */
export function nextPresent(indices: readonly string[], hole: number, length: number): number {
  let low = 0
  let high = indices.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (Number(indices[middle]) <= hole) low = middle + 1
    else high = middle
  }
  return Number(indices[low] ?? length)
}
