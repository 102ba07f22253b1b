/**
 * Transactions of one thread: what they see, what they leave, what they wait for, and every refusal.
 *
 * Another thread's write in the middle of a transaction is one of this thread's to another store here, which
 * the function makes by a handle of its own; threads.test.ts has real ones.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { share } from '../../base/part.test.support.ts'
import { settled, until } from '../../base/wait.test.support.ts'
import { native } from '../../native/index.ts'
import { encode, move, register } from '../../transport/index.ts'
import {
  TRef,
  atomically,
  atomicallySync,
  store,
  type Store,
  type StoreOptions,
  type Transaction,
} from '../index.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-atomic-'))
after(() => rmSync(folder, { recursive: true }))

let last = 0
function made<Value = number>(options?: StoreOptions): Store<Value> {
  return store.create<Value>(`atomic ${++last}`, options)
}

/** Writes by another thread, while the function of a transaction runs in this one. */
function writtenElsewhere(used: Store, entries: readonly (readonly [key: string, value: unknown])[]): void {
  const done = new Int32Array(new SharedArrayBuffer(4))
  const code = `const { workerData } = require('node:worker_threads')
    import(workerData.module).then(({ store }) => {
      for (const [key, value] of workerData.entries) {
        if (value === undefined) store.get(workerData.id).delete(key)
        else store.get(workerData.id).set(key, value)
      }
      Atomics.store(workerData.done, 0, 1)
      Atomics.notify(workerData.done, 0)
    })`
  const module = new URL('../index.js', import.meta.url).href
  const worker = new Worker(code, { eval: true, workerData: { module, id: used.id, entries, done } })
  worker.unref()
  assert.equal(Atomics.wait(done, 0, 0, 60_000) === 'timed-out', false)
}

/** Who waits for a change in the core, of a store. */
async function waiting(promise: Promise<unknown>): Promise<void> {
  let isSettled = false
  promise.then(
    () => (isSettled = true),
    () => (isSettled = true),
  )
  // The first attempt is synchronous, and so is the wait's beginning behind one microtask.
  for (let turns = 0; turns < 10; turns++) await Promise.resolve()
  assert.equal(isSettled, false)
}

test('all changes of a transaction take effect, or none', async () => {
  const [first, second] = [made(), made<string>()]
  first.set('a', 1)
  const result = await atomically((tx) => {
    assert.equal(tx.get(first, 'a'), 1)
    tx.set(first, 'a', 2)
    assert.equal(tx.get(first, 'a'), 2)
    assert.equal(first.get('a'), 1, 'nobody else sees it yet')
    tx.set(second, 'b', 'x')
    assert.equal(
      tx.update(second, 'b', (text) => `${text}y`),
      'xy',
    )
    assert.equal(
      tx.update(first, 'new', (n = 5) => n + 1),
      6,
    )
    return 'done'
  })
  assert.deepEqual([result, first.get('a'), first.get('new'), second.get('b')], ['done', 2, 6, 'xy'])
  const fails = (): never =>
    atomicallySync((tx) => {
      tx.set(first, 'a', 3)
      tx.delete(second, 'b')
      throw new RangeError('mine')
    })
  assert.throws(fails, { message: 'mine' })
  await assert.rejects(atomically(fails), { code: 'STORE_ATOMIC_NESTED' })
  assert.deepEqual([first.get('a'), second.get('b')], [2, 'xy'])
  first.close()
  second.close()
})

test('keys are deleted, by delete and by an update to undefined', () => {
  const used = made()
  for (const key of ['a', 'b', 'c']) used.set(key, 1)
  const seen = atomicallySync((tx) => {
    const had = [tx.delete(used, 'a'), tx.delete(used, 'a'), tx.delete(used, 'none')]
    tx.update(used, 'b', () => undefined)
    assert.equal(tx.get(used, 'b'), undefined)
    tx.delete(used, 'c')
    tx.set(used, 'c', 2)
    return had
  })
  assert.deepEqual([seen, [...used]], [[true, false, false], [['c', 2]]])
  assert.equal(
    atomicallySync((tx) => tx.delete(used, 'c')),
    true,
  )
  assert.equal(
    atomicallySync((tx) => tx.delete(used, 'c')),
    false,
  )
  assert.equal(used.size, 0)
  used.close()
})

