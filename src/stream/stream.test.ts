/**
 * Streams by what their methods promise: order, time, bounds, errors.
 *
 * Pipelines by seeds are in model.test.ts, streams of Node and of the web in interop.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Exit,
  type Failure,
  FiberError,
  type LostFiberError,
  type Op,
  type Operation,
  Schedule,
  exitOf,
  fail,
  fork,
  never,
  onError,
  sleep,
} from '../fiber/index.ts'
import { simulate } from '../test/played.test.support.ts'
import { Stream, StreamError } from './index.ts'

/** Run a body in simulated time: its value, and the ms that passed. */
async function timed<A>(body: () => Operation<A, unknown>): Promise<readonly [A, number]> {
  const { exit, nowMs } = await simulate(7, body)
  assert.equal(exit.kind, 'success', String((exit as { defect?: unknown }).defect))
  return [(exit as { value: A }).value, nowMs]
}

/** The exit of a stream's run. */
function exitOfRun(stream: Stream<unknown, unknown>): Promise<Exit<unknown[], unknown>> {
  return fork(stream.runCollect()).await()
}

/** An item each `ms`, from 0 on. */
function ticks(count: number, ms: number): Stream<number> {
  return Stream.from(Array.from({ length: count }, (_, index) => index)).tap(() => sleep(ms))
}

test('a stream runs as often as it is run, from its source on', async () => {
  let openings = 0
  const stream = Stream.from(() => {
    openings++
    return [1, 2]
  })
  assert.deepEqual([await stream.runCollect(), await stream.runCount()], [[1, 2], 2])
  assert.equal(openings, 2)
  const run = Stream.of(1).runHead()
  assert.deepEqual([await run, await run, await fork(run).join()], [1, 1, 1])
})

test('no item is read before the sink needs it', async () => {
  let count = 0
  function* numbers(): Generator<number> {
    for (;;) yield ++count
  }
  assert.deepEqual(
    await Stream.from(numbers)
      .map((n) => n * 2)
      .filter((n) => n > 2)
      .take(2)
      .runCollect(),
    [4, 6],
  )
  assert.equal(count, 3)
  count = 0
  assert.equal(await Stream.from(numbers).runHead(), 1)
  assert.equal(count, 1)
  count = 0
  for await (const n of Stream.from(numbers)) {
    assert.equal(n, count, 'a loop has an item when it asks')
    await new Promise((resolve) => setImmediate(resolve))
    if (n === 3) break
  }
  assert.equal(count, 3)
})

test('mapConcurrent works on as many items as it may, in order or not', async () => {
  for (const [ordered, expected] of [
    [true, [4, 3, 2, 1]],
    [false, [3, 2, 1, 4]],
  ] as const) {
    let [running, most] = [0, 0]
    const [items, ms] = await timed(function* () {
      return yield* Stream.of(4, 3, 2, 1)
        .mapConcurrent(
          function* (n) {
            most = Math.max(most, ++running)
            yield* sleep(n * n)
            running--
            return n
          },
          { concurrency: 2, ordered },
        )
        .runCollect()
    })
    assert.deepEqual([items, most], [expected, 2])
    assert.equal(ms, ordered ? 20 : 16)
  }
})

test('the failure of a work interrupts what still runs, behind the values before it', async () => {
  let interrupted = 0
  const [[items, exit]] = await timed(function* () {
    const items: number[] = []
    const run = Stream.of(1, 2, 3)
      .mapConcurrent(function* (n) {
        try {
          yield* sleep(n === 3 ? 1000 : n * 10)
        } finally {
          if (n === 3) interrupted++
        }
        if (n === 2) yield* fail('two')
        return n
      })
      .runForEach((n) => void items.push(n))
    return [items, yield* exitOf(run)] as const
  })
  assert.deepEqual([items, exit.kind === 'failure' && exit.error, interrupted], [[1], 'two', 1])
})

