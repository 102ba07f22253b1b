/**
 * Sets and maps of fibers: what is in them, what replaces what, and how they end.
 *
 * Compared with a plain Map under seeds.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Fiber, Deferred, FiberMap, FiberSet, dump, fail, fork, never, sleep } from '../index.ts'
import { crowds, play } from './actors.test.support.ts'

const steps = fc.record({ key: fc.nat(2), does: fc.constantFrom('run', 'clear', 'end'), holdMs: fc.nat(4) })

test('a map has the last fiber of each key that has not ended, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(crowds(steps), fc.nat(), async (actors, seed) => {
      const map = new FiberMap<number>()
      const begun: [number, Fiber][] = []
      await play(
        seed,
        actors,
        ({ key, does, holdMs }) =>
          function* () {
            if (does === 'run') begun.push([key, map.run(key, sleep(holdMs))])
            else if (does === 'clear') yield* map.clear()
            else yield* map.get(key)?.interrupt() ?? sleep(0)
            const open = begun.filter(([, { exit }]) => exit === undefined)
            assert.equal(map.size, open.length)
            for (const [other, fiber] of map)
              assert.equal(begun.findLast(([one]) => one === other)?.[1], fiber)
          },
        () => map.empty() as never,
      )
      assert.deepEqual([map.size, [...map]], [0, []])
      await map.close()
    }),
    { numRuns: 200 },
  )
})

test('the first failure ends all, and join throws it', async () => {
  const set = new FiberSet()
  const failing = new Deferred<void, string>()
  const other = set.run(never())
  set.run(failing.await())
  assert.deepEqual([...set].length, 2)
  const joined = assert.rejects(set.join(), (error) => error === 'lost')
  failing.fail('lost')
  await joined
  assert.equal(other.exit?.kind, 'interruption')
  assert.throws(() => set.run(never()), { code: 'FIBER_SCOPE_CLOSED' })
  await set.close()
})

test('a full set refuses a fiber, and accepts one when another has ended', async () => {
  const set = new FiberSet({ fibersMax: 1 })
  const first = set.run(never())
  assert.throws(() => set.run(() => 1), { code: 'FIBER_FULL' })
  await first.interrupt()
  assert.equal(await set.run(() => 1).join(), 1)
  await set.clear()
  await set.empty()
  await set[Symbol.asyncDispose]()
  assert.throws(() => new FiberMap({ fibersMax: 0 }), { code: 'FIBER_ARGUMENT' })
})

test('one that a fiber has made ends with it, and fails it if nobody received the failure', async () => {
  let kept: Fiber | undefined
  await fork(function* () {
    kept = new FiberSet().run(never())
    yield* sleep(1)
  }).join()
  assert.equal(kept?.exit?.kind, 'interruption')
  const exit = await fork(function* () {
    new FiberMap().run('a', fail('lost'))
    yield* sleep(1)
  }).await()
  assert.deepEqual(exit, { kind: 'failure', error: 'lost', others: [] })
  assert.deepEqual(dump(), [])
})