test('a transaction is run again when another thread has changed what it read', async () => {
  for (const isOne of [true, false]) {
    const used = made()
    used.set('a', 1)
    let runs = 0
    const add = (tx: Transaction): number => {
      const value = tx.get(used, 'a') ?? 0
      if (++runs === 1) writtenElsewhere(used, [['a', 10]])
      if (!isOne) tx.set(used, 'b', value)
      tx.set(used, 'a', value + 1)
      return value
    }
    assert.equal(atomicallySync(add), 10)
    assert.deepEqual([runs, used.get('a'), used.get('b')], [2, 11, isOne ? undefined : 10])
    runs = 0
    assert.equal(await atomically(add), 10)
    assert.equal(runs, 2)
    used.close()
  }
})

test('what is only written is not compared, and what is only read is', () => {
  const [used, other] = [made(), made()]
  let runs = 0
  atomicallySync((tx) => {
    if (++runs === 1) writtenElsewhere(used, [['blind', 1]])
    tx.set(used, 'blind', 2)
    tx.set(other, 'x', 1)
  })
  assert.deepEqual([runs, used.get('blind')], [1, 2])
  runs = 0
  atomicallySync((tx) => {
    tx.get(used, 'blind')
    if (++runs === 1) writtenElsewhere(used, [['blind', 3]])
    tx.set(other, 'x', runs)
  })
  assert.deepEqual([runs, other.get('x')], [2, 2])
  used.close()
  other.close()
})

test('a function sees keys as of one moment, whatever is written while it runs', () => {
  const used = made()
  used.set('a', 1)
  used.set('b', 1)
  let runs = 0
  const seen = atomicallySync((tx) => {
    const a = tx.get(used, 'a')
    if (++runs === 1)
      writtenElsewhere(used, [
        ['a', 2],
        ['b', 2],
        ['absent', 2],
      ])
    const pair = [a, tx.get(used, 'b')]
    assert.equal(pair[0], pair[1], 'never halves')
    return pair
  })
  assert.deepEqual([runs, seen], [2, [2, 2]])
  runs = 0
  const absent = atomicallySync((tx) => {
    const before = tx.get(used, 'none')
    if (++runs === 1) writtenElsewhere(used, [['none', 5]])
    return [before, tx.get(used, 'a')]
  })
  assert.deepEqual([runs, absent], [2, [5, 2]])
  used.close()
})

test('a write to another key of the same version word does not conflict', () => {
  const used = made()
  // 4096 words: of as many other keys, some have each word.
  const others = Array.from({ length: 30_000 }, (_, n) => [`other ${n}`, n] as const)
  used.set('a', 1)
  used.set('b', 1)
  let runs = 0
  const sum = atomicallySync((tx) => {
    const a = tx.get(used, 'a') ?? 0
    if (++runs === 1) writtenElsewhere(used, others)
    return a + (tx.get(used, 'b') ?? 0)
  })
  assert.deepEqual([runs, sum], [1, 2])
  used.close()
})

test('what a function reads is its own copy, and what it writes is copied when it commits', () => {
  const used = made<{ n: number }>()
  used.set('a', { n: 1 })
  const written = { n: 5 }
  atomicallySync((tx) => {
    const a = tx.get(used, 'a') as { n: number }
    a.n = 100
    assert.equal(tx.get(used, 'a'), a, 'the same object')
    tx.set(used, 'b', written)
    tx.set(used, 'c', written)
    written.n = 6
  })
  written.n = 7
  assert.deepEqual([used.get('a'), used.get('b'), used.get('c')], [{ n: 1 }, { n: 6 }, { n: 6 }])
  used.close()
})

test('many keys, long keys and large values are committed together', () => {
  const used = made<string>()
  const keys = ['k'.repeat(40_000), 'ключ'.repeat(2000), ...Array.from({ length: 300 }, (_, n) => `key ${n}`)]
  const large = 'x'.repeat(400_000)
  atomicallySync((tx) => {
    for (const key of keys) assert.equal(tx.get(used, key), undefined)
    for (const key of keys) tx.set(used, key, key.startsWith('key') ? key : large)
  })
  assert.equal(used.size, keys.length)
  const seen = atomicallySync((tx) => keys.map((key) => tx.get(used, key)))
  assert.deepEqual(
    seen,
    keys.map((key) => (key.startsWith('key') ? key : large)),
  )
  used.close()
})

