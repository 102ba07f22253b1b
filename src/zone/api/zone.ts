/**
 * A zone as a thread sees it: the API.
 *
 * A zone is process-wide; a `Zone` object is one thread's handle on it, and any thread may have one. All
 * state that matters is in the native core, so this object keeps nothing but the handle. Methods that return
 * promises never throw: what is wrong with a call is its promise's rejection.
 */
import { availableParallelism } from 'node:os'
import { assert } from '../../base/index.ts'
import {
  Given,
  HEADER_BYTES,
  Mail,
  OUTCOME,
  Refused,
  Status,
  UNKNOWN_FUNCTION,
  native,
} from '../../native/index.ts'
import {
  codeNumber,
  functionNumber,
  moduleFunctionNumber,
  seenExportNumber,
  seenFunctionNumber,
  callerFile,
} from '../../transport/internal.ts'
import {
  BareCall,
  type CallOptions,
  type CallZone,
  LimitedBroadcast,
  LimitedCall,
  LimitedRoom,
  PlainCall,
  ResultCall,
  ValueCall,
  failureOf,
} from '../call/call.ts'
import { type ModuleCalls, type TaskFunction, callDepth } from '../call/task.ts'
import { ONLY_SIGNAL, ONLY_TIMEOUT, argumentsOf, exportOf, optionsOf } from './arguments.ts'
import { beforeFork, currentZoneId } from '../worker/current.ts'
import { ZoneError, refusal } from '../errors.ts'
import type { Begun, Spreader } from '../parallel/parallel.ts'
import { type Bridge, thisBridge } from '../../bridge/index.ts'
import { type Result } from './result.ts'
import { type ZoneSettings, wrong } from './settings.ts'
import { Spread } from '../parallel/spread.ts'
import { addCaller, siteOf } from '../call/stacks.ts'
import { CLOSING } from '../call/reasons.ts'
import { type ZoneStats, statsOf } from './stats.ts'
import { publish } from '../owner/events.ts'
import { type ErrorListener, addListener } from '../worker/uncaught.ts'

export type { CallOptions } from '../call/call.ts'

export type { Times, WorkerStats, ZoneStats } from './stats.ts'

/** Longest time `broadcastSync` waits by default, in ms. */
const BROADCAST_SYNC_MS = 30_000
const WAIT_SLICE_US = 200
const EMPTY = new Uint8Array(0)

let resolveNext: (value: unknown) => void
let rejectNext: (reason: unknown) => void
/** Shared by all promises made here, so that making one allocates no closure of ours. */
function capture(resolve: (value: unknown) => void, reject: (reason: unknown) => void): void {
  resolveNext = resolve
  rejectNext = reject
}

/** Handles that nothing refers to any more go back to the core. */
const unused = new FinalizationRegistry<number>((handle) => native.zoneDrop(handle))

/** A named group of worker threads: `zone.create(id, settings)` makes one, `run` calls a function in it. */
export class Zone extends Spread {
  /** The zone's name. */
  readonly id: string
  readonly #handle: number
  readonly #settings: ZoneSettings
  readonly #bridge: Bridge
  readonly #call: CallZone
  readonly #number: number
  /** This thread is one of its workers. */
  readonly #isOwn: boolean
  /** This thread is a worker, of whichever zone. */
  readonly #isWorker: boolean
  protected readonly spreader: Spreader

