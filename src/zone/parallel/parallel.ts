/**
 * `map`, `reduce` and `forEach` on a zone: items in chunks, results in order, memory bounded.
 *
 * A chunk should take some milliseconds: long against a hop, short against the whole, so that all workers end
 * together. Its size follows what items were measured to cost, in time and in bytes. What is read, sent and
 * kept is bounded (see Flow of base), and what a zone refuses goes in parts or waits (see outbox.ts); so an
 * endless input is read as fast as its results are used and no faster. The first error, in the order of
 * items where they are kept in it, ends everything: nothing after it starts any more, and what comes before
 * it ends first.
 */
import {
  Flow,
  type Items,
  ItemsReader,
  type Kinds,
  abortSignal,
  callback,
  flag,
  integer,
  isItems,
  optionsOf,
  readerOf,
} from '../../base/index.ts'
import type { ChunkOutcome, ChunkSettled } from './chunks.ts'
import type { CallOptions } from '../call/call.ts'
import { type Chunk, Outbox, Way } from './outbox.ts'
import { wrong } from '../api/settings.ts'
import { rejection } from '../call/stacks.ts'

/** How items are spread. */
export interface SpreadOptions {
  /** Aborting it ends the call with its reason; items that run are told through their task's signal. */
  readonly signal?: AbortSignal
  /** Most items that travel together, 1 or more. Default 4096; how many do follows from what items cost. */
  readonly chunkMax?: number
  /**
   * Most chunks in flight, 1 or more. Default: two for each worker and two more. More of them are for items
   * that travel one by one (`chunkMax: 1`).
   */
  readonly chunksMax?: number
  /**
   * Most items read and not yet taken, 1 or more, so that one slow item holds up the results of others, in
   * order, but not their work; `chunksMax` chunks share them. Default: as many chunks as may be in flight.
   */
  readonly aheadMax?: number
}

/** Of `map`. */
export interface MapOptions extends SpreadOptions {
  /**
   * False, for iterables: values come as they are ready. Default true: in the order of items.
   */
  readonly ordered?: boolean
  /**
   * True: what becomes of each item is told as `Promise.allSettled` tells it, with its index, and errors end
   * nothing. Items whose worker died share that error with all others of their chunk; `chunkMax: 1` makes
   * that exact. Default false.
   */
  readonly settle?: boolean
  /** A signal for each item, which ends that item alone; items then travel one by one. */
  readonly itemSignal?: (item: never, index: number) => AbortSignal | undefined
}

/** What became of one item. */
export type Settled<Value> = { readonly index: number } & PromiseSettledResult<Value>

/** Of `reduce`. */
export interface ReduceOptions<Sum> extends SpreadOptions {
  /**
   * Adds two partial results, the earlier first. Default: the folding function itself. Runs in the caller.
   */
  readonly combine?: (sum: Sum, next: Sum) => Sum | PromiseLike<Sum>
}

export type { Items }
/** What items may come from. */
export type Source<Item> = Iterable<Item> | AsyncIterable<Item>

/** What a chunk's task returns. */
interface Returned {
  readonly value: unknown
  /** Bytes that it took on its way. */
  readonly frameBytes: number
}

/** The part of a zone that is needed here. */
export interface Spreader {
  /** Its name, where errors come from other threads and have no stack of this one. */
  readonly id: string | undefined
  readonly workersMax: number
  /** What a chunk is given of a value that all are given: the value where it travels, else a copy. */
  own(value: unknown): unknown
  /** Resolves when there is room for a task; `undefined` where nothing may wait for it. */
  readonly room: ((signal: AbortSignal) => Promise<void>) | undefined
  /** Bytes of the arguments that were written last. */
  sentBytes(): number
  execute(module: URL, name: string, args: unknown[], options: CallOptions, begun: Begun): Promise<Returned>
}

/** Is given what gives a call up that is out, as its signal would. */
export type Begun = (giveUp: (why: unknown) => void) => void

const CHUNKS = new URL('./chunks.js', import.meta.url)
/** How long a chunk should take: fifty to a thousand hops. */
const CHUNK_MS = 2
const CHUNK_ITEMS_MAX = 4096
/** How large a chunk, or its values, should be at most: half of the bridge's scratch memory. */
const CHUNK_BYTES = 128 * 1024
/** How much larger than the last one a chunk may be: one measurement may be of compiling. */
const GROWTH_MAX = 8
/** An array is cut into at least so many chunks for each worker, that all may end together. */
const CHUNKS_PER_WORKER = 4

/** How many items the next chunk should have. */
class ChunkSize {
  #size = 1
  #bytes = CHUNK_BYTES
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get now(): number {
    return this.#size
  }

