/**
 * The arrow: an immutable value that describes a computation from A to B.
 *
 * Composing makes a node of a graph in nanoseconds and runs nothing. How a node runs: steps.ts (small and
 * synchronous), generate.ts (small and hot), interpreter.ts (all others).
 *
 * Over 400 lines: the class is the documented surface, and the functions that compose must be in its module,
 * or the engine does not inline them.
 */
import { TIMER_MS_MAX, assert, milliseconds, valueOfKind } from '../../base/index.ts'
import { Exit, type Operation, type Runnable, Schedule, attempt, fromExit } from '../../fiber/index.ts'
import { RUNNABLE } from '../../fiber/internal.ts'
import { Store } from '../../store/index.ts'
import type { AnyZone, Settled } from '../../zone/index.ts'
import { type AnyFarZone, isFar, isZone } from '../../zone/internal.ts'
import type { Either } from '../build/either.ts'
import { type ArrowError, wrong } from '../errors.ts'
import { explained } from './explain.ts'
import { exitOf } from '../build/failure.ts'
import { compile } from '../run/tiering.ts'
import { recognise, valueOf } from '../run/interpreter.ts'
import { runNode } from '../run/run-node.ts'
import { flagsOf, runOf, sizeOf, stepOf } from '../run/make.ts'
import {
  ASYNC,
  BIG,
  DYNAMIC,
  HOT_RUNS,
  OpCode,
  SIZE_MAX,
  SMALL_SIZE_MAX,
  type ArrowNode,
  type NodeRun,
  type Wait,
} from '../build/node.ts'
import { onWait } from '../remote/hop.ts'
import { LEAF_STEPS, STEPS } from '../run/steps.ts'
import { streamed, type StreamOptions } from './stream.ts'
import type { Join, Kind, Run } from '../types.ts'
import { retryWait, throughWait, timeoutWait, type KeyOf } from '../run/waits.ts'

// What composing uses, as constants of this module: the engine folds these, but not imported bindings. Only
// then is a node that is composed, run once and dropped never allocated.
const FUEL = 257
const SMALL = 64
assert(FUEL === HOT_RUNS && SMALL === SMALL_SIZE_MAX, 'the folded constants are those of the graph')
const runChain = STEPS.onceChain
const runChoice = STEPS.onceChoice
const runCompose = STEPS.onceCompose
const runEffect = STEPS.onceEffect
const runFirst = STEPS.onceFirst
const runLeft = STEPS.onceLeft
const runMerge = STEPS.onceMerge
const runRight = STEPS.onceRight
const runSecond = STEPS.onceSecond
const runSplit = STEPS.onceSplit
const runZip = STEPS.onceZip
const OP_CHAIN = OpCode.chain
const OP_ZIP = OpCode.zip
const OP_MERGE = OpCode.merge
const OP_SPLIT = OpCode.split
const OP_FIRST = OpCode.first
const OP_SECOND = OpCode.second
const OP_LEFT = OpCode.left
const OP_RIGHT = OpCode.right
const OP_CHOICE = OpCode.choice
const OP_EFFECT = OpCode.effect
const OP_CALL = OpCode.call

/** The argument of a method with an arrow, for errors. */
const ARGUMENTS: Readonly<Partial<Record<OpCode, string>>> = {
  [OP_CHAIN]: 'andThen(): next',
  [OP_ZIP]: 'zipWith(): that',
  [OP_MERGE]: 'merge(): that',
  [OP_SPLIT]: 'split(): that',
  [OP_CHOICE]: 'choice(): that',
}