test('flatMap runs several streams at once, and no more', async () => {
  let [open, most] = [0, 0]
  const [items, ms] = await timed(function* () {
    return yield* Stream.of(1, 2, 3)
      .flatMap(
        (n) => {
          most = Math.max(most, ++open)
          return ticks(2, n * 10)
            .map((tick) => n * 10 + tick)
            .ensuring(() => void open--)
        },
        { concurrency: 2 },
      )
      .runCollect()
  })
  assert.deepEqual([items.toSorted(), most, ms], [[10, 11, 20, 21, 30, 31], 2, 80])
})

test('flatMap: streams that never end do not hold back the failure of what brings them', async () => {
  const outer = Stream.of(1, 2).concat(Stream.fail('outer'))
  for (const concurrency of [2, 3, 8]) {
    const exit = await fork(outer.flatMap(() => Stream.never, { concurrency }).runDrain()).await()
    assert.deepEqual(exit, Exit.failure('outer'), `${concurrency} at once`)
  }
  let begun = 0
  const held = fork(
    Stream.of(1, 2, 3, 4)
      .flatMap(() => Stream.never.ensuring(() => void (begun += 1)), { concurrency: 2 })
      .runDrain(),
  )
  await fork(sleep(1)).join()
  await held.interrupt()
  assert.equal(begun, 2, 'what is held has not begun')
})

test('mapConcurrent, unordered: work that never ends holds no failure of its source back', async () => {
  let begun = 0
  const work = (): Op<never> => {
    begun += 1
    return never()
  }
  const source = Stream.of(1, 2).concat(Stream.fail('outer'))
  for (const concurrency of [2, 3, 8]) {
    const exit = await exitOfRun(source.mapConcurrent(work, { concurrency, ordered: false }))
    assert.deepEqual(exit, Exit.failure('outer'), `${concurrency} at once`)
  }
  begun = 0
  const held = fork(Stream.of(1, 2, 3, 4).mapConcurrent(work, { concurrency: 2, ordered: false }).runDrain())
  await fork(sleep(1)).join()
  await held.interrupt()
  assert.equal(begun, 2, 'what is held has not begun')
})

test('merge has the items as they come, and interrupts the others when one fails', async () => {
  const [items] = await timed(function* () {
    return yield* ticks(3, 10)
      .merge(ticks(2, 15).map((n) => n + 100))
      .runCollect()
  })
  assert.deepEqual(
    items,
    [0, 100, 1, 2, 101].toSorted((one, other) => items.indexOf(one) - items.indexOf(other)),
  )
  let closed = 0
  const failing = Stream.never.ensuring(() => void closed++).merge(Stream.of(1), Stream.fail('no'))
  const exit = await exitOfRun(failing)
  assert.equal(exit.kind === 'failure' && exit.error, 'no')
  assert.equal(closed, 1)
})

test('a producer that waits for its source does not keep the others from a merged stream', async () => {
  const [items] = await timed(function* () {
    return yield* ticks(1, 1000).merge(ticks(20, 1), ticks(20, 1)).take(40).runCount()
  })
  assert.equal(items, 40)
})

test('buffer reads ahead as far as it may; full it waits, drops or slides', async () => {
  let [read, mostAhead, taken] = [0, 0, 0]
  const [items] = await timed(function* () {
    return yield* Stream.of(0, 1, 2, 3, 4, 5)
      .tap(() => {
        mostAhead = Math.max(mostAhead, ++read - taken)
      })
      .buffer(2)
      .tap(() => {
        taken++
        return sleep(10)
      })
      .runCollect()
  })
  assert.deepEqual(items, [0, 1, 2, 3, 4, 5])
  assert.ok(mostAhead <= 3, `${mostAhead} items ahead`)
  const fast = Stream.of(0, 1, 2, 3, 4, 5)
  assert.deepEqual(await fast.buffer(2, { whenFull: 'drop' }).runCollect(), [0, 1])
  assert.deepEqual(await fast.buffer(2, { whenFull: 'slide' }).runCollect(), [4, 5])
})

