/**
 * Preloaded into the commands of table `files`: writes the CPU of the whole process when it exits, in µs, to
 * the descriptor that the table reads.
 */
import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** The first one that a process does not have by itself. */
const DESCRIPTOR = 3

if (isMainThread) {
  process.on('exit', () => {
    const { user, system } = process.cpuUsage()
    writeSync(DESCRIPTOR, String(user + system))
  })
}
