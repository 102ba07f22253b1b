/**
 * Preloaded into the program: writes each flag of V8 that it sets, and how many of its workers run by then,
 * since V8 has no way to read a flag.
 */
import { subscribe } from 'node:diagnostics_channel'
import v8 from 'node:v8'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  let startedCount = 0
  subscribe('corespun:worker:started', () => startedCount++)
  const { setFlagsFromString } = v8
  v8.setFlagsFromString = (flags) => {
    process._rawDebug(`flags: ${flags} before ${startedCount} workers`)
    setFlagsFromString(flags)
  }
}