test('buffers move into several values, once each', () => {
  const used = made<{ bytes: Uint8Array }>()
  const buffers = [1, 2].map((byte) => new Uint8Array([byte]))
  atomicallySync((tx) => {
    for (const [index, bytes] of buffers.entries()) tx.set(used, `${index}`, { bytes: move(bytes) })
  })
  assert.deepEqual(
    buffers.map(({ byteLength }) => byteLength),
    [0, 0],
  )
  assert.deepEqual([used.get('0')?.bytes[0], used.get('1')?.bytes[0]], [1, 2])
  const twice = new Uint8Array([3])
  const moves = (tx: Transaction): void => {
    for (const key of ['a', 'b']) tx.set(used, key, { bytes: move(twice) })
  }
  assert.throws(() => atomicallySync(moves), { code: 'STORE_ARGUMENT', message: /moved/ })
  assert.deepEqual([twice.byteLength, used.has('a')], [1, false])
  used.close()
})

test('entries keep, lose and get an expiration as update and set decide it', () => {
  const used = made({ ttlMs: 1000 })
  used.set('kept', 1, { ttlMs: 100_000 })
  used.set('set', 1, { ttlMs: 100_000 })
  atomicallySync((tx) => {
    tx.update(used, 'kept', (n = 0) => n + 1)
    tx.set(used, 'set', 2)
    tx.set(used, 'long', 1, { ttlMs: 100_000 })
    tx.update(used, 'long', (n = 0) => n + 1)
    tx.update(used, 'longer', () => 1, { ttlMs: 100_000 })
    tx.update(used, 'new', () => 1)
  })
  native.storeAdvance(2000)
  assert.deepEqual([...used].sort(), [
    ['kept', 2],
    ['long', 2],
    ['longer', 1],
  ])
  used.close()
})

test('retry waits until what was read is changed, and runs the function again', async () => {
  const [used, other] = [made(), made()]
  let runs = 0
  const take = atomically((tx) => {
    runs += 1
    const value = tx.get(used, 'job')
    tx.get(other, 'open')
    if (value === undefined) return tx.retry()
    tx.delete(used, 'job')
    return value
  })
  await waiting(take)
  used.set('unrelated', 1)
  await waiting(take)
  assert.equal(runs, 1)
  other.set('open', 1)
  await until(() => runs === 2)
  used.set('job', 7)
  assert.equal(await settled(take, 'the job'), 7)
  assert.deepEqual([runs, used.has('job')], [3, false])
  used.close()
  other.close()
})

test('what is changed between the attempt and the wait is not missed', async () => {
  const used = made()
  let runs = 0
  const value = await atomically((tx) => {
    const found = tx.get(used, 'a')
    if (++runs === 1) writtenElsewhere(used, [['a', 3]])
    tx.check(found !== undefined)
    return found
  })
  assert.deepEqual([runs, value], [2, 3])
  used.close()
})

test('retry ends by the expiration of what was read, by closing and clearing', async () => {
  const used = made()
  used.set('lease', 1, { ttlMs: 30 })
  const free = atomically((tx) => tx.check(tx.get(used, 'lease') === undefined))
  await waiting(free)
  await settled(free, 'the expiration')
  used.set('a', 1)
  const cleared = atomically((tx) => tx.check(tx.get(used, 'a') === undefined))
  await waiting(cleared)
  used.clear()
  await settled(cleared, 'clear')
  const never = atomically((tx) => tx.check(tx.get(used, 'a') !== undefined))
  await waiting(never)
  used.close()
  await assert.rejects(settled(never, 'the end'), { code: 'STORE_CLOSED' })
})

