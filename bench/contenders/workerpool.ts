/**
 * workerpool with fixed threads and a script of named methods.
 *
 * It also takes functions, as text with every call; that is its anonymous form.
 */
import { fileURLToPath } from 'node:url'
import { asItIs, type Contender, type Pool, type PoolSettings } from './contender.ts'

async function open({ threads }: PoolSettings): Promise<Pool> {
  const { default: workerpool } = await import('workerpool')
  const pool = workerpool.pool(fileURLToPath(new URL('./workerpool-thread.js', import.meta.url)), {
    minWorkers: threads,
    maxWorkers: threads,
    workerType: 'thread',
  })
  return {
    nothing: () => pool.exec('nothing'),
    anonymous: () => pool.exec(() => {}),
    call: (name, input) => pool.exec(name, [input]),
    valueOf: asItIs,
    close: async () => void (await pool.terminate(true)),
  }
}

export default {
  name: 'workerpool',
  package: 'workerpool',
  settings: 'threads, minWorkers = maxWorkers',
  open,
} satisfies Contender
