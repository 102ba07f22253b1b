/**
 * A fiber that runs on the stack of the one that joins it: nobody can observe it.
 *
 * Random programs run twice, with that way and without it, and log what happens in what order: who goes on
 * when, what joins bring, what listeners of an abort see, how each fiber ends.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { turn } from './scheduler/scheduler.ts'
import {
  type Fiber,
  type ForkOptions,
  type Operation,
  Exit,
  FiberLocal,
  Scope,
  currentFiber,
  dump,
  exitOf,
  fail,
  fork,
  uninterruptible,
  yieldNow,
} from './index.ts'
import { runningFiber } from './internal.ts'

type Part =
  | { kind: 'turn' | 'fail' | 'listen' }
  | { kind: 'forked' | 'joined' | 'caught' | 'masked'; parts: Part[] }
  | { kind: 'finally'; parts: Part[]; last: Part[] }
  | { kind: 'other' | 'interrupt'; which: number }

const { parts: programs } = fc.letrec<{ part: Part; parts: Part[] }>((tie) => ({
  parts: fc.array(tie('part'), { minLength: 1, maxLength: 4, depthIdentifier: 'part' }),
  part: fc.oneof(
    { maxDepth: 5, depthIdentifier: 'part' },
    fc.record({
      kind: fc.constantFrom('turn' as const, 'turn' as const, 'fail' as const, 'listen' as const),
    }),
    fc.record({ kind: fc.constantFrom('other' as const, 'interrupt' as const), which: fc.nat(20) }),
    fc.record({
      kind: fc.constantFrom(
        'joined' as const,
        'joined' as const,
        'forked' as const,
        'caught' as const,
        'masked' as const,
      ),
      parts: tie('parts'),
    }),
    fc.record({ kind: fc.constant('finally' as const), parts: tie('parts'), last: tie('parts') }),
  ),
}))

const TURN: Part = { kind: 'turn' }
/** What chance seldom brings. */
const RARE: Part[][] = [
  // The joiner is interrupted by the one that it joins, which then waits for it.
  [TURN, { kind: 'joined', parts: [TURN, { kind: 'interrupt', which: 0 }, { kind: 'other', which: 0 }] }],
  // Who joins in its first step lies on the stack above the fiber that has forked it.
  [TURN, { kind: 'forked', parts: [{ kind: 'joined', parts: [TURN] }] }, TURN],
  // An interrupted fiber goes on, because it has caught what its `finally` threw instead.
  [
    {
      kind: 'caught',
      parts: [
        { kind: 'interrupt', which: 0 },
        { kind: 'finally', parts: [TURN], last: [{ kind: 'fail' }] },
      ],
    },
    { kind: 'joined', parts: [{ kind: 'other', which: 0 }] },
  ],
]

/** Runs parts in fibers and logs what happens, in order. */
class Program {
  readonly log: unknown[] = []
  readonly fibers: Fiber<unknown, unknown>[] = []

  fork(parts: readonly Part[], isFree: boolean, options?: ForkOptions): Fiber<unknown, unknown> {
    const { fibers, log } = this
    const index = fibers.push(undefined as never) - 1
    const run = (): Operation<number, unknown> => this.#run(parts, index, isFree)
    const body = function* (self: Fiber): Operation<number, unknown> {
      fibers[index] = self
      try {
        return yield* run()
      } catch (error) {
        log.push([index, 'throws', String(error)])
        throw error
      }
    }
    return fork(body, options) as Fiber<unknown, unknown>
  }

