/**
 * Starts a worker: a thread, or a process where the zone is isolated so.
 *
 * Apart from both, which do not import each other.
 */
import type { ZoneSettings } from '../api/settings.ts'
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