test('orElse takes the second way without the changes of the first, and waits for both', async () => {
  const used = made<{ n: number }>()
  const ref = new TRef(0)
  used.set('shared', { n: 1 })
  const either = (tx: Transaction): string =>
    tx.orElse(
      () => {
        const shared = tx.get(used, 'shared') as { n: number }
        shared.n = 50
        tx.set(used, 'left', { n: 1 })
        tx.set(used, 'before', { n: 2 })
        tx.set(ref, 9)
        tx.check(tx.get(used, 'a') !== undefined)
        return 'first'
      },
      () => {
        assert.deepEqual(tx.get(used, 'shared'), { n: 1 }, 'read again')
        assert.deepEqual([tx.get(used, 'before'), tx.get(ref)], [{ n: 1 }, 1])
        tx.check(tx.get(used, 'b') !== undefined)
        return 'second'
      },
    )
  const run = (tx: Transaction): string => {
    tx.set(used, 'before', { n: 1 })
    tx.set(ref, 1)
    return either(tx)
  }
  const waits = atomically(run)
  await waiting(waits)
  used.set('b', { n: 1 })
  assert.equal(await settled(waits, 'the second way'), 'second')
  assert.deepEqual([used.has('left'), used.get('before'), ref.get()], [false, { n: 1 }, 1])
  used.set('a', { n: 1 })
  assert.equal(atomicallySync(run), 'first')
  assert.deepEqual([used.has('left'), used.get('before'), ref.get()], [true, { n: 2 }, 9])
  assert.throws(
    () =>
      atomicallySync((tx) =>
        tx.orElse(
          () => {
            throw new Error('mine')
          },
          () => 1,
        ),
      ),
    { message: 'mine' },
  )
  used.close()
})

test('what a first way has read is compared when the second way commits', () => {
  const used = made()
  let runs = 0
  const seen = atomicallySync((tx) =>
    tx.orElse(
      () => {
        tx.check((tx.get(used, 'a') ?? 0) > 0)
        return 'first'
      },
      () => {
        if (++runs === 1) writtenElsewhere(used, [['a', 1]])
        tx.set(used, 'b', 1)
        tx.get(used, 'a')
        return 'second'
      },
    ),
  )
  assert.deepEqual([runs, seen, used.has('b')], [1, 'first', false])
  used.close()
})

test('a retry or a conflict that the function catches counts all the same', async () => {
  const used = made()
  used.set('a', 1)
  used.set('b', 1)
  const swallows = (tx: Transaction): string => {
    try {
      tx.check(tx.get(used, 'a') === 2)
    } catch {
      try {
        tx.set(used, 'x', 1)
      } catch {
        return 'swallowed'
      }
    }
    return 'done'
  }
  const waits = atomically(swallows)
  await waiting(waits)
  used.set('a', 2)
  assert.equal(await settled(waits, 'the change'), 'done')
  let runs = 0
  const seen = atomicallySync((tx) => {
    const a = tx.get(used, 'a')
    if (++runs === 1)
      writtenElsewhere(used, [
        ['a', 3],
        ['b', 3],
      ])
    const both = (): number | undefined => tx.get(used, 'b')
    try {
      return tx.orElse(both, () => 0)
    } catch {
      return a
    }
  })
  assert.deepEqual([runs, seen], [2, 3])
  const first = (tx: Transaction): unknown => {
    try {
      return tx.retry()
    } catch {
      return 1
    }
  }
  assert.equal(
    atomicallySync((tx) =>
      tx.orElse(
        () => first(tx),
        () => 2,
      ),
    ),
    2,
  )
  used.close()
})

test('refs of a thread are changed with keys, and wake who waits for them', async () => {
  const used = made()
  const [slots, log] = [new TRef(1), new TRef<readonly string[]>([])]
  const enter = (name: string): Promise<void> =>
    atomically((tx) => {
      tx.check(tx.get(slots) > 0)
      tx.update(slots, (n) => n - 1)
      tx.set(log, [...tx.get(log), name])
      tx.update(used, name, (n = 0) => n + 1)
    })
  await enter('a')
  const [b, c] = [enter('b'), enter('c')]
  await waiting(b)
  const leave = (): void => atomicallySync((tx) => void tx.update(slots, (n) => n + 1))
  leave()
  await settled(b, 'the first that waits')
  await waiting(c)
  leave()
  await settled(c, 'the second')
  assert.deepEqual([log.get(), slots.get(), used.get('c')], [['a', 'b', 'c'], 0, 1])
  const fails = (tx: Transaction): never => {
    tx.set(slots, 5)
    throw new Error('mine')
  }
  assert.throws(() => atomicallySync(fails))
  assert.equal(slots.get(), 0)
  assert.throws(() => encode(slots), { code: 'TRANSPORT_REFUSED' })
  used.close()
})