  *#run(parts: readonly Part[], index: number, isFree: boolean): Operation<number, unknown> {
    const { fibers, log } = this
    for (const part of parts) {
      log.push([index, part.kind, runningFiber() === fibers[index]])
      const got = yield* this.#step(part, index, isFree)
      log.push([index, part.kind, got, fibers.map((fiber) => fiber.status)])
    }
    return index
  }

  /** @param allowed Whether interrupts are allowed: where not, two that wait for each other would stay. */
  *#step(part: Part, index: number, allowed: boolean): Operation<unknown, unknown> {
    const { fibers } = this
    // An interrupt whose `finally` failed has been caught with that failure: the body goes on, and is not
    // interrupted again.
    const isFree = allowed && !currentFiber().isMasked
    switch (part.kind) {
      case 'turn':
        return yield* yieldNow()
      case 'fail':
        return yield* fail(`failure of ${index}`)
      case 'listen':
        return currentFiber().signal.addEventListener('abort', () =>
          this.log.push([index, 'listened', fibers.indexOf(runningFiber() as never)]),
        )
      case 'forked':
        return void this.fork(part.parts, isFree, { scope: currentFiber() })
      case 'joined':
        return yield* this.fork(part.parts, isFree).join()
      case 'caught':
        return (yield* exitOf(() => this.#run(part.parts, index, isFree))).kind
      case 'masked':
        return yield* uninterruptible(() => this.#run(part.parts, index, false))
      case 'finally':
        try {
          return yield* this.#run(part.parts, index, isFree)
        } finally {
          yield* this.#run(part.last, index, false)
        }
      default: {
        const other = fibers[part.which % fibers.length]
        if (part.kind === 'interrupt') return void other.interrupt(`by ${index}`)
        return isFree && other !== fibers[index] ? yield* other.join() : undefined
      }
    }
  }
}

/** What happens, in order, and how many fibers were run by those that join them. */
async function logOf(parts: readonly Part[], isDirect: boolean): Promise<{ log: unknown[]; count: number }> {
  const program = new Program()
  const { scheduler } = turn
  const { takeOnly } = scheduler
  let count = 0
  scheduler.takeOnly = (ready) => {
    const isTaken = isDirect && takeOnly.call(scheduler, ready)
    if (isTaken) count += 1
    return isTaken
  }
  try {
    const main = fork(function* () {
      yield* yieldNow()
      return yield* exitOf(() => program.fork(parts, true).join())
    })
    for (let round = 0; round < 3; round += 1) await new Promise(setImmediate)
    const exit = await main.interrupt('end')
    return { log: [...program.log, exit, program.fibers.map((fiber) => fiber.exit)], count }
  } finally {
    Reflect.deleteProperty(scheduler, 'takeOnly')
  }
}

test('who runs on the stack of its joiner does what it does from the queue, in order', async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(programs, async (program) => {
      const queued = await logOf(program, false)
      const direct = await logOf(program, true)
      assert.deepEqual(direct.log, queued.log)
      assert.equal(queued.count, 0)
      count += direct.count
    }),
    { numRuns: 500, examples: RARE.map((program) => [program]) },
  )
  assert.ok(count > 100, `${count} were run so`)
  assert.deepEqual(dump(), [])
})

test('what ends a scope on the stack of a joiner has not the locals of that one', async () => {
  const local = new FiberLocal('none')
  const seen: string[] = []
  await fork(function* () {
    yield* yieldNow()
    const scope = new Scope()
    scope.addFinalizer(() => void seen.push(local.get()))
    const child = scope.fork(function* () {
      yield* yieldNow()
      yield* fail('no')
    })
    local.set('mine')
    seen.push((yield* exitOf(() => child.join())).kind)
    yield* scope.close()
  }).await()
  assert.deepEqual(seen, ['failure', 'none'])
})

test('fibers that join each other are on the stack to a bounded depth', async () => {
  let depthMax = 0
  function* body(depth: number): Operation<number> {
    yield* yieldNow()
    depthMax = Math.max(depthMax, new Error('here').stack?.split('body').length ?? 0)
    return depth === 0 ? 0 : 1 + (yield* fork(body(depth - 1)).join())
  }
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = Infinity
  try {
    assert.deepEqual(await fork(body(1000)).await(), Exit.success(1000))
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  assert.ok(depthMax > 4 && depthMax < 40, String(depthMax))
})
