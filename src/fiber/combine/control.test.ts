/**
 * ensuring, interruptible, zip, validate, parallel finalizers, supervisors; and how deep a fiber may go.
 *
 * Each behaviour with a success, a failure and an interruption.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Fiber,
  type Operation,
  Exit,
  FiberLocal,
  RateLimiter,
  Schedule,
  Semaphore,
  Supervisor,
  SynchronizedRef,
  acquireRelease,
  addFinalizer,
  all,
  catchAll,
  dump,
  ensuring,
  exitOf,
  fail,
  fork,
  interruptible,
  never,
  parallelFinalizers,
  repeat,
  retry,
  scoped,
  sleep,
  suspend,
  uninterruptible,
  uninterruptibleMask,
  validate,
  yieldNow,
  zip,
} from '../index.ts'
import { simulate } from '../../test/played.test.support.ts'

test('ensuring runs its finalizer with the exit of its body, whatever that is', async () => {
  const seen: unknown[] = []
  const note = (exit: Exit<unknown, unknown>): void => void seen.push(exit)
  assert.equal(await fork(ensuring(() => 1, note)).join(), 1)
  assert.deepEqual(await fork(ensuring(fail('no'), note)).await(), Exit.failure('no'))
  const thrower = () => {
    throw new RangeError('bug')
  }
  assert.equal((await fork(ensuring(thrower, note)).await()).kind, 'defect')
  await fork(ensuring(never(), note)).interrupt('stop')
  assert.deepEqual(seen, [
    Exit.success(1),
    Exit.failure('no'),
    Exit.defect(new RangeError('bug')),
    Exit.interruption('stop'),
  ])
  assert.throws(() => ensuring(never(), 1 as never), { code: 'FIBER_ARGUMENT' })
})

test('ensuring: its finalizer is whole, what it throws is kept, children are the fiber’s', async () => {
  const log: string[] = []
  function* finalizer(): Operation<void, string> {
    yield* sleep(1)
    log.push('finalized')
    yield* fail('late')
  }
  const fiber = fork(ensuring(never(), finalizer))
  assert.deepEqual(await fiber.interrupt('stop'), Exit.interruption('stop', [Exit.failure('late')]))
  assert.deepEqual(await fork(ensuring(() => 1, finalizer)).await(), Exit.failure('late'))
  await fork(function* () {
    const child = yield* ensuring(
      () => fork(sleep(2)),
      () => 'nothing',
    )
    yield* child.join()
    log.push('child ended by itself')
  }).join()
  assert.deepEqual(log, ['finalized', 'finalized', 'child ended by itself'])
})

test('interruptible allows interrupts in a mask, and not where a fiber ends', async () => {
  const log: string[] = []
  const fiber = fork(
    uninterruptible(function* () {
      yield* ensuring(interruptible(never()), () => void log.push('cut'))
    }),
  )
  assert.equal((await fiber.interrupt()).kind, 'interruption')
  const ending = fork(function* () {
    addFinalizer(() =>
      interruptible(function* () {
        yield* sleep(1)
        log.push('finalizer is whole')
      }),
    )
    yield* never()
  })
  await ending.interrupt()
  assert.equal(await fork(interruptible(() => 5)).join(), 5)
  assert.deepEqual(log, ['cut', 'finalizer is whole'])
})

test('zip: one after the other, until one fails', async () => {
  const log: number[] = []
  const at = (ms: number) =>
    function* () {
      yield* sleep(ms)
      log.push(ms)
      return ms
    }
  assert.deepEqual(await fork(zip(at(3), at(1), () => 'x')).join(), [3, 1, 'x'])
  assert.deepEqual(await fork(zip(at(2), fail('no'), at(4))).await(), Exit.failure('no'))
  assert.deepEqual(log, [3, 1, 2])
})

test('validate: all values, or all failures in order; a defect comes first', async () => {
  const late = (ms: number, error: string) =>
    function* () {
      yield* sleep(ms)
      yield* fail(error)
    }
  assert.deepEqual(await fork(validate([() => 1, sleep(1)])).join(), [1, undefined])
  assert.deepEqual(await fork(validate({ a: () => 1 })).join(), { a: 1 })
  const exit = await fork(validate([late(2, 'one'), () => 1, late(1, 'two')])).await()
  assert.ok(exit.kind === 'failure' && exit.error instanceof AggregateError)
  assert.deepEqual([exit.error.errors, exit.error.message], [['one', 'two'], '2 of 3 failed'])
  const thrower = () => {
    throw new Error('bug')
  }
  const worse = await fork(validate([fail('one'), thrower])).await()
  assert.equal(worse.kind, 'defect')
  assert.equal((await fork(validate([never()])).interrupt()).kind, 'interruption')
  assert.equal((await fork(exitOf(() => validate(1 as never))).join()).kind, 'defect')
})

test('parallel finalizers take as long as the longest, and all errors are kept', async () => {
  const log: string[] = []
  const closed = (name: string, ms: number) =>
    acquireRelease(
      () => name,
      function* () {
        yield* sleep(ms)
        log.push(name)
        if (ms > 10) yield* fail(name)
      },
    )
  function* body(): Operation<string, unknown> {
    yield* closed('a', 20)
    yield* closed('b', 30)
    yield* closed('c', 1)
    return 'value'
  }
  const { exit, nowMs } = await simulate(1, () => exitOf(parallelFinalizers(body)))
  assert.equal(nowMs, 30)
  assert.deepEqual(log, ['c', 'a', 'b'])
  assert.deepEqual(exit, Exit.success(Exit.failure('b', [Exit.failure('a')])))
  const one = await simulate(1, () => parallelFinalizers(() => closed('d', 2)))
  assert.equal(one.exit.kind, 'success')
  const cut = fork(
    parallelFinalizers(function* () {
      addFinalizer(() => log.push('e'))
      addFinalizer(() => log.push('f'))
      yield* never()
    }),
  )
  assert.deepEqual(await cut.interrupt('stop'), Exit.interruption('stop'))
  assert.deepEqual(log.slice(-2), ['f', 'e'])
})

test('a supervisor is called for all that its body forks, and changes no failure', async () => {
  const log: string[] = []
  const supervisor = new Supervisor({
    onStart: (fiber) => log.push(`+${fiber.name}:${fiber.status}`),
    onEnd: ({ name }, exit) => log.push(`-${name}:${exit.kind}`),
  })
  const inner = new Supervisor({ onEnd: ({ name }) => log.push(`inner ${name}`) })
  const local = new FiberLocal(0)
  function* program(): Operation<void, string> {
    local.set(1)
    yield* fork(() => fork(yieldNow(), { name: 'grandchild' }).join(), { name: 'child' }).join()
    yield* inner.supervise(() => fork(() => local.get(), { name: 'seen by both' }).join())
    const waiting = fork(never(), { name: 'cut' })
    assert.deepEqual([...supervisor.fibers], [waiting])
    yield* waiting.interrupt()
    fork(fail('lost'), { name: 'failing' })
    yield* never()
  }
  const exit = await fork(function* () {
    yield* supervisor.supervise(program)
  }).await()
  assert.deepEqual(exit, Exit.failure('lost'))
  assert.deepEqual(log, [
    '+child:running',
    '+grandchild:running',
    '-grandchild:success',
    '-child:success',
    '+seen by both:running',
    '-seen by both:success',
    'inner seen by both',
    '+cut:running',
    '-cut:interruption',
    '+failing:running',
    '-failing:failure',
  ])
  assert.equal(supervisor.fibers.size, 0)
  assert.throws(() => new Supervisor({ onStart: 1 as never }), { code: 'FIBER_ARGUMENT' })
})

test('a supervisor stops where its body ends, and what it throws is nobody else’s', async ({ mock }) => {
  const received: unknown[] = []
  const { queueMicrotask: queued } = globalThis
  mock.method(globalThis, 'queueMicrotask', (body: () => void) =>
    queued(() => {
      try {
        body()
      } catch (error) {
        received.push(error)
      }
    }),
  )
  const error = new Error('listener')
  const supervisor = new Supervisor({
    onStart: () => {
      throw error
    },
  })
  const value = await fork(function* () {
    const one = yield* supervisor.supervise(() => fork(() => 1).join())
    return one + (yield* fork(() => 2).join())
  }).join()
  assert.deepEqual([value, received], [3, [error]])
})

const DEEP = 10_000

test('catchAll ten thousand deep, in its body, in its handler and as a value', async () => {
  const inBody = (depth: number): Operation<number, string> =>
    catchAll(
      () => (depth === 0 ? sleep(1) : (inBody(depth - 1) as never)),
      () => -1,
    ) as never
  assert.equal(await fork(inBody(DEEP)).join(), undefined)
  function* counted(depth: number): Operation<number, string> {
    if (depth === 0) return yield* fail('bottom')
    return yield* catchAll(counted(depth - 1), (error: string) => fail(error))
  }
  assert.deepEqual(await fork(counted(DEEP)).await(), Exit.failure('bottom'))
  const inHandler = (depth: number): Operation<number, never> =>
    catchAll(fail('again'), () => (depth === 0 ? 7 : (inHandler(depth - 1) as never))) as never
  assert.equal(await fork(inHandler(DEEP)).join(), 7)
  let value: Operation<number, unknown> = fail('bottom') as never
  for (let depth = 0; depth < DEEP; depth += 1) value = catchAll(value, (error) => fail(error)) as never
  assert.deepEqual(await fork(value).await(), Exit.failure('bottom'))
})

test('suspend: a hundred thousand deep, with waits, values, failures and an interrupt', async () => {
  let finalized = 0
  function* count(depth: number, last: () => Operation<number, string>): Operation<number, string> {
    try {
      return depth === 0 ? yield* last() : 1 + (yield* suspend(() => count(depth - 1, last)))
    } finally {
      finalized += 1
    }
  }
  function* waits(): Operation<number> {
    for (let turn = 0; turn < 3; turn += 1) yield* sleep(0)
    return 0
  }
  assert.equal(await fork(count(100_000, waits)).join(), 100_000)
  assert.equal(finalized, 100_001)
  assert.deepEqual(await fork(count(DEEP, () => fail('bottom') as never)).await(), Exit.failure('bottom'))
  const fiber = fork(count(DEEP, () => never() as never))
  while (fiber.status !== 'waiting') await new Promise(setImmediate)
  finalized = 0
  assert.deepEqual(await fiber.interrupt('stop'), Exit.interruption('stop'))
  assert.equal(finalized, DEEP + 1)
  const early = fork(count(DEEP, () => never() as never))
  assert.deepEqual(await early.interrupt('early'), Exit.interruption('early'))
  assert.deepEqual(dump(), [])
})

const local = new FiberLocal(0)
for (const [name, around] of Object.entries<(body: () => Operation<unknown, unknown>) => unknown>({
  ensuring: (body) => ensuring(body, () => {}),
  scoped: (body) => scoped(body),
  parallelFinalizers: (body) => parallelFinalizers(body),
  uninterruptible: (body) => uninterruptible(body),
  uninterruptibleMask: (body) => uninterruptibleMask((restore) => restore(body)),
  interruptible: (body) => interruptible(body),
  acquireRelease: (body) => acquireRelease(body, () => {}),
  exitOf: (body) => exitOf(body),
  zip: (body) => zip(body),
  retry: (body) => retry(body, Schedule.recurs(0)),
  repeat: (body) => repeat(body, Schedule.recurs(0)),
  supervise: (body) => new Supervisor().supervise(body),
  withPermits: (body) => new Semaphore({ permits: 1 }).withPermits(body),
  'RateLimiter.run': (body) => new RateLimiter({ limit: 1 }).run(body),
  'FiberLocal.with': (body) => local.with(1, body),
  'SynchronizedRef.update': (body) => new SynchronizedRef<unknown>(0).update(() => body()),
}))
  test(`${name} may be inside of itself ten thousand times, over a wait`, async () => {
    const nested = (depth: number): Operation<unknown, unknown> =>
      (depth === 0 ? sleep(0) : around(() => nested(depth - 1))) as Operation<unknown, unknown>
    assert.equal((await fork(() => nested(DEEP)).await()).kind, 'success')
    assert.deepEqual(dump(), [])
  })

test('an interrupt leaves no promise of a body behind, however deep that is', async () => {
  for (let depth = 190; depth < 210; depth += 1) {
    const rejected = (fiber: Fiber): Promise<never> => {
      void fiber.interrupt('stop')
      return Promise.reject(new RangeError('late'))
    }
    const nested = (left: number): Operation<unknown, unknown> =>
      exitOf(left > 0 ? () => nested(left - 1) : rejected)
    const fiber = fork(function* () {
      yield* sleep(0)
      return yield* nested(depth)
    })
    assert.deepEqual(await fiber.await(), Exit.interruption('stop', [Exit.failure(new RangeError('late'))]))
  }
})

test('finalizers of a deep chain run in order when it is interrupted, and keep what they throw', async () => {
  const order: number[] = []
  const chain = (depth: number): Operation<never, never> =>
    (depth === 0
      ? never()
      : ensuring(
          () => chain(depth - 1),
          () => {
            order.push(depth)
            if (depth === DEEP) throw new RangeError('last')
          },
        )) as Operation<never, never>
  const fiber = fork(() => chain(DEEP))
  while (fiber.status !== 'waiting') await new Promise(setImmediate)
  const exit = await fiber.interrupt('stop')
  assert.deepEqual(exit, Exit.interruption('stop', [Exit.defect(new RangeError('last'))]))
  assert.deepEqual(
    order,
    Array.from({ length: DEEP }, (_, at) => at + 1),
  )
})

test('an interrupt at any step of a deep recursion unwinds all of it', async () => {
  for (let seed = 1; seed < 200; seed += 1) {
    let open = 0
    function* deep(depth: number): Operation<number, string> {
      open += 1
      try {
        if (depth === 0) return yield* fail('bottom')
        const handler = (error: string) => (depth % 300 === 0 ? yieldNow() : fail(error))
        return (yield* catchAll(() => deep(depth - 1), handler as never)) as never
      } finally {
        open -= 1
      }
    }
    const run = await simulate(seed, function* () {
      const fiber = fork(deep(1000))
      for (let turn = 0; turn < seed % 23; turn += 1) yield* yieldNow()
      const exit = yield* fiber.interrupt('cut')
      assert.equal(open, 0)
      return exit.kind
    })
    assert.ok(run.exit.kind === 'success' && ['success', 'interruption'].includes(run.exit.value))
  }
})

test('plain yield* is some thousand deep, by the engine’s stack; a deeper one is a defect', async () => {
  function* plain(depth: number): Operation<number> {
    return depth === 0 ? 0 : 1 + (yield* plain(depth - 1))
  }
  assert.equal(await fork(plain(3000)).join(), 3000)
  const exit = await fork(all([plain(1_000_000)])).await()
  assert.ok(exit.kind === 'defect' && exit.defect instanceof RangeError)
})
