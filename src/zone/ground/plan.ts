/**
 * The settings of a new zone as the core receives them: the numbers that concern queues and workers.
 *
 * What concerns threads (heap, environment) stays in the settings' text, which the core keeps for the owner
 * and does not read.
 */
import { Plan, doublesOf } from '../../native/index.ts'
import type { ZoneSettings } from './settings.ts'

/**
 * How long the oldest task waits before another worker is started, in µs. A worker takes tens of milliseconds
 * to start, most of them on a core, so a zone whose tasks compute and end sooner should not grow; one that is
 * blocked should not wait long.
 */
const PATIENCE_US = 10_000
const BLOCKED_PATIENCE_US = 2000

/** The numbers of a zone's plan, as bytes. */
export function planOf(settings: ZoneSettings): Uint8Array {
  const { executor, tasksPerTenantMax, workerTasksMax } = settings
  return doublesOf(Plan, {
    ...settings,
    steals: executor === 'work-stealing' ? 1 : 0,
    blocks: executor === 'blocking' ? 1 : 0,
    patienceUs: executor === 'fixed' ? PATIENCE_US : BLOCKED_PATIENCE_US,
    tasksPerTenantMax: tasksPerTenantMax ?? Infinity,
    workerTasksMax: workerTasksMax ?? Infinity,
  })
}