test('refs are written only if the keys were', () => {
  const [used, ref] = [made({ entriesMax: 1, eviction: 'none' }), new TRef(0)]
  const change = (tx: Transaction): void => {
    tx.set(ref, 1)
    for (const key of ['a', 'b']) tx.set(used, key, 1)
  }
  assert.throws(() => atomicallySync(change), { code: 'STORE_FULL' })
  assert.deepEqual([ref.get(), used.size], [0, 0])
  used.close()
})

test('what a store refuses, it refuses of a transaction, which names the key', () => {
  const [small, other] = [made<unknown>({ valueBytesMax: 50 }), made<unknown>()]
  const set = (key: string, value: unknown) => () =>
    atomicallySync((tx) => {
      tx.set(other, 'x', 1)
      tx.set(small, key, value)
    })
  assert.throws(set('long', 'x'.repeat(100)), { code: 'STORE_VALUE_TOO_LARGE', message: /"long"/ })
  assert.throws(set('fn', new WeakMap()), { code: 'TRANSPORT_REFUSED' })
  assert.throws(set('x'.repeat(70_000), 1), { code: 'STORE_ARGUMENT' })
  assert.equal(other.size, 0)
  small.close()
  assert.throws(set('a', 1), { code: 'STORE_CLOSED' })
  assert.throws(() => atomicallySync((tx) => tx.get(small, 'a')), { code: 'STORE_CLOSED' })
  assert.equal(other.size, 0)
  other.close()
})

test('wrong calls are refused by name', async () => {
  const used = made<unknown>()
  const wrongs: [(tx: Transaction) => unknown, RegExp][] = [
    [(tx) => tx.get({} as Store, 'a'), /tx\.get\(\): the first argument must be a store or a TRef/],
    [(tx) => tx.get(used, 1 as never), /a key of the store/],
    [(tx) => tx.set(used, 'a', undefined), /tx\.set\(\): value .*delete\(\)/],
    [(tx) => tx.update(used, 'a', 1 as never), /tx\.update\(\): the function must be a function/],
    [(tx) => tx.update(used, 'a', async () => 1), /tx\.update\(\): the function .*received/],
    [(tx) => tx.set(used, 'a', 1, { ttlMs: -1 }), /tx\.set\(\): ttlMs/],
    [(tx) => tx.orElse(() => 1, 1 as never), /tx\.orElse\(\): a way must be a function/],
    [async (tx) => tx.set(used, 'a', 1), /atomicallySync\(\): the function/],
    [
      function* (tx) {
        yield tx.set(used, 'a', 1)
      },
      /atomicallySync\(\): the function/,
    ],
    [
      async function* (tx) {
        yield tx.set(used, 'a', 1)
      },
      /atomicallySync\(\): the function/,
    ],
    [() => Promise.reject(new Error('not unhandled')), /atomicallySync\(\): the function/],
  ]
  for (const [fn, message] of wrongs)
    assert.throws(() => atomicallySync(fn), { code: 'STORE_ARGUMENT', message })
  assert.equal(used.size, 0)
  assert.throws(() => atomicallySync(1 as never), { code: 'STORE_ARGUMENT' })
  assert.throws(() => atomicallySync(() => 1, { timeoutMs: 1 } as object), { code: 'STORE_ARGUMENT' })
  await assert.rejects(
    atomically(() => 1, { keysMax: 0 }),
    { code: 'STORE_ARGUMENT', message: /keysMax/ },
  )
  used.close()
})

