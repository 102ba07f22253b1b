/**
 * Arrows among thenables that keep no rules, signals that are aborted from inside, times that no timer takes,
 * and sources that never answer.
 */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { Schedule, acquireRelease, never } from '../fiber/index.ts'
import { type Arrow, ArrowError, effect, fail, fromFiber, lift, liftAsync } from './index.ts'

/** A stage that returns a thenable with that `then`. */
function stage(then: (resolve: (value: number) => void, reject: (reason: unknown) => void) => void) {
  // oxlint-disable-next-line unicorn/no-thenable -- it is what the test is about
  return liftAsync((_: number) => ({ then }) as PromiseLike<number>)
}

test('a thenable that calls back before `then` returns ends the run', async () => {
  assert.equal(await stage((resolve) => resolve(5)).run(1), 5)
  await assert.rejects(stage((_, reject) => reject(new Error('no'))).run(1), { message: 'no' })
})

test('a thenable that calls back twice goes on once', async () => {
  const seen: number[] = []
  const twice = stage((resolve) => {
    resolve(1)
    setImmediate(resolve, 2)
  })
  const arrow = twice.andThen(
    liftAsync(async (x: number) => {
      seen.push(x)
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      return x
    }),
  )
  assert.equal(await arrow.run(0), 1)
  assert.deepEqual(seen, [1])
})

test('a signal that a stage aborts before anything has waited ends the run', async () => {
  const controller = new AbortController()
  const { signal } = controller
  const reason = new Error('from inside')
  const abort = lift((x: number) => {
    controller.abort(reason)
    return x
  })
  const waits = liftAsync((_: number) => new Promise<number>(() => {}))
  await assert.rejects(abort.andThen(waits).run(1, signal), reason)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('retry and timeout notice a signal that was aborted while they began', async () => {
  const stop = new Error('stop')
  for (const wrap of ['retry', 'timeout'] as const) {
    const controller = new AbortController()
    let calls = 0
    const failing = effect(
      (_: number) => {
        calls += 1
        controller.abort(stop)
        throw stop
      },
      () => 'failed',
    )
    const again = failing.retry(Schedule.spaced(60_000))
    const arrow = wrap === 'retry' ? again : again.timeout(60_000)
    await assert.rejects(arrow.run(1, controller.signal), stop)
    assert.equal(calls, 1)
  }
})

test('retry without a delay leaves timers their turn', { timeout: 20_000 }, async () => {
  let turned = false
  setImmediate(() => (turned = true))
  await fail('again').retry(Schedule.recurs(1000)).runExit(1)
  // Without this the loops below would never end.
  assert.ok(turned)
  for (const schedule of [Schedule.forever, Schedule.spaced(0), Schedule.exponential(0)]) {
    const late = await fail('again').retry(schedule).timeout(20).runExit(1)
    assert.ok(late.kind === 'failure' && late.error instanceof ArrowError, late.kind)
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('stop')), 5)
    await assert.rejects(fail('again').retry(schedule).run(1, controller.signal), { message: 'stop' })
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  }
})

test('a delay longer than a timer of Node can be is waited for', async () => {
  const controller = new AbortController()
  let calls = 0
  const failing = effect(
    (_: number) => {
      calls += 1
      throw new Error('again')
    },
    (thrown) => thrown,
  )
  const run = failing.retry(Schedule.spaced(2 ** 40)).run(1, controller.signal)
  setTimeout(() => controller.abort(new Error('stop')), 20)
  await assert.rejects(run, { message: 'stop' })
  assert.equal(calls, 1)
})

test('a stream whose source never answers can be stopped and left', async () => {
  const read = async (concurrency: number, signal?: AbortSignal): Promise<number> => {
    async function* source(): AsyncGenerator<number> {
      yield 1
      await new Promise(() => {})
    }
    for await (const x of lift((x: number) => x).stream(source(), { concurrency, ...(signal && { signal }) }))
      if (signal === undefined) return x
    return 0
  }
  assert.equal(await read(4), 1)
  const controller = new AbortController()
  setTimeout(() => controller.abort(new Error('stop')), 5)
  await assert.rejects(read(1, controller.signal), { message: 'stop' })
})

test('runs in flight receive the signal of a stream while its reader is busy', async () => {
  const controller = new AbortController()
  const aborted: number[] = []
  const arrow = liftAsync((x: number, { signal }) => {
    if (x === 1) return Promise.resolve(x)
    return new Promise<number>(() => signal.addEventListener('abort', () => aborted.push(x)))
  })
  const results = arrow.stream([1, 2, 3], { concurrency: 3, signal: controller.signal })
  assert.equal((await results.next()).value, 1)
  await new Promise(setImmediate)
  controller.abort(new Error('stop'))
  assert.deepEqual(aborted, [2, 3])
  await assert.rejects(results.next(), { message: 'stop' })
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
})

