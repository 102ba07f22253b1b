/**
 * What callers see of zones: `AnyZone` is what all of them have, `Zone` what only zones of workers have.
 *
 * The classes behind them (worker-zone.ts, node-zone.ts, limited-zone.ts) are internal, so each method is
 * described here and nowhere else. Methods that return promises never throw: a wrong call is a rejection.
 */
import type { CallOptions, TaskOptions } from '../call/call.ts'
import type { ModuleCalls, Passed, TaskFunction } from '../ground/task.ts'
import type {
  AnyIterable,
  Items,
  MapOptions,
  ParallelOptions,
  ReduceOptions,
  Settled,
} from '../parallel/map-options.ts'
import type { StreamFunction, StreamOptions, StreamSource } from '../call/call-options.ts'
import type { ZoneStream } from '../stream/stream.ts'
import type { ErrorListener } from '../ground/uncaught.ts'
import type { Result } from '../ground/result.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import type { ZoneStats } from '../ground/stats.ts'

/** The options of calls that resolve the name of a module. */
export interface ModuleOptions extends TaskOptions {
  /**
   * The URL or absolute path that relative and bare module names are resolved against, such as
   * `import.meta.url`. Default: the file that makes the call, as the stack shows it.
   */
  readonly from?: string | URL | undefined
}

/** The options of a broadcast, which goes before all tasks. */
export type BroadcastOptions = CallOptions & Pick<ModuleOptions, 'from'>

/** The names of the functions that a module exports. */
export type ExportName<Module> = {
  [Name in keyof Module]: Module[Name] extends (...args: never[]) => unknown ? Name : never
}[keyof Module] &
  string

/** The arguments of `execute` after the module: the name of an export, its arguments, options. */
export type ExportCall<Module, Name extends ExportName<Module>> = Name extends unknown
  ? Module[Name] extends (...args: infer Args) => unknown
    ? [] extends Args
      ? [name: Name, args?: Readonly<Args>, options?: ModuleOptions]
      : [name: Name, args: Readonly<Args>, options?: ModuleOptions]
    : never
  : never

/** The value that a call of an export resolves to. */
export type ExportValue<Module, Name extends ExportName<Module>> = Module[Name] extends (
  ...args: never[]
) => infer Value
  ? Awaited<Value>
  : never

/**
 * Every kind of zone: workers, ready-made or created; the calling thread itself (`zone.node`); and a view of
 * either with limits (`with`). Functions that take a zone to run code in should take an `AnyZone`.
 */
export interface AnyZone {
  /** The zone's name in the process; `node` for the calling thread. */
  readonly id: string

  /**
   * Run a function on one worker. It must not capture variables; its arguments and its value are copied. A
   * task may call any zone, its own too, and await the result: while such a call is in flight, its worker may
   * begin one more task (`waitingPerWorkerMax`), so calls that lead back to a zone never deadlock.
   *
   * Arguments and results may be streams, or contain some in plain objects and arrays: async iterables,
   * generators and other iterators, which arrive as async iterators; `ReadableStream`s; streams of Node,
   * which arrive as a `Readable`. Items go ahead of their reader as far as `aheadMax` and `aheadBytesMax` of
   * the zone allow. When the task ends, sources among its arguments that have not ended are closed. A task
   * whose result contains streams ends when they have; a reader that leaves one ends its source.
   *
   * Rejects with what the function throws; with a `ZoneError` `ZONE_FULL`, `ZONE_BYTES_FULL`,
   * `TASK_TOO_LARGE`, `ZONE_CLOSED`, `WORKER_DIED`, `ZONE_OWNER_DIED`, `ZONE_START_FAILED`,
   * `ZONE_CALL_TOO_DEEP`, or, in a broadcast of the same zone, `ZONE_DEADLOCK`; with a `FunctionError` that
   * names what the function captures; with a `TransportError` that names what cannot be copied.
   */
  run<Args extends unknown[], Value>(fn: TaskFunction<Args, Value>, ...args: Args): Promise<Awaited<Value>>
  /** `run` with generators for parameters that are async iterators: see the first overload. */
  run<Args extends unknown[], Value>(
    fn: TaskFunction<Args, Value>,
    ...args: Passed<Args>
  ): Promise<Awaited<Value>>

