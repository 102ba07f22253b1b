/**
 * Errors of losers: the result remains the winner's, each error is received once, and the process goes on.
 *
 * Random trees of combinators whose leaves throw when they are interrupted, by the seeded runtime: each error
 * is in the exit, or was reported. CORESPUN_SEEDS=1000 runs 1,000 trees instead of 200.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  Exit,
  type Operation,
  addFinalizer,
  all,
  allSettled,
  any,
  fail,
  forEach,
  fork,
  never,
  onError,
  race,
  sleep,
  timeout,
  yieldNow,
} from '../index.ts'
import { flatExits, thrownBy } from '../core/exit.ts'
import { simulate } from '../../test/played.test.support.ts'

const SPOTS = ['finally', 'finalizer', 'both', 'child', 'late', 'nowhere'] as const
const COMBINATORS = ['race', 'any', 'all', 'allSettled', 'forEach'] as const

type Plan =
  | { kind: 'leaf'; ms: number; fails: boolean; spot: (typeof SPOTS)[number] }
  | { kind: (typeof COMBINATORS)[number]; parts: Plan[] }
  | { kind: 'timeout'; ms: number; part: Plan }

const plans = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record({
      kind: fc.constant('leaf' as const),
      ms: fc.nat(50),
      fails: fc.boolean(),
      spot: fc.constantFrom(...SPOTS),
    }),
    fc.record({
      kind: fc.constantFrom(...COMBINATORS),
      parts: fc.array(tie('plan'), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ kind: fc.constant('timeout' as const), ms: fc.nat(50), part: tie('plan') }),
  ),
})).plan

/** The errors that leaves threw, and those that the exits within `allSettled` contain. */
interface Log {
  readonly thrown: Error[]
  readonly received: unknown[]
}

/** Sleeps, then returns `ms` or fails with it; interrupted, it throws where the plan has it. */
function* leaf(plan: Plan & { kind: 'leaf' }, log: Log): Operation<number, number> {
  const { ms, fails, spot } = plan
  let hasEnded = false
  const spoil = (where: string): void => {
    if (hasEnded) return
    const error = new Error(`${where} of ${ms}`)
    log.thrown.push(error)
    throw error
  }
  const child = function* (): Operation<never> {
    try {
      return yield* never()
    } finally {
      spoil('child')
    }
  }
  if (spot === 'finalizer' || spot === 'both') addFinalizer(() => spoil('finalizer'))
  if (spot === 'child') fork(child)
  try {
    yield* sleep(ms)
    hasEnded = true
  } finally {
    if (spot === 'late') yield* yieldNow()
    if (spot === 'finally' || spot === 'both' || spot === 'late') spoil(spot)
  }
  return fails ? yield* fail(ms) : ms
}

function bodyOf(plan: Plan, log: Log): () => Operation<unknown, unknown> {
  if (plan.kind === 'leaf') return () => leaf(plan, log)
  return function* () {
    if (plan.kind === 'timeout') return yield* timeout(plan.ms, bodyOf(plan.part, log))
    const bodies = plan.parts.map((part) => bodyOf(part, log))
    switch (plan.kind) {
      case 'race':
        return yield* race(bodies)
      case 'any':
        return yield* any(bodies)
      case 'all':
        return yield* all(bodies)
      case 'forEach':
        return yield* forEach(bodies, (body) => body(), { concurrency: 3 })
      default: {
        const exits = yield* allSettled(bodies)
        for (const exit of exits) if (exit.kind !== 'success') log.received.push(...errorsOf(exit))
        return exits.length
      }
    }
  }
}

function errorsOf(exit: Exit<unknown, unknown>): unknown[] {
  if (exit.kind === 'success') return []
  return flatExits(exit).flatMap((one) => (one.kind === 'interruption' ? [] : [thrownBy(one)]))
}

/** How often each of the thrown errors was received. */
function countsOf(thrown: readonly Error[], received: readonly unknown[]): Record<string, number> {
  const counts = thrown.map((error) => [error.message, received.filter((one) => one === error).length])
  return Object.fromEntries(counts) as Record<string, number>
}

/** Every time in a plan made different, so that the first to end is the same under every seed. */
function apart(plan: Plan, next = { number: 1 }): Plan {
  if ('parts' in plan) return { ...plan, parts: plan.parts.map((part) => apart(part, next)) }
  const ms = plan.ms * 10_000 + next.number++
  return plan.kind === 'timeout' ? { ...plan, ms, part: apart(plan.part, next) } : { ...plan, ms }
}

/** The same tree in which nothing is thrown on the way out. */
function quiet(plan: Plan): Plan {
  if ('parts' in plan) return { ...plan, parts: plan.parts.map(quiet) }
  return plan.kind === 'timeout' ? { ...plan, part: quiet(plan.part) } : { ...plan, spot: 'nowhere' }
}

function plain(exit: Exit<unknown, unknown>): unknown {
  if (exit.kind !== 'failure') return exit.kind === 'success' ? ['success', exit.value] : [exit.kind]
  return ['failure', exit.error instanceof Error ? exit.error.message : exit.error]
}

