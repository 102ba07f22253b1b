/**
 * Arrows as bodies of fibers: here and in a zone, their exits, and that an interrupt ends what they wait for.
 *
 * One zone of one worker; tasks record in a shared buffer that they have begun and that they were aborted.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { threadId } from 'node:worker_threads'
import {
  Exit,
  FiberLocal,
  InterruptedError,
  type Operation,
  Schedule,
  Scope,
  acquireRelease,
  addFinalizer,
  all,
  attempt,
  fail as failing,
  fork,
  never,
  sleep,
  timeout,
} from '../fiber/index.ts'
import { cellIsSet, until } from '../base/wait.test.support.ts'
import { store } from '../store/index.ts'
import { zone } from '../zone/index.ts'
import { type Arrow, type ArrowError, effect, fail, fromFiber, lift, liftAsync } from './index.ts'

let cpu: ReturnType<typeof zone.create>
before(() => {
  cpu = zone.create('arrow-fork', { workers: 1, graceMs: 60_000 })
})
const kept = store.create<never>('arrow-fork')
after(() => {
  kept.close()
  return cpu.close()
})

const double = lift((x: number) => x * 2)
const where = lift(() => {
  const threads = process.getBuiltinModule('node:worker_threads') as { threadId: number }
  return threads.threadId
})
const parse = effect(
  (text: string) => JSON.parse(text) as number,
  () => 'not JSON' as const,
)
const broken = lift((): never => {
  throw new RangeError('broken')
})

/** Counts its beginning and its abort in the flags it is given. */
const waiting = liftAsync(async (flags: Int32Array, { signal }) => {
  Atomics.add(flags, 0, 1)
  if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  Atomics.add(flags, 1, 1)
})

test('an arrow that never waits has ended when fork returns', () => {
  assert.deepEqual(fork(double, { input: 4 }).exit, Exit.success(8))
})

test('an arrow that waits is joined, by yield* and by await', async () => {
  const slow = double.andThen(liftAsync(async (x) => x + 1))
  assert.equal(await fork(slow, { input: 4 }).join(), 9)
  const values = await fork(function* () {
    const first = yield* fork(slow, { input: 1 }).join()
    return [
      first,
      ...(yield* all([() => fork(slow, { input: 2 }).join(), () => fork(slow, { input: 3 }).join()])),
    ]
  }).join()
  assert.deepEqual(values, [3, 5, 7])
})

test('forked on a zone an arrow runs there, on zone.node here', async () => {
  assert.notEqual(await fork(where, { on: cpu }).join(), threadId)
  assert.equal(await fork(where, { on: zone.node }).join(), threadId)
  assert.equal(await fork(double.andThen(double), { on: cpu, input: 3 }).join(), 12)
})

test("its failure is the fiber's failure, its defect a defect, wherever it runs", async () => {
  for (const on of [zone.node, cpu]) {
    assert.deepEqual(await fork(parse, { on, input: '{' }).await(), Exit.failure('not JSON'))
    assert.deepEqual(await fork(fail(7), { on }).await(), Exit.failure(7))
    const exit = await fork(broken, { on }).await()
    assert.ok(exit.kind === 'defect' && exit.defect instanceof RangeError)
  }
})

test('what captures variables is refused where it is forked', () => {
  const secret = Math.random()
  assert.throws(
    () =>
      fork(
        lift((x: number) => x + secret),
        { on: cpu, input: 1 },
      ),
    {
      code: 'FUNCTION_CAPTURES',
      message: /secret/,
    },
  )
})

test('interrupting the fiber aborts the stage here, and cancels the task there', async () => {
  for (const on of [zone.node, cpu]) {
    const flags = new Int32Array(new SharedArrayBuffer(8))
    const fiber = fork(waiting, { on, input: flags })
    await cellIsSet(flags, 0, 'the beginning')
    assert.deepEqual(await fiber.interrupt('enough'), Exit.interruption('enough'))
    await cellIsSet(flags, 1, 'the abort')
  }
  assert.equal(await fork(double, { on: cpu, input: 1 }).join(), 2)
})

