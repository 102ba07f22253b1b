/**
 * Schedules against tables of delays, and against the laws of their combinations.
 *
 * The clock moves by the delays alone, so the tables are exact.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Schedule } from '../index.ts'

/** The first answers of a schedule whose runs take no time beyond the delays. */
function delays<In>(schedule: Schedule<In>, inputs: readonly In[], random = (): number => 0.5): unknown[] {
  const driver = schedule.start({ random })
  let nowMs = 1000
  return inputs.map((input) => {
    const delayMs = driver.next(input, nowMs)
    nowMs += delayMs ?? 0
    return delayMs
  })
}

function check(name: string, schedule: Schedule, expected: readonly unknown[]): void {
  test(name, () => assert.deepEqual(delays(schedule, expected), expected))
}

check('forever: again at once', Schedule.forever, [0, 0, 0])
check('recurs: the stated number of times', Schedule.recurs(2), [0, 0, undefined, undefined])
check('recurs(0): never', Schedule.recurs(0), [undefined, undefined])
check('spaced: always the same delay', Schedule.spaced(5), [5, 5, 5])
check('exponential: doubles', Schedule.exponential(10), [10, 20, 40, 80])
check('exponential: with a factor', Schedule.exponential(10, 3), [10, 30, 90])
check('fibonacci: the sum of the last two', Schedule.fibonacci(10), [10, 10, 20, 30, 50])
check('linear: more by the same', Schedule.linear(10), [10, 20, 30])
check('fixed and windowed: runs of no time', Schedule.fixed(10).and(Schedule.windowed(10)), [10, 10, 10])
check('fixed: 0 is forever', Schedule.fixed(0), [0, 0, 0])
check('windowed: 0 is forever', Schedule.windowed(0), [0, 0])
check('capped: no delay above', Schedule.exponential(10).capped(35), [10, 20, 35, 35])
check('jittered: by chance', Schedule.spaced(10).jittered(0, 4), [20, 20])
check('upTo: until the time has passed', Schedule.spaced(10).upTo(25), [10, 10, 10, undefined, undefined])
check('and: both, the longer delay', Schedule.spaced(5).and(Schedule.recurs(2)), [5, 5, undefined])
check('or: either, the shorter delay', Schedule.spaced(5).or(Schedule.recurs(2)), [0, 0, 5, 5])

/** The delays behind runs that take some time. */
function delaysBehind(schedule: Schedule, runsMs: readonly number[]): unknown[] {
  const driver = schedule.start()
  let nowMs = 1000
  return runsMs.map((runMs) => {
    nowMs += runMs
    const delayMs = driver.next(undefined, nowMs) as number
    nowMs += delayMs
    return delayMs
  })
}

test('fixed: at fixed times; who is late begins at once, and what was missed is left out', () => {
  assert.deepEqual(delaysBehind(Schedule.fixed(10), [3, 4, 25, 1, 10, 9]), [10, 6, 0, 4, 0, 1])
})

test('windowed: at the next multiple, so long runs leave windows out', () => {
  assert.deepEqual(delaysBehind(Schedule.windowed(10), [3, 4, 25, 1, 10]), [10, 6, 5, 9, 10])
})

test('cron: at the times of the pattern, never one twice, and it ends with them', () => {
  const hours = [1, 2, 3].map((hour) => Date.UTC(2026, 0, 1, hour))
  const nextRun = (after: Date): Date | null => {
    const next = hours.find((ms) => ms > after.getTime())
    return next === undefined ? null : new Date(next)
  }
  let today = Date.UTC(2026, 0, 1, 0, 59)
  const driver = Schedule.cron({ nextRun }).start({ today: () => today })
  assert.equal(driver.next(undefined, 0), 60_000)
  today = hours[0] - 5 // The timer was early.
  assert.equal(driver.next(undefined, 0), 3_600_005)
  today = hours[1] + 1
  assert.equal(driver.next(undefined, 0), 3_599_999)
  today = hours[2]
  assert.equal(driver.next(undefined, 0), undefined)
})

