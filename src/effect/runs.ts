/**
 * Fleets and durable runs as scoped Effects, and steps that are Effects.
 *
 * A run itself is a body of fibers, whose journal decides what runs again; only what is outside of it, and
 * its steps, are Effects. An interrupt ends the wait for a run, not the run: that is `run.cancel()`.
 */
import * as Cause from 'effect/Cause'
import * as Effect from 'effect/Effect'
import type { Scope } from 'effect/Scope'
import { CorespunError } from '../base/index.ts'
import { type Durable, type RunCodes, type Runs, type RunsOptions, runs } from '../durable/index.ts'
import { type ConnectOptions, type Fleet, type FleetCodes, connect } from '../fleet/index.ts'
import { type Failures, TaskError, awaiting, failed } from './errors.ts'

/** Durable runs for Effects. */
export interface EffectRuns<Definitions extends readonly Durable[]> {
  /** The runs themselves. */
  readonly runs: Runs<Definitions>
  /**
   * Any use: `work.use((runs) => runs.start('checkout', 250))`, `work.use(() => run.result())`. What the run
   * has failed with is a `TaskError`.
   */
  use<A>(
    body: (runs: Runs<Definitions>) => PromiseLike<A>,
  ): Effect.Effect<A, TaskError | Failures<RunCodes & FleetCodes>>
}

/**
 * A fleet that is closed with its scope: `Layer.effect(Work, makeFleet('sqlite:work.db'))`. Its jobs, locks
 * and rooms are promises, as everywhere.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { makeFleet } from 'corespun/effect'
 *
 * const program = Effect.map(makeFleet('memory:'), (fleet) => typeof fleet.lock)
 * assert.equal(await Effect.runPromise(Effect.scoped(program)), 'function')
 * ```
 */
export function makeFleet(
  address: string,
  options?: ConnectOptions,
): Effect.Effect<Fleet, Failures<FleetCodes>, Scope> {
  return Effect.acquireRelease(
    awaiting(() => connect(address, options), failed<FleetCodes>),
    (fleet) => Effect.promise(() => fleet.close()),
  )
}

/**
 * Runs of definitions, until the scope ends; another process, or the next start, continues them.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { durable, step } from 'corespun/durable'
 * import { makeFleet, makeRuns, toStep } from 'corespun/effect'
 *
 * const program = Effect.gen(function* () {
 *   const charge = yield* toStep((cents: number) => Effect.succeed(`charged ${cents}`))
 *   const checkout = durable('checkout', (cents: number) => step('charge', charge, [cents]))
 *   const work = yield* makeRuns(yield* makeFleet('memory:'), { definitions: [checkout] })
 *   const run = yield* work.use((runs) => runs.start('checkout', 250))
 *   return yield* work.use(() => run.result())
 * })
 * assert.equal(await Effect.runPromise(Effect.scoped(program)), 'charged 250')
 * ```
 */
export function makeRuns<const Definitions extends readonly Durable[]>(
  fleet: Fleet,
  options: RunsOptions<Definitions>,
): Effect.Effect<EffectRuns<Definitions>, Failures<RunCodes & FleetCodes>, Scope> {
  return Effect.acquireRelease(
    awaiting(() => runs(fleet, options), failed<RunCodes & FleetCodes>),
    (made) => Effect.promise(() => made.close()),
  ).pipe(Effect.map((made) => ({ runs: made, use: (body) => awaiting(async () => body(made), refused) })))
}

function refused(error: unknown): Effect.Effect<never, TaskError | Failures<RunCodes & FleetCodes>> {
  return error instanceof CorespunError ? failed(error) : Effect.fail(new TaskError(error))
}

/**
 * A function for `step()` from one that returns an Effect; it keeps the services of the Effect that makes it.
 * The signal of an attempt interrupts it, and a failure is what the attempt has failed with.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { toStep } from 'corespun/effect'
 *
 * const double = await Effect.runPromise(toStep((n: number) => Effect.succeed(n * 2)))
 * assert.equal(await double(21), 42) // step('double', double, [21]) in a run
 * ```
 */
export function toStep<Args extends unknown[], A, E, R>(
  fn: (...args: Args) => Effect.Effect<A, E, R>,
): Effect.Effect<(...args: Args) => Promise<A>, never, R> {
  return Effect.contextWith((context) =>
    Effect.succeed(async (...args: Args) => {
      const last = (args.at(-1) ?? {}) as { readonly signal?: unknown }
      const signal = last.signal instanceof AbortSignal ? last.signal : undefined
      signal?.throwIfAborted()
      const effect = Effect.provideContext(
        Effect.suspend(() => fn(...args)),
        context,
      )
      const exit = await Effect.runPromiseExit(effect, signal === undefined ? {} : { signal })
      if (exit._tag === 'Success') return exit.value
      if (Cause.hasInterruptsOnly(exit.cause)) signal?.throwIfAborted()
      throw Cause.squash(exit.cause)
    }),
  )
}
