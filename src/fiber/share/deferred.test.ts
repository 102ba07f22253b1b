/**
 * Deferreds, latches, barriers: who waits for what is set once, opened, or complete.
 *
 * With interruptions and under seeds; in fibers and with await.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { share } from '../../base/part.test.support.ts'
import { encode } from '../../transport/index.ts'
import {
  Barrier,
  Deferred,
  Exit,
  Latch,
  Queue,
  Ref,
  Semaphore,
  dump,
  fork,
  never,
  timeout,
} from '../index.ts'
import { crowds, play, scripts } from './actors.test.support.ts'

test('a Deferred is set once, and all who wait before and after receive that', async () => {
  await fc.assert(
    fc.asyncProperty(scripts(fc.constantFrom('await', 'set')), fc.nat(), async (drawn, seed) => {
      const actors = [...drawn, { does: 'set', atMs: 50.5, cutMs: Infinity }]
      const deferred = new Deferred<number>()
      const outcomes = await play(seed, actors, (does, index) =>
        does === 'set' ? () => deferred.succeed(index) : (deferred.await() as never),
      )
      const setters = outcomes.flatMap(({ value }, index) => (value === true ? [index] : []))
      assert.equal(setters.length, 1)
      const setMs = outcomes[setters[0]].ms
      for (const [index, { kind, value, ms }] of outcomes.entries()) {
        const { does, atMs, cutMs } = actors[index]
        const readyMs = Math.max(setMs, atMs)
        if (does === 'set') assert.ok(kind === 'interruption' || value === (index === setters[0]))
        else if (cutMs < readyMs) assert.deepEqual([kind, ms], ['interruption', cutMs])
        else assert.deepEqual([kind, value, ms], ['success', setters[0], readyMs])
      }
    }),
  )
})

test('a Deferred ends those who wait as it was ended', async () => {
  const failed = new Deferred<number, string>()
  assert.equal(failed.fail('no'), true)
  assert.equal(failed.done(Exit.success(1)), false)
  assert.deepEqual(await fork(failed.await()).await(), Exit.failure('no'))
  const broken = new Deferred()
  const waiting = fork(broken.await())
  broken.done(Exit.defect('bug'))
  assert.deepEqual(await waiting.await(), Exit.defect('bug'))
  const stopped = new Deferred()
  stopped.done(Exit.interruption('stop'))
  await assert.rejects(stopped.await(), { code: 'FIBER_INTERRUPTED' })
  assert.deepEqual(stopped.exit, Exit.interruption('stop'))
})

test('outside of fibers a wait begins at once; in the code of a fiber with yield* or await', async () => {
  const latch = new Latch()
  const promise = latch.await()
  assert.equal(dump().length, 1)
  latch.open()
  await promise
  const inside = fork(async () => {
    const wait = new Latch().await()
    assert.equal(dump().length, 0)
    await new Latch({ count: 0 }).await().finally(() => {})
    await Promise.all([latch.await(), latch.await().catch(() => {})])
    return Object.prototype.toString.call(wait)
  })
  assert.equal(await inside.join(), '[object Promise]')
  assert.deepEqual(dump(), [])
})

test('a latch is open when it was counted down, and can be closed again', async () => {
  const latch = new Latch({ count: 2 })
  latch.countDown()
  assert.equal(latch.isOpen, false)
  latch.countDown()
  latch.countDown()
  await latch.await()
  latch.close()
  await assert.rejects(fork(timeout(1, latch.await())).join(), { code: 'FIBER_TIMEOUT' })
  const controller = new AbortController()
  const wait = latch.await({ signal: controller.signal })
  controller.abort('given up')
  await assert.rejects(wait, (reason) => reason === 'given up')
  const ever = new Latch({ count: 0 })
  ever.close()
  assert.equal(ever.isOpen, false)
  ever.countDown()
  assert.equal(ever.isOpen, true)
})

test('a barrier lets whole rounds go on, and does not count who was interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(
      scripts(fc.constant(0)),
      fc.integer({ min: 1, max: 4 }),
      fc.nat(),
      async (actors, parties, seed) => {
        const barrier = new Barrier({ parties })
        // The oracle: arrivals in order, without those who left before their round was whole.
        const expected = new Map<number, [number, number]>()
        let round: number[] = []
        const events = actors.flatMap(({ atMs, cutMs }, index) => [
          { ms: atMs, index, isCut: false },
          { ms: cutMs, index, isCut: true },
        ])
        const cut = new Set<number>()
        for (const { ms, index, isCut } of events.sort((one, two) => one.ms - two.ms)) {
          if (isCut) {
            cut.add(index)
            round = round.filter((other) => other !== index)
          } else if (!cut.has(index)) round.push(index)
          if (round.length < parties) continue
          for (const [order, other] of round.entries()) expected.set(other, [order, ms])
          round = []
        }
        const ended = actors.map((actor, index) =>
          expected.has(index) || actor.cutMs < Infinity ? actor : { ...actor, cutMs: 100 + index },
        )
        const outcomes = await play(seed, ended, () => barrier.await() as never)
        for (const [index, { kind, value, ms }] of outcomes.entries()) {
          const whole = expected.get(index)
          if (whole === undefined) assert.equal(kind, 'interruption')
          else assert.deepEqual([kind, value, ms], ['success', ...whole])
        }
      },
    ),
  )
})

test('crowds at a barrier leave it empty or with less than a round', async () => {
  await fc.assert(
    fc.asyncProperty(crowds(fc.constant(0)), fc.nat(), async (drawn, seed) => {
      const barrier = new Barrier({ parties: 3 })
      const actors = drawn.map((actor) => ({ ...actor, cutMs: Math.min(actor.cutMs, 20) }))
      const outcomes = await play(seed, actors, () => barrier.await() as never)
      assert.equal(barrier.waiting, 0)
      // A round of three ends together; one of them may have been interrupted at that moment.
      const passed = outcomes.filter(({ kind }) => kind === 'success')
      for (const index of [0, 1, 2]) {
        const count = passed.filter(({ value }) => value === index).length
        assert.ok(count <= Math.floor(actors.length / 3))
      }
    }),
  )
})

test('a Ref is replaced, updated and modified', () => {
  const ref = new Ref(1)
  ref.set(2)
  assert.equal(
    ref.update((value) => value * 10),
    20,
  )
  assert.equal(
    ref.modify((value) => [`was ${value}`, 0]),
    'was 20',
  )
  assert.equal(ref.get(), 0)
})

test('what fibers share is refused by the transport with what to do instead', () => {
  for (const shared of [
    new Deferred(),
    new Ref(1),
    Queue.unbounded(),
    new Semaphore({ permits: 1 }),
    new Latch(),
  ])
    assert.throws(() => encode({ shared }), /shared.*it belongs to the fibers of its thread; share a Channel/)
  assert.ok(encode(Object.assign(Object.create(null), { a: 1 })).length > 0)
})

test('waits that are interrupted by ten thousands leave nothing', async () => {
  const latch = new Latch()
  const fibers = Array.from({ length: share(100_000) }, () => fork(latch.await()))
  await Promise.all(fibers.slice(1).map((fiber) => fiber.interrupt()))
  latch.open()
  await fibers[0].join()
  const held = fork(never())
  assert.equal(dump().length, 1)
  await held.interrupt()
})

for (const [name, make] of Object.entries({
  'no parties': () => new Barrier({} as never),
  'parties: 0': () => new Barrier({ parties: 0 }),
  'a count below 0': () => new Latch({ count: -1 }),
  'an unknown option of a wait': () => new Latch().await({ ms: 1 } as never),
}))
  test(`${name} is refused`, () => assert.throws(make, { code: 'FIBER_ARGUMENT' }))
