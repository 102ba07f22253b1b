/**
 * `Stream`: what users call. A value that describes items; its stages are in stages.ts and concurrent.ts.
 *
 * Arguments are checked here, once; below all of them are right. Over 400 lines: one class, whose methods
 * are a line or two below what they do, their limits and their errors.
 */
import {
  type Kind,
  TIMER_MS_MAX,
  flag,
  integer,
  milliseconds,
  oneOf,
  optionsOf,
  valueOfKind,
} from '../base/index.ts'
import {
  type AnyBody,
  type Exit,
  type FailureOf,
  type Operation,
  Schedule,
  type ValueOf,
  currentFiber,
  fail,
  never,
  yieldNow,
  ensuring,
} from '../fiber/index.ts'
import { isProgram } from '../fiber/internal.ts'
import * as concurrent from './concurrent.ts'
import { StreamError, wrong } from './errors.ts'
import { type NodeWritable, written } from './into.ts'
import type { WhenFull } from './passage.ts'
import { readerOf } from './reader.ts'
import { type End, type Run, pendingIn, worked } from './run.ts'
import { acquired, openedBy, repeated, runOf } from './sources.ts'
import * as stages from './stages.ts'
import { type StreamRun, runBy } from './stream-run.ts'

/** What a stream can be made of beside arrays: it is read one item at a time. */
export type StreamSource<A> = Iterable<A> | AsyncIterable<A> | ReadableStream<A>

type AnySource<A> = StreamSource<A> | Stream<A, unknown>

/** Options of {@link Stream.mapConcurrent}. */
export interface MapConcurrentOptions {
  /** Most items that are worked on, or wait for their turn, 1 to 2^20. Default 16. */
  readonly concurrency?: number
  /** Whether values come in the order of the items, or as their work ends. Default true. */
  readonly ordered?: boolean
}

/** Options of {@link Stream.buffer}. */
export interface BufferOptions {
  /** What a full buffer does with one more item. Default `'wait'`. */
  readonly whenFull?: WhenFull
}

/** Options of {@link Stream.window}. */
export interface WindowOptions {
  /** Most items of a list, 1 to 2^20. Default 1024. */
  readonly itemsMax?: number
  /** The age of its first item at which a list is emitted all the same, in ms. Default: any. */
  readonly ms?: number
}

/** Options of {@link Stream.throttle}. */
export interface ThrottleOptions {
  /** Most items in any `perMs`, 1 to 2^20. Default 1. */
  readonly items?: number
  /** The span, in ms. Default 1000. */
  readonly perMs?: number
  /** Drop what comes too early, instead of waiting. Default false. */
  readonly drop?: boolean
}

/** Options of {@link Stream.groupBy}. */
export interface GroupByOptions {
  /** Most keys, 1 to 2^20. Default 1024. */
  readonly groupsMax?: number
  /** Most items of a group that wait for its stream, 1 to 2^20. Default 16. */
  readonly capacity?: number
}

/** Options of {@link Stream.broadcast}. */
export interface BroadcastOptions {
  /** How many items the slowest reader may be behind the fastest, 1 to 2^20. Default 16. */
  readonly capacity?: number
}

/** Options of {@link Stream.runInto}. */
export interface RunIntoOptions {
  /** Leave the destination open, however the stream ends: for `process.stdout`. Default false. */
  readonly keepOpen?: boolean
}

const COUNT_MAX = 2 ** 20
const COUNT = integer(1, COUNT_MAX, 16)
const MS = milliseconds(TIMER_MS_MAX, 0)
const MAP = { concurrency: COUNT, ordered: flag(true) }
const BUFFER = { whenFull: oneOf(['wait', 'drop', 'slide'], 'wait') }
const WINDOW = { itemsMax: integer(1, COUNT_MAX, 1024), ms: milliseconds(TIMER_MS_MAX, undefined) }
const THROTTLE = {
  items: integer(1, COUNT_MAX, 1),
  perMs: milliseconds(TIMER_MS_MAX, 1000),
  drop: flag(false),
}
const GROUP = { groupsMax: integer(1, COUNT_MAX, 1024), capacity: COUNT }
const FLAT = { concurrency: integer(1, COUNT_MAX, 1) }
const BROADCAST = { capacity: COUNT }
const INTO = { keepOpen: flag(false) }
const FROM_0 = integer(0, Infinity, 0)

