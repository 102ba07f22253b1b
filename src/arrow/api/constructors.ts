/**
 * The functions that make arrows: from functions, values and failures, and the choices between arrows.
 *
 * A stage is called with its input alone. A promise that a synchronous stage returns is its value and is not
 * awaited; `liftAsync` makes a stage that waits.
 */
import { type FailureOf, type Op, type Runnable, type ValueOf } from '../../fiber/index.ts'
import { RUNNABLE, isRunnable } from '../../fiber/internal.ts'
import { Arrow, call, checkedFunction, made, one, waiting } from './arrow.ts'
import type { Either } from '../build/either.ts'
import { wrong } from '../errors.ts'
import { OpCode, isAsyncFunction, type ArrowNode, type NodeRun, type StageContext } from '../build/node.ts'
import { LEAF_STEPS, STEPS } from '../run/steps.ts'
import type { Join, Kind } from '../types.ts'
import { asyncWait, fiberWait, type AsyncFunction } from '../run/waits.ts'

// As in arrow.ts: the engine folds constants of this module.
const { unchanged, swapped, doubled, firstOf, secondOf } = LEAF_STEPS
const runTest = STEPS.onceTest
const OP_ID = OpCode.id
const OP_SWAP = OpCode.swap
const OP_DUP = OpCode.dup
const OP_FST = OpCode.fst
const OP_SND = OpCode.snd
const OP_TEST = OpCode.test

function leaf<A, B>(step: unknown, op: OpCode): Arrow<A, B, never, 'sync'> {
  return new Arrow(step as NodeRun, step as NodeRun, op, 0, 1, null, null, undefined)
}

/**
 * Make a stage of a synchronous function. An error that the function throws is a defect. A promise that it
 * returns is not awaited, but is the next stage's input: use {@link liftAsync} for asynchronous functions.
 * @throws {ArrowError} `ARROW_ARGUMENT` when `fn` is not a function.
 * @example
 * ```ts
 * import { lift } from 'corespun/arrow'
 *
 * const words = lift((text: string) => text.split(' ')).map((all) => all.length)
 * console.log(words.run('one two')) // 2
 * ```
 */
export function lift<A, B>(fn: (input: A) => B): Arrow<A, B, never, 'sync'> {
  return call(fn)
}

/**
 * Returns an arrow that returns its input. `id` is an alias.
 * @example
 * ```ts
 * import { identity } from 'corespun/arrow'
 *
 * console.log(identity<number>().run(7)) // 7
 * ```
 */
export function identity<A>(): Arrow<A, A, never, 'sync'> {
  return leaf(unchanged, OP_ID)
}

/**
 * Returns an arrow that returns `value` for every input.
 * @example
 * ```ts
 * import { succeed } from 'corespun/arrow'
 *
 * console.log(succeed(42).run('ignored')) // 42
 * ```
 */
export function succeed<const B>(value: B): Arrow<unknown, B, never, 'sync'> {
  return made(OpCode.constant, null, null, value)
}

/**
 * Returns an arrow that fails with `error` for every input.
 * @example
 * ```ts
 * import { fail } from 'corespun/arrow'
 *
 * console.log(fail('too young').runExit(7).kind) // failure
 * ```
 */
export function fail<E>(error: E): Arrow<unknown, never, E, 'sync'> {
  return made(OpCode.fail, null, null, error)
}

/**
 * Make a stage of a synchronous function whose errors are failures.
 * @param catcher Maps what `fn` throws to the failure. An error that it throws itself is a defect.
 * @throws {ArrowError} `ARROW_ARGUMENT` when an argument is not a function.
 * @example
 * ```ts
 * import { effect, succeed } from 'corespun/arrow'
 *
 * const parse = effect((text: string) => Number(JSON.parse(text)), () => 'not JSON')
 * console.log(parse.catchAll(() => succeed(0)).run('{')) // 0
 * ```
 */
export function effect<A, B, E>(
  fn: (input: A) => B,
  catcher: (thrown: unknown) => E,
): Arrow<A, B, E, 'sync'> {
  checkedFunction('effect(): catcher', catcher)
  return made(OpCode.attempt, null, null, { body: checkedFunction('effect(): fn', fn), catcher })
}

/**
 * Make a stage of a synchronous function with side effects that does not fail, as {@link lift} does: an error
 * that it throws is a defect.
 * @throws {ArrowError} `ARROW_ARGUMENT` when `fn` is not a function.
 * @example
 * ```ts
 * import { effectTotal } from 'corespun/arrow'
 *
 * effectTotal((line: string) => console.log(line)).run('a line')
 * ```
 */
export function effectTotal<A, B>(fn: (input: A) => B): Arrow<A, B, never, 'sync'> {
  return call(fn)
}

