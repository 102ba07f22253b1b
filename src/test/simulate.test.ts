/**
 * The seeded runtime itself: planted races are found and replay, time is virtual, deadlocks are found.
 *
 * And, by it, combinators against an oracle that computes outcome and time with plain arithmetic.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findRun, simulate } from './played.test.support.ts'
import {
  type AnyBody,
  type Operation,
  all,
  allSettled,
  any,
  dump,
  fail,
  fork,
  forEach,
  never,
  race,
  sleep,
  timeout,
  yieldNow,
} from '../fiber/index.ts'

/** Two tellers read, think and write: an update gets lost when one reads between the other's two steps. */
function tellers(thinks: () => AnyBody): () => Operation<number, unknown> {
  return function* () {
    let balance = 0
    const deposit = function* (): Operation<void, unknown> {
      const read = balance
      yield* fork(thinks()).join()
      balance = read + 1
    }
    yield* all([deposit, deposit])
    return balance
  }
}

test('a planted race is found within 1000 seeds, and its seed shows it again and again', async () => {
  const program = tellers(() => () => 0)
  const found = await findRun(program, ({ exit }) => exit.kind === 'success' && exit.value !== 2)
  assert.ok(found !== undefined)
  for (let turn = 0; turn < 3; turn += 1) assert.deepEqual(await simulate(found.seed, program()), found)
  const other = await findRun(program, ({ exit }) => exit.kind === 'success' && exit.value === 2)
  assert.ok(other !== undefined, 'some seeds show the right sum')
})

test('a race that needs two unlikely turns is found', async () => {
  const program = function* (): Operation<boolean> {
    let [one, two, isBroken] = [0, 0, false]
    fork(function* () {
      for (let turn = 0; turn < 6; turn += 1) {
        one += 1
        yield* yieldNow()
        two += 1
        yield* yieldNow()
      }
    })
    for (let turn = 0; turn < 6; turn += 1) {
      if (turn === 3 && one - two === 1 && one === 5) isBroken = true
      yield* yieldNow()
    }
    return isBroken
  }
  assert.ok(
    await findRun(
      () => program(),
      ({ exit }) => exit.kind === 'success' && exit.value,
    ),
  )
})

test('hours pass at once, and the clock shows it', async () => {
  const run = await simulate(1, function* () {
    yield* sleep(3_600_000)
    yield* timeout(10, never())
  })
  assert.equal(run.nowMs, 3_600_010)
  assert.equal(run.exit.kind === 'failure' && run.exit.error.code, 'FIBER_TIMEOUT')
})

test('sleepers wake in the order of their times, those of one time in any', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(20)), fc.nat(), async (times, seed) => {
      const log: number[] = []
      await simulate(seed, () =>
        all(times.map((ms) => async () => void (await fork(sleep(ms)).join(), log.push(ms)))),
      )
      assert.deepEqual(
        log,
        times.toSorted((one, two) => one - two),
      )
    }),
  )
})

test('promises of a program are waited for', async () => {
  const run = await simulate(1, async () => {
    await null
    return 5
  })
  assert.deepEqual(run.exit, { kind: 'success', value: 5 })
})

test('a program in which everybody waits is refused with its tree', async () => {
  await assert.rejects(
    simulate(7, function* stuck() {
      yield* fork(never(), { name: 'child' }).join()
    }),
    /seed 7: everybody waits[^]*waiting for fiber 'child'[^]*child: waiting for an interrupt/,
  )
  for (const { children } of dump()) assert.ok(children.length > 0)
})

test('a failure that nobody receives is reported with the run', async () => {
  const run = await simulate(1, function* () {
    fork(fail('lost'), { daemon: true, name: 'lonely' })
    yield* sleep(1)
  })
  assert.match(String(run.reported[0]), /lonely.*lost/)
})

type Plan =
  | { kind: 'value' | 'failure'; ms: number }
  | { kind: 'all' | 'race' | 'any' | 'allSettled' | 'forEach'; parts: Plan[] }
  | { kind: 'timeout'; ms: number; part: Plan }