/**
 * Items of the type `A` that come one after the other, and may end with a failure `E`.
 *
 * A stream is a description: nothing is read until it is run, and each run begins at the source. A run reads
 * an item when its sink needs one, and closes what it has opened exactly once, however it ends. The methods
 * that begin with `run` return what can be waited for with `await`, and with `yield*` in a fiber. What
 * functions such as that of `map` throw is a defect; see `corespun/fiber`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Stream } from 'corespun/stream'
 *
 * const squares = Stream.from([1, 2, 3, 4])
 *   .filter((n) => n % 2 === 0)
 *   .mapConcurrent(async (n) => n * n, { concurrency: 2 })
 * assert.deepEqual(await squares.runCollect(), [4, 16])
 * ```
 */
export class Stream<out A, out E = never> {
  /** @internal */
  readonly run: Run
  /** For the compiler alone. @internal */
  declare readonly types: () => [A, E]

  /** Use `Stream.from` and the others. @internal */
  constructor(run: Run) {
    this.run = run
  }

  /** The items that are passed. */
  static of<A>(...items: readonly A[]): Stream<A> {
    return new Stream(runOf(items))
  }

  /** No items. */
  static get empty(): Stream<never> {
    return Stream.of<never>()
  }

  /** No item ever; it does not end. */
  static get never(): Stream<never> {
    return new Stream(() => endless())
  }

  /** Fails at once. */
  static fail<E>(error: E): Stream<never, E> {
    return new Stream(() => failing(error))
  }

  /**
   * The items of an array, an iterable, an asynchronous one, or a stream of the web or of Node. It is opened
   * when the stream is run and read one item at a time; what it throws or rejects with is a failure. When the
   * run ends earlier the iterator's `return` is called, a stream of the web is cancelled, and one of Node is
   * destroyed. An item that is being read is not waited for then.
   * @param source A function is called by each run, so that the stream can be run, and retried, more than
   *   once: it returns what to read, or a promise of it. One with a parameter receives a signal, which is
   *   aborted when the run is interrupted.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  static from<A>(source: readonly A[]): Stream<A>
  /** A stream as it is. */
  static from<A, E = never>(source: Stream<A, E>): Stream<A, E>
  /** The items of a source, which may fail. */
  static from<A>(source: StreamSource<A>): Stream<A, unknown>
  /** The items of what `open` returns. */
  static from<A>(open: (signal: AbortSignal) => AnySource<A> | PromiseLike<AnySource<A>>): Stream<A, unknown>
  static from(source: unknown): Stream<unknown, unknown> {
    if (typeof source !== 'function') return new Stream(runOfAny(source, 'Stream.from(): the source'))
    const toRun = (made: unknown): Run => runOfAny(made, 'Stream.from(): what the function returned')
    return new Stream(openedBy(source as () => unknown, toRun))
  }

  /**
   * The value of a body, again and again, each when it is needed. Without a schedule it does not end.
   * @param body A function or an arrow. @param schedule When to run it again, and how often.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  static repeat<const B extends AnyBody>(
    body: B,
    schedule?: Schedule<ValueOf<B>>,
  ): Stream<ValueOf<B>, FailureOf<B>> {
    if (typeof body !== 'function' && !isProgram(body))
      throw wrong('Stream.repeat(): body', 'a function', body)
    if (schedule !== undefined) checkSchedule('Stream.repeat()', schedule)
    return new Stream(repeated(body, schedule))
  }

  /**
   * One item, which `acquire` returns and `release` is called with when the run of the stream behind it ends;
   * neither is interrupted.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  static acquireRelease<const B extends AnyBody>(
    acquire: B,
    release: (value: ValueOf<B>, exit: Exit<unknown, unknown>) => unknown,
  ): Stream<ValueOf<B>, FailureOf<B>> {
    checkFunction('Stream.acquireRelease(): release', release)
    return new Stream(acquired(acquire, release))
  }

  /** What `map` returns for each item. @throws {StreamError} `STREAM_ARGUMENT`. */
  map<B>(map: (item: A) => B): Stream<B, E> {
    checkFunction('map(): map', map)
    return new Stream(stages.mapped(this.run, map as never))
  }

  /** The items for which `test` returns true. @throws {StreamError} `STREAM_ARGUMENT`. */
  filter<B extends A>(test: (item: A) => item is B): Stream<B, E>
  /** The items for which `test` returns true. @throws {StreamError} `STREAM_ARGUMENT`. */
  filter(test: (item: A) => boolean): Stream<A, E>
  filter(test: (item: A) => boolean): Stream<A, E> {
    checkFunction('filter(): test', test)
    return new Stream(stages.filtered(this.run, test as never))
  }

