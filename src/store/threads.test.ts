/**
 * A store under several real threads: linearizable, sound when threads are killed, bounded in memory.
 *
 * The threads are plain workers; what each does is in worker.test.support.ts.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import * as fc from 'fast-check'
import { rowsOfPart, share } from '../base/part.test.support.ts'
import { until } from '../base/wait.test.support.ts'
import { isLinearizable, type Command, type Seen } from './history.test.support.ts'
import { store, type Store, type StoreOptions } from './index.ts'
import { OPERATIONS } from './operations.test.support.ts'

let last = 0
const workers = new Set<Worker>()
after(() => Promise.all([...workers].map((worker) => worker.terminate())))

function made(settings?: StoreOptions) {
  return store.create(`threads ${++last}`, settings)
}

function start(
  id: string,
  what: string,
  seed: number,
  rounds: number,
  clock = new SharedArrayBuffer(8),
): Worker {
  return spawned('worker', { what, id, seed, rounds, clock })
}

function spawned(support: 'worker' | 'operations', workerData: object): Worker {
  const worker = new Worker(new URL(`./${support}.test.support.js`, import.meta.url), { workerData })
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
  return worker
}

test('getOrCreate compares with the options of a store that another thread has created', async () => {
  const used = made({ entriesMax: 10 })
  const code = `const { parentPort, workerData } = require('node:worker_threads')
    import(workerData.module).then(({ store }) => {
      try {
        parentPort.postMessage(store.getOrCreate(workerData.id, { entriesMax: 10 }).id)
        store.getOrCreate(workerData.id, { entriesMax: 11 })
      } catch (error) {
        parentPort.postMessage(error.message)
      }
    })`
  const workerData = { id: used.id, module: new URL('./index.js', import.meta.url).href }
  const worker = new Worker(code, { eval: true, workerData })
  workers.add(worker)
  const messages: unknown[] = []
  worker.on('message', (message) => messages.push(message))
  await once(worker, 'exit')
  workers.delete(worker)
  const message = `entriesMax must be 10, as the store "${used.id}" exists with it; received 11`
  assert.deepEqual(messages, [used.id, `store.getOrCreate(): ${message}`])
  used.close()
})

test('the search for an order accepts linearizable histories and rejects others', () => {
  const set: Seen = { from: 0, to: 1, what: 'set', value: 1 }
  assert.equal(
    isLinearizable([set, { from: 2, to: 3, what: 'get', old: undefined }]),
    false,
    'a read of the past',
  )
  assert.equal(isLinearizable([set, { from: 0, to: 3, what: 'get', old: undefined }]), true)
  const twice = [0, 1].map((): Seen => ({
    from: 1,
    to: 2,
    what: 'swap',
    old: undefined,
    value: 7,
    done: true,
  }))
  assert.equal(isLinearizable(twice), false, 'two that both found nothing')
})

test('what three threads see of a key has an order', async () => {
  const used = made()
  const clock = new SharedArrayBuffer(8)
  const rounds = share(150)
  const threads = [1, 2, 3].map((seed) => start(used.id, 'history', seed, rounds, clock))
  const histories = await Promise.all(
    threads.map(async (thread) => (await once(thread, 'message'))[0] as Seen[][]),
  )
  for (let round = 0; round < rounds; round++) {
    const seen = histories.flatMap((history) => history[round])
    assert.ok(isLinearizable(seen), `round ${round}: ${JSON.stringify(seen)}`)
  }
  used.close()
})

const COMMAND: fc.Arbitrary<Command> = fc.record({
  what: fc.constantFrom('get', 'view', 'set', 'swap', 'add', 'update', 'has', 'delete', 'clear'),
  key: fc.nat(1),
  value: fc.integer({ min: 1000, max: 1999 }),
})
/** One script for each of two or three threads. */
const SCRIPTS = fc.array(fc.array(COMMAND, { maxLength: 8 }), { minLength: 2, maxLength: 3 })
/** What a run of scripts showed may not show again: each is run so often. */
const REPEATS = 5

test('what threads see of random commands has an order', async (t) => {
  const seed = Number(process.env['CORESPUN_TEST_SEED'] ?? Date.now() % 2 ** 31)
  t.diagnostic(`CORESPUN_TEST_SEED=${seed}`)
  const used = made()
  const clock = new SharedArrayBuffer(8)
  const threads = [1, 2, 3].map((number) => start(used.id, 'scripts', number, 1, clock))
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  let run = 0
  const holds = async (scripts: readonly Command[][]): Promise<void> => {
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      const keys = [`a ${++run}`, `b ${run}`]
      new Int32Array(clock).fill(0)
      const seen = await Promise.all(
        scripts.map(async (commands, index) => {
          const thread = threads[index]
          thread.postMessage({ commands, keys, threads: scripts.length })
          return (await once(thread, 'message'))[0] as Seen[][]
        }),
      )
      for (const [key] of keys.entries()) {
        const history = seen.flatMap((lists) => lists[key])
        assert.ok(isLinearizable(history), JSON.stringify(history))
      }
    }
  }
  const numRuns = share(150)
  await fc.assert(fc.asyncProperty(SCRIPTS, holds), { seed, numRuns, endOnFailure: false })
  used.close()
})

