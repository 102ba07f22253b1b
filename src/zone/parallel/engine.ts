/**
 * The engine of `map`, `forEach` and `reduce`: items in chunks, outcomes in order, memory bounded.
 *
 * A chunk should take some milliseconds: long against a hop, short against the whole, so that all workers end
 * together. What is read, sent and kept is bounded (see Flow of base), and what a zone refuses is split or
 * waits (outbox.ts); so an endless input is read as fast as its results are used and no faster. The first
 * error, in the order of items where they are kept in it, ends everything: nothing after it starts, and what
 * comes before it ends first.
 */
import {
  CHUNK_ITEMS_MAX,
  ChunkSize,
  Flow,
  ItemsReader,
  Part,
  isItems,
  onAbort,
  outcomesOf,
  readerOf,
} from '../../base/index.ts'
import { TransportError } from '../../transport/internal.ts'
import type { CallLimits } from '../call/call.ts'
import { rejection, stackless } from '../call/stacks.ts'
import type { Begun } from '../call/submitter.ts'
import { nowMs } from '../ground/record.ts'
import { shorterMs } from '../call/send.ts'
import { ZoneError } from '../errors.ts'
import type { Ahead } from '../call/call-options.ts'
import type { ChunkOutcome } from './chunks.ts'
import type { AnyIterable, CheckedMap, MapOptions } from './map-options.ts'
import { type Chunk, Outbox, type Sent, Way } from './outbox.ts'

/** Most bytes of a chunk, or of its values: half of what fits into the scratch. */
const CHUNK_BYTES = 128 * 1024

/**
 * Most items of an iterable that are read and not yet taken, by default. With up to eight workers chunks may
 * have 900 items or more, and cost an item no more than larger ones.
 */
const AHEAD_ITEMS = 32_768

/** The limits of a chunk that are those of the whole call. */
const PART = { timeoutMs: undefined, expired: undefined }

/** What a chunk's task returns. */
interface Returned {
  readonly value: unknown
  /** Bytes of the value's frame. */
  readonly frameBytes: number
}

/** The part of a zone that the engine needs. */
export interface Spreader {
  readonly id: string
  /** Whether tasks run in this thread: their errors have stacks of it. */
  readonly isHere: boolean
  /** Whether its tasks share no memory with this thread. */
  readonly isIsolated: boolean
  readonly workersMax: number
  /** The value that a chunk receives of one that all receive: the value where it travels, else a copy. */
  own(value: unknown): unknown
  /** Resolves when there is capacity for a task; `undefined` where the caller would wait for itself. */
  readonly capacity: ((signal: AbortSignal) => Promise<void>) | undefined
  /** Bytes of the arguments that were written last. */
  sentBytes(): number
  /** How long a cancelled task has to end. */
  readonly graceMs: number
  /** How far its streams run ahead by default. */
  readonly ahead: Ahead
  execute(module: URL, name: string, args: unknown[], options: CallLimits, begun: Begun): Promise<Returned>
}

/** Executes a chunk in a worker. */
export type Send = (chunk: Chunk, options: CallLimits) => Promise<Returned>

/** Whether a limit has ended a call: what has come and was not handed out is dropped. */
export class Cut {
  isSet = false
  readonly set = (): void => void (this.isSet = true)
}

