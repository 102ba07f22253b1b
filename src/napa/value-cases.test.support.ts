/**
 * The cases of stores (26), locks (5), the transport (22) and memory (8).
 *
 * A store is used from this thread and from a worker of HOME.
 */
import assert from 'node:assert/strict'
import * as napa from './index.ts'
import { type Case, HOME, OTHER, WORKER, callFrom } from './cases.test.support.ts'
import {
  Auto,
  Pair,
  Unknown,
  checkAllocator,
  checkDebugger,
  checkRefusal,
  checkRound,
} from './worker.test.support.ts'
import type { Unchecked } from './values.ts'

function byName(name: string, ...args: unknown[]): Promise<Unchecked> {
  return callFrom('node', HOME, 'execute', WORKER, name, args)
}

type Where = 'node' | 'zone'
const WAYS: readonly (readonly [Where, Where])[] = [
  ['node', 'node'],
  ['node', 'zone'],
  ['zone', 'zone'],
  ['zone', 'node'],
]
const [ONE, TWO, UNICODE] = ['napa-store1', 'napa-store2', '日本語 español বাংলা 𝒻']

/** A store goes with its last reference. */
const kept = new Set<napa.store.Store>()

function storeOf(id: string): napa.store.Store {
  const found = napa.store.get(id)
  assert.ok(found !== undefined)
  kept.add(found)
  return found
}

async function put(where: Where, id: string, key: string, value: unknown): Promise<void> {
  if (where === 'node') storeOf(id).set(key, value)
  else await byName('setValue', id, key, value)
}

async function check(where: Where, id: string, key: string, value: unknown): Promise<void> {
  if (where === 'node') assert.deepEqual(storeOf(id).get(key), value)
  else await byName('checkValue', id, key, value)
}

function ways(what: string, id: string, keys: string, value: () => unknown): Case[] {
  return WAYS.map(([from, to], at) => ({
    name: `${what}: set in ${from}, get in ${to}`,
    run: async () => {
      const sent = value()
      await put(from, id, keys[at], sent)
      await check(to, id, keys[at], sent)
    },
  }))
}

const sent = (): number => 0

/** In the order of napajs's test/store-test.ts; the last one counts what the others have left. */
export const STORE_CASES: readonly Case[] = [
  {
    name: 'node: create',
    run: () => {
      const made = napa.store.create(ONE)
      kept.add(made)
      assert.deepEqual([made.id, made.size], [ONE, 0])
    },
  },
  {
    name: 'a name is taken',
    run: () => assert.throws(() => napa.store.create(ONE), { code: 'STORE_EXISTS' }),
  },
  { name: 'zone: getOrCreate', run: () => byName('getOrCreateStore', TWO) },
  { name: 'node: get', run: () => assert.deepEqual([storeOf(ONE).id, storeOf(TWO).id], [ONE, TWO]) },
  {
    name: 'zone: get',
    run: () =>
      napa.zone.get(HOME).execute((ids: string[]) => ids.map((id) => napa.store.get(id)?.id), [[ONE, TWO]]),
  },
  ...ways('a value', ONE, 'abcd', () => ({ a: 1, b: 'hi' })),
  ...ways('a text', TWO, 'abcd', () => ({ text: UNICODE })),
  ...ways('an allocator', ONE, 'abef', () => napa.memory.debugAllocator(napa.memory.defaultAllocator)),
  ...ways('a function', ONE, 'ghij', () => sent),
  ...WAYS.map(([from, to], at) => ({
    name: `deleted in ${from}, looked up in ${to}`,
    run: async () => {
      const key = 'abcd'[at]
      assert.ok(storeOf(ONE).has(key))
      if (from === 'node') storeOf(ONE).delete(key)
      else await byName('deleteValue', ONE, key)
      storeOf(ONE).delete('none')
      if (to === 'zone') await byName('checkAbsent', ONE, key)
      else assert.deepEqual([storeOf(ONE).has(key), storeOf(ONE).get(key)], [false, undefined])
    },
  })),
  { name: 'size', run: () => assert.equal(storeOf(ONE).size, 6) },
]

/** Words: how many are inside; whether two ever were. */
const inside = (words: Int32Array, lock?: napa.sync.Lock): void => {
  const section = (): void => {
    if (Atomics.add(words, 0, 1) > 0) Atomics.store(words, 1, 1)
    Atomics.notify(words, 0)
    // Without the lock, until the other is there too.
    if (lock === undefined) while (Atomics.load(words, 1) === 0) Atomics.wait(words, 0, 1, 100)
    else for (let round = 0; round < 1e5; round++) Atomics.load(words, 0)
    Atomics.sub(words, 0, 1)
  }
  if (lock === undefined) section()
  else for (let round = 0; round < 20; round++) lock.guardSync(section)
}

async function together(lock?: napa.sync.Lock): Promise<number> {
  const words = new Int32Array(new SharedArrayBuffer(8))
  const args = lock === undefined ? [words] : [words, lock]
  await Promise.all([0, 1].map(() => napa.zone.get(HOME).execute(inside, args)))
  return words[1]
}

/** In the order of napajs's test/sync-test.ts. */
export const SYNC_CASES: readonly Case[] = [
  { name: 'node: create', run: () => assert.ok(napa.sync.createLock() instanceof napa.sync.Lock) },
  {
    name: 'node: parameters',
    run: () => {
      const got = napa.sync.createLock().guardSync((...all: unknown[]) => all, [123, '456'])
      assert.deepEqual(got, [123, '456'])
    },
  },
  {
    name: 'node: one after the other, also after an error',
    run: () => {
      const lock = napa.sync.createLock()
      const fails = (): never => {
        throw new Error('inside')
      }
      assert.throws(() => lock.guardSync(fails), /inside/)
      assert.equal(
        lock.guardSync(() => 1),
        1,
      )
    },
  },
  {
    name: 'zone: two threads without a lock are inside at once',
    run: async () => assert.equal(await together(), 1),
  },
  {
    name: 'zone: two threads with a lock are not',
    run: async () => assert.equal(await together(napa.sync.createLock()), 0),
  },
]

