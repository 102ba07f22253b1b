/**
 * What the writer asks of an array or a dictionary before and while it writes it.
 *
 * Nothing here writes: an array of fractions goes as 8 bytes each, holes as counts of what is missing.
 */

/**
 * The values of an object's own enumerable `keys`, by one call: the engine's caches hold none of a
 * dictionary's 200 keys, so that a look-up of each takes seven times as long.
 */
export function valuesOf(object: object, keys: readonly string[]): readonly unknown[] {
  const values: unknown[] = Object.values(object)
  // Fewer when a getter has removed fields.
  return values.length === keys.length ? values : keys.map((key) => (object as Record<string, unknown>)[key])
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
