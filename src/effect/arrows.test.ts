/**
 * Arrows and Effects: value, failure, defect and interruption keep their kind both ways.
 *
 * All runs are of this thread.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as Cause from 'effect/Cause'
import * as Context from 'effect/Context'
import * as Effect from 'effect/Effect'
import * as Exit from 'effect/Exit'
import * as Fiber from 'effect/Fiber'
import { type Arrow, effect, fromFiber, lift } from '../arrow/index.ts'
import { ensuring, fail as failing, fork, never, sleep } from '../fiber/index.ts'
import { until } from '../base/wait.test.support.ts'
import { fromArrow, toArrow } from './index.ts'

const Factor = Context.Reference<number>('effect-test/Factor', { defaultValue: () => 1 })
const arrowOf = <A, B, E>(fn: (input: A) => Effect.Effect<B, E>): Promise<Arrow<A, B, E, 'async'>> =>
  Effect.runPromise(toArrow(fn))

test('an arrow is an Effect', async () => {
  const parse = fromArrow(
    effect(
      (text: string) => Number(JSON.parse(text)),
      () => 'not JSON' as const,
    ),
  )
  assert.equal(await Effect.runPromise(parse('4')), 4)
  assert.equal(await Effect.runPromise(Effect.flip(parse('{'))), 'not JSON')
  const broken = await Effect.runPromiseExit(
    fromArrow(
      lift(() => {
        throw new RangeError('bug')
      }),
    )(0),
  )
  assert.ok(
    Exit.isFailure(broken) && Cause.squash(broken.cause) instanceof RangeError && Cause.hasDies(broken.cause),
  )
})

test('other failures of an arrow are other reasons', async () => {
  const body = () =>
    ensuring(failing('first' as const), () => {
      throw new RangeError('clean-up')
    })
  const exit = await Effect.runPromiseExit(fromArrow(fromFiber(body))(undefined))
  assert.deepEqual(Exit.isFailure(exit) && exit.cause.reasons.map(({ _tag }) => _tag), ['Fail', 'Die'])
})

test('an interrupt of the Effect interrupts the run of the arrow', async () => {
  const state = { begun: false, ended: false }
  const arrow = fromFiber(function* () {
    state.begun = true
    try {
      yield* never()
    } finally {
      state.ended = true
    }
  })
  const fiber = Effect.runFork(fromArrow(arrow)(undefined))
  await until(() => state.begun)
  await Effect.runPromise(Fiber.interrupt(fiber))
  await until(() => state.ended)
})

test('an Effect is an arrow, with the services of the one that makes it', async () => {
  const times = toArrow((n: number) => Effect.map(Factor, (factor) => n * factor))
  const arrow = await Effect.runPromise(Effect.provideService(times, Factor, 3))
  assert.equal(await arrow.map((n) => n + 1).run(5), 16)
})

test('failures, defects and several reasons are exits', async () => {
  const kinds = await arrowOf(
    (n: number) =>
      [
        Effect.fail('no' as const),
        Effect.die('bug'),
        Effect.interrupt,
        Effect.failCause(Cause.combine(Cause.die('bug'), Cause.fail('no' as const))),
        Effect.failCause(Cause.empty),
      ][n],
  )
  const exits = await Promise.all([0, 1, 2, 3, 4].map((n) => kinds.runExit(n)))
  assert.deepEqual(
    exits.map(({ kind }) => kind),
    ['failure', 'defect', 'interruption', 'failure', 'interruption'],
  )
  assert.deepEqual(exits[3], {
    kind: 'failure',
    error: 'no',
    others: [{ kind: 'defect', defect: 'bug', others: [] }],
  })
})

test('an interrupt of a fiber interrupts its Effect and waits for it', async () => {
  const state = { begun: false, ended: false }
  const arrow = await arrowOf(() =>
    Effect.sync(() => void (state.begun = true)).pipe(
      Effect.andThen(Effect.never),
      Effect.onInterrupt(() =>
        Effect.promise(() => fork(sleep(1)).join()).pipe(Effect.map(() => void (state.ended = true))),
      ),
    ),
  )
  const fiber = fork(arrow.toFiber()(undefined))
  await until(() => state.begun)
  const exit = await fiber.interrupt('enough')
  assert.deepEqual([exit.kind, state.ended], ['interruption', true])
  const signal = AbortSignal.abort('why')
  await assert.rejects(
    async () => arrow.run(undefined, signal),
    (why) => why === 'why',
  )
})
