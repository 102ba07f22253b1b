/**
 * The worker side of workerpool in table `start`.
 *
 * Runs only inside a worker thread.
 */
import workerpool from 'workerpool'
import double from './task.ts'

workerpool.worker({ double })
