/**
 * The worker side of synckit.
 *
 * Runs only inside a worker thread.
 */
import { runAsWorker } from 'synckit'
import { WORK } from './work.ts'

runAsWorker((name: keyof typeof WORK, input: unknown) => WORK[name](input as never))