test('cron: with the package croner', async () => {
  const { Cron } = await import('croner')
  const schedule = Schedule.cron(new Cron('30 3 * * *', { timezone: 'UTC' }))
    .jittered(1, 1)
    .capped(1e9)
  const combined = schedule
    .upTo(1e12)
    .while(() => true)
    .or(Schedule.recurs(0))
  const driver = combined.start({ today: () => Date.UTC(2026, 0, 1, 3) })
  assert.equal(driver.next(undefined, 0), 30 * 60_000)
})

test('while: stops at the first input that it refuses, for good', () => {
  const small = Schedule.forever.while((input: number) => input < 3)
  assert.deepEqual(delays(small, [1, 2, 3, 1]), [0, 0, undefined, undefined])
})

test('a schedule is not used up: each start begins anew', () => {
  const schedule = Schedule.exponential(1).and(Schedule.recurs(3)).jittered()
  const inputs = [0, 0, 0, 0]
  assert.deepEqual(delays(schedule, inputs), delays(schedule, inputs))
})

test('exponential never becomes infinite', () => {
  const answers = delays(Schedule.exponential(1e300, 1e300), [0, 0, 0])
  assert.ok(answers.every((delayMs) => Number.isFinite(delayMs)))
})

for (const [name, make] of Object.entries({
  'recurs(-1)': () => Schedule.recurs(-1),
  'recurs(1.5)': () => Schedule.recurs(1.5),
  'spaced(NaN)': () => Schedule.spaced(Number.NaN),
  'exponential(1, 0.5)': () => Schedule.exponential(1, 0.5),
  'jittered(2, 1)': () => Schedule.forever.jittered(2, 1),
  'upTo(-1)': () => Schedule.forever.upTo(-1),
  'capped(Infinity)': () => Schedule.forever.capped(Infinity),
  'fibonacci(-1)': () => Schedule.fibonacci(-1),
  'linear(NaN)': () => Schedule.linear(Number.NaN),
  'fixed(Infinity)': () => Schedule.fixed(Infinity),
  'windowed(-1)': () => Schedule.windowed(-1),
  'cron(pattern)': () => Schedule.cron('0 3 * * *' as never),
  'and(null)': () => Schedule.forever.and(null as never),
  'while(1)': () => Schedule.forever.while(1 as never),
}))
  test(`${name} is refused by name`, () => assert.throws(make, { code: 'FIBER_ARGUMENT' }))

const schedules = fc.letrec<{ any: Schedule; leaf: Schedule }>((tie) => ({
  leaf: fc.oneof(
    fc.nat(5).map(Schedule.recurs),
    fc.nat(50).map(Schedule.spaced),
    fc.integer({ min: 1, max: 9 }).map((ms) => Schedule.exponential(ms)),
  ),
  any: fc.oneof(
    { maxDepth: 3 },
    tie('leaf'),
    fc.tuple(tie('any'), fc.nat(200)).map(([one, ms]) => one.upTo(ms)),
    fc.tuple(tie('any'), tie('any')).map(([one, two]) => one.and(two)),
    fc.tuple(tie('any'), tie('any')).map(([one, two]) => one.or(two)),
  ),
})).any

const rounds = Array.from({ length: 12 }, () => 0)
const equal = (one: Schedule, two: Schedule): void =>
  assert.deepEqual(delays(one, rounds), delays(two, rounds))

test('and and or commute and are idempotent; forever is neutral to and', () => {
  fc.assert(
    fc.property(schedules, schedules, (one, two) => {
      equal(one.and(two), two.and(one))
      equal(one.or(two), two.or(one))
      equal(one.and(one), one)
      equal(one.or(one), one)
      equal(one.and(Schedule.forever), one)
      equal(one.or(Schedule.recurs(0)), one)
    }),
  )
})

test('jitter stays within its bounds', () => {
  fc.assert(
    fc.property(fc.nat(1000), fc.double({ min: 0, max: 0.999, noNaN: true }), (ms, chance) => {
      const [delayMs] = delays(Schedule.spaced(ms).jittered(), [0], () => chance) as [number]
      assert.ok(delayMs >= ms * 0.8 - 1e-9 && delayMs <= ms * 1.2 + 1e-9)
    }),
  )
})
