/**
 * What ZIO, Effect and Kotlin promise of their fibers, behaviour by behaviour; the engine limits one.
 *
 * By subject: sentences with a program and what it returns; and names of tests in src/ that hold a behaviour
 * already, which must exist. All of it was written for this project. Over 400 lines: one table.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { zone } from 'corespun'
import {
  Barrier,
  Cache,
  Deferred,
  Exit,
  FiberLocal,
  FiberMap,
  FiberSet,
  Latch,
  Pool,
  PubSub,
  Queue,
  RateLimiter,
  Ref,
  RwLock,
  Schedule,
  Scope,
  Semaphore,
  Supervisor,
  SynchronizedRef,
  acquireRelease,
  addFinalizer,
  all,
  allSettled,
  any,
  attempt,
  catchAll,
  currentFiber,
  dump,
  dumpText,
  ensuring,
  exitOf,
  fail,
  forEach,
  fork,
  fromExit,
  never,
  on,
  onError,
  parallelFinalizers,
  race,
  repeat,
  retry,
  scoped,
  sleep,
  suspend,
  timeout,
  uninterruptible,
  validate,
  yieldNow,
  zip,
} from 'corespun/fiber'
import { Stream } from 'corespun/stream'

/** How many the suite had in which the four gaps of the first version were found. */
const COUNT_MIN = 131

const end = (body) => fork(body).await()
const value = (body) => fork(body).join()
const codeOf = async (body) => {
  const { error, defect } = await end(body)
  return (error ?? defect)?.code
}
const thrownCode = (call) => {
  try {
    return void call()
  } catch ({ code }) {
    return code
  }
}
/** What `program` has noted. */
const noted = async (program) => {
  const notes = []
  await program((note) => void notes.push(note))
  return notes
}
/** The delays of a schedule that is asked at the times `nowMs`. */
const delays = (schedule, ...nowMs) => {
  const driver = schedule.start({ random: () => 0.5 })
  return nowMs.map((ms, turn) => driver.next(turn, ms))
}
function* after(ms, result) {
  yield* sleep(ms)
  return result
}
function* deep(depth) {
  return depth === 0 ? 0 : 1 + (yield* suspend(() => deep(depth - 1)))
}
function* plain(depth) {
  if (depth > 0) return 1 + (yield* plain(depth - 1))
  yield* yieldNow()
  return 0
}
/** A body that counts how many of it run at once. */
const crowd = () => {
  const counts = { now: 0, most: 0 }
  const body = function* () {
    counts.most = Math.max(counts.most, (counts.now += 1))
    yield* sleep(0)
    counts.now -= 1
  }
  return { counts, body }
}
const bug = () => {
  throw new RangeError('bug')
}
/** Fails at its first calls. */
const flaky = (failures) => {
  let calls = 0
  return () => ((calls += 1) <= failures ? fail('busy') : calls)
}

/** What the engine does not allow, and why. */
const LIMITS = {
  'plain yield* 100,000 deep': {
    body: () => plain(100_000),
    why: 'each generator between a fiber and its wait is a frame of V8, some 5,000 of them; not so suspend()',
  },
}