test('a timeout and a scope that closes cancel the task as well', async () => {
  const late = new Int32Array(new SharedArrayBuffer(8))
  // A task that has not begun when its time is over never does.
  for (let ms = 50; late[0] === 0; ms *= 2) {
    const exit = await fork(timeout(ms, () => fork(waiting, { on: cpu, input: late }).join())).await()
    assert.equal(exit.kind, 'failure')
    await until(() => cpu.stats().running + cpu.stats().waiting === 0)
  }
  assert.equal(late[1], 1)
  const closed = new Int32Array(new SharedArrayBuffer(8))
  const scope = new Scope()
  fork(waiting, { on: cpu, input: closed, scope })
  await cellIsSet(closed, 0, 'the beginning')
  await scope.close()
  await cellIsSet(closed, 1, 'the abort')
})

test('an arrow of a fiber is a stage, and interrupts it', async () => {
  let released = 0
  const slow = fromFiber(function* (x: number) {
    try {
      yield* sleep(x)
      return x
    } finally {
      released += 1
    }
  })
  assert.equal(
    await fork(
      slow.map((x) => x + 1),
      { input: 1 },
    ).join(),
    2,
  )
  const fiber = fork(slow, { input: 1e9 })
  assert.equal((await fiber.interrupt()).kind, 'interruption')
  assert.equal(released, 2)
})

/** Releases after a while, and fails then if asked to. */
const acquired: string[] = []
const released: string[] = []
const holding = (name: string, fails = false) =>
  function* (): Operation<never, unknown> {
    yield* acquireRelease(
      () => void acquired.push(name),
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        released.push(name)
        if (fails) throw new Error(`release of ${name}`)
      },
    )
    return yield* never()
  }
const later = liftAsync(async (x: number) => x)
const behind: Record<string, (stage: Arrow<number, never>) => Arrow<number, never>> = {
  first: (stage) => stage,
  'behind a wait': (stage) => later.andThen(stage) as never,
  'in a timeout': (stage) => later.andThen(stage).timeout(60_000) as never,
  'in a retry behind a wait': (stage) => later.andThen(stage.retry(Schedule.recurs(3) as never)) as never,
  'in a store': (stage) => later.andThen(stage.through(kept, (x) => `key ${x}`)) as never,
  'placed here': (stage) => later.andThen(stage.on(zone.node)) as never,
}
const holds = (count: number): Promise<void> => until(() => acquired.length === count)

for (const [where, wrap] of Object.entries(behind)) {
  test(`an interrupt waits for the finalizers of a stage that is a fiber: ${where}`, async () => {
    for (const fails of [false, true]) {
      const arrow = wrap(fromFiber(holding(where, fails)) as never)
      const expected = fails ? [Exit.failure(new Error(`release of ${where}`))] : []
      acquired.length = released.length = 0
      const fiber = fork(arrow, { input: 1 })
      await holds(1)
      assert.deepEqual(await fiber.interrupt('why'), Exit.interruption('why', expected))
      assert.deepEqual(released, [where])
      const controller = new AbortController()
      const exit = arrow.runExit(1, controller.signal)
      await holds(2)
      controller.abort('why')
      assert.deepEqual(await exit, Exit.interruption('why', expected))
      assert.deepEqual(released, [where, where])
      let late = await arrow.timeout(10).runExit(1)
      for (let ms = 20; acquired.length < 3; ms *= 2) late = await arrow.timeout(ms).runExit(1)
      assert.ok(late.kind === 'failure' && (late.error as ArrowError).code === 'ARROW_TIMEOUT')
      assert.deepEqual(late.others, expected)
      assert.deepEqual(released, [where, where, where])
    }
  })

  test(`a stage that is a fiber is a child of the fiber that runs the arrow: ${where}`, async () => {
    const local = new FiberLocal('nobody')
    const seen: string[] = []
    const body = holding(where)
    const arrow = wrap(
      fromFiber(function* () {
        seen.push(local.get())
        return yield* body()
      }) as never,
    )
    acquired.length = released.length = 0
    let run: Promise<Exit<unknown, unknown>> | undefined
    const fiber = fork(function* () {
      local.set('somebody')
      run = arrow.runExit(1) as never
      yield* attempt(holds(1))
      return 'over'
    })
    assert.deepEqual(await fiber.await(), Exit.success('over'))
    assert.deepEqual(seen, ['somebody'])
    assert.deepEqual(released, [where], 'it does not outlive its fiber')
    assert.equal((await run)?.kind, 'interruption')
  })
}