/**
 * A computation from `A` to `B` that may fail with `E`.
 *
 * `K` is `'sync'` when `run` returns the value and `'async'` when it returns a promise. Arrows are immutable:
 * an arrow may be part of any number of others. Make one with `lift`, `effect`, `liftAsync` and the other
 * functions of this module.
 * @example
 * ```ts
 * import { effect, lift, succeed } from 'corespun/arrow'
 *
 * const parse = effect((text: string) => Number(JSON.parse(text)), () => 'not JSON' as const)
 * const half = parse.andThen(lift((x: number) => x / 2)).named('half')
 * console.log(half.run('6')) // 3
 * console.log(half.runExit('{').kind) // failure
 * console.log(half.catchAll(() => succeed(0)).run('{')) // 0
 * ```
 */
export class Arrow<in A, out B, out E = never, out K extends Kind = Kind> implements Runnable<A, B, E> {
  /**
   * Run the arrow. A synchronous arrow returns its value, any other a promise.
   *
   * A failure (of `fail`, `effect`, `mapError` and so on) is thrown or rejected with as it is; so is a
   * defect, any other error that a stage throws. Aborting the signal interrupts an arrow that waits: the
   * stage that it waits for receives the abort, and the promise rejects with the signal's reason. It
   * rejects at once when that stage is an asynchronous function or runs in a zone, and after the
   * finalizers when it is a fiber. It rejects with an `InterruptedError` when something else has
   * interrupted that fiber.
   * @throws the failure or the defect of a synchronous arrow.
   */
  declare readonly run: (input: A, signal?: AbortSignal) => Run<B, K>
  /** @internal */ declare readonly step: (input: never) => unknown
  /** @internal */ declare readonly op: OpCode
  /** @internal */ declare readonly flags: number
  /** @internal */ declare readonly size: number
  /** @internal */ declare fuel: number
  /** @internal */ declare readonly a: ArrowNode | null
  /** @internal */ declare readonly b: ArrowNode | null
  /** @internal */ declare readonly data: unknown
  /** @internal */ declare profile: unknown
  /** @internal */ declare parts: object | null
  /** For the compiler alone. @internal */
  declare readonly failures: () => E

  /** Use `lift` and the others. @internal */
  constructor(
    run: NodeRun,
    step: NodeRun,
    op: OpCode,
    flags: number,
    size: number,
    a: ArrowNode | null,
    b: ArrowNode | null,
    data: unknown,
  ) {
    this.run = run as never
    this.step = step
    this.op = op
    this.flags = flags
    this.size = size
    this.fuel = FUEL
    this.a = a
    this.b = b
    this.data = data
    this.profile = undefined
    this.parts = null
  }

  /** Run this, then `next` on its result. */
  andThen<C, E2, K2 extends Kind>(next: Arrow<B, C, E2, K2>): Arrow<A, C, E | E2, Join<K, K2>> {
    return two(runChain, OP_CHAIN, this, next, undefined)
  }

  /** Alias of {@link andThen}. */
  endThen<C, E2, K2 extends Kind>(next: Arrow<B, C, E2, K2>): Arrow<A, C, E | E2, Join<K, K2>> {
    return this.andThen(next)
  }

  /** Run `previous`, then this on its result. */
  compose<Z, E2, K2 extends Kind>(previous: Arrow<Z, A, E2, K2>): Arrow<Z, B, E | E2, Join<K, K2>> {
    return two(runCompose, OP_CHAIN, previous, this, undefined)
  }

  /** Apply a function to the result. An error that it throws is a defect. */
  map<C>(fn: (value: B) => C): Arrow<A, C, E, K> {
    return two(runChain, OP_CHAIN, this, call(fn, 'map()'), undefined)
  }

  /**
   * Run this, then the arrow that `fn` returns for the result, on the same input. That arrow is known only
   * while this one runs, so neither is fused or compiled; a failure before anything has waited is thrown by
   * `run` and not rejected with.
   */
  flatMap<A2 extends A, C, E2, K2 extends Kind>(
    fn: (value: B) => Arrow<A2, C, E2, K2>,
  ): Arrow<A2, C, E | E2, Join<K, K2>> {
    return made(OpCode.flatMap, this, null, checkedFunction('flatMap(): fn', fn))
  }

