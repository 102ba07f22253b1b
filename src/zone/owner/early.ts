/**
 * A worker that a program starts before it has loaded the zones that the worker is for.
 *
 * A thread takes some 40 ms until it runs its first line. A command that will need one starts it first, and
 * loads its own modules meanwhile. So this file imports nothing that takes time.
 */
import { mainFile } from './main-file.ts'
import { SpareWorker } from './spare.ts'

let early: SpareWorker | undefined

/** Start the thread. Where that fails, the zone that would have taken it starts its own and reports why. */
export function startEarly(name: string): void {
  try {
    const { Worker } = process.getBuiltinModule('node:worker_threads')
    const { file, cacheFolder } = mainFile()
    early = new SpareWorker(
      (slots) =>
        new Worker(file, { name, workerData: { corespun: { slots, cacheFolder } }, transferList: [slots] }),
    )
  } catch {
    // As above.
  }
}

/** The thread that {@link startEarly} has started, once; `undefined` without one. */
export function takeEarly(): SpareWorker | undefined {
  const taken = early
  early = undefined
  return taken
}
