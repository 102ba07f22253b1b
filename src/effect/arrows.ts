/**
 * Arrows as Effects, and Effects as arrows.
 *
 * An exit of either keeps its failure, defects and interruptions as the other's. Interrupting one
 * interrupts the other.
 */
import * as Effect from 'effect/Effect'
import { type Arrow, fromRunnable } from '../arrow/index.ts'
import { Exit, type Runnable } from '../fiber/index.ts'
import { RUNNABLE } from '../fiber/internal.ts'
import { awaiting, effectOf, exitOf } from './errors.ts'

/**
 * A function that runs an arrow: its failure is one of the Effect.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { effect } from 'corespun/arrow'
 * import { fromArrow } from 'corespun/effect'
 *
 * const parse = fromArrow(effect((text: string) => Number(JSON.parse(text)), () => 'not JSON' as const))
 * assert.equal(await Effect.runPromise(parse('7')), 7)
 * assert.equal(await Effect.runPromise(Effect.flip(parse('{'))), 'not JSON')
 * ```
 */
export function fromArrow<A, B, E>(arrow: Arrow<A, B, E>): (input: A) => Effect.Effect<B, E> {
  return (input) =>
    Effect.flatMap(
      awaiting<Exit<B, E>, never>(async (signal) => arrow.runExit(input, signal), Effect.die),
      effectOf,
    )
}

/**
 * An arrow that runs the Effect of each input, with the services of the Effect that makes it. It runs in the
 * thread that has made it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { toArrow } from 'corespun/effect'
 *
 * const half = await Effect.runPromise(
 *   toArrow((n: number) => (n % 2 === 0 ? Effect.succeed(n / 2) : Effect.fail('odd' as const))),
 * )
 * assert.equal(await half.map((n) => n + 1).run(8), 5)
 * assert.equal((await half.runExit(7)).kind, 'failure')
 * ```
 */
export function toArrow<A, B, E, R>(
  fn: (input: A) => Effect.Effect<B, E, R>,
): Effect.Effect<Arrow<A, B, E, 'async'>, never, R> {
  return Effect.contextWith((context) => {
    const runnable: Runnable<A, B, E> = {
      [RUNNABLE]: async (input, signal): Promise<Exit<B, E>> => {
        const effect = Effect.provideContext(
          Effect.suspend(() => fn(input)),
          context,
        )
        const exit = await Effect.runPromiseExit(effect, { signal })
        return exit._tag === 'Success' ? Exit.success(exit.value) : exitOf(exit.cause, signal?.reason)
      },
    }
    return Effect.succeed(fromRunnable(runnable))
  })
}