  /** Run this, then `that`, on the same input; return `fn` of both results. */
  zipWith<A2 extends A, C, D, E2, K2 extends Kind>(
    that: Arrow<A2, C, E2, K2>,
    fn: (mine: B, other: C) => D,
  ): Arrow<A2, D, E | E2, Join<K, K2>> {
    return two(runZip, OP_ZIP, this, that, checkedFunction('zipWith(): fn', fn))
  }

  /** Run this, then `that`, on the same input; return both results as a pair. */
  merge<A2 extends A, C, E2, K2 extends Kind>(
    that: Arrow<A2, C, E2, K2>,
  ): Arrow<A2, [B, C], E | E2, Join<K, K2>> {
    return two(runMerge, OP_MERGE, this, that, undefined)
  }

  /** Run this on the first side of a pair, then `that` on the second. */
  split<C, D, E2, K2 extends Kind>(
    that: Arrow<C, D, E2, K2>,
  ): Arrow<readonly [A, C], [B, D], E | E2, Join<K, K2>> {
    return two(runSplit, OP_SPLIT, this, that, undefined)
  }

  /** Run this on the first side of a pair; the second is unchanged. */
  first<C = unknown>(): Arrow<readonly [A, C], [B, C], E, K> {
    return one(runFirst, OP_FIRST, this)
  }

  /** Run this on the second side of a pair; the first is unchanged. */
  second<C = unknown>(): Arrow<readonly [C, A], [C, B], E, K> {
    return one(runSecond, OP_SECOND, this)
  }

  /** Run this on the value of a `Left`; a `Right` is unchanged. */
  left<C = unknown>(): Arrow<Either<A, C>, Either<B, C>, E, K> {
    return one(runLeft, OP_LEFT, this)
  }

  /** Run this on the value of a `Right`; a `Left` is unchanged. */
  right<C = unknown>(): Arrow<Either<C, A>, Either<C, B>, E, K> {
    return one(runRight, OP_RIGHT, this)
  }

  /**
   * Run this on the value of a `Left`, `that` on the value of a `Right`. An input that is not an
   * {@link Either} is a defect here and in `left` and `right`: an `ArrowError`, `ARROW_ARGUMENT`.
   */
  choice<C, D, E2, K2 extends Kind>(
    that: Arrow<C, D, E2, K2>,
  ): Arrow<Either<A, C>, B | D, E | E2, Join<K, K2>> {
    return two(runChoice, OP_CHOICE, this, that, undefined)
  }

  /** Run this, then return `value`. */
  as<const C>(value: C): Arrow<A, C, E, K> {
    return two(runChain, OP_CHAIN, this, made(OpCode.constant, null, null, value), undefined)
  }

  /** Run this, then return `undefined`. */
  unit(): Arrow<A, void, E, K> {
    return this.as(undefined)
  }

  /** Call `fn` with the result and return the result. What `fn` returns is ignored and not awaited. */
  tap(fn: (value: B) => unknown): Arrow<A, B, E, K> {
    const look = made<B, B, never, 'sync'>(OpCode.tap, null, null, checkedFunction('tap(): fn', fn))
    return two(runChain, OP_CHAIN, this, look, undefined)
  }

  /** Run this for its side effects; return the input. */
  keepInput<A2 extends A = A>(): Arrow<A2, A2, E, K> {
    return one(runEffect, OP_EFFECT, this)
  }

  /** Run this on the first side of a pair for its side effects; return the second side. */
  asEffect<C = unknown>(): Arrow<readonly [A, C], C, E, K> {
    const both: Arrow<readonly [A, C], [B, C], E, K> = one(runFirst, OP_FIRST, this)
    return two(runChain, OP_CHAIN, both, SECOND, undefined)
  }

  /** Map the failure. Defects are unchanged. */
  mapError<E2>(fn: (error: E) => E2): Arrow<A, B, E2, K> {
    return made(OpCode.mapError, this, null, checkedFunction('mapError(): fn', fn))
  }

