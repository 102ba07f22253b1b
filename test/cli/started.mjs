/**
 * Preloaded into the program: writes how many workers it has started, since only the program itself sees it.
 * With BROKEN_WORKERS its workers cannot start.
 */
import { subscribe } from 'node:diagnostics_channel'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  let startedCount = 0
  subscribe('corespun:worker:started', () => startedCount++)
  process.on('exit', () => process._rawDebug(`workers: ${startedCount}`))
} else if (process.env.BROKEN_WORKERS !== undefined) throw new Error('broken on purpose')
