/**
 * `parallelFinalizers`: what a body has acquired is released at the same time, not one after the other.
 *
 * The scope passes all its finalizers on as one, which runs them as fibers and waits for all.
 */
import { Exit, type Failed, withErrors } from '../core/exit.ts'
import type { Finalizer } from '../core/base-scope.ts'
import { FiberScope } from '../core/fiber-scope.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { fromExit } from '../core/promises.ts'
import { concluded } from '../core/resources.ts'
import { allSettled } from './combine.ts'

/**
 * As {@link scoped}, but its finalizers run at the same time when it ends. All of them run, whatever fails.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { addFinalizer, fork, parallelFinalizers, sleep } from 'corespun/fiber'
 *
 * const closed: string[] = []
 * function* close(name: string, ms: number) {
 *   yield* sleep(ms)
 *   closed.push(name)
 * }
 * const body = () => {
 *   addFinalizer(() => close('fast', 1))
 *   addFinalizer(() => close('slow', 20))
 * }
 * await fork(parallelFinalizers(body)).join()
 * assert.deepEqual(closed, ['fast', 'slow'])
 * ```
 */
export function parallelFinalizers<const B extends AnyBody>(body: B): Operation<ValueOf<B>, FailureOf<B>> {
  return concluded('parallelFinalizers()', body, ParallelScope)
}

class ParallelScope extends FiberScope {
  override takeFinalizer(): Finalizer | undefined {
    const all: Finalizer[] = []
    for (let next = super.takeFinalizer(); next !== undefined; next = super.takeFinalizer()) all.push(next)
    return all.length < 2 ? all[0] : (exit) => together(all, exit)
  }
}

function* together(all: readonly Finalizer[], exit: Exit<unknown, unknown>): Operation<void, unknown> {
  const exits = yield* allSettled(all.map((finalizer) => () => finalizer(exit)))
  const errors = exits.filter(({ kind }) => kind !== 'success') as Failed[]
  yield* fromExit(withErrors(Exit.success(undefined), errors))
}
