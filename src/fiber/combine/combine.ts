/**
 * Many at once: `all`, `race`, `any`, `allSettled`, `timeout`; and `catchAll`, `exitOf` for one.
 *
 * They behave like their namesakes on `Promise`, except that nothing is left running. When the outcome is
 * decided, the remaining children are interrupted and waited for before it is returned. Their errors are then
 * added to the `others` of a failure; if the outcome is a value, they go to the listeners of `onError`.
 */
import { FiberError, checkMs, notABody, wrong } from '../errors.ts'
import { Exit, type Failed, type Failure, withErrors } from '../core/exit.ts'
import { type AnyBody, type FailureOf, type ValueOf, isProgram } from '../core/fork.ts'
import { Fiber } from '../core/fiber.ts'
import { type Nursery, inNursery } from '../core/nursery.ts'
import type { Operation } from '../core/op.ts'
import { reportLoser, troublesBeside } from '../core/fiber-scope.ts'
import { Caught, exitWithin, fromExit } from '../core/promises.ts'
import { turn } from '../scheduler/scheduler.ts'

/** A body, or a fiber that runs already and that is joined. */
export type Part = AnyBody | Fiber<unknown, unknown>
type PartValue<P> = P extends Fiber<infer A, infer _E> ? A : ValueOf<P>
/** What a part can fail with. */
export type PartFailure<P> = P extends Fiber<infer _A, infer E> ? E : FailureOf<P>
/** The same by name. */
export type Parts = { readonly [name: string]: Part }
/** What they return. */
export type Values<P> = { -readonly [K in keyof P]: PartValue<P[K]> }
type Exits<P> = { -readonly [K in keyof P]: Exit<PartValue<P[K]>, PartFailure<P[K]>> }

const LOST = Exit.interruption('the others have decided')

/**
 * Runs all bodies as fibers and returns their values: an array for an array, a record for a record. The first
 * failure interrupts the others and is thrown; it is their interrupt's reason, and the `cause` of their
 * InterruptedErrors if it is an Error. A Fiber among the bodies is joined, and goes on when others fail.
 * @throws {FiberError} `FIBER_ARGUMENT` when `parts` is neither an array nor a record of bodies;
 *   `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { all, fork, sleep } from 'corespun/fiber'
 *
 * function* program() {
 *   return yield* all({ user: async () => 'Ann', orders: () => [1, 2], pause: sleep(1) })
 * }
 * assert.deepEqual(await fork(program()).join(), { user: 'Ann', orders: [1, 2], pause: undefined })
 * ```
 */
export function all<const P extends readonly Part[] | Parts>(
  parts: P,
): Operation<Values<P>, PartFailure<P[keyof P]>> {
  return inNursery('all()', parts, allOf) as Operation<Values<P>, PartFailure<P[keyof P]>>
}

function* allOf(nursery: Nursery, parts: readonly Part[] | Parts): Operation<unknown, unknown> {
  const exits = yield* collect(nursery, bodiesOf('all', parts, true), true)
  return likeParts(
    parts,
    exits.map((exit) => (exit as { value: unknown }).value),
  )
}

/**
 * Runs all bodies as fibers and returns their exits, as an array or a record. No exit interrupts the others.
 * @throws {FiberError} `FIBER_ARGUMENT`, `FIBER_REQUIRED`, as {@link all}.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { allSettled, fail, fork } from 'corespun/fiber'
 *
 * const [one, two] = await fork(allSettled([() => 1, fail('lost')])).join()
 * assert.deepEqual([one.kind, two.kind], ['success', 'failure'])
 * ```
 */
export function allSettled<const P extends readonly Part[] | Parts>(parts: P): Operation<Exits<P>> {
  return inNursery('allSettled()', parts, allSettledOf) as Operation<Exits<P>>
}

function* allSettledOf(nursery: Nursery, parts: readonly Part[] | Parts): Operation<unknown, unknown> {
  return likeParts(parts, yield* collect(nursery, bodiesOf('allSettled', parts, true), false))
}

/**
 * Runs all bodies as fibers and ends as the first one that ends, by a value or otherwise. Without bodies it
 * waits forever, as `Promise.race` does. A value remains the outcome whatever fails in the losers: a loser's
 * own failure is dropped; what its finalizer throws is a warning of the process (`FIBER_LOSER_FAILED`), or
 * goes to the listeners of {@link onError}.
 * @throws {FiberError} `FIBER_ARGUMENT` when `parts` is not an array of bodies; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, never, race } from 'corespun/fiber'
 *
 * assert.equal(await fork(race([never(), () => 'first'])).join(), 'first')
 * ```
 */
export function race<const P extends readonly Part[]>(
  parts: P,
): Operation<PartValue<P[number]>, PartFailure<P[number]>> {
  return inNursery('race()', parts, firstOf) as Operation<PartValue<P[number]>, PartFailure<P[number]>>
}