test('throttle spaces items, or drops those that come too early', async () => {
  const times: number[] = []
  const [, ms] = await timed(function* () {
    yield* Stream.of(1, 2, 3, 4, 5)
      .throttle({ items: 2, perMs: 100 })
      .runForEach((n) => void times.push(n))
  })
  assert.deepEqual([times, ms], [[1, 2, 3, 4, 5], 150])
  const [items] = await timed(function* () {
    return yield* ticks(10, 10).throttle({ perMs: 35, drop: true }).runCollect()
  })
  assert.deepEqual(items, [0, 4, 8])
})

test('debounce has the last item of each burst', async () => {
  const [items] = await timed(function* () {
    const bursts = Stream.of(1, 1, 50, 1, 1, 50).tap((ms) => sleep(ms))
    return yield* bursts
      .scan(0, (count) => count + 1)
      .debounce(10)
      .runCollect()
  })
  assert.deepEqual(items, [2, 5, 6])
})

test('window has full lists at once, and others when they are old', async () => {
  const [lists] = await timed(function* () {
    return yield* Stream.of(1, 2, 3).concat(ticks(3, 30)).window({ itemsMax: 2, ms: 40 }).runCollect()
  })
  assert.deepEqual(lists, [
    [1, 2],
    [3, 0],
    [1, 2],
  ])
  const [old] = await timed(function* () {
    return yield* ticks(3, 30).window({ ms: 20 }).runCollect()
  })
  assert.deepEqual(old, [[0], [1], [2]])
})

test('zip ends with the shorter stream and closes the longer one', async () => {
  let closed = 0
  const endless = Stream.repeat(() => 'x').ensuring(() => void closed++)
  assert.deepEqual(await Stream.of(1, 2).zip(endless).runCollect(), [
    [1, 'x'],
    [2, 'x'],
  ])
  assert.deepEqual(await endless.zip(Stream.of(1, 2)).runCollect(), [
    ['x', 1],
    ['x', 2],
  ])
  assert.equal(closed, 2)
  const waiting = Stream.never.ensuring(() => void closed++)
  assert.deepEqual(await waiting.zip(Stream.empty).runCollect(), [])
  assert.deepEqual(await Stream.empty.zip(waiting).runCollect(), [])
  for (const failing of [waiting.zip(Stream.fail('no')), Stream.fail('no').zip(waiting)])
    assert.deepEqual(await fork(failing.runCollect()).await(), Exit.failure('no'))
  assert.deepEqual(await Stream.of(1).concat(waiting).zip(Stream.of('a')).runCollect(), [[1, 'a']])
  assert.equal(closed, 7)
})

test('a time of 0 is time enough for an item that is there', async () => {
  assert.deepEqual(await Stream.of(1, 2).timeout(0).runCollect(), [1, 2])
  const { kind, error } = (await fork(Stream.never.timeout(0).runCollect()).await()) as Failure<StreamError>
  assert.deepEqual([kind, error.code], ['failure', 'STREAM_TIMEOUT'])
  assert.deepEqual(await Stream.of(1, 2).debounce(0).runCollect(), [2])
  assert.deepEqual((await Stream.of(1, 2).window({ ms: 0 }).runCollect()).flat(), [1, 2])
})

test('a chain of concat has as many streams as memory', async () => {
  let stream: Stream<number> = Stream.empty
  for (let at = 0; at < 10_000; at += 1) stream = stream.concat(Stream.of(at))
  assert.equal(await stream.runCount(), 10_000)
})

