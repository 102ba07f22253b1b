/**
 * The worker side of bare `postMessage` in table `start`.
 *
 * Runs only inside a worker thread.
 */
import { parentPort } from 'node:worker_threads'
import double from './task.ts'

parentPort!.on('message', (value: number) => parentPort!.postMessage(double(value)))
