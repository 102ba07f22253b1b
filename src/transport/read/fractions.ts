/**
 * Arrays of fractions out of a frame.
 *
 * The engine keeps fractions in an array without an object for each, unless the array is frozen: to freeze
 * one makes those objects, in three times the time of making them while it is read.
 */

/**
 * `numbers` is set while this thread reads what will be frozen, and receives the arrays of fractions in their
 * order. It changes how the engine keeps these arrays, and nothing else.
 */
export const toBeFrozen: { numbers: object[] | undefined } = { numbers: undefined }

/**
 * A short array begins as a copy: one that grows by `push` is copied often, one made by its length counts as
 * having holes.
 */
const FRACTIONS: readonly number[] = Array.from({ length: 255 }, () => 0.5)
const OBJECTS: readonly unknown[] = Array.from({ length: 255 }, () => null)

export function fractionsOf(view: DataView, from: number, count: number): number[] {
  const { numbers } = toBeFrozen
  if (numbers === undefined) return unboxed(view, from, count)
  const array = objects(view, from, count)
  numbers.push(array)
  return array
}

function unboxed(view: DataView, from: number, count: number): number[] {
  const array: number[] = count > FRACTIONS.length ? [] : FRACTIONS.slice(0, count)
  let at = from
  for (let index = 0; index < array.length; index++, at += 8) array[index] = view.getFloat64(at, true)
  for (let index = array.length; index < count; index++, at += 8) array.push(view.getFloat64(at, true))
  return array
}

/** The same code again: a loop that meets both kinds of arrays makes an object of each number for both. */
function objects(view: DataView, from: number, count: number): number[] {
  const array = OBJECTS.slice(0, count) as number[]
  let at = from
  for (let index = 0; index < array.length; index++, at += 8) array[index] = view.getFloat64(at, true)
  for (let index = array.length; index < count; index++, at += 8) array.push(view.getFloat64(at, true))
  return array
}
