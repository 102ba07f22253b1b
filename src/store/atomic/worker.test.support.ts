/**
 * A thread of the tests of transactions: runs what its workerData names.
 *
 * What it sees goes to memory that outlives it, since it may be killed anywhere: a transaction's reads and
 * writes when its function ends, its second tick when the call has returned.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { store, type Store } from '../index.ts'
import { atomically, atomicallySync } from './atomically.ts'
import type { Transaction } from './transaction.ts'

/** Keys of a history: those of even numbers are in the first store. */
export const KEYS = 4
export const PER_ROUND = 5
export const THREADS = 3
/** Words of a transaction: two ticks, then what it has read and written of each key, one more than that. */
export const WORDS = 2 + 2 * KEYS

/** Words of the clock: the ticks, and how often a thread has come to the start of a round. */
export const TICKS = 0
export const ARRIVED = 1

export interface Work {
  readonly what: 'history' | 'transfer' | 'take'
  readonly ids: readonly string[]
  readonly thread: number
  readonly rounds: number
  readonly clock: SharedArrayBuffer
  readonly log: SharedArrayBuffer
}

function run({ what, ids, thread, rounds, clock, log }: Work): void {
  const [first, second] = ids.map((id) => store.get<number>(id)) as [Store<number>, Store<number>]
  const [ticks, words] = [new Int32Array(clock), new Int32Array(log)]
  let seed = thread + 1
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed >>> 8) % below
  }

  /** Reads and writes random keys; some values are deleted. */
  const randomly = (round: number, at: number, value: number): ((tx: Transaction) => void) => {
    const steps = Array.from({ length: 1 + random(4) }, () => [random(KEYS), random(4)] as const)
    return (tx) => {
      words.fill(0, at + 2, at + WORDS)
      for (const [key, how] of steps) {
        const [used, name] = [key % 2 === 0 ? first : second, `${round} ${key}`]
        const isKnown = words[at + 2 + key] !== 0 || words[at + 2 + KEYS + key] !== 0
        if (how !== 0) {
          const read = tx.get(used, name) ?? 0
          if (!isKnown) words[at + 2 + key] = read + 1
        }
        if (how === 3) tx.delete(used, name)
        else if (how !== 1) tx.set(used, name, value)
        if (how !== 1) words[at + 2 + KEYS + key] = how === 3 ? 1 : value + 1
      }
    }
  }

  const histories = (): void => {
    for (let round = 0; round < rounds; round++) {
      Atomics.add(ticks, ARRIVED, 1)
      while (Atomics.load(ticks, ARRIVED) < THREADS * (round + 1)) continue
      for (let step = 0; step < PER_ROUND; step++) {
        const at = (round * PER_ROUND + step) * WORDS
        const body = randomly(round, at, (round * PER_ROUND + step) * THREADS + thread + 1)
        words[at] = 1 + Atomics.add(ticks, TICKS, 1)
        atomicallySync(body, { attemptsMax: 1_000_000 })
        words[at + 1] = 1 + Atomics.add(ticks, TICKS, 1)
      }
    }
    parentPort?.postMessage('done')
  }

  /** One from an account to another, across both stores, until the thread is terminated. */
  const transfers = (): void => {
    for (;;) {
      const [from, to] = [`${random(3)}`, `${random(3)}`]
      atomicallySync(
        (tx) => {
          tx.update(first, from, (sum = 0) => sum - 1)
          tx.update(second, to, (sum = 0) => sum + 1)
        },
        { attemptsMax: 1_000_000 },
      )
      Atomics.add(ticks, TICKS, 1)
    }
  }

  if (what === 'history') histories()
  else if (what === 'transfer') transfers()
  else void takes(first, second, rounds, words)
}

/** Takes jobs that the other side puts, each one once. */
async function takes(
  queue: Store<number>,
  jobs: Store<number>,
  rounds: number,
  counts: Int32Array,
): Promise<void> {
  for (let count = 0; count < rounds; count++) {
    const taken = await atomically((tx) => {
      const [head = 0, tail = 0] = [tx.get(queue, 'head'), tx.get(queue, 'tail')]
      tx.check(head < tail)
      tx.set(queue, 'head', head + 1)
      return tx.get(jobs, `job ${head}`)
    })
    Atomics.add(counts, taken ?? 0, 1)
  }
  parentPort?.postMessage('done')
}

if (!isMainThread && parentPort !== null) run(workerData as Work)