/**
 * Make a stage of an asynchronous function. Its second argument has a `signal`, which is aborted when the run
 * is interrupted.
 * @param catcher Maps what `fn` throws or rejects with to the failure. An error that it throws itself is a
 *   defect. Default: everything that `fn` throws or rejects with is a defect.
 * @throws {ArrowError} `ARROW_ARGUMENT` when an argument is not a function.
 * @example
 * ```ts
 * import { setTimeout } from 'node:timers/promises'
 * import { liftAsync } from 'corespun/arrow'
 *
 * const later = liftAsync(async (text: string, { signal }) => setTimeout(5, text.length, { signal }))
 * console.log(await later.map((length) => length * 2).run('four')) // 8
 * ```
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
 * Make a stage that runs a fiber for each input. `liftM` is an alias.
 *
 * The fiber's failure is the stage's failure. Interrupting the run interrupts the fiber and waits for its
 * finalizers. In a run that a fiber has started, it is a child of that fiber and has its locals.
 * @param body A generator function, or a function that returns an operation or an effect of another library
 *   (an object with a `Symbol.for('corespun.runnable')` method).
 * @throws {ArrowError} `ARROW_ARGUMENT` when `body` is not a function.
 * @example
 * ```ts
 * import { fromFiber } from 'corespun/arrow'
 * import { sleep } from 'corespun/fiber'
 *
 * const slow = fromFiber(function* (x: number) {
 *   yield* sleep(5)
 *   return x * 2
 * })
 * console.log(await slow.run(21)) // 42
 * ```
 */
export function fromFiber<
  A,
  P extends Runnable<undefined, unknown, unknown> | Generator<unknown, unknown, never> | Op<unknown, unknown>,
>(body: (input: A) => P): Arrow<A, ValueOf<P>, FailureOf<P>, 'async'> {
  return waiting(fiberWait(checkedFunction('fromFiber(): body', body) as (input: unknown) => unknown))
}

/**
 * Make an arrow of a runnable: another arrow, or an effect of another library that takes an input and ends
 * with an exit. `fromEffect` is an alias.
 * @throws {ArrowError} `ARROW_ARGUMENT` when `runnable` has no `Symbol.for('corespun.runnable')` method.
 * @example
 * ```ts
 * import { fromRunnable, lift } from 'corespun/arrow'
 *
 * console.log(await fromRunnable(lift((x: number) => x + 1)).run(1)) // 2
 * ```
 */
export function fromRunnable<A, B, E>(runnable: Runnable<A, B, E>): Arrow<A, B, E, 'async'> {
  if (!isRunnable(runnable))
    throw wrong(
      'fromRunnable(): runnable',
      "an object with a Symbol.for('corespun.runnable') method",
      runnable,
    )
  const given = (input: A): Runnable<undefined, B, E> => ({
    [RUNNABLE]: (_none, signal) => runnable[RUNNABLE](input, signal),
  })
  return fromFiber(given)
}

/**
 * Returns an arrow that exchanges the sides of a pair.
 * @example
 * ```ts
 * import { swap } from 'corespun/arrow'
 *
 * console.log(swap<number, string>().run([1, 'a'])) // [ 'a', 1 ]
 * ```
 */
export function swap<A, B>(): Arrow<readonly [A, B], [B, A], never, 'sync'> {
  return leaf(swapped, OP_SWAP)
}

/**
 * Returns an arrow that returns its input twice, as a pair.
 * @example
 * ```ts
 * import { dup } from 'corespun/arrow'
 *
 * console.log(dup<number>().run(1)) // [ 1, 1 ]
 * ```
 */
export function dup<A>(): Arrow<A, [A, A], never, 'sync'> {
  return leaf(doubled, OP_DUP)
}

/**
 * Returns an arrow that returns the first side of a pair.
 * @example
 * ```ts
 * import { getFirst } from 'corespun/arrow'
 *
 * console.log(getFirst<number>().run([1, 'a'])) // 1
 * ```
 */
export function getFirst<A, B = unknown>(): Arrow<readonly [A, B], A, never, 'sync'> {
  return leaf(firstOf, OP_FST)
}

/**
 * Returns an arrow that returns the second side of a pair.
 * @example
 * ```ts
 * import { getSecond } from 'corespun/arrow'
 *
 * console.log(getSecond<string>().run([1, 'a'])) // a
 * ```
 */
export function getSecond<A, B = unknown>(): Arrow<readonly [B, A], A, never, 'sync'> {
  return leaf(secondOf, OP_SND)
}