function* firstOf(nursery: Nursery, parts: readonly Part[]): Operation<unknown, unknown> {
  for (const body of bodiesOf('race', parts)) {
    nursery.fork(body)
    if (nursery.hasNews) break
  }
  const first = (yield* nursery.next()) as Fiber
  const exit = first.exit as Exit<unknown, unknown>
  return yield* exit.kind === 'success' ? won(nursery, exit, 'race()') : decided(nursery, exit)
}

/**
 * Runs all bodies as fibers and returns the first value. If all fail, it fails with an AggregateError of the
 * failures in the bodies' order; a defect or an interruption among them is the outcome instead. Losers of a
 * value are as those of {@link race}.
 * @throws {FiberError} `FIBER_ARGUMENT` when `parts` is not an array of bodies; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { any, fail, fork } from 'corespun/fiber'
 *
 * assert.equal(await fork(any([fail('mirror one is down'), () => 'mirror two'])).join(), 'mirror two')
 * ```
 */
export function any<const P extends readonly Part[]>(
  parts: P,
): Operation<PartValue<P[number]>, AggregateError> {
  return inNursery('any()', parts, anyOf) as Operation<PartValue<P[number]>, AggregateError>
}

function* anyOf(nursery: Nursery, parts: readonly Part[]): Operation<unknown, unknown> {
  const bodies = bodiesOf('any', parts)
  const indexes = new Map<Fiber, number>()
  const failed: { index: number; exit: Failed; fiber: Fiber }[] = []
  let isDecided = false
  try {
    for (;;) {
      if (indexes.size < bodies.length && !nursery.hasNews) {
        indexes.set(nursery.fork(bodies[indexes.size]), indexes.size)
        continue
      }
      isDecided = failed.length === bodies.length
      if (isDecided) return yield* decided(nursery, noneOf(failed))
      const fiber = (yield* nursery.next()) as Fiber
      const exit = fiber.exit as Exit<unknown, unknown>
      isDecided = exit.kind === 'success'
      if (exit.kind !== 'success') failed.push({ index: indexes.get(fiber) as number, exit, fiber })
      else {
        for (const loser of failed) reportLoser(loser.fiber, 'any()')
        return yield* won(nursery, exit, 'any()')
      }
    }
  } finally {
    if (!isDecided) for (const { exit } of failed) keep(nursery, exit)
  }
}

/**
 * Runs a body as a fiber for at most `ms` milliseconds. Then the fiber is interrupted, and after its
 * finalizers have run this fails with a FiberError `FIBER_TIMEOUT`.
 * @param ms 0 or more; `Infinity` for no limit.
 * @throws {FiberError} `FIBER_ARGUMENT` when `ms` is invalid; `FIBER_TIMEOUT`; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, never, timeout } from 'corespun/fiber'
 *
 * await assert.rejects(fork(timeout(5, never())).join(), { code: 'FIBER_TIMEOUT' })
 * ```
 */
export function timeout<const B extends AnyBody>(
  ms: number,
  body: B,
): Operation<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_TIMEOUT'>> {
  checkMs('timeout(): ms', ms, Infinity)
  return inNursery('timeout()', { ms, body }, inTime) as Operation<
    ValueOf<B>,
    FailureOf<B> | FiberError<'FIBER_TIMEOUT'>
  >
}

function* inTime(
  nursery: Nursery,
  { ms, body }: { readonly ms: number; readonly body: AnyBody },
): Operation<unknown, unknown> {
  const untilMs = turn.scheduler.nowMs() + ms
  const fiber = nursery.fork(body)
  if ((yield* nursery.next(untilMs)) !== undefined) return yield* fromExit(fiber.exit as never)
  const late = new FiberError('FIBER_TIMEOUT', { timeoutMs: ms })
  const errors = yield* nursery.close(Exit.interruption(late))
  return yield* fromExit(withErrors(Exit.failure(late), errors))
}

/**
 * Runs a body in this fiber and returns its exit. An interrupt of this fiber is not caught: an exit by
 * interruption is that of a fiber that the body has joined.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { exitOf, fail, fork } from 'corespun/fiber'
 *
 * const exit = await fork(exitOf(fail('busy'))).join()
 * assert.deepEqual(exit, { kind: 'failure', error: 'busy', others: [] })
 * ```
 */
export function exitOf<const B extends AnyBody>(body: B): Operation<Exit<ValueOf<B>, FailureOf<B>>> {
  return exitWithin(body)
}

/**
 * Runs a body in this fiber; if it fails, `handler` runs as a body with the failure. Defects and
 * interruptions are not caught.
 * @throws {FiberError} `FIBER_ARGUMENT` when `handler` is not a function; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { catchAll, fail, fork } from 'corespun/fiber'
 *
 * assert.equal(await fork(catchAll(fail('busy'), (error) => `caught: ${error}`)).join(), 'caught: busy')
 * ```
 */
export function catchAll<const B extends AnyBody, R>(
  body: B,
  handler: (error: FailureOf<B>) => R,
): Operation<ValueOf<B> | ValueOf<() => R>, FailureOf<() => R>> {
  if (typeof handler !== 'function') throw wrong('catchAll(): handler', 'a function', handler)
  return new Caught(body, handler) as unknown as Operation<ValueOf<B> | ValueOf<() => R>, FailureOf<() => R>>
}