test('a source that throws when it is closed takes nothing from the reader', async () => {
  const source = {
    [Symbol.iterator]: () => ({
      next: () => ({ done: false, value: 1 }),
      return(): never {
        throw new Error('not closed')
      },
    }),
  }
  for await (const x of lift((x: number) => x).stream(source)) {
    assert.equal(x, 1)
    break
  }
})

test('a stream ends as soon as a run fails, however long the ones before it take', async () => {
  const aborted: number[] = []
  const arrow = liftAsync(
    async (x: number, { signal }) => {
      if (x === 0) return x
      if (x === 3) throw new Error('third')
      signal.addEventListener('abort', () => aborted.push(x))
      return await new Promise<number>(() => {})
    },
    (thrown) => thrown,
  )
  for (const ordered of [true, false]) {
    aborted.length = 0
    const read: number[] = []
    const reading = (async () => {
      for await (const x of arrow.stream([0, 1, 2, 3, 4], { concurrency: 4, ordered })) read.push(x)
    })()
    await assert.rejects(reading, { message: 'third' })
    // The one that was there, and then the failure.
    assert.deepEqual(read, [0])
    assert.deepEqual(aborted.slice(0, 2), [1, 2])
  }
})

test('results that are there in front of a failure are read before it', async () => {
  const read: number[] = []
  const arrow = effect(
    (x: number) => {
      if (x === 3) throw new Error('third')
      return x
    },
    (thrown) => thrown,
  )
  await assert.rejects(
    async () => {
      for await (const x of arrow.stream([1, 2, 3, 4], { concurrency: 4 })) read.push(x)
    },
    { message: 'third' },
  )
  assert.deepEqual(read, [1, 2])
})

test('a stream that is left has released what its runs held', async () => {
  let released = 0
  const arrow = fromFiber(function* (x: number) {
    if (x === 0) return x
    yield* acquireRelease(
      () => x,
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 10))
        released += 1
      },
    )
    return yield* never()
  })
  for await (const x of arrow.stream([0, 1, 2], { concurrency: 3 })) {
    assert.equal(x, 0)
    break
  }
  assert.equal(released, 2)
})

test('a source is opened by the first read; one that does not return objects is refused', async () => {
  let openedCount = 0
  let results: unknown = 5
  const source = {
    [Symbol.iterator]() {
      openedCount += 1
      return { next: () => results as IteratorResult<number> }
    },
  }
  const plus = lift((x: number) => x + 1)
  await plus.stream(source).return()
  assert.equal(openedCount, 0)
  for (results of [5, null, undefined])
    await assert.rejects(plus.stream(source).next(), {
      name: 'TypeError',
      message: /Iterator result (5|null|undefined) is not an object/,
    })
  assert.equal(openedCount, 3)
})

test('an error whose stack cannot be read or written is the one that it was', async () => {
  const error = new Error('its stack throws')
  Object.defineProperty(error, 'stack', {
    get() {
      throw new Error('of the getter')
    },
  })
  const broken = lift((): never => {
    throw error
  })
  for (const arrow of [fail(error), broken, fail(error).andThen(liftAsync(async () => 1))]) {
    const exit = await (arrow as Arrow<unknown, unknown>).named('stage').runExit(1)
    const kind = (arrow as unknown) === broken ? 'defect' : 'failure'
    assert.deepEqual(
      [exit.kind, kind === 'defect' ? (exit as never)['defect'] : (exit as never)['error']],
      [kind, error],
    )
  }
})

test('a time is a number', () => {
  for (const ms of ['5', null, 2 ** 31] as never[])
    assert.throws(() => lift((x: number) => x).timeout(ms), { code: 'ARROW_ARGUMENT' })
})

test('wrong options are refused by name', async () => {
  const plus = lift((x: number) => x + 1)
  const wrong = { code: 'ARROW_ARGUMENT' }
  for (const options of [null, 5, { concurrency: 0 }, { ordered: 1 }, { signal: {} }] as never[])
    assert.throws(() => plus.stream([1], options), wrong)
  for (const options of [null, { format: 'svg' }] as never[])
    assert.throws(() => plus.explain(options), wrong)
  const other = (call: () => unknown, name: string): void =>
    assert.throws(call, { ...wrong, message: `${name} must be an arrow; received 5` })
  other(() => plus.andThen(5 as never), 'andThen(): next')
  other(() => plus.endThen(5 as never), 'andThen(): next')
  other(() => plus.compose(5 as never), 'compose(): previous')
  other(() => plus.zipWith(5 as never, () => 1), 'zipWith(): that')
  other(() => plus.merge(5 as never), 'merge(): that')
  other(() => plus.split(5 as never), 'split(): that')
  other(() => plus.choice(5 as never), 'choice(): that')
  await assert.rejects(plus.timeout(50).run(1, 5 as never), {
    message: /^run\(\): signal must be an AbortSignal/,
  })
  const exit = await plus.timeout(50).runExit(1, {} as never)
  assert.equal(exit.kind, 'defect')
})