/** The outcomes of chunks, as many as are ready. @throws whatever the first failing chunk failed with. */
export async function* spread(
  zone: Spreader,
  source: AnyIterable<unknown>,
  send: Send,
  options: CheckedMap,
  cut: Cut,
  failed: (chunk: Chunk, error: unknown) => unknown = thrown,
  names: readonly string[] = ['fn', 'items'],
): AsyncGenerator<readonly unknown[], void, undefined> {
  const stop = new AbortController()
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal])
  const timeoutMs = shorterMs(options.timeoutMs)
  const deadline = deadlineOf(zone, timeoutMs, stop)
  const deadlineMs = timeoutMs === undefined ? undefined : nowMs() + timeoutMs
  const { aheadMax, order, chunksMax = 2 * zone.workersMax + 2 } = options
  const length = isItems(source) ? source.length : Infinity
  const size = new ChunkSize(sizeMax(options, chunksMax, length), CHUNK_BYTES)
  const outbox = new Outbox({
    offer: (chunk, itsSignal) =>
      offered(zone, send, chunk, size, { ...PART, signal: itsSignal, order, deadlineMs }),
    failed: (chunk, error) =>
      signal.aborted ? thrown(chunk, error) : failed(chunk, asCalled(error, names, chunk.first)),
    capacity: zone.capacity,
    bytesMax: (most) => size.bytesMax(most),
  })
  const out = new Set<Chunk>()
  const flow: Flow<ArrayLike<unknown>, unknown[]> = new Flow<ArrayLike<unknown>, unknown[]>({
    sizeNow: () => size.tail(length - flow.count + flow.leftCount, zone.workersMax),
    run: async (items, first) => {
      const chunk = { items, first, way: new Way() }
      out.add(chunk)
      try {
        const { outcomes, count } = await outbox.send(chunk, signalFor(chunk, options.itemSignal, signal))
        return count < items.length ? new Part(outcomes, count) : outcomes
      } catch (error) {
        cancelAfter(chunk)
        throw error
      } finally {
        out.delete(chunk)
      }
    },
    settled: () => void reader.read(),
    join: (taken, next) => void taken.push(...next),
    ordered: options.ordered !== false,
    runsMax: chunksMax,
    // Refilled after each single one, chunks would cross threads one by one.
    refillsLate: true,
    aheadMax,
  })
  /** In its turn a failed chunk ends all; until then nothing begins that comes after it. */
  const cancelAfter = (failing: Chunk): void => {
    if (failing.way.isEnded) return
    flow.ended()
    const why = new DOMException('The rest is not needed', 'AbortError')
    for (const { way, first } of out) if (options.ordered === false || first > failing.first) way.end(why)
  }
  const reader = isItems(source) ? new ItemsReader(source, flow) : readerOf(source, flow)
  onAbort(signal, cut.set)
  try {
    yield* outcomesOf(flow, reader, signal)
  } catch (error) {
    // Nobody may have awaited the chunk when it failed, but somebody does in its turn.
    throw zone.isHere ? error : await tracedHere(zone.id, error)
  } finally {
    clearTimeout(deadline)
    stop.abort(new DOMException('The rest is not needed', 'AbortError'))
  }
}

function deadlineOf(
  { id: zone }: Spreader,
  timeoutMs: number | undefined,
  stop: AbortController,
): NodeJS.Timeout | undefined {
  if (timeoutMs === undefined) return undefined
  const facts = { zone, timeoutMs, started: true }
  const late = (): void => stop.abort(stackless(() => new ZoneError('TASK_TIMEOUT', facts)))
  return setTimeout(late, timeoutMs)
}

/** Most items per chunk. */
function sizeMax(
  { itemSignal, chunkMax = CHUNK_ITEMS_MAX, aheadMax }: MapOptions,
  chunksMax: number,
  length: number,
): number {
  // All chunks that may be in flight must fit, or workers would wait for each other's. By default there are
  // as many again that the caller is at.
  const aheadItems = aheadMax ?? (length < Infinity ? Infinity : AHEAD_ITEMS / 2)
  const aheadShare = Math.floor(aheadItems / chunksMax)
  return Math.max(1, Math.min(itemSignal === undefined ? chunkMax : 1, aheadShare))
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
  limits: CallLimits,
): Promise<Sent> {
  const sent = send(chunk, limits)
  const bytes = zone.sentBytes()
  const { value, frameBytes } = await sent
  const [ms, outcome, count] = value as ChunkOutcome
  size.learn(count, ms, Math.max((bytes * count) / chunk.items.length, frameBytes))
  return { outcomes: [outcome], count }
}

/** The error of a value that cannot travel, by its path in the arguments of the call and not of its chunk. */
function asCalled(error: unknown, names: readonly string[], first: number): unknown {
  if (!(error instanceof TransportError)) return error
  const facts = error.facts as { readonly path?: string }
  const [, arg, item, rest] = /^args\[(\d+)\](?:\[(\d+)\])?(.*)$/s.exec(facts.path ?? '') ?? []
  const name = names[Number(arg)]
  if (name === undefined) return error
  const index = item === undefined ? '' : `[${Number(item) + (name === 'items' ? first : 0)}]`
  const options = error.cause === undefined ? undefined : { cause: error.cause }
  return new TransportError(error.code, { ...facts, path: `${name}${index}${rest}` }, options)
}

function thrown(_: Chunk, error: unknown): never {
  throw error
}
