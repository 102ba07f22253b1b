/**
 * Scopes and resources: everything is given back once, in reverse, whatever happened; all errors are kept.
 *
 * Most run under seeds, so that the order of what happens at one time is not what the test relies on.
 */
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import fc from 'fast-check'
import { simulate } from '../scheduler/testing.ts'
import {
  Exit,
  type Fiber,
  FiberLocal,
  type Operation,
  Schedule,
  Scope,
  acquireRelease,
  addFinalizer,
  all,
  attempt,
  catchAll,
  dump,
  dumpText,
  exitOf,
  fail,
  forEach,
  fork,
  never,
  race,
  repeat,
  retry,
  scoped,
  sleep,
  timeout,
  uninterruptible,
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

test('what loses a race is interrupted and finalized before the race is over', async () => {
  for (let seed = 1; seed < 50; seed += 1) {
    const log: string[] = []
    const loser = function* (): Operation<void> {
      try {
        yield* never()
      } finally {
        yield* sleep(5)
        log.push('loser')
      }
    }
    const { exit } = await simulate(seed, function* () {
      const value = yield* race([
        loser,
        () =>
          exitOf(function* () {
            yield* sleep(1)
          }),
        loser,
      ])
      log.push('behind')
      return value
    })
    assert.equal(exit.kind, 'success')
    assert.deepEqual(log, ['loser', 'loser', 'behind'])
  }
})

test('forEach never has more than its bound at work, and keeps the order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(30),
      fc.integer({ min: 1, max: 8 }),
      fc.nat(),
      async (count, concurrency, seed) => {
        let [now, most] = [0, 0]
        const items = Array.from({ length: count }, (_, index) => index)
        const { exit } = await simulate(seed, () =>
          forEach(
            items,
            function* (item) {
              most = Math.max(most, (now += 1))
              yield* sleep((item * 7) % 5)
              now -= 1
              return item * 2
            },
            { concurrency },
          ),
        )
        assert.deepEqual(exit, Exit.success(items.map((item) => item * 2)))
        assert.ok(most <= concurrency)
      },
    ),
  )
})

test('forEach stops at the first failure and takes no further item', async () => {
  const taken: number[] = []
  const exit = await fork(
    forEach(
      [1, 2, 3, 4, 5, 6],
      function* (item) {
        taken.push(item)
        yield* sleep(1)
        if (item === 2) yield* fail('two')
        yield* never()
      },
      { concurrency: 3 },
    ),
  ).await()
  assert.deepEqual(exit, Exit.failure('two'))
  assert.deepEqual(taken, [1, 2, 3])
})

test('all joins fibers and forks bodies; with none it returns none', async () => {
  const running = fork(function* () {
    yield* sleep(1)
    return 'x'
  })
  assert.deepEqual(await fork(all([running, () => 1, async () => true])).join(), ['x', 1, true])
  assert.deepEqual(await fork(all([])).join(), [])
})

test("retry runs again on failures, with the schedule's waits, and never on a defect", async () => {
  let runs = 0
  const flaky = function* (): Operation<number, string> {
    runs += 1
    return runs < 3 ? yield* fail('flaky') : runs
  }
  const schedule = Schedule.exponential(100).and(Schedule.recurs(5))
  const { exit, nowMs } = await simulate(1, () => retry(flaky, schedule))
  assert.deepEqual([exit, nowMs], [Exit.success(3), 300])
  runs = 0
  assert.deepEqual((await simulate(1, () => retry(flaky, Schedule.recurs(1)))).exit, Exit.failure('flaky'))
  runs = 0
  const buggy = (): never => {
    runs += 1
    throw bug
  }
  assert.deepEqual(await fork(retry(buggy, Schedule.forever)).await(), Exit.defect(bug))
  assert.equal(runs, 1)
  assert.equal(
    (
      await fork(
        retry(
          (function* () {
            return 1
          })(),
          Schedule.forever,
        ),
      ).await()
    ).kind,
    'defect',
  )
})

test('repeat runs again on values and returns the last', async () => {
  let runs = 0
  const { exit, nowMs } = await simulate(1, () =>
    repeat(() => ++runs, Schedule.spaced(10).and(Schedule.recurs(4))),
  )
  assert.deepEqual([exit, nowMs], [Exit.success(5), 40])
})

test('catchAll handles failures and lets defects pass', async () => {
  assert.equal(await fork(catchAll(fail('x'), (error) => `caught ${error}`)).join(), 'caught x')
  assert.deepEqual(
    await fork(
      catchAll(
        () => {
          throw bug
        },
        () => 1,
      ),
    ).await(),
    Exit.defect(bug),
  )
})

test('a timeout that comes in time returns the value; what is uninterruptible outlasts one', async () => {
  assert.equal(await fork(timeout(1000, () => 5)).join(), 5)
  const { exit, nowMs } = await simulate(1, () => timeout(5, () => uninterruptible(sleep(20))))
  assert.equal(exit.kind === 'failure' && exit.error.code, 'FIBER_TIMEOUT')
  assert.equal(nowMs, 20)
})

test('locals go to forks, and changes stay where they are made', async () => {
  const user = new FiberLocal('nobody')
  assert.equal(user.get(), 'nobody')
  const seen = await fork(function* () {
    user.set('one')
    const child = fork(function* () {
      yield* yieldNow()
      const before = user.get()
      user.set('child')
      return [before, user.get()]
    })
    user.set('two')
    const inside = yield* user.with('three', () => user.get())
    return [...(yield* child.join()), inside, user.get()]
  }).join()
  assert.deepEqual(seen, ['one', 'child', 'three', 'two'])
  assert.throws(() => user.set('x'), { code: 'FIBER_REQUIRED' })
})