test('a loop that only reads a view sees a write', async () => {
  const used = made()
  used.set('stop', false)
  const thread = start(used.id, 'viewing', 1, 1)
  await once(thread, 'message')
  await pause(100)
  used.set('stop', true)
  assert.deepEqual(await once(thread, 'exit'), [0])
  used.close()
})

test('threads killed in the middle of operations leave a store that works', async () => {
  const used = made({ bytesMax: 100_000 })
  for (let round = 0; round < share(12); round++) {
    const pair = [start(used.id, 'mixed', round + 1, Infinity), start(used.id, 'mixed', round + 50, Infinity)]
    await Promise.all(pair.map((thread) => once(thread, 'message')))
    await pause(round)
    await Promise.all(pair.map((thread) => thread.terminate()))
    for (const [key, value] of used.entries()) {
      if (key.startsWith('key')) assert.equal((value as { key: string }).key, key)
    }
    used.set('alive', round)
    assert.equal(used.get('alive'), round)
  }
  assert.ok(used.stats().bytes <= 100_000)
  used.close()
})

test('two threads killed in the middle of each operation leave a store that works', async () => {
  for (const settings of [{}, { bytesMax: 4_000_000 }]) {
    for (const operation of rowsOfPart(Object.keys(OPERATIONS))) {
      const used = made(settings)
      const memories = [0, 1].map(() => new SharedArrayBuffer(4))
      const pair = memories.map((memory) => spawned('operations', { operation, id: used.id, memory }))
      const failed = Promise.race(
        pair.map(async (thread) => Promise.reject((await once(thread, 'error'))[0])),
      )
      failed.catch(() => {})
      const isUnderWay = (memory: SharedArrayBuffer) => Atomics.load(new Int32Array(memory), 0) > 20
      await Promise.race([until(() => memories.every(isUnderWay), `both threads in ${operation}`), failed])
      await Promise.all(pair.map((thread) => thread.terminate()))
      await works(used, operation)
      used.close()
      store.getOrCreate(`${used.id} beside`).close()
    }
  }
})

/** Whether everything can be done with a key that others were busy with. */
async function works(used: Store, message: string): Promise<void> {
  used.set('key', 1)
  assert.equal(used.view('key'), 1, message)
  assert.equal(used.increment('key'), 2, message)
  assert.equal(used.view('key'), 2, message)
  assert.ok([...used.keys()].includes('key'), message)
  assert.ok(used.delete('key'), message)
  assert.equal(await used.getOrCompute('key', () => 3), 3, message)
  const watch = used.watch('key')
  used.set('key', 4)
  assert.deepEqual((await watch.next()).value, { type: 'set', key: 'key' }, message)
  await watch.return()
  used.clear()
  assert.deepEqual([used.size, used.get('key')], [0, undefined], message)
}

test('threads killed in the middle of watches and computations leave both working', async () => {
  const used = made()
  for (let round = 0; round < 6; round++) {
    const pair = [start(used.id, 'watching', 1, 1), start(used.id, 'watching', 2, 1)]
    await Promise.all(pair.map((thread) => once(thread, 'message')))
    await pause(2 * round)
    await Promise.all(pair.map((thread) => thread.terminate()))
  }
  used.delete('computed')
  assert.equal(await used.getOrCompute('computed', () => 'mine'), 'mine')
  const watch = used.watch('k')
  used.set('k', 1)
  assert.deepEqual((await watch.next()).value, { type: 'set', key: 'k' })
  await watch.return()
  used.close()
})

test('when the thread that computes dies, one that waits takes over', async () => {
  const used = made()
  const leader = start(used.id, 'lead', 1, 1)
  await once(leader, 'message')
  let calls = 0
  const waiting = Array.from({ length: 5 }, () => used.getOrCompute('key', () => ++calls))
  await pause(5)
  assert.equal(calls, 0, 'nobody computes beside the leader')
  await leader.terminate()
  assert.deepEqual(await Promise.all(waiting), [1, 1, 1, 1, 1])
  used.close()
})

/** Operations in all; check:long asks for 10 million. */
const SOAK = Number(process.env['CORESPUN_SOAK_OPERATIONS'] ?? share(200_000))

/** Bytes that the process may grow by once its threads are warm: heaps that wait for their collectors. */
const GROWTH_MAX = 150e6

test('all threads, all operations, for a while: memory stays bounded', async () => {
  const used = made({ entriesMax: 200, bytesMax: 200_000 })
  const threads = [1, 2, 3].map((seed) => start(used.id, 'mixed', seed, Math.ceil(SOAK / 3)))
  const ended = Promise.all(threads.map((thread) => once(thread, 'exit')))
  let [warm, before, highest] = [0, 0, 0]
  for (const thread of threads) {
    thread.on('message', (message) => {
      if (message === 'warm' && ++warm === threads.length) before = process.memoryUsage().rss
    })
  }
  const watcher = setInterval(() => {
    const { entries, bytes } = used.stats()
    assert.ok(entries <= 200 && bytes <= 200_000)
    if (before > 0) highest = Math.max(highest, process.memoryUsage().rss)
  }, 20)
  const codes = await ended
  clearInterval(watcher)
  assert.deepEqual(
    codes.map(([code]) => code),
    [0, 0, 0],
  )
  assert.ok(before > 0, 'all threads became warm')
  assert.ok(highest < before + GROWTH_MAX, `${highest} bytes at most, ${before} when warm`)
  assert.ok(used.stats().entries <= 200)
  used.close()
})
