/**
 * The file that the thread of a worker begins with, and Node's compile cache in it.
 *
 * Imports nothing of Corespun: `early.ts` needs it before anything else is loaded.
 */
import { dirname } from 'node:path'

export interface MainFile {
  readonly file: URL
  /** In the start data of the thread: what {@link file} calls `enableCompileCache` with. */
  readonly cacheFolder: string | undefined
}

/** The folder that `enableCompileCache` was called with in this thread. Node 20 lacks the function. */
export function compileCacheFolder(): string | undefined {
  const { getCompileCacheDir }: Partial<typeof import('node:module')> =
    process.getBuiltinModule('node:module')
  // What Node returns is a folder for this Node in the one that was given.
  const folder = getCompileCacheDir?.()
  return folder === undefined ? undefined : dirname(folder)
}

/** With the compile cache where this thread has it: Node turns it on for one thread at a time. */
export function mainFile(): MainFile {
  const cacheFolder = compileCacheFolder()
  return cacheFolder === undefined
    ? { file: new URL('../worker/worker.js', import.meta.url), cacheFolder }
    : { file: new URL('../worker/cached.js', import.meta.url), cacheFolder }
}
