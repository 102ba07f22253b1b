/**
 * Fibers of a random script under a seed, for comparisons with an oracle that has arrays and a clock.
 *
 * Each begins at a time and may be interrupted at another. All times differ, so an oracle that takes them in
 * order is exact; `crowd` draws times that coincide, where only what must always hold can be checked.
 */
import fc from 'fast-check'
import type { AnyBody } from '../index.ts'
import { type Exit, type Fiber, fork, sleep } from '../index.ts'
import type { Operation } from '../core/op.ts'
import { within } from '../core/promises.ts'
import { turn } from '../scheduler/scheduler.ts'
import { simulate } from '../../test/played.test.support.ts'

/** One of a script: what it does, from when, and when it is interrupted if it has not ended. */
export interface Actor<Does> {
  readonly does: Does
  readonly atMs: number
  readonly cutMs: number
}

/** How one has ended, and when. */
export interface Outcome {
  readonly kind: Exit<unknown>['kind']
  readonly value: unknown
  readonly ms: number
}

const PRIMES = [
  2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
]

/** A fraction of a ms that no sum of others has. */
export function fraction(index: number): number {
  return Math.sqrt(PRIMES[index % PRIMES.length] + 100 * Math.floor(index / PRIMES.length)) % 1
}

/** Scripts of which half the actors are interrupted, at different times. */
export function scripts<Does>(does: fc.Arbitrary<Does>, maxLength = 12): fc.Arbitrary<Actor<Does>[]> {
  const actor = fc.record({ does, atMs: fc.nat(20), cutMs: fc.oneof(fc.nat(40), fc.constant(Infinity)) })
  return fc.array(actor, { maxLength }).map((actors) =>
    actors.map(({ does: one, atMs, cutMs }, index) => ({
      does: one,
      atMs: atMs + fraction(2 * index),
      cutMs: cutMs + fraction(2 * index + 1),
    })),
  )
}

/** Scripts whose actors begin and are interrupted at few moments, all at once. */
export function crowds<Does>(does: fc.Arbitrary<Does>, maxLength = 16): fc.Arbitrary<Actor<Does>[]> {
  const cutMs = fc.oneof(fc.nat(3), fc.constant(Infinity))
  return fc.array(fc.record({ does, atMs: fc.nat(3), cutMs }), { maxLength })
}

/** Runs a script under a seed, and `last` when all have ended. */
export async function play<Does>(
  seed: number,
  actors: readonly Actor<Does>[],
  bodyOf: (does: Does, index: number) => AnyBody,
  last: () => AnyBody = () => () => undefined,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  function* one({ atMs, does }: Actor<Does>, index: number): Operation<unknown> {
    yield* sleep(atMs)
    return yield* within(bodyOf(does, index))
  }
  function* watched(fiber: Fiber<unknown, unknown>, index: number): Operation<void> {
    const exit = yield* fiber.await()
    const value =
      exit.kind === 'success' ? exit.value : exit.kind === 'failure' ? codeOf(exit.error) : undefined
    outcomes[index] = { kind: exit.kind, value, ms: turn.scheduler.nowMs() }
  }
  function* cut(fiber: Fiber<unknown, unknown>, ms: number): Operation<void> {
    yield* sleep(ms)
    yield* fiber.interrupt('cut')
  }
  const run = await simulate(seed, function* () {
    const fibers = actors.map((actor, index) => {
      const fiber = fork(one(actor, index))
      const watcher = fork(watched(fiber, index))
      if (actor.cutMs < Infinity) fork(cut(fiber, actor.cutMs))
      return watcher
    })
    for (const fiber of fibers) yield* fiber.join()
    return yield* within(last())
  })
  if (run.exit.kind !== 'success') throw new Error(JSON.stringify(run.exit))
  if (run.reported.length > 0) throw run.reported[0]
  return outcomes
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown }).code ?? error
}
