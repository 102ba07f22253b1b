/**
 * Scopes and resources: everything is given back once, in reverse, whatever happened; all errors are kept.
 *
 * Most run under seeds, so that the order of what happens at one time is not what the test relies on.
 */
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import fc from 'fast-check'
import { simulate } from '../../test/played.test.support.ts'
import {
  Exit,
  FiberLocal,
  type Operation,
  Scope,
  acquireRelease,
  addFinalizer,
  attempt,
  dump,
  dumpText,
  exitOf,
  fail,
  fork,
  never,
  scoped,
  sleep,
  timeout,
  yieldNow,
} from '../index.ts'

afterEach(() => assert.deepEqual(dump(), [], dumpText()))

const bug = new TypeError('bug')

/** A body that acquires three resources, one by each way, and then does `last`. */
function user(log: string[], last: () => Operation<unknown, unknown>): () => Operation<unknown, unknown> {
  return function* () {
    yield* acquireRelease(
      () => 'a',
      (value, exit) => void log.push(`${value} ${exit.kind}`),
    )
    yield* acquireRelease(
      function* () {
        yield* sleep(1)
        return 'b'
      },
      function* (value) {
        yield* sleep(1)
        log.push(value)
      },
    )
    addFinalizer(async () => {
      await null
      log.push('c')
    })
    return yield* last()
  }
}

const lasts: Record<string, [() => Operation<unknown, unknown>, string]> = {
  success: [
    function* () {
      return 1
    },
    'success',
  ],
  failure: [
    function* () {
      yield* fail('f')
    },
    'failure',
  ],
  'a defect': [
    function* () {
      throw bug
    },
    'defect',
  ],
  interruption: [
    function* () {
      yield* never()
    },
    'interruption',
  ],
}
for (const [name, [last, kind]] of Object.entries(lasts)) {
  test(`on ${name} all is released in reverse order, once`, async () => {
    for (let seed = 1; seed < 50; seed += 1) {
      const log: string[] = []
      const { exit } = await simulate(seed, function* () {
        const fiber = fork(user(log, last))
        fork(function* () {
          yield* fiber.await()
        })
        yield* sleep(10)
        return yield* fiber.interrupt()
      })
      assert.equal(exit.kind === 'success' && exit.value.kind, kind)
      assert.deepEqual(log, ['c', 'b', `a ${kind}`])
    }
  })
  test(`on ${name} of a scoped part its resources are released before the fiber goes on`, async () => {
    const log: string[] = []
    await simulate(1, function* () {
      addFinalizer(() => void log.push('outer'))
      yield* exitOf(() => timeout(50, () => scoped(user(log, last))))
      log.push('behind')
    })
    assert.deepEqual(log, ['c', 'b', `a ${kind}`, 'behind', 'outer'])
  })
}

test('an interrupt anywhere releases exactly what was acquired', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(12), fc.nat(), async (ms, seed) => {
      const log: string[] = []
      let [acquired, released] = [0, 0]
      await simulate(seed, function* () {
        const fiber = fork(function* () {
          for (let turn = 0; turn < 5; turn += 1) {
            yield* acquireRelease(
              function* () {
                yield* sleep(1)
                acquired += 1
                return turn
              },
              (value) => {
                released += 1
                log.push(String(value))
              },
            )
            yield* sleep(1)
          }
        })
        yield* sleep(ms)
        yield* fiber.interrupt()
      })
      assert.equal(released, acquired)
      assert.deepEqual(log, [...log].sort().reverse())
    }),
  )
})

test('finalizers that fail do not stop the others, and all errors are kept in order', async () => {
  const exit = await fork(function* () {
    addFinalizer(() => {
      throw bug
    })
    addFinalizer(() => fail('two'))
    addFinalizer(async () => {
      throw 'three'
    })
    yield* fail('one')
  }).await()
  assert.deepEqual(exit, Exit.failure('one', [Exit.failure('three'), Exit.failure('two'), Exit.defect(bug)]))
})

test('a finalizer that fails fails a fiber that had a value', async () => {
  const exit = await fork(function* () {
    addFinalizer(() => {
      throw bug
    })
    return 1
  }).await()
  assert.deepEqual(exit, Exit.defect(bug))
})

test('a scope fails with its first failing child, interrupts the others and keeps all errors', async () => {
  const scope = new Scope({ name: 's' })
  const log: string[] = []
  scope.addFinalizer((exit) => void log.push(exit.kind))
  scope.fork(function* () {
    try {
      yield* never()
    } finally {
      throw bug
    }
  })
  const failing = scope.fork(function* () {
    yield* sleep(1)
    yield* fail('first')
  })
  await assert.rejects(
    async () => failing.join(),
    (thrown) => thrown === 'first',
  )
  assert.deepEqual(await scope.close(), Exit.failure('first', [Exit.defect(bug)]))
  assert.deepEqual(log, ['failure'])
  assert.throws(() => scope.fork(() => 1), { code: 'FIBER_SCOPE_CLOSED' })
})

