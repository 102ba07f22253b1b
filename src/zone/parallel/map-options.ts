/**
 * The options of `map`, `forEach` and `reduce`, and what they check before anything is read.
 *
 * Apart from the engine because the types are public.
 */
import {
  type AnyIterable,
  type Items,
  type Kinds,
  TIMER_MS_MAX,
  abortSignal,
  callback,
  flag,
  integer,
  isItems,
  milliseconds,
  optionsOf,
} from '../../base/index.ts'
import { wrong } from '../ground/settings.ts'
import { ORDER_KINDS, type CallOrder, type OrderOptions, orderOf } from '../call/order.ts'

export type { AnyIterable, Items }

/** Options of `forEach`, and of `map` and `reduce` too. */
export interface ParallelOptions extends OrderOptions {
  /**
   * Longest time of the whole call, from its start to its last item, in ms; then it fails with
   * `TASK_TIMEOUT`, and items that run have their task's signal aborted. Default: no limit.
   */
  readonly timeoutMs?: number | undefined
  /** Aborting it ends the call with its reason; items that run have their task's signal aborted. */
  readonly signal?: AbortSignal | undefined
  /** Most items per chunk, 1 or more. Default 4096; the size of a chunk follows from what items cost. */
  readonly chunkMax?: number
  /**
   * Most chunks in flight, 1 or more. Default: two for each worker and two more. A larger number is for items
   * that travel one by one (`chunkMax: 1`).
   */
  readonly chunksMax?: number
  /**
   * Most items read and not yet taken, 1 or more, so that one slow item holds up the results of others, in
   * order, but not their work; `chunksMax` chunks share them. Default: as many chunks as may be in flight,
   * and as many again that the reader is at; of an iterable at most 32,768 items in them.
   */
  readonly aheadMax?: number
}

/** Options of `map`. */
export interface MapOptions extends ParallelOptions {
  /** For iterables: false to receive values as they are ready. Default true: in the order of items. */
  readonly ordered?: boolean
  /**
   * True: each outcome is an object as of `Promise.allSettled`, with the item's index; an error does not end
   * the call. Items whose worker died share that error with all others of their chunk; `chunkMax: 1` makes it
   * exact. Default false.
   */
  readonly settle?: boolean
  /** Returns a signal for an item, which ends that item alone; items then travel one by one. */
  readonly itemSignal?: (item: never, index: number) => AbortSignal | undefined
}

export interface CheckedMap extends MapOptions {
  readonly order: CallOrder | undefined
}

/** The outcome of one item of `map` with `settle`: that of `Promise.allSettled`, with the item's index. */
export type Settled<Value> = { readonly index: number } & PromiseSettledResult<Value>

/** Options of `reduce`. */
export interface ReduceOptions<Sum> extends ParallelOptions {
  /** Adds two partial results, the earlier first; called in this thread. Default: the folding function. */
  readonly combine?: (sum: Sum, next: Sum) => Sum | PromiseLike<Sum>
}

const COUNT = integer(1, Infinity, undefined)
const COMMON = {
  timeoutMs: milliseconds<number | undefined>(TIMER_MS_MAX, undefined),
  signal: abortSignal,
  chunkMax: COUNT,
  chunksMax: COUNT,
  aheadMax: COUNT,
  ...ORDER_KINDS,
}
export const MAP_KINDS = { ordered: flag(undefined), settle: flag(undefined), itemSignal: callback }
export const REDUCE_KINDS = { combine: callback }
const ABSENT = { ordered: undefined, settle: undefined, itemSignal: undefined }

/** @throws {ZoneError} `ZONE_ARGUMENT`. */
export function checkItems(call: string, source: unknown): asserts source is object {
  const isIterable =
    source !== null &&
    typeof source === 'object' &&
    (Symbol.iterator in source || Symbol.asyncIterator in source)
  if (isIterable) return
  const advice = source instanceof Promise ? '; await the promise first' : ''
  throw wrong(`${call}: the items`, `an array, a typed array or an (async) iterable${advice}`, source)
}

/** @throws {ZoneError} `ZONE_ARGUMENT`. */
export function checked(
  call: string,
  source: unknown,
  fn: unknown,
  options: unknown,
  known: Kinds,
): CheckedMap {
  checkItems(call, source)
  if (typeof fn !== 'function') throw wrong(`${call}: the second argument`, 'a function', fn)
  const complete = { ...ABSENT, ...optionsOf(options, { ...COMMON, ...known }, wrong, call) }
  if (complete.ordered === false && isItems(source))
    throw wrong(`${call}: ordered`, 'true or absent for an array, whose values are an array', false)
  return { ...complete, order: orderOf(call, complete) } as unknown as CheckedMap
}
