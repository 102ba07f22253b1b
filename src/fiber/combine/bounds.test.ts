/**
 * Combinators over several fibers: bounds, losers, retries and timeouts, under seeds.
 *
 * Every test ends with no fiber left.
 */
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import fc from 'fast-check'
import { simulate } from '../../test/played.test.support.ts'
import {
  Exit,
  type Operation,
  Schedule,
  all,
  catchAll,
  dump,
  dumpText,
  exitOf,
  fail,
  forEach,
  fork,
  never,
  race,
  repeat,
  retry,
  sleep,
  timeout,
  uninterruptible,
} from '../index.ts'

afterEach(() => assert.deepEqual(dump(), [], dumpText()))

const bug = new TypeError('bug')

test('what loses a race is interrupted and finalized before the race is over', async () => {
  for (let seed = 1; seed < 50; seed += 1) {
    const log: string[] = []
    const loser = function* (): Operation<void> {
      try {
        yield* never()
      } finally {
        yield* sleep(5)
        log.push('loser')
      }
    }
    const { exit } = await simulate(seed, function* () {
      const value = yield* race([
        loser,
        () =>
          exitOf(function* () {
            yield* sleep(1)
          }),
        loser,
      ])
      log.push('behind')
      return value
    })
    assert.equal(exit.kind, 'success')
    assert.deepEqual(log, ['loser', 'loser', 'behind'])
  }
})

test('forEach never has more than its bound at work, and keeps the order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(30),
      fc.integer({ min: 1, max: 8 }),
      fc.nat(),
      async (count, concurrency, seed) => {
        let [now, most] = [0, 0]
        const items = Array.from({ length: count }, (_, index) => index)
        const { exit } = await simulate(seed, () =>
          forEach(
            items,
            function* (item) {
              most = Math.max(most, (now += 1))
              yield* sleep((item * 7) % 5)
              now -= 1
              return item * 2
            },
            { concurrency },
          ),
        )
        assert.deepEqual(exit, Exit.success(items.map((item) => item * 2)))
        assert.ok(most <= concurrency)
      },
    ),
  )
})

test('forEach stops at the first failure and takes no further item', async () => {
  const taken: number[] = []
  const exit = await fork(
    forEach(
      [1, 2, 3, 4, 5, 6],
      function* (item) {
        taken.push(item)
        yield* sleep(1)
        if (item === 2) yield* fail('two')
        yield* never()
      },
      { concurrency: 3 },
    ),
  ).await()
  assert.deepEqual(exit, Exit.failure('two'))
  assert.deepEqual(taken, [1, 2, 3])
})

test('all joins fibers and forks bodies; with none it returns none', async () => {
  const running = fork(function* () {
    yield* sleep(1)
    return 'x'
  })
  assert.deepEqual(await fork(all([running, () => 1, async () => true])).join(), ['x', 1, true])
  assert.deepEqual(await fork(all([])).join(), [])
})

test("retry runs again on failures, with the schedule's waits, and never on a defect", async () => {
  let runs = 0
  const flaky = function* (): Operation<number, string> {
    runs += 1
    return runs < 3 ? yield* fail('flaky') : runs
  }
  const schedule = Schedule.exponential(100).and(Schedule.recurs(5))
  const { exit, nowMs } = await simulate(1, () => retry(flaky, schedule))
  assert.deepEqual([exit, nowMs], [Exit.success(3), 300])
  runs = 0
  assert.deepEqual((await simulate(1, () => retry(flaky, Schedule.recurs(1)))).exit, Exit.failure('flaky'))
  runs = 0
  const buggy = (): never => {
    runs += 1
    throw bug
  }
  assert.deepEqual(await fork(retry(buggy, Schedule.forever)).await(), Exit.defect(bug))
  assert.equal(runs, 1)
  assert.equal(
    (
      await fork(
        retry(
          (function* () {
            return 1
          })(),
          Schedule.forever,
        ),
      ).await()
    ).kind,
    'defect',
  )
})

test('repeat runs again on values and returns the last', async () => {
  let runs = 0
  const { exit, nowMs } = await simulate(1, () =>
    repeat(() => ++runs, Schedule.spaced(10).and(Schedule.recurs(4))),
  )
  assert.deepEqual([exit, nowMs], [Exit.success(5), 40])
})

test('catchAll handles failures and lets defects pass', async () => {
  assert.equal(await fork(catchAll(fail('x'), (error) => `caught ${error}`)).join(), 'caught x')
  assert.deepEqual(
    await fork(
      catchAll(
        () => {
          throw bug
        },
        () => 1,
      ),
    ).await(),
    Exit.defect(bug),
  )
})

test('a timeout that comes in time returns the value; what is uninterruptible outlasts one', async () => {
  assert.equal(await fork(timeout(1000, () => 5)).join(), 5)
  const { exit, nowMs } = await simulate(1, () => timeout(5, () => uninterruptible(sleep(20))))
  assert.equal(exit.kind === 'failure' && exit.error.code, 'FIBER_TIMEOUT')
  assert.equal(nowMs, 20)
})
