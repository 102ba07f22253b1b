/**
 * What the core is told of a zone that is made: its settings as the numbers that concern queues and workers.
 *
 * The order is the one of `zoneMake` in crates/node/src/zones.rs. What concerns threads (heap, environment)
 * stays in the settings' text, which the core keeps for the owner and does not read.
 */
import type { Settings } from '../api/settings.ts'

/**
 * How long the oldest task waits before another worker is started, in µs. A worker takes tens of milliseconds
 * to start, so a zone whose tasks end sooner should not grow; one that is blocked should not wait long.
 */
const PATIENCE_US = 2000

/** The numbers of a zone's plan, as bytes, and how many there are. */
export function planOf(settings: Settings): [Uint8Array, number] {
  const numbers = Float64Array.of(
    settings.executor === 'work-stealing' ? 1 : 0,
    settings.executor === 'blocking' ? 1 : 0,
    settings.workers,
    settings.workersMax,
    PATIENCE_US,
    settings.tasksMax,
    settings.taskBytesMax,
    settings.queueBytesMax,
    settings.broadcastsMax,
    settings.tasksPerWorkerMax,
    settings.spinUs,
    settings.waitingPerWorkerMax,
    settings.callDepthMax,
  )
  return [new Uint8Array(numbers.buffer), numbers.length]
}
