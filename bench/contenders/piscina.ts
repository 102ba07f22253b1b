/**
 * piscina at its best settings for small tasks: 16 tasks in flight per thread, its fixed queue, no histogram.
 *
 * Threads are fixed so that none starts or ends inside a measurement. Atomics stay 'sync', its default, which
 * is its fastest; piscina-default.ts and piscina-no-atomics.ts show the other corners.
 */
import { asItIs, type Contender, type Pool, type PoolSettings } from './contender.ts'

/** The corner of piscina's settings that one contender takes. */
export interface PiscinaCorner {
  readonly concurrentTasksPerWorker?: number
  readonly atomics?: 'sync' | 'disabled'
  readonly tuned: boolean
}

/** Open piscina in a corner of its settings. */
export async function openPiscina({ threads }: PoolSettings, corner: PiscinaCorner): Promise<Pool> {
  const { Piscina, FixedQueue } = await import('piscina')
  const { tuned, ...options } = corner
  const pool = new Piscina({
    filename: new URL('./work.js', import.meta.url).href,
    minThreads: threads,
    maxThreads: threads,
    ...options,
    ...(tuned ? { recordTiming: false, taskQueue: new FixedQueue() } : {}),
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
  name: 'piscina',
  package: 'piscina',
  settings: 'concurrentTasksPerWorker 16, atomics sync, FixedQueue, recordTiming false, fixed threads',
  open: (settings) => openPiscina(settings, { concurrentTasksPerWorker: 16, atomics: 'sync', tuned: true }),
} satisfies Contender
