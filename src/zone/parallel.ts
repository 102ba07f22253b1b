/**
 * `map`, `reduce` and `forEach` on a zone: items in chunks, results in order, memory bounded.
 *
 * A chunk should take some milliseconds: long against a hop, short against the whole, so that all workers end
 * together. Its size follows what items were measured to cost. Chunks in flight and chunks whose results have
 * not been taken are bounded together, so an endless input is read as fast as its results are used and no
 * faster. The first error, in the order of items, ends everything: what has not started never does.
 */
import { argumentsRecord } from './arguments.ts'
import type { ChunkOutcome } from './chunks.ts'
import type { CallOptions } from './call.ts'
import { wrong } from './settings.ts'
import { rejection } from './stacks.ts'

/** How items are spread. */
export interface SpreadOptions {
  /** Aborting it ends the call with its reason; items that run are told through their task's signal. */
  readonly signal?: AbortSignal
  /** Most items that travel together, 1 or more. Default: chosen from what items cost, at most 4096. */
  readonly chunkMax?: number
}

/** Of `reduce`. */
export interface ReduceOptions<Sum> extends SpreadOptions {
  /**
   * Adds two partial results, the earlier first. Default: the folding function itself. Runs in the caller.
   */
  readonly combine?: (sum: Sum, next: Sum) => Sum
}

/** An array or a typed array. */
export type Items<Item> = ArrayLike<Item> & Iterable<Item>
/** What items may come from. */
export type Source<Item> = Iterable<Item> | AsyncIterable<Item>

/** The part of a zone that is needed here. */
export interface Spreader {
  /** Its name, where errors come from other threads and have no stack of this one. */
  readonly id: string | undefined
  readonly workersMax: number
  execute(module: URL, name: string, args: unknown[], options: CallOptions): Promise<{ value: unknown }>
}

const CHUNKS = new URL('./chunks.js', import.meta.url)
/** How long a chunk should take: fifty to a thousand hops. */
const CHUNK_MS = 2
const CHUNK_ITEMS_MAX = 4096
/** How much larger than the last one a chunk may be: one measurement may be of compiling. */
const GROWTH_MAX = 8
/** An array is cut into at least so many chunks for each worker, that all may end together. */
const CHUNKS_PER_WORKER = 4

/** How many items the next chunk should have. */
class ChunkSize {
  #size = 1
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get now(): number {
    return this.#size
  }

  /** A chunk of so many items took so long. */
  learn(items: number, ms: number): void {
    const right = Math.ceil((CHUNK_MS * items) / Math.max(ms, 0.001))
    this.#size = Math.max(1, Math.min(right, this.#size * GROWTH_MAX, this.#max))
  }
}

/** What is done with each chunk in a worker. */
type Send = (items: ArrayLike<unknown>, first: number, options: CallOptions) => Promise<{ value: unknown }>

/** The results of chunks, in order. @throws whatever the first failing chunk failed with. */
async function* spread(
  zone: Spreader,
  source: Source<unknown> | Items<unknown>,
  send: Send,
  options: SpreadOptions,
): AsyncGenerator<unknown, void, undefined> {
  const stop = new AbortController()
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal])
  options.signal?.throwIfAborted()
  const length = isItems(source) ? source.length : Infinity
  const share = Math.ceil(length / (CHUNKS_PER_WORKER * zone.workersMax))
  const size = new ChunkSize(Math.max(1, Math.min(options.chunkMax ?? CHUNK_ITEMS_MAX, share)))
  const windowMax = 2 * zone.workersMax + 2
  const window: Promise<unknown>[] = []
  const chunks = chunksOf(source, size, signal)
  try {
    let ended = false
    for (;;) {
      while (!ended && window.length < windowMax) {
        const next = await chunks.next()
        if (next.done === true) ended = true
        else window.push(sent(send, next.value, size, signal))
      }
      const first = window.shift()
      if (first === undefined) return
      yield await first.catch((error: unknown) => rejectedHere(zone, error))
    }
  } finally {
    stop.abort(new DOMException('The rest is not needed', 'AbortError'))
    for (const rest of window) rest.catch(() => {})
    await chunks.return()
  }
}

/** Nobody awaited the chunk when it failed, but somebody does in its turn. */
function rejectedHere(zone: Spreader, error: unknown): Promise<never> {
  return zone.id === undefined ? Promise.reject(error) : rejection(error, { id: zone.id, site: undefined })
}

interface Chunk {
  readonly items: ArrayLike<unknown>
  readonly first: number
}

function sent(send: Send, { items, first }: Chunk, size: ChunkSize, signal: AbortSignal): Promise<unknown> {
  const call = send(items, first, { signal }).then(({ value }) => {
    const [ms, values] = value as ChunkOutcome
    size.learn(items.length, ms)
    return values
  })
  // It is looked at in its turn, which may be after it has failed.
  call.catch(() => {})
  return call
}

