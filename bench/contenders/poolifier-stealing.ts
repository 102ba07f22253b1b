/**
 * poolifier's FixedThreadPool with its task queue and its task stealing.
 *
 * The queue is what it steals from; events stay on, since its stealing is made of them.
 */
import { fileURLToPath } from 'node:url'
import { asItIs, type Contender, type Pool, type PoolSettings } from './contender.ts'

async function open({ threads }: PoolSettings): Promise<Pool> {
  const { FixedThreadPool } = await import('poolifier')
  const pool = new FixedThreadPool(
    threads,
    fileURLToPath(new URL('./poolifier-thread.js', import.meta.url)),
    {
      enableTasksQueue: true,
      tasksQueueOptions: {
        concurrency: 1,
        taskStealing: true,
        tasksStealingOnBackPressure: true,
      },
      workerChoiceStrategy: 'ROUND_ROBIN',
    },
  )
  return {
    nothing: () => pool.execute(undefined, 'nothing'),
    call: (name, input) => pool.execute(input, name),
    valueOf: asItIs,
    close: () => pool.destroy(),
  }
}

export default {
  name: 'poolifier-stealing',
  package: 'poolifier',
  settings: 'FixedThreadPool, round robin, task queue of 1 per thread, task stealing',
  open,
} satisfies Contender
