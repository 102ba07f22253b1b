/**
 * `map`, `forEach` and `reduce` on the engine: the function that a chunk's task runs, and its outcome.
 *
 * Items, their order and their bounds are the engine's.
 */
import { Turns, isItems } from '../../base/index.ts'
import type { ChunkOutcome, ChunkSettled } from './chunks.ts'
import { Cut, type Send, type Spreader, spread } from './engine.ts'
import {
  type AnyIterable,
  MAP_KINDS,
  type CheckedMap,
  REDUCE_KINDS,
  type ReduceOptions,
  type Settled,
  checkItems,
  checked,
} from './map-options.ts'
import { bound } from '../context/bound.ts'
import type { Chunk } from './outbox.ts'
import { wrong } from '../ground/settings.ts'

/** The arguments of a chunk's task of `reduce`, as errors name them. */
const REDUCE_ARGUMENTS = ['fn', 'initial', 'items']
const CHUNKS = new URL('./chunks.js', import.meta.url)

export function map(
  zone: Spreader,
  source: AnyIterable<unknown>,
  fn: Function,
  options: unknown,
): Promise<unknown[]> | AsyncGenerator<unknown, void, undefined> {
  const cut = new Cut()
  const start = (): Batches => {
    const given = checked('zone.map()', source, fn, options, MAP_KINDS)
    return (given.settle === true ? settled : values)(zone, source, fn, given, cut)
  }
  if (source !== null && typeof source === 'object' && !isItems(source)) {
    // Neither a promise nor a generator would show it to every caller.
    checkItems('zone.map()', source)
    try {
      return bound(oneByOne(start(), cut))
    } catch (error) {
      return refused(error)
    }
  }
  return (async () => {
    const all: unknown[] = []
    for await (const batch of start()) for (const value of batch) all.push(value)
    return all
  })()
}

/** Values, or outcomes, as many as there are at a time: each hand-over to the caller has its price. */
type Batches = AsyncGenerator<Iterable<unknown>, void, undefined>

async function* oneByOne(batches: Batches, cut: Cut): AsyncGenerator<unknown, void, undefined> {
  const turns = new Turns()
  for await (const batch of batches) {
    // Not `yield*`, which costs three turns for each value instead of one.
    for (const value of batch) {
      if (turns.isDue()) await turns.taken()
      // The next batch is the limit's error.
      if (cut.isSet) break
      yield value
    }
  }
}

/** Throws when the first value is requested. */
// oxlint-disable-next-line require-yield -- it throws instead
async function* refused(why: unknown): AsyncGenerator<never, void, undefined> {
  throw why
}

async function* values(
  zone: Spreader,
  source: AnyIterable<unknown>,
  fn: Function,
  options: CheckedMap,
  cut: Cut,
): Batches {
  const send: Send = ({ items, first, way }, call) =>
    zone.execute(CHUNKS, 'mapChunk', [fn, items, first, true], call, way.begun)
  for await (const chunks of spread(zone, source, send, options, cut)) {
    for (const chunk of chunks) yield chunk as unknown[]
  }
}

/** A chunk that fails as a whole is a failure of each of its items. */
async function* settled(
  zone: Spreader,
  source: AnyIterable<unknown>,
  fn: Function,
  options: CheckedMap,
  cut: Cut,
): Batches {
  const send: Send = async ({ items, first, way }, call) => {
    const { value, frameBytes } = await zone.execute(
      CHUNKS,
      'settleChunk',
      [fn, items, first],
      call,
      way.begun,
    )
    const [ms, outcome, count] = value as ChunkOutcome
    return { value: [ms, { first, outcome }, count], frameBytes }
  }
  const failed = ({ items, first }: Chunk, error: unknown): unknown => ({
    first,
    outcome: { count: items.length, error },
  })
  for await (const chunks of spread(zone, source, send, options, cut, failed)) {
    for (const chunk of chunks) yield outcomesOfChunk(chunk as SettledChunk)
  }
}

interface SettledChunk {
  readonly first: number
  /** Values and errors by position; or the error of the whole chunk. */
  readonly outcome: ChunkSettled | { readonly count: number; readonly error: unknown }
}

/** Not by `in`: anything may be on `Object.prototype`. */
function hasFailed(
  outcome: SettledChunk['outcome'],
): outcome is Exclude<SettledChunk['outcome'], ChunkSettled> {
  return Object.hasOwn(outcome, 'error')
}

function outcomesOfChunk({ first, outcome }: SettledChunk): Settled<unknown>[] {
  if (hasFailed(outcome)) {
    const reason = outcome.error
    const rejected = (_: unknown, index: number): Settled<unknown> => ({
      index: first + index,
      status: 'rejected',
      reason,
    })
    return Array.from({ length: outcome.count }, rejected)
  }
  const { values, failures } = outcome
  const settled: Settled<unknown>[] = values.map((value, index) => ({
    index: first + index,
    status: 'fulfilled',
    value,
  }))
  for (const [index, reason] of failures)
    settled[index] = { index: first + index, status: 'rejected', reason }
  return settled
}

export async function forEach(
  zone: Spreader,
  source: AnyIterable<unknown>,
  fn: Function,
  options: unknown,
): Promise<void> {
  const send: Send = ({ items, first, way }, call) =>
    zone.execute(CHUNKS, 'mapChunk', [fn, items, first, false], call, way.begun)
  // Values are not kept, so no item waits for the ones before it.
  const given = { ...checked('zone.forEach()', source, fn, options, {}), ordered: false }
  const chunks = spread(zone, source, send, given, new Cut())
  while ((await chunks.next()).done !== true);
}

export async function reduce(
  zone: Spreader,
  source: AnyIterable<unknown>,
  fn: Function,
  initial: unknown,
  options: unknown,
  hasInitial: boolean,
): Promise<unknown> {
  if (!hasInitial)
    throw wrong('zone.reduce()', 'the initial value as its third argument', undefined, { verb: 'needs' })
  const given: CheckedMap & ReduceOptions<unknown> = checked(
    'zone.reduce()',
    source,
    fn,
    options,
    REDUCE_KINDS,
  )
  const { combine = fn as (sum: unknown, next: unknown) => unknown } = given
  const send: Send = ({ items, first, way }, call) =>
    zone.execute(CHUNKS, 'reduceChunk', [fn, zone.own(initial), items, first], call, way.begun)
  let sum: unknown = initial
  let isFirst = true
  const cut = new Cut()
  const turns = new Turns()
  for await (const partials of spread(zone, source, send, given, cut, undefined, REDUCE_ARGUMENTS)) {
    for (const partial of partials) {
      if (turns.isDue()) await turns.taken()
      if (cut.isSet) break
      sum = isFirst ? partial : await combine(sum, partial)
      isFirst = false
    }
  }
  return sum
}
