/**
 * Workers that others replace for what they have done: after so many tasks, or at a limit of their heap.
 *
 * The next worker is started and set up before it is needed, as for `reload`, and has the slot's number. The
 * core counts tasks, and has the worker leave after the last one; a worker measures its heap between tasks,
 * and leaves when the next one is ready. One that leaves earlier is followed by the thread that was started,
 * even if that is not set up yet.
 */
import { native } from '../../native/index.ts'
import { type PreparedWorker, prepareWorker } from './prepare.ts'
import type { ReloadOwner, ReloadedZone } from './reload.ts'

/** A worker's message to its owner: it uses more of its heap than `workers.heapMb`. */
export interface HeapNote {
  readonly corespunHeapFull: true
}

/** A worker begins the last of its tasks: start the next one. A start that fails is repeated when due. */
export function prepareNext(slot: number, owner: ReloadOwner, zone: ReloadedZone): void {
  prepare(slot, owner, zone)
}

/** A worker uses too much of its heap: it leaves for another one, once that is set up. */
export async function recycle(
  zoneNumber: number,
  slot: number,
  owner: ReloadOwner,
  zone: ReloadedZone,
): Promise<void> {
  const worker = zone.workers.get(slot)
  const prepared = prepare(slot, owner, zone)
  if (prepared === undefined) return
  // If it cannot be set up the worker stays, and asks again.
  await prepared.done.catch(() => {})
  // Otherwise it has ended meanwhile, or a reload replaces it.
  if (zone.workers.get(slot) === worker && zone.prepared.get(slot) === prepared)
    native.zoneRetire(zoneNumber, slot)
}

/** The successor of that worker; `undefined` where it gets none. */
function prepare(slot: number, owner: ReloadOwner, zone: ReloadedZone): PreparedWorker | undefined {
  const worker = zone.workers.get(slot)
  const start = owner.startOf()
  const isStaying = worker !== undefined && !zone.leaving.has(slot) && !zone.closing && zone.reloads === 0
  if (!isStaying || start === undefined || native.zoneClosing(start.zoneNumber) === 1) return undefined
  const earlier = zone.prepared.get(slot)
  if (earlier !== undefined) return earlier
  const { name } = worker
  const report = (error: unknown): void => owner.report(name, error)
  const prepared = prepareWorker({ ...start, slot }, name, { unseated: zone.unseated, report })
  zone.prepared.set(slot, prepared)
  prepared.done.catch(() => {
    if (zone.prepared.get(slot) === prepared) zone.prepared.delete(slot)
  })
  return prepared
}
