/**
 * The connections of this thread to fleets, and what waits in the queues of those.
 *
 * Other threads load this file by its URL and call its functions by their names, so it imports little.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { connectedFleets, meters } from '../base/index.ts'
import type { JobQueue, JobQueues } from './collect.ts'

/** Longest wait for the queues of a fleet: Prometheus waits 10 s for everything. */
export const QUEUES_MS_MAX = 2000

/** Where the connections of this thread lead. */
export function fleetsHere(): string[] {
  return [...new Set(meters.fleets.values())]
}

/** What waits in their queues. Those that do not reply are left out: all else is needed most then. */
export async function queuesOf(fleets: readonly JobQueues[]): Promise<JobQueue[]> {
  const late = (): Promise<JobQueue[]> => delay(QUEUES_MS_MAX, [], { ref: false })
  return all(await Promise.allSettled(fleets.map((fleet) => Promise.race([fleet.queues(), late()]))))
}

/** The same of the connections of this thread that lead there. */
export function queuesHere(where: readonly string[]): Promise<JobQueue[]> {
  return queuesOf(connectedFleets(where))
}

export function all(found: readonly PromiseSettledResult<readonly JobQueue[]>[]): JobQueue[] {
  return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
}