  /** A chunk of so many items took so long, and so many bytes there or back. */
  learn(items: number, ms: number, bytes: number): void {
    const byTime = Math.ceil((CHUNK_MS * items) / Math.max(ms, 0.001))
    const byBytes = Math.floor((this.#bytes * items) / Math.max(bytes, 1))
    this.#size = Math.max(1, Math.min(byTime, byBytes, this.#size * GROWTH_MAX, this.#max))
  }

  /** The zone takes no more bytes at once: as items differ, chunks stay well below. */
  bytesMax(most: number): void {
    this.#bytes = Math.min(this.#bytes, most / 2)
    this.#size = Math.max(1, this.#size >> 1)
  }
}

/** What is done with each chunk in a worker. */
type Send = (chunk: Chunk, options: CallOptions) => Promise<Returned>

/** The outcomes of chunks, as many as are ready. @throws whatever the first failing chunk failed with. */
async function* spread(
  zone: Spreader,
  source: Source<unknown>,
  send: Send,
  options: MapOptions,
  failed: (chunk: Chunk, error: unknown) => unknown = thrown,
): AsyncGenerator<readonly unknown[], void, undefined> {
  const stop = new AbortController()
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal])
  const length = isItems(source) ? source.length : Infinity
  const share = Math.ceil(length / (CHUNKS_PER_WORKER * zone.workersMax))
  const oneByOne = options.itemSignal !== undefined
  const { aheadMax, chunksMax = 2 * zone.workersMax + 2 } = options
  const chunkMax = oneByOne ? 1 : (options.chunkMax ?? CHUNK_ITEMS_MAX)
  // As many chunks as may be in flight must be let in, or workers would wait for each other's.
  const aheadShare = Math.floor((aheadMax ?? Infinity) / chunksMax)
  const size = new ChunkSize(Math.max(1, Math.min(chunkMax, share, aheadShare)))
  const outbox = new Outbox({
    offer: (chunk, itsSignal) => offered(zone, send, chunk, size, itsSignal),
    failed,
    room: zone.room,
    bytesMax: (most) => size.bytesMax(most),
  })
  const out = new Set<Chunk>()
  const flow = new Flow<ArrayLike<unknown>, unknown[]>({
    sizeNow: () => size.now,
    run: async (items, first) => {
      const chunk = { items, first, way: new Way() }
      out.add(chunk)
      try {
        return await outbox.send(chunk, signalFor(chunk, options.itemSignal, signal))
      } catch (error) {
        endBehind(chunk)
        throw error
      } finally {
        out.delete(chunk)
      }
    },
    settled: () => reader.read(),
    join: (taken, next) => void taken.push(...next),
    ordered: options.ordered !== false,
    runsMax: chunksMax,
    // Refilled for each single one, chunks would cross threads one by one.
    refillsLate: true,
    aheadMax,
  })
  /** A chunk has failed: in its turn that ends all, and until then nothing begins that comes after it. */
  const endBehind = (failing: Chunk): void => {
    if (failing.way.isEnded) return
    flow.ended()
    const why = new DOMException('The rest is not needed', 'AbortError')
    for (const { way, first } of out) if (options.ordered === false || first > failing.first) way.end(why)
  }
  const reader = isItems(source) ? new ItemsReader(source, flow) : readerOf(source, flow)
  try {
    yield* flow.outcomes(reader, signal)
  } catch (error) {
    // Nobody may have awaited the chunk when it failed, but somebody does in its turn.
    throw zone.id === undefined ? error : await tracedHere(zone.id, error)
  } finally {
    stop.abort(new DOMException('The rest is not needed', 'AbortError'))
  }
}

function tracedHere(zone: string, error: unknown): Promise<unknown> {
  return rejection(error, { id: zone, site: undefined }).catch((traced: unknown) => traced)
}

function signalFor(
  { items, first }: Chunk,
  itemSignal: MapOptions['itemSignal'],
  all: AbortSignal,
): AbortSignal {
  const own = itemSignal?.(items[0] as never, first)
  return own === undefined ? all : AbortSignal.any([own, all])
}

async function offered(
  zone: Spreader,
  send: Send,
  chunk: Chunk,
  size: ChunkSize,
  signal: AbortSignal,
): Promise<unknown> {
  const sent = send(chunk, { timeoutMs: undefined, signal } as never)
  const bytes = zone.sentBytes()
  const { value, frameBytes } = await sent
  const [ms, values] = value as ChunkOutcome
  size.learn(chunk.items.length, ms, Math.max(bytes, frameBytes))
  return values
}

/** A chunk that fails ends all. */
function thrown(_: Chunk, error: unknown): never {
  throw error
}

const ABSENT = integer(1, Infinity, undefined)
const BOUNDS = { signal: abortSignal, chunkMax: ABSENT, chunksMax: ABSENT, aheadMax: ABSENT }
const MAP = { ordered: flag(undefined), settle: flag(undefined), itemSignal: callback }

