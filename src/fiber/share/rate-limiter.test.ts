/**
 * Rate limiters against a bucket of whole arithmetic, with interruptions; and their timers.
 *
 * Time is virtual: every grant is compared to the fraction of a millisecond.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RateLimiter, attempt, fork } from '../index.ts'
import { turn } from '../scheduler/scheduler.ts'
import { type Actor, type Outcome, play, scripts } from './actors.test.support.ts'

const TOKEN_MS = 4
const BURST = 3

/** The slow way: the level of the bucket is computed from event to event. */
function oracle(actors: readonly Actor<number>[]): Outcome[] {
  const outcomes: Outcome[] = []
  let line: number[] = []
  let [level, nowMs] = [BURST, 0]
  const until = (ms: number): void => {
    for (;;) {
      const missing = line.length === 0 ? Infinity : actors[line[0]].does - level
      const dueMs = nowMs + Math.max(0, missing) * TOKEN_MS
      if (line.length === 0 || dueMs > ms) break
      level = Math.min(BURST, level + (dueMs - nowMs) / TOKEN_MS) - actors[line[0]].does
      nowMs = dueMs
      outcomes[line.shift() as number] = { kind: 'success', value: undefined, ms: nowMs }
    }
    if (ms === Infinity) return
    level = Math.min(BURST, level + (ms - nowMs) / TOKEN_MS)
    nowMs = ms
  }
  const events = actors.flatMap(({ atMs, cutMs }, index) => [
    { ms: atMs, index, isCut: false },
    { ms: cutMs, index, isCut: true },
  ])
  for (const { ms, index, isCut } of events.sort((one, two) => one.ms - two.ms)) {
    if (ms === Infinity) break
    until(ms)
    if (outcomes[index] !== undefined) continue
    if (!isCut) line.push(index)
    else {
      line = line.filter((other) => other !== index)
      outcomes[index] = { kind: 'interruption', value: undefined, ms }
    }
    until(ms)
  }
  until(Infinity)
  return outcomes
}

test('tokens are granted in order, when the bucket has them, whoever is interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(scripts(fc.integer({ min: 1, max: BURST })), fc.nat(), async (actors, seed) => {
      let limiter: RateLimiter | undefined
      const outcomes = await play(seed, actors, (tokens) => {
        limiter ??= new RateLimiter({ limit: 10, perMs: 10 * TOKEN_MS, burst: BURST })
        return limiter.take({ tokens })
      })
      const rounded = (all: readonly Outcome[]): unknown =>
        all.map(({ kind, ms }) => [kind, Math.round(ms * 1e6)])
      assert.deepEqual(rounded(outcomes), rounded(oracle(actors)))
      assert.equal(limiter?.waiting ?? 0, 0)
    }),
    { numRuns: 300 },
  )
})

test('no timer is left when nobody waits', async () => {
  const { timers } = turn.scheduler as unknown as { timers: { isEmpty: boolean } }
  const limiter = new RateLimiter({ limit: 1, perMs: 3_600_000 })
  await limiter.take()
  const controller = new AbortController()
  const [one, two] = [fork(limiter.take()), limiter.run(() => 1, { signal: controller.signal })]
  assert.equal(timers.isEmpty, false)
  await one.interrupt()
  assert.equal(limiter.waiting, 1)
  controller.abort()
  await assert.rejects(two, { name: 'AbortError' })
  assert.deepEqual([limiter.waiting, timers.isEmpty], [0, true])
})

test('tryTake takes what is there; a full line refuses', async () => {
  const limiter = new RateLimiter({ limit: 2, perMs: 3_600_000, waitingMax: 1 })
  assert.deepEqual([limiter.tryTake(2), limiter.tryTake()], [true, false])
  const waiting = fork(limiter.take())
  await assert.rejects(limiter.take(), { code: 'FIBER_FULL' })
  await waiting.interrupt()
  await assert.rejects(fork(attempt(() => limiter.take({ tokens: 3 }))).join(), { code: 'FIBER_ARGUMENT' })
})

for (const [name, make] of Object.entries({
  'no limit': () => new RateLimiter({} as never),
  'a time of 0': () => new RateLimiter({ limit: 1, perMs: 0 }),
  'more tokens than the bucket has': () => new RateLimiter({ limit: 1 }).tryTake(2),
}))
  test(`${name} is refused`, () => assert.throws(make, { code: 'FIBER_ARGUMENT' }))
