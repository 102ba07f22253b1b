/**
 * A process of one kind of lock: `node lock-process.js corespun|Atomics`, orders by IPC, a second thread
 * inside.
 *
 * What is guarded is an addition without atomics, so a lock that lets two in at once is found: the sum must
 * be that of all rounds.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { serveOrders } from '../../harness/orders.ts'

/** What can be ordered: rounds of a kind, by one thread or by two at once. */
export interface LockOrder {
  readonly kind: string
  readonly threads: 1 | 2
  readonly rounds: number
}

type Guard = (body: () => void) => void
const Word = { turn: 0, done: 1, kind: 2, rounds: 3, lock: 4, sum: 8 } as const
const memory = isMainThread ? new SharedArrayBuffer(128) : (workerData.memory as SharedArrayBuffer)
const words = new Int32Array(memory)
const contender = isMainThread ? process.argv[2] : (workerData.contender as string)
const guards = contender === 'corespun' ? await corespun() : atomics()
const kinds = Object.keys(guards)
const add = (): void => {
  words[Word.sum] = words[Word.sum] + 1
}

if (isMainThread) await main()
else await peer()

async function corespun(): Promise<Record<string, Guard>> {
  const { AtomicCounter, Lock, RwLock, Semaphore } = await import('corespun/sync')
  const name = 'bench'
  const [lock, rw, one] = [
    Lock.getOrCreate(name),
    RwLock.getOrCreate(name),
    Semaphore.getOrCreate(name, { permits: 1 }),
  ]
  const counter = AtomicCounter.getOrCreate(name)
  const allowed = { allowBlocking: true }
  return {
    guard: (body) => lock.guardSync(body, allowed),
    'try guard': (body) => {
      while (lock.tryGuard(body) === undefined);
    },
    'write guard': (body) => rw.writeSync(body, allowed),
    'semaphore guard': (body) => one.guardSync(body, allowed),
    'counter add': () => void counter.add(),
  }
}

/** A lock of one word as it is written by hand: 0 free, 1 held, 2 held and somebody sleeps. */
function atomics(): Record<string, Guard> {
  const at = Word.lock
  return {
    guard: (body) => {
      if (Atomics.compareExchange(words, at, 0, 1) !== 0) {
        while (Atomics.exchange(words, at, 2) !== 0) Atomics.wait(words, at, 2)
      }
      try {
        body()
      } finally {
        if (Atomics.exchange(words, at, 0) === 2) Atomics.notify(words, at, 1)
      }
    },
    'counter add': () => void Atomics.add(words, Word.sum + 1, 1),
  }
}

/** ns per round. */
function run(kind: string, rounds: number): number {
  const guard = guards[kind]
  const begin = process.hrtime.bigint()
  for (let round = 0; round < rounds; round += 1) guard(add)
  return Number(process.hrtime.bigint() - begin) / rounds
}

async function main(): Promise<void> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { memory, contender } })
  await once(worker, 'message')
  for (const kind of kinds) run(kind, 30_000)
  serveOrders(measure, kinds)
}

/** ns per guard: of one thread; of two, the time of all over all rounds. */
function measure({ kind, threads, rounds }: LockOrder): number {
  words[Word.sum] = 0
  if (threads === 1) {
    const ns = run(kind, rounds)
    if (kind !== 'counter add') assert.equal(words[Word.sum], rounds, `${contender} ${kind} lost additions`)
    return ns
  }
  words[Word.kind] = kinds.indexOf(kind)
  words[Word.rounds] = rounds
  const begin = process.hrtime.bigint()
  const turn = Atomics.add(words, Word.turn, 1) + 1
  Atomics.notify(words, Word.turn)
  run(kind, rounds)
  while (Atomics.load(words, Word.done) !== turn) Atomics.wait(words, Word.done, turn - 1)
  const ns = Number(process.hrtime.bigint() - begin) / (2 * rounds)
  if (kind !== 'counter add') assert.equal(words[Word.sum], 2 * rounds, `${contender} ${kind} lost additions`)
  return ns
}

async function peer(): Promise<void> {
  parentPort!.postMessage('ready')
  for (let turn = 0; ; turn += 1) {
    Atomics.wait(words, Word.turn, turn)
    run(kinds[words[Word.kind]], words[Word.rounds])
    Atomics.store(words, Word.done, turn + 1)
    Atomics.notify(words, Word.done)
  }
}
