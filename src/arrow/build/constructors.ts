/**
 * Where arrows begin: functions, values, failures, and the choices made of other arrows.
 *
 * A stage is called with its input alone. A promise that a synchronous stage returns is its value and is not
 * waited for; `liftAsync` is for what waits.
 */
import { type FailureOf, type Op as FiberOp, type Runnable, type ValueOf } from '../../fiber/index.ts'
import { RUNNABLE, isRunnable } from '../../fiber/internal.ts'
import { Arrow, call, checkedFunction, made, one, waiting } from './arrow.ts'
import type { Either } from './either.ts'
import { wrong } from '../errors.ts'
import { Op, type Node, type OpCode, type StageContext } from './node.ts'
import { LEAF_STEPS, STEPS } from '../run/steps.ts'
import type { Join, Kind } from '../types.ts'
import { asyncWait, fiberWait, type AsyncFunction } from '../run/waits.ts'

// As in arrow.ts: constants of this module are folded.
const { identity, swapped, doubled, firstOf, secondOf } = LEAF_STEPS
const runTest = STEPS.onceTest
const OP_ID = Op.id
const OP_SWAP = Op.swap
const OP_DUP = Op.dup
const OP_FST = Op.fst
const OP_SND = Op.snd
const OP_TEST = Op.test

type Run = (this: Node, input: unknown) => unknown

function leaf<A, B>(step: unknown, op: OpCode): Arrow<A, B, never, 'sync'> {
  return new Arrow(step as Run, step as Run, op, 0, 1, null, null, undefined)
}

/**
 * An arrow of a synchronous function. What it throws is a defect.
 * @throws {ArrowError} `ARROW_ARGUMENT`.
 */
export function lift<A, B>(fn: (input: A) => B): Arrow<A, B, never, 'sync'> {
  return call(fn)
}

/** The input itself. */
export function id<A>(): Arrow<A, A, never, 'sync'> {
  return leaf(identity, OP_ID)
}

/** Always the same value, whatever the input. */
export function succeed<const B>(value: B): Arrow<unknown, B, never, 'sync'> {
  return made(Op.constant, null, null, value)
}

/** Always the same failure. */
export function fail<E>(error: E): Arrow<unknown, never, E, 'sync'> {
  return made(Op.fail, null, null, error)
}

/**
 * A synchronous function with effects whose throws are failures.
 * @param catcher Makes the failure of what was thrown; what it throws in turn is a defect.
 * @throws {ArrowError} `ARROW_ARGUMENT`.
 */
export function effect<A, B, E>(
  fn: (input: A) => B,
  catcher: (thrown: unknown) => E,
): Arrow<A, B, E, 'sync'> {
  checkedFunction('effect(): catcher', catcher)
  return made(Op.attempt, null, null, { body: checkedFunction('effect(): fn', fn), catcher })
}

/** A synchronous function with effects that does not fail: what it throws is a defect. */
export function effectTotal<A, B>(fn: (input: A) => B): Arrow<A, B, never, 'sync'> {
  return call(fn)
}

/**
 * An asynchronous function. Its context has a `signal`, aborted when the run is interrupted.
 * @param catcher Makes a failure of what was thrown or rejected with; what it throws in turn is a defect.
 *   Without one all of it is defects.
 * @throws {ArrowError} `ARROW_ARGUMENT`.
 */
export function liftAsync<A, B, E = never>(
  fn: (input: A, context: StageContext) => PromiseLike<B> | B,
  catcher?: (thrown: unknown) => E,
): Arrow<A, B, E, 'async'> {
  checkedFunction('liftAsync(): fn', fn)
  if (catcher !== undefined) checkedFunction('liftAsync(): catcher', catcher)
  return waiting(asyncWait(fn as unknown as AsyncFunction, catcher))
}

/**
 * A fiber for each input: `fromFiber(function* (path: string) { yield* sleep(5) ... })`. The function is a
 * generator function, or gives an op or an effect of another library (whatever has
 * `Symbol.for('corespun.runnable')`). The fiber's failure is the stage's; interrupting the run interrupts it
 * and waits for its finalizers. Inside of a fiber it is a child of the one that runs the arrow, with its
 * locals.
 * @throws {ArrowError} `ARROW_ARGUMENT`.
 */
export function fromFiber<
  A,
  P extends
    Runnable<undefined, unknown, unknown> | Generator<unknown, unknown, never> | FiberOp<unknown, unknown>,
