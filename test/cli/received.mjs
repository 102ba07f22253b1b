/**
 * Imported by `corespun` before it starts: writes each signal to stderr when the program receives it, so that
 * tests can wait for that. HEARD_TWICE repeats the first one at once, as npm does by handing it on. What is
 * sent after it was received comes a second later by the program's clock: too late to be such an echo.
 */
import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  let repeats = process.env.HEARD_TWICE === '1'
  let laterMs = 0
  const now = performance.now.bind(performance)
  performance.now = () => now() + laterMs
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      // When the program's own listeners have run.
      queueMicrotask(() => {
        laterMs += 1000
        writeSync(2, `received ${signal}\n`)
      })
      if (repeats) {
        repeats = false
        process.emit(signal, signal)
      }
    })
  }
}
