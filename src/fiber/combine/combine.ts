/**
 * Many at once: `all`, `race`, `any`, `allSettled`, `forEach`, `timeout`; and `catchAll`, `exitOf` for one.
 *
 * They mean what Promise's words mean, but for one thing: nothing is left running. When the outcome stands,
 * the children that are left are interrupted and waited for before it is given. What goes wrong in them then
 * comes behind an outcome that is a failure; a value stays the outcome, and it is an uncaughtException.
 */
import { integer, optionsOf } from '../../base/index.ts'
import { FiberError, checkMs, wrong } from '../errors.ts'
import { Exit, type Failed, type Failure, withErrors } from '../core/exit.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import { Fiber } from '../core/fiber.ts'
import { type Nursery, inNursery } from '../scope/nursery.ts'
import type { Operation } from '../core/op.ts'
import { Caught, exitWithin, fromExit } from './promises.ts'
import { turn } from '../scheduler/scheduler.ts'

/** A body, or a fiber that runs already and that is joined. */
type Part = AnyBody | Fiber<unknown, unknown>
type PartValue<P> = P extends Fiber<infer A, infer _E> ? A : ValueOf<P>
type PartFailure<P> = P extends Fiber<infer _A, infer E> ? E : FailureOf<P>
/** Parts by their names. */
type Parts = { readonly [name: string]: Part }
type Values<P> = { -readonly [K in keyof P]: PartValue<P[K]> }
type Exits<P> = { -readonly [K in keyof P]: Exit<PartValue<P[K]>, PartFailure<P[K]>> }

const LOST = Exit.interruption('the others have decided')

/**
 * Run all as fibers and give their values: of an array in its order, of a record under its names. The first
 * that fails interrupts the others and is thrown; it is the reason that they see, and the `cause` of their
 * InterruptedErrors when it is an error. A Fiber among them is joined, and goes on when others fail.
 */
export function all<const P extends readonly Part[] | Parts>(
  parts: P,
): Operation<Values<P>, PartFailure<P[keyof P]>> {
  return inNursery('all()', function* (nursery) {
    const exits = yield* collect(nursery, bodiesOf('all', parts, true), (exit) => exit.kind !== 'success')
    return likeParts(
      parts,
      exits.map((exit) => (exit as { value: unknown }).value),
    )
  }) as Operation<Values<P>, PartFailure<P[keyof P]>>
}

/**
 * Run all as fibers and give their exits, of an array or of a record as `all` does; no exit interrupts the
 * others.
 */
export function allSettled<const P extends readonly Part[] | Parts>(parts: P): Operation<Exits<P>> {
  return inNursery('allSettled()', function* (nursery) {
    return likeParts(parts, yield* collect(nursery, bodiesOf('allSettled', parts, true), () => false))
  }) as Operation<Exits<P>>
}

/**
 * Run all as fibers and do as the first that ends, with a value or otherwise. With none it waits for ever, as
 * `Promise.race` does. A value stays the outcome whatever goes wrong in the losers: the failure of one that
 * ended as well is dropped; what a finalizer of one throws is an `uncaughtException` (`FIBER_UNHANDLED`).
 */
export function race<const P extends readonly Part[]>(
  parts: P,
): Operation<PartValue<P[number]>, PartFailure<P[number]>> {
  return inNursery('race()', function* (nursery) {
    for (const body of bodiesOf('race', parts)) {
      nursery.fork(body)
      if (nursery.hasNews) break
    }
    const first = (yield* nursery.next()) as Fiber
    return yield* decided(nursery, first.exit as Exit<unknown, unknown>)
  }) as Operation<PartValue<P[number]>, PartFailure<P[number]>>
}

/**
 * Run all as fibers and give the first value. When none has one it fails with an AggregateError of the
 * failures in order; a defect or an interruption among them is the outcome instead.
 */
