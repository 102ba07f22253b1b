/**
 * What each thread loads by its URL once the process counts (src/bridge/bridge.ts).
 *
 * Apart from the door, so that threads do not load what shows the figures of all.
 */
import { countProcesses } from './processes.ts'
import { countThread } from './thread.ts'

/** Observe this thread; once. */
export function countHere(): void {
  const sheet = countThread()
  if (sheet !== undefined) countProcesses(sheet)
}
