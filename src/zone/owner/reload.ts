/**
 * A zone's workers are replaced by new ones, one at a time, so that changed modules are loaded.
 *
 * A new thread is started and set up before the old worker is asked to leave. So a `setup` that fails leaves
 * the zone as it was, and the slot is free only until the new thread attaches. The old worker ends what it
 * has begun. Calls are accepted all the while: they wait in the zone's queue.
 */
import { Status, native } from '../../native/index.ts'
import { publish } from '../ground/events.ts'
import { type PreparedWorker, prepareWorker } from './prepare.ts'
import { type SpareWorker, dropSpares } from './spare.ts'
import type { WorkerStart, WorkerThread } from './thread.ts'

/** A zone of this owner, as far as its workers are replaced. */
export interface ReloadedZone {
  readonly workers: ReadonlyMap<number, ReloadedWorker>
  /** Slots of workers that the core has released. */
  readonly leaving: ReadonlySet<number>
  readonly closing: boolean
  spare: SpareWorker | undefined
  /** By slot. */
  readonly prepared: Map<number, PreparedWorker>
  /** All that have no slot, until they have ended. */
  readonly unseated: Set<PreparedWorker>
  /** Calls of `reload` that have not ended. */
  reloads: number
}

interface ReloadedWorker {
  readonly thread: WorkerThread
  readonly name: string
  reason: string
  exited: (() => void) | undefined
}

export interface ReloadOwner {
  /** `undefined` when the zone has ended, or has had no worker yet. */
  zoneOf(): ReloadedZone | undefined
  startOf(): Omit<WorkerStart, 'slot'> | undefined
  frame(error: Error): Uint8Array
  report(worker: string, error: unknown): void
}

const NO_BYTES = new Uint8Array(0)

/** New workers were asked for. A module may have changed since others have asked, and their reload began. */
export function reload(zoneNumber: number, owner: ReloadOwner): void {
  const zone = owner.zoneOf()
  // Without workers there is nothing to replace.
  if (zone === undefined) return native.zoneReloaded(zoneNumber, 1, Status.done, NO_BYTES)
  zone.reloads++
  if (zone.reloads === 1) void reloadAll(zoneNumber, owner, zone)
}

async function reloadAll(zoneNumber: number, owner: ReloadOwner, zone: ReloadedZone): Promise<void> {
  while (zone.reloads > 0) {
    const asked = zone.reloads
    const begunMs = performance.now()
    const id = owner.startOf()?.zoneId
    let workers = 0
    let failure: unknown
    let outcome: [status: number, error: Uint8Array] = [Status.done, NO_BYTES]
    // They may have loaded what `--import` names, or the setup.
    dropSpares(zone)
    try {
      for (const [slot, old] of [...zone.workers])
        if (await replace(zoneNumber, owner, zone, slot, old)) workers++
    } catch (error) {
      failure = error
      outcome = [Status.failed, owner.frame(error as Error)]
    }
    zone.reloads -= asked
    // Where the zone has ended its callers have returned, and another one may have its number.
    if (owner.zoneOf() !== zone) return
    native.zoneReloaded(zoneNumber, asked, ...outcome)
    const ms = performance.now() - begunMs
    if (id !== undefined) publish.zoneReloaded({ zone: id, workers, ms, error: failure })
  }
}

/**
 * Whether it was replaced here, and not meanwhile.
 * @throws {ZoneError} when a new worker cannot be set up; the old one stays.
 */
async function replace(
  zoneNumber: number,
  owner: ReloadOwner,
  zone: ReloadedZone,
  slot: number,
  old: ReloadedWorker,
): Promise<boolean> {
  const isPresent = (): boolean => zone.workers.get(slot) === old && !zone.leaving.has(slot) && !zone.closing
  const start = owner.startOf()
  if (start === undefined || !isPresent()) return false
  const report = (error: unknown): void => owner.report(old.name, error)
  const prepared = prepareWorker({ ...start, slot }, old.name, { unseated: zone.unseated, report })
  const failure = await prepared.done.then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  )
  // What has replaced it meanwhile is as new.
  if (!isPresent()) {
    prepared.retire()
    return false
  }
  if (failure !== undefined) throw failure.thrown
  zone.prepared.set(slot, prepared)
  const exited = new Promise<void>((resolve) => (old.exited = resolve))
  native.zoneRetire(zoneNumber, slot)
  const end = (): void => {
    if (zone.workers.get(slot) !== old) return
    old.reason = 'the zone was reloaded, and its task ran on for longer than closeMs'
    void old.thread.terminate()
  }
  // Where this thread was busy it has not read yet that the worker has left.
  const timer = setTimeout(() => setImmediate(end), start.settings.closeMs).unref()
  await exited
  clearTimeout(timer)
  return true
}