const plans = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record({ kind: fc.constantFrom('value' as const, 'failure' as const), ms: fc.nat(50) }),
    fc.record({
      kind: fc.constantFrom(
        'all' as const,
        'race' as const,
        'any' as const,
        'allSettled' as const,
        'forEach' as const,
      ),
      parts: fc.array(tie('plan'), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ kind: fc.constant('timeout' as const), ms: fc.nat(50), part: tie('plan') }),
  ),
})).plan

/** Every time in a plan made different, so that no two events happen at once. */
function apart(plan: Plan, next = { number: 1 }): Plan {
  if ('parts' in plan) return { ...plan, parts: plan.parts.map((part) => apart(part, next)) }
  const ms = plan.ms * 10_000 + next.number++
  return plan.kind === 'timeout' ? { ...plan, ms, part: apart(plan.part, next) } : { ...plan, ms }
}

function bodyOf(plan: Plan): () => Operation<unknown, unknown> {
  return function* () {
    switch (plan.kind) {
      case 'value':
        yield* sleep(plan.ms)
        return plan.ms
      case 'failure':
        yield* sleep(plan.ms)
        return yield* fail(plan.ms)
      case 'all':
        return yield* all(plan.parts.map(bodyOf))
      case 'race':
        return yield* race(plan.parts.map(bodyOf))
      case 'any':
        return yield* any(plan.parts.map(bodyOf))
      case 'allSettled':
        return (yield* allSettled(plan.parts.map(bodyOf))).map(({ kind }) => kind)
      case 'forEach':
        return yield* forEach(plan.parts, (part) => bodyOf(part)(), { concurrency: 100 })
      default:
        return yield* timeout(plan.ms, bodyOf(plan.part))
    }
  }
}

interface Outcome {
  ms: number
  isOk: boolean
  value: unknown
}

function oracle(plan: Plan): Outcome {
  if (!('parts' in plan) && !('part' in plan))
    return { ms: plan.ms, isOk: plan.kind === 'value', value: plan.ms }
  if ('part' in plan) {
    const part = oracle(plan.part)
    return part.ms < plan.ms ? part : { ms: plan.ms, isOk: false, value: 'late' }
  }
  const parts = plan.parts.map(oracle)
  const [first] = parts.toSorted((one, two) => one.ms - two.ms) as [Outcome]
  const ms = Math.max(...parts.map((part) => part.ms))
  const firstOf = (isOk: boolean): Outcome | undefined =>
    parts.filter((part) => part.isOk === isOk).toSorted((one, two) => one.ms - two.ms)[0]
  switch (plan.kind) {
    case 'race':
      return first
    case 'any':
      return firstOf(true) ?? { ms, isOk: false, value: parts.map(({ value }) => value) }
    case 'allSettled':
      return { ms, isOk: true, value: parts.map(({ isOk }) => (isOk ? 'success' : 'failure')) }
    default:
      return firstOf(false) ?? { ms, isOk: true, value: parts.map(({ value }) => value) }
  }
}

function plain(error: unknown): unknown {
  if (error instanceof AggregateError) return (error.errors as unknown[]).map(plain)
  return error instanceof Error ? 'late' : error
}

test('combinators do what the oracle does, when it does, under every seed', async () => {
  await fc.assert(
    fc.asyncProperty(plans, fc.nat(), async (drawn, seed) => {
      const plan = apart(drawn)
      const { exit, nowMs, reported } = await simulate(seed, bodyOf(plan))
      const { ms, isOk, value } = oracle(plan)
      assert.deepEqual(reported, [])
      assert.equal(nowMs, ms)
      if (isOk) assert.deepEqual(exit, { kind: 'success', value })
      else assert.deepEqual(exit.kind === 'failure' && plain(exit.error), value)
    }),
    { numRuns: 300 },
  )
})
