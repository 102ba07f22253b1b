/**
 * The worker side of bare `postMessage`.
 *
 * Runs only inside a worker thread.
 */
import { parentPort } from 'node:worker_threads'
import type { Ask } from './pools.ts'
import { WORK } from './work.ts'

parentPort!.on('message', ({ id, name, input }: Ask) => {
  parentPort!.postMessage({ id, value: WORK[name](input as never) })
})
