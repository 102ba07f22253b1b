/**
 * What the writer asks of an array before and while it writes it.
 *
 * Nothing here writes: an array of fractions goes as 8 bytes each, holes as counts of what is missing.
 */

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

/** The first index after the hole at `hole` that is present, by the sorted keys of the array. */
export function nextPresent(keys: readonly string[], hole: number, length: number): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    const index = Number(keys[middle])
    // A key that is no index (a named property) sorts behind all indices.
    if (index <= hole) low = middle + 1
    else high = middle
  }
  const next = Number(keys[low] ?? length)
  return next <= length ? next : length
}