  /**
   * The state that `next` returns for each item, from `initial` on.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  scan<State>(initial: State, next: (state: State, item: A) => State): Stream<State, E> {
    checkFunction('scan(): next', next)
    return new Stream(stages.scanned(this.run, initial, next as never))
  }

  /**
   * Runs `work` for each item before passing it on, one after the other.
   * @param work Called as a body is: a generator function, an async function or a plain function.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  tap<R>(work: (item: A) => R): Stream<A, E | FailureOf<() => R>> {
    checkFunction('tap(): work', work)
    return new Stream(worked(this.run, work as never, (item) => item))
  }

  /**
   * The values of `work` for each item, a bounded number at a time, each in a fiber of its own. A failure is
   * the stream's in its turn: values before it come first; what still runs is interrupted. With
   * `concurrency: 1` it runs one after the other, and reads no item ahead.
   * @param work Called as a body is: a generator function, an async function or a plain function.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  mapConcurrent<R>(
    work: (item: A) => R,
    options?: MapConcurrentOptions,
  ): Stream<ValueOf<() => R>, E | FailureOf<() => R>> {
    const checked = optionsOf(options, MAP, wrong, 'mapConcurrent()')
    checkFunction('mapConcurrent(): work', work)
    if (checked.concurrency === 1) return new Stream(worked(this.run, work as never, (_, value) => value))
    return new Stream(concurrent.workedAtOnce(this.run, work as never, checked))
  }

  /**
   * The items of the streams that `map` returns, one stream after the other, or several at once; then in the
   * order in which they come.
   * @param options.concurrency Most streams at once, 1 to 2^20. Default 1.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  flatMap<B, F>(
    map: (item: A) => Stream<B, F>,
    options?: { readonly concurrency?: number },
  ): Stream<B, E | F> {
    const { concurrency } = optionsOf(options, FLAT, wrong, 'flatMap()')
    checkFunction('flatMap(): map', map)
    const made = (item: unknown): Run => streamRun(map(item as A), 'flatMap(): what map() returned')
    return new Stream(concurrent.flattened(this.run, made, concurrency))
  }

  /** The items of this stream, and then those of the others. @throws {StreamError} `STREAM_ARGUMENT`. */
  concat<B = never, F = never>(...others: readonly Stream<B, F>[]): Stream<A | B, E | F> {
    return new Stream(stages.concatenated([this.run, ...runsOf('concat()', others)]))
  }

  /**
   * The items of this stream and of the others as they come. It ends when all have ended, or with the first
   * failure.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  merge<B = never, F = never>(...others: readonly Stream<B, F>[]): Stream<A | B, E | F> {
    return new Stream(concurrent.merged([this.run, ...runsOf('merge()', others)]))
  }

  /** Pairs of the items of both, until either ends. @throws {StreamError} `STREAM_ARGUMENT`. */
  zip<B, F>(other: Stream<B, F>): Stream<[A, B], E | F> {
    return new Stream(concurrent.zipped(this.run, streamRun(other, 'zip(): other')))
  }

  /** The first `count` items; no further one is read. @throws {StreamError} `STREAM_ARGUMENT`. */
  take(count: number): Stream<A, E> {
    return new Stream(stages.taken(this.run, checked('take(): count', count, FROM_0)))
  }

  /** All but the first `count` items. @throws {StreamError} `STREAM_ARGUMENT`. */
  drop(count: number): Stream<A, E> {
    return new Stream(stages.dropped(this.run, checked('drop(): count', count, FROM_0)))
  }