test('transactions do not nest, and end with their function', async () => {
  const used = made()
  const nested = (tx: Transaction): void => {
    tx.set(used, 'a', 1)
    atomicallySync((inner) => inner.set(used, 'a', 2))
  }
  assert.throws(() => atomicallySync(nested), { code: 'STORE_ATOMIC_NESTED' })
  let kept: Transaction | undefined
  atomicallySync((tx) => void (kept = tx))
  const later = kept as unknown as Transaction
  assert.throws(() => later.get(used, 'a'), { code: 'STORE_ATOMIC_ENDED' })
  assert.throws(() => later.retry(), { code: 'STORE_ATOMIC_ENDED' })
  assert.throws(() => encode(later), { code: 'TRANSPORT_REFUSED' })
  const controller = new AbortController()
  const keeps = (tx: Transaction): void => ((kept = tx), tx.check(tx.get(used, 'a') === 9))
  const waits = atomically(keeps, { signal: controller.signal })
  await waiting(waits)
  assert.throws(() => (kept as Transaction).get(used, 'a'), { code: 'STORE_ATOMIC_ENDED' })
  controller.abort()
  await assert.rejects(waits)
  assert.equal(used.size, 0)
  used.close()
})

test('another call that writes a key of the transaction is refused, and later ones are not', () => {
  const used = made()
  for (const write of [
    () => used.set('a', 2),
    () => used.delete('a'),
    () => used.update('a', () => 2),
    () => used.increment('a'),
  ]) {
    const beside = (tx: Transaction): void => {
      tx.set(used, 'a', 1)
      write()
    }
    assert.throws(() => atomicallySync(beside), { code: 'STORE_UPDATE_CYCLE', message: /tx\.set\(\)/ })
    const within = (): unknown =>
      used.update('a', () => atomicallySync((tx) => tx.update(used, 'a', () => 1)))
    assert.throws(within, { code: 'STORE_UPDATE_CYCLE' })
  }
  used.set('a', 3)
  assert.equal(used.get('a'), 3)
  used.close()
})

test('limits: keys, refs, attempts', async () => {
  const used = made()
  const reads = (tx: Transaction): void => {
    for (let n = 0; n < 4; n++) tx.get(used, `${n}`)
  }
  assert.throws(() => atomicallySync(reads, { keysMax: 3 }), { code: 'STORE_ATOMIC_KEYS' })
  atomicallySync(reads, { keysMax: 4 })
  const refs = [1, 2].map((value) => new TRef(value))
  const readsRefs = (tx: Transaction): unknown => refs.map((ref) => tx.get(ref))
  assert.throws(() => atomicallySync(readsRefs, { keysMax: 1 }), { code: 'STORE_ATOMIC_KEYS' })
  let runs = 0
  const contended = (tx: Transaction): void => {
    const value = tx.get(used, 'a') ?? 0
    writtenElsewhere(used, [['a', ++runs]])
    tx.set(used, 'a', value + 1)
  }
  const facts = { code: 'STORE_ATOMIC_CONTENDED', message: /attemptsMax/ }
  assert.throws(() => atomicallySync(contended, { attemptsMax: 2 }), facts)
  assert.equal(runs, 2)
  await assert.rejects(atomically(contended, { attemptsMax: 10 }), facts)
  assert.equal(runs, 12)
  used.close()
})

test('a call ends by its signal and its time, while it waits and before it begins', async () => {
  const used = made()
  const fn = (tx: Transaction): void => tx.check(tx.get(used, 'a') !== undefined)
  const controller = new AbortController()
  const waits = atomically(fn, { signal: controller.signal })
  await waiting(waits)
  controller.abort(new Error('enough'))
  await assert.rejects(waits, { message: 'enough' })
  await assert.rejects(atomically(fn, { signal: controller.signal }), { message: 'enough' })
  await assert.rejects(atomically(fn, { timeoutMs: 5 }), { code: 'STORE_ATOMIC_TIMEOUT', message: /5 ms/ })
  const own = new AbortController()
  const aborted = atomically((tx) => (own.abort(new Error('mine')), fn(tx)), { signal: own.signal })
  await assert.rejects(aborted, { message: 'mine' })
  used.close()
})

test('retry is refused where nothing can wait for it', async () => {
  const used = made()
  const nothing = atomically((tx) => tx.retry())
  await assert.rejects(nothing, { code: 'STORE_ATOMIC_WAITS', message: /before anything was read/ })
  const sync = (): unknown => atomicallySync((tx) => tx.check(tx.get(used, 'a') !== undefined))
  assert.throws(sync, { code: 'STORE_ATOMIC_WAITS', message: /cannot wait/ })
  used.close()
})