  /** When this fails, run the arrow that `handler` returns, on the same input. Defects are unchanged. */
  catchAll<A2 extends A, C, E2, K2 extends Kind>(
    handler: (error: E) => Arrow<A2, C, E2, K2>,
  ): Arrow<A2, B | C, E2, Join<K, K2>> {
    return made(OpCode.catchAll, this, null, checkedFunction('catchAll(): handler', handler))
  }

  /**
   * Run this again after a failure, when the schedule allows it and after the schedule's delay. The arrow
   * fails with the last failure. Defects are not retried.
   * @throws {ArrowError} `ARROW_ARGUMENT` when `schedule` is not a `Schedule`.
   */
  retry(schedule: Schedule<E>): Arrow<A, B, E, 'async'> {
    if (!(schedule instanceof Schedule)) throw wrong('retry(): schedule', 'a Schedule', schedule)
    return waiting(retryWait(schedule as Schedule<never>, this))
  }

  /**
   * Fail with `ARROW_TIMEOUT` when this takes longer; the stage that it waits for is interrupted. A stage
   * that does not wait cannot be stopped, except in a zone.
   * @param timeoutMs Milliseconds, 0 to 2,147,483,647; `Infinity` for no limit.
   * @throws {ArrowError} `ARROW_ARGUMENT` when `timeoutMs` is anything else.
   */
  timeout(timeoutMs: number): Arrow<A, B, E | ArrowError<'ARROW_TIMEOUT'>, 'async'> {
    if (timeoutMs !== Infinity) valueOfKind('timeout()', 'timeoutMs', timeoutMs ?? null, TIME, wrong)
    return waiting(timeoutWait(timeoutMs, this))
  }

  /**
   * Name this part: in the stacks of errors that it throws, and in `explain`.
   * @throws {ArrowError} `ARROW_ARGUMENT` when `name` is not a string or is empty.
   */
  named(name: string): Arrow<A, B, E, K> {
    if (typeof name !== 'string' || name === '') throw wrong('named(): name', 'a non-empty string', name)
    return made(OpCode.named, this, null, name)
  }

  /**
   * Run this part in a zone, in one hop for all of its stages. Neighbours in the same zone share a hop.
   * `zone.node` is this thread and needs no hop; neither does a run in a worker of that zone. A zone of
   * other machines, `fleet.zone(name, { module })` of corespun/fleet, runs functions that its module has
   * declared by `exported`.
   * @throws {FunctionError} now, not at the first run, when a stage captures variables: the message names
   *   them. `exported` is for functions that need their module.
   * @throws {TransportError} when a constant cannot be transported.
   * @throws {ArrowError} `ARROW_ARGUMENT` when `zone` is not a zone; `ARROW_NOT_HOSTED` for a stage that a
   *   zone of other machines does not have.
   */
  on(zone: AnyZone | AnyFarZone): Arrow<A, B, E, 'async'> {
    if (!isZone(zone) && !isFar(zone)) throw wrong('on(): zone', 'a zone', zone)
    return waiting(onWait(zone, this))
  }

  /**
   * Cache results in a store, for all threads: while one thread computes a value the others wait for it.
   * Failures are not cached. Results must be transportable. An input that is a string is its own key.
   * @throws {ArrowError} `ARROW_ARGUMENT` when `store` is not a store.
   */
  through(this: Arrow<string, B, E, K>, store: Store<B>): Arrow<A, B, E, 'async'>
  /**
   * As above, for inputs that are not strings.
   * @param key Returns the key of an input.
   * @throws {ArrowError} `ARROW_ARGUMENT` when an argument is of the wrong type.
   */
  through<A2 extends A>(store: Store<B>, key: (input: A2) => string): Arrow<A2, B, E, 'async'>
  through(store: unknown, key?: unknown): Arrow<A, B, E, 'async'> {
    if (!(store instanceof Store)) throw wrong('through(): store', 'a store', store)
    if (key !== undefined) checkedFunction('through(): key', key)
    return waiting(throughWait(store as Store<never>, key as KeyOf | undefined, this as never))
  }

