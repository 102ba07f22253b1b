/**
 * Interrupts: what they unwind, what outlasts them, and whom they reach; failures of children.
 *
 * Every test ends with no fiber left; waits are for events, never for time.
 */
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import {
  Exit,
  Fiber,
  InterruptedError,
  type Operation,
  dump,
  dumpText,
  fail,
  fork,
  never,
  sleep,
  uninterruptible,
  yieldNow,
} from '../index.ts'

afterEach(() => assert.deepEqual(dump(), [], dumpText()))

const bug = new TypeError('bug')

const failure = new RangeError('failure')

test('an interrupted generator runs its finally blocks, and interrupt waits for them', async () => {
  const log: string[] = []
  const fiber = fork(function* () {
    try {
      yield* never()
    } catch (error) {
      log.push((error as InterruptedError).code)
      throw error
    } finally {
      log.push('begun')
      yield* sleep(1)
      log.push('ended')
    }
  })
  assert.deepEqual(await fiber.interrupt('why'), Exit.interruption('why'))
  assert.deepEqual(log, ['FIBER_INTERRUPTED', 'begun', 'ended'])
})

test('finally blocks that wait, in generators inside each other, all run', async () => {
  const log: string[] = []
  const inner = function* (): Operation<void> {
    try {
      yield* never()
    } finally {
      yield* sleep(1)
      yield* fork(() => 1).join()
      log.push('inner')
    }
  }
  const fiber = fork(function* () {
    try {
      yield* inner()
      log.push('not reached')
    } finally {
      yield* yieldNow()
      log.push('outer')
    }
  })
  assert.deepEqual(await fiber.interrupt(), Exit.interruption())
  assert.deepEqual(log, ['inner', 'outer'])
})

test('a body that swallows its interrupt and ends is interrupted all the same', async () => {
  const fiber = fork(function* () {
    try {
      yield* never()
    } catch {
      yield* sleep(1)
    }
    return 'went on'
  })
  assert.deepEqual(await fiber.interrupt('why'), Exit.interruption('why'))
})

test('an interrupted fiber is unwound once, and what fails then is kept', async () => {
  let count = 0
  const fiber = fork(function* () {
    try {
      yield* never()
    } finally {
      count += 1
      yield* sleep(1)
      throw bug
    }
  })
  void fiber.interrupt('one')
  const exit = await fiber.interrupt('two')
  assert.deepEqual(exit, Exit.interruption('one', [Exit.defect(bug)]))
  assert.equal(count, 1)
})

test('an async body is interrupted through its signal', async () => {
  const fiber = fork(
    ({ signal }: Fiber) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  )
  assert.deepEqual(await fiber.interrupt('why'), Exit.interruption('why'))
})

test('an interrupted async body that fails otherwise keeps that', async () => {
  const fiber = fork(async ({ signal }: Fiber) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    throw failure
  })
  assert.deepEqual(await fiber.interrupt(), Exit.interruption(undefined, [Exit.failure(failure)]))
})

test('interrupt of what has ended changes nothing', async () => {
  const fiber = fork(() => 1)
  assert.deepEqual(await fiber.interrupt(), Exit.success(1))
})

test('a fiber that interrupts itself stops at its next yield*', async () => {
  const log: string[] = []
  const fiber: Fiber = fork(function* (self: Fiber): Operation<void> {
    void self.interrupt('self')
    log.push('before')
    yield* fork(() => 1).join()
    log.push('behind')
  })
  assert.deepEqual(await fiber.await(), Exit.interruption('self'))
  assert.deepEqual(log, ['before'])
})

test('who joins an interrupted fiber gets an InterruptedError, which interrupts if it passes', async () => {
  const parked = fork(never())
  const joiner = fork(function* () {
    yield* parked.join()
  })
  const catcher = fork(function* () {
    try {
      return yield* parked.join()
    } catch (error) {
      return (error as InterruptedError).reason
    }
  })
  await parked.interrupt('why')
  assert.deepEqual(await joiner.await(), Exit.interruption('why'))
  assert.deepEqual(await catcher.await(), Exit.success('why'))
})

test('an interrupted joiner leaves what it joined alone', async () => {
  const parked = fork(never())
  const joiner = fork(function* () {
    yield* parked.join()
  })
  await joiner.interrupt()
  assert.equal(parked.status, 'waiting')
  await parked.interrupt()
})

test('an interrupt waits for an uninterruptible part', async () => {
  const log: string[] = []
  const fiber = fork(function* () {
    yield* uninterruptible(function* () {
      yield* sleep(2)
      log.push('done')
    })
    yield* yieldNow()
    log.push('not reached')
  })
  assert.deepEqual(await fiber.interrupt(), Exit.interruption(undefined))
  assert.deepEqual(log, ['done'])
})

test('children are interrupted when their fiber ends', async () => {
  const log: string[] = []
  let child: Fiber | undefined
  await fork(function* () {
    child = fork(function* () {
      try {
        yield* never()
      } finally {
        yield* sleep(1)
        log.push('child')
      }
    })
    yield* yieldNow()
    log.push('parent')
  }).join()
  assert.deepEqual(log, ['parent', 'child'])
  assert.equal(child?.exit?.kind, 'interruption')
})

test('a daemon goes on when its fiber ends', async () => {
  let daemon: Fiber | undefined
  await fork(function* () {
    daemon = fork(never(), { daemon: true, name: 'd' })
  }).join()
  assert.equal(daemon?.status, 'waiting')
  await daemon?.interrupt()
})

test('a child that fails while nobody waits for it fails its fiber and its siblings', async () => {
  const log: string[] = []
  const fiber = fork(function* () {
    fork(function* () {
      try {
        yield* never()
      } finally {
        log.push('sibling')
        throw bug
      }
    })
    fork(function* () {
      yield* sleep(1)
      yield* fail(failure)
    })
    try {
      yield* never()
    } finally {
      log.push('parent')
    }
  })
  assert.deepEqual(await fiber.await(), Exit.failure(failure, [Exit.defect(bug)]))
  assert.deepEqual(log, ['parent', 'sibling'])
})

test('a failure that the fiber joins and catches is over', async () => {
  const fiber = fork(function* () {
    const child = fork(fail(failure))
    try {
      yield* child.join()
    } catch {
      return 'caught'
    }
    return 'not'
  })
  assert.deepEqual(await fiber.await(), Exit.success('caught'))
})

test('a failure inside fork that nobody looks at fails the fiber at its next wait', async () => {
  const fiber = fork(function* () {
    fork(fail(failure))
    yield* never()
  })
  assert.deepEqual(await fiber.await(), Exit.failure(failure))
  const ended = fork(function* () {
    fork(fail(failure))
    return 1
  })
  assert.deepEqual(await ended.await(), Exit.failure(failure))
})
