/**
 * Transactions of several threads: one order explains what all of them saw, also when some are killed.
 *
 * The threads are plain workers; what each does is in worker.test.support.ts.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { share } from '../../base/part.test.support.ts'
import { until } from '../../base/wait.test.support.ts'
import { atomically, store, type Store } from '../index.ts'
import { isSerializable, type Seen } from './serial.test.support.ts'
import { ARRIVED, KEYS, PER_ROUND, THREADS, TICKS, WORDS, type Work } from './worker.test.support.ts'

let last = 0
const workers = new Set<Worker>()
after(() => Promise.all([...workers].map((worker) => worker.terminate())))

function start(work: Work): Worker {
  const worker = new Worker(new URL('./worker.test.support.js', import.meta.url), { workerData: work })
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
  return worker
}

interface History {
  readonly stores: readonly Store<number>[]
  readonly clock: Int32Array
  readonly logs: readonly Int32Array[]
  readonly threads: readonly Worker[]
}

/** Threads that run rounds of random transactions over two stores. */
function histories(rounds: number, seed: number): History {
  const stores = [1, 2].map((number) => store.create<number>(`serial ${++last} ${number}`))
  const clock = new SharedArrayBuffer(8)
  const memories = Array.from(
    { length: THREADS },
    () => new SharedArrayBuffer(rounds * PER_ROUND * WORDS * 4),
  )
  const ids = stores.map(({ id }) => id)
  const threads = memories.map((log, index) =>
    start({ what: 'history', ids, thread: index + seed * THREADS, rounds, clock, log }),
  )
  return {
    stores,
    clock: new Int32Array(clock),
    logs: memories.map((memory) => new Int32Array(memory)),
    threads,
  }
}

function wordsOf(log: Int32Array, at: number): (number | undefined)[] {
  return Array.from(log.subarray(at, at + KEYS), (word) => (word === 0 ? undefined : word - 1))
}

/** What the logs have of a round, and a last look at all keys. */
function roundOf({ stores, logs }: History, round: number): Seen[] {
  const seen: Seen[] = []
  for (const log of logs) {
    for (let step = 0; step < PER_ROUND; step++) {
      const at = (round * PER_ROUND + step) * WORDS
      const [from, to] = [log[at], log[at + 1]]
      if (from === 0) continue
      const [read, written] = [wordsOf(log, at + 2), wordsOf(log, at + 2 + KEYS)]
      seen.push({ from, to: to === 0 ? Infinity : to, read, written })
    }
  }
  const read = Array.from({ length: KEYS }, (_, key) => stores[key % 2].get(`${round} ${key}`) ?? 0)
  return [...seen, { from: 2 ** 31, to: 2 ** 31 + 1, read, written: [] }]
}

function close({ stores }: History): void {
  for (const used of stores) used.close()
}

test('the search for an order accepts serializable histories and rejects others', () => {
  const write = (from: number, to: number, read: Seen['read'], written: Seen['written']): Seen => ({
    from,
    to,
    read,
    written,
  })
  const first = write(0, 5, [0, 0], [1])
  const second = write(0, 5, [0, 0], [undefined, 2])
  assert.equal(isSerializable([first, second], 2), false, 'write skew')
  assert.equal(isSerializable([first, write(0, 5, [1, 0], [undefined, 2])], 2), true)
  assert.equal(isSerializable([first, write(6, 7, [0, 0], [])], 2), false, 'a read of the past')
  const killed = write(0, Infinity, [0], [1, 1])
  const look = (...read: number[]): Seen => write(9, 10, read, [])
  assert.equal(isSerializable([killed, look(0, 0)], 2), true, 'not committed')
  assert.equal(isSerializable([killed, look(1, 1)], 2), true, 'committed')
  assert.equal(isSerializable([killed, look(1, 0)], 2), false, 'half of it')
})

test('one order explains what transactions of three threads over two stores have seen', async () => {
  const rounds = share(300)
  const history = histories(rounds, 1)
  await Promise.all(history.threads.map((thread) => once(thread, 'message')))
  for (let round = 0; round < rounds; round++) {
    const seen = roundOf(history, round)
    assert.ok(isSerializable(seen, KEYS), `round ${round}: ${JSON.stringify(seen)}`)
  }
  close(history)
})

test('and when threads are killed anywhere, whose last transaction is whole or not there', async () => {
  for (let kill = 0; kill < share(9); kill++) {
    const history = histories(20_000, 2)
    const [first, ...others] = history.threads
    const failed = Promise.race(
      history.threads.map(async (thread) => Promise.reject((await once(thread, 'error'))[0])),
    )
    failed.catch(() => {})
    const ticks = 200 + kill * 37
    await Promise.race([until(() => Atomics.load(history.clock, TICKS) > ticks, 'transactions'), failed])
    await first.terminate()
    // The others end the round, whatever the first had locked, and wait for it in front of the next.
    const arrived = (): boolean => Atomics.load(history.clock, ARRIVED) % THREADS >= THREADS - 1
    await Promise.race([until(arrived, 'the other threads to end their round'), failed])
    await Promise.all(others.map((thread) => thread.terminate()))
    const rounds = Math.floor(Atomics.load(history.clock, ARRIVED) / THREADS)
    for (let round = Math.max(0, rounds - 40); round <= rounds; round++) {
      const seen = roundOf(history, round)
      assert.ok(isSerializable(seen, KEYS), `kill ${kill}, round ${round}: ${JSON.stringify(seen)}`)
    }
    close(history)
  }
})

test('threads killed in transfers leave their sum, and each look finds it', async () => {
  const stores = [1, 2].map((number) => store.create<number>(`transfers ${number}`))
  const accounts = ['0', '1', '2']
  const sum = (): Promise<number> =>
    atomically((tx) => {
      let all = 0
      for (const used of stores) for (const account of accounts) all += tx.get(used, account) ?? 0
      return all
    })
  for (let round = 0; round < share(6); round++) {
    const clock = new SharedArrayBuffer(8)
    const ids = stores.map(({ id }) => id)
    const log = new SharedArrayBuffer(4)
    const pair = [1, 2].map((thread) => start({ what: 'transfer', ids, thread, rounds: 0, clock, log }))
    await until(() => Atomics.load(new Int32Array(clock), TICKS) > 50 * (round + 1), 'transfers')
    for (let look = 0; look < 20; look++) assert.equal(await sum(), 0)
    await Promise.all(pair.map((thread) => thread.terminate()))
    assert.equal(await sum(), 0)
  }
  for (const used of stores) used.close()
})

test('two threads that wait for jobs take each of them once', async () => {
  const stores = ['queue', 'jobs'].map((name) => store.create<number>(name))
  const [queue, jobs] = stores
  const rounds = 50
  const log = new SharedArrayBuffer(4 * (2 * rounds + 1))
  const ids = stores.map(({ id }) => id)
  const clock = new SharedArrayBuffer(8)
  const takers = [0, 1].map((thread) => start({ what: 'take', ids, thread, rounds, clock, log }))
  const ended = takers.map((thread) => once(thread, 'message'))
  for (let job = 1; job <= 2 * rounds; job++) {
    await atomically((tx) => {
      const tail = tx.update(queue, 'tail', (before = 0) => before + 1) as number
      tx.set(jobs, `job ${tail - 1}`, job)
    })
    // Some of them wait when the next one comes.
    if (job % 10 === 0) await until(() => queue.get('head') === job, 'all jobs to be taken')
  }
  await Promise.all(ended)
  assert.deepEqual([...new Int32Array(log)], [0, ...Array.from({ length: 2 * rounds }, () => 1)])
  for (const used of stores) used.close()
})
