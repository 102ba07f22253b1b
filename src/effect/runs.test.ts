/**
 * Durable runs as Effects: steps with services, failures by tag, and what the scope closes.
 *
 * The engine is memory.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as Cause from 'effect/Cause'
import * as Context from 'effect/Context'
import * as Effect from 'effect/Effect'
import * as Exit from 'effect/Exit'
import * as Layer from 'effect/Layer'
import { until } from '../base/wait.test.support.ts'
import { durable, signal, step } from '../durable/index.ts'
import { TaskError, makeFleet, makeRuns, toStep } from './index.ts'

class Bank extends Context.Service<Bank, { charge(cents: number): Effect.Effect<string, Error> }>()('Bank') {
  static readonly layer = Layer.succeed(Bank)({
    charge: (cents) => (cents > 0 ? Effect.succeed(`charged ${cents}`) : Effect.fail(new Error('nothing'))),
  })
}

const made = Effect.gen(function* () {
  const charge = yield* toStep((cents: number) => Effect.flatMap(Bank, (bank) => bank.charge(cents)))
  const never = yield* toStep(() => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (cut += 1))))
  const checkout = durable('checkout', (cents: number) => step('charge', charge, [cents]))
  const late = durable('late', () => step('never', never, [], { timeoutMs: 1 }))
  const waits = durable('waits', () => signal<string>('go'))
  const aborted = durable('aborted', () =>
    step('abort', () => Promise.reject(new DOMException('late', 'AbortError'))),
  )
  return yield* makeRuns(yield* makeFleet('memory:'), { definitions: [checkout, late, waits, aborted] })
})
let cut = 0
const scoped = <A, E>(effect: Effect.Effect<A, E, Bank | import('effect/Scope').Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(Effect.provide(effect, Bank.layer)))

test('a step is an Effect with the services of its maker, and its failure is that of the run', () =>
  scoped(
    Effect.gen(function* () {
      const work = yield* made
      const run = yield* work.use((runs) => runs.start('checkout', 5, { key: 'five' }))
      assert.equal(yield* work.use(() => run.result()), 'charged 5')
      const empty = yield* work.use((runs) => runs.start('checkout', 0))
      const error = yield* Effect.flip(work.use(() => empty.result()))
      assert.ok(error instanceof TaskError && error.message === 'nothing')
      const late = yield* work.use((runs) => runs.start('aborted', undefined))
      assert.equal((yield* Effect.flip(work.use(() => late.result())))._tag, 'TaskError')
      const unknown = yield* Effect.flip(work.use((runs) => runs.get('waits', 'none').result()))
      assert.equal(unknown._tag, 'RUN_UNKNOWN')
      const wrong = yield* Effect.exit(work.use((runs) => runs.start('other' as never, 1 as never)))
      assert.ok(Exit.isFailure(wrong) && Cause.hasDies(wrong.cause))
    }),
  ))

test('the end of an attempt interrupts its Effect', () =>
  scoped(
    Effect.gen(function* () {
      const work = yield* made
      const run = yield* work.use((runs) => runs.start('late', undefined))
      const error = yield* Effect.flip(work.use(() => run.result()))
      assert.equal(error._tag, 'RUN_STEP_TIMEOUT')
      yield* Effect.promise(() => until(() => cut === 1))
    }),
  ))

test('an interrupt ends the wait for a run; the scope closes the runs and then the fleet', async () => {
  const work = await scoped(
    Effect.gen(function* () {
      const work = yield* made
      const run = yield* work.use((runs) => runs.start('waits', undefined))
      const raced = Effect.raceFirst(
        work.use(() => run.result()),
        Effect.succeed('interrupted'),
      )
      assert.equal(yield* raced, 'interrupted')
      yield* work.use(() => run.signal('go', 'on'))
      assert.equal(yield* work.use(() => run.result()), 'on')
      return work
    }),
  )
  const closed = await Effect.runPromise(Effect.flip(work.use((runs) => runs.start('waits', undefined))))
  assert.equal(closed._tag, 'RUN_CLOSED')
  const nowhere = await Effect.runPromise(Effect.exit(Effect.scoped(makeFleet('nowhere:'))))
  assert.ok(Exit.isFailure(nowhere))
})

test('an attempt rejects with its signal’s reason; one that was aborted calls nothing', async () => {
  let calls = 0
  const work = await Effect.runPromise(
    toStep((_: object) => {
      calls += 1
      return Effect.never
    }),
  )
  const controller = new AbortController()
  const reason = new Error('why')
  const attempt = work({ signal: controller.signal })
  controller.abort(reason)
  await assert.rejects(attempt, reason)
  await assert.rejects(work({ signal: controller.signal }), reason)
  assert.equal(calls, 1)
})

test('anything but a fleet is refused by name', async () => {
  for (const fleet of [null, undefined, {}])
    await assert.rejects(Effect.runPromise(Effect.scoped(makeRuns(fleet as never, { definitions: [] }))), {
      code: 'RUN_ARGUMENT',
    })
})
