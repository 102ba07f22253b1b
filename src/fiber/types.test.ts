/**
 * What the compiler must infer and refuse: values and failures of bodies, through joins and combinators.
 *
 * The checks are made by tsc: a type that is not exactly what is results, or an error that does not come
 * (`@ts-expect-error`), fails the build. Nothing is run but one test that states it.
 */
import { test } from 'node:test'
import { zone } from '../zone/index.ts'
import {
  type Exit,
  type Fiber,
  type FiberError,
  type Op,
  Schedule,
  type Waitable,
  Cache,
  Pool,
  Queue,
  Semaphore,
  SynchronizedRef,
  all,
  allSettled,
  any,
  attempt,
  catchAll,
  ensuring,
  exitOf,
  fail,
  forEach,
  fork,
  on,
  race,
  retry,
  scoped,
  sleep,
  timeout,
  validate,
  zip,
} from './index.ts'
import { RUNNABLE } from './internal.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function is<_T extends true>(): void {}

class Missing {
  readonly missing = true
}
class Late {
  readonly late = true
}

function* reads() {
  yield* sleep(1)
  if (Math.random() > 2) yield* fail(new Missing())
  return 'text'
}

function* parses() {
  const text = yield* fork(reads).join()
  is<Same<typeof text, string>>()
  if (text === '') yield* fail(new Late())
  return text.length
}

function never(): void {
  const read = fork(reads)
  is<Same<typeof read, Fiber<string, Missing>>>()
  const join = read.join()
  is<Same<typeof join, Waitable<string, Missing>>>()
  const parsed = fork(parses)
  is<Same<typeof parsed, Fiber<number, Missing | Late>>>()
  const made = fork(parses())
  is<Same<typeof made, Fiber<number, Missing | Late>>>()
  const plain = fork(() => 1)
  is<Same<typeof plain, Fiber<number, never>>>()
  const async = fork(async () => 1)
  is<Same<typeof async, Fiber<number, unknown>>>()
  const slept = fork(sleep(1))
  is<Same<typeof slept, Fiber<void, never>>>()
  const arrow = { [RUNNABLE]: (_: number): Exit<string, Late> => ({ kind: 'success', value: '' }) }
  const run = fork(arrow, { input: 1 })
  is<Same<typeof run, Fiber<string, Late>>>()
  // @ts-expect-error a number is not a body
  fork(1)
  // @ts-expect-error only a zone can be passed as `on`
  fork(() => 1, { on: 'cpu' })
  void combined
}

function* combined() {
  const both = yield* all([reads, () => 1, fork(parses)])
  is<Same<typeof both, [string, number, number]>>()
  const exits = yield* allSettled([reads, () => 1])
  is<Same<typeof exits, [Exit<string, Missing>, Exit<number, never>]>>()
  const first = yield* race([reads, () => 1])
  is<Same<typeof first, string | number>>()
  const some = yield* any([reads, parses])
  is<Same<typeof some, string | number>>()
  const each = yield* forEach([1, 2], function* (item) {
    is<Same<typeof item, number>>()
    yield* sleep(item)
    return String(item)
  })
  is<Same<typeof each, string[]>>()
  const timed = fork(timeout(5, reads))
  is<Same<typeof timed, Fiber<string, Missing | FiberError<'FIBER_TIMEOUT'>>>>()
  const exit = yield* exitOf(reads)
  is<Same<typeof exit, Exit<string, Missing>>>()
  const caught = fork(catchAll(reads, (error) => error.missing))
  is<Same<typeof caught, Fiber<string | boolean, never>>>()
  const tried = yield* attempt(async () => 5)
  is<Same<typeof tried, number>>()
  const inner = yield* scoped(function* () {
    yield* sleep(1)
    return 5
  })
  is<Same<typeof inner, number>>()
  const there = yield* on(zone.node, (x: number) => String(x), 1)
  is<Same<typeof there, string>>()
  // @ts-expect-error the argument must be what the function takes
  yield* on(zone.node, (x: number) => String(x), 'one')
  const fitting = Schedule.forever.while((error: Missing) => error.missing)
  yield* retry(reads, fitting)
  const other = Schedule.forever.while((error: Late) => error.late)
  // @ts-expect-error the schedule looks at failures that the body has not
  yield* retry(reads, other)
  // @ts-expect-error a fiber is not what it returns
  const wrong: number = yield* fork(reads).join()
  return wrong
}

function* shared() {
  const semaphore = new Semaphore({ permits: 1 })
  const read = fork(semaphore.withPermits(reads))
  is<Same<typeof read, Fiber<string, Missing | FiberError<'FIBER_FULL'>>>>()
  const queue = Queue.bounded<number>(1)
  const taken = yield* queue.take()
  is<Same<typeof taken, number>>()
  const taker = fork(queue.take())
  is<Same<typeof taker, Fiber<number, FiberError<'FIBER_CLOSED'>>>>()
  const cache = new Cache((_: number) => reads(), { entriesMax: 1 })
  const cached = cache.get(1)
  is<Same<typeof cached, Waitable<string, Missing>>>()
  const pool = new Pool({
    acquire: async () => 7,
    release: (id) => is<Same<typeof id, number>>(),
    sizeMax: 1,
  })
  const used = yield* pool.use((id) => `${id}`)
  is<Same<typeof used, string>>()
  const ref = new SynchronizedRef(1)
  const receipt = yield* ref.modify((value) => ['receipt', value + 1] as const)
  is<Same<typeof receipt, 'receipt'>>()
  const both = yield* zip(reads, () => 1)
  is<Same<typeof both, [string, number]>>()
  const valid = yield* validate({ one: reads, two: () => 1 })
  is<Same<typeof valid, { one: string; two: number }>>()
  const ensured = fork(ensuring(reads, (exit) => is<Same<typeof exit, Exit<string, Missing>>>()))
  is<Same<typeof ensured, Fiber<string, Missing>>>()
  // @ts-expect-error the queue has numbers
  queue.offer('text')
}

test('the types of this file hold', () => void [never, combined, shared, undefined as Op<void> | undefined])
