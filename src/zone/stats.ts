/**
 * What a zone has done and is doing, as the core counts it.
 *
 * Every task and every worker is counted once; of a task that is just being taken or ended, `waiting`,
 * `running` and `ended` may show both states for an instant, or neither. Times come from histograms with two
 * significant digits that the workers keep natively, so asking is cheap and counting costs a task some ten
 * nanoseconds.
 */
import { COUNTS, native } from '../native/index.ts'

/** How long something took, over all tasks since the zone was made; in µs. */
export interface Times {
  /** Tasks measured. */
  readonly count: number
  readonly mean: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

/** What one worker has done and is doing. */
export interface WorkerStats {
  /** Its name: the zone's, a slash, its slot. */
  readonly worker: string
  /** Tasks started and not ended. */
  readonly running: number
  /** Tasks ended well. */
  readonly done: number
  /** Tasks whose function failed. */
  readonly failed: number
  /** Tasks taken from other workers. */
  readonly stolen: number
  /** The share of its life in which it had a task, 0 to 1. */
  readonly utilisation: number
}

/** What a zone has done and is doing. */
export interface ZoneStats {
  /** Tasks accepted and not started. */
  readonly waiting: number
  /** Bytes of their arguments, and of the memory that moves with them. */
  readonly waitingBytes: number
  /** Tasks started and not ended. */
  readonly running: number
  /** Tasks ended by workers, well or not: `done` and `failed` together. */
  readonly ended: number
  /** Tasks ended well. */
  readonly done: number
  /** Tasks whose function failed. */
  readonly failed: number
  /** Tasks lost with their workers. */
  readonly died: number
  /** Tasks taken by a worker from what another's tasks had forked. */
  readonly stolen: number
  /** Times a sleeping worker was woken. */
  readonly wakeUps: number
  /** Workers now, those that are starting included. */
  readonly workers: number
  /** Workers asleep now. */
  readonly asleep: number
  /** The mean of the workers' utilisation, 0 to 1. */
  readonly utilisation: number
  /** From acceptance to start. */
  readonly waitUs: Times
  /** From start to end. */
  readonly runUs: Times
  /** Each worker of this moment. */
  readonly byWorker: readonly WorkerStats[]
}

const TIMES = 7
const WORKER_NUMBERS = 6

/** No task was measured. */
export const NO_TIMES: Times = { count: 0, mean: 0, p50: 0, p90: 0, p99: 0, p999: 0, max: 0 }

/** Ask the core about the zone with that handle and name. */
export function statsOf(handle: number, zone: string): ZoneStats {
  const counts = new Float64Array(COUNTS)
  native.zoneCounts(handle, new Uint8Array(counts.buffer))
  const [waiting, waitingBytes, running, ended, died, wakeUps, workers, asleep, failed, stolen] =
    counts as unknown as number[] as [number, ...number[]] & Record<number, number>
  const byWorker = workersOf(handle, zone)
  const used = byWorker.reduce((sum, worker) => sum + worker.utilisation, 0)
  const times = counts.length - 2 * TIMES
  return {
    waiting,
    waitingBytes,
    running,
    ended,
    done: (ended as number) - (failed as number),
    failed,
    died,
    stolen,
    wakeUps,
    workers,
    asleep,
    utilisation: byWorker.length === 0 ? 0 : used / byWorker.length,
    waitUs: timesOf(counts.subarray(times, times + TIMES)),
    runUs: timesOf(counts.subarray(times + TIMES)),
    byWorker,
  } as ZoneStats
}

function timesOf(numbers: Float64Array): Times {
  const [count, ...ns] = numbers as unknown as [number, ...number[]]
  const [mean, p50, p90, p99, p999, max] = ns.map((each) => each / 1000) as number[]
  return { count, mean, p50, p90, p99, p999, max } as Times
}

function workersOf(handle: number, zone: string): WorkerStats[] {
  const numbers = new Float64Array(native.zoneWorkers(handle).buffer)
  return Array.from({ length: numbers.length / WORKER_NUMBERS }, (_, index) => {
    const row = numbers.subarray(index * WORKER_NUMBERS, (index + 1) * WORKER_NUMBERS)
    const [slot, running, ended, failed, stolen, utilisation] = row as unknown as number[]
    const done = (ended as number) - (failed as number)
    return { worker: `${zone}/${slot}`, running, done, failed, stolen, utilisation } as WorkerStats
  })
}
