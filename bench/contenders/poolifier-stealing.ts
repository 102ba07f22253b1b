/**
 * poolifier's FixedThreadPool with its task queue and its task stealing, both as they are by default.
 *
 * The queue is what it steals from; events stay on, since its stealing is made of them.
 */
import type { Contender, PoolSettings } from './contender.ts'
import { openWith } from './poolifier.ts'

export default {
  name: 'poolifier-stealing',
  package: 'poolifier',
  settings: 'FixedThreadPool, round robin, task queue of 1 per thread, task stealing',
  open: ({ threads }: PoolSettings) => openWith(threads, { enableTasksQueue: true }),
} satisfies Contender
