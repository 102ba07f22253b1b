/**
 * Weak zones close when no thread but their own has a reference to them and no call waits; others do not. The
 * collector is forced until they have.
 */
import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { native } from '../native/index.ts'
import { until } from '../base/wait.test.support.ts'
import { store } from '../store/index.ts'
import { type Zone, type ZoneOptions, zone } from './index.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

// Looks without opening it, which would be a reference.
const isKnown = (id: string): boolean => native.zoneIds().split('\0').includes(id)
const ended = (id: string): Promise<void> =>
  until(() => {
    gc()
    return !isKnown(id)
  }, `the end of ${id}`)
const closed: string[] = []
channel('corespun:zone:closed').subscribe((event) => closed.push((event as { zone: string }).zone))

const SETTINGS: readonly ZoneOptions[] = [
  { workers: 2 },
  { executor: 'work-stealing', workers: 2 },
  { executor: 'cached', workers: { min: 0, max: 2 } },
  ...(process.platform === 'win32' ? [] : [{ isolation: 'process', workers: 1 } as const]),
]

for (const settings of SETTINGS)
  test(`a weak zone without a reference closes: ${JSON.stringify(settings)}`, async () => {
    const id = `weak-${JSON.stringify(settings)}`
    await (async () => {
      const own = zone.create(id, { ...settings, weak: true })
      // Its workers have a reference, which does not count.
      const mine = async (): Promise<string> => {
        const { zone } = await import('corespun/zone')
        ;(globalThis as { mine?: unknown }).mine = zone.current
        return zone.current.id
      }
      assert.equal(await own.run(mine), id)
      assert.deepEqual(await own.map([1, 2], (n) => n + 1), [2, 3])
    })()
    await ended(id)
    await until(() => closed.includes(id))
    assert.throws(() => zone.get(id), { code: 'ZONE_UNKNOWN' })
    // The name is free.
    await zone.create(id, { workers: 1 }).close()
  })

test('a call that waits keeps a weak zone, and so does a reference in another thread', async () => {
  const other = zone.create('weak-other', { workers: 1 })
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const waits = (async () => {
    const own = zone.create('weak-waits', { workers: 1, weak: true })
    await other.run((given) => void ((globalThis as { given?: unknown }).given = given), own)
    return own.run(async (gate) => {
      while (Atomics.load(gate, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      return 5
    }, gate)
  })()
  const rounds = async (): Promise<void> => {
    for (let round = 0; round < 5; round++) {
      gc()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await rounds()
  Atomics.store(gate, 0, 1)
  assert.equal(await waits, 5)
  await rounds()
  assert.ok(isKnown('weak-waits'))
  await other.close()
  await ended('weak-waits')
})

test('a reference in another thread keeps a weak store, until that thread ends', async () => {
  const lasting = store.count
  const own = zone.create('weak', { workers: 1 })
  await (async () => {
    const made = store.create<number>('weak-shared', { weak: true })
    made.set('a', 7)
    await own.run((given) => void ((globalThis as { given?: unknown }).given = given), made)
  })()
  for (let round = 0; round < 5; round++) {
    gc()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(
    await own.run(() => (globalThis as { given?: { get(key: string): unknown } }).given?.get('a')),
    7,
  )
  await own.close()
  await until(() => {
    gc()
    return store.count === lasting
  }, 'the end of the store')
})

test('getOrCreate compares the option, and a zone that is not weak stays', async () => {
  const own = zone.create('weak-same', { workers: 1, weak: true })
  assert.equal(zone.getOrCreate('weak-same', { weak: true }), own)
  assert.throws(() => zone.getOrCreate('weak-same', { weak: false }), { code: 'ZONE_ARGUMENT' })
  await own.close()
  ;(() => zone.create('weak-not', { workers: 1 }))()
  const marker = (() => new WeakRef({}))()
  await until(() => {
    gc()
    return marker.deref() === undefined
  })
  assert.ok(isKnown('weak-not'))
  await zone.get('weak-not').close()
})

test('a closing weak zone has a successor, which keeps its listeners; its end comes last', async () => {
  const id = 'weak-again'
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const ends = (): number => closed.filter((name) => name === id).length
  await busy(id, gate, {})
  await ended(id)
  const next = zone.create(id, { workers: 1 })
  const errors: unknown[] = []
  next.onError((error) => errors.push((error as Error).message))
  assert.equal(ends(), 0)
  Atomics.store(gate, 0, 1)
  await until(() => ends() === 1, 'the end of the first')
  await next.run(() => void setImmediate(() => Promise.reject(new Error('late'))))
  await until(() => errors.length > 0, 'the error')
  assert.deepEqual(errors, ['late'])
  await next.close()
  assert.equal(ends(), 2)
})

test('a weak zone with a task that never ends closes after closeMs', async () => {
  await busy('weak-busy', new Int32Array(new SharedArrayBuffer(4)), { closeMs: 20, graceMs: 10 })
  await ended('weak-busy')
  await until(() => closed.includes('weak-busy'), 'its end')
})

/** A weak zone that nothing refers to but a task of its worker, which ends with the gate. */
async function busy(id: string, gate: Int32Array, options: ZoneOptions): Promise<void> {
  const own = zone.create(id, { workers: 1, weak: true, ...options })
  await own.run(async (gate) => {
    const { zone } = await import('corespun/zone')
    void (zone.current as Zone).run(async (gate) => {
      while (Atomics.load(gate, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }, gate)
  }, gate)
}