const context = napa.transport.createTransportContext()
const counting = napa.memory.debugAllocator(napa.memory.crtAllocator)
let shareable: napa.memory.Shareable | undefined

const rounds: Case[] = ['simple', 'object', 'addon', 'function', 'composite'].flatMap((which) => [
  { name: `node: ${which}`, run: () => checkRound(which) },
  { name: `zone: ${which}`, run: () => byName('checkRound', which) },
])

const IDS = [HOME, 'node', 'node', HOME, OTHER]
const SIZE = 8

/** An array travels through some threads, each of which writes one element. */
async function filled(array: Uint8Array): Promise<readonly [own: number[], seen: number[]]> {
  array[SIZE - 1] = 7
  const { value } = await napa.zone.get(HOME).execute(WORKER, 'fill', [IDS, array, SIZE - 2])
  return [[...array], value]
}

const OF_ALL = [Array<number>(SIZE).fill(7), Array<number>(SIZE - 1).fill(7)]
const OF_EACH = [
  [...Array<number>(SIZE - 1).fill(0), 7],
  [...Array<number>(SIZE - 2).fill(0), 7],
]
const shared = (): Uint8Array => new Uint8Array(new SharedArrayBuffer(SIZE))

const buffers: Case[] = [
  {
    name: 'a SharedArrayBuffer',
    run: async () => {
      const buffer = new SharedArrayBuffer(4)
      const write = (memory: SharedArrayBuffer, at: number): void => void (new Uint8Array(memory)[at] = 100)
      await Promise.all([0, 1, 2, 3].map((at) => napa.zone.get(HOME).execute(write, [buffer, at])))
      assert.deepEqual([...new Uint8Array(buffer)], [100, 100, 100, 100])
    },
  },
  {
    name: 'an object with a SharedArrayBuffer and views of it',
    run: async () => {
      const buffer = new SharedArrayBuffer(4)
      const sent = { buffer, views: { one: new Uint8Array(buffer), two: new Uint8Array(buffer) } }
      await napa.zone.get(HOME).execute(
        ({ buffer, views }: typeof sent) => {
          new Uint8Array(buffer)[0] = 9
          views.one[1] = 8
          views.two[2] = 7
        },
        [sent],
      )
      assert.deepEqual([...sent.views.one], [9, 8, 7, 0])
    },
  },
  {
    name: 'shared memory through threads',
    run: async () => assert.deepEqual(await filled(shared()), OF_ALL),
  },
  {
    name: 'a view of shared memory through threads',
    run: async () => assert.deepEqual(await filled(shared().subarray(0)), OF_ALL),
  },
  {
    name: 'an ArrayBuffer through threads, each with a copy',
    run: async () => assert.deepEqual(await filled(new Uint8Array(new ArrayBuffer(SIZE))), OF_EACH),
  },
  {
    name: 'a view through threads',
    run: async () => assert.deepEqual(await filled(new Uint8Array(SIZE)), OF_EACH),
  },
]

/** In the order of napajs's test/transport-test.ts. */
export const TRANSPORT_CASES: readonly Case[] = [
  { name: 'saveShared', run: () => context.saveShared(counting) },
  {
    name: 'loadShared',
    run: () => {
      shareable = context.loadShared(counting.handle)
      assert.deepEqual(shareable.handle, counting.handle)
    },
  },
  { name: 'two objects and the context refer to it', run: () => assert.equal(shareable?.refCount, 3) },
  {
    name: 'isTransportable',
    run: () => {
      const { isTransportable } = napa.transport
      const pair = new Pair(napa.memory.crtAllocator)
      for (const value of [
        1,
        'text',
        null,
        undefined,
        pair,
        [1, pair],
        { a: { b: pair } },
        new Auto(1),
        () => 0,
      ])
        assert.ok(isTransportable(value))
      for (const value of [new Unknown(), [1, new Unknown()], { a: new Unknown() }, Symbol('s')])
        assert.equal(isTransportable(value), false)
    },
  },
  ...rounds,
  { name: 'node: an object of an unknown class', run: checkRefusal },
  { name: 'zone: an object of an unknown class', run: () => byName('checkRefusal') },
  ...buffers,
]

/** In the order of napajs's test/memory-test.ts. */
export const MEMORY_CASES: readonly Case[] = [
  {
    name: 'isEmpty',
    run: () =>
      assert.deepEqual(
        [[0, 0] as const, [1, 2] as const].map(([low, high]) => napa.memory.isEmpty([low, high])),
        [true, false],
      ),
  },
  {
    name: 'isShareable',
    run: () => {
      assert.ok(napa.memory.isShareable(napa.memory.crtAllocator))
      for (const value of ['text', 1, { a: 1 }, null]) assert.equal(napa.memory.isShareable(value), false)
    },
  },
  ...(['crtAllocator', 'defaultAllocator'] as const).flatMap((which) => [
    { name: `node: ${which}`, run: () => checkAllocator(which) },
    { name: `zone: ${which}`, run: () => byName('checkAllocator', which) },
  ]),
  { name: 'node: debugAllocator', run: checkDebugger },
  { name: 'zone: debugAllocator', run: () => byName('checkDebugger') },
]
