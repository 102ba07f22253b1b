/**
 * The options of `stream`, and what it checks before anything is opened.
 *
 * Apart from the machinery because the types are public.
 */
import {
  type AnyIterable,
  TIMER_MS_MAX,
  abortSignal,
  integer,
  milliseconds,
  optionsOf,
} from '../../base/index.ts'
import { wrong } from '../ground/settings.ts'
import { ORDER_KINDS, type CallOrder, type OrderOptions, orderOf } from './order.ts'
import type { Task } from '../ground/task.ts'

/** What `zone.stream` reads: an iterable, sync or async, a stream of the web or of Node, a Blob or File. */
export type StreamSource<Item> =
  | AnyIterable<Item>
  | ReadableStream<Item>
  // A Blob is a source of its bytes only; its type does not show them.
  | (Uint8Array extends Item ? Blob : never)

/** A function that `zone.stream` runs: from the items of the source to those of the result. */
export type StreamFunction<In, Out> = (
  this: Task,
  items: AsyncIterableIterator<In>,
) => StreamSource<Out> | PromiseLike<StreamSource<Out>>

/** Options of `zone.stream`. */
export interface StreamOptions extends OrderOptions {
  /**
   * Most items in transit in each direction, 1 to 2^20. An item is in transit from the moment it is taken
   * from its source until the other side has received it. Default 4,096.
   */
  readonly aheadMax?: number
  /**
   * Bytes in transit in each direction at which no further item is taken from the source, 1 or more. One item
   * larger than that travels alone. Default 1,048,576.
   */
  readonly aheadBytesMax?: number
  /**
   * Longest time of the stream, from the first item that is requested to the last, in ms; then it fails with
   * `TASK_TIMEOUT`. Default: no limit.
   */
  readonly timeoutMs?: number | undefined
  /** Aborting it ends the stream, on both sides, with its reason. */
  readonly signal?: AbortSignal | undefined
}

/** How far a source may be ahead of its reader. */
export interface Ahead {
  readonly aheadMax: number
  readonly aheadBytesMax: number
}

/** Checked {@link StreamOptions}. */
export interface CheckedOptions extends Ahead {
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
  readonly order: CallOrder | undefined
}

const KINDS = {
  aheadMax: integer<number | undefined>(1, 2 ** 20, undefined),
  aheadBytesMax: integer<number | undefined>(1, Infinity, undefined),
  timeoutMs: milliseconds<number | undefined>(TIMER_MS_MAX, undefined),
  signal: abortSignal,
  ...ORDER_KINDS,
}

/** @param ahead The windows by default. @throws {ZoneError} `ZONE_ARGUMENT`. */
export function checked(fn: unknown, source: unknown, options: unknown, ahead: Ahead): CheckedOptions {
  if (typeof fn !== 'function') throw wrong('zone.stream(): the first argument', 'a function', fn)
  checkSource('zone.stream(): the source', source)
  const given = optionsOf(options as StreamOptions, KINDS, wrong, 'zone.stream()')
  const { aheadMax = ahead.aheadMax, aheadBytesMax = ahead.aheadBytesMax } = given
  return { ...given, aheadMax, aheadBytesMax, order: orderOf('zone.stream()', given) }
}

/** @throws {ZoneError} `ZONE_ARGUMENT` for what cannot be read item by item. */
export function checkSource(name: string, source: unknown): asserts source is object {
  const isSource =
    source !== null &&
    typeof source === 'object' &&
    (Symbol.iterator in source || Symbol.asyncIterator in source || source instanceof Blob)
  if (isSource) return
  const advice = source instanceof Promise ? '; await the promise first' : ''
  throw wrong(name, `an iterable, a stream or a Blob${advice}`, source)
}
