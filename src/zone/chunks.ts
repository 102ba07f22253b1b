/**
 * What `map`, `reduce` and `forEach` run in a worker: one chunk of items, and how long it took.
 *
 * Loaded there as a module, so that it is compiled once. Items are taken in order; one that gives a promise
 * is waited for before the next begins, so a chunk never has more than one item in progress.
 */
import { isTransportable, marshall } from '../transport/index.ts'
import { canTravel, portable } from './portable.ts'
import { hideOwnFrames } from './stacks.ts'

/** Values of a chunk and the time it took in ms, or its error and the item it is about. */
export type ChunkOutcome = readonly [ms: number, values: unknown]

type ItemFunction = (item: unknown, index: number) => unknown
type FoldFunction = (sum: unknown, item: unknown, index: number) => unknown

/** `fn` of each item; `first` is the index of the first one. Keeps no values when `keeps` is false. */
export function mapChunk(
  fn: ItemFunction,
  items: ArrayLike<unknown>,
  first: number,
  keeps: boolean,
): ChunkOutcome | Promise<ChunkOutcome> {
  const begun = performance.now()
  const values: unknown[] = []
  for (let index = 0; index < items.length; index++) {
    const value = fn(items[index], first + index)
    if (isThenable(value)) return waiting(value, index)
    if (keeps) values.push(value)
  }
  return [performance.now() - begun, values]

  /** From the first item that gave a promise on. */
  async function waiting(promise: PromiseLike<unknown>, from: number): Promise<ChunkOutcome> {
    let value = await promise
    if (keeps) values.push(value)
    for (let index = from + 1; index < items.length; index++) {
      value = await fn(items[index], first + index)
      if (keeps) values.push(value)
    }
    return [performance.now() - begun, values]
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
  const begun = performance.now()
  const values: unknown[] = []
  const failures: [number, unknown][] = []
  const failed = (error: unknown): void => {
    hideOwnFrames(error)
    failures.push([values.length, canTravel(error) ? error : portable(error, error)])
    values.push(undefined)
  }
  // Of a single one the pump sees whether it can travel; among others it would take them along.
  const isAlone = items.length === 1
  const ended = (value: unknown): void => {
    if (isAlone || value === null || typeof value !== 'object') values.push(value)
    else if (isTransportable(value)) values.push(value)
    else failed(whyNot(value))
  }
  for (let index = 0; index < items.length; index++) {
    try {
      const value = fn(items[index], first + index)
      if (isThenable(value)) return waiting(value, index)
      ended(value)
    } catch (error) {
      failed(error)
    }
  }
  return [performance.now() - begun, { values, failures }]

  /** From the first item that gave a promise on. */
  async function waiting(
    promise: PromiseLike<unknown>,
    from: number,
  ): Promise<readonly [number, ChunkSettled]> {
    // A thenable's own `then` may return nothing to wait for, and may throw.
    await Promise.resolve(promise).then(ended, failed)
    for (let index = from + 1; index < items.length; index++) {
      try {
        ended(await fn(items[index], first + index))
      } catch (error) {
        failed(error)
      }
    }
    return [performance.now() - begun, { values, failures }]
  }
}

function whyNot(value: unknown): unknown {
  try {
    return marshall(value, { mode: 'process' })
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
): ChunkOutcome {
  const begun = performance.now()
  let sum = initial
  for (let index = 0; index < items.length; index++) sum = fn(sum, items[index], first + index)
  return [performance.now() - begun, sum]
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null && typeof value === 'object' && typeof (value as PromiseLike<unknown>).then === 'function'
  )
}