test('a run whose fiber has ended before its stage began ends with it', async () => {
  let begun = false
  let run: Promise<Exit<unknown, unknown>> | undefined
  let end = (): void => {}
  const waited = new Promise<void>((resolve) => (end = resolve))
  const arrow = liftAsync(() => waited).andThen(
    fromFiber(function* () {
      begun = true
    }),
  )
  await fork(() => void (run = arrow.runExit(undefined))).await()
  end()
  assert.equal((await run)?.kind, 'interruption')
  assert.equal(begun, false)
})

test('a stage that fails before it waits fails the run, not the fiber around', async () => {
  const arrow = later
    .andThen(fromFiber(() => failing('at once' as const)))
    .catchAll((error) => lift(() => `caught: ${error}`))
  const exit = await fork(function* () {
    const value = yield* fork(arrow, { input: 1 }).join()
    yield* sleep(1)
    return value
  }).await()
  assert.deepEqual(exit, Exit.success('caught: at once'))
})

test('what goes wrong beside stays with the exit, here and in a zone', async () => {
  const endings = {
    failure: function* (): Operation<never, unknown> {
      addFinalizer(() => {
        throw new Error('beside')
      })
      return yield* failing('first')
    },
    defect: function* (): Operation<never> {
      addFinalizer(() => {
        throw new Error('beside')
      })
      throw 'first'
    },
  }
  const beside = [Exit.defect(new Error('beside'))]
  for (const [kind, body] of Object.entries(endings)) {
    const expected = kind === 'failure' ? Exit.failure('first', beside) : Exit.defect('first', beside)
    const stage = fromFiber(body as never) as Arrow<number, never>
    for (const arrow of [stage, later.andThen(stage), stage.retry(Schedule.recurs(0)), stage.named('stage')])
      assert.deepEqual(await arrow.runExit(1), expected)
    await assert.rejects(stage.run(1), (thrown) => thrown === 'first')
    const mapped = await stage.mapError((error) => [error]).runExit(1)
    assert.deepEqual(mapped, kind === 'failure' ? Exit.failure(['first'], beside) : expected)
  }
  for (const kind of ['failure', 'defect', 'interruption'] as const) {
    const stage = fromFiber(((exit: unknown) => ({ [Symbol.for('corespun.runnable')]: () => exit })) as never)
    const others = [Exit.defect('beside')]
    const exit = Exit[kind]('first', others)
    assert.deepEqual(await (stage as Arrow<unknown, never>).on(cpu).runExit(exit), exit)
  }
})

test('a run that a fiber in it was interrupted under rejects with an InterruptedError', async () => {
  const arrow = fromFiber(function* () {
    const fiber = fork(never())
    yield* sleep(1)
    void fiber.interrupt('for a reason')
    yield* fiber.join()
  })
  const expected = (thrown: unknown): boolean =>
    thrown instanceof InterruptedError && thrown.reason === 'for a reason'
  await assert.rejects(arrow.run(1), expected)
  await assert.rejects(later.andThen(arrow).run(1), expected)
  assert.deepEqual(await arrow.runExit(1), Exit.interruption('for a reason'))
})

test('a stage that is a fiber fails as it does, and travels', async () => {
  const checked = fromFiber(function* (x: number) {
    return x > 0 ? x : yield* failing('negative' as const)
  })
  assert.deepEqual(await checked.runExit(-1), Exit.failure('negative'))
  assert.equal(await checked.catchAll(() => lift(() => 0)).run(-1), 0)
  const remote = fromFiber(function* (x: number): Generator<never, number, unknown> {
    return x + 1
  })
  assert.equal(await remote.on(cpu).run(1), 2)
  const nothing = fromFiber((() => 5) as never)
  assert.equal((await nothing.runExit(1)).kind, 'defect')
})
