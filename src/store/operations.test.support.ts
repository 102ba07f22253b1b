/**
 * The operations of a store, each alone: a thread of the tests does one of them without end, and is killed.
 *
 * As a worker's main module it does the operation that its workerData names, and counts its steps where the
 * test can see them.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { store, type Store } from './index.ts'

/** More than fits the memory through which calls go. */
const LARGE = 'x'.repeat(300_000)

/** Each uses the key `key`, which both threads of a pair use. */
export const OPERATIONS: Readonly<Record<string, (used: Store, step: number) => unknown>> = {
  set: (used, step) => used.set('key', step),
  'set, with a TTL': (used, step) => used.set('key', step, { ttlMs: 1 + (step % 3) }),
  'set, much': (used) => used.set('key', LARGE),
  'get, much': (used, step) => (step === 0 ? used.set('key', LARGE) : used.get('key')),
  get: (used, step) => (step === 0 ? used.set('key', step) : used.get('key')),
  view: (used, step) => (step % 8 === 0 ? used.set('key', step) : used.view('key')),
  has: (used, step) => (step === 0 ? used.set('key', step) : used.has('key')),
  delete: (used, step) => (step % 2 === 0 ? used.set('key', step) : used.delete('key')),
  compareAndSet: (used, step) => used.compareAndSet('key', used.get('key'), step),
  update: (used) => used.update('key', (old) => Number(old ?? 0) + 1),
  increment: (used) => used.increment('key'),
  getOrCompute: async (used, step) => {
    await used.getOrCompute('key', async () => step)
    used.delete('key')
  },
  watch: async (used, step) => {
    const watch = used.watch('key')
    used.set('key', step)
    await watch.next()
    await watch.return()
  },
  size: (used, step) => (used.set(`key ${step % 100}`, step), used.size),
  stats: (used, step) => (used.set(`key ${step % 100}`, step), used.stats()),
  clear: (used, step) => (used.set(`key ${step % 100}`, step), used.clear()),
  keys: (used, step) => (used.set(`key ${step % 100}`, step), [...used.keys()].length),
  entries: (used, step) => (used.set(`key ${step % 100}`, step), [...used.entries()].length),
  'getOrCreate, get, count, close': (used, step) => {
    const other = store.getOrCreate(`${used.id} beside`)
    try {
      store.get(other.id).set('key', step)
      if (store.count > 0) other.close()
    } catch (error) {
      const { code } = error as { code?: string }
      // The other thread closed it in between.
      if (code !== 'STORE_CLOSED' && code !== 'STORE_UNKNOWN') throw error
    }
  },
}

async function endlessly(operation: string, used: Store, steps: Int32Array): Promise<never> {
  const run = OPERATIONS[operation]
  for (let step = 0; ; step++) {
    const done = run(used, step)
    if (done instanceof Promise) await done
    Atomics.add(steps, 0, 1)
  }
}

if (!isMainThread && parentPort !== null) {
  const { operation, id, memory } = workerData as { operation: string; id: string; memory: SharedArrayBuffer }
  void endlessly(operation, store.get(id), new Int32Array(memory))
}
