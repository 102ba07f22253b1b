/**
 * The figures of the process, for who asks by its control socket.
 *
 * Of fleets the main thread reads, which has the connections; while it is busy the last look is shown.
 */
import { here } from '../../zone/internal.ts'
import { type FleetFigures, RecentLook } from '../figures/fleets.ts'
import { type Snapshot, snapshotOf } from '../figures/snapshot.ts'
import type { Method } from '../protocol.ts'

/** @param look Asks the main thread; `undefined` where the process has no fleets to show. */
export function snapshots(
  name: string,
  actions: readonly string[],
  look: (() => Promise<unknown>) | undefined,
): Method {
  // What this thread is called among those that count.
  here.worker ??= 'observer'
  const recent = look && new RecentLook(look as () => Promise<FleetFigures>)
  return async (): Promise<Snapshot> => snapshotOf({ name, actions, fleet: await recent?.read() })
}
