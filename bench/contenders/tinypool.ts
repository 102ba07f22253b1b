/**
 * tinypool with fixed threads, Atomics and 16 tasks in flight per thread.
 *
 * The same corner as piscina's best, of which it is a fork.
 */
import { asItIs, type Contender, type Pool, type PoolSettings } from './contender.ts'

async function open({ threads }: PoolSettings): Promise<Pool> {
  const { default: Tinypool } = await import('tinypool')
  const pool = new Tinypool({
    filename: new URL('./work.js', import.meta.url).href,
    minThreads: threads,
    maxThreads: threads,
    isolateWorkers: false,
    concurrentTasksPerWorker: 16,
  })
  const named = { name: 'nothing' }
  return {
    nothing: () => pool.run(undefined, named),
    call: (name, input) => pool.run(input, { name }),
    valueOf: asItIs,
    close: () => pool.destroy(),
  }
}

export default {
  name: 'tinypool',
  package: 'tinypool',
  settings: 'concurrentTasksPerWorker 16, atomics, fixed threads',
  open,
} satisfies Contender
