/**
 * Steps on a zone under the seeded runtime: every order in which tasks end and fibers are interrupted.
 *
 * The zone is one of the clock's: it runs a task when virtual time has come, and counts what it was asked and
 * notified of. So an end that comes twice, after a call was cancelled, or never, shows under some seed, and
 * that seed shows it again. Real zones are in on.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WorkerZone } from '../../zone/internal.ts'
import { turn } from '../scheduler/scheduler.ts'
import { findRun, simulate } from '../../test/played.test.support.ts'
import { type Operation, all, allSettled, fork, forEach, on, race, sleep, timeout } from '../index.ts'

const TASK_MS_MAX = 20

interface Counts {
  begun: number
  ended: number
  givenUp: number
}

/** A zone whose tasks take as long as the seed decides. */
function seededZone(): { readonly zone: WorkerZone; readonly counts: Counts } {
  const counts: Counts = { begun: 0, ended: 0, givenUp: 0 }
  const begin: WorkerZone['begin'] = (fn, args, resolve, reject) => {
    assert.ok(typeof fn === 'function')
    const { scheduler } = turn
    let isOpen = true
    const close = (): void => {
      assert.ok(isOpen, 'a call ends once')
      isOpen = false
    }
    const timed = {
      atMs: scheduler.nowMs() + Math.floor(scheduler.random() * TASK_MS_MAX),
      index: -1,
      order: 0,
      due: () => {
        close()
        counts.ended += 1
        try {
          resolve(fn(...(args as never[])))
        } catch (thrown) {
          reject(thrown)
        }
      },
    }
    counts.begun += 1
    scheduler.wait(timed)
    return () => {
      if (!isOpen) return
      close()
      counts.givenUp += 1
      scheduler.forget(timed)
    }
  }
  return {
    zone: Object.create(WorkerZone.prototype, { id: { value: 'seeded' }, begin: { value: begin } }),
    counts,
  }
}

const double = (x: number): number => x * 2
const odd = (x: number): number => {
  if (x % 2 === 0) throw new RangeError('even')
  return x
}

test('every call ends or is given up, and every fiber has its own value or was interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      fc.array(fc.nat(TASK_MS_MAX), { minLength: 1, maxLength: 8 }),
      async (seed, ms) => {
        const { zone, counts } = seededZone()
        const run = await simulate(seed, function* (): Operation<void> {
          const fibers = ms.map((_, index) =>
            fork(function* () {
              return (yield* on(zone, double, index)) + (yield* on(zone, double, index))
            }),
          )
          for (const [index, fiber] of fibers.entries()) {
            yield* sleep(ms[index] / 4)
            const exit = index % 2 === 0 ? yield* fiber.interrupt('enough') : yield* fiber.await()
            if (exit.kind === 'success') assert.equal(exit.value, index * 4)
            else assert.deepEqual(exit, { kind: 'interruption', reason: 'enough', others: [] })
          }
        })
        assert.equal(run.exit.kind, 'success')
        assert.equal(counts.ended + counts.givenUp, counts.begun)
      },
    ),
    { numRuns: 300 },
  )
})

test('combinators over tasks leave none behind, whoever wins and whatever is thrown', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (seed) => {
      const { zone, counts } = seededZone()
      const numbers = [0, 1, 2, 3]
      const step = (x: number) => () => on(zone, odd, x)
      const run = await simulate(seed, function* (): Operation<void, unknown> {
        yield* race(numbers.map((x) => () => on(zone, double, x)))
        yield* allSettled(numbers.map(step))
        yield* forEach(numbers, (x) => on(zone, double, x), { concurrency: 2 })
        const late = yield* fork(timeout(TASK_MS_MAX / 2, () => all(numbers.map(step)))).await()
        assert.notEqual(late.kind, 'success')
      })
      assert.equal(run.exit.kind, 'success')
      assert.equal(counts.ended + counts.givenUp, counts.begun)
    }),
    { numRuns: 200 },
  )
})

test('an update lost between steps on a zone is found within 1000 seeds, and replays', async () => {
  const program = function* (): Operation<number, unknown> {
    const { zone } = seededZone()
    let balance = 0
    const deposit = function* (): Operation<void, unknown> {
      yield* on(zone, double, 0)
      const read = balance
      yield* sleep(1)
      balance = read + 1
    }
    yield* all([deposit, deposit])
    return balance
  }
  const found = await findRun(program, ({ exit }) => exit.kind === 'success' && exit.value !== 2)
  assert.ok(found !== undefined)
  for (let again = 0; again < 3; again += 1) assert.deepEqual(await simulate(found.seed, program()), found)
  const right = await findRun(program, ({ exit }) => exit.kind === 'success' && exit.value === 2)
  assert.ok(right !== undefined, 'some seeds show the right sum')
})
