/**
 * `node main.js <contender> <kind> <count> <folder>`: one contender of table `files` over all its items.
 *
 * Prints the seconds and the CPU from the opening of the pool to the last value, and a digest of all values
 * in order. Each contender calls the same function of a module.
 */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import measure from '../everyday/parse.js'
import { type Item, itemsOf, spin } from './items.ts'

/** What a process prints. */
export interface Printed {
  readonly seconds: number
  /** Of the whole process, for each item. */
  readonly cpuUs: number
  readonly digest: string
}

const WORKERS = 2
/** Of the hand-made pool: what people write. */
const CHUNK = 25
/** Tasks that a worker of the pools is sent ahead, so that it waits for none: a tenth less CPU. */
const AT_ONCE = 16

type Mapping = (items: readonly unknown[], isFiles: boolean) => Promise<unknown[]>

const parsing = new URL('../everyday/parse.js', import.meta.url)
const spinning = new URL('./items.js', import.meta.url)
const moduleOf = (isFiles: boolean) => ({
  module: (isFiles ? parsing : spinning).href,
  name: isFiles ? 'default' : 'spin',
})

const MAPPINGS: Readonly<Record<string, Mapping>> = {
  'plain loop': async (items, isFiles) =>
    items.map((item) => (isFiles ? measure(item as string) : spin(item as Item))),
  corespun: async (items, isFiles) => {
    const { zone } = await import('corespun/zone')
    const own = zone.create('files', { workers: WORKERS })
    const parsed = async (path: string): Promise<unknown> =>
      (await import('../everyday/parse.js')).default(path)
    return isFiles ? await own.map(items as string[], parsed) : await own.map(items as Item[], spin)
  },
  'chunks by hand': chunksByHand,
  piscina: async (items, isFiles) => {
    const { module, name } = moduleOf(isFiles)
    const { Piscina, FixedQueue } = await import('piscina')
    const fixed = { filename: module, minThreads: WORKERS, maxThreads: WORKERS }
    const tuned = { concurrentTasksPerWorker: AT_ONCE, recordTiming: false, taskQueue: new FixedQueue() }
    const pool = new Piscina({ ...fixed, ...tuned })
    return Promise.all(items.map((item) => pool.run(item, { name })))
  },
  tinypool: async (items, isFiles) => {
    const { module, name } = moduleOf(isFiles)
    const { default: Tinypool } = await import('tinypool')
    const fixed = { filename: module, minThreads: WORKERS, maxThreads: WORKERS }
    const pool = new Tinypool({ ...fixed, isolateWorkers: false, concurrentTasksPerWorker: AT_ONCE })
    return Promise.all(items.map((item) => pool.run(item, { name })))
  },
}

function chunksByHand(items: readonly unknown[], isFiles: boolean): Promise<unknown[]> {
  const values = new Array<unknown>(items.length)
  let [next, done] = [0, 0]
  return new Promise((resolve, reject) => {
    for (let index = 0; index < WORKERS; index += 1) {
      const worker = new Worker(new URL('./chunks-thread.js', import.meta.url), {
        workerData: moduleOf(isFiles),
      })
      const send = (): void => {
        if (next >= items.length) return
        worker.postMessage({ first: next, items: items.slice(next, next + CHUNK) })
        next += CHUNK
      }
      worker.on('error', reject)
      worker.on('message', ({ first, values: some }: { first: number; values: unknown[] }) => {
        for (const [at, value] of some.entries()) values[first + at] = value
        done += some.length
        send()
        if (done === items.length) resolve(values)
      })
      // Two, so that the next one is there when one ends.
      send()
      send()
    }
  })
}

/** Of all values, in their order. */
export function digestOf(values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex')
}

export function itemsOfKind(kind: string, count: number, folder: string): readonly unknown[] {
  if (kind !== 'files') return itemsOf(count, kind === 'mix' ? kind : Number(kind))
  const names = readdirSync(folder).sort().slice(0, count)
  return names.map((name) => join(folder, name))
}

const [contender, kind, count, folder] = process.argv.slice(2)
if (contender !== undefined && MAPPINGS[contender] !== undefined) {
  const items = itemsOfKind(kind, Number(count), folder)
  const [startedMs, startedCpu] = [performance.now(), process.cpuUsage()]
  const values = await MAPPINGS[contender](items, kind === 'files')
  const { user, system } = process.cpuUsage(startedCpu)
  const seconds = (performance.now() - startedMs) / 1000
  const printed: Printed = { seconds, cpuUs: (user + system) / items.length, digest: digestOf(values) }
  process.stdout.write(JSON.stringify(printed), () => process.exit(0))
}
