/**
 * A thread of the store's tests: runs the operation in its workerData.
 *
 * Values name the key they belong to, so that a mixed-up read shows.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Command, Seen } from './history.test.support.ts'
import { store } from './index.ts'

interface Work {
  readonly what: 'scripts' | 'history' | 'mixed' | 'lead' | 'watching' | 'viewing'
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

/** Carry out commands from a common start; what was seen of each key. */
function script(commands: readonly Command[], keys: readonly string[], threads: number): Seen[][] {
  const all: Seen[][] = keys.map(() => [])
  Atomics.add(clock, 1, 1)
  while (Atomics.load(clock, 1) % threads !== 0) continue
  for (const { what, key, value } of commands) {
    const name = keys[key]
    const guess = what === 'swap' ? (used.get(name) as number | undefined) : undefined
    const from = Atomics.add(clock, 0, 1)
    let seen: Omit<Seen, 'from' | 'to'>
    if (what === 'get') seen = { what, old: used.get(name) as number | undefined }
    else if (what === 'view') seen = { what: 'get', old: used.view(name) as number | undefined }
    else if (what === 'set') seen = { what, value: (used.set(name, value), value) }
    else if (what === 'swap') seen = { what, old: guess, value, done: used.compareAndSet(name, guess, value) }
    else if (what === 'add') seen = { what, value: used.increment(name) }
    else if (what === 'update') seen = { what: 'add', value: used.update(name, plusOne) as number }
    else if (what === 'has') seen = { what, done: used.has(name) }
    else if (what === 'delete') seen = { what, done: used.delete(name) }
    else seen = { what: (used.clear(), 'clear') }
    const whole = { ...seen, from, to: Atomics.add(clock, 0, 1) }
    if (what === 'clear') for (const list of all) list.push(whole)
    else all[key]?.push(whole)
  }
  return all
}

function plusOne(old: unknown): number {
  return ((old as number | undefined) ?? 0) + 1
}

/**
 * Operations of all kinds on a few hundred keys, for ever or so many. Values contain their key.
 */
function mixed(rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    // A fifth of it: the heap has grown to what the work needs.
    if (round === Math.floor(rounds / 5)) parentPort?.postMessage('warm')
    const key = `key ${random(300)}`
    const value = { key, round, filling: 'x'.repeat(random(20) === 0 ? 5000 : random(100)) }
    const kind = random(12)
    if (random(400) === 0) rare(round)
    if (kind === 11) {
      const old = used.get(key)
      if (used.compareAndSet(key, old, value) && old === undefined) used.has(key)
    } else if (kind === 10) used.compareAndSet(key, { never: 'there' }, value)
    else if (kind === 9) used.has(key)
    else if (kind === 8) used.delete(`key ${random(300)}`)
    else if (kind < 2) used.set(key, value, random(4) === 0 ? { ttlMs: 1 + random(20) } : undefined)
    else if (kind === 2) used.delete(key)
    else if (kind === 3) used.update(key, (old) => ({ ...(old as object | undefined), ...value }))
    else if (kind === 4) used.increment('count')
    else if (kind === 5) check(key, used.view(key))
    else check(key, used.get(key))
  }
}

/** What looks at the whole store, or ends one. */
function rare(round: number): void {
  const kind = random(6)
  if (kind === 0) used.clear()
  else if (kind === 1) for (const key of used.keys()) used.has(key)
  else if (kind === 2) {
    for (const [key, value] of used.entries()) if (key.startsWith('key ')) check(key, value)
  } else if (kind === 3) used.stats()
  else if (kind === 4) void used.size
  else {
    const other = store.getOrCreate(`${work.id} beside`)
    try {
      other.set('k', round)
      other.view('k')
      other.close()
    } catch (error) {
      // Another thread closed it in between.
      if ((error as { code?: string }).code !== 'STORE_CLOSED') throw error
    }
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
} else if (work.what === 'scripts') {
  parentPort?.on('message', ({ commands, keys, threads }) => {
    parentPort?.postMessage(script(commands, keys, threads))
  })
  parentPort?.postMessage('started')
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