const SUBJECTS = {
  'fork and join': {
    held: {
      'fiber/core/fiber': [
        'a body that never waits has ended when fork returns',
        'join returns the value, or throws the failure itself',
        'many wait for one',
        'joining oneself is refused',
        'status is what a fiber does',
        'a plain yield is refused',
      ],
      'fiber/scale': ['a fiber that never rests lets timers and I/O have their turn: ${name}'],
    },
    rows: [
      [
        'a fiber may be joined twice',
        () =>
          value(function* () {
            const fiber = fork(after(0, 1))
            return [yield* fiber.join(), yield* fiber.join()]
          }),
        [1, 1],
      ],
      ['await returns the exit, whatever that is', () => end(fail('no')), Exit.failure('no')],
      [
        'the exit is undefined until the fiber has ended',
        async () => {
          const fiber = fork(after(0, 1))
          return [fiber.exit, await fiber.join(), fiber.exit]
        },
        [undefined, 1, Exit.success(1)],
      ],
      [
        'a body is a generator, a function, an async function or an operation',
        () => Promise.all([after(0, 1), () => 2, async () => 3, sleep(0)].map(value)),
        [1, 2, 3, undefined],
      ],
      ['a fiber has a name', () => fork(() => {}, { name: 'job' }).name, 'job'],
      ['a fiber finds itself', () => value(() => currentFiber().name === ''), true],
      [
        'yieldNow lets others go first',
        () =>
          noted((note) =>
            value(function* () {
              const child = fork(function* () {
                yield* yieldNow()
                note('child')
              })
              yield* yieldNow()
              note('parent')
              yield* child.join()
            }),
          ),
        ['child', 'parent'],
      ],
    ],
  },
  'parents, children, scopes': {
    held: {
      'fiber/core/interrupt': [
        'children are interrupted when their fiber ends',
        'a daemon goes on when its fiber ends',
        'a child that fails while nobody waits for it fails its fiber and its siblings',
        'a failure that the fiber joins and catches is over',
      ],
      'fiber/core/scope': [
        'a scope fails with its first failing child, interrupts the others and keeps all errors',
        'a scope closes once, however often it is closed',
      ],
      'fiber/core/children': ['dump shows who owns whom and what each waits for'],
      'fiber/core/fiber': ['a failure that nobody joins is an uncaught exception'],
    },
    rows: [
      [
        'the exit of a fiber is behind those of its children',
        () =>
          noted(async (note) => {
            await value(function* () {
              fork(
                ensuring(never(), function* () {
                  yield* sleep(1)
                  note('child')
                }),
              )
            })
            note('parent')
          }),
        ['child', 'parent'],
      ],
      [
        'children are interrupted youngest first',
        () =>
          noted((note) =>
            value(function* () {
              for (const name of [1, 2, 3]) fork(ensuring(never(), () => note(name)))
            }),
          ),
        [3, 2, 1],
      ],
      [
        'a scope ends the fibers that were forked into it',
        async () => {
          const scope = new Scope()
          const fiber = fork(never(), { scope })
          await scope.close()
          return fiber.exit.kind
        },
        'interruption',
      ],
      [
        'a closed scope accepts no fiber',
        async () => {
          const scope = new Scope()
          await scope.close()
          return thrownCode(() => fork(never(), { scope }))
        },
        'FIBER_SCOPE_CLOSED',
      ],
    ],
  },
  failures: {
    held: {
      'fiber/combine/bounds': ['catchAll handles failures and lets defects pass'],
      'fiber/combine/combine': ['what fails beside a failure is kept behind it'],
      'fiber/core/fiber': ['a defect that goes through an async body stays a defect'],
    },
    rows: [
      ['fail is a failure', () => end(fail('no')), Exit.failure('no')],
      ['what is thrown is a defect', async () => (await end(bug)).kind, 'defect'],
      ['a rejection is a failure', () => end(() => Promise.reject(404)), Exit.failure(404)],
      ['a handler may fail', () => end(catchAll(fail(1), (error) => fail(error + 1))), Exit.failure(2)],
      [
        'try and catch see a failure',
        () =>
          value(function* () {
            try {
              yield* fail('no')
            } catch (error) {
              return error
            }
          }),
        'no',
      ],
      [
        'a failure that is thrown again is that failure',
        () =>
          end(function* () {
            try {
              yield* fail('no')
            } catch (error) {
              assert.equal(error, 'no')
              throw error
            }
          }),
        Exit.failure('no'),
      ],
      ['a body becomes its exit', () => value(exitOf(fail('no'))), Exit.failure('no')],
      ['an exit becomes its end', () => end(fromExit(Exit.failure(1))), Exit.failure(1)],
      ['what attempt throws is a failure', async () => (await end(attempt(bug))).kind, 'failure'],
      [
        'the signal of attempt is aborted with its fiber',
        async () => {
          let seen
          const fiber = fork(
            attempt(async (signal) => {
              seen = signal
              await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
            }),
          )
          return [(await fiber.interrupt()).kind, seen.aborted]
        },
        ['interruption', true],
      ],
    ],
  },
  interruption: {
    held: {
      'fiber/core/interrupt': [
        'an interrupted generator runs its finally blocks, and interrupt waits for them',
        'finally blocks that wait, in generators inside each other, all run',
        'interrupt of what has ended changes nothing',
        'a body that swallows its interrupt and ends is interrupted all the same',
        'a fiber that interrupts itself stops at its next yield*',
        'an interrupted joiner leaves what it joined alone',
        'who joins an interrupted fiber gets an InterruptedError, which interrupts if it passes',
        'an async body is interrupted through its signal',
      ],
      'fiber/hostile': ['a fiber that is interrupted before its op was asked does not wait for it'],
    },
    rows: [
      ['its exit has the reason', () => fork(never()).interrupt('why'), Exit.interruption('why')],
      [
        'a second interrupt waits for the same end',
        () => {
          const fiber = fork(ensuring(never(), () => sleep(1)))
          return Promise.all([fiber.interrupt(1), fiber.interrupt(2)])
        },
        [Exit.interruption(1), Exit.interruption(1)],
      ],
      [
        'a fiber that was never joined can be interrupted by another',
        () =>
          value(function* () {
            const fiber = fork(never())
            return (yield* fiber.interrupt()).kind
          }),
        'interruption',
      ],
      [
        'catchAll does not see it',
        async () => (await fork(catchAll(never(), () => 1)).interrupt()).kind,
        'interruption',
      ],
      [
        'it reaches a fiber in a combinator',
        async () => (await fork(all([never(), never()])).interrupt()).kind,
        'interruption',
      ],
    ],
  },
  masks: {
    held: {
      'fiber/core/interrupt': ['an interrupt waits for an uninterruptible part'],
      'fiber/masks': [
        'an interrupt during acquire is delivered behind it: use does not run, release does',
        'of masks inside each other the outermost delivers',
        'restore allows interrupts inside of a mask: its wait is interrupted, the rest is not',
        'a pending interrupt is delivered where restore begins, one of its own body where it ends',
        'a body that is one mask ends as an interruption when it was interrupted',
      ],
      'fiber/combine/control': ['interruptible allows interrupts in a mask, and not where a fiber ends'],
    },
    rows: [
      [
        'a fork does not inherit a mask',
        () => value(uninterruptible(() => fork(never()).interrupt('why'))),
        Exit.interruption('why'),
      ],
    ],
  },
  finalizers: {
    held: {
      'fiber/core/scope': [
        'on ${name} all is released in reverse order, once',
        'on ${name} of a scoped part its resources are released before the fiber goes on',
        'an interrupt anywhere releases exactly what was acquired',
        'finalizers that fail do not stop the others, and all errors are kept in order',
        'the signal of a finalizer is not aborted, however its fiber ends',
      ],
      'fiber/combine/control': [
        'ensuring runs its finalizer with the exit of its body, whatever that is',
        'parallel finalizers take as long as the longest, and all errors are kept',
      ],
      'fiber/hostile': ['a finalizer may fork into its fiber, and what it forks is joined'],
    },
    rows: [
      [
        'release receives the resource and the exit',
        () =>
          noted((note) =>
            end(function* () {
              yield* acquireRelease(
                () => 'file',
                (file, exit) => note([file, exit.kind]),
              )
              yield* fail('no')
            }),
          ),
        [['file', 'failure']],
      ],
      [
        'what could not be acquired is not released',
        () => noted((note) => end(acquireRelease(fail('no'), () => note('released')))),
        [],
      ],
      [
        'a finalizer may wait',
        () =>
          noted((note) =>
            value(() => {
              addFinalizer(function* () {
                yield* sleep(1)
                note('waited')
              })
            }),
          ),
        ['waited'],
      ],
      [
        'scoped releases at its end, not at that of the fiber',
        () =>
          noted((note) =>
            value(function* () {
              yield* scoped(() => addFinalizer(() => note('released')))
              note('behind')
            }),
          ),
        ['released', 'behind'],
      ],
      [
        'parallel finalizers run at once',
        async () => {
          const { counts, body } = crowd()
          await value(parallelFinalizers(() => [1, 2].forEach(() => addFinalizer(body))))
          return counts.most
        },
        2,
      ],
    ],
  },
  'race and all': {
    held: {
      'fiber/combine/bounds': [
        'what loses a race is interrupted and finalized before the race is over',
        'forEach never has more than its bound at work, and keeps the order',
        'forEach stops at the first failure and takes no further item',
      ],
      'fiber/combine/combine': ['all and allSettled of a record return a record'],
      'fiber/combine/control': ['validate: all values, or all failures in order; a defect comes first'],
      'fiber/combine/losers': [
        'what losers throw changes no outcome, and each error is received exactly once',
      ],
    },
    rows: [
      ['race is the first end', () => end(race([fail('no'), after(60_000)])), Exit.failure('no')],
      ['any is the first success', () => value(any([fail('no'), after(0, 'yes')])), 'yes'],
      [
        'any without one has all failures',
        async () => (await end(any([fail(1), fail(2)]))).error.errors,
        [1, 2],
      ],
      ['all runs at once', () => value(all([after(1, 'a'), after(0, 'b')])), ['a', 'b']],
      ['all fails with the first failure', () => end(all([never(), fail('no')])), Exit.failure('no')],
      [
        'allSettled has every exit',
        () => value(allSettled([() => 1, fail('no')])),
        [Exit.success(1), Exit.failure('no')],
      ],
      ['zip runs one after the other', () => value(zip(after(1, 'a'), after(0, 'b'))), ['a', 'b']],
      [
        'the parts of all are children: none is left',
        async () => {
          await end(all([never(), fail('no')]))
          return dump()
        },
        [],
      ],
    ],
  },
  timeouts: {
    held: {
      'fiber/combine/bounds': [
        'a timeout that comes in time returns the value; what is uninterruptible outlasts one',
      ],
      'fiber/combine/combine': ['a time of Infinity waits without an end, in sleep and in timeout'],
      'fiber/scheduler/timers': ['sleepers within ${spreadMs} ms are woken by time, then by order of asking'],
    },
    rows: [
      ['what takes too long fails', () => codeOf(timeout(1, never())), 'FIBER_TIMEOUT'],
      [
        'it is interrupted and finalized first',
        () =>
          noted((note) =>
            end(
              timeout(
                1,
                ensuring(never(), (exit) => note(exit.kind)),
              ),
            ),
          ),
        ['interruption'],
      ],
      ['a timeout can be handled', () => value(catchAll(timeout(1, never()), () => 'late')), 'late'],
    ],
  },
  schedules: {
    held: {
      'fiber/combine/schedule': [
        'cron: at the times of the pattern, never one twice, and it ends with them',
        'while: stops at the first input that it refuses, for good',
        'a schedule is not used up: each start begins anew',
        'jitter stays within its bounds',
      ],
      'fiber/combine/bounds': [
        "retry runs again on failures, with the schedule's waits, and never on a defect",
        'repeat runs again on values and returns the last',
      ],
    },
    rows: [
      ['recurs', () => delays(Schedule.recurs(2), 0, 0, 0), [0, 0, undefined]],
      ['spaced', () => delays(Schedule.spaced(5), 0, 7), [5, 5]],
      ['exponential', () => delays(Schedule.exponential(1), 0, 0, 0, 0), [1, 2, 4, 8]],
      ['fibonacci', () => delays(Schedule.fibonacci(1), 0, 0, 0, 0, 0), [1, 1, 2, 3, 5]],
      ['linear', () => delays(Schedule.linear(2), 0, 0, 0), [2, 4, 6]],
      ['fixed', () => delays(Schedule.fixed(10), 0, 14, 20), [10, 6, 10]],
      ['windowed', () => delays(Schedule.windowed(10), 0, 14, 25), [10, 6, 5]],
      ['capped', () => delays(Schedule.exponential(1).capped(3), 0, 0, 0), [1, 2, 3]],
      [
        'and: both go on, the longer delay',
        () => delays(Schedule.spaced(5).and(Schedule.recurs(1)), 0, 0),
        [5, undefined],
      ],
      [
        'or: one goes on, the shorter delay',
        () => delays(Schedule.spaced(5).or(Schedule.recurs(1)), 0, 0),
        [0, 5],
      ],
      ['retry until it succeeds', () => value(retry(flaky(2), Schedule.recurs(5))), 3],
      [
        'retry ends with the last failure',
        () => end(retry(flaky(9), Schedule.recurs(2))),
        Exit.failure('busy'),
      ],
      ['repeat runs once more than it recurs', () => value(repeat(flaky(0), Schedule.recurs(2))), 3],
    ],
  },
  queues: {
    held: {
      'fiber/share/queue': [
        'puts, takes and closes do what the oracle does, whoever is interrupted',
        'a race, a timeout and an interrupt leave no taker in the line',
        'a granted value stays when its taker is interrupted before it goes on',
        'a closed queue refuses, can be emptied, and ends its loop',
        'every subscriber receives what is published while it is subscribed, in one order',
        'a bounded PubSub waits for the slowest, until that one is closed or its fiber ends',
      ],
    },
    rows: [
      [
        'take waits for a value',
        async () => {
          const queue = Queue.bounded(1)
          const taken = fork(queue.take())
          await queue.put('a')
          return taken.join()
        },
        'a',
      ],
      [
        'put waits while a queue is full',
        () =>
          noted(async (note) => {
            const queue = Queue.bounded(1)
            await queue.put(1)
            const second = queue.put(2).then(() => note('put'))
            note(await queue.take())
            await second
          }),
        [1, 'put'],
      ],
      [
        'sliding drops the oldest, dropping the newest',
        () =>
          [Queue.sliding(1), Queue.dropping(1)].map((queue) => {
            queue.offer(1)
            queue.offer(2)
            return queue.takeUpTo()
          }),
        [[2], [1]],
      ],
      [
        'takers are served in order',
        async () => {
          const queue = Queue.unbounded()
          const takers = [fork(queue.take()), fork(queue.take())]
          for (const item of [1, 2]) queue.offer(item)
          return Promise.all(takers.map((fiber) => fiber.join()))
        },
        [1, 2],
      ],
      [
        'a sliding PubSub keeps the last value for a slow subscriber',
        () =>
          value(function* () {
            const pubSub = PubSub.sliding(1)
            const own = pubSub.subscribe()
            for (const item of [1, 2]) yield* pubSub.publish(item)
            return own.poll()
          }),
        2,
      ],
    ],
  },
  'refs, deferred, latches': {
    held: {
      'fiber/share/deferred': [
        'a Deferred is set once, and all who wait before and after receive that',
        'a Deferred ends those who wait as it was ended',
        'a latch is open when it was counted down, and can be closed again',
        'a barrier lets whole rounds go on, and does not count who was interrupted',
        'a Ref is replaced, updated and modified',
      ],
      'fiber/share/semaphore': [
        'changes of a SynchronizedRef are in order; a failed or interrupted one changes nothing',
      ],
    },
    rows: [
      [
        'a Deferred may fail',
        () => {
          const deferred = new Deferred()
          deferred.fail('no')
          return end(deferred.await())
        },
        Exit.failure('no'),
      ],
      ['a Ref is modified at once', () => new Ref(1).modify((old) => [`was ${old}`, old + 1]), 'was 1'],
      [
        'a SynchronizedRef loses no change',
        async () => {
          const ref = new SynchronizedRef(0)
          await Promise.all([1, 2, 3].map(() => ref.update((old) => after(0, old + 1))))
          return ref.get()
        },
        3,
      ],
      [
        'a latch lets all go',
        async () => {
          const latch = new Latch()
          const waiting = [1, 2].map(() => fork(latch.await()))
          latch.open()
          return (await Promise.all(waiting.map((fiber) => fiber.await()))).map(({ kind }) => kind)
        },
        ['success', 'success'],
      ],
      [
        'a barrier lets its parties go together',
        () => {
          const barrier = new Barrier({ parties: 2 })
          const arrivals = [1, 2].map(() => fork(barrier.await()).join())
          return Promise.all(arrivals).then((turns) => turns.length)
        },
        2,
      ],
    ],
  },
  'semaphores, limits, pools': {
    held: {
      'fiber/share/semaphore': [
        'permits are granted in order and released, as the oracle has it, whoever is interrupted',
        'an interruption at the moment of a grant loses no permit',
        'a reader behind a waiting writer waits: writers do not starve',
      ],
      'fiber/share/cache': [
        'one lookup for all who ask meanwhile; the last who leaves ends it',
        'a pool never passes its size, lends to one at a time, and releases all',
      ],
      'fiber/share/fiber-map': ['a map has the last fiber of each key that has not ended, whatever happens'],
    },
    rows: [
      [
        'a semaphore bounds what runs',
        async () => {
          const { counts, body } = crowd()
          const semaphore = new Semaphore({ permits: 2 })
          await value(all(Array.from({ length: 5 }, () => semaphore.withPermits(body))))
          return [counts.most, semaphore.free]
        },
        [2, 2],
      ],
      [
        'permits return when a body fails',
        async () => {
          const semaphore = new Semaphore({ permits: 1 })
          return [(await end(semaphore.withPermits(fail('no')))).kind, semaphore.free]
        },
        ['failure', 1],
      ],
      [
        'a lock has one writer',
        async () => {
          const { counts, body } = crowd()
          const lock = new RwLock()
          await value(all([lock.write(body), lock.write(body)]))
          return counts.most
        },
        1,
      ],
      [
        'a rate limiter lets its burst go',
        () => new RateLimiter({ limit: 1, perMs: 60_000, burst: 2 }).tryTake(),
        true,
      ],
      [
        'a cache looks up once',
        async () => {
          let lookups = 0
          const cache = new Cache(() => after(0, (lookups += 1)), { entriesMax: 1 })
          return Promise.all([cache.get('a'), cache.get('a')])
        },
        [1, 1],
      ],
      [
        'a pool releases at its end',
        () =>
          noted(async (note) => {
            const pool = new Pool({ acquire: () => 'one', release: note, sizeMax: 1 })
            await pool.use(() => 0)
            await pool.close()
          }),
        ['one'],
      ],
      [
        'a set of fibers waits for all',
        async () => {
          const set = new FiberSet()
          const fibers = [set.run(after(0, 1)), set.run(after(1, 2))]
          await set.join()
          return fibers.map((fiber) => fiber.exit.value)
        },
        [1, 2],
      ],
      [
        'a map interrupts the fiber that it replaces',
        async () => {
          const map = new FiberMap()
          const old = map.run('key', never())
          map.run('key', never())
          const { kind } = await old.await()
          await map.close()
          return kind
        },
        'interruption',
      ],
    ],
  },
  'supervision, locals': {
    held: {
      'fiber/combine/control': [
        'a supervisor is called for all that its body forks, and changes no failure',
        'a supervisor stops where its body ends, and what it throws is nobody else’s',
      ],
      'fiber/combine/losers': [
        'listeners of onError receive errors of losers and of fibers that nobody joins',
      ],
      'fiber/core/children': ['locals go to forks, and changes stay where they are made'],
    },
    rows: [
      [
        'a supervisor sees ends',
        () =>
          noted((note) => {
            const supervisor = new Supervisor({ onEnd: (_, { kind }) => note(kind) })
            return value(supervisor.supervise(() => fork(() => {}).join()))
          }),
        ['success'],
      ],
      [
        'a local has its value within a body',
        () =>
          value(function* () {
            const local = new FiberLocal('outer')
            return [yield* local.with('inner', () => local.get()), local.get()]
          }),
        ['inner', 'outer'],
      ],
      [
        'a child has the locals of its parent',
        () =>
          value(function* () {
            const local = new FiberLocal(0)
            local.set(1)
            return yield* fork(() => local.get()).join()
          }),
        1,
      ],
    ],
  },
  executors: {
    held: {
      'fiber/remote/on': [
        'a function with an input runs in the zone',
        'what a function throws is a defect, what an async one throws a failure',
        'interrupting a fiber cancels its task, in a step and as a body',
        'a timeout cancels the task',
      ],
    },
    rows: [
      ['a step runs here, on the zone of the process', () => value(on(zone.node, (n) => n + 1, 1)), 2],
      ['a body runs there', () => fork((n) => n + 1, { on: zone.node, input: 1 }).join(), 2],
    ],
  },
  streams: {
    held: {
      'stream/stream': [
        'no item is read before the sink needs it',
        'mapConcurrent works on as many items as it may, in order or not',
        'buffer reads ahead as far as it may; full it waits, drops or slides',
        'zip ends with the shorter stream and closes the longer one',
        'acquireRelease releases once, with how the run ended, whatever ends it',
      ],
    },
    rows: [
      [
        'stages run item by item',
        () =>
          Stream.of(1, 2, 3, 4)
            .filter((n) => n % 2 === 0)
            .map((n) => n * n)
            .runCollect(),
        [4, 16],
      ],
      [
        'a failure ends it',
        () => end(Stream.of(1).concat(Stream.fail('no')).runCollect()),
        Exit.failure('no'),
      ],
      [
        'merge has the items of both',
        async () => (await Stream.of(1).merge(Stream.of(2)).runCollect()).sort(),
        [1, 2],
      ],
    ],
  },
  depth: {
    held: {
      'fiber/combine/control': [
        'catchAll ten thousand deep, in its body, in its handler and as a value',
        '${name} may be inside of itself ten thousand times, over a wait',
        'an interrupt at any step of a deep recursion unwinds all of it',
        'plain yield* is some thousand deep, by the engine’s stack; a deeper one is a defect',
      ],
      'fiber/scale': ['a chain of a million joins, each waiting for the next'],
    },
    rows: [
      ['suspend has no limit', () => value(deep(20_000)), 20_000],
      [
        'forEach of many items',
        async () => (await value(forEach(Array(20_000).keys(), (n) => n))).length,
        20_000,
      ],
      ['plain yield* 2,000 deep', () => value(plain(2_000)), 2_000],
    ],
  },
}

for (const [subject, { held, rows }] of Object.entries(SUBJECTS)) {
  test(`${subject}: each behaviour is held by a program or by a test`, async () => {
    for (const [file, names] of Object.entries(held)) {
      const text = readFileSync(new URL(`../../src/${file}.test.ts`, import.meta.url), 'utf8')
      for (const name of names) assert.ok(text.includes(name), `${file} has the test: ${name}`)
    }
    for (const [behaviour, program, expected] of rows) assert.deepEqual(await program(), expected, behaviour)
    assert.deepEqual(dump(), [], dumpText())
  })
}

test('no behaviour has left the table, and the engine ends what it limits', async () => {
  const counts = Object.values(SUBJECTS).map(
    ({ held, rows }) => rows.length + Object.values(held).flat().length,
  )
  const count = counts.reduce((sum, one) => sum + one)
  assert.ok(count >= COUNT_MIN, `${count} behaviours`)
  for (const [limited, { body, why }] of Object.entries(LIMITS))
    assert.ok((await end(body())).defect instanceof RangeError, `${limited}: ${why}`)
})