  /** Run a function that takes no arguments on one worker. Options, errors: see the next overload. */
  execute<Value>(
    fn: TaskFunction<[], Value>,
    args?: readonly [],
    options?: TaskOptions,
  ): Promise<Result<Awaited<Value>>>
  /**
   * Run a function on one worker; the value is decoded when `result.value` is first read. Rejects as `run`
   * does, and with `TASK_TIMEOUT` or the signal's reason. Both end the call at once: a task that has not
   * started is removed from the queue; one that runs has its own signal aborted and, `graceMs` later, its
   * worker replaced, even if the calling thread has ended.
   */
  execute<Args extends unknown[], Value>(
    fn: TaskFunction<Args, Value>,
    args: Readonly<Args>,
    options?: TaskOptions,
  ): Promise<Result<Awaited<Value>>>
  /**
   * Call an export of a module on one worker, typed: `execute<typeof import('./m.js')>(url, 'name', args)`
   * checks name and arguments, and the value has the type of the exports' values;
   * `execute<typeof import('./m.js'), 'name'>(...)` has the exact one. Rejects as above, and with a
   * `FunctionError` when the module does not load or has no such function.
   */
  execute<Module extends object, Name extends ExportName<Module> = ExportName<Module>>(
    module: string | URL,
    ...call: ExportCall<Module, Name>
  ): Promise<Result<ExportValue<Module, Name>>>
  /** Call an export of a module on one worker, untyped. */
  execute(
    module: string | URL,
    name: string,
    args?: readonly unknown[],
    options?: ModuleOptions,
  ): Promise<Result>

  /**
   * The functions that a module exports, as calls to this zone: `zone.module<typeof import('./m.js')>(url)`.
   * Nothing is loaded here; a missing module or export is the rejection of the call that needs it. The
   * options apply to every call. Throws `ZONE_ARGUMENT` for wrong ones.
   */
  module<Module>(url: string | URL, options?: ModuleOptions): ModuleCalls<Module>

  /** Run code, or a function without arguments, once on every worker: see the next overload. */
  broadcast(
    what: string | TaskFunction<[], unknown>,
    args?: readonly [],
    options?: BroadcastOptions,
  ): Promise<void>
  /**
   * Run a function once on every worker, before all waiting tasks; and again on each worker that joins later.
   * Code (a string) runs as a script: its top-level declarations are globals of the worker. Resolves when all
   * present workers have run it; rejects with the first error, after all have run it; with
   * `BROADCAST_TIMEOUT` or the signal's reason, which end the wait alone: workers that have not run it yet
   * still do, before their next task. A task may await a broadcast to its own zone, which runs meanwhile. A
   * broadcast cannot call its own zone: `ZONE_DEADLOCK`.
   */
  broadcast<Args extends unknown[]>(
    what: TaskFunction<Args, unknown>,
    args: Readonly<Args>,
    options?: CallOptions,
  ): Promise<void>

  /** Run code, or a function without arguments, once on every worker: see the next overload. */
  broadcastSync(
    what: string | TaskFunction<[], unknown>,
    args?: readonly [],
    options?: Pick<BroadcastOptions, 'timeoutMs' | 'from'>,
  ): void
  /**
   * `broadcast` that blocks this thread until all workers have run it, at most `timeoutMs`, default 30,000.
   * Throws `BROADCAST_TIMEOUT` then, and the workers still run it; `ZONE_DEADLOCK` in a worker of
   * this zone. The thread that starts the workers (mostly the main thread) waits the whole time for a worker
   * that dies of the broadcast, since a blocked thread receives no exit events.
   */
  broadcastSync<Args extends unknown[]>(
    what: TaskFunction<Args, unknown>,
    args: Readonly<Args>,
    options?: { readonly timeoutMs?: number | undefined },
  ): void