async function* chunksOf(
  source: Source<unknown> | Items<unknown>,
  size: ChunkSize,
  signal: AbortSignal,
): AsyncGenerator<Chunk, void, undefined> {
  if (isItems(source)) {
    const slice = (source as unknown[]).slice
    for (let first = 0; first < source.length;) {
      const items = slice.call(source, first, first + size.now)
      yield { items, first }
      first += items.length
    }
    return
  }
  if (Symbol.asyncIterator in source) return yield* asyncChunksOf(source, size, signal)
  let first = 0
  let items: unknown[] = []
  for (const item of source) {
    if (items.push(item) < size.now) continue
    yield { items, first }
    first += items.length
    items = []
  }
  if (items.length > 0) yield { items, first }
}

/**
 * Of a source that is slower than the workers, what has come goes on its way: nothing waits for a full chunk.
 */
async function* asyncChunksOf(
  source: AsyncIterable<unknown>,
  size: ChunkSize,
  signal: AbortSignal,
): AsyncGenerator<Chunk, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), {
      once: true,
    })
  })
  aborted.catch(() => {})
  let first = 0
  let items: unknown[] = []
  let pending: Promise<IteratorResult<unknown>> | undefined
  try {
    for (;;) {
      pending ??= iterator.next()
      const next: IteratorResult<unknown> | undefined = await Promise.race(
        items.length === 0 ? [pending, aborted] : [pending, aborted, soon()],
      )
      if (next !== undefined) {
        pending = undefined
        if (next.done === true) break
        if (items.push(next.value) < size.now) continue
      }
      yield { items, first }
      first += items.length
      items = []
    }
    if (items.length > 0) yield { items, first }
  } finally {
    // One that still waits for its next item may never answer.
    if (pending === undefined) await iterator.return?.()
    else void iterator.return?.()?.catch?.(() => {})
  }
}

function soon(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(resolve, undefined))
}

function isItems(source: object): source is Items<unknown> {
  return Array.isArray(source) || (ArrayBuffer.isView(source) && !(source instanceof DataView))
}

function checked(source: unknown, fn: unknown, options: unknown): SpreadOptions {
  const iterable =
    (source !== null && typeof source === 'object') || typeof source === 'string'
      ? Symbol.iterator in Object(source) || Symbol.asyncIterator in Object(source)
      : false
  if (!iterable || typeof source === 'string') {
    throw wrong('the items', 'an array, a typed array or an (async) iterable', source)
  }
  if (typeof fn !== 'function') throw wrong('the function', 'a function', fn)
  const given = argumentsRecord(options, ['signal', 'chunkMax', 'combine']) as SpreadOptions
  const { signal, chunkMax } = given
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw wrong('options.signal', 'an AbortSignal', signal)
  if (chunkMax !== undefined && !(Number.isInteger(chunkMax) && chunkMax >= 1))
    throw wrong('options.chunkMax', 'an integer from 1', chunkMax)
  return given
}

/** See `Zone.map`. */
export function map(
  zone: Spreader,
  source: Source<unknown> | Items<unknown>,
  fn: Function,
  options: unknown,
): Promise<unknown[]> | AsyncGenerator<unknown, void, undefined> {
  const send: Send = (items, first, call) => zone.execute(CHUNKS, 'mapChunk', [fn, items, first, true], call)
  if (source !== null && typeof source === 'object' && !isItems(source)) {
    return flattened(spread(zone, source, send, checked(source, fn, options)))
  }
  return (async () => {
    const all: unknown[] = []
    for await (const values of spread(zone, source, send, checked(source, fn, options))) {
      for (const value of values as unknown[]) all.push(value)
    }
    return all
  })()
}

async function* flattened(
  chunks: AsyncGenerator<unknown, void, undefined>,
): AsyncGenerator<unknown, void, undefined> {
  for await (const values of chunks) yield* values as unknown[]
}

/** See `Zone.forEach`. */
export async function forEach(
  zone: Spreader,
  source: Source<unknown>,
  fn: Function,
  options: unknown,
): Promise<void> {
  const send: Send = (items, first, call) => zone.execute(CHUNKS, 'mapChunk', [fn, items, first, false], call)
  const chunks = spread(zone, source, send, checked(source, fn, options))
  while ((await chunks.next()).done !== true);
}

/** See `Zone.reduce`. @throws {ZoneError} `ZONE_SETTING`, as a rejection. */
export async function reduce(
  zone: Spreader,
  source: Source<unknown>,
  fn: Function,
  initial: unknown,
  options: unknown,
): Promise<unknown> {
  const given: ReduceOptions<unknown> = checked(source, fn, options)
  const { combine = fn as (sum: unknown, next: unknown) => unknown } = given
  if (typeof combine !== 'function') throw wrong('options.combine', 'a function', combine)
  const send: Send = (items, first, call) =>
    zone.execute(CHUNKS, 'reduceChunk', [fn, initial, items, first], call)
  let sum: unknown = initial
  let isFirst = true
  for await (const partial of spread(zone, source, send, given)) {
    sum = isFirst ? partial : combine(sum, partial)
    isFirst = false
  }
  return sum
}
