/**
 * An arrow as its users see it: a value that describes a computation from A to B.
 *
 * Composing makes a node of a graph in nanoseconds and runs nothing. The words mean what they mean in ZIO
 * Arrow: `merge` gives one input to both, `split` a pair to each, `choice` an Either to one of both. How a
 * node runs is not here: steps.ts (small and synchronous), generate.ts (hot), interpreter.ts (all others).
 */
import { TIMER_MS_MAX, assert, milliseconds, valueOfKind } from '../../base/index.ts'
import {
  Exit,
  type Operation,
  type Runnable,
  type Schedule,
  Schedule as ScheduleClass,
  attempt,
  fromExit,
} from '../../fiber/index.ts'
import { RUNNABLE } from '../../fiber/internal.ts'
import { Store } from '../../store/index.ts'
import { type AnyZone, NodeZone, type Settled, Zone } from '../../zone/index.ts'
import type { Either } from './either.ts'
import { type ArrowError, wrong } from '../errors.ts'
import { explained } from '../explain.ts'
import { exitOf } from './failure.ts'
import { compile } from '../run/tiering.ts'
import { recognise, valueOf } from '../run/interpreter.ts'
import { runNode } from '../run/run-node.ts'
import { flagsOf, runOf, sizeOf, stepOf } from './make.ts'
import {
  ASYNC,
  BIG,
  DYNAMIC,
  HOT_RUNS,
  Op,
  SIZE_MAX,
  SMALL_SIZE_MAX,
  type Node,
  type OpCode,
  type Wait,
} from './node.ts'
import { onWait } from '../remote/hop.ts'
import { LEAF_STEPS, STEPS } from '../run/steps.ts'
import { streamed, type StreamOptions } from './stream.ts'
import type { Join, Kind, Run } from '../types.ts'
import { retryWait, throughWait, timeoutWait, type KeyOf } from '../run/waits.ts'

// What composing uses, as constants of this module: the engine folds these, and not what is imported. Then a
// node that is composed, run once and dropped is never made.
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
const OP_CHAIN = Op.chain
const OP_ZIP = Op.zip
const OP_MERGE = Op.merge
const OP_SPLIT = Op.split
const OP_FIRST = Op.first
const OP_SECOND = Op.second
const OP_LEFT = Op.left
const OP_RIGHT = Op.right
const OP_CHOICE = Op.choice
const OP_EFFECT = Op.effect
const OP_CALL = Op.call

type NodeRun = (this: Node, input: unknown, signal?: AbortSignal) => unknown

/**
 * A computation from `A` to `B` that fails with `E`.
 *
 * `K` says whether running it gives a value or a promise. Two arrows of one part share that part; nothing of
 * an arrow ever changes for those who use it.
 */
export class Arrow<in A, out B, out E = never, out K extends Kind = Kind> implements Runnable<A, B, E> {
  /**
   * Run it. A synchronous arrow returns its value, any other a promise.
   *
   * What a stage of `fail`, `effect` or `mapError` fails with is thrown (or rejected with) as it is; so is a
   * defect, what a stage threw otherwise. The signal interrupts arrows that wait: the stage that is waited
   * for is told, and the promise rejects with the signal's reason; at once where that stage is an
   * asynchronous function or in a zone, and where it is a fiber when its finalizers have run. Where a fiber
   * was interrupted by somebody else it rejects with an InterruptedError.
   * @throws the failure, or the defect, of a synchronous arrow.
   */
  declare readonly run: (input: A, signal?: AbortSignal) => Run<B, K>
  /** @internal */ declare readonly step: (input: never) => unknown
  /** @internal */ declare readonly op: OpCode
  /** @internal */ declare readonly flags: number
  /** @internal */ declare readonly size: number
  /** @internal */ declare fuel: number
  /** @internal */ declare readonly a: Node | null
  /** @internal */ declare readonly b: Node | null
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
    a: Node | null,
    b: Node | null,
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

  /** This, then `next` on its result. */
  andThen<C, E2, K2 extends Kind>(next: Arrow<B, C, E2, K2>): Arrow<A, C, E | E2, Join<K, K2>> {
    return two(runChain, OP_CHAIN, this, next, undefined)
  }

