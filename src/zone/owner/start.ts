/**
 * Starts a worker: a thread, or a process where the zone is isolated so; and what is due when it is ready.
 *
 * Apart from both, which do not import each other.
 */
import { native } from '../../native/index.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import { publish } from '../ground/events.ts'
import { startProcess } from './process.ts'
import { type SpareStart, type WorkerStart, type WorkerThread, startThread } from './thread.ts'

/** Start a worker with the options that `settings` has for it. @throws what Node refuses. */
export function startWorker(
  data: WorkerStart | SpareStart,
  name: string,
  settings: ZoneSettings,
): WorkerThread {
  return settings.isolation === 'process' ? startProcess(data, settings) : startThread(data, name, settings)
}

/** Where returning memory takes longer, the program has many freed blocks, and it is not done again. */
const TRIM_NS_MAX = 5_000_000n
let isQuick = true

function trim(): void {
  if (!isQuick) return
  // The clock that needs no module: a thread that reads `performance` first loads 13 of Node's.
  const begun = process.hrtime.bigint()
  native.memoryTrim()
  isQuick = process.hrtime.bigint() - begun < TRIM_NS_MAX
}

/**
 * A worker is ready, one of `workers`. V8 has freed what it compiled their modules with, and glibc keeps that
 * for each thread: 0.8 MB, which the last of them has returned to the system, behind the tasks that wait.
 */
export function becameReady(name: string, workers: Iterable<{ readonly ready: boolean }>): void {
  publish.workerReady(name)
  for (const { ready } of workers) if (!ready) return
  setImmediate(trim)
}
