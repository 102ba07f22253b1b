/**
 * What the test of the compile cache runs in a worker of the command: a module of the user's, which the
 * cache contains too.
 */
import module from 'node:module'

/** The folder of this thread's cache; null without one. */
export const cacheFolder = () => module.getCompileCacheDir?.() ?? null
