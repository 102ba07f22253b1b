/**
 * poolifier's FixedThreadPool, without statistics and without its task queue.
 *
 * Tasks go straight to the threads, which is its fastest for small tasks.
 */
import { fileURLToPath } from 'node:url'
import { asItIs, type Contender, type Pool, type PoolSettings } from './contender.ts'

async function open({ threads }: PoolSettings): Promise<Pool> {
  const { FixedThreadPool } = await import('poolifier')
  const pool = new FixedThreadPool(
    threads,
    fileURLToPath(new URL('./poolifier-thread.js', import.meta.url)),
    {
      enableEvents: false,
      enableTasksQueue: false,
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
  name: 'poolifier',
  package: 'poolifier',
  settings: 'FixedThreadPool, round robin, no events, no queue',
  open,
} satisfies Contender