test('a scope closes once, however often it is closed', async () => {
  let count = 0
  const scope = new Scope()
  scope.addFinalizer(() => void (count += 1))
  const child = scope.fork(never())
  await Promise.all([
    scope.close(),
    scope.close(),
    fork(function* () {
      yield* scope.close()
    }).join(),
  ])
  assert.equal(count, 1)
  assert.equal(child.exit?.kind, 'interruption')
  assert.equal(scope.isOpen, false)
})

test('disposing a scope throws what nobody received, and only that', async () => {
  const received = new Scope()
  await assert.rejects(async () => received.fork(fail('x')).join())
  await received[Symbol.asyncDispose]()
  const unreceived = new Scope()
  unreceived.fork(fail('x'))
  await assert.rejects(unreceived[Symbol.asyncDispose](), (thrown) => thrown === 'x')
})

test('join of a scope waits for its children and throws what failed it', async () => {
  const fine = new Scope()
  const child = fine.fork(function* () {
    yield* sleep(2)
    return 1
  })
  await fine.join()
  assert.deepEqual(child.exit, Exit.success(1))
  const failing = new Scope()
  failing.fork(function* () {
    yield* sleep(1)
    yield* fail('no')
  })
  failing.fork(never())
  await assert.rejects(
    async () => failing.join(),
    (thrown) => thrown === 'no',
  )
})

test('a scope made in a fiber is closed with it', async () => {
  let scope: Scope | undefined
  await fork(function* () {
    scope = new Scope()
    scope.fork(never())
    yield* yieldNow()
  }).join()
  assert.equal(scope?.isOpen, false)
})

test('an async body forks into its fiber', async () => {
  const local = new FiberLocal('none')
  const fiber = fork(async (self) => {
    await null
    local.set('given', self)
    const child = fork(
      function* () {
        yield* yieldNow()
        return local.get()
      },
      { scope: self },
    )
    fork(never(), { scope: self })
    return child.join()
  })
  assert.equal(await fiber.join(), 'given')
  assert.throws(() => fork(() => 1, { scope: fiber }), { code: 'FIBER_SCOPE_CLOSED' })
})

test('what failed a scope fails the fiber that made it, unless somebody received it', async () => {
  function* failing(scope: Scope): Operation<void> {
    scope.fork(function* () {
      yield* sleep(1)
      yield* fail('lost')
    })
    yield* sleep(9)
  }
  const unasked = await fork(function* () {
    yield* failing(new Scope())
    return 1
  }).await()
  assert.deepEqual(unasked, Exit.failure('lost'))
  const closed = await fork(function* () {
    const scope = new Scope()
    yield* failing(scope)
    return (yield* scope.close()).kind
  }).await()
  assert.deepEqual(closed, Exit.success('failure'))
  const joined = await fork(function* () {
    const scope = new Scope()
    const child = scope.fork(() => fail('known'))
    yield* sleep(1)
    return (yield* child.await()).kind
  }).await()
  assert.deepEqual(joined, Exit.success('failure'))
})

test('a fiber does not end before a scope that it made and has begun to close', async () => {
  const log: string[] = []
  const fiber = fork(function* () {
    const scope = new Scope()
    scope.addFinalizer(function* () {
      yield* sleep(2)
      log.push('released')
    })
    void scope.close()
  })
  await fiber.join()
  assert.deepEqual(log, ['released'])
  assert.equal(dump().length, 0)
})

test('the signal of a finalizer is not aborted, however its fiber ends', async () => {
  const log: string[] = []
  const user = (name: string) =>
    function* (): Operation<unknown, unknown> {
      yield* acquireRelease(
        () => name,
        () => attempt(async (signal) => log.push(`${name}: ${signal.aborted}`)),
      )
      return yield* attempt(
        (signal) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          ),
      )
    }
  const one = fork(user('of the fiber'))
  const two = fork(() => scoped(user('of scoped')))
  const three = fork(function* () {
    addFinalizer(() =>
      scoped(() => addFinalizer(() => attempt(async (s) => log.push(`inner: ${s.aborted}`)))),
    )
    yield* never()
  })
  const { signal } = two
  for (const fiber of [one, two, three]) assert.deepEqual(await fiber.interrupt('x'), Exit.interruption('x'))
  assert.equal(signal.aborted, true)
  assert.deepEqual(log, ['of the fiber: false', 'of scoped: false', 'inner: false'])
})