  /** `andThen`, by the name it has in the benchmarks of ZIO Arrow. */
  endThen<C, E2, K2 extends Kind>(next: Arrow<B, C, E2, K2>): Arrow<A, C, E | E2, Join<K, K2>> {
    return this.andThen(next)
  }

  /** `previous`, then this on its result. */
  compose<Z, E2, K2 extends Kind>(previous: Arrow<Z, A, E2, K2>): Arrow<Z, B, E | E2, Join<K, K2>> {
    return two(runCompose, OP_CHAIN, previous, this, undefined)
  }

  /** This, then a function on its result. What the function throws is a defect. */
  map<C>(fn: (value: B) => C): Arrow<A, C, E, K> {
    return two(runChain, OP_CHAIN, this, call(fn), undefined)
  }

  /**
   * This, then the arrow that `fn` returns for the result, on the same input. What comes is known only while
   * it runs, so this is neither fused nor compiled; where a failure comes before anything has waited, `run`
   * throws it instead of rejecting.
   */
  flatMap<A2 extends A, C, E2, K2 extends Kind>(
    fn: (value: B) => Arrow<A2, C, E2, K2>,
  ): Arrow<A2, C, E | E2, Join<K, K2>> {
    return made(Op.flatMap, this, null, checkedFunction('flatMap(): fn', fn))
  }

  /** This and `that` on the same input, this first; `fn` makes one value of both. */
  zipWith<A2 extends A, C, D, E2, K2 extends Kind>(
    that: Arrow<A2, C, E2, K2>,
    fn: (mine: B, other: C) => D,
  ): Arrow<A2, D, E | E2, Join<K, K2>> {
    return two(runZip, OP_ZIP, this, that, checkedFunction('zipWith(): fn', fn))
  }

  /** This and `that` on the same input, this first; both results as a pair. `&&&` */
  merge<A2 extends A, C, E2, K2 extends Kind>(
    that: Arrow<A2, C, E2, K2>,
  ): Arrow<A2, [B, C], E | E2, Join<K, K2>> {
    return two(runMerge, OP_MERGE, this, that, undefined)
  }

  /** This on the first of a pair, `that` on the second, this first. `***` */
  split<C, D, E2, K2 extends Kind>(
    that: Arrow<C, D, E2, K2>,
  ): Arrow<readonly [A, C], [B, D], E | E2, Join<K, K2>> {
    return two(runSplit, OP_SPLIT, this, that, undefined)
  }

  /** This on the first of a pair; the second passes. */
  first<C = unknown>(): Arrow<readonly [A, C], [B, C], E, K> {
    return one(runFirst, OP_FIRST, this)
  }

  /** This on the second of a pair; the first passes. */
  second<C = unknown>(): Arrow<readonly [C, A], [C, B], E, K> {
    return one(runSecond, OP_SECOND, this)
  }

  /** This on what is left; what is right passes. */
  left<C = unknown>(): Arrow<Either<A, C>, Either<B, C>, E, K> {
    return one(runLeft, OP_LEFT, this)
  }

  /** This on what is right; what is left passes. */
  right<C = unknown>(): Arrow<Either<C, A>, Either<C, B>, E, K> {
    return one(runRight, OP_RIGHT, this)
  }

  /**
   * This on what is left, `that` on what is right. `|||` An input that is no Either is not looked for: it
   * counts as right, with its `value`, which plain objects do not have.
   */
  choice<C, D, E2, K2 extends Kind>(
    that: Arrow<C, D, E2, K2>,
  ): Arrow<Either<A, C>, B | D, E | E2, Join<K, K2>> {
    return two(runChoice, OP_CHOICE, this, that, undefined)
  }

  /** This, then always the same value. */
  as<const C>(value: C): Arrow<A, C, E, K> {
    return two(runChain, OP_CHAIN, this, made(Op.constant, null, null, value), undefined)
  }

  /** This, then nothing: `undefined`. */
  unit(): Arrow<A, void, E, K> {
    return this.as(undefined)
  }

  /** This; `fn` looks at the result, what it returns is not used and not waited for. */
  tap(fn: (value: B) => unknown): Arrow<A, B, E, K> {
    const look = made<B, B, never, 'sync'>(Op.tap, null, null, checkedFunction('tap(): fn', fn))
    return two(runChain, OP_CHAIN, this, look, undefined)
  }

