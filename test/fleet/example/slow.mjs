/**
 * The work of the example, slow enough that a fault meets jobs while they run.
 *
 * It is noted before it waits: a job whose host is cut off is known to have begun there.
 */
import { setTimeout } from 'node:timers/promises'
import { currentTask } from 'corespun/zone'
import { invoice as quick } from '../../../examples/fleet/work.ts'

export { centsOf } from '../../../examples/fleet/work.ts'

const SLOW_MS = 1000

/** @param {number} id */
export async function invoice(id) {
  const made = quick(id)
  await setTimeout(SLOW_MS)
  return made
}

/** Ends early when it is cancelled or late. @param {number} ms */
export async function pause(ms) {
  await setTimeout(ms, undefined, { signal: currentTask()?.signal })
  return ms
}
