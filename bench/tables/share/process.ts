/**
 * A process of table `share`: four threads that do nothing, or read one list, shared or a copy in each.
 *
 * Its result is printed as JSON.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { store, zone } from 'corespun'
import { answerOf, pricesOf, read, readFive, readKept, readOne, type Price } from './values.ts'

const THREADS = 4
const PASSES = 15

/** What a process measures. */
export interface Shared {
  /** From the records of the main thread to the result of the last thread. */
  readonly ms?: number
  readonly cpuMs?: number
  /** Resident memory at the end, without the records of the main thread. */
  readonly mb?: number
  /** ns of a field, by the loop. */
  readonly ns?: Readonly<Record<string, number>>
}

const [who, countText] = process.argv.slice(2)
const count = Number(countText)
const collect = globalThis.gc as () => void
const memoryMb = (): number => {
  collect()
  collect()
  return process.memoryUsage.rss() / 2 ** 20
}

const run = { bare, corespun, 'postMessage, a copy in each thread': copies, fields }[
  who
] as () => Promise<Shared>
process.stdout.write(JSON.stringify(await run()))
process.exit()

async function bare(): Promise<Shared> {
  await Promise.all(
    workers('import("node:worker_threads").then(({ parentPort: port }) => port.on("message", () => {}))'),
  )
  return { mb: memoryMb() }
}

async function corespun(): Promise<Shared> {
  const cpu = zone.create('share', { workers: THREADS })
  await cpu.broadcast(() => {})
  return timed(async (prices) => {
    const list = store.share(prices)
    const sums = Array.from({ length: THREADS }, () => cpu.run(read, list as never))
    return Promise.all(sums)
  })
}

async function copies(): Promise<Shared> {
  const url = JSON.stringify(new URL('./values.js', import.meta.url).href)
  const modules = `[import('node:worker_threads'), import(${url})]`
  const code = `Promise.all(${modules}).then(([{ parentPort: port }, { read }]) => {
    let kept
    port.on('message', (prices) => port.postMessage(read((kept = prices))))
    port.postMessage('ready')
  })`
  const all = await Promise.all(
    workers(code).map(async (worker) => (await once(await worker, 'message'), worker)),
  )
  return timed((prices) =>
    Promise.all(
      all.map(async (starting) => {
        const worker = await starting
        worker.postMessage(prices)
        return ((await once(worker, 'message')) as [number])[0]
      }),
    ),
  )
}

function workers(code: string): Promise<Worker>[] {
  return Array.from({ length: THREADS }, async () => {
    const worker = new Worker(code, { eval: true })
    await once(worker, 'online')
    return worker
  })
}

async function timed(body: (prices: Price[]) => Promise<readonly number[]>): Promise<Shared> {
  let prices: Price[] | undefined = pricesOf(count)
  const [start, cpu] = [performance.now(), process.cpuUsage()]
  const sums = await body(prices)
  const ms = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  prices = undefined
  check(sums, answerOf(count))
  return { ms, cpuMs: (user + system) / 1000, mb: memoryMb() }
}

/** Each loop over shared records and over plain ones, warm; then again, after it has met the others. */
async function fields(): Promise<Shared> {
  const plain = pricesOf(count)
  const shared = store.share(plain) as unknown as readonly Price[]
  const kept = (prices: readonly Price[]): Price[] =>
    Array.from({ length: 64 }, (_, at) => prices.at(at * 100) as Price)
  const rounds = Math.ceil(count / 64)
  const loops = {
    'one number': [readOne, 1],
    'five numbers': [readFive, 5],
    'numbers, strings, a flag': [read, 7],
  } as const
  const ns: Record<string, number> = {}
  for (const [name, [loop, reads]] of Object.entries(loops)) {
    check([loop(shared)], loop(plain))
    for (const [whose, prices] of [
      ['corespun', shared],
      ['plain objects', plain],
      ['corespun, again', shared],
    ] as const)
      ns[`${name} | ${whose}`] = nsOf(() => loop(prices), count * reads)
  }
  const [sharedKept, plainKept] = [kept(shared), kept(plain)]
  check([readKept(sharedKept, 3)], readKept(plainKept, 3))
  for (const [whose, prices] of [
    ['corespun', sharedKept],
    ['plain objects', plainKept],
    ['corespun, again', sharedKept],
  ] as const)
    ns[`one number of 64 views | ${whose}`] = nsOf(() => readKept(prices, rounds), rounds * 64)
  return { ns }
}

/** CPU time of a read in the best of several passes. */
function nsOf(pass: () => unknown, reads: number): number {
  let best = Infinity
  for (let index = 0; index < PASSES; index++) {
    const start = process.cpuUsage()
    pass()
    const { user, system } = process.cpuUsage(start)
    best = Math.min(best, user + system)
  }
  return (best * 1000) / reads
}

function check(sums: readonly number[], expected: number): void {
  for (const sum of sums) if (sum !== expected) throw new Error(`the sum is ${sum}, not ${expected}`)
}
