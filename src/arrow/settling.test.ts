/**
 * Arrows whose stages settle at once, results that have a `then`, and the names of ZIO Arrow.
 *
 * Loops that would go on for ever have a bound of their own, so a failure ends with a sentence.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exit, fork, never, sleep } from '../fiber/index.ts'
import { RUNNABLE } from '../fiber/internal.ts'
import {
  type Arrow,
  fail,
  fromEffect,
  fromFiber,
  fromRunnable,
  id,
  identity,
  lift,
  liftAsync,
  liftM,
  succeed,
  test as tested,
  whileDo,
  ifThenElse,
} from './index.ts'

/** How long a loop goes on that nobody ends. */
const LOOP_MS = 20_000
const endMs = performance.now() + 10 * LOOP_MS

function isWithin(startMs: number): boolean {
  return performance.now() - startMs < LOOP_MS && performance.now() < endMs
}

const settles = liftAsync(async (x: number) => x)
const returns = liftAsync((x: number) => x)

function again(stage: typeof settles, startMs: number): Arrow<number, number> {
  return stage.flatMap((x) => (isWithin(startMs) ? again(stage, startMs) : succeed(x)))
}

function retried(startMs: number): Arrow<number, number> {
  const failing = liftAsync(async () => {}).andThen(fail('again'))
  return failing.catchAll(() => (isWithin(startMs) ? retried(startMs) : succeed(0)))
}

const loops: Record<string, (startMs: number) => Arrow<number, unknown, unknown>> = {
  'whileDo of a promise': (startMs) =>
    whileDo(
      lift(() => isWithin(startMs)),
      settles,
    ),
  'whileDo of a value': (startMs) =>
    whileDo(
      lift(() => isWithin(startMs)),
      returns,
    ),
  'flatMap of a promise': (startMs) => again(settles, startMs),
  'flatMap of a value': (startMs) => again(returns, startMs),
  'catchAll of a failure': retried,
}

for (const [name, make] of Object.entries(loops)) {
  test(`${name}, settled at once, is ended by its own timeout`, async () => {
    const exit = (await make(performance.now()).timeout(5).runExit(0)) as Exit<never, { code: string }>
    assert.equal(exit.kind === 'failure' && exit.error.code, 'ARROW_TIMEOUT')
  })

  test(`${name}, settled at once, receives its signal`, async () => {
    const controller = new AbortController()
    setTimeout(() => controller.abort('enough'), 5)
    const exit = await make(performance.now()).runExit(0, controller.signal)
    assert.deepEqual(exit, Exit.interruption('enough'))
  })
}

for (const concurrency of [1, 8])
  test(`a stream of what is there at once leaves timers their turn, ${concurrency} at once`, async () => {
    let isDue = false
    let count = 0
    setTimeout(() => (isDue = true), 1)
    const inputs = Array.from({ length: 5_000_000 }, (_, index) => index)
    for await (const value of lift((x: number) => x).stream(inputs, { concurrency })) {
      assert.equal(value, count)
      count += 1
      if (isDue) break
    }
    assert.equal(isDue, true)
  })

test('the result of an arrow may have a then: its exit has it as it is', async () => {
  let asked = 0
  const thenable = {
    // oxlint-disable-next-line unicorn/no-thenable -- that is what is tested
    then(): void {
      asked += 1
      throw new Error('nobody asked')
    },
  }
  const returnsThenable = lift(() => thenable)
  const arrows: Arrow<number, unknown, unknown>[] = [
    returnsThenable,
    settles.andThen(returnsThenable),
    returns.andThen(returnsThenable),
    settles.andThen(returnsThenable).timeout(60_000),
    settles.andThen(returnsThenable).timeout(60_000).andThen(id()),
    id<number>().flatMap(() => returnsThenable),
    settles.flatMap(() => returnsThenable),
    Array.from({ length: 80 }, () => lift((x: number) => x))
      .reduce((a, b) => a.andThen(b))
      .andThen(returnsThenable),
  ]
  for (const [index, arrow] of arrows.entries()) {
    for (let run = 0; run < 3; run += 1) {
      const exit = (await arrow.runExit(0)) as { value: unknown }
      assert.equal(exit.value, thenable, String(index))
    }
  }
  assert.equal(asked, 0)
  await assert.rejects(settles.andThen(returnsThenable).run(0), /nobody asked/)
})

test('asEffect is first and then snd, as in ZIO Arrow; keepInput returns the input', async () => {
  const seen: number[] = []
  const double = lift((x: number) => {
    seen.push(x)
    return x * 2
  })
  assert.equal(double.asEffect<number>().run([56, 57]), 57)
  assert.equal(double.keepInput().run(58), 58)
  assert.equal(await settles.andThen(double).asEffect<number>().run([59, 60]), 60)
  assert.deepEqual(seen, [56, 58, 59])
})

test('what ZIO Arrow calls identity, endThen, liftM, fromEffect and toEffect has these names', async () => {
  const increment = lift((x: number) => x + 1)
  assert.equal(identity, id)
  assert.equal(liftM, fromFiber)
  assert.equal(fromEffect, fromRunnable)
  assert.equal(increment.endThen(lift((x) => x * 10)).run(1), 20)
  const effect = { [RUNNABLE]: (input: number) => Exit.success(input * 2) }
  assert.equal(await increment.andThen(fromEffect(effect)).run(1), 4)
  assert.deepEqual(await fromEffect(fail('no')).runExit(0), Exit.failure('no'))
  assert.throws(() => fromEffect({} as never), { code: 'ARROW_ARGUMENT' })
  const fiber = fork(function* () {
    return yield* increment.andThen(settles).toEffect()(1)
  })
  assert.deepEqual(await fiber.await(), Exit.success(2))
  assert.deepEqual(await fork(() => fail('no').toFiber()(0)).await(), Exit.failure('no'))
})

test('an interrupt of a fiber that runs an arrow by toFiber interrupts it and waits for it', async () => {
  const log: string[] = []
  const waits = fromFiber(function* () {
    try {
      yield* never()
    } finally {
      yield* sleep(1)
      log.push('finalized')
    }
  })
  const fiber = fork(() => waits.toFiber()(0))
  assert.deepEqual(await fiber.interrupt('stop'), Exit.interruption('stop'))
  assert.deepEqual(log, ['finalized'])
})

test('a timeout of Infinity never ends a run', async () => {
  assert.equal(await settles.timeout(Infinity).run(7), 7)
  for (const ms of [-1, NaN, 2 ** 31])
    assert.throws(() => settles.timeout(ms), { code: 'ARROW_ARGUMENT' }, String(ms))
})

test('an asynchronous function as a condition is refused by name: its promise would always hold', () => {
  const condition = lift(async (x: number) => x > 1) as never
  const makers = [
    () => tested(condition),
    () => ifThenElse(condition, id(), id()),
    () => whileDo(condition, id()),
  ]
  for (const make of makers)
    assert.throws(make, { code: 'ARROW_ARGUMENT', message: /condition must be .*liftAsync\(\)/ })
})