  /** Run the arrow and return how it ends, as an {@link Exit}. Never throws or rejects. */
  runExit(input: A, signal?: AbortSignal): Run<Exit<B, E>, K> {
    return this[RUNNABLE](input, signal) as Run<Exit<B, E>, K>
  }

  /**
   * Return a function that runs the arrow in a fiber: `yield* arrow.toFiber()(input)`. Interrupting the fiber
   * interrupts the run and waits for it.
   */
  toFiber(): (input: A) => Operation<B, E> {
    const begin = (input: A) => attempt((signal) => this[RUNNABLE](input, signal))
    return function* (input) {
      return yield* fromExit((yield* begin(input)) as Exit<B, E>)
    } as (input: A) => Operation<B, E>
  }

  /** Alias of {@link toFiber}. */
  toEffect(): (input: A) => Operation<B, E> {
    return this.toFiber()
  }

  /** `runExit` for `fork`. */
  [RUNNABLE](input: A, signal: AbortSignal | undefined): Exit<B, E> | Promise<Exit<B, E>> {
    let value: unknown
    try {
      value = runNode(this, input, signal)
    } catch (thrown) {
      const exit = exitOf(thrown) as Exit<B, E>
      return (this.flags & ASYNC) === 0 ? exit : Promise.resolve(exit)
    }
    // A promise that a stage of a synchronous arrow returns is its value; the interpreter's promise is not.
    if ((this.flags & (ASYNC | DYNAMIC)) !== 0 && value instanceof Promise) {
      const succeeded = (result: unknown): Exit<B, E> => Exit.success(valueOf(result) as B)
      return value.then(succeeded, exitOf) as Promise<Exit<B, E>>
    }
    const exit = Exit.success(valueOf(value) as B)
    return (this.flags & ASYNC) === 0 ? exit : Promise.resolve(exit)
  }

  /**
   * Run it over many inputs, some at once, and yield the results. It reads an input only when a run may
   * begin, so a slow reader slows the source; the source is opened when the reader first asks.
   *
   * The first failure in time ends the stream: it interrupts the runs, reads no more inputs, and throws after
   * the results in front of it, once the runs have ended and the source is closed. A reader that stops early
   * has the same effect. With `settle: true` failures and defects are outcomes in their turn, and only the
   * signal and the source's own errors end the stream.
   * @param options `concurrency`: most runs at once, 1 to 2^20, default 1; `ordered`: results in the order of
   *   the inputs, default true; `settle`: outcomes instead of values, default false; `signal`: ends all.
   * @throws {ArrowError} `ARROW_ARGUMENT` for `inputs` that cannot be iterated and for wrong options.
   */
  stream<A2 extends A>(
    inputs: Iterable<A2> | AsyncIterable<A2>,
    options: StreamOptions & { readonly settle: true },
  ): AsyncGenerator<Settled<B>, void, undefined>
  /** Without `settle`: the values; the first failure ends the stream. */
  stream<A2 extends A>(
    inputs: Iterable<A2> | AsyncIterable<A2>,
    options?: StreamOptions & { readonly settle?: false },
  ): AsyncGenerator<B, void, undefined>
  stream(
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options?: StreamOptions,
  ): AsyncGenerator<never, void, undefined> {
    return streamed(this, inputs, options) as AsyncGenerator<never, void, undefined>
  }

  /**
   * Generate the arrow's code now and not after its first 257 runs. Returns the arrow. Generated code is not
   * measured: `explain` has no times for an arrow that is compiled before it has run.
   */
  compiled(): this {
    if ((this.flags & (ASYNC | DYNAMIC | BIG)) === 0 && this.a !== null) compile(this)
    return this
  }