export function any<const P extends readonly Part[]>(
  parts: P,
): Operation<PartValue<P[number]>, AggregateError> {
  return inNursery('any()', function* (nursery) {
    const bodies = bodiesOf('any', parts)
    const places = new Map<Fiber, number>()
    const failed: { place: number; exit: Failed }[] = []
    for (;;) {
      if (places.size < bodies.length && !nursery.hasNews) {
        places.set(nursery.fork(bodies[places.size]), places.size)
        continue
      }
      if (failed.length === bodies.length) return yield* fromExit(noneOf(failed))
      const fiber = (yield* nursery.next()) as Fiber
      const exit = fiber.exit as Exit<unknown, unknown>
      if (exit.kind === 'success') return yield* decided(nursery, exit)
      failed.push({ place: places.get(fiber) as number, exit })
    }
  }) as Operation<PartValue<P[number]>, AggregateError>
}

const FOR_EACH = { concurrency: integer(1, Infinity, 16) }

/** How `forEach` runs. */
export interface ForEachOptions {
  /** Most items at work at one time, 1 or more. Default 16. */
  readonly concurrency?: number
}

/**
 * Run `work` for each item, so many at a time, and give the values in the items' order. The first failure
 * interrupts what is at work and takes no further item.
 * @param work Called as a body is: it may be a generator function, async, or plain.
 * @throws {FiberError} `FIBER_ARGUMENT`.
 */
export function forEach<I, R>(
  items: Iterable<I>,
  work: (item: I, index: number) => R,
  options?: ForEachOptions,
): Operation<ValueOf<() => R>[], FailureOf<() => R>> {
  const { concurrency } = optionsOf(options, FOR_EACH, wrong, 'forEach()')
  if (typeof (items as Partial<Iterable<I>> | null)?.[Symbol.iterator] !== 'function')
    throw wrong('forEach(): items', 'an iterable', items)
  if (typeof work !== 'function') throw wrong('forEach(): work', 'a function', work)
  return inNursery('forEach()', function* (nursery) {
    const values: unknown[] = []
    const places = new Map<Fiber, number>()
    const iterator = items[Symbol.iterator]()
    // Also while it runs: an iterator that throws has ended.
    let isAtEnd = false
    try {
      for (;;) {
        while (!isAtEnd && places.size < concurrency && !nursery.hasNews) {
          isAtEnd = true
          const { done, value } = iterator.next()
          if (done === true) break
          isAtEnd = false
          const index = values.push(undefined) - 1
          places.set(nursery.fork(() => work(value, index)) as Fiber, index)
        }
        if (places.size === 0) return values
        const fiber = (yield* nursery.next()) as Fiber
        const exit = fiber.exit as Exit<unknown, unknown>
        if (exit.kind !== 'success') return yield* decided(nursery, exit)
        values[places.get(fiber) as number] = exit.value
        places.delete(fiber)
      }
    } finally {
      if (!isAtEnd) iterator.return?.()
    }
  }) as Operation<ValueOf<() => R>[], FailureOf<() => R>>
}

/**
 * Run a body as a fiber for so many ms at most; then it is interrupted, and when its finalizers have run this
 * fails with a FiberError `FIBER_TIMEOUT`.
 * @throws {FiberError} `FIBER_ARGUMENT`.
 */
export function timeout<const B extends AnyBody>(
  ms: number,
  body: B,
): Operation<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_TIMEOUT'>> {
  checkMs('timeout(): ms', ms, Infinity)
  return inNursery('timeout()', function* (nursery) {
    const untilMs = turn.scheduler.nowMs() + ms
    const fiber = nursery.fork(body)
    if ((yield* nursery.next(untilMs)) !== undefined) return yield* fromExit(fiber.exit as never)
    const late = new FiberError('FIBER_TIMEOUT', { timeoutMs: ms })
    const errors = yield* nursery.close(Exit.interruption(late))
    return yield* fromExit(withErrors(Exit.failure(late), errors))
  }) as Operation<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_TIMEOUT'>>
}

/**
 * Run a body in this fiber and give its exit. An interrupt of this fiber goes past: the exit of an
 * interruption is that of a fiber the body has joined.
 */
