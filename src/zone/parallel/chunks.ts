/**
 * What `map`, `reduce` and `forEach` run in a worker: one chunk of items, and how long it took.
 *
 * Loaded there as a module, so that it is compiled once. Items run in order, and a promise is awaited before
 * the next item begins, so a chunk never has more than one item in progress. A long chunk yields to its
 * thread's loop now and then, where a cancellation arrives; then the next item does not begin.
 */
import { promiseOf } from '../../base/index.ts'
import { isTransportable, encode } from '../../transport/index.ts'
import { canTravel, portable } from '../call/portable.ts'
import { hideOwnFrames } from '../call/stacks.ts'
import { currentTask } from '../call/task.ts'

/** Values of a chunk and the time it took in ms, or its error and the item it is about. */
export type ChunkOutcome = readonly [ms: number, values: unknown]

type ItemFunction = (item: unknown, index: number) => unknown
type FoldFunction = (sum: unknown, item: unknown, index: number) => unknown

/** How long a chunk runs without a turn of the loop, in ms; several times what one should take. */
const TURN_MS = 8
/** The clock is read after this many synchronous items. */
const CLOCK_ITEMS = 4

/** Yields to the loop while a chunk runs. */
class Turns {
  readonly #task = currentTask()
  readonly begun = performance.now()
  #last = this.begun
  #items = 0

  /** Whether the loop should have a turn now; the clock is not read each time. */
  isDue(): boolean {
    return ++this.#items % CLOCK_ITEMS === 0 && this.#isLate()
  }

  /**
   * Called before each item of an asynchronous chunk: yields to the loop, if it is time.
   * @throws the signal's reason when the call was cancelled.
   */
  next(): Promise<void> | undefined {
    if (this.#isLate()) return this.#turn()
    this.#task?.throwIfAbandoned()
    return undefined
  }

  #isLate(): boolean {
    return performance.now() - this.#last > TURN_MS
  }

  async #turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#last = performance.now()
    this.#task?.throwIfAbandoned()
  }

  get ms(): number {
    return performance.now() - this.begun
  }
}

/** `fn` of each item; `first` is the index of the first one. Keeps no values when `keeps` is false. */
export function mapChunk(
  fn: ItemFunction,
  items: ArrayLike<unknown>,
  first: number,
  keeps: boolean,
): ChunkOutcome | Promise<ChunkOutcome> {
  const turns = new Turns()
  const values: unknown[] = []
  for (let index = 0; index < items.length; index++) {
    const value = fn(items[index], first + index)
    const promise = promiseOf(value)
    if (promise !== undefined || turns.isDue()) return waiting(promise ?? value, index)
    if (keeps) values.push(value)
  }
  return [turns.ms, values]

  /** From the first item on that returned a promise, or took too long. */
  async function waiting(begun: unknown, from: number): Promise<ChunkOutcome> {
    let value = await begun
    if (keeps) values.push(value)
    for (let index = from + 1; index < items.length; index++) {
      const turn = turns.next()
      if (turn !== undefined) await turn
      value = await fn(items[index], first + index)
      if (keeps) values.push(value)
    }
    return [turns.ms, values]
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
): readonly [number, ChunkSettled] | Promise<readonly [number, ChunkSettled]> {
  const turns = new Turns()
  const values: unknown[] = []
  const failures: [number, unknown][] = []
  const failed = (error: unknown): void => {
    hideOwnFrames(error)
    failures.push([values.length, canTravel(error) ? error : portable(error, error)])
    values.push(undefined)
  }
  // Of a single one the dispatcher sees whether it can travel; among others it would take them along.
  const isAlone = items.length === 1
  const ended = (value: unknown): void => {
    if (isAlone || value === null || typeof value !== 'object') values.push(value)
    else if (isTransportable(value)) values.push(value)
    else failed(whyNot(value))
  }
  for (let index = 0; index < items.length; index++) {
    try {
      const value = fn(items[index], first + index)
      const promise = promiseOf(value)
      if (promise !== undefined) return waiting(promise, index)
      ended(value)
    } catch (error) {
      failed(error)
    }
    if (turns.isDue()) return waiting(undefined, index)
  }
  return [turns.ms, { values, failures }]

  /** From the first item on that returned a promise, or took too long and has ended. */
  async function waiting(
    promise: Promise<unknown> | undefined,
    from: number,
  ): Promise<readonly [number, ChunkSettled]> {
    if (promise !== undefined) await promise.then(ended, failed)
    for (let index = from + 1; index < items.length; index++) {
      const turn = turns.next()
      if (turn !== undefined) await turn
      try {
        ended(await fn(items[index], first + index))
      } catch (error) {
        failed(error)
      }
    }
    return [turns.ms, { values, failures }]
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
  const turns = new Turns()
  let sum = initial
  for (let index = 0; index < items.length; index++) {
    sum = fn(sum, items[index], first + index)
    const promise = promiseOf(sum)
    if (promise !== undefined || turns.isDue()) return waiting(promise, index)
  }
  return [turns.ms, sum]

  /** From the first item on that returned a promise, or ended late. */
  async function waiting(promise: Promise<unknown> | undefined, from: number): Promise<ChunkOutcome> {
    if (promise !== undefined) sum = await promise
    for (let index = from + 1; index < items.length; index++) {
      const turn = turns.next()
      if (turn !== undefined) await turn
      sum = await fn(sum, items[index], first + index)
    }
    return [turns.ms, sum]
  }
}