  /**
   * Describe how the arrow runs: what is fused, what waits, what runs in which zone. After runs the text has
   * times and the cost of hops. All hops are counted; other figures are of measured runs, and the first line
   * contains how many those are. An arrow of one synchronous stage and one that was `compiled` before it ran
   * have no times; a line of the text explains why.
   * @param options `format`: `text` (default), `mermaid` or `dot`.
   * @throws {ArrowError} `ARROW_ARGUMENT` for another format or an unknown option.
   */
  explain(options?: { readonly format?: 'text' | 'mermaid' | 'dot' }): string {
    return explained(this, options)
  }
}

const FINITE = milliseconds(TIMER_MS_MAX, NaN)
const TIME = { ...FINITE, expected: `${FINITE.expected}, or Infinity` }

recognise.isArrow = (value) => value instanceof Arrow

const SECOND = new Arrow<never, never, never, 'sync'>(
  LEAF_STEPS.secondOf as NodeRun,
  LEAF_STEPS.secondOf as NodeRun,
  OpCode.snd,
  0,
  1,
  null,
  null,
  undefined,
)

export function call<A, B>(fn: (input: A) => B, name = 'lift()'): Arrow<A, B, never, 'sync'> {
  if (typeof fn !== 'function') throw wrong(`${name}: fn`, 'a function', fn)
  return new Arrow(fn as NodeRun, fn as NodeRun, OP_CALL, 0, 1, null, null, fn)
}

export function made<A, B, E, K extends Kind>(
  op: OpCode,
  a: ArrowNode | null,
  b: ArrowNode | null,
  data: unknown,
): Arrow<A, B, E, K> {
  const size = sizeOf(op, a, b, data)
  const flags = flagsOf(op, a, b, data, size)
  const step = stepOf(op, data, flags)
  return new Arrow<A, B, E, K>(runOf(step, flags), step, op, flags, size, a, b, data)
}

export function waiting<A, B, E>(wait: Wait): Arrow<A, B, E, 'async'> {
  return made(OpCode.wait, null, null, wait)
}

/**
 * An arrow of one other. It has a single `new`: an object that one of two expressions may have made must be
 * allocated, one that the engine can eliminate costs nothing.
 */
export function one<A, B, E, K extends Kind>(once: NodeRun, op: OpCode, a: ArrowNode): Arrow<A, B, E, K> {
  let run = once
  let step = once
  let flags = a.flags
  const size = a.size + 1
  if (flags !== 0 || size > SMALL) {
    flags = flagsOf(op, a, null, undefined, size)
    step = stepOf(op, undefined, flags)
    run = runOf(step, flags)
  }
  return new Arrow<A, B, E, K>(run, step, op, flags, size, a, null, undefined)
}

/** An arrow of two others; a single `new`, as in `one`. */
function two<A, B, E, K extends Kind>(
  once: NodeRun,
  op: OpCode,
  a: ArrowNode,
  b: ArrowNode,
  data: unknown,
): Arrow<A, B, E, K> {
  if (!(a instanceof Arrow)) throw wrong('compose(): previous', 'an arrow', a)
  if (!(b instanceof Arrow)) throw wrong(ARGUMENTS[op] as string, 'an arrow', b)
  let run = once
  let step = once
  let flags = a.flags | b.flags
  let size = a.size + b.size + 1
  if (flags !== 0 || size > SMALL) {
    size = Math.min(size, SIZE_MAX)
    flags = flagsOf(op, a, b, data, size)
    step = stepOf(op, data, flags)
    run = runOf(step, flags)
  }
  return new Arrow<A, B, E, K>(run, step, op, flags, size, a, b, data)
}

export function checkedFunction<Fn>(name: string, fn: Fn): Fn {
  if (typeof fn !== 'function') throw wrong(name, 'a function', fn)
  return fn
}
