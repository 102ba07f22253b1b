/**
 * `validate` and `zip`: all bodies with all their errors, and one after the other.
 *
 * `all` ends at the first failure, which is what most programs need; a form is checked as a whole.
 */
import { type Nursery, inNursery } from '../core/nursery.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { within } from '../core/promises.ts'
import {
  type PartFailure,
  type Parts,
  type Part,
  type Values,
  bodiesOf,
  collect,
  decided,
  failedTogether,
  likeParts,
} from './combine.ts'

/**
 * Runs all bodies as fibers, waits for all and returns their values, as an array or a record. If some fail,
 * it fails with an AggregateError of all failures in the bodies' order; a defect or an interruption among
 * them is the outcome instead.
 * @throws {FiberError} `FIBER_ARGUMENT`, `FIBER_REQUIRED`, as {@link all}.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { exitOf, fail, fork, validate } from 'corespun/fiber'
 *
 * const form = { name: fail('no name'), age: () => 7, mail: fail('no mail') }
 * const exit = await fork(exitOf(validate(form))).join()
 * assert.deepEqual(exit.kind === 'failure' && exit.error.errors, ['no name', 'no mail'])
 * ```
 */
export function validate<const P extends readonly Part[] | Parts>(
  parts: P,
): Operation<Values<P>, AggregateError & { readonly errors: PartFailure<P[keyof P]>[] }> {
  return inNursery('validate()', parts, validated) as Operation<Values<P>, never>
}

function* validated(nursery: Nursery, parts: readonly Part[] | Parts): Operation<unknown, unknown> {
  const exits = yield* collect(nursery, bodiesOf('validate', parts, true), false)
  const failed = exits.filter((exit) => exit.kind !== 'success')
  if (failed.length > 0)
    return yield* decided(nursery, failedTogether(failed, `${failed.length} of ${exits.length} failed`))
  return likeParts(
    parts,
    exits.map((exit) => (exit as { readonly value: unknown }).value),
  )
}

/**
 * Runs bodies in this fiber, one after the other, and returns their values; `all` runs them at once.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, sleep, zip } from 'corespun/fiber'
 *
 * assert.deepEqual(await fork(zip(() => 1, async () => 'two', sleep(1))).join(), [1, 'two', undefined])
 * ```
 */
export function* zip<const P extends readonly AnyBody[]>(
  ...bodies: P
): Operation<{ -readonly [K in keyof P]: ValueOf<P[K]> }, FailureOf<P[number]>> {
  const values: unknown[] = []
  for (const body of bodies) values.push(yield* within(body))
  return values as never
}
