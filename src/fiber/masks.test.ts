/**
 * Where interrupts are masked: what comes meanwhile is delivered where the mask ends, not lost.
 *
 * The behaviours are those of ZIO and Effect (`uninterruptible`, `uninterruptibleMask`, `acquireRelease`).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Exit,
  type Fiber,
  acquireRelease,
  addFinalizer,
  currentFiber,
  fail,
  fork,
  never,
  scoped,
  sleep,
  uninterruptible,
  uninterruptibleMask,
  yieldNow,
} from './index.ts'

test('an interrupt during acquire is delivered behind it: use does not run, release does', async () => {
  const log: string[] = []
  const fiber = fork(function* () {
    const connection = yield* acquireRelease(
      function* () {
        yield* yieldNow()
        return 'connection'
      },
      (value, exit) => void log.push(`${value} released`, exit.kind),
    )
    log.push(`${connection} used`)
    return 'charged'
  })
  assert.deepEqual(await fiber.interrupt('stop'), Exit.interruption('stop'))
  assert.deepEqual(log, ['connection released', 'interruption'])
})

test('a body that is one mask ends as an interruption when it was interrupted', async () => {
  for (const body of [() => uninterruptible(yieldNow()), () => uninterruptibleMask(() => yieldNow())]) {
    assert.deepEqual(await fork(body).interrupt('stop'), Exit.interruption('stop'))
  }
})

test('a fiber that interrupts itself ends as an interruption, whether it waits again or not', async () => {
  const log: string[] = []
  const bodies: Record<string, () => unknown> = {
    *generator() {
      void currentFiber().interrupt('self')
      return 42
    },
    function() {
      void currentFiber().interrupt('self')
      return 42
    },
    *masked() {
      yield* uninterruptible(() => void currentFiber().interrupt('self'))
      log.push('behind the mask')
    },
    *scoped() {
      yield* scoped(() => void currentFiber().interrupt('self'))
      log.push('behind the scope')
    },
  }
  for (const [name, body] of Object.entries(bodies)) {
    assert.deepEqual(await fork(body).await(), Exit.interruption('self'), name)
  }
  assert.deepEqual(log, [])
})

test('what goes wrong in an interrupted body, or in a mask, is kept beside the interruption', async () => {
  const thrower = fork(function* () {
    void currentFiber().interrupt('self')
    throw new RangeError('late')
  })
  const { kind, others } = (await thrower.await()) as Exit<never> & { others: readonly unknown[] }
  assert.deepEqual([kind, others], ['interruption', [Exit.defect(new RangeError('late'))]])

  const masked = fork(() =>
    uninterruptible(function* () {
      yield* yieldNow()
      yield* fail('not acquired')
    }),
  )
  assert.deepEqual(await masked.interrupt('stop'), Exit.interruption('stop', [Exit.failure('not acquired')]))
})

test('of masks inside each other the outermost delivers', async () => {
  const log: string[] = []
  const fiber = fork(function* () {
    yield* uninterruptible(function* () {
      yield* uninterruptible(yieldNow())
      log.push('between')
      yield* acquireRelease(
        () => 1,
        () => void log.push('released'),
      )
      log.push('end of the outer')
    })
    log.push('not reached')
  })
  assert.equal((await fiber.interrupt()).kind, 'interruption')
  assert.deepEqual(log, ['between', 'end of the outer', 'released'])
})

test('restore allows interrupts inside of a mask: its wait is interrupted, the rest is not', async () => {
  const log: string[] = []
  const fiber = fork(function* () {
    yield* uninterruptibleMask(function* (restore) {
      try {
        yield* restore(never())
      } finally {
        yield* yieldNow()
        log.push('cleaned')
      }
    })
    log.push('not reached')
  })
  assert.equal(fiber.status, 'waiting')
  assert.deepEqual(await fiber.interrupt('stop'), Exit.interruption('stop'))
  assert.deepEqual(log, ['cleaned'])
})

test('a pending interrupt is delivered where restore begins, one of its own body where it ends', async () => {
  for (const self of ['before', 'inside'] as const) {
    const log: string[] = []
    const exit = await fork(() =>
      uninterruptibleMask(function* (restore) {
        if (self === 'before') void currentFiber().interrupt(self)
        log.push('masked')
        yield* restore(() => {
          log.push('restored')
          if (self === 'inside') void currentFiber().interrupt(self)
        })
        log.push('not reached')
      }),
    ).await()
    assert.deepEqual(exit, Exit.interruption(self))
    assert.deepEqual(log, self === 'before' ? ['masked'] : ['masked', 'restored'])
  }
})

test('restore returns the value and the failure of its body, and masks again behind it', async () => {
  const log: unknown[] = []
  const fiber = fork(function* () {
    return yield* uninterruptibleMask(function* (restore) {
      log.push(yield* restore(() => 7))
      try {
        yield* restore(fail('no'))
      } catch (error) {
        log.push(error)
      }
      yield* yieldNow()
      log.push('masked again')
    })
  })
  assert.deepEqual(await fiber.interrupt(), Exit.interruption(undefined))
  assert.deepEqual(log, [7, 'no', 'masked again'])
})

test('restore in an outer mask, in a finalizer and in another fiber leaves masks as they are', async () => {
  const log: string[] = []
  const outer = fork(() =>
    uninterruptible(() =>
      uninterruptibleMask(function* (restore) {
        yield* restore(yieldNow())
        log.push('outer mask holds')
      }),
    ),
  )
  assert.equal((await outer.interrupt()).kind, 'interruption')

  const finalizing = fork(function* () {
    addFinalizer(() =>
      uninterruptibleMask(function* (restore) {
        yield* restore(yieldNow())
        log.push('finalizer ran')
      }),
    )
    yield* never()
  })
  assert.equal((await finalizing.interrupt()).kind, 'interruption')

  const parent = fork(() =>
    uninterruptibleMask(function* (restore) {
      const child = fork(function* () {
        yield* uninterruptible(() => restore(yieldNow()))
        log.push('not reached')
      })
      yield* child.interrupt('child')
      log.push(child.exit?.kind as string)
    }),
  )
  assert.equal((await parent.await()).kind, 'success')
  assert.deepEqual(log, ['outer mask holds', 'finalizer ran', 'interruption'])
})

test('the signal of a masked fiber is aborted where the mask ends, and in restore', async () => {
  const seen: boolean[] = []
  const fiber = fork(function* (self: Fiber) {
    const { signal } = self
    yield* uninterruptibleMask(function* (restore) {
      yield* yieldNow()
      seen.push(signal.aborted)
      try {
        yield* restore(sleep(60_000))
      } finally {
        seen.push(signal.aborted)
      }
    })
  })
  assert.equal((await fiber.interrupt()).kind, 'interruption')
  assert.deepEqual(seen, [false, true])
})

test('uninterruptibleMask refuses a body that is not a function', async () => {
  const exit = await fork(() => uninterruptibleMask(5 as never)).await()
  assert.equal((exit as { defect: { code: string } }).defect.code, 'FIBER_ARGUMENT')
})
