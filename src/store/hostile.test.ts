/**
 * What unfriendly programs do to a store: keys and values at their limits, functions that throw or come back,
 * readers that never read, a store that closes under those who wait.
 *
 * Each ends with an error that names the cause, and with a store that works.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { native } from '../native/index.ts'
import { move } from '../transport/index.ts'
import { store, type Store, type StoreOptions } from './index.ts'

/** What an entry with a key of one letter, which is two bytes, counts beside its value. */
const ENTRY_BYTES = 98

let last = 0
function made<Value = unknown>(settings?: StoreOptions): Store<Value> {
  return store.create<Value>(`hostile ${++last}`, settings)
}

/** A key is accepted and found again, by all that take keys, or refused by all of them. */
function check(key: string, isAccepted: boolean): void {
  const used = made<number>()
  const uses = [
    () => used.set(key, 1),
    () => assert.equal(used.get(key), 1),
    () => assert.equal(used.has(key), true),
    () => assert.equal(used.view(key), 1),
    () => assert.equal(used.increment(key), 2),
    () => assert.deepEqual([...used.keys()], [key]),
    () => assert.equal(used.delete(key), true),
  ]
  for (const use of uses) {
    if (isAccepted) use()
    else if (use !== uses[5]) assert.throws(use, { code: 'STORE_ARGUMENT' }, `${key.length} characters`)
  }
  assert.equal(used.size, 0)
  used.close()
}

test('keys at and beyond 64 KiB, empty ones, halves of characters', () => {
  for (const length of [0, 1, 40, 41, 64, 65, 65_535, 65_536]) check('k'.repeat(length), true)
  check('k'.repeat(65_537), false)
  for (const length of [32_767, 32_768]) check('键'.repeat(length), true)
  for (const length of [32_769, 65_536]) check('键'.repeat(length), false)
  for (const key of ['\ud800', '\udc00\ud800', 'a\udfff', '\0', 'ÿ', 'Ā', '__proto__']) check(key, true)
})

test('keys that look alike are different ones', () => {
  const used = made<string>()
  const keys = ['', '\0', '\0\0', 'a', 'a\0', '\u0161', 'a\u0001', 'é', 'e\u0301', '\ud800', '\ufffd']
  for (const key of keys) used.set(key, key)
  for (const key of keys) assert.equal(used.get(key), key)
  assert.equal(used.size, keys.length)
})

test('more keys than a thread has numbers for, repeatedly', () => {
  const used = made<number>()
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 9000; n++) used.set(`key ${n}`, n + round)
    for (let n = 0; n < 9000; n += 7) assert.equal(used.get(`key ${n}`), n + round)
  }
  assert.equal(used.size, 9000)
})

test('a key cut out of a long text does not keep the text', () => {
  const used = made<number>()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 200; n++) used.set(`${'filling '.repeat(200_000)}${n}`.slice(-40), n)
  assert.equal(used.size, 200)
  globalThis.gc?.()
  assert.ok(process.memoryUsage().heapUsed < before + 200e6)
})

test('values at and over the limit', () => {
  const probe = made<string>()
  probe.set('k', 'x'.repeat(1000))
  const bytes = probe.stats().bytes - ENTRY_BYTES
  const used = made<string>({ valueBytesMax: bytes })
  used.set('k', 'x'.repeat(1000))
  assert.throws(() => used.set('k', 'x'.repeat(1001)), { code: 'STORE_VALUE_TOO_LARGE' })
  assert.throws(() => used.update('k', (old) => `${old}y`), { code: 'STORE_VALUE_TOO_LARGE' })
  assert.equal(used.get('k'), 'x'.repeat(1000))
  assert.throws(() => used.set('k', Symbol('no') as never), { name: 'TransportError' })
  assert.throws(() =>
    used.set('k', {
      get bad() {
        throw new RangeError('getter')
      },
    } as never),
  )
  assert.equal(used.get('k'), 'x'.repeat(1000))
})

test('values that grow and shrink in place are whole', () => {
  const used = made<string>({ bytesMax: 1_000_000 })
  const plain = made<string>()
  for (const length of [0, 1, 100, 51, 49, 100, 4000, 4096, 5000, 4000, 2100, 2000, 1, 60_000, 3]) {
    for (const each of [used, plain]) {
      each.set('k', 'v'.repeat(length))
      assert.equal(each.get('k'), 'v'.repeat(length))
    }
    assert.equal(plain.stats().bytes, used.stats().bytes)
  }
})

test('a function of update that writes or deletes its own key is refused, and nothing has changed', () => {
  const used = made<number>()
  used.set('k', 1)
  const cyclic: readonly (() => unknown)[] = [
    () => used.set('k', 2),
    () => used.set('k', 2, { ttlMs: 1000 }),
    () => used.delete('k'),
    () => used.increment('k'),
    () => used.update('k', () => 3),
    () => used.compareAndSet('k', 1, 4),
    () => used.update('other', () => (used.set('k', 5), 6)),
  ]
  for (const write of cyclic) {
    const again = (): number => (write(), 7)
    assert.throws(
      () => used.update('k', again),
      { code: 'STORE_UPDATE_CYCLE', message: /"k"/ },
      String(write),
    )
    assert.deepEqual([...used], [['k', 1]], String(write))
  }
  assert.equal(
    used.update('k', (old = 0) => (used.get('k') ?? 0) + old),
    2,
    'reading it is allowed',
  )
  used.update('k', () => (used.set('other', 8), 9))
  used.set('k', 10)
  assert.deepEqual([used.get('k'), used.get('other')], [10, 8])
  assert.throws(() => used.update('k', () => (used.close(), 1)), { code: 'STORE_CLOSED' })
})

