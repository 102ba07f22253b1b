/**
 * What `map`, `reduce` and `forEach` run in a worker: a chunk of items, and how long it took.
 *
 * Loaded there as a module, so that it is compiled once. Items run in order, and a promise is awaited before
 * the next item begins, so a chunk never has more than one item in progress. A chunk whose items are slower
 * than those before ends early: the others travel again, in chunks of another size, and perhaps to another
 * worker. So no chunk occupies its worker for much longer than its slowest item does, and between two of them
 * the thread's loop has its turn, in which a cancellation arrives.
 */
import { ChunkBudget, promiseOf } from '../../base/index.ts'
import { isTransportable, encode } from '../../transport/internal.ts'
import { canTravel, portable } from '../call/portable.ts'
import { hideOwnFrames } from '../call/stacks.ts'
import { currentTask } from '../ground/task.ts'

/** The time a chunk took in ms, its outcome, and how many of its items have run. */
export type ChunkOutcome<Outcome = unknown> = readonly [ms: number, outcome: Outcome, count: number]

type ItemFunction = (item: unknown, index: number) => unknown
type FoldFunction = (sum: unknown, item: unknown, index: number) => unknown

/** The time of a chunk, and the task that may be cancelled between two of its items. */
class Budget extends ChunkBudget {
  readonly #task = currentTask()

  /** @throws the signal's reason when the call was cancelled. */
  throwIfAbandoned(): void {
    this.#task?.throwIfAbandoned()
  }
}

/**
 * All items are called here, and in each chunk once a function that is not theirs. Where only one function is
 * called it is inlined into the loop around it, which is entered once per chunk: too seldom to be optimized
 * fully, and with it the item's code, which then takes 3 to 4 times as long.
 */
function called(fn: ItemFunction, item: unknown, index: number): unknown {
  return fn(item, index)
}

function folded(fn: FoldFunction, sum: unknown, item: unknown, index: number): unknown {
  return fn(sum, item, index)
}

const nothing = (): void => {}

/** `fn` of each item; `first` is the index of the first one. Keeps no values when `keeps` is false. */
export function mapChunk(
  fn: ItemFunction,
  items: ArrayLike<unknown>,
  first: number,
  keeps: boolean,
): ChunkOutcome | Promise<ChunkOutcome> {
  const budget = new Budget(items.length)
  const values: unknown[] = []
  let count = 0
  called(nothing, undefined, 0)
  while (count < items.length) {
    const value = called(fn, items[count], first + count)
    const promise = promiseOf(value)
    if (promise !== undefined) return waiting(promise)
    if (keeps) values.push(value)
    if (budget.isSpent(++count)) break
  }
  return [budget.ms, values, count]

  /** From the first item on that returned a promise. */
  async function waiting(begun: unknown): Promise<ChunkOutcome> {
    let value = await begun
    for (;;) {
      if (keeps) values.push(value)
      if (++count === items.length || budget.isLate()) return [budget.ms, values, count]
      budget.throwIfAbandoned()
      value = await called(fn, items[count], first + count)
    }
  }
}

/** Values by position, and errors with theirs. */
export interface ChunkSettled {
  readonly values: readonly unknown[]
  readonly failures: readonly (readonly [index: number, error: unknown])[]
}

/**
 * As `mapChunk`, but what an item throws is its outcome and the next one goes on. An error or a value that
 * cannot travel back is a failure of its item alone.
 */
export function settleChunk(
  fn: ItemFunction,
  items: ArrayLike<unknown>,
  first: number,
): ChunkOutcome<ChunkSettled> | Promise<ChunkOutcome<ChunkSettled>> {
  const budget = new Budget(items.length)
  const values: unknown[] = []
  const failures: [number, unknown][] = []
  const failed = (error: unknown): void => {
    hideOwnFrames(error)
    failures.push([values.length, canTravel(error) ? error : portable(error, error)])
    values.push(undefined)
  }
  // The dispatcher checks whether a single result can travel; among others a bad one would fail them all.
  const isAlone = items.length === 1
  const ended = (value: unknown): void => {
    if (isAlone || value === null || typeof value !== 'object') values.push(value)
    else if (isTransportable(value)) values.push(value)
    else failed(whyNot(value))
  }
  called(nothing, undefined, 0)
  while (values.length < items.length) {
    const at = values.length
    try {
      const value = called(fn, items[at], first + at)
      const promise = promiseOf(value)
      if (promise !== undefined) return waiting(promise)
      ended(value)
    } catch (error) {
      failed(error)
    }
    if (budget.isSpent(values.length)) break
  }
  return [budget.ms, { values, failures }, values.length]

  /** From the first item on that returned a promise. */
  async function waiting(promise: Promise<unknown>): Promise<ChunkOutcome<ChunkSettled>> {
    await promise.then(ended, failed)
    while (values.length < items.length && !budget.isLate()) {
      budget.throwIfAbandoned()
      const at = values.length
      try {
        ended(await called(fn, items[at], first + at))
      } catch (error) {
        failed(error)
      }
    }
    return [budget.ms, { values, failures }, values.length]
  }
}

function whyNot(value: unknown): unknown {
  try {
    return encode(value, { mode: 'process' })
  } catch (error) {
    return error
  }
}

/** `fn` folded over the items, from `initial`. */
export function reduceChunk(
  fn: FoldFunction,
  initial: unknown,
  items: ArrayLike<unknown>,
  first: number,
): ChunkOutcome | Promise<ChunkOutcome> {
  const budget = new Budget(items.length)
  let sum = initial
  let count = 0
  folded(nothing, undefined, undefined, 0)
  while (count < items.length) {
    sum = folded(fn, sum, items[count], first + count)
    const promise = promiseOf(sum)
    if (promise !== undefined) return waiting(promise)
    if (budget.isSpent(++count)) break
  }
  return [budget.ms, sum, count]

  /** From the first item on that returned a promise. */
  async function waiting(begun: unknown): Promise<ChunkOutcome> {
    sum = await begun
    for (;;) {
      if (++count === items.length || budget.isLate()) return [budget.ms, sum, count]
      budget.throwIfAbandoned()
      sum = await folded(fn, sum, items[count], first + count)
    }
  }
}
