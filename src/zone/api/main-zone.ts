/**
 * `zone.main`: the main thread as a zone.
 *
 * To all other threads its only worker is the main thread, which takes the tasks in its event loop, beside
 * its program. So queue, limits, cancellation and what becomes of calls when threads end are those of any
 * zone. It has no thread of its own, hence nothing can be closed, replaced or terminated; and the main
 * thread's loop ends with its program, whatever waits here. In the main thread itself functions are called on
 * the spot, as by `zone.node`.
 */
import { ONLY_TIMEOUT, optionsOf } from './arguments.ts'
import { MAIN_ID, NodeZone } from './node-zone.ts'
import type { ZoneOptions } from '../ground/settings.ts'
import { WorkerZone } from './worker-zone.ts'
import { ZoneError } from '../errors.ts'

/** Tasks that run in the main thread at the same time, most of them waiting for I/O. */
const TASKS_AT_ONCE = 1024
/** Tasks that wait. A main thread that is blocked for long must not collect a million, the default. */
const TASKS_MAX = 65_536

export const MAIN_OPTIONS: ZoneOptions = { workers: 1, tasksMax: TASKS_MAX, tasksPerWorkerMax: TASKS_AT_ONCE }

/** The main thread, seen from another one. */
export class MainZone extends WorkerZone {
  /** Does nothing: the main thread cannot be closed. */
  override async close(options?: { readonly timeoutMs?: number | undefined }): Promise<void> {
    optionsOf('zone.close()', options, ONLY_TIMEOUT)
  }

  override reload(): Promise<void> {
    return Promise.reject(
      new ZoneError('ZONE_DEADLOCK', { zone: this.id, call: 'reload() of the main thread' }),
    )
  }
}

/** The main thread, seen from itself. */
export class MainNodeZone extends NodeZone {
  constructor() {
    super(MAIN_ID)
  }
}