  /** `map` of an array or typed array that settles: see the last overload. */
  map<Item, Value>(
    items: Items<Item>,
    fn: (item: Item, index: number) => Value,
    options: MapOptions & { readonly settle: true },
  ): Promise<Settled<Awaited<Value>>[]>
  /** `map` of an array or typed array, a promise of all values: see the last overload. */
  map<Item, Value>(
    items: Items<Item>,
    fn: (item: Item, index: number) => Value,
    options?: MapOptions & { readonly settle?: false },
  ): Promise<Awaited<Value>[]>
  /** `map` of an iterable that settles: see the last overload. */
  map<Item, Value>(
    items: AnyIterable<Item>,
    fn: (item: Item, index: number) => Value,
    options: MapOptions & { readonly settle: true },
  ): AsyncGenerator<Settled<Awaited<Value>>, void, undefined>
  /**
   * Run a function on every item, on all workers, in the order of items. An array or typed array returns a
   * promise of all values; another iterable, sync or async, returns an async iterable of the values, which
   * reads its input only as far ahead as the workers can use, so the input may be endless.
   *
   * Items travel in chunks whose size follows from what items cost. `map` waits while the zone is full, and
   * splits what is too large for it, down to single items. The function must be able to travel (see `run`),
   * may be asynchronous, and receives the item and its index. The first error, in the order of items, is
   * thrown, and nothing after it starts; aborting the signal does the same. With `settle` errors are outcomes
   * instead; with `ordered: false` an iterable's values arrive as they are ready. Rejects with a `ZoneError`
   * `ZONE_ARGUMENT` for wrong arguments, `TASK_TIMEOUT` after `timeoutMs`.
   */
  map<Item, Value>(
    items: AnyIterable<Item>,
    fn: (item: Item, index: number) => Value,
    options?: MapOptions & { readonly settle?: false },
  ): AsyncGenerator<Awaited<Value>, void, undefined>

  /** `map` that keeps no values: resolves when all items are done. Rejects with the first error in time. */
  forEach<Item>(
    items: AnyIterable<Item>,
    fn: (item: Item, index: number) => unknown,
    options?: ParallelOptions,
  ): Promise<void>

  /**
   * Fold the items into one value: each chunk in a worker, from `initial`, and the partial results, in order,
   * in this thread. `initial` is used once per chunk, so it must be neutral, as 0 is for sums; where the sum
   * is of another type than the items, `combine` adds two partial sums. Both functions may return a promise.
   * The function may change the sum that it receives: each chunk has a copy of `initial`.
   */
  reduce<Item, Sum>(
    items: AnyIterable<Item>,
    fn: (sum: Sum, item: Item, index: number) => Sum | PromiseLike<Sum>,
    initial: Sum,
    options?: ReduceOptions<Sum>,
  ): Promise<Sum>

  /**
   * Run a function on one worker between a source and this thread: it receives the items of `source` as they
   * come, as an async iterator, and this method returns the items of what it returns, a generator in most
   * cases. Source and result may be iterables, sync or async, streams of the web or of Node, and Blobs.
   *
   * Items travel in batches, a single one at once. Neither side runs more than `aheadMax` items or
   * `aheadBytesMax` bytes ahead of its reader. The stream begins with the first item that is requested and is
   * one task. Leaving the loop ends both sides: the source's `return()` is called, and the function's
   * iterator is closed, so that its `finally` blocks run; a task that has not ended after `graceMs` is
   * cancelled. A function that ends early closes the source. Errors keep their position: those of the source
   * are thrown to the function behind the items before them, and what the function throws is thrown here,
   * behind its last item.
   *
   * Fails as `execute` does, with a `ZoneError` `ZONE_ARGUMENT` for wrong arguments or a function that
   * returns no source, and with a `TransportError` that names the item that cannot travel.
   */
  stream<In, Out>(
    fn: StreamFunction<In, Out>,
    source: StreamSource<In>,
    options?: StreamOptions,
  ): ZoneStream<Out>

