/**
 * Fibers and zones: bodies and steps on workers, their failures, and that an interrupt cancels the task.
 *
 * One zone of two workers serves the file; tasks show that they run through a shared buffer.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { cellIsSet, until } from '../../base/wait.test.support.ts'
import { type Task, ZoneError, zone } from '../../zone/index.ts'
import { Exit, all, fork, on, sleep, timeout } from '../index.ts'
import { RUNNABLE } from '../internal.ts'

const here = zone.create('fiber zones', { workers: 2, tasksPerWorkerMax: 4, graceMs: 60_000 })
after(() => here.close())

const double = (x: number): number => x * 2
const throwing = (): never => {
  throw new RangeError('there')
}
const rejecting = async (): Promise<never> => {
  throw new RangeError('there')
}

/** Counts its beginning, and its end by an abort, in `flags`. */
async function waiting(this: Task, flags: Int32Array): Promise<void> {
  Atomics.add(flags, 0, 1)
  Atomics.notify(flags, 0)
  if (!this.signal.aborted)
    await new Promise<void>((resolve) => this.signal.addEventListener('abort', () => resolve()))
  Atomics.add(flags, 1, 1)
  Atomics.notify(flags, 1)
}

test('a function with an input runs in the zone', async () => {
  assert.equal(await fork(double, { on: here, input: 4 }).join(), 8)
})

test('a step of a fiber runs in the zone, and on zone.node here', async () => {
  const captured = 5
  const value = await fork(function* () {
    const there = yield* on(here, double, 1)
    return there + (yield* on(zone.node, () => captured))
  }).join()
  assert.equal(value, 7)
})

test('a generator runs there as a fiber, and its exit is one here', async () => {
  const body = function* (x: number): Generator<never, number, unknown> {
    return x + 1
  }
  assert.equal(await fork(body, { on: here, input: 4 }).join(), 5)
  const failing = function* (): Generator<never, number, unknown> {
    throw new RangeError('there')
  }
  assert.equal((await fork(failing, { on: here }).await()).kind, 'defect')
})

test('what a function throws is a defect, what an async one throws a failure', async () => {
  for (const [body, kind] of [
    [throwing, 'defect'],
    [rejecting, 'failure'],
  ] as const) {
    const exit = await fork(body, { on: here }).await()
    assert.equal(exit.kind, kind)
    const error = exit.kind === 'defect' ? exit.defect : (exit as { error: unknown }).error
    assert.ok(error instanceof RangeError)
  }
})

test('what the zone refuses is a failure', async () => {
  const captured = 5
  const exit = await fork(() => captured, { on: here }).await()
  assert.equal(exit.kind === 'failure' && (exit.error as { code: string }).code, 'FUNCTION_CAPTURES')
  const closed = zone.create('fiber zones, closed', { workers: 1 })
  await closed.close()
  const refused = await fork(double, { on: closed, input: 1 }).await()
  assert.ok(refused.kind === 'failure' && (refused.error as unknown) instanceof ZoneError)
})

test("a function's own errors are defects, also when they are of Corespun's kind", async () => {
  const own = new ZoneError('ZONE_ARGUMENT', { name: 'it', expected: 'more', received: 'less' })
  for (const error of [own, new ZoneError('ZONE_CLOSED', { zone: 'another' })]) {
    const exit = await fork(
      (thrown: unknown) => {
        throw thrown
      },
      { on: here, input: error },
    ).await()
    assert.ok(exit.kind === 'defect' && (exit.defect as { code: string }).code === error.code)
  }
})

test('an arrow runs there by its own on', async () => {
  const arrow = {
    [RUNNABLE]: () => Exit.success('here'),
    on: (target: unknown) => ({ [RUNNABLE]: () => Exit.success(target) }),
  }
  assert.deepEqual(fork(arrow, { on: here }).exit, Exit.success(here))
})

test('interrupting a fiber cancels its task, in a step and as a body', async () => {
  for (const start of [
    (flags: Int32Array) => fork(waiting as never, { on: here, input: flags }),
    (flags: Int32Array) =>
      fork(function* () {
        yield* on(here, waiting, flags)
      }),
  ]) {
    const flags = new Int32Array(new SharedArrayBuffer(8))
    const fiber = start(flags)
    await cellIsSet(flags, 0, 'the beginning')
    assert.deepEqual(await fiber.interrupt('why'), Exit.interruption('why'))
    await cellIsSet(flags, 1, 'the abort')
  }
})

test('a timeout cancels the task', async () => {
  const flags = new Int32Array(new SharedArrayBuffer(8))
  // A task that has not begun when its time is over never does.
  for (let ms = 50; flags[0] === 0; ms *= 2) {
    const exit = await fork(timeout(ms, () => on(here, waiting, flags))).await()
    assert.equal(exit.kind, 'failure')
    await until(() => here.stats().running + here.stats().waiting === 0)
  }
  assert.equal(flags[1], 1)
})

test('many at once', async () => {
  const values = await fork(
    all(Array.from({ length: 200 }, (_, index) => () => on(here, double, index))),
  ).join()
  assert.deepEqual(
    values,
    Array.from({ length: 200 }, (_, index) => index * 2),
  )
})

test('what cannot run there is refused by name', async () => {
  assert.throws(() => fork(sleep(1), { on: here }), { code: 'FIBER_ARGUMENT' })
  assert.throws(() => fork(double, { on: {} as never }), { code: 'FIBER_ARGUMENT' })
  assert.throws(() => on({} as never, double, 1), { code: 'FIBER_ARGUMENT' })
})
