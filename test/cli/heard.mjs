/**
 * Imported by `skein` before it starts: writes each signal to stderr when the program hears it, for tests
 * that go on from there. HEARD_TWICE repeats the first one at once, as npm does by handing it on.
 */
import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  let repeats = process.env.HEARD_TWICE === '1'
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      queueMicrotask(() => writeSync(2, `heard ${signal}\n`)) // when the program's own listeners have run
      if (repeats) {
        repeats = false
        process.emit(signal, signal)
      }
    })
  }
}
