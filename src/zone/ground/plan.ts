/**
 * The settings of a new zone as the core receives them: the numbers that concern queues and workers.
 *
 * What concerns threads (heap, environment) stays in the settings' text, which the core keeps for the owner
 * and does not read.
 */
import { Plan } from '../../native/index.ts'
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
  const numbers = new Float64Array(Plan.numbers)
  numbers[Plan.steals] = settings.executor === 'work-stealing' ? 1 : 0
  numbers[Plan.blocks] = settings.executor === 'blocking' ? 1 : 0
  numbers[Plan.workers] = settings.workers
  numbers[Plan.workersMax] = settings.workersMax
  numbers[Plan.patienceUs] = settings.executor === 'fixed' ? PATIENCE_US : BLOCKED_PATIENCE_US
  numbers[Plan.tasksMax] = settings.tasksMax
  numbers[Plan.taskBytesMax] = settings.taskBytesMax
  numbers[Plan.queueBytesMax] = settings.queueBytesMax
  numbers[Plan.broadcastsMax] = settings.broadcastsMax
  numbers[Plan.tasksPerWorkerMax] = settings.tasksPerWorkerMax
  numbers[Plan.spinUs] = settings.spinUs
  numbers[Plan.waitingPerWorkerMax] = settings.waitingPerWorkerMax
  numbers[Plan.callDepthMax] = settings.callDepthMax
  numbers[Plan.tasksPerTenantMax] = settings.tasksPerTenantMax ?? Infinity
  numbers[Plan.workerTasksMax] = settings.workerTasksMax ?? Infinity
  return new Uint8Array(numbers.buffer)
}