/**
 * Returns an arrow that returns its input as a `Left` when the condition is true, as a `Right` otherwise.
 * @throws {ArrowError} `ARROW_ARGUMENT` when `condition` is not an arrow, or is one of an `async` function.
 * @example
 * ```ts
 * import { lift, test } from 'corespun/arrow'
 *
 * const isEven = lift((x: number) => x % 2 === 0)
 * const halved = lift((x: number) => x / 2).choice(lift((x: number) => x * 3 + 1))
 * console.log(test(isEven).andThen(halved).run(3)) // 10
 * ```
 */
export function test<A, E, K extends Kind>(condition: Arrow<A, boolean, E, K>): Arrow<A, Either<A, A>, E, K> {
  return one(runTest, OP_TEST, checkedCondition('test(): condition', condition))
}

/**
 * Returns an arrow that runs `then` on its input when the condition is true, `otherwise` when it does not.
 * @throws {ArrowError} `ARROW_ARGUMENT` when an argument is not an arrow, or the condition is one of an
 *   `async` function.
 * @example
 * ```ts
 * import { ifThenElse, lift } from 'corespun/arrow'
 *
 * const isShort = lift((text: string) => text.length < 5)
 * const label = ifThenElse(isShort, lift(() => 'short'), lift(() => 'long'))
 * console.log(label.run('tea')) // short
 * ```
 */
export function ifThenElse<A, B, C, E1, E2, E3, K1 extends Kind, K2 extends Kind, K3 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  then: Arrow<A, B, E2, K2>,
  otherwise: Arrow<A, C, E3, K3>,
): Arrow<A, B | C, E1 | E2 | E3, Join<K1, Join<K2, K3>>> {
  return made(
    OpCode.branch,
    checkedCondition('ifThenElse(): condition', condition),
    checkedArrow('ifThenElse(): then', then),
    checkedArrow('ifThenElse(): otherwise', otherwise),
  )
}

/**
 * Returns an arrow that runs `then` on its input when the condition is true, and returns the input otherwise.
 * @throws {ArrowError} `ARROW_ARGUMENT` as `ifThenElse`.
 * @example
 * ```ts
 * import { ifThen, lift } from 'corespun/arrow'
 *
 * const absolute = ifThen(lift((x: number) => x < 0), lift((x: number) => -x))
 * console.log(absolute.run(-3)) // 3
 * ```
 */
export function ifThen<A, E1, E2, K1 extends Kind, K2 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  then: Arrow<A, A, E2, K2>,
): Arrow<A, A, E1 | E2, Join<K1, K2>> {
  return ifThenElse(condition, then, identity<A>()) as Arrow<A, A, E1 | E2, Join<K1, K2>>
}

/**
 * Returns an arrow that runs `otherwise` on its input when the condition does not hold, and returns the input
 * when it does.
 * @throws {ArrowError} `ARROW_ARGUMENT` as `ifThenElse`.
 * @example
 * ```ts
 * import { ifNotThen, lift } from 'corespun/arrow'
 *
 * const named = ifNotThen(lift((name: string) => name !== ''), lift(() => 'anonymous'))
 * console.log(named.run('')) // anonymous
 * ```
 */
export function ifNotThen<A, E1, E2, K1 extends Kind, K2 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  otherwise: Arrow<A, A, E2, K2>,
): Arrow<A, A, E1 | E2, Join<K1, K2>> {
  return ifThenElse(condition, identity<A>(), otherwise) as Arrow<A, A, E1 | E2, Join<K1, K2>>
}

/**
 * Returns an arrow that runs `body` on its input, then on each result, while the condition is true.
 * @throws {ArrowError} `ARROW_ARGUMENT` as `ifThenElse`.
 * @example
 * ```ts
 * import { lift, whileDo } from 'corespun/arrow'
 *
 * const doubled = whileDo(lift((x: number) => x < 100), lift((x: number) => x * 2))
 * console.log(doubled.run(3)) // 192
 * ```
 */
export function whileDo<A, E1, E2, K1 extends Kind, K2 extends Kind>(
  condition: Arrow<A, boolean, E1, K1>,
  body: Arrow<A, A, E2, K2>,
): Arrow<A, A, E1 | E2, Join<K1, K2>> {
  return made(
    OpCode.loop,
    checkedCondition('whileDo(): condition', condition),
    checkedArrow('whileDo(): body', body),
    undefined,
  )
}

function checkedArrow(name: string, arrow: unknown): ArrowNode {
  if (!(arrow instanceof Arrow)) throw wrong(name, 'an arrow', arrow)
  return arrow as ArrowNode
}

/** A promise is truthy, so a condition of an asynchronous function would always hold. */
function checkedCondition(name: string, condition: unknown): ArrowNode {
  const node = checkedArrow(name, condition)
  if (node.op === OpCode.call && isAsyncFunction(node.data))
    throw wrong(name, 'an arrow that returns a boolean; liftAsync() for an asynchronous function', node.data)
  return node
}