  /**
   * The items before the first one for which `test` returns false.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  takeWhile(test: (item: A) => boolean): Stream<A, E> {
    checkFunction('takeWhile(): test', test)
    return new Stream(stages.takenWhile(this.run, test as never))
  }

  /**
   * The items from the first one on for which `test` returns false.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  dropWhile(test: (item: A) => boolean): Stream<A, E> {
    checkFunction('dropWhile(): test', test)
    return new Stream(stages.droppedWhile(this.run, test as never))
  }

  /**
   * Reads up to `capacity` items ahead, in a fiber of its own.
   * @param capacity 1 to 2^20.
   * @param options.whenFull `'wait'`: the source waits. `'drop'`: further items are dropped. `'slide'`: the
   *   oldest one is.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  buffer(capacity: number, options?: BufferOptions): Stream<A, E> {
    const { whenFull } = optionsOf(options, BUFFER, wrong, 'buffer()')
    return new Stream(
      concurrent.buffered(this.run, checked('buffer(): capacity', capacity, COUNT), whenFull as WhenFull),
    )
  }

  /**
   * Lists of items, each emitted when it is full or, with `ms`, when its first item is that old. A failure
   * drops the list that is not full.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  window(options: WindowOptions): Stream<A[], E> {
    const { itemsMax, ms } = optionsOf(options, WINDOW, wrong, 'window()')
    if (ms === undefined) return new Stream(stages.grouped(this.run, itemsMax))
    return new Stream(concurrent.groupedIn(this.run, itemsMax, ms))
  }

  /**
   * At most `items` items in any `perMs`: others wait, or are dropped.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  throttle(options?: ThrottleOptions): Stream<A, E> {
    const { items, perMs, drop } = optionsOf(options, THROTTLE, wrong, 'throttle()')
    return new Stream(stages.throttled(this.run, items, perMs, drop))
  }

  /**
   * The items that no other follows within `ms` milliseconds; of a burst the last one. The source is not held
   * back.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  debounce(ms: number): Stream<A, E> {
    return new Stream(concurrent.debounced(this.run, checked('debounce(): ms', ms, MS)))
  }

  /**
   * Divides the stream by the keys of its items, compared as those of a Map. `work` is called once for each
   * key, with the stream of its items; the items of the streams that it returns come as they do. A group that
   * is not read holds the others back when `capacity` items of it wait; when its stream has ended, further
   * items of it are dropped.
   * @throws {StreamError} `STREAM_ARGUMENT`. A failure of the stream: `STREAM_GROUPS_FULL`.
   */
  groupBy<Key, B, F>(
    keyOf: (item: A) => Key,
    work: (group: Stream<A, E>, key: Key) => Stream<B, F>,
    options?: GroupByOptions,
  ): Stream<B, E | F | StreamError<'STREAM_GROUPS_FULL'>> {
    const limits = optionsOf(options, GROUP, wrong, 'groupBy()')
    checkFunction('groupBy(): keyOf', keyOf)
    checkFunction('groupBy(): work', work)
    const made = (group: Run, key: unknown): Run =>
      streamRun(work(new Stream(group), key as Key), 'groupBy(): what work() returned')
    return new Stream(concurrent.groupedBy(this.run, keyOf as never, made, limits))
  }

  /**
   * `count` streams that each have all items of one run of this one. It runs in a child of the fiber that
   * asks, from now on, and waits for the slowest of the readers that have not ended: read all of them. Each
   * of the streams can be run once.
   * @throws {StreamError} `STREAM_ARGUMENT`. A `FiberError` `FIBER_REQUIRED`.
   */
  *broadcast(count: number, options?: BroadcastOptions): Operation<Stream<A, E>[]> {
    const { capacity } = optionsOf(options, BROADCAST, wrong, 'broadcast()')
    const readers = checked('broadcast(): count', count, COUNT)
    currentFiber('broadcast()')
    yield* yieldNow()
    return concurrent.broadcasted(this.run, readers, capacity).map((run) => new Stream(run))
  }

  /** Fails when an item takes longer than `ms`. @throws {StreamError} `STREAM_ARGUMENT`. */
  timeout(ms: number): Stream<A, E | StreamError<'STREAM_TIMEOUT'>> {
    return new Stream(concurrent.inTime(this.run, checked('timeout(): ms', ms, MS)))
  }

  /**
   * Continues with the stream that `handle` returns when this one fails. Failures of later stages, defects
   * and interruptions are not caught.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  catchAll<B, F>(handle: (error: E) => Stream<B, F>): Stream<A | B, F> {
    checkFunction('catchAll(): handle', handle)
    const made = (error: unknown): Run => streamRun(handle(error as E), 'catchAll(): what handle() returned')
    return new Stream(stages.caught(this.run, made))
  }

  /**
   * Runs the stream again from its source when it fails, as `schedule` decides; items that have passed come
   * again. The schedule begins anew behind a run that had an item.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  retry(schedule: Schedule<E>): Stream<A, E> {
    checkSchedule('retry()', schedule)
    return new Stream(stages.retried(this.run, schedule as Schedule))
  }

  /**
   * Runs `finalizer` as a body when a run of this stream has ended, however it did, once and uninterrupted.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  ensuring(finalizer: (exit: Exit<unknown, unknown>) => unknown): Stream<A, E> {
    checkFunction('ensuring(): finalizer', finalizer)
    return new Stream((emit) => ensuring(this.run(emit), finalizer))
  }

  /** All items. They are held in memory: use `take` where there may be too many. */
  runCollect(): StreamRun<A[], E> {
    return runBy(() => stages.folded<A[]>(this.run, [], (items, item) => (items.push(item), items)))
  }

