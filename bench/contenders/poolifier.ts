/**
 * poolifier's FixedThreadPool, without statistics and without its task queue.
 *
 * Tasks go straight to the threads, which is its fastest for small tasks.
 */
import { fileURLToPath } from 'node:url'
import { asItIs, type Contender, type Pool, type PoolSettings } from './contender.ts'

/** Open a FixedThreadPool whose threads take turns, with these options. */
export async function openWith(threads: number, options: Readonly<Record<string, unknown>>): Promise<Pool> {
  const { FixedThreadPool } = await import('poolifier')
  const file = fileURLToPath(new URL('./poolifier-thread.js', import.meta.url))
  const pool = new FixedThreadPool(threads, file, { workerChoiceStrategy: 'ROUND_ROBIN', ...options })
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
  open: ({ threads }: PoolSettings) => openWith(threads, { enableEvents: false, enableTasksQueue: false }),
} satisfies Contender