  /** Use `zone.create` or `zone.get`. @internal */
  constructor(id: string, handle: number, settings: ZoneSettings) {
    super()
    this.id = id
    this.#handle = handle
    this.#settings = settings
    this.#bridge = thisBridge()
    this.#number = native.zoneNumber(handle)
    this.#call = { id, handle, site: undefined, of: undefined }
    this.#isOwn = currentZoneId() === id
    this.#isWorker = currentZoneId() !== undefined
    const { workers, workersMax } = settings
    this.spreader = {
      id,
      workersMax: Math.max(workers, Math.min(workersMax, availableParallelism())),
      own: (value) => value,
      // In a task of its own it would wait for the worker that it occupies.
      room: this.#isOwn ? undefined : (signal) => this.#room(signal),
      sentBytes: () => this.#bridge.writer.frameBytes,
      execute: (module, name, args, options, begun) => this.#chunk(module, name, args, options, begun),
    }
    // A call in flight keeps it too, so a handle is never given to another zone while one may still use it.
    unused.register(this.#call, handle)
  }

  /** The complete settings that the zone was made with. */
  get settings(): ZoneSettings {
    return this.#settings
  }

  /**
   * Run a function on one worker. It must not capture variables; its arguments and value are copied. A task
   * may call any zone, its own too, and await the result: for as long as such a call is out, its worker may
   * begin one task more (`waitingPerWorkerMax`), so that calls which lead back to a zone never wait for each
   * other.
   *
   * Rejects with what the function throws; with a {@link ZoneError} `ZONE_FULL`, `ZONE_BYTES_FULL`,
   * `TASK_TOO_LARGE`, `ZONE_CLOSED`, `WORKER_DIED`, `ZONE_OWNER_DIED`, `ZONE_BROKEN`, in a task whose callers
   * are too many `ZONE_WAITS_TOO_DEEP`, or in a broadcast of this very zone `ZONE_WAITS_FOR_ITSELF`; with a
   * FunctionError that names what the function captures; with a TransportError that names what cannot be
   * copied.
   * @throws {ZoneError} Never here: always as the rejection.
   */
  run<Args extends unknown[], Value>(fn: TaskFunction<Args, Value>, ...args: Args): Promise<Awaited<Value>> {
    const promise = new Promise(capture)
    const reject = rejectNext
    const call = new ValueCall(this.#callFrom(this.run), resolveNext, reject)
    try {
      if (typeof fn !== 'function') throw wrong('zone.run(): the first argument', 'a function', fn)
      const number = seenFunctionNumber(fn)
      if (number === 0) this.#sendFresh(fn, args, call)
      else this.#send(number, args, call)
    } catch (error) {
      reject(error)
    }
    return promise as Promise<Awaited<Value>>
  }

  /**
   * `run` without a promise, for fibers: `resolve` or `reject` is called with what `run` would give, but not
   * after the returned function has given the call up. Throws nothing.
   * @internal
   */
  begin(
    fn: (...args: never[]) => unknown,
    args: readonly unknown[],
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
  ): () => void {
    const bare = new BareCall(this.#call, resolve, reject)
    const call = new LimitedCall(this.#bridge, this.#call, bare, undefined)
    try {
      call.begin(this.#send(seenFunctionNumber(fn) || functionNumber(fn), args, call), undefined)
    } catch (error) {
      reject(error)
      return nothing
    }
    return () => call.abandon()
  }

  /**
   * Run a function, or the export `name` of a module, on one worker; the result is decoded when it is looked
   * at. Rejects as `run` does; also with `TASK_TIMEOUT`, the signal's reason, or a FunctionError about the
   * module.
   *
   * @param options.timeoutMs Longest time from now to the end, waiting included. Default: no limit.
   * @param options.signal Aborting it ends the call: withdrawn if it has not started, else the task's own
   *   signal is aborted and, `graceMs` later, its worker replaced, whether or not this thread still lives.
   */
  execute<Value>(
    fn: TaskFunction<[], Value>,
    args?: readonly [],
    options?: CallOptions,
  ): Promise<Result<Awaited<Value>>>
  execute<Args extends unknown[], Value>(
    fn: TaskFunction<Args, Value>,
    args: Readonly<Args>,
    options?: CallOptions,
  ): Promise<Result<Awaited<Value>>>
  execute(
    module: string | URL,
    name: string,
    args?: readonly unknown[],
    options?: CallOptions,
  ): Promise<Result>
  execute(what: unknown, second?: unknown, third?: unknown, fourth?: unknown): Promise<Result> {
    const promise = new Promise(capture)
    const reject = rejectNext
    const call = new ResultCall(this.#callFrom(this.execute), resolveNext, reject)
    const isFunction = typeof what === 'function'
    try {
      const fn = isFunction
        ? functionNumber(what)
        : seenExportNumber(what, second) || exportNumber(what, second, this.execute)
      const args = argumentsOf('zone.execute()', isFunction ? second : third)
      this.#sendLimited(fn, args, call, optionsOf('zone.execute()', isFunction ? third : fourth), reject)
    } catch (error) {
      reject(error)
    }
    return promise as Promise<Result>
  }

  /**
   * The functions that a module exports, as calls to this zone: `zone.module<typeof import('./m.js')>(url)`.
   * Nothing is loaded here; a missing module or export is the rejection of the call that needs it.
   * @param url The module's URL or path; a relative one is resolved where this is called.
   */
  module<Module>(url: string | URL): ModuleCalls<Module> {
    const from = callerFile(this.module)
    const call = (name: string, args: unknown[]): Promise<unknown> => {
      const promise = new Promise(capture)
      const reject = rejectNext
      const made = new ValueCall(this.#callFrom(call), resolveNext, reject)
      try {
        this.#send(seenExportNumber(url, name) || exportNumber(url, name, from), args, made)
      } catch (error) {
        reject(error)
      }
      return promise
    }
    const calls = new Map<string, unknown>()
    return new Proxy(Object.create(null) as object, {
      get(_, name) {
        // Not a promise: `await proxy` must not call the module.
        if (typeof name !== 'string' || name === 'then') return undefined
        let found = calls.get(name)
        if (found === undefined) calls.set(name, (found = (...args: unknown[]) => call(name, args)))
        return found
      },
    }) as ModuleCalls<Module>
  }

  /**
   * Run a function, or code, once on every worker, before all waiting tasks; and again on each worker that
   * joins later. Code runs as a script: what it declares at its top is global in the worker. Resolves when
   * all workers of this moment have run it; rejects with the first error, after all have; or with
   * `BROADCAST_TIMEOUT` or the signal's reason. Giving up ends the wait and nothing else: workers that have
   * not run it yet (because a task occupies them) still will, before their next task, since workers of one
   * zone must not differ. A task may await one into its own zone: it runs while that task waits. A broadcast
   * may call its own zone in no way, since it holds its worker up: that rejects with `ZONE_WAITS_FOR_ITSELF`.
   * @param options.timeoutMs Longest wait. Default: no limit.
   * @param options.signal Aborting it ends the wait; one that is aborted already sends nothing.
   */
  broadcast(
    what: string | TaskFunction<[], unknown>,
    args?: readonly [],
    options?: CallOptions,
  ): Promise<void>
  broadcast<Args extends unknown[]>(
    what: TaskFunction<Args, unknown>,
    args: Readonly<Args>,
    options?: CallOptions,
  ): Promise<void>
  broadcast(what: unknown, args?: unknown, options?: CallOptions): Promise<void> {
    const promise = new Promise(capture)
    const reject = rejectNext
    const bridge = this.#bridge
    const waiting = new PlainCall(this.#callFrom(this.broadcast), resolveNext, reject)
    let limited: LimitedBroadcast | undefined
    let call = -1
    try {
      const { timeoutMs, signal } = optionsOf('zone.broadcast()', options)
      const [fn, bytes] = this.#broadcastParts(what, args, callerFile(this.broadcast))
      signal?.throwIfAborted()
      if (this.#isOwn) beforeFork()
      if (timeoutMs !== undefined || signal !== undefined)
        limited = new LimitedBroadcast(bridge, this.#call, waiting, signal)
      limited?.listen()
      call = bridge.take(limited ?? waiting)
      this.#acceptedBroadcast(native.broadcast(this.#handle, fn, bytes, call), bytes.length)
      limited?.begin(call, timeoutMs)
    } catch (error) {
      limited?.drop()
      if (call >= 0) bridge.release(call)
      reject(error)
    }
    return promise as Promise<void>
  }

  /**
   * The same, blocking this thread until all workers have run it.
   * @param options.timeoutMs Longest wait. Default 30,000. When it passes the workers still run it. Called in
   *   the thread that owns the zone (mostly the main thread) it waits that long for a worker that dies of it,
   *   since a blocked thread hears of no death; then it throws `BROADCAST_TIMEOUT`.
   * @throws {ZoneError} `ZONE_WAITS_FOR_ITSELF` in a worker of this zone; `BROADCAST_TIMEOUT`; and as
   *   `broadcast`.
   */
  broadcastSync(
    what: string | TaskFunction<[], unknown>,
    args?: readonly [],
    options?: { readonly timeoutMs?: number },
  ): void
  broadcastSync<Args extends unknown[]>(
    what: TaskFunction<Args, unknown>,
    args: Readonly<Args>,
    options?: { readonly timeoutMs?: number },
  ): void
  /** @throws {ZoneError} As above. */
  broadcastSync(what: unknown, args?: unknown, options?: { readonly timeoutMs?: number }): void {
    const { timeoutMs = BROADCAST_SYNC_MS } = optionsOf('zone.broadcastSync()', options, ONLY_TIMEOUT)
    if (currentZoneId() === this.id)
      throw new ZoneError('ZONE_WAITS_FOR_ITSELF', { zone: this.id, call: 'broadcastSync' })
    const [fn, bytes] = this.#broadcastParts(what, args, callerFile(this.broadcastSync))
    const number = native.broadcastSync(this.#handle, fn, bytes)
    this.#acceptedBroadcast(Math.min(number, 0), bytes.length)
    const begun = performance.now()
    for (;;) {
      // This thread may be the one that starts the workers.
      this.#bridge.takeMail()
      const outcome = native.broadcastWait(number, WAIT_SLICE_US)
      if (outcome === 0) return
      if (typeof outcome !== 'number') {
        const error = failureOf(this.#call, Status.failed, outcome, 0, outcome.length)
        addCaller(error, this.id, siteOf(this.broadcastSync))
        throw error
      }
      if (performance.now() - begun > timeoutMs)
        throw new ZoneError('BROADCAST_TIMEOUT', { zone: this.id, timeoutMs })
    }
  }

  /**
   * What the zone has done and is doing, at this moment. Told on the channel `corespun.zone.stats` too.
   */
  stats(): ZoneStats {
    const stats = statsOf(this.#handle, this.id)
    publish.zoneStats(this.id, stats)
    return stats
  }

  /**
   * Have `listener` get the errors in this zone's workers that no caller of a task receives: a rejection that
   * nobody handled, or a throwing timer, which belongs to no task in flight. Without a listener such an error
   * is an `uncaughtException` of the thread that starts the workers (mostly the main thread), with code
   * `WORKER_ERROR`; listeners are heard in that thread alone. The worker is replaced afterwards, unless it
   * has tasks in flight: those go on.
   * @returns A function that ends it. Closing the zone does too.
   * @throws {ZoneError} `ZONE_ARGUMENT` for a listener that is not a function.
   */
  onError(listener: ErrorListener): () => void {
    if (typeof listener !== 'function') throw wrong('zone.onError(): the listener', 'a function', listener)
    return addListener(this.id, listener)
  }

  /**
   * Resolves when the workers that the zone was made with have started and its queue has room for a task
   * (`tasksMax`, `queueBytesMax`): the way to wait instead of being refused with `ZONE_FULL`. Those who wait
   * are let in in order; busy workers are not waited for. Rejects with `ZONE_CLOSED`, or with `ZONE_BROKEN`
   * when the workers cannot be started.
   * @param options.signal Ends the wait with its reason.
   */
  async ready(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { signal } = optionsOf('zone.ready()', options, ONLY_SIGNAL)
    signal?.throwIfAborted()
    await this.#room(signal)
  }

  #room(signal?: AbortSignal): Promise<void> {
    const promise = new Promise(capture)
    const reject = rejectNext
    const bridge = this.#bridge
    const waiting = new PlainCall(this.#call, resolveNext, reject)
    const limited = signal && new LimitedRoom(bridge, this.#call, waiting, signal)
    if (this.#isOwn) beforeFork()
    limited?.listen()
    const call = bridge.take(limited ?? waiting)
    const outcome = native.zoneReady(this.#handle, call)
    if (outcome === 0) {
      limited?.begin(call, undefined)
      return promise as Promise<void>
    }
    limited?.drop()
    bridge.release(call)
    try {
      this.#accepted(Math.min(outcome, 0), 0)
      return Promise.resolve()
    } catch (error) {
      reject(error)
      return promise as Promise<void>
    }
  }

  /**
   * Refuse new calls, finish the accepted ones, end the workers, free the name. What has not ended after
   * `timeoutMs` fails with `ZONE_CLOSED`, its worker with it; tasks that still run are told `graceMs` before,
   * or half-way if that is sooner: their own signal is aborted, with a ZoneError `ZONE_CLOSED`. Closing twice
   * is the same as once.
   * @param options.timeoutMs Default: the zone's `closeMs`.
   */
  async close(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs = this.#settings.closeMs } = optionsOf('zone.close()', options, ONLY_TIMEOUT)
    const promise = new Promise(capture)
    const call = this.#bridge.take(new PlainCall(this.#call, resolveNext, rejectNext))
    if (native.zoneClose(this.#handle, call) === 0) {
      this.#bridge.release(call)
      native.zoneForget(this.#number)
      return
    }
    const graceMs = Math.min(this.#settings.graceMs, timeoutMs / 2)
    const warning = setTimeout(() => native.zoneTell(this.#handle, CLOSING), timeoutMs - graceMs)
    const timer = setTimeout(() => {
      native.zoneRefuse(this.#handle)
      native.kick(this.#number, Mail.closeNow)
    }, timeoutMs)
    try {
      await promise
    } finally {
      clearTimeout(warning)
      clearTimeout(timer)
      native.zoneForget(this.#number)
      // Of all who have closed it the first one tells.
      if (native.zoneEnd(this.#handle) === 1) publish.zoneClosed(this.id)
    }
  }

  /** `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** What a call that is made below `above` knows of its zone. */
  #callFrom(above: Function): CallZone {
    return this.#settings.callStacks ? { ...this.#call, site: siteOf(above), of: this.#call } : this.#call
  }

  #send(fn: number, args: readonly unknown[], arrival: ValueCall | LimitedCall): number {
    if (this.#isOwn) beforeFork()
    const bridge = this.#bridge
    const length = args.length === 0 ? 0 : bridge.write(args, 'args', true)
    if (length < 0) return this.#sendFrame(fn, bridge.writer.overflow, arrival)
    const call = bridge.take(arrival)
    this.#give(fn, length, call)
    native.submit()
    this.#sent(bridge.given[OUTCOME], length, call)
    return call
  }

  /**
   * Send a function object that was not seen before by its call site: one crossing for both. A function of a
   * new call site is numbered first, and the frame that was written is sent under its number. Only arguments
   * that are written without leaving this thread come before it is known whether the function can travel.
   */
  #sendFresh(fn: Function, args: readonly unknown[], arrival: ValueCall): void {
    if (!args.every(isPrimitive)) return void this.#send(functionNumber(fn), args, arrival)
    if (this.#isOwn) beforeFork()
    const bridge = this.#bridge
    const length = args.length === 0 ? 0 : bridge.write(args, 'args')
    let frame = bridge.writer.overflow
    if (length >= 0) {
      const call = bridge.take(arrival)
      this.#give(0, length, call)
      native.submitFunction(fn)
      const outcome = bridge.given[OUTCOME]
      if (outcome !== UNKNOWN_FUNCTION) return this.#sent(outcome, length, call)
      bridge.release(call)
      // Numbering reads properties of the function, whose getters may call a zone and write to this memory.
      frame = bridge.out.slice(HEADER_BYTES, HEADER_BYTES + length)
    }
    this.#sendFrame(functionNumber(fn), frame, arrival)
  }

  /** Send arguments that are in memory of their own. */
  #sendFrame(fn: number, frame: Uint8Array = EMPTY, arrival: ValueCall | LimitedCall): number {
    const call = this.#bridge.take(arrival)
    if (this.#isWorker) this.#bridge.given[Given.depth] = callDepth()
    this.#sent(native.submitLarge(this.#handle, fn, frame, call), frame.length, call)
    return call
  }

  /** The core has answered: a call that it has accepted takes with it what its arguments were lent. */
  #sent(outcome: number, length: number, call: number): void {
    const bridge = this.#bridge
    if (outcome !== 0) {
      bridge.release(call)
      this.#accepted(outcome, length)
    }
    if (bridge.writer.lent.length > 0) bridge.writer.letGo()
  }

  #give(fn: number, length: number, call: number): void {
    const { given } = this.#bridge
    given[Given.zone] = this.#handle
    given[Given.fn] = fn
    given[Given.length] = length
    given[Given.call] = call
    if (this.#isWorker) given[Given.depth] = callDepth()
  }

  #sendLimited(
    fn: number,
    args: readonly unknown[],
    call: ValueCall,
    options: CallOptions,
    reject: (reason: unknown) => void,
    begun?: Begun,
  ): void {
    const { timeoutMs, signal } = options
    if (timeoutMs === undefined && signal === undefined) {
      this.#send(fn, args, call)
      return
    }
    if (signal?.aborted === true) return reject(signal.reason)
    const limited = new LimitedCall(this.#bridge, this.#call, call, signal)
    limited.listen()
    try {
      limited.begin(this.#send(fn, args, limited), timeoutMs)
    } catch (error) {
      limited.drop()
      throw error
    }
    begun?.((why) => limited.cancel(why))
  }

  /** `execute` of an export for a chunk. */
  #chunk(module: URL, name: string, args: unknown[], options: CallOptions, begun: Begun): Promise<Result> {
    const promise = new Promise(capture)
    const reject = rejectNext
    const call = new ResultCall(this.#callFrom(this.#chunk), resolveNext, reject)
    try {
      const fn = seenExportNumber(module, name) || exportNumber(module, name, '')
      this.#sendLimited(fn, args, call, options, reject, begun)
    } catch (error) {
      reject(error)
    }
    return promise as Promise<Result>
  }

  #broadcastParts(what: unknown, args: unknown, file: string): [number, Uint8Array] {
    const given = argumentsOf('zone.broadcast()', args)
    if (typeof what !== 'string' && typeof what !== 'function')
      throw wrong('zone.broadcast(): the first argument', 'a function or code', what)
    const number = typeof what === 'string' ? codeNumber(what, file) : functionNumber(what)
    return [number, given.length === 0 ? EMPTY : this.#bridge.frame(given, 'args', true)]
  }

  /** The `ZONE_BROKEN` of a zone whose workers could not be started. */
  #failure(): unknown {
    const frame = native.zoneFailure(this.#handle)
    return frame === undefined ? undefined : failureOf(this.#call, Status.died, frame, 0, frame.length)
  }

  /** A broadcast was accepted, and what it was lent is its own; or throw for the refusal. */
  #acceptedBroadcast(code: number, bytes: number): void {
    this.#accepted(code, bytes)
    if (this.#bridge.writer.lent.length > 0) this.#bridge.writer.letGo()
  }

  /** Bytes of memory that would have moved with what was refused. */
  #moving(): number {
    return this.#bridge.writer.lent.reduce((sum, buffer) => sum + buffer.byteLength, 0)
  }

  /** Throw for a refusal of the core. */
  #accepted(code: number, taskBytes: number): void {
    const moving = code === Refused.bytesFull ? this.#moving() : 0
    // What was lent to a refused call stays here, whatever is accepted next.
    if (code !== 0 && this.#bridge.writer.lent.length > 0) this.#bridge.discard()
    const zone = this.id
    const { tasksMax, taskBytesMax, queueBytesMax, broadcastsMax } = this.#settings
    switch (code) {
      case Refused.full:
        throw refusal(new ZoneError('ZONE_FULL', { zone, tasksMax }))
      case Refused.bytesFull:
        throw refusal(
          new ZoneError('ZONE_BYTES_FULL', { zone, queueBytesMax, taskBytes: taskBytes + moving }),
        )
      case Refused.tooLarge:
        throw refusal(new ZoneError('TASK_TOO_LARGE', { zone, taskBytesMax, taskBytes }))
      case Refused.closed:
        throw this.#failure() ?? new ZoneError('ZONE_CLOSED', { zone })
      case Refused.tooDeep:
        throw new ZoneError('ZONE_WAITS_TOO_DEEP', { zone, callDepthMax: this.#settings.callDepthMax })
      case Refused.broadcastsFull:
        throw new ZoneError('ZONE_BROADCASTS_FULL', { zone, broadcastsMax })
      default:
        assert(code === 0, `the core refuses for a known reason, not ${code}`)
    }
  }
}

function nothing(): void {}

/**
 * The number of an export; `from` is the file that names the module, or the method which that file called.
 */
function exportNumber(module: unknown, name: unknown, from: string | Function): number {
  const [url, found] = exportOf(module, name)
  return moduleFunctionNumber(url, found, typeof from === 'string' ? from : () => callerFile(from))
}

function isPrimitive(value: unknown): boolean {
  return value === null || (typeof value !== 'object' && typeof value !== 'function')
}