test('groupBy divides by key, holds back where a group is full, and is bounded', async () => {
  const totals = Stream.from(Array.from({ length: 100 }, (_, index) => index)).groupBy(
    (n) => n % 3,
    (group, key) => group.scan(0, (sum) => sum + 1).map((count) => ({ key, count })),
    { capacity: 2 },
  )
  const last = await totals.runFold(new Map<number, number>(), (all, { key, count }) => all.set(key, count))
  assert.deepEqual([...last].toSorted(), [
    [0, 34],
    [1, 33],
    [2, 33],
  ])
  const first = Stream.of('a1', 'b1', 'a2', 'b2').groupBy(
    (text) => text[0],
    (group) => group.take(1),
  )
  assert.deepEqual(await first.runCollect(), ['a1', 'b1'])
  const keys = Stream.of(1, 2, 3).groupBy(
    (n) => n,
    (group) => group,
    { groupsMax: 2 },
  )
  const exit = await exitOfRun(keys)
  assert.ok(exit.kind === 'failure' && exit.error instanceof StreamError)
  assert.deepEqual([exit.error.code, exit.error.facts], ['STREAM_GROUPS_FULL', { groupsMax: 2 }])
})

test('broadcast has all items for each reader, waits for the slowest, and ends with the last', async () => {
  let [read, closed] = [0, 0]
  const [[all, first, ahead]] = await timed(function* () {
    const source = ticks(10, 1)
      .tap(() => void read++)
      .ensuring(() => void closed++)
    const [one, two, three] = yield* source.broadcast(3, { capacity: 2 })
    let slowest = 0
    let ahead = 0
    const slow = fork(
      one
        .tap(() => sleep(5))
        .runForEach(() => {
          ahead = Math.max(ahead, read - ++slowest)
        }),
    )
    const all = fork(two.runCollect())
    const first = yield* three.take(1).runCollect()
    yield* slow.join()
    return [yield* all.join(), first, ahead] as const
  })
  assert.deepEqual([all.length, first, closed], [10, [0], 1])
  assert.ok(ahead <= 4, `${ahead} items ahead`)
  const left = fork(function* () {
    const [branch] = yield* Stream.repeat(() => 1)
      .ensuring(() => void closed++)
      .broadcast(1)
    yield* branch.take(3).runDrain()
    const again = yield* exitOf(branch.runDrain())
    return again.kind === 'failure' && (again.error as StreamError).code
  })
  assert.equal(await left.join(), 'STREAM_TAKEN')
  assert.equal(closed, 2)
})

test('a branch that outlives the fiber of broadcast fails instead of waiting', async () => {
  const branches = await fork(function* () {
    return yield* Stream.never.broadcast(1)
  }).join()
  const exit = await exitOfRun(branches[0])
  assert.equal(exit.kind, 'interruption')
})

test('retry runs the source again as the schedule decides, which begins anew behind an item', async () => {
  let runs = 0
  const flaky = Stream.from(() => {
    runs++
    return Stream.of(runs).concat(runs % 3 === 0 ? Stream.empty : Stream.fail('busy'))
  })
  assert.deepEqual(await flaky.retry(Schedule.recurs(1)).runCollect(), [1, 2, 3])
  runs = 0
  const dead = Stream.from(() => {
    runs++
    throw new Error('refused')
  }).retry(Schedule.spaced(10).and(Schedule.recurs(3)))
  const [exit, ms] = await timed(() => exitOf(dead.runDrain()))
  assert.deepEqual([exit.kind, runs, ms], ['failure', 4, 30])
})

test('catchAll and retry see failures of the stream, not those of later stages, nor defects', async () => {
  const later = Stream.of(1)
    .catchAll(() => Stream.of(2))
    .mapConcurrent(() => fail('later'), { concurrency: 1 })
  const exit = await exitOfRun(later)
  assert.equal(exit.kind === 'failure' && exit.error, 'later')
  const bug = Stream.of(1)
    .map(() => {
      throw new TypeError('a bug')
    })
    .catchAll(() => Stream.of(2))
  assert.equal((await exitOfRun(bug)).kind, 'defect')
  assert.deepEqual(
    await Stream.of<unknown>(1)
      .concat(Stream.fail('x'))
      .catchAll((x) => Stream.of<unknown>(x, 2))
      .runCollect(),
    [1, 'x', 2],
  )
})

