/**
 * Which kind of zone a value is: for the other modules of the package, which take an `AnyZone`.
 *
 * A view counts as the zone that it is of, with its limits.
 */
import type { AnyZone, Zone } from './any-zone.ts'
import { type LimitableZone, LimitedZone } from './limited-zone.ts'
import { MainZone } from './main-zone.ts'
import { NodeZone } from './node-zone.ts'
import { WorkerZone } from './worker-zone.ts'

/** A zone whose calls can be begun without a promise. */
export type RemoteZone = AnyZone & Pick<LimitableZone, 'begin'>

export function isZone(value: unknown): value is RemoteZone {
  return value instanceof WorkerZone || value instanceof NodeZone || value instanceof LimitedZone
}

export function isThisThread(zone: AnyZone): boolean {
  return (zone instanceof LimitedZone ? zone.zone : zone) instanceof NodeZone
}

/** Whether it is a view with limits of its own. */
export function isLimited(zone: AnyZone): boolean {
  return zone instanceof LimitedZone
}

/** The zone of workers that `value` is, or is a view of. */
export function workerZoneOf(value: unknown): Zone | undefined {
  const zone = value instanceof LimitedZone ? value.zone : value
  return zone instanceof WorkerZone && !(zone instanceof MainZone) ? zone : undefined
}
