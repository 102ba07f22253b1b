/**
 * The worker side of workerpool.
 *
 * Runs only inside a worker thread.
 */
import workerpool from 'workerpool'
import { WORK } from './work.ts'

workerpool.worker({ ...WORK })
