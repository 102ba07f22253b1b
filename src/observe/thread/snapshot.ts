/**
 * The figures of the process, for who asks by its control socket.
 *
 * Of fleets the main thread reads, which has the connections; while it is busy the last look is shown.
 */
import { here } from '../../zone/internal.ts'
import { type FleetFigures, RecentLook } from '../figures/fleets.ts'
import { type Snapshot, snapshotOf } from '../figures/snapshot.ts'
import type { Method } from '../protocol.ts'

/**
 * @param fleets How many fleets the main thread shows.
 * @param look Asks it.
 */
export function snapshots(
  { name, actions, fleets }: { name: string; actions: readonly string[]; fleets: Int32Array },
  look: () => Promise<unknown>,
): Method {
  // What this thread is called among those that count.
  here.worker ??= 'observer'
  const recent = new RecentLook(look as () => Promise<FleetFigures>)
  return async (): Promise<Snapshot> => {
    const hasFleets = Atomics.load(fleets, 0) > 0
    return snapshotOf({ name, actions, fleet: hasFleets ? await recent.read() : undefined })
  }
}
