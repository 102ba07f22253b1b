/**
 * How many tasks a zone runs at once, as far as a host needs it.
 *
 * A host takes no more jobs than its zone can begin: what waits here is out of reach of hosts that are idle.
 */
import { cores } from '../../base/index.ts'
import type { AnyZone } from '../../zone/index.ts'
import { workerZoneOf } from '../../zone/internal.ts'

/** How many tasks each worker of a zone with one per core has to run at once, for `jobsMax` jobs. */
export const tasksPerWorker = (jobsMax: number): number => Math.max(1, Math.ceil(jobsMax / cores()))

/** How many tasks it begins without one having to wait; `Infinity` where they share a thread. */
export function capacityOf(zone: AnyZone): number {
  const settings = workerZoneOf(zone)?.settings
  if (settings === undefined) return Infinity
  return Math.max(settings.workers, settings.workersMax) * settings.tasksPerWorkerMax
}

/** Whether its workers report to this process. */
export const isOutside = (zone: AnyZone): boolean => workerZoneOf(zone)?.settings.isolation === 'process'