test('dump shows who owns whom and what each waits for', async () => {
  const scope = new Scope({ name: 'pool' })
  scope.fork(never(), { name: 'pooled' })
  const parent = fork(
    function* () {
      fork(never(), { name: 'one' })
      yield* all([sleep(1e6), never()])
    },
    { name: 'parent' },
  )
  assert.equal(
    dumpText().replaceAll(/#\d+/g, '#'),
    [
      '# parent: waiting for fiber #, fiber #',
      '  # one: waiting for an interrupt',
      '  #: waiting for 1000000 ms',
      '  #: waiting for an interrupt',
      "scope 'pool': open",
      '  # pooled: waiting for an interrupt',
    ].join('\n'),
  )
  await parent.interrupt()
  await scope.close()
})

test('a fiber forked into one that waits in a combinator belongs to that one', async () => {
  const combinators: [string, () => Operation<unknown, unknown>, unknown][] = [
    ['race', () => race([() => sleep(9)]), undefined],
    ['all', () => all([() => sleep(9)]), [undefined]],
    ['timeout', () => timeout(99, () => sleep(9)), undefined],
    ['forEach', () => forEach([9], sleep), [undefined]],
  ]
  for (const [name, wait, expected] of combinators) {
    let late: Fiber<unknown, unknown> | undefined
    let exitBefore: unknown = 'not looked'
    const value = await fork(function* (self: Fiber) {
      setTimeout(() => {
        fork(() => 'foreign', { scope: self })
        late = fork(() => sleep(1000), { scope: self })
      }, 1)
      const value = yield* wait()
      exitBefore = late?.exit
      return value
    }).join()
    assert.deepEqual(value, expected, name)
    assert.equal(exitBefore, undefined, `${name}: it goes on when the combinator has ended`)
    assert.equal(late?.exit?.kind, 'interruption', `${name}: and ends with its fiber`)
  }
})

test('what the iterator of forEach forks and what fails beside a combinator is of the fiber', async () => {
  const seen: Fiber<unknown, unknown>[] = []
  function* items(): Generator<number> {
    seen.push(
      fork(() => 'of the iterator'),
      fork(() => sleep(1000)),
    )
    yield 1
  }
  const values = await fork(function* () {
    const values = yield* forEach(items(), (item) => item)
    assert.equal(seen[1]?.exit, undefined)
    return values
  }).join()
  assert.deepEqual(values, [1])
  const exit = await fork(function* (self: Fiber) {
    setTimeout(() => fork(() => fail('foreign'), { scope: self }), 1)
    yield* all([() => never()])
  }).await()
  assert.deepEqual(exit, Exit.failure('foreign'))
})

test('what a child of a scoped inside a finalizer fails with is kept with the exit', async () => {
  const waits = function* (): Operation<void> {
    fork(function* () {
      yield* sleep(1)
      yield* fail('while it waits')
    })
    yield* sleep(9)
  }
  const runs = function* (): Operation<void> {
    fork(() => fail('while it runs'))
    yield* sleep(9)
  }
  const ends = function* (): Operation<void> {
    fork(() => fail('at its end'))
  }
  const cases: [() => Operation<void>, string][] = [
    [waits, 'while it waits'],
    [runs, 'while it runs'],
    [ends, 'at its end'],
  ]
  for (const [body, error] of cases) {
    const good = await fork(() => {
      addFinalizer(() => scoped(body))
      return 1
    }).await()
    assert.deepEqual(good, Exit.failure(error))
    const bad = await fork(function* () {
      addFinalizer(() => scoped(body))
      yield* fail('first')
    }).await()
    assert.deepEqual(bad, Exit.failure('first', [Exit.failure(error)]))
  }
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

test('a failure is a failure still behind a finally that has looked at another', async () => {
  const cleanups: Record<string, () => Operation<unknown, unknown>> = {
    exitOf: () => exitOf(() => fail('cleanup')),
    catchAll: () =>
      catchAll(
        () => fail('cleanup'),
        () => 0,
      ),
    retry: () => exitOf(() => retry(() => fail('cleanup'), Schedule.recurs(3))),
    'exitOf twice': function* () {
      yield* exitOf(() => fail('cleanup'))
      yield* exitOf(() => fail('cleanup'))
    },
    'a value': () => exitOf(() => catchAll(() => fail('cleanup'), sleep.bind(null, 1))),
  }
  for (const [name, cleanup] of Object.entries(cleanups)) {
    const exit = await fork(function* () {
      try {
        yield* fail('busy')
      } finally {
        yield* cleanup()
      }
    }).await()
    assert.deepEqual(exit, Exit.failure('busy'), name)
  }
  const again = await fork(function* () {
    const first = yield* exitOf(() => fail('first'))
    const second = yield* exitOf(() => fail('second'))
    assert.equal(first.kind, 'failure')
    if (second.kind === 'failure') throw second.error
  }).await()
  assert.deepEqual(again, Exit.failure('second'), 'and so is one that is thrown on')
})

test('a fiber has the locals of who forks it, and of its scope when no fiber does', async () => {
  const local = new FiberLocal('none')
  const get = (): string => local.get()
  const scope = fork(function* () {
    local.set('of the scope')
    yield* never()
  })
  assert.equal(await fork(get, { scope }).join(), 'of the scope')
  const values = await fork(function* () {
    const before = yield* fork(get, { scope }).join()
    local.set('of the forker')
    return [before, yield* fork(get, { scope }).join()]
  }).join()
  assert.deepEqual(values, ['none', 'of the forker'])
  await scope.interrupt()
})