test('timeout fails when an item takes too long, and lets the source clean up', async () => {
  let closed = 0
  const [exit, ms] = await timed(() =>
    exitOf(
      ticks(2, 10)
        .concat(Stream.never)
        .ensuring(() => void closed++)
        .timeout(50)
        .runCount(),
    ),
  )
  assert.ok(exit.kind === 'failure' && exit.error.code === 'STREAM_TIMEOUT')
  assert.deepEqual([ms, closed], [70, 1])
  assert.equal(await ticks(2, 1).timeout(60_000).runCount(), 2)
})

test('repeat asks its body when an item is needed, and by a schedule', async () => {
  let n = 0
  assert.deepEqual(
    await Stream.repeat(async () => ++n)
      .take(3)
      .runCollect(),
    [1, 2, 3],
  )
  assert.equal(n, 3)
  const [count, ms] = await timed(function* () {
    return yield* Stream.repeat(() => 'tick', Schedule.spaced(100).and(Schedule.recurs(4))).runCount()
  })
  assert.deepEqual([count, ms], [5, 400])
})

test('acquireRelease releases once, with how the run ended, whatever ends it', async () => {
  const released: string[] = []
  const file = Stream.acquireRelease(
    async () => 'file',
    (name, { kind }) => void released.push(`${name} ${kind}`),
  )
  assert.equal(await file.flatMap(() => Stream.of(1, 2)).runCount(), 2)
  assert.equal((await exitOfRun(file.flatMap(() => Stream.fail('no')))).kind, 'failure')
  const fiber = fork(file.flatMap(() => Stream.never).runDrain())
  await new Promise((resolve) => setImmediate(resolve))
  await fiber.interrupt()
  assert.deepEqual(released, ['file success', 'file failure', 'file interruption'])
})

test('errors of a finalizer are kept with the exit, and an interrupt waits for it', async () => {
  const broken = Stream.fail('first').ensuring(() => {
    throw new Error('close failed')
  })
  const exit = await exitOfRun(broken)
  assert.ok(exit.kind === 'failure' && exit.error === 'first')
  assert.deepEqual(
    exit.others.map(({ kind }) => kind),
    ['defect'],
  )
  let closed = false
  const [kind] = await timed(function* () {
    const run = Stream.of(1).ensuring(function* () {
      yield* sleep(10)
      closed = true
    })
    const fiber = fork(run.runDrain())
    yield* sleep(5)
    return (yield* fiber.interrupt()).kind
  })
  assert.deepEqual([kind, closed], ['interruption', true])
})

test('what fails in a fiber whose items nobody needs any more goes to onError', async () => {
  const errors: LostFiberError[] = []
  const remove = onError((error) => errors.push(error))
  const beside = Stream.repeat(() => 1).ensuring(() => {
    throw new Error('close failed')
  })
  assert.deepEqual(await beside.buffer(4).take(1).runCollect(), [1])
  await new Promise((resolve) => setImmediate(resolve))
  remove()
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['FIBER_LOSER_FAILED'],
  )
})

test('an interrupt of the reader reaches a source that waits, through fibers of its own', async () => {
  for (const between of [
    (stream: Stream<number, unknown>) => stream,
    (stream: Stream<number, unknown>) => stream.buffer(2).mapConcurrent((n) => n, { concurrency: 2 }),
    (stream: Stream<number, unknown>) => stream.merge(Stream.never).debounce(5).timeout(60_000),
  ]) {
    const reasons: unknown[] = []
    const source = new ReadableStream<number>({ cancel: (reason) => void reasons.push(reason) })
    const fiber = fork(between(Stream.from(source)).runDrain())
    await new Promise((resolve) => setImmediate(resolve))
    const exit = await fiber.interrupt('not needed')
    assert.deepEqual([exit.kind, reasons.length], ['interruption', 1])
  }
})

test('a source that never waits leaves the event loop its turns, and ends by an interrupt', async () => {
  let turns = 0
  const count = (): void => void turns++
  for (const stream of [
    Stream.repeat(() => 1),
    Stream.from(function* () {
      for (;;) yield 1
    }),
    Stream.from(async function* () {
      for (;;) yield 1
    }),
    Stream.repeat(() => 1).buffer(8),
    Stream.from(async function* () {
      for (;;) yield 1
    }).buffer(8),
  ]) {
    turns = 0
    const fiber = fork(stream.runDrain())
    await new Promise((resolve) => setImmediate(resolve))
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(() => resolve(count())))
    assert.equal((await fiber.interrupt()).kind, 'interruption')
    assert.equal(turns, 3)
  }
})