  /** This for what it does; the result is the input. */
  keepInput<A2 extends A = A>(): Arrow<A2, A2, E, K> {
    return one(runEffect, OP_EFFECT, this)
  }

  /** This on the first of a pair, for what it does; the result is the second: `first` and then `snd`. */
  asEffect<C = unknown>(): Arrow<readonly [A, C], C, E, K> {
    const both: Arrow<readonly [A, C], [B, C], E, K> = one(runFirst, OP_FIRST, this)
    return two(runChain, OP_CHAIN, both, SECOND, undefined)
  }

  /** The failure as another one. A defect passes. */
  mapError<E2>(fn: (error: E) => E2): Arrow<A, B, E2, K> {
    return made(Op.mapError, this, null, checkedFunction('mapError(): fn', fn))
  }

  /**
   * Where this fails, the arrow that `handler` returns for the failure, on the same input. A defect passes.
   */
  catchAll<A2 extends A, C, E2, K2 extends Kind>(
    handler: (error: E) => Arrow<A2, C, E2, K2>,
  ): Arrow<A2, B | C, E2, Join<K, K2>> {
    return made(Op.catchAll, this, null, checkedFunction('catchAll(): handler', handler))
  }

  /**
   * Again after a failure, as long and as late as the schedule says, which is given the failure; the last
   * failure is the arrow's. Defects are not tried again.
   * @throws {ArrowError} `ARROW_ARGUMENT`.
   */
  retry(schedule: Schedule<E>): Arrow<A, B, E, 'async'> {
    if (!(schedule instanceof ScheduleClass)) throw wrong('retry(): schedule', 'a Schedule', schedule)
    return waiting(retryWait(schedule as Schedule<never>, this))
  }

  /**
   * Fails with `ARROW_TIMEOUT` when this takes longer; what it waits for is interrupted. A stage that does
   * not wait cannot be stopped, except in a zone.
   * @param timeoutMs 0 to 2,147,483,647; `Infinity` for no limit.
   * @throws {ArrowError} `ARROW_ARGUMENT`.
   */
  timeout(timeoutMs: number): Arrow<A, B, E | ArrowError<'ARROW_TIMEOUT'>, 'async'> {
    if (timeoutMs !== Infinity) valueOfKind('timeout()', 'timeoutMs', timeoutMs ?? null, TIME, wrong)
    return waiting(timeoutWait(timeoutMs, this))
  }

  /**
   * A name for this part: in the stacks of errors that come out of it and in `explain`.
   * @throws {ArrowError} `ARROW_ARGUMENT`.
   */
  named(name: string): Arrow<A, B, E, K> {
    if (typeof name !== 'string' || name === '')
      throw wrong('named(): name', 'a string that is not empty', name)
    return made(Op.named, this, null, name)
  }

  /**
   * Run this part in a zone: one hop, however many stages. Neighbours placed in the same zone share the hop.
   * `zone.node` is this thread: no hop. In a worker of the zone itself there is none either.
   * @throws {FunctionError} (now, not at the first run) for a stage that captures variables, naming them; see
   *   `exported` for functions that need their module.
   * @throws {TransportError} for a constant that cannot travel. @throws {ArrowError} `ARROW_ARGUMENT`.
   */
  on(zone: AnyZone): Arrow<A, B, E, 'async'> {
    if (!(zone instanceof Zone || zone instanceof NodeZone)) throw wrong('on(): zone', 'a zone', zone)
    return waiting(onWait(zone, this))
  }

  /**
   * Remember results in a store, for all threads: what one is computing the others wait for. Failures are not
   * remembered. Results must be able to travel.
   * @param key The key of an input; an input that is a string is its own.
   * @throws {ArrowError} `ARROW_ARGUMENT`.
   */
  through(this: Arrow<string, B, E, K>, store: Store<B>): Arrow<A, B, E, 'async'>
  through<A2 extends A>(store: Store<B>, key: (input: A2) => string): Arrow<A2, B, E, 'async'>
  /** @throws {ArrowError} `ARROW_ARGUMENT`. */
  through(store: unknown, key?: unknown): Arrow<A, B, E, 'async'> {
    if (!(store instanceof Store)) throw wrong('through(): store', 'a store', store)
    if (key !== undefined) checkedFunction('through(): key', key)
    return waiting(throughWait(store as Store<never>, key as KeyOf | undefined, this as never))
  }

