/**
 * Large numbers: a million forks, a hundred thousand parked fibers, chains of a million joins, and fairness.
 *
 * Not timed. What is asserted is that nothing overflows, that all end, and that the memory is given back.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { share } from '../base/part.test.support.ts'
import { until } from '../base/wait.test.support.ts'
import {
  Exit,
  type Fiber,
  FiberLocal,
  type Operation,
  Schedule,
  acquireRelease,
  all,
  allSettled,
  attempt,
  catchAll,
  dump,
  exitOf,
  forEach,
  fork,
  fromExit,
  never,
  repeat,
  retry,
  scoped,
  uninterruptible,
  yieldNow,
} from './index.ts'

const MILLION = share(1_000_000)
const HUNDRED_THOUSAND = share(100_000)

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

async function heapMb(): Promise<number> {
  for (let turn = 0; turn < 3; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
  }
  return process.memoryUsage().heapUsed / 2 ** 20
}

test('a million forks in a row leave nothing behind', async () => {
  const before = await heapMb()
  const sum = await fork(function* () {
    let sum = 0
    for (let turn = 0; turn < MILLION; turn += 1) sum += yield* fork(() => 1).join()
    return sum
  }).join()
  assert.equal(sum, MILLION)
  assert.ok((await heapMb()) - before < 4)
})

test('a million forks in a row that all wait, and are joined afterwards', async () => {
  const before = await heapMb()
  function* waiting(): Operation<number> {
    yield* yieldNow()
    return 1
  }
  const sum = await fork(function* () {
    const fibers = Array.from({ length: MILLION }, () => fork(waiting))
    let sum = 0
    for (const fiber of fibers) sum += yield* fiber.join()
    return sum
  }).join()
  assert.equal(sum, MILLION)
  assert.ok((await heapMb()) - before < 16)
})

test('a hundred thousand parked fibers cost little and are given back', async () => {
  const before = await heapMb()
  function* body(): Operation<void> {
    yield* never()
  }
  let fibers: Fiber[] = Array.from({ length: HUNDRED_THOUSAND }, () => fork(body) as Fiber)
  const parked = await heapMb()
  assert.ok(parked - before < share(40), `${parked - before} MB`)
  await Promise.all(fibers.map((fiber) => fiber.interrupt()))
  fibers = []
  assert.ok((await heapMb()) - before < 8)
  assert.deepEqual(dump(), [])
})

test('a chain of a million joins, each waiting for the next', async () => {
  const before = await heapMb()
  let release: (() => void) | undefined
  const first = fork(attempt(new Promise<void>((resolve) => (release = resolve))))
  let last: Fiber = first
  function* joining(fiber: Fiber): Operation<number> {
    yield* fiber.join() as ReturnType<Fiber<unknown, never>['join']>
    return 1
  }
  for (let turn = 0; turn < MILLION; turn += 1) last = fork(joining(last)) as Fiber
  const parked = await heapMb()
  assert.ok(parked - before < share(400), `${parked - before} MB: more than 400 bytes for each`)
  release?.()
  assert.equal(await last.join(), 1)
  last = first
  assert.ok((await heapMb()) - before < 16)
})

test('forks a million deep: each child forks the next and joins it', async () => {
  function* body(depth: number): Operation<number> {
    return depth === 0 ? 0 : 1 + (yield* fork(body(depth - 1)).join())
  }
  assert.equal(await fork(body(MILLION)).join(), MILLION)
})

test('a tree a hundred thousand deep is interrupted without a deep stack', async () => {
  let count = 0
  function* body(depth: number): Operation<void> {
    try {
      if (depth > 0) yield* fork(body(depth - 1)).join()
      else yield* never()
    } finally {
      count += 1
    }
  }
  const fiber = fork(body(HUNDRED_THOUSAND))
  await until(() => dump().length > 0 && count === 0, 'the fiber that waits for ever')
  assert.equal((await fiber.interrupt()).kind, 'interruption')
  assert.equal(count, HUNDRED_THOUSAND + 1)
})

test('a hundred thousand who join one and are interrupted leave it', async () => {
  const target = fork(never())
  function* joining(): Operation<void> {
    yield* target.join()
  }
  const fibers = Array.from({ length: HUNDRED_THOUSAND }, () => fork(joining))
  await Promise.all(fibers.map((fiber) => fiber.interrupt()))
  await target.interrupt()
})

const local = new FiberLocal(0)

for (const [name, spin] of Object.entries({
  'steps that are ready': () => attempt(() => 0),
  'joins of what has ended': () => fork(() => 0).join(),
  'its turn': () => yieldNow(),
  'promises that have settled': () => attempt(Promise.resolve()),
  'an exit': () => exitOf(() => 1),
  'a scope': () => scoped(() => 1),
  'what must not be cut': () => uninterruptible(() => 1),
  'what is caught': () => catchAll(() => 1, String),
  'a local': () => local.with(1, () => 1),
  resources: () => scoped(() => acquireRelease(() => 1, String)),
  'one try': () => retry(() => 1, Schedule.recurs(1)),
  'no repetition': () => repeat(() => 1, Schedule.recurs(0)),
  'a value as an exit': () => fromExit(Exit.success(1)),
  'none of all': () => all([]),
  'none settled': () => allSettled([]),
  'no items': () => forEach([], String),
}))
  test(`a fiber that never rests lets timers and I/O have their turn: ${name}`, async () => {
    let isOver = false
    const fiber = fork(function* () {
      let count = 0
      while (!isOver) {
        yield* spin()
        count += 1
      }
      return count
    })
    await new Promise((resolve) => setTimeout(resolve, 5))
    await new Promise((resolve) => setImmediate(resolve))
    isOver = true
    assert.ok((await fiber.join()) > 0)
  })
