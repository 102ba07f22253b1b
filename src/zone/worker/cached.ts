/**
 * The main module of a worker whose owner has Node's compile cache: turns it on here too, then loads the
 * worker.
 *
 * Node turns the cache on for one thread at a time. What a module imports statically is compiled before it
 * runs, so this one imports nothing of Corespun.
 */
import { enableCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'

enableCompileCache((workerData as { corespun: { cacheFolder: string } }).corespun.cacheFolder)
void import('./worker.ts')
