/**
 * Arrows as bodies of fibers: here and in a zone, their exits, and that an interrupt ends what they wait for.
 *
 * One zone of one worker; tasks tell through a shared buffer that they have begun and that they were aborted.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { threadId } from 'node:worker_threads'
import { Exit, Scope, all, fail as failing, fork, sleep, timeout } from '../fiber/index.ts'
import { zone } from '../zone/index.ts'
import { effect, fail, fromFiber, lift, liftAsync } from './index.ts'

let place: ReturnType<typeof zone.create>
before(() => {
  place = zone.create('arrow-fork', { workers: 1, graceMs: 100 })
})
after(() => place.close())

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
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  Atomics.add(flags, 1, 1)
})

async function reaches(flags: Int32Array, index: number): Promise<void> {
  while (Atomics.load(flags, index) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
}

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
  assert.notEqual(await fork(where, { on: place }).join(), threadId)
  assert.equal(await fork(where, { on: zone.node }).join(), threadId)
  assert.equal(await fork(double.andThen(double), { on: place, input: 3 }).join(), 12)
})

test("its failure is the fiber's failure, its defect a defect, wherever it runs", async () => {
  for (const on of [zone.node, place]) {
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
        { on: place, input: 1 },
      ),
    {
      code: 'FUNCTION_CAPTURES',
      message: /secret/,
    },
  )
})

test('interrupting the fiber aborts the stage here, and cancels the task there', async () => {
  for (const on of [zone.node, place]) {
    const flags = new Int32Array(new SharedArrayBuffer(8))
    const fiber = fork(waiting, { on, input: flags })
    await reaches(flags, 0)
    assert.deepEqual(await fiber.interrupt('enough'), Exit.interruption('enough'))
    await reaches(flags, 1)
  }
  assert.equal(await fork(double, { on: place, input: 1 }).join(), 2)
})

test('a timeout and a scope that closes cancel the task as well', async () => {
  const late = new Int32Array(new SharedArrayBuffer(8))
  const exit = await fork(timeout(50, () => fork(waiting, { on: place, input: late }).join())).await()
  assert.equal(exit.kind, 'failure')
  await reaches(late, 1)
  const closed = new Int32Array(new SharedArrayBuffer(8))
  const scope = new Scope()
  fork(waiting, { on: place, input: closed, scope })
  await reaches(closed, 0)
  await scope.close()
  await reaches(closed, 1)
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

test('a stage that is a fiber fails as it does, and travels', async () => {
  const checked = fromFiber(function* (x: number) {
    return x > 0 ? x : yield* failing('negative' as const)
  })
  assert.deepEqual(await checked.runExit(-1), Exit.failure('negative'))
  assert.equal(await checked.catchAll(() => lift(() => 0)).run(-1), 0)
  const far = fromFiber(function* (x: number): Generator<never, number, unknown> {
    return x + 1
  })
  assert.equal(await far.on(place).run(1), 2)
  const nothing = fromFiber((() => 5) as never)
  assert.equal((await nothing.runExit(1)).kind, 'defect')
})