test('a million items, and promises and undefined as items, pass unchanged', async () => {
  const length = 1_000_000
  const sum = await Stream.from({ length, [Symbol.iterator]: () => Array(length).keys() } as Iterable<number>)
    .map((n) => n + 1)
    .runFold(0, (total, n) => total + n)
  assert.equal(sum, (length * (length + 1)) / 2)
  const items = [undefined, null, Promise.resolve(1), Exit.failure('x')]
  for (const stream of [
    Stream.from(items),
    Stream.from(items).buffer(2),
    Stream.from(items).merge(Stream.empty),
  ])
    assert.deepEqual(await stream.runCollect(), items)
})

test('a loop that throws, and one whose stream fails, end once', async () => {
  let closed = 0
  const endless = Stream.repeat(() => 1).ensuring(() => void closed++)
  await assert.rejects(async () => {
    for await (const n of endless) throw new Error(`at ${n}`)
  }, /at 1/)
  assert.equal(closed, 1)
  const ending = Stream.of(1).concat(Stream.fail(new Error('no more')))
  const failing = ending[Symbol.asyncIterator]()
  assert.deepEqual(await failing.next(), { value: 1, done: false })
  await assert.rejects(failing.next(), /no more/)
  assert.deepEqual(await failing.next(), { value: undefined, done: true })
})

test('return() while a request waits interrupts the run and answers the request', async () => {
  let closed = 0
  const iterator = Stream.never.ensuring(() => void closed++)[Symbol.asyncIterator]()
  const request = iterator.next()
  const returned = iterator.return()
  assert.deepEqual(await request, { value: undefined, done: true })
  assert.deepEqual(await returned, { value: undefined, done: true })
  assert.equal(closed, 1)
})

test('wrong arguments are refused with what is needed', async () => {
  const stream = Stream.of(1)
  const calls: readonly [() => unknown, RegExp][] = [
    [() => Stream.from(5 as never), /Stream\.from\(\): the source must be an array/],
    [() => stream.map('x' as never), /map\(\): map must be a function; received "x"/],
    [() => stream.take(-1), /take\(\): count must be an integer from 0/],
    [() => stream.take(undefined as never), /take\(\): count must be/],
    [() => stream.buffer(0), /buffer\(\): capacity must be an integer from 1/],
    [() => stream.buffer(1, { whenFull: 'x' as never }), /whenFull must be one of/],
    [() => stream.mapConcurrent(() => 1, { concurency: 2 } as never), /did you mean "concurrency"/],
    [() => stream.merge([] as never), /merge\(\): others\[0\] must be a Stream/],
    [() => stream.retry(3 as never), /retry\(\): schedule must be a Schedule/],
    [() => stream.runInto({} as never), /runInto\(\): target must be a Writable or a WritableStream/],
  ]
  for (const [call, message] of calls)
    assert.throws(call, (error) => {
      assert.ok(error instanceof StreamError && error.code === 'STREAM_ARGUMENT')
      assert.match(error.message, message)
      return true
    })
  assert.throws(() => stream.broadcast(1).next(), FiberError)
  const exit = await exitOfRun(stream.flatMap(() => 1 as never))
  assert.ok(exit.kind === 'defect' && exit.defect instanceof StreamError)
  assert.equal((await fork(Stream.from(() => 5 as never).runDrain()).await()).kind, 'defect')
})

test('the run of a stream waits for nothing of a fiber that never ends', async () => {
  const fiber = fork(
    Stream.of(1)
      .tap(() => never())
      .runDrain(),
  )
  assert.equal(fiber.status, 'waiting')
  assert.equal((await fiber.interrupt()).kind, 'interruption')
})
