/**
 * What each arrow does, how it fails, waits, stops and is refused.
 *
 * Depth, tiers and forbidden code generation are in tiers.test.ts, remote stages in hop.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exit, Schedule } from '../../fiber/index.ts'
import { RUNNABLE } from '../../fiber/internal.ts'
import {
  Arrow,
  ArrowError,
  Either,
  dup,
  effect,
  effectTotal,
  fail,
  fromFiber,
  getFirst,
  id,
  ifNotThen,
  ifThen,
  lift,
  liftAsync,
  getSecond,
  succeed,
  swap,
  test as testing,
  whileDo,
} from '../index.ts'

const increment = lift((x: number) => x + 1)
const double = lift((x: number) => x * 2)
const positive = lift((x: number) => x > 0)
const never = liftAsync(() => new Promise<number>(() => {}))

const table: Readonly<Record<string, readonly [Arrow<never, unknown>, unknown, unknown]>> = {
  id: [id(), 1, 1],
  succeed: [succeed('x'), 1, 'x'],
  effectTotal: [effectTotal((x: number) => x + 1), 1, 2],
  andThen: [increment.andThen(double), 3, 8],
  compose: [increment.compose(double), 3, 7],
  map: [increment.map(String), 3, '4'],
  flatMap: [increment.flatMap((y) => lift((x: number) => [x, y])), 3, [3, 4]],
  zipWith: [increment.zipWith(double, (a, b) => [a, b]), 3, [4, 6]],
  merge: [increment.merge(double), 3, [4, 6]],
  split: [increment.split(double), [1, 2], [2, 4]],
  first: [increment.first(), [1, 2], [2, 2]],
  second: [increment.second(), [1, 2], [1, 3]],
  'left of left': [increment.left(), Either.left(1), Either.left(2)],
  'left of right': [increment.left(), Either.right(1), Either.right(1)],
  'right of right': [increment.right(), Either.right(1), Either.right(2)],
  'right of left': [increment.right(), Either.left(1), Either.left(1)],
  'choice, left': [increment.choice(double), Either.left(5), 6],
  'choice, right': [increment.choice(double), Either.right(5), 10],
  'test that holds': [testing(positive), 1, Either.left(1)],
  'test that does not': [testing(positive), -1, Either.right(-1)],
  ifThen: [ifThen(positive, double), 2, 4],
  ifNotThen: [ifNotThen(positive, double), 2, 2],
  whileDo: [
    whileDo(
      lift((x: number) => x < 50),
      double,
    ),
    3,
    96,
  ],
  as: [increment.as('done'), 1, 'done'],
  unit: [increment.unit(), 1, undefined],
  asEffect: [increment.asEffect<string>(), [1, 'second'], 'second'],
  keepInput: [increment.keepInput(), 1, 1],
  swap: [swap(), [1, 2], [2, 1]],
  dup: [dup(), 1, [1, 1]],
  getFirst: [getFirst(), [1, 2], 1],
  getSecond: [getSecond(), [1, 2], 2],
}

for (const [name, [arrow, input, expected]] of Object.entries(table))
  test(`${name} does what its documentation states, new, again and compiled`, () => {
    for (const run of [arrow, arrow, arrow, arrow.compiled()])
      assert.deepEqual(run.run(input as never), expected)
    assert.deepEqual(arrow.runExit(input as never), Exit.success(expected))
  })

test('composing runs nothing', () => {
  let runs = 0
  const count = lift((x: number) => ((runs += 1), x))
  const arrow = count.andThen(count).merge(count)
  assert.equal(runs, 0)
  arrow.run(1)
  assert.equal(runs, 3)
})

test('tap looks and passes', () => {
  const seen: number[] = []
  assert.equal(increment.tap((x) => seen.push(x)).run(1), 2)
  assert.deepEqual(seen, [2])
})

test('a promise of a synchronous stage is its value', () => {
  const promise = Promise.resolve(1)
  assert.equal(lift(() => promise).run(undefined), promise)
  assert.deepEqual(lift(() => promise).runExit(undefined), Exit.success(promise))
})

test('a failure is thrown as it is, a defect too, and only the first is caught', () => {
  const error = { code: 1 }
  assert.throws(
    () => fail(error).run(1),
    (thrown) => thrown === error,
  )
  const defect = new Error('bug')
  const broken = lift((): number => {
    throw defect
  })
  const handled = broken.mapError(() => 'mapped').catchAll(() => succeed(1))
  assert.throws(
    () => handled.run(1),
    (thrown) => thrown === defect,
  )
  assert.deepEqual(handled.runExit(1), Exit.defect(defect))
  assert.equal(
    fail(error)
      .catchAll((e) => succeed(e.code))
      .run(1),
    1,
  )
})

test('what a catcher throws is a defect', () => {
  const arrow = effect(
    () => {
      throw new Error('a')
    },
    () => {
      throw new Error('b')
    },
  )
  assert.equal(arrow.runExit(1).kind, 'defect')
})

test('asynchronous failures, and rejections that are defects', async () => {
  const reject = async (): Promise<number> => {
    throw new RangeError('r')
  }
  assert.deepEqual(
    await liftAsync(reject, (thrown) => (thrown as Error).name).runExit(1),
    Exit.failure('RangeError'),
  )
  assert.equal((await liftAsync(reject).runExit(1)).kind, 'defect')
  await assert.rejects(increment.andThen(liftAsync(reject)).run(1), RangeError)
})

test('an asynchronous arrow that fails at once rejects', async () => {
  await assert.rejects(fail('early').andThen(never).run(1), (thrown) => thrown === 'early')
})

test('what a function of flatMap returns must be an arrow', () => {
  assert.throws(() => increment.flatMap(() => 1 as never).run(1), { code: 'ARROW_ARGUMENT' })
})

test('fromFiber joins what has an exit', async () => {
  const body = (x: number): { [RUNNABLE]: () => Promise<Exit<number, string>> } => ({
    [RUNNABLE]: async () => (x > 0 ? Exit.success(x) : Exit.failure('negative')),
  })
  const arrow = fromFiber(body)
  assert.equal(await arrow.run(1), 1)
  assert.deepEqual(await arrow.runExit(-1), Exit.failure('negative'))
})

test('retry follows its schedule and fails with the last failure', async () => {
  let runs = 0
  const flaky = effect(
    () => {
      runs += 1
      if (runs < 3) throw new Error('not yet')
      return runs
    },
    (thrown) => (thrown as Error).message,
  )
  assert.equal(await flaky.retry(Schedule.recurs(5)).run(1), 3)
  runs = -10
  assert.deepEqual(await flaky.retry(Schedule.recurs(2)).runExit(1), Exit.failure('not yet'))
  assert.equal(runs, -7)
})

test('retry does not try a defect again', async () => {
  let runs = 0
  const broken = lift(() => {
    runs += 1
    throw new Error('bug')
  })
  assert.equal((await broken.retry(Schedule.forever).runExit(1)).kind, 'defect')
  assert.equal(runs, 1)
})

test('interrupting ends a wait, a retry and a nested timeout at once, with the reason', async () => {
  const spaced = fail('again').retry(Schedule.spaced(60_000))
  for (const arrow of [never, spaced, never.timeout(60_000), increment.andThen(never).keepInput()]) {
    const controller = new AbortController()
    const exit = (arrow as Arrow<number, unknown, unknown, 'async'>).runExit(1, controller.signal)
    const thrown = (arrow as Arrow<number, unknown, unknown, 'async'>).run(1, controller.signal)
    controller.abort('enough')
    assert.deepEqual(await exit, Exit.interruption('enough'))
    await assert.rejects(thrown, (reason) => reason === 'enough')
  }
  const aborted = AbortSignal.abort('before')
  assert.deepEqual(await never.runExit(1, aborted), Exit.interruption('before'))
})

test('the signal of a stage is aborted when the run is interrupted', async () => {
  let reason: unknown
  const stage = liftAsync((_: number, { signal }) => {
    signal.addEventListener('abort', () => (reason = signal.reason))
    return new Promise<number>(() => {})
  })
  const controller = new AbortController()
  const exit = stage.timeout(60_000).runExit(1, controller.signal)
  controller.abort('enough')
  await exit
  assert.equal(reason, 'enough')
})

test('timeout is a failure that can be handled', async () => {
  const exit = await never.timeout(5).runExit(1)
  assert.ok(exit.kind === 'failure' && exit.error instanceof ArrowError)
  assert.equal(
    await never
      .timeout(5)
      .catchAll(({ facts }) => succeed(facts.timeoutMs))
      .run(1),
    5,
  )
  assert.equal(await increment.timeout(5).run(1), 2)
})

test('stacks name the stages, each once, in every tier', async () => {
  const broken = lift((x: number): number => {
    throw new Error(`at ${x}`)
  })
  const arrow = increment.andThen(broken.named('inner')).named('outer')
  for (let run = 0; run < 300; run += 1)
    assert.throws(
      () => arrow.run(run),
      ({ stack }: Error) => /at stage inner\n {4}at stage outer$/.test(stack ?? ''),
    )
  const waits = liftAsync(async () => broken.run(1)).named('waits')
  await assert.rejects(waits.run(undefined), ({ stack }: Error) => (stack ?? '').endsWith('at stage waits'))
  const shared = new Error('shared')
  const same = fail(shared).named('same')
  for (let run = 0; run < 5; run += 1) assert.throws(() => same.run(1))
  assert.equal(shared.stack?.match(/at stage same/g)?.length, 1)
})

for (const [name, make] of Object.entries({
  'lift(1)': () => lift(1 as never),
  'effect without a catcher': () => effect((x: number) => x, undefined as never),
  'andThen of a function': () => increment.andThen(((x: number) => x) as never),
  'zipWith without a function': () => increment.zipWith(double, 1 as never),
  'timeout(-1)': () => increment.timeout(-1),
  'timeout(NaN)': () => increment.timeout(Number.NaN),
  'retry of a number': () => increment.retry(3 as never),
  'named of nothing': () => increment.named(''),
  'on of a name': () => increment.on('cpu' as never),
  'through of a Map': () => increment.through(new Map() as never, String),
  'test of a function': () => testing((() => true) as never),
  'stream of a number': () => increment.stream(1 as never),
  'stream with no concurrency': () => increment.stream([1], { concurrency: 0 }),
}))
  test(`${name} is refused`, () => assert.throws(make, { name: 'ArrowError', code: 'ARROW_ARGUMENT' }))

test('stream keeps the order or not, never runs more than it may, and pulls no more', async () => {
  let running = 0
  let most = 0
  let pulled = 0
  function* inputs(): Generator<number> {
    for (; pulled < 20;) yield pulled++
  }
  const releases: (() => void)[] = []
  const arrow = liftAsync(async (x: number) => {
    most = Math.max(most, ++running)
    await new Promise<void>((resolve) => {
      releases.push(resolve)
      if (releases.length === 4 || x >= 16) for (const release of releases.splice(0).reverse()) release()
    })
    running -= 1
    return x
  })
  const ordered: number[] = []
  for await (const x of arrow.stream(inputs(), { concurrency: 4 })) ordered.push(x)
  assert.deepEqual(
    ordered,
    Array.from({ length: 20 }, (_, x) => x),
  )
  assert.equal(most, 4)
})

test('stream ends with the first failure, interrupts the others and closes the source', async () => {
  let closed = false
  async function* inputs(): AsyncGenerator<number> {
    try {
      for (let x = 0; ; x += 1) yield x
    } finally {
      closed = true
    }
  }
  let interrupted = 0
  const arrow = liftAsync((x: number, { signal }) => {
    if (x === 3) return Promise.reject(new Error('three'))
    return new Promise<number>((resolve) => {
      if (x === 0) return resolve(0)
      signal.addEventListener('abort', () => (interrupted += 1))
    })
  })
  const read = async (): Promise<number[]> => {
    const results: number[] = []
    for await (const x of arrow.stream(inputs(), { concurrency: 4, ordered: false })) results.push(x)
    return results
  }
  await assert.rejects(read(), { message: 'three' })
  assert.ok(closed)
  assert.ok(interrupted >= 2)
})

test('a reader that stops closes the source', async () => {
  let closed = false
  function* inputs(): Generator<number> {
    try {
      for (let x = 0; ; x += 1) yield x
    } finally {
      closed = true
    }
  }
  for await (const x of increment.stream(inputs())) if (x === 3) break
  assert.ok(closed)
})