  /**
   * A view of this zone whose calls (`run`, `execute`, `module`, `broadcast`, `map`, `forEach`, `reduce`,
   * `stream`) all have these limits. Limits combine: of two timeouts, of views or of the call itself, the
   * shorter applies, and each signal aborts. All but `broadcast` have the order (`priority`, `tenant`,
   * `affinity`) too, unless they have their own. The view has no state and costs nothing where it is
   * not used. Throws `ZONE_ARGUMENT` for wrong options.
   */
  with(options: TaskOptions): AnyZone

  /**
   * The counts of the zone at this moment; also published on the diagnostics channel `corespun:zone:stats`.
   */
  stats(): ZoneStats

  /**
   * Resolves when the workers that the zone was created with have started and its queue has capacity for a
   * task (`tasksMax`, `queueBytesMax`). Waiting callers are served in order; busy workers are not waited for.
   * Rejects with `ZONE_CLOSED`; with `ZONE_START_FAILED` when the workers cannot be started; with the
   * signal's reason.
   */
  ready(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>

  /**
   * Refuse new calls, finish the accepted ones, end the workers, free the name. What has not ended after
   * `timeoutMs` (default: the zone's `closeMs`) fails with `ZONE_CLOSED`, and its worker ends; the signals of
   * tasks that still run are aborted `graceMs` before that, or half-way if that is sooner. Closing twice is
   * the same as once. `zone.node` stays open.
   */
  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void>

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** A named group of worker threads. `zone.create(id, options)` makes one. */
export interface Zone extends AnyZone {
  /** The complete, frozen settings that the zone was created with. */
  readonly settings: ZoneSettings

  /**
   * Replace the workers one at a time, so that changed modules are loaded, while calls are accepted and wait
   * in the queue. A new worker is started and set up first; then the old one ends the tasks that it has
   * begun and leaves. What it still runs `closeMs` later ends with it, with `WORKER_DIED`. Resolves when each
   * worker of this moment was replaced. Rejects with `SETUP_FAILED`, `SETUP_TIMEOUT` or `ZONE_START_FAILED`
   * when a new one cannot be set up: the old ones that are left stay; with `ZONE_CLOSED`; in a worker of this
   * zone with `ZONE_DEADLOCK`.
   */
  reload(): Promise<void>

  /**
   * A view of this zone whose calls run on the worker of that number, in turn with what any worker may run;
   * `broadcast`, `stats`, `ready` and `close` are those of the whole zone. It has no state and keeps nothing
   * alive. Waiting calls of a worker that dies, or is replaced by `reload`, run on its replacement. While the
   * zone closes, calls to a worker that has left are refused with `ZONE_CLOSED`.
   *
   * Throws `ZONE_ARGUMENT` for a number that no worker has, and for a zone whose workers come and go.
   * @param number From 0 to `settings.workers` less one; a worker's name, `cpu/3`, ends with it.
   */
  worker(number: number): AnyZone

  /**
   * Call `listener` with the errors in this zone's workers that no caller of a task receives: an unhandled
   * rejection, or a throwing timer that belongs to no task in flight. Without a listener such an error is an
   * `uncaughtException` of the thread that starts the workers (mostly the main thread), with code
   * `WORKER_ERROR`; listeners are called in that thread only. The worker is replaced afterwards, unless it
   * has tasks in flight: those go on. Closing the zone removes its listeners. Throws `ZONE_ARGUMENT` for a
   * listener that is not a function.
   * @returns A function that removes the listener.
   */
  onError(listener: ErrorListener): () => void
}