  /**
   * How it ends, as an {@link Exit}: success, failure, defect or interruption. Never throws or rejects.
   */
  runExit(input: A, signal?: AbortSignal): Run<Exit<B, E>, K> {
    return this[RUNNABLE](input, signal) as Run<Exit<B, E>, K>
  }

  /**
   * A function that runs it inside of a fiber: `yield* arrow.toFiber()(input)`. An interrupt of the fiber
   * interrupts the run, and waits for it.
   */
  toFiber(): (input: A) => Operation<B, E> {
    const begin = (input: A) => attempt((signal) => this[RUNNABLE](input, signal))
    return function* (input) {
      return yield* fromExit((yield* begin(input)) as Exit<B, E>)
    } as (input: A) => Operation<B, E>
  }

  /** `toFiber`, by its name in ZIO Arrow. */
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
    // Of an arrow that waits only a promise of the interpreter is one: what a stage made is its value.
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
   * Generate its code now instead of after some hundred runs. Returns the arrow itself. Code is not measured:
   * without runs before, `explain` shows no times and says so.
   */
  compiled(): this {
    if ((this.flags & (ASYNC | DYNAMIC | BIG)) === 0 && this.a !== null) compile(this)
    return this
  }

  /**
   * The plan: what is fused, what waits, what hops; after runs with times and the cost of hops. All hops are
   * counted. Calls and their mean times are of the runs that were measured; the first line says how many of
   * how many those are: of all runs, or of the first ones, if the arrow has code by now, which counts
   * nothing. Without times stay an arrow of one synchronous stage, whose `run` is its function, and one that
   * was `compiled` before it ran; a line says why.
   * @param options `format`: `text` (default), `mermaid` or `dot`.
   * @throws {ArrowError} `ARROW_ARGUMENT`.
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
  Op.snd,
  0,
  1,
  null,
  null,
  undefined,
)

/** An arrow of a function. @throws {ArrowError} `ARROW_ARGUMENT` for what is none. */
export function call<A, B>(fn: (input: A) => B): Arrow<A, B, never, 'sync'> {
  if (typeof fn !== 'function') throw wrong('lift(): the stage', 'a function', fn)
  return new Arrow(fn as NodeRun, fn as NodeRun, OP_CALL, 0, 1, null, null, fn)
}

/** An arrow of any parts. */
export function made<A, B, E, K extends Kind>(
  op: OpCode,
  a: Node | null,
  b: Node | null,
  data: unknown,
): Arrow<A, B, E, K> {
  const size = sizeOf(op, a, b, data)
  const flags = flagsOf(op, a, b, data, size)
  const step = stepOf(op, data, flags)
  return new Arrow<A, B, E, K>(runOf(step, flags), step, op, flags, size, a, b, data)
}

/** An arrow of one stage that waits. */
export function waiting<A, B, E>(wait: Wait): Arrow<A, B, E, 'async'> {
  return made(Op.wait, null, null, wait)
}

/**
 * An arrow of one other. There is one place where it is made, whatever it is: an object that may come from
 * two places must exist, and one that need not exist costs nothing.
 */
export function one<A, B, E, K extends Kind>(once: NodeRun, op: OpCode, a: Node): Arrow<A, B, E, K> {
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

/** An arrow of two others; see `one`. @throws {ArrowError} `ARROW_ARGUMENT` for what is no arrow. */
function two<A, B, E, K extends Kind>(
  once: NodeRun,
  op: OpCode,
  a: Node,
  b: Node,
  data: unknown,
): Arrow<A, B, E, K> {
  if (!(a instanceof Arrow)) throw wrong('what is composed', 'an arrow', a)
  if (!(b instanceof Arrow)) throw wrong('what is composed', 'an arrow', b)
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

/** @throws {ArrowError} `ARROW_ARGUMENT` for what is no function. */
export function checkedFunction<Fn>(name: string, fn: Fn): Fn {
  if (typeof fn !== 'function') throw wrong(name, 'a function', fn)
  return fn
}