  /**
   * The state that `next` returns for the last item, from `initial` on; `initial` for no items.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  runFold<State>(initial: State, next: (state: State, item: A) => State): StreamRun<State, E> {
    checkFunction('runFold(): next', next)
    return runBy(() => stages.folded(this.run, initial, next))
  }

  /**
   * Runs `work` for each item, one after the other.
   * @param work Called as a body is: a generator function, an async function or a plain function.
   * @throws {StreamError} `STREAM_ARGUMENT`.
   */
  runForEach<R>(work: (item: A) => R): StreamRun<void, E | FailureOf<() => R>> {
    checkFunction('runForEach(): work', work)
    return runBy(() => ended(this.run((item) => pendingIn(work(item as A)))))
  }

  /** The first item; `undefined` for none. No further one is read. */
  runHead(): StreamRun<A | undefined, E> {
    return runBy(() => stages.first(this.run))
  }

  /** How many items it has. */
  runCount(): StreamRun<number, E> {
    return runBy(() => stages.folded(this.run, 0, (count) => count + 1))
  }

  /** Runs it for what it does. */
  runDrain(): StreamRun<void, E> {
    return runBy(() => ended(this.run(() => undefined)))
  }

  /**
   * Writes all items into a stream of Node or of the web, which holds this one back. It is ended behind the
   * last item and destroyed or aborted when the run fails or is interrupted; its error interrupts the run.
   * @throws {StreamError} `STREAM_ARGUMENT`. A failure: `STREAM_CLOSED`.
   */
  runInto(target: NodeWritable | WritableStream<A>, options?: RunIntoOptions): StreamRun<void, unknown> {
    const { keepOpen } = optionsOf(options, INTO, wrong, 'runInto()')
    const isWritable =
      target instanceof WritableStream || typeof (target as NodeWritable | null)?.write === 'function'
    if (!isWritable) throw wrong('runInto(): target', 'a Writable or a WritableStream', target)
    return runBy(() => written(this.run, target, keepOpen))
  }

  /**
   * Runs it for a `for await` loop, `Readable.from(stream)` or `ReadableStream.from(stream)`, one item for
   * each request. `return()` interrupts the run, also while a request waits.
   */
  [Symbol.asyncIterator](): AsyncGenerator<A, void, undefined> {
    return readerOf(this.run) as AsyncGenerator<A, void, undefined>
  }
}

function* endless(): Operation<End> {
  return yield* never()
}

function* failing(error: unknown): Operation<End, unknown> {
  return yield* fail(error)
}

function* ended(run: Operation<End, unknown>): Operation<void, unknown> {
  yield* run
}

function streamRun(stream: unknown, name: string): Run {
  if (stream instanceof Stream) return stream.run
  throw wrong(name, 'a Stream', stream)
}

function runsOf(call: string, streams: readonly unknown[]): Run[] {
  return streams.map((stream, index) => streamRun(stream, `${call}: others[${index}]`))
}

function runOfAny(source: unknown, name: string): Run {
  if (source instanceof Stream) return source.run
  const given = source as Partial<AsyncIterable<unknown> & Iterable<unknown>> | null | undefined
  const open = given?.[Symbol.asyncIterator] ?? given?.[Symbol.iterator]
  if (typeof open === 'function' || source instanceof ReadableStream) return runOf(source as object)
  throw wrong(name, 'an array, an iterable or async iterable, or a stream of Node or of the web', source)
}

function checkFunction(name: string, value: unknown): void {
  if (typeof value !== 'function') throw wrong(name, 'a function', value)
}

function checkSchedule(call: string, schedule: unknown): void {
  if (!(schedule instanceof Schedule)) throw wrong(`${call}: schedule`, 'a Schedule', schedule)
}

/** A number that must be there. */
function checked(name: string, value: unknown, kind: Kind<number>): number {
  if (value === undefined) throw wrong(name, kind.expected, value)
  const [call, argument] = name.split(': ')
  return valueOfKind(call, argument, value, kind, wrong)
}
