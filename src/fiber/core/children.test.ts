/**
 * Who owns a fiber: its locals, the dump, and whose exit a failure beside or behind it belongs to.
 *
 * Every test ends with no fiber left.
 */
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import {
  Exit,
  type Fiber,
  FiberLocal,
  type Operation,
  Schedule,
  Scope,
  addFinalizer,
  all,
  catchAll,
  dump,
  dumpText,
  exitOf,
  fail,
  forEach,
  fork,
  never,
  race,
  retry,
  scoped,
  sleep,
  timeout,
  yieldNow,
} from '../index.ts'

afterEach(() => assert.deepEqual(dump(), [], dumpText()))

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