export function exitOf<const B extends AnyBody>(body: B): Operation<Exit<ValueOf<B>, FailureOf<B>>> {
  return exitWithin(body)
}

/**
 * Run a body in this fiber; when it fails, `handler` goes on with the failure. Defects and interruptions go
 * past: only a failure is one of the body's own words.
 * @throws {FiberError} `FIBER_ARGUMENT`.
 */
export function catchAll<const B extends AnyBody, R>(
  body: B,
  handler: (error: FailureOf<B>) => R,
): Operation<ValueOf<B> | ValueOf<() => R>, FailureOf<() => R>> {
  if (typeof handler !== 'function') throw wrong('catchAll(): handler', 'a function', handler)
  return new Caught(body, handler) as unknown as Operation<ValueOf<B> | ValueOf<() => R>, FailureOf<() => R>>
}

/** Fork all and wait for all, or until one of them `decides`; then that is the outcome. */
function* collect(
  nursery: Nursery,
  bodies: readonly AnyBody[],
  decides: (exit: Exit<unknown, unknown>) => boolean,
): Operation<Exit<unknown, unknown>[], unknown> {
  const fibers: Fiber[] = []
  let heardCount = 0
  while (heardCount < bodies.length) {
    if (fibers.length < bodies.length && !nursery.hasNews) {
      fibers.push(nursery.fork(bodies[fibers.length]))
      continue
    }
    const { exit } = (yield* nursery.next()) as Fiber
    heardCount += 1
    if (decides(exit as Exit<unknown, unknown>)) yield* decided(nursery, exit as Exit<unknown, unknown>)
  }
  return fibers.map(({ exit }) => exit as Exit<unknown, unknown>)
}

/** The outcome stands: interrupt the rest, wait for them, and do as `exit` says. */
function* decided<A, E>(nursery: Nursery, exit: Exit<A, E>): Operation<A, unknown> {
  let isClosed = false
  try {
    if (exit.kind === 'success') yield* nursery.dismiss(LOST)
    const errors = exit.kind === 'success' ? [] : yield* nursery.close(exit)
    isClosed = true
    return yield* fromExit(withErrors(exit, errors))
  } finally {
    // Interrupted meanwhile: what was decided is no outcome any more, and not forgotten.
    if (!isClosed && exit.kind !== 'success') nursery.host.more().addError(exit)
  }
}

function noneOf(failed: { place: number; exit: Failed }[]): Failed {
  const exits = failed.sort((one, two) => one.place - two.place).map(({ exit }) => exit)
  const [worse, ...rest] = exits.filter(({ kind }) => kind !== 'failure')
  if (worse !== undefined) return withErrors(worse, rest) as Failed
  const errors = exits.map((exit) => (exit as Failure<unknown>).error)
  return Exit.failure(new AggregateError(errors, `none of ${errors.length} succeeded`))
}

function bodiesOf(call: string, parts: readonly Part[] | Parts, takesRecord = false): AnyBody[] {
  const isList = typeof parts === 'object' && parts !== null && Symbol.iterator in parts
  if (!isList && !(takesRecord && isRecord(parts)))
    throw wrong(`${call}(): the bodies`, takesRecord ? 'an array or a record' : 'an array', parts)
  const list: readonly Part[] = isList ? [...parts] : Object.values(parts)
  return list.map((part) => (part instanceof Fiber ? joining(part) : part))
}

function isRecord(parts: unknown): boolean {
  if (typeof parts !== 'object' || parts === null) return false
  const above: unknown = Object.getPrototypeOf(parts)
  return above === Object.prototype || above === null
}

/** `results` as `parts` were: a list, or under their names. */
function likeParts(parts: object, results: readonly unknown[]): unknown {
  if (Symbol.iterator in parts) return results
  return Object.fromEntries(Object.keys(parts).map((name, index) => [name, results[index]]))
}

function* joining(fiber: Fiber): Operation<unknown, unknown> {
  return yield* fiber.join()
}
