/**
 * Exports of every kind, for the tests that call modules by name: functions, a default, a promise,
 * no function, and one that submits to its own zone.
 */

/** @param {number} a @param {number} b */
export function add(a, b) {
  return a + b
}

/** @param {number} a */
export async function later(a) {
  await null
  return a + 1
}

/** @param {number} a */
export default function double(a) {
  return a * 2
}

/** No function. */
export const five = 5

/**
 * A tree of tasks: each submits two to its own zone and waits for both; the leaves count 1.
 * @param {string} id The zone.
 * @param {string} corespun URL of the zone module.
 * @param {number} depth
 * @returns {Promise<number>}
 */
export async function treeSum(id, corespun, depth) {
  if (depth === 0) return 1
  const { zone } = await import(corespun)
  const halves = await Promise.all(
    [0, 1].map(() => zone.get(id).execute(import.meta.url, 'treeSum', [id, corespun, depth - 1])),
  )
  return halves[0].value + halves[1].value
}
