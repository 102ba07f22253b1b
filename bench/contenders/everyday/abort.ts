/**
 * `node abort.js <contender> <rounds>`: how long a worker is lost to an aborted task that never returns.
 *
 * A pool of one worker runs an endless loop, the caller aborts it, and the pool's next task is awaited: the
 * loop has ended then. Prints the milliseconds of each round as JSON.
 */
import { Piscina } from 'piscina'
import { zone } from 'corespun'

interface Pool {
  spin(flag: Int32Array, signal: AbortSignal): Promise<unknown>
  next(a: number, b: number): Promise<unknown>
  close(): Promise<void>
}

const url = new URL('./endless.js', import.meta.url)
const POOLS: Readonly<Record<string, () => Pool>> = {
  corespun: () => {
    // As piscina does it: the worker is ended at once. By default a task has a second to end itself.
    const pool = zone.create('abort', { workers: 1, graceMs: 0 })
    return {
      spin: (flag, signal) => pool.execute(url, 'spin', [{ flag }], { signal }),
      next: async (a, b) => (await pool.execute(url, 'next', [{ a, b }])).value,
      close: () => pool.close(),
    }
  },
  piscina: () => {
    const pool = new Piscina({ filename: url.href, minThreads: 1, maxThreads: 1 })
    return {
      spin: (flag, signal) => pool.run({ flag }, { signal }),
      next: (a, b) => pool.run({ a, b }),
      close: () => pool.close(),
    }
  },
}

const [contender, rounds] = process.argv.slice(2) as [string, string]
const pool = POOLS[contender]()
const lostMs: number[] = []
await pool.next(0, 0)
for (let round = 0; round < Number(rounds); round += 1) {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const controller = new AbortController()
  const spun = pool.spin(flag, controller.signal).then(
    () => 'returned',
    () => 'aborted',
  )
  while (Atomics.load(flag, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  const startedMs = performance.now()
  controller.abort()
  const outcome = await spun
  const sum = await pool.next(round, 1)
  lostMs.push(performance.now() - startedMs)
  if (outcome !== 'aborted' || sum !== round + 1) throw new Error(`${contender}: ${outcome}, ${String(sum)}`)
}
await pool.close()
console.log(JSON.stringify(lostMs))