function checked(call: string, source: unknown, fn: unknown, options: unknown, known: Kinds): MapOptions {
  const iterable =
    (source !== null && typeof source === 'object') || typeof source === 'string'
      ? Symbol.iterator in Object(source) || Symbol.asyncIterator in Object(source)
      : false
  if (!iterable || typeof source === 'string') {
    throw wrong(`${call}: the items`, 'an array, a typed array or an (async) iterable', source)
  }
  if (typeof fn !== 'function') throw wrong(`${call}: the function`, 'a function', fn)
  const none = { ordered: undefined, settle: undefined, itemSignal: undefined }
  const given = {
    ...none,
    ...optionsOf(options, { ...BOUNDS, ...known }, wrong, call),
  } as unknown as MapOptions
  const { ordered } = given
  if (ordered === false && isItems(source as object))
    throw wrong(`${call}: ordered`, 'true or absent for an array, whose values are an array', ordered)
  return given
}

/** See `Zone.map`. */
export function map(
  zone: Spreader,
  source: Source<unknown>,
  fn: Function,
  options: unknown,
): Promise<unknown[]> | AsyncGenerator<unknown, void, undefined> {
  const start = (): AsyncGenerator<unknown, void, undefined> => {
    const given = checked('zone.map()', source, fn, options, MAP)
    return given.settle === true ? settled(zone, source, fn, given) : values(zone, source, fn, given)
  }
  if (source !== null && typeof source === 'object' && !isItems(source)) {
    try {
      return start()
    } catch (error) {
      return refused(error)
    }
  }
  return (async () => {
    const all: unknown[] = []
    for await (const value of start()) all.push(value)
    return all
  })()
}

/** A source of values that has none, and says why when the first is asked for. */
// oxlint-disable-next-line require-yield -- it throws instead
async function* refused(why: unknown): AsyncGenerator<never, void, undefined> {
  throw why
}

async function* values(
  zone: Spreader,
  source: Source<unknown>,
  fn: Function,
  options: MapOptions,
): AsyncGenerator<unknown, void, undefined> {
  const send: Send = ({ items, first, way }, call) =>
    zone.execute(CHUNKS, 'mapChunk', [fn, items, first, true], call, way.begun)
  for await (const chunks of spread(zone, source, send, options)) {
    // Not `yield*`, which costs three turns for each value instead of one.
    for (const chunk of chunks) for (const value of chunk as unknown[]) yield value
  }
}

/** The same for outcomes. A chunk that fails as a whole is a failure of each of its items. */
async function* settled(
  zone: Spreader,
  source: Source<unknown>,
  fn: Function,
  options: MapOptions,
): AsyncGenerator<Settled<unknown>, void, undefined> {
  const send: Send = async ({ items, first, way }, call) => {
    const { value, frameBytes } = await zone.execute(
      CHUNKS,
      'settleChunk',
      [fn, items, first],
      call,
      way.begun,
    )
    const [ms, outcome] = value as ChunkOutcome
    return { value: [ms, { first, outcome }], frameBytes }
  }
  const failed = ({ items, first }: Chunk, error: unknown): unknown => {
    // The caller's own signal ends all; an item's own is its failure.
    if (options.signal?.aborted === true) throw error
    return { first, outcome: { count: items.length, error } }
  }
  for await (const chunks of spread(zone, source, send, options, failed)) {
    for (const chunk of chunks) for (const outcome of outcomesOf(chunk as SettledChunk)) yield outcome
  }
}

interface SettledChunk {
  readonly first: number
  /** Values and, by position, errors; or what the whole chunk failed with. */
  readonly outcome: ChunkSettled | { readonly count: number; readonly error: unknown }
}

/** Not by `in`: anything may be on `Object.prototype`. */
function hasFailed(
  outcome: SettledChunk['outcome'],
): outcome is Exclude<SettledChunk['outcome'], ChunkSettled> {
  return Object.hasOwn(outcome, 'error')
}

function outcomesOf({ first, outcome }: SettledChunk): Settled<unknown>[] {
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

/** See `Zone.forEach`. */
export async function forEach(
  zone: Spreader,
  source: Source<unknown>,
  fn: Function,
  options: unknown,
): Promise<void> {
  const send: Send = ({ items, first, way }, call) =>
    zone.execute(CHUNKS, 'mapChunk', [fn, items, first, false], call, way.begun)
  // What an item gives is not kept, so none waits for the ones before it.
  const chunks = spread(zone, source, send, {
    ...checked('zone.forEach()', source, fn, options, {}),
    ordered: false,
  })
  while ((await chunks.next()).done !== true);
}

/** See `Zone.reduce`. @throws {ZoneError} `ZONE_ARGUMENT`, as a rejection. */
export async function reduce(
  zone: Spreader,
  source: Source<unknown>,
  fn: Function,
  initial: unknown,
  options: unknown,
): Promise<unknown> {
  const given: ReduceOptions<unknown> = checked('zone.reduce()', source, fn, options, { combine: callback })
  const { combine = fn as (sum: unknown, next: unknown) => unknown } = given
  const send: Send = ({ items, first, way }, call) =>
    zone.execute(CHUNKS, 'reduceChunk', [fn, zone.own(initial), items, first], call, way.begun)
  let sum: unknown = initial
  let isFirst = true
  for await (const partials of spread(zone, source, send, given)) {
    for (const partial of partials) {
      sum = isFirst ? partial : await combine(sum, partial)
      isFirst = false
    }
  }
  return sum
}