test('a computation that fails at once, asks for itself, or closes its store', async () => {
  const used = made<number>()
  const fail = (): never => {
    throw new RangeError('at once')
  }
  await assert.rejects(used.getOrCompute('k', fail), RangeError)
  await assert.rejects(used.getOrCompute('k', fail, { ttlMs: -1 }), { code: 'STORE_ARGUMENT' })
  await assert.rejects(
    used.getOrCompute('k', () => used.getOrCompute('k', () => 1)),
    { code: 'STORE_COMPUTE_CYCLE', message: /"k"/ },
  )
  await assert.rejects(
    used.getOrCompute('k', () => Symbol('no') as never),
    { name: 'TransportError' },
  )
  assert.equal(await used.getOrCompute('k', () => 1), 1)
  const closing = made<number>()
  let finish = (): void => {}
  const leading = closing.getOrCompute('k', () => new Promise((resolve) => (finish = () => resolve(1))))
  const waiting = closing.getOrCompute('k', () => 2)
  await new Promise(setImmediate)
  closing.close()
  finish()
  const all = await Promise.allSettled([leading, waiting])
  for (const one of all) {
    assert.equal(one.status === 'rejected' && (one.reason as { code: string }).code, 'STORE_CLOSED')
  }
})

test('a watcher without a reader stays small and reports a gap', async () => {
  const used = made<number>()
  const watch = used.watch({ prefix: '' }, { eventsMax: 2 })
  for (let n = 0; n < 20_000; n++) used.set(`k${n % 10}`, n)
  const seen = []
  for (let n = 0; n < 3; n++) seen.push((await watch.next()).value)
  assert.deepEqual(
    seen.slice(0, 2).map((event) => event?.type),
    ['set', 'set'],
  )
  assert.deepEqual(seen[2], { type: 'gap', missed: 19_998 })
  await watch.return()
  for (const eventsMax of [0, -1, 1.5, NaN, '5' as never]) {
    assert.throws(() => used.watch('k', { eventsMax }), { code: 'STORE_ARGUMENT' })
  }
})

test('a store that closes ends those who wait for it', async () => {
  const used = made<number>()
  const watch = used.watch('k')
  const next = watch.next()
  used.close()
  assert.equal((await next).value?.type, 'clear')
  assert.equal((await watch.next()).done, true)
  used.close()
  const uses = [
    () => used.view('k'),
    () => used.increment('k'),
    () => used.update('k', () => 1),
    () => used.clear(),
    () => used.stats(),
    () => used.size,
    () => [...used.keys()],
    () => [...used.entries()],
    () => used.watch('k'),
  ]
  for (const use of uses) assert.throws(use, { code: 'STORE_CLOSED' }, String(use))
  await assert.rejects(
    used.getOrCompute('k', () => 1),
    { code: 'STORE_CLOSED' },
  )
})

test('what to watch is a key or a prefix', () => {
  const used = made()
  for (const what of [null, undefined, 5, {}, { prefix: 5 }] as never[])
    assert.throws(() => used.watch(what), { code: 'STORE_ARGUMENT' })
})

test('a refused write leaves memory where it was, and so does one that lost against another', () => {
  const used = made<unknown>({ valueBytesMax: 64 })
  const buffer = new ArrayBuffer(8)
  const large = { buffer: move(buffer), text: 'x'.repeat(100) }
  assert.throws(() => used.set('k', large), { code: 'STORE_VALUE_TOO_LARGE' })
  assert.equal(buffer.byteLength, 8)
  let calls = 0
  used.set('k', 'before')
  used.update('k', () => {
    if ((calls += 1) === 1) used.clear()
    return move(buffer)
  })
  assert.equal(calls, 2)
  assert.equal((used.get('k') as ArrayBuffer).byteLength, 8)
  assert.equal(buffer.byteLength, 0)
})

test('a key that is refused leaves nothing of its value behind', () => {
  const used = made<unknown>()
  const buffer = new ArrayBuffer(8)
  const before = native.bufferCount()
  assert.throws(() => used.set('键'.repeat(40_000), { buffer: move(buffer) }), { code: 'STORE_ARGUMENT' })
  used.set('next', 1)
  assert.deepEqual([native.bufferCount(), buffer.byteLength], [before, 8])
})

test('options that are not an object are refused by name', () => {
  for (const settings of [null, 5, 'lru'] as never[]) {
    assert.throws(() => made(settings), { code: 'STORE_ARGUMENT', message: /store\.create\(\): options/ })
    assert.throws(() => store.getOrCreate(`hostile ${++last}`, settings), { code: 'STORE_ARGUMENT' })
  }
})

test('one entry, bounded in bytes as well', () => {
  const used = made<unknown>({ entriesMax: 1, bytesMax: 100_000 })
  for (const value of [5, 'x'.repeat(50_000), { a: 1 }]) {
    used.set(`key of ${typeof value}`, value)
    assert.deepEqual([used.size, used.get(`key of ${typeof value}`)], [1, value])
  }
})