/**
 * Runs a body in this fiber, however deep: a recursion by `yield* suspend(() => visit(next))` does not end at
 * the stack of the engine, as one by `yield* visit(next)` does.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Operation, fork, suspend } from 'corespun/fiber'
 *
 * function* count(n: number): Operation<number> {
 *   return n === 0 ? 0 : 1 + (yield* suspend(() => count(n - 1)))
 * }
 * assert.equal(await fork(count(20_000)).join(), 20_000)
 * ```
 */
export function suspend<const B extends AnyBody>(body: B): Operation<ValueOf<B>, FailureOf<B>> {
  return new Caught(body, undefined) as unknown as Operation<ValueOf<B>, FailureOf<B>>
}

/** Forks all and waits for all, or until one of them has failed if that decides. */
export function* collect(
  nursery: Nursery,
  bodies: readonly AnyBody[],
  isDecidedByFailure: boolean,
): Operation<Exit<unknown, unknown>[], unknown> {
  const fibers: Fiber[] = []
  const failed: Failed[] = []
  let endedCount = 0
  try {
    while (endedCount < bodies.length) {
      if (fibers.length < bodies.length && !nursery.hasNews) {
        fibers.push(nursery.fork(bodies[fibers.length]))
        continue
      }
      const exit = ((yield* nursery.next()) as Fiber).exit as Exit<unknown, unknown>
      endedCount += 1
      if (exit.kind === 'success') continue
      if (isDecidedByFailure) yield* decided(nursery, exit)
      else failed.push(exit)
    }
  } finally {
    if (endedCount < bodies.length) for (const exit of failed) keep(nursery, exit)
  }
  return fibers.map(({ exit }) => exit as Exit<unknown, unknown>)
}

/** Interrupts the losers, waits for them, and ends with the value of `exit`. */
function* won(nursery: Nursery, exit: Exit<unknown, unknown>, call: string): Operation<unknown, unknown> {
  yield* nursery.dismiss(LOST, call)
  return yield* fromExit(exit)
}

/** Interrupts the rest, waits for them, and ends with `exit` and their errors. */
export function* decided(nursery: Nursery, exit: Failed): Operation<never, unknown> {
  let isClosed = false
  try {
    const errors = yield* nursery.close(exit)
    isClosed = true
    return yield* fromExit(withErrors(exit, errors) as Failed)
  } finally {
    if (!isClosed) {
      // Interrupted meanwhile: the outcome becomes one of the errors of the interruption.
      const extra = nursery.host.more()
      extra.before ??= exit
      extra.addError(exit)
    }
  }
}

/** Interrupted before the outcome: what went wrong in a part is kept, as that of one that has not ended. */
function keep(nursery: Nursery, exit: Failed): void {
  for (const trouble of troublesBeside({ exit })) nursery.host.more().addError(trouble)
}

function noneOf(failed: { index: number; exit: Failed }[]): Failed {
  const exits = failed.sort((one, two) => one.index - two.index).map(({ exit }) => exit)
  return failedTogether(exits, `none of ${exits.length} succeeded`)
}

/** All of `exits` as one: an AggregateError of the failures, unless something worse is among them. */
export function failedTogether(exits: readonly Failed[], message: string): Failed {
  const [worse, ...rest] = exits.filter(({ kind }) => kind !== 'failure')
  if (worse !== undefined) return withErrors(worse, rest) as Failed
  const errors = exits.map((exit) => (exit as Failure<unknown>).error)
  return Exit.failure(
    new AggregateError(errors, message),
    exits.flatMap(({ others }) => others),
  )
}

export function bodiesOf(call: string, parts: readonly Part[] | Parts, takesRecord = false): AnyBody[] {
  const isList = typeof parts === 'object' && parts !== null && Symbol.iterator in parts && !isProgram(parts)
  if (!isList && !(takesRecord && isRecord(parts)))
    throw wrong(
      `${call}(): the bodies`,
      `an array${takesRecord ? ' or a record' : ''}, as in ${call}([one, two])`,
      parts,
    )
  const list: readonly Part[] = isList ? [...parts] : Object.values(parts)
  return list.map((part, index) => {
    if (part instanceof Fiber) return joining(part)
    if (typeof part === 'function' || isProgram(part)) return part
    throw notABody(`${call}(): ${isList ? `bodies[${index}]` : Object.keys(parts)[index]}`, part)
  })
}

function isRecord(parts: unknown): boolean {
  if (typeof parts !== 'object' || parts === null) return false
  const above: unknown = Object.getPrototypeOf(parts)
  return above === Object.prototype || above === null
}

/** `results` as `parts` were: a list, or under their names. */
export function likeParts(parts: object, results: readonly unknown[]): unknown {
  if (Symbol.iterator in parts) return results
  return Object.fromEntries(Object.keys(parts).map((name, index) => [name, results[index]]))
}

function* joining(fiber: Fiber): Operation<unknown, unknown> {
  return yield* fiber.join()
}
