/**
 * What a zone has done and is doing, as the core counts it.
 *
 * Every task and every worker is counted once; of a task that is just being taken or ended, `waiting`,
 * `running` and `ended` may show both states for an instant, or neither. Times come from histograms with two
 * significant digits that the workers keep natively, one pair for each, so counting costs a task some ten
 * nanoseconds. Asking costs some microseconds for each worker: it is for now and then, not for every call.
 */
import type { RecordableHistogram } from 'node:perf_hooks'
import { COUNTS, native } from '../../native/index.ts'

/** Durations of all tasks since the zone was created or the worker started, in µs. */
export interface DurationStats {
  /** Tasks measured. */
  readonly count: number
  /** The arithmetic mean. */
  readonly mean: number
  /** The median. */
  readonly p50: number
  /** The 90th percentile. */
  readonly p90: number
  /** The 99th percentile. */
  readonly p99: number
  /** The 99.9th percentile. */
  readonly p999: number
  /** The longest one. */
  readonly max: number
}

/** The counts of one worker. */
export interface WorkerStats {
  /** Its name: the zone's, a slash, its slot. */
  readonly worker: string
  /**
   * Tasks that its own tasks forked and that have not started, in a zone that steals. Tasks in the zone's
   * queue belong to no worker yet; only the zone counts them.
   */
  readonly waiting: number
  /** Tasks started and not ended. */
  readonly running: number
  /** Tasks ended well. */
  readonly done: number
  /** Tasks whose function failed. */
  readonly failed: number
  /** Tasks taken from other workers. */
  readonly stolen: number
  /** Times it was woken. */
  readonly wakeUps: number
  /** The share of its uptime in which it had a task, 0 to 1. */
  readonly utilisation: number
  /** From acceptance to start, of the tasks that it started. */
  readonly waitUs: DurationStats
  /** From start to end, of those that have ended. */
  readonly runUs: DurationStats
}

/** The counts of a zone: see `AnyZone.stats`. */
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
  /**
   * Errors in workers that no caller of a task received: a rejection that nobody handled, or a throwing
   * timer, between tasks. See `Zone.onError`.
   */
  readonly errors: number
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
  readonly waitUs: DurationStats
  /** From start to end. */
  readonly runUs: DurationStats
  /** Each worker of this moment. */
  readonly byWorker: readonly WorkerStats[]
}

const TIMES = 7
const WORKER_NUMBERS = 8 + 2 * TIMES

export const NO_TIMES: DurationStats = { count: 0, mean: 0, p50: 0, p90: 0, p99: 0, p999: 0, max: 0 }

/** Running times and utilisation of `zone.node`. */
export class OwnTimes {
  readonly #madeMs = performance.now()
  #histogram: RecordableHistogram | undefined
  #busyMs = 0
  #busySinceMs = 0

  /** A task begins while `running` others run; returns the current time. */
  begun(running: number): number {
    const nowMs = performance.now()
    if (running === 0) this.#busySinceMs = nowMs
    return nowMs
  }

  ended(begunMs: number, running: number): void {
    const nowMs = performance.now()
    if (running === 0) this.#busyMs += nowMs - this.#busySinceMs
    this.#histogram ??= process.getBuiltinModule('node:perf_hooks').createHistogram({ figures: 2 })
    this.#histogram.record(Math.max(1, Math.round((nowMs - begunMs) * 1e6)))
  }

  /** The share of this object's lifetime in which a task ran; `running` run now. */
  utilisation(running: number): number {
    const nowMs = performance.now()
    const busyMs = this.#busyMs + (running > 0 ? nowMs - this.#busySinceMs : 0)
    return Math.min(1, busyMs / Math.max(nowMs - this.#madeMs, Number.MIN_VALUE))
  }

  now(): DurationStats {
    const histogram = this.#histogram
    if (histogram === undefined) return NO_TIMES
    const us = (ns: number): number => ns / 1000
    const at = (percent: number): number => us(histogram.percentile(percent))
    const { count, mean, max } = histogram
    const quantiles = { p50: at(50), p90: at(90), p99: at(99), p999: at(99.9) }
    return { count, mean: us(mean), ...quantiles, max: us(max) }
  }
}

export function statsOf(handle: number, zone: string): ZoneStats {
  const counts = new Float64Array(COUNTS)
  native.zoneCounts(handle, new Uint8Array(counts.buffer))
  const [waiting, waitingBytes, running, ended, died, wakeUps, workers, asleep, failed, stolen, errors] =
    counts as unknown as number[] as [number, ...number[]] & Record<number, number>
  const byWorker = workersOf(handle, zone)
  const used = byWorker.reduce((sum, worker) => sum + worker.utilisation, 0)
  const times = counts.length - 2 * TIMES
  return {
    waiting,
    waitingBytes,
    running,
    ended,
    done: ended - failed,
    failed,
    died,
    errors,
    stolen,
    wakeUps,
    workers,
    asleep,
    utilisation: byWorker.length === 0 ? 0 : used / byWorker.length,
    waitUs: timesOf(counts.subarray(times, times + TIMES)),
    runUs: timesOf(counts.subarray(times + TIMES)),
    byWorker,
  }
}

function timesOf(numbers: Float64Array): DurationStats {
  const [count, ...ns] = numbers as unknown as [number, ...number[]]
  const [mean, p50, p90, p99, p999, max] = ns.map((each) => each / 1000)
  return { count, mean, p50, p90, p99, p999, max }
}

function workersOf(handle: number, zone: string): WorkerStats[] {
  const numbers = new Float64Array(native.zoneWorkers(handle).buffer)
  return Array.from({ length: numbers.length / WORKER_NUMBERS }, (_, index) => {
    const row = numbers.subarray(index * WORKER_NUMBERS, (index + 1) * WORKER_NUMBERS)
    const [slot, waiting, running, ended, failed, stolen, wakeUps, utilisation] = row as unknown as number[]
    const done = ended - failed
    const times = WORKER_NUMBERS - 2 * TIMES
    const waitUs = timesOf(row.subarray(times, times + TIMES))
    const runUs = timesOf(row.subarray(times + TIMES))
    const counts = { waiting, running, done, failed, stolen, wakeUps, utilisation }
    return { worker: `${zone}/${slot}`, ...counts, waitUs, runUs }
  })
}
