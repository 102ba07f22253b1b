/**
 * What the line of kills.mjs must contain: enough workers died, each promise ended as it may, nothing is left
 * and, where the process's memory is its own, it does not grow once it has warmed up.
 */

/** Growth of the process between the first and the last rounds that is noise: V8 keeps what it had. */
const GROWTH_MB_MAX = 60

/**
 * What is wrong with a run; empty when nothing is.
 *
 * @param {{ died: number, wrong: string[], left: Record<string, number>, rss: number[] }} result
 * @param {number} kills
 * @param {{ memory: boolean }} looksAt
 * @returns {string[]}
 */
export function faultsOf({ died, wrong, left, rss }, kills, { memory }) {
  const faults = [...wrong]
  if (died < kills) faults.push(`${died} workers died, not ${kills}`)
  for (const [what, count] of Object.entries(left)) if (count !== 0) faults.push(`${count} ${what} left`)
  const [least, most] = [Math.min(...rss.slice(-3)), Math.max(...rss.slice(0, 3))]
  if (memory && least >= most + GROWTH_MB_MAX) faults.push(`memory grew from ${most} to ${least} MB`)
  return faults
}