>(body: (input: A) => P): Arrow<A, ValueOf<P>, FailureOf<P>, 'async'> {
  return waiting(fiberWait(checkedFunction('fromFiber(): body', body) as (input: unknown) => unknown))
}

/**
 * An arrow of what runs with an input and ends with an exit: an arrow, or an effect of another library.
 * @throws {ArrowError} `ARROW_ARGUMENT`.
 */
export function fromRunnable<A, B, E>(runnable: Runnable<A, B, E>): Arrow<A, B, E, 'async'> {
  if (!isRunnable(runnable)) throw wrong('fromRunnable', 'something to run', runnable)
  const given = (input: A): Runnable<undefined, B, E> => ({
    [RUNNABLE]: (_none, signal) => runnable[RUNNABLE](input, signal),
  })
  return fromFiber(given)
}

/** A pair the other way round. */
export function swap<A, B>(): Arrow<readonly [A, B], [B, A], never, 'sync'> {
  return leaf(swapped, OP_SWAP)
}

/** The input twice, as a pair. */
export function dup<A>(): Arrow<A, [A, A], never, 'sync'> {
  return leaf(doubled, OP_DUP)
}

/** The first of a pair. */
export function fst<A, B = unknown>(): Arrow<readonly [A, B], A, never, 'sync'> {
  return leaf(firstOf, OP_FST)
}

/** The second of a pair. */
export function snd<A, B = unknown>(): Arrow<readonly [B, A], A, never, 'sync'> {
  return leaf(secondOf, OP_SND)
}

/**
 * The input on the left if the condition holds for it, else on the right.
 * @throws {ArrowError} `ARROW_ARGUMENT`.
 */
export function test<A, E, K extends Kind>(condition: Arrow<A, boolean, E, K>): Arrow<A, Either<A, A>, E, K> {
  return one(runTest, OP_TEST, checkedCondition('test: condition', condition))
}

/** `holds` on the input if the condition holds for it, else `otherwise`. */
export function ifThenElse<A, B, C, E1, E2, E3, K1 extends Kind, K2 extends Kind, K3 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  holds: Arrow<A, B, E2, K2>,
  otherwise: Arrow<A, C, E3, K3>,
): Arrow<A, B | C, E1 | E2 | E3, Join<K1, Join<K2, K3>>> {
  return made(
    Op.branch,
    checkedCondition('ifThenElse: condition', condition),
    checkedArrow('ifThenElse: holds', holds),
    checkedArrow('ifThenElse: otherwise', otherwise),
  )
}

/** `holds` on the input if the condition holds for it, else the input. */
export function ifThen<A, E1, E2, K1 extends Kind, K2 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  holds: Arrow<A, A, E2, K2>,
): Arrow<A, A, E1 | E2, Join<K1, K2>> {
  return ifThenElse(condition, holds, id<A>()) as Arrow<A, A, E1 | E2, Join<K1, K2>>
}

/** `otherwise` on the input if the condition does not hold for it, else the input. */
export function ifNotThen<A, E1, E2, K1 extends Kind, K2 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  otherwise: Arrow<A, A, E2, K2>,
): Arrow<A, A, E1 | E2, Join<K1, K2>> {
  return ifThenElse(condition, id<A>(), otherwise) as Arrow<A, A, E1 | E2, Join<K1, K2>>
}

/** As long as the condition holds, `body` on what it made last, first on the input. */
export function whileDo<A, E1, E2, K1 extends Kind, K2 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  body: Arrow<A, A, E2, K2>,
): Arrow<A, A, E1 | E2, Join<K1, K2>> {
  return made(
    Op.loop,
    checkedCondition('whileDo: condition', condition),
    checkedArrow('whileDo: body', body),
    undefined,
  )
}

function checkedArrow(name: string, arrow: unknown): Node {
  if (!(arrow instanceof Arrow)) throw wrong(name, 'an arrow', arrow)
  return arrow as Node
}

/** A promise holds always: where the function is asynchronous, `liftAsync` is what was meant. */
function checkedCondition(name: string, condition: unknown): Node {
  const node = checkedArrow(name, condition)
  if (node.op === Op.call && node.data instanceof AsyncFunction)
    throw wrong(name, 'an arrow that gives a boolean; liftAsync() for an asynchronous function', node.data)
  return node
}

const AsyncFunction = (async () => {}).constructor
