/**
 * What a run runs: a name, under which processes find its runs, and a generator function.
 *
 * It is data: nothing is registered anywhere, so a module may define runs that another one offers.
 */
import type { Arrow, Kind } from '../arrow/index.ts'
import type { Operation } from '../fiber/index.ts'
import { bodyOf, isArrow } from './arrow.ts'
import { wrong } from './errors.ts'

/** The definition of runs. {@link durable} makes it. */
export interface Durable<out Name extends string = string, in Input = never, out Value = unknown> {
  /** The name under which its runs are kept. */
  readonly name: Name
  /** Called with the input of a run, and again after a crash. */
  readonly body: (input: Input) => Operation<Value, unknown>
  /** The names of the stages of an arrow, in their order; absent of a generator function. */
  readonly stages?: readonly string[]
}

/**
 * Define runs of a generator function, whose steps are recorded.
 *
 * Between steps the function must do the same each time it is called with the same input and the same results
 * of its steps, since after a crash it is called again: what may differ (the time, random numbers, anything
 * that is read) is a step, and what it waits for are steps, pauses and signals.
 * @param name 1 to 40 letters, digits, `_` and `-`.
 * @throws {RunError} `RUN_ARGUMENT`.
 *
 * @example
 * ```ts
 * import { durable, step } from 'corespun/durable'
 *
 * export const greeting = durable('greeting', function* (name: string) {
 *   return yield* step('greet', async () => `Hello, ${name}`)
 * })
 * ```
 */
export function durable<const Name extends string, Value, Input = undefined>(
  name: Name,
  body: (input: Input) => Operation<Value, unknown>,
): Durable<Name, Input, Value>
/**
 * Define runs of an arrow: each of its named stages is a step, and what has no name is computed
 * again after a crash. Named stages follow each other by `andThen`: a name inside of another operation is
 * refused.
 * @throws {RunError} `RUN_ARGUMENT`.
 */
export function durable<const Name extends string, Input, Value, Failure, K extends Kind>(
  name: Name,
  arrow: Arrow<Input, Value, Failure, K>,
): Durable<Name, Input, Value>
export function durable(
  name: string,
  body: ((input: never) => Operation<unknown, unknown>) | Arrow<never, unknown, unknown>,
): Durable {
  if (typeof name !== 'string' || !/^[\w-]{1,40}$/.test(name))
    throw wrong('durable(): the name', 'a name of 1 to 40 letters, digits, _ and -', name)
  if (isArrow(body)) return Object.freeze({ name, ...bodyOf(body) })
  if (typeof body !== 'function') throw wrong('durable(): the body', 'a generator function or an arrow', body)
  return Object.freeze({ name, body })
}
