/**
 * Fibers: how bodies end, and what joiners get. interrupt.test.ts has what an interrupt does.
 *
 * Every test ends with no fiber left; waits are for events, never for time.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { afterEach, test } from 'node:test'
import {
  Exit,
  Fiber,
  FiberError,
  type AnyBody,
  type Operation,
  attempt,
  dump,
  dumpText,
  exitOf,
  fail,
  fork,
  never,
  sleep,
  yieldNow,
} from '../index.ts'
import { RUNNABLE } from '../internal.ts'

afterEach(() => assert.deepEqual(dump(), [], dumpText()))

const bug = new TypeError('bug')
const failure = new RangeError('failure')

async function exitsWith(body: AnyBody, exit: Exit<unknown, unknown>): Promise<void> {
  assert.deepEqual(await fork(body).await(), exit)
}

const ends: Record<string, [AnyBody, Exit<unknown, unknown>]> = {
  'a generator with a value': [
    function* () {
      return 1
    },
    Exit.success(1),
  ],
  'a generator that waits': [
    function* () {
      yield* yieldNow()
      return 1
    },
    Exit.success(1),
  ],
  'a generator object': [
    (function* () {
      yield* yieldNow()
      return 1
    })(),
    Exit.success(1),
  ],
  'a plain function': [() => 1, Exit.success(1)],
  'a function that returns a generator': [() => exitOf(() => 1), Exit.success(Exit.success(1))],
  'an async function': [async () => 1, Exit.success(1)],
  'an op': [sleep(0), Exit.success(undefined)],
  'a function that returns an op': [() => sleep(0), Exit.success(undefined)],
  'a generator that throws': [
    function* () {
      throw bug
    },
    Exit.defect(bug),
  ],
  'a generator that waits and throws': [
    function* () {
      yield* yieldNow()
      throw bug
    },
    Exit.defect(bug),
  ],
  'a plain function that throws': [
    () => {
      throw bug
    },
    Exit.defect(bug),
  ],
  'an async function that rejects': [
    async () => {
      throw failure
    },
    Exit.failure(failure),
  ],
  fail: [
    function* () {
      yield* fail(failure)
    },
    Exit.failure(failure),
  ],
  'fail with a primitive': [fail('text'), Exit.failure('text')],
  'fail behind a wait': [
    function* () {
      yield* yieldNow()
      yield* fail(failure)
    },
    Exit.failure(failure),
  ],
  'a failure caught and thrown again': [
    function* () {
      try {
        yield* fail(failure)
      } catch (error) {
        yield* yieldNow()
        throw error
      }
    },
    Exit.failure(failure),
  ],
  'a failure caught and replaced': [
    function* () {
      try {
        yield* fail(failure)
      } catch {
        throw bug
      }
    },
    Exit.defect(bug),
  ],
  'a failure behind a finally that waits': [
    function* () {
      try {
        yield* fail(failure)
      } finally {
        yield* yieldNow()
      }
    },
    Exit.failure(failure),
  ],
  'a join of what failed': [
    function* () {
      yield* fork(fail(failure)).join()
    },
    Exit.failure(failure),
  ],
  'a join of what has a defect': [
    function* () {
      yield* fork(() => {
        throw bug
      }).join()
    },
    Exit.defect(bug),
  ],
  'attempt of what throws': [
    attempt(() => {
      throw failure
    }),
    Exit.failure(failure),
  ],
  'attempt of a rejection': [() => attempt(Promise.reject(failure)), Exit.failure(failure)],
  'attempt of a value': [attempt(() => 5), Exit.success(5)],
  'attempt of a promise': [attempt(Promise.resolve(5)), Exit.success(5)],
}
for (const [name, [body, exit]] of Object.entries(ends))
  test(`${name} ends with ${exit.kind}`, () => exitsWith(body, exit))

test('a body that never waits has ended when fork returns', () => {
  assert.deepEqual(
    fork(function* () {
      return yield* fork(() => 2).join()
    }).exit,
    Exit.success(2),
  )
  assert.equal(fork(() => 1).status, 'done')
})

test('a defect that goes through an async body stays a defect', async () => {
  const died = fork(() => {
    throw bug
  })
  await exitsWith(async () => {
    await died.join()
  }, Exit.defect(bug))
})

test('an async body that joins an interrupted fiber is interrupted', async () => {
  const parked = fork(never())
  await parked.interrupt('why')
  await exitsWith(async () => {
    await parked.join()
  }, Exit.interruption('why'))
})

test("a runnable is run with its input and its exit is the fiber's", async () => {
  const twice = { [RUNNABLE]: (input: number) => Exit.success(input * 2) }
  assert.deepEqual(fork(twice, { input: 4 }).exit, Exit.success(8))
  const later = { [RUNNABLE]: async () => Exit.failure('no') }
  await exitsWith(later, Exit.failure('no'))
  const broken = {
    [RUNNABLE]: async () => {
      throw bug
    },
  }
  await exitsWith(broken, Exit.defect(bug))
})

test('join returns the value, or throws the failure itself', async () => {
  assert.equal(await fork(() => 3).join(), 3)
  await assert.rejects(
    async () => fork(fail(failure)).join(),
    (thrown) => thrown === failure,
  )
})

test('many wait for one', async () => {
  const one = fork(function* () {
    yield* sleep(1)
    return 7
  })
  const joiners = Array.from({ length: 50 }, () =>
    fork(function* () {
      return yield* one.join()
    }),
  )
  const values = await Promise.all([one.join(), one.join(), ...joiners.map((fiber) => fiber.join())])
  assert.deepEqual(new Set(values), new Set([7]))
})

test('joining oneself is refused', async () => {
  const exit = await fork(function* (self: Fiber): Operation<unknown, unknown> {
    return yield* self.join()
  }).await()
  assert.equal(exit.kind === 'defect' && (exit.defect as FiberError).code, 'FIBER_DEADLOCK')
})

test('a plain yield is refused', async () => {
  const exit = await fork(function* () {
    yield 5 as never
  }).await()
  assert.equal(exit.kind === 'defect' && (exit.defect as FiberError).code, 'FIBER_YIELD')
  const op = await fork(function* () {
    yield sleep(1) as never
  }).await()
  assert.equal(op.kind === 'defect' && (op.defect as FiberError).code, 'FIBER_YIELD')
})

test('ops outside of fibers are refused', () => {
  assert.throws(() => [...(sleep(1) as unknown as Iterable<unknown>)], { code: 'FIBER_REQUIRED' })
})

for (const [name, make, message] of [
  [
    'a body that is a number',
    () => fork(5 as never),
    /^fork\(\): the body must be .* or an operation; received 5$/,
  ],
  ['a nameless daemon', () => fork(never(), { daemon: true }), /^fork\(\): `daemon: true` needs `name`$/],
  [
    'a daemon of a scope',
    () => fork(never(), { daemon: true, name: 'd', scope: {} as never }),
    /^fork\(\): scope cannot be combined with `daemon: true`: .*a plain object$/,
  ],
  [
    'a value that is not a scope',
    () => fork(never(), { scope: {} as never }),
    /^fork\(\): scope must be a Scope or a Fiber; received a plain object$/,
  ],
  ['an empty name', () => fork(never(), { name: '' }), /^fork\(\): name must be .*; received ""$/],
  ['sleep(-1)', () => sleep(-1), /^sleep\(\): ms must be .*; received -1$/],
] as const)
  test(`${name} is refused by name`, () => assert.throws(make, { code: 'FIBER_ARGUMENT', message }))

test('a failure that nobody joins is an uncaught exception', () => {
  const index = new URL('../index.js', import.meta.url).href
  const program = `
    import { fail, fork } from ${JSON.stringify(index)}
    process.on('uncaughtException', ({ code, message, cause }) => console.log(code, message, cause.message))
    fork(fail(new RangeError('lost')), { name: 'lonely' })
    fork(fail(new RangeError('joined'))).join().then(undefined, () => {})`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  assert.match(
    stdout,
    /^FIBER_UNHANDLED fiber 'lonely' \(#\d+\) ended with a failure .*lost; join\(\) it, .*\n$/,
  )
})

test('one op may be waited for by many, at once and again', async () => {
  const target = fork(sleep(3))
  let calls = 0
  const ops = [sleep(2), attempt(async () => (calls += 1)), target.await(), target.join(), yieldNow()]
  for (const op of ops) {
    const wait = function* (): Operation<void, unknown> {
      yield* op as ReturnType<typeof attempt>
      yield* op as ReturnType<typeof attempt>
    }
    const fibers = Array.from({ length: 3 }, () => fork(wait))
    for (const fiber of fibers) assert.equal((await fiber.await()).kind, 'success')
  }
  assert.equal(calls, 6)
})

test('status is what a fiber does', async () => {
  const fiber = fork(
    function* () {
      yield* sleep(1)
    },
    { name: 'worker' },
  )
  assert.equal(fiber.status, 'waiting')
  assert.match(dumpText(), /^#\d+ worker: waiting for 1 ms$/)
  await fiber.join()
  assert.equal(fiber.status, 'done')
})
