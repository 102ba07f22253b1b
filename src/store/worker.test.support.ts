/**
 * A thread of the store's tests: does what its workerData says.
 *
 * Values name the key they belong to, so that a mixed-up read shows.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Seen } from './history.test.support.ts'
import { store } from './index.ts'

interface Work {
  readonly what: 'history' | 'mixed' | 'lead' | 'watching' | 'viewing'
  readonly id: string
  readonly seed: number
  readonly rounds: number
  readonly clock: SharedArrayBuffer
}

const work = workerData as Work
const clock = new Int32Array(work.clock)
const used = store.get<unknown>(work.id)
let seed = work.seed

function random(below: number): number {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
  return (seed >>> 8) % below
}

/** Seven operations on one key, from a common start. */
function history(round: number): Seen[] {
  const key = `round ${round}`
  Atomics.add(clock, 1, 1)
  while (Atomics.load(clock, 1) < 3 * (round + 1)) continue
  return Array.from({ length: 7 }, (_, step): Seen => {
    const value = work.seed * 1000 + step
    const what = (['get', 'set', 'swap', 'add', 'delete'] as const)[random(5)] as Seen['what']
    const guess = used.get(key) as number | undefined
    const from = Atomics.add(clock, 0, 1)
    let seen: Omit<Seen, 'from' | 'to' | 'what'>
    if (what === 'get')
      seen = { old: (random(2) === 0 ? used.get(key) : used.view(key)) as number | undefined }
    else if (what === 'set') seen = { value: (used.set(key, value), value) }
    else if (what === 'swap') seen = { old: guess, value, done: used.compareAndSet(key, guess, value) }
    else if (what === 'add') seen = { value: used.increment(key) }
    else seen = { done: used.delete(key) }
    return { from, to: Atomics.add(clock, 0, 1), what, ...seen }
  })
}

/**
 * Operations of all kinds on a few hundred keys, for ever or so many. Values say which key they belong to.
 */
function mixed(rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    const key = `key ${random(300)}`
    const value = { key, round, filling: 'x'.repeat(random(20) === 0 ? 5000 : random(100)) }
    const kind = random(8)
    if (kind < 2) used.set(key, value, random(4) === 0 ? { ttlMs: 1 + random(20) } : undefined)
    else if (kind === 2) used.delete(key)
    else if (kind === 3) used.update(key, (old) => ({ ...(old as object | undefined), ...value }))
    else if (kind === 4) used.increment('count')
    else if (kind === 5) check(key, used.view(key))
    else check(key, used.get(key))
  }
}

function check(key: string, value: unknown): void {
  if (value !== undefined && (value as { key: string }).key !== key)
    throw new Error(`${key} has the value of another`)
}

/** Watch what it writes, and compute, for ever. */
async function watching(): Promise<void> {
  const watch = used.watch({ prefix: '' }, { eventsMax: 8 })
  parentPort?.postMessage('started')
  for (let step = 0; ; step++) {
    used.set(`k${step % 5}`, step)
    await watch.next()
    await used.getOrCompute('computed', async () => step)
    used.delete('computed')
  }
}

/** A loop with nothing in it but a view. */
function viewing(): void {
  used.view('stop')
  parentPort?.postMessage('started')
  while (used.view('stop') === false) continue
}

if (work.what === 'history') {
  const histories = Array.from({ length: work.rounds }, (_, round) => history(round))
  parentPort?.postMessage(histories)
} else if (work.what === 'mixed') {
  parentPort?.postMessage('started')
  mixed(work.rounds)
  parentPort?.postMessage('done')
} else if (work.what === 'watching') {
  void watching()
} else if (work.what === 'viewing') {
  viewing()
} else {
  setInterval(() => {}, 1000)
  void used.getOrCompute('key', () => {
    parentPort?.postMessage('computing')
    return new Promise(() => {})
  })
}