test('hooks of classes may use stores while a transaction reads and writes', () => {
  const [used, beside] = [made<unknown>(), made()]
  class Counted {
    readonly n: number
    constructor(n: number) {
      this.n = n
    }
  }
  const counts = (tx: Transaction): void => {
    for (const key of ['loaded', 'twice']) tx.update(beside, key, (n = 0) => n + 1)
  }
  const load = (n: number): Counted => (atomicallySync(counts), new Counted(n))
  const save = ({ n }: Counted): number => (beside.increment('saved'), n)
  register(Counted, { cid: 'atomically.test.Counted', save, load })
  atomicallySync((tx) => {
    for (const key of ['a', 'b']) tx.set(used, key, new Counted(1))
  })
  assert.equal(beside.get('saved'), 2)
  assert.throws(() => atomicallySync((tx) => tx.get(used, 'a')), { code: 'STORE_ATOMIC_NESTED' })
  assert.deepEqual([used.get('a'), beside.get('loaded'), beside.get('twice')], [new Counted(1), 1, 1])
  used.close()
  beside.close()
})

test('one store with a file contains a transaction whole; two are refused', async () => {
  const [file, other] = ['one', 'two'].map((name) => made<number>({ file: join(folder, `${name}.db`) }))
  const memory = made()
  atomicallySync((tx) => {
    for (const key of ['a', 'b']) tx.set(file, key, 1)
    tx.set(memory, 'c', tx.get(other, 'none') ?? 1)
  })
  const both = (tx: Transaction): void => [file, other].forEach((used) => tx.set(used, 'a', 2))
  const message = new RegExp(`${file.id}, ${other.id}`)
  assert.throws(() => atomicallySync(both), { code: 'STORE_ATOMIC_FILES', message })
  await file.flush()
  file.close()
  const again = made<number>({ file: join(folder, 'one.db') })
  assert.deepEqual([...again].sort(), [
    ['a', 1],
    ['b', 1],
  ])
  for (const used of [again, other, memory]) used.close()
})

/** Transfers with a count of them until the process is killed; each line acknowledges what was flushed. */
const WRITER = `
  const { atomicallySync, store } = await import(process.argv[1])
  const used = store.create('accounts', { file: process.argv[2] })
  for (let n = 1; ; n++) {
    atomicallySync((tx) => {
      const count = tx.update(used, 'count', (before = 0) => before + 1)
      const amount = count % 7
      tx.update(used, 'from ' + (count % 20), (sum = 0) => sum - amount)
      tx.update(used, 'to ' + (count % 30), (sum = 0) => sum + amount)
      if (count % 5 === 0) tx.delete(used, 'mark')
      else tx.set(used, 'mark', count)
    })
    if (n % 50 === 0) {
      await used.flush()
      console.log(used.get('count'))
    }
  }`

test('after kill -9 a file has all of each transaction or nothing, and what was flushed', async () => {
  const file = join(folder, 'killed.db')
  for (let kill = 0; kill < share(6); kill++) {
    const module = new URL('../index.js', import.meta.url).href
    const args = ['--input-type=module', '-e', WRITER, module, file]
    const writer = spawn(process.execPath, [...process.execArgv, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let flushed = 0
    let lines = 0
    writer.stdout.on('data', (data: Buffer) => {
      const numbers = data.toString().trim().split('\n')
      lines += numbers.length
      flushed = Number(numbers.at(-1))
    })
    await until(() => lines > kill * 3, 'transfers that are flushed')
    writer.kill('SIGKILL')
    await once(writer, 'exit')
    const used = made<number>({ file })
    const count = used.get('count') as number
    let sum = 0
    for (const [key, value] of used) if (key.startsWith('from') || key.startsWith('to')) sum += value
    assert.equal(sum, 0)
    assert.ok(count >= flushed, `${count} of ${flushed}`)
    assert.equal(used.get('mark'), count % 5 === 0 ? undefined : count)
    used.close()
  }
})
