/**
 * The worker side of poolifier.
 *
 * Runs only inside a worker thread.
 */
import { ThreadWorker } from 'poolifier'
import { WORK } from './work.ts'

export default new ThreadWorker({ ...WORK }, { maxInactiveTime: 2 ** 31 - 1 })