test('what losers throw changes no outcome, and each error is received exactly once', async () => {
  const property = fc.asyncProperty(plans, fc.nat(), async (drawn, seed) => {
    const plan = apart(drawn)
    const log: Log = { thrown: [], received: [] }
    const { exit, reported } = await simulate(seed, bodyOf(plan, log))
    const undisturbed = await simulate(seed, bodyOf(quiet(plan), { thrown: [], received: [] }))
    assert.deepEqual(plain(exit), plain(undisturbed.exit))
    for (const { code } of reported) assert.equal(code, 'FIBER_LOSER_FAILED')
    const received = [...errorsOf(exit), ...log.received, ...reported.map(({ cause }) => cause)]
    const once = Object.fromEntries(log.thrown.map(({ message }) => [message, 1]))
    assert.deepEqual(countsOf(log.thrown, received), once)
  })
  await fc.assert(property, { numRuns: Number(process.env.CORESPUN_SEEDS ?? 200) })
})

test('a defect of a part of any is reported, before the winner or behind it', async () => {
  const bug = new RangeError('a bug')
  for (const ms of [1, 3]) {
    const { exit, reported } = await simulate(ms, () =>
      any([
        function* () {
          yield* sleep(2)
          return 'won'
        },
        function* (): Operation<never> {
          try {
            yield* sleep(ms)
          } finally {
            throw bug
          }
        },
      ]),
    )
    assert.deepEqual(exit, Exit.success('won'))
    assert.deepEqual(
      reported.map(({ code, cause, facts }) => [code, cause, 'call' in facts && facts.call]),
      [['FIBER_LOSER_FAILED', bug, 'any()']],
    )
  }
})

test('a failure that a loser has handled, and that its finalizer raises anew, is reported', async () => {
  const busy = fail('busy')
  for (const handles of [false, true]) {
    const { exit, reported } = await simulate(1, () =>
      race([
        function* (): Operation<string> {
          yield* sleep(1)
          return 'won'
        },
        function* (): Operation<never, string> {
          if (handles)
            try {
              yield* busy
            } catch {
              // it goes on
            }
          try {
            return yield* never()
          } finally {
            yield* busy
          }
        },
      ]),
    )
    assert.deepEqual(exit, Exit.success('won'))
    assert.deepEqual(
      reported.map(({ code }) => code),
      ['FIBER_LOSER_FAILED'],
      `handled before: ${handles}`,
    )
  }
})

test('a failure that a loser was ending with when it was interrupted is dropped', async () => {
  const { exit, reported } = await simulate(1, () =>
    race([
      function* (): Operation<string> {
        yield* sleep(20)
        return 'won'
      },
      () =>
        all([
          function* (): Operation<never, string> {
            yield* sleep(5)
            return yield* fail('lost')
          },
          function* (): Operation<never> {
            try {
              return yield* never()
            } finally {
              yield* sleep(50)
            }
          },
        ]),
    ]),
  )
  assert.deepEqual([exit, reported], [Exit.success('won'), []])
})

test('any without a winner keeps what went wrong behind the failures of its parts', async () => {
  const exit = await fork(() =>
    any([
      function* (): Operation<never, string> {
        addFinalizer(() => {
          throw new Error('close failed')
        })
        return yield* fail('lost')
      },
    ]),
  ).await()
  assert.equal(exit.kind, 'failure')
  assert.deepEqual(errorsOf(exit).map(String), ['AggregateError: none of 1 succeeded', 'Error: close failed'])
})

const index = new URL('../index.js', import.meta.url).href

/** Run a program in which `loser` fails on its way out; what it prints. */
function run(program: string): { status: number | null; stdout: string; stderr: string } {
  const text = `
    import { fork, never, onError, race, sleep } from ${JSON.stringify(index)}
    const winner = function* () { yield* sleep(1); return 'won' }
    const loser = function* closing() { try { yield* never() } finally { throw new Error('close failed') } }
    ${program}`
  return spawnSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8' })
}

test('without a listener the error of a loser is a warning with its stack, and the process goes on', () => {
  const { status, stdout, stderr } = run(`
    console.log(await fork(race([winner, loser])).join())
    setImmediate(() => console.log('goes on'))`)
  assert.deepEqual([status, stdout], [0, 'won\ngoes on\n'])
  assert.match(
    stderr,
    /\[FIBER_LOSER_FAILED\] .* loser of race\(\), failed .*onError\(\)\nError: close failed\n {4}at closing/,
  )
})

test('listeners of onError receive errors of losers and of fibers that nobody joins', () => {
  const { status, stdout, stderr } = run(`
    process.on('uncaughtException', ({ code }) => console.log('uncaught', code))
    process.on('warning', ({ code }) => console.log('warning', code))
    const remove = onError(({ code, cause }) => console.log('listener', code, cause.message))
    const both = async () => {
      await fork(race([winner, loser])).join()
      const lonely = fork(async () => { throw new Error('lost') }, { name: 'lonely', daemon: true })
      while (lonely.exit === undefined) await null
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    }
    await both()
    remove()
    await both()`)
  assert.equal(
    stdout,
    'listener FIBER_LOSER_FAILED close failed\nlistener FIBER_UNHANDLED lost\n' +
      'warning FIBER_LOSER_FAILED\nuncaught FIBER_UNHANDLED\n',
  )
  assert.deepEqual([status, stderr.includes('uncaught')], [0, false])
})

test('a listener of onError must be a function', () => {
  assert.throws(() => onError('log' as never), {
    code: 'FIBER_ARGUMENT',
    message: /^onError\(\): the listener/,
  })
})

test('await using of a fiber throws what failed in it on its way out', async () => {
  const failed = new Error('close failed')
  const use = async (): Promise<void> => {
    await using _fiber = fork(function* (): Operation<never> {
      try {
        return yield* never()
      } finally {
        throw failed
      }
    })
  }
  await assert.rejects(use(), failed)
})
