/**
 * `node pool.js <contender> <workers>`: imports a pool, starts it with that many workers, and runs tasks.
 *
 * Prints as JSON the first result, the milliseconds from the start of the process until it was there and the
 * CPU that they took, and the memory of the process once all workers have run tasks. Pools are imported on
 * demand, so that each process loads one.
 */
import { setTimeout as delay } from 'node:timers/promises'

interface Pool {
  run(value: number): Promise<number>
  close(): Promise<unknown>
}

/** Tasks for each worker before memory is read: enough that none stays without one. */
const TASKS_PER_WORKER = 50
/** Threads that are still starting, and freed memory, settle in that time. */
const SETTLE_MS = 300

const file = (name: string): URL => new URL(`./${name}.js`, import.meta.url)

const POOLS: Readonly<Record<string, (workers: number) => Promise<Pool>>> = {
  'corespun/zone': async (workers) => {
    const { zone } = await import('corespun/zone')
    const pool = zone.create('start', { workers })
    const { default: run } = pool.module<typeof import('./task.ts')>(file('task').href)
    return { run: async (value) => run(value), close: () => pool.close() }
  },
  corespun: async (workers) => {
    const { zone } = await import('corespun')
    const pool = zone.create('start', { workers })
    const { default: run } = pool.module<typeof import('./task.ts')>(file('task').href)
    return { run: async (value) => run(value), close: () => pool.close() }
  },
  piscina: async (workers) => {
    const { Piscina } = await import('piscina')
    const pool = new Piscina({ filename: file('task').href, minThreads: workers, maxThreads: workers })
    return { run: (value) => pool.run(value) as Promise<number>, close: () => pool.close() }
  },
  tinypool: async (workers) => {
    const { default: Tinypool } = await import('tinypool')
    const pool = new Tinypool({ filename: file('task').href, minThreads: workers, maxThreads: workers })
    return { run: (value) => pool.run(value) as Promise<number>, close: () => pool.destroy() }
  },
  workerpool: async (workers) => {
    const { default: workerpool } = await import('workerpool')
    const options = { workerType: 'thread', minWorkers: workers, maxWorkers: workers } as const
    const pool = workerpool.pool(file('workerpool-thread').pathname, options)
    return {
      run: async (value) => (await pool.exec('double', [value])) as number,
      close: async () => pool.terminate(),
    }
  },
  'raw Worker': async (workers) => {
    const { Worker } = await import('node:worker_threads')
    const threads = Array.from({ length: workers }, () => new Worker(file('raw-thread')))
    let next = 0
    return {
      run: (value) =>
        new Promise((resolve, reject) => {
          const thread = threads[next++ % workers]
          thread.once('message', resolve).once('error', reject)
          thread.postMessage(value)
        }),
      close: () => Promise.all(threads.map((thread) => thread.terminate())),
    }
  },
}

const [contender, workers] = process.argv.slice(2) as [string, string]
const pool = await POOLS[contender](Number(workers))
const answer = await pool.run(21)
const firstMs = performance.now()
const { user, system } = process.cpuUsage()
for (let round = 0; round < TASKS_PER_WORKER; round += 1) {
  const values = Array.from({ length: Number(workers) }, (_, at) => at)
  const results = await Promise.all(values.map((value) => pool.run(value)))
  if (results.some((result, at) => result !== at * 2)) throw new Error(`${contender}: ${results.join()}`)
}
await delay(SETTLE_MS)
const rssMb = process.memoryUsage.rss() / 1e6
console.log(JSON.stringify({ answer, firstMs, cpuMs: (user + system) / 1000, rssMb }))
await pool.close()
