/**
 * Weak stores close when no thread has a reference to them; others do not. The collector is forced until they
 * have. References in other threads: src/zone/weak.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from '../base/wait.test.support.ts'
import { atomicallySync, store } from './index.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const isOpen = (id: string): boolean => {
  try {
    return store.get(id).id === id
  } catch {
    return false
  }
}
// Looks without opening it, which would be a reference.
const count = (): number => store.count
const collected = (most: number): Promise<void> =>
  until(() => {
    gc()
    return count() <= most
  }, 'the end of a store')

/** Uses stores in all ways, and keeps none. */
async function used(): Promise<void> {
  for (let index = 0; index < 20; index++) {
    const own = store.create<number>(`weak-${index}`, { weak: true })
    own.set('a', 1)
    own.view('a')
    own.watch('a')
    atomicallySync((tx) => tx.update(own, 'a', (n = 0) => n + 1))
    await own.getOrCompute('b', () => 2)
  }
}

test('weak stores without a reference close, others stay', async () => {
  const lasting = count()
  store.create('weak-not')
  const kept = store.create<number>('weak-kept', { weak: true })
  kept.set('a', 1)
  await used()
  await collected(lasting + 2)
  assert.deepEqual([isOpen('weak-not'), store.get('weak-kept').get('a')], [true, 1])
  store.get('weak-not').close()
  kept.close()
  await collected(lasting)
  // The name is free again.
  store.create('weak-kept', { weak: true }).close()
})

test('a weak store has no file, and getOrCreate compares the option', () => {
  const argument = { code: 'STORE_ARGUMENT' }
  assert.throws(() => store.create('weak-file', { weak: true, file: 'weak.corespun' }), argument)
  const own = store.create('weak-same', { weak: true })
  assert.equal(store.getOrCreate('weak-same'), own)
  assert.equal(store.getOrCreate('weak-same', { weak: true }), own)
  assert.throws(() => store.getOrCreate('weak-same', { weak: false }), argument)
  own.close()
})
