/**
 * A zone of workers, as a thread sees it.
 *
 * A zone is process-wide; a `WorkerZone` is one thread's handle on it, and any thread may have one. All state
 * is in the native core. Methods that return promises never throw. Over 400 lines: one class, each of whose
 * methods is the whole path of a call.
 */
import { cores, integer } from '../../base/index.ts'
import { Mail, Status, native } from '../../native/index.ts'
import {
  callerFile,
  codeNumber,
  calledArguments,
  calledNumber,
  isRefusal,
  moduleFunctionNumber,
  seenExportNumber,
  seenFunctionNumber,
} from '../../transport/internal.ts'
import {
  BareCall,
  type CallLimits,
  type CallZone,
  LimitedBroadcast,
  type LimitedCall,
  ExpiringCall,
  LimitedCapacityWait,
  NO_LIMITS,
  PlainCall,
  ResultCall,
  type TaskOptions,
  ValueCall,
  failureOf,
  leftAlone,
} from '../call/call.ts'
import { endWithin } from '../call/reasons.ts'
import { addCaller, siteOf } from '../call/stacks.ts'
import { submitterOf } from '../call/outward.ts'
import { type Begun, EMPTY, type Submitter } from '../call/submitter.ts'
import type { ModuleCalls } from '../ground/task.ts'
import { NOTHING_TAKEN, broadcastMs, takenFor } from '../call/send.ts'
import { ZoneError } from '../errors.ts'
import { publish } from '../ground/events.ts'
import type { Spreader } from '../parallel/engine.ts'
import { Spread } from './spread.ts'
import { currentTask } from '../ground/task.ts'
import { beforeFork, currentZoneId, here } from '../ground/current.ts'
import { type ErrorListener, addListener } from '../ground/uncaught.ts'
import type { AnyZone, BroadcastOptions, ModuleOptions, Zone } from './any-zone.ts'
import {
  OF_BROADCAST,
  ONLY_SIGNAL,
  ONLY_TIMEOUT,
  TIMEOUT_AND_FROM,
  WITH_FROM,
  argumentsOf,
  checkModule,
  exportOf,
  notRunnable,
  optionsOf,
} from './arguments.ts'
import {
  type Beginnable,
  type ExportAt,
  type LimitableZone,
  limitedZone,
  workerView,
} from './limited-zone.ts'
import { moduleCalls } from './module-calls.ts'
import type { Result } from '../ground/result.ts'
import { type ZoneSettings, checkFixed, wrong } from '../ground/settings.ts'
import { type ZoneStats, statsOf } from '../ground/stats.ts'

const BROADCAST_SYNC_MS = 30_000
const WAIT_SLICE_US = 200

let resolveNext: (value: unknown) => void
let rejectNext: (reason: unknown) => void
/** The executor of all promises made here, so that making one allocates no closure. */
function capture(resolve: (value: unknown) => void, reject: (reason: unknown) => void): void {
  resolveNext = resolve
  rejectNext = reject
}

/** Returns the handles of collected zones to the core. */
const unused = new FinalizationRegistry<number>((handle) => native.zoneDrop(handle))

export class WorkerZone extends Spread implements Zone, LimitableZone {
  readonly id: string
  readonly #handle: number
  readonly #settings: ZoneSettings
  readonly #submitter: Submitter
  readonly #call: CallZone
  readonly #number: number
  protected readonly spreader: Spreader

  constructor(id: string, handle: number, settings: ZoneSettings) {
    super()
    this.id = id
    this.#handle = handle
    this.#settings = settings
    this.#number = native.zoneNumber(handle)
    const isOutside = settings.isolation === 'process' && currentZoneId() !== id
    this.#call = { id, handle, isOutside, site: undefined, of: undefined }
    const submitter = submitterOf(this.#call, settings)
    this.#submitter = submitter
    const { workers, workersMax } = settings
    this.spreader = {
      id,
      isHere: false,
      isIsolated: isOutside,
      workersMax: Math.max(workers, Math.min(workersMax, cores())),
      own: (value) => value,
      // A task of this zone would wait for the worker that it occupies.
      capacity: submitter.isOwn ? undefined : (signal) => this.#capacity(signal),
      graceMs: settings.graceMs,
      ahead: settings,
      sentBytes: () => submitter.bridge.writer.frameBytes,
      execute: (module, name, args, options, begun) => this.#chunk(module, name, args, options, begun),
    }
    // A call in flight keeps it too, so a handle is not reused for another zone while a call may use it.
    unused.register(this.#call, handle)
  }

  get settings(): ZoneSettings {
    return this.#settings
  }

  run(fn: unknown, ...args: unknown[]): Promise<never> {
    const promise = new Promise<never>(capture as never)
    const reject = rejectNext
    const call = new ValueCall(this.#callFrom(this.run), resolveNext, reject)
    try {
      if (typeof fn !== 'function') throw notRunnable(fn)
      const number = seenFunctionNumber(fn)
      if (here.carrier !== undefined)
        this.#submitter.submit(number || calledNumber(fn), calledArguments(fn, args), call, NO_LIMITS)
      else if (number === 0) this.#submitter.sendFresh(fn, args, call)
      else this.#submitter.send(number, args, call)
    } catch (error) {
      this.#refused(error, call, fn, args)
    }
    return promise
  }

  runLimited(fn: unknown, args: readonly unknown[], limits: CallLimits): Promise<never> {
    const promise = new Promise<never>(capture as never)
    const reject = rejectNext
    const call = new ValueCall(this.#callFrom(this.runLimited), resolveNext, reject)
    try {
      if (typeof fn !== 'function') throw notRunnable(fn)
      this.#submitter.submit(calledNumber(fn), calledArguments(fn, args), call, limits)
    } catch (error) {
      this.#refused(error, call, fn, args, limits)
    }
    return promise
  }

  begin(
    what: Beginnable,
    args: readonly unknown[],
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
    limits: CallLimits = NO_LIMITS,
  ): (why?: unknown) => void {
    const bare = new BareCall(this.#call, resolve, reject)
    const isFunction = typeof what === 'function'
    let called: Function | number | undefined = isFunction ? what : undefined
    let call: LimitedCall
    try {
      limits.signal?.throwIfAborted()
      const number = isFunction ? calledNumber(what) : exportNumberAt(what)
      called ??= number
      const taken = takenFor(limits)
      const all = isFunction ? calledArguments(what, args) : args
      call = this.#submitter.submitLimited(number, all, bare, limits, taken)
    } catch (error) {
      return this.#begunWithStreams(error, bare, called, args, limits)
    }
    return (why) => call.abandon(why)
  }

  execute(what: unknown, second?: unknown, third?: unknown, fourth?: unknown): Promise<never> {
    const promise = new Promise<never>(capture as never)
    const reject = rejectNext
    const call = new ResultCall(this.#callFrom(this.execute), resolveNext, reject)
    let called: Function | number | undefined
    let args: readonly unknown[] = []
    let options: CallLimits | undefined
    try {
      if (typeof what === 'function') {
        args = argumentsOf('zone.execute()', second)
        const number = calledNumber(what)
        called = what
        options = optionsOf('zone.execute()', third)
        this.#submitter.submit(number, calledArguments(what, args), call, options)
      } else {
        args = argumentsOf('zone.execute()', third)
        // As it is: a copy without `from` takes 75 ns.
        const limits = optionsOf('zone.execute()', fourth, WITH_FROM)
        options = limits
        called = seenExportNumber(what, second) || exportNumber(what, second, limits.from ?? this.execute)
        this.#submitter.submit(called, args, call, limits)
      }
    } catch (error) {
      this.#refused(error, call, called, args, options)
    }
    return promise
  }

  module<Module>(url: string | URL, options?: ModuleOptions): ModuleCalls<Module> {
    checkModule('zone.module(): the module', 'a URL, a path or the name of a package', url)
    const limits = optionsOf('zone.module()', options, WITH_FROM)
    const from = limits.from ?? callerFile(this.module)
    const call = (name: string, args: unknown[]): Promise<unknown> => {
      const promise = new Promise(capture)
      const reject = rejectNext
      const made = new ValueCall(this.#callFrom(call), resolveNext, reject)
      let number = 0
      try {
        number = seenExportNumber(url, name) || exportNumber(url, name, from)
        this.#submitter.submit(number, args, made, limits)
      } catch (error) {
        this.#refused(error, made, number, args, limits)
      }
      return promise
    }
    return moduleCalls(call)
  }

  broadcast(what: unknown, args?: unknown, options?: BroadcastOptions): Promise<void> {
    const promise = new Promise<void>(capture as never)
    const reject = rejectNext
    const submitter = this.#submitter
    const { bridge } = submitter
    const waiting = new PlainCall(this.#callFrom(this.broadcast), resolveNext, reject)
    let limited: LimitedBroadcast | undefined
    let call = -1
    try {
      const { signal, from, ...given } = optionsOf('zone.broadcast()', options, OF_BROADCAST)
      const timeoutMs = broadcastMs(this.id, given.timeoutMs)
      const [fn, bytes] = this.#broadcastParts(what, args, from ?? callerFile(this.broadcast))
      signal?.throwIfAborted()
      if (submitter.isOwn) beforeFork()
      if (timeoutMs !== undefined || signal !== undefined)
        limited = new LimitedBroadcast(bridge, this.#call, waiting, signal)
      limited?.listen()
      call = bridge.take(limited ?? waiting)
      submitter.noteDepth()
      submitter.checkBroadcast(native.broadcast(this.#handle, fn, bytes, call), bytes.length)
      limited?.begin(call, timeoutMs)
    } catch (error) {
      limited?.drop()
      if (call >= 0) bridge.release(call)
      reject(error)
    }
    return promise
  }

  broadcastSync(what: unknown, args?: unknown, options?: BroadcastOptions): void {
    const checked = optionsOf('zone.broadcastSync()', options, TIMEOUT_AND_FROM)
    const timeoutMs = broadcastMs(this.id, checked.timeoutMs ?? BROADCAST_SYNC_MS) as number
    if (currentZoneId() === this.id)
      throw new ZoneError('ZONE_DEADLOCK', { zone: this.id, call: 'broadcastSync() in its own worker' })
    const [fn, bytes] = this.#broadcastParts(what, args, checked.from ?? callerFile(this.broadcastSync))
    this.#submitter.noteDepth()
    const number = native.broadcastSync(this.#handle, fn, bytes)
    this.#submitter.checkBroadcast(Math.min(number, 0), bytes.length)
    const begun = performance.now()
    for (;;) {
      // This thread may be the one that starts the workers.
      this.#submitter.bridge.takeMail()
      const outcome = native.broadcastWait(number, WAIT_SLICE_US)
      if (outcome === 0) return
      if (typeof outcome !== 'number') {
        const error = failureOf(this.#call, Status.failed, outcome, 0, outcome.length)
        addCaller(error, this.id, siteOf(this.broadcastSync))
        throw error
      }
      if (performance.now() - begun > timeoutMs) {
        native.broadcastWait(number, 0)
        throw new ZoneError('BROADCAST_TIMEOUT', { zone: this.id, timeoutMs })
      }
    }
  }

  with(options: TaskOptions): AnyZone {
    return limitedZone(this, options)
  }

  worker(number: number): AnyZone {
    checkFixed(`zone.worker() of "${this.id}"`, this.#settings)
    const kind = integer(0, this.#settings.workers - 1, undefined)
    if (!kind.accepts(number)) throw wrong('zone.worker(): the number', kind.expected, number)
    return workerView(this, number)
  }

  stats(): ZoneStats {
    const stats = statsOf(this.#handle, this.id)
    publish.zoneStats(this.id, stats)
    return stats
  }

  onError(listener: ErrorListener): () => void {
    if (typeof listener !== 'function') throw wrong('zone.onError(): the listener', 'a function', listener)
    return addListener(this.id, listener)
  }

  async ready(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = optionsOf('zone.ready()', options, ONLY_SIGNAL)
    signal?.throwIfAborted()
    await this.#capacity(signal)
  }

  reload(): Promise<void> {
    const promise = new Promise<void>(capture as never)
    const reject = rejectNext
    const { bridge, isOwn } = this.#submitter
    const call = bridge.take(new PlainCall(this.#callFrom(this.reload), resolveNext, reject))
    try {
      if (isOwn) throw new ZoneError('ZONE_DEADLOCK', { zone: this.id, call: 'reload() in its own worker' })
      this.#submitter.check(native.zoneReload(this.#handle, call), 0)
      native.kick(this.#number, Mail.reload)
    } catch (error) {
      bridge.release(call)
      reject(error)
    }
    return promise
  }

  close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    const closing = this.#closes(options)
    if (!this.#submitter.isOwn || currentTask() === undefined) return closing
    // The zone closes when its tasks have ended; a task that waits for that would be waited for.
    const facts = { zone: this.id, call: 'a task that awaits close() of its own zone' }
    const refused = Promise.reject(new ZoneError('ZONE_DEADLOCK', facts))
    // Tasks may close their zone and not wait.
    closing.catch(nothing)
    refused.catch(nothing)
    return refused
  }

  async #closes(options: { readonly timeoutMs?: number | undefined }): Promise<void> {
    const { closeMs, graceMs } = this.#settings
    const timeoutMs = optionsOf('zone.close()', options, ONLY_TIMEOUT).timeoutMs ?? closeMs
    const { bridge } = this.#submitter
    const promise = new Promise(capture)
    const call = bridge.take(new PlainCall(this.#call, resolveNext, rejectNext))
    if (native.zoneClose(this.#handle, call) === 0) {
      bridge.release(call)
      native.zoneForget(this.#number)
      return
    }
    const timers = endWithin(this.#number, timeoutMs, graceMs)
    try {
      await promise
    } finally {
      timers.forEach(clearTimeout)
      native.zoneForget(this.#number)
      // Of all threads that close it, the first one publishes.
      if (native.zoneEnd(this.#handle) === 1) publish.zoneClosed(this.id)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #callFrom(above: Function): CallZone {
    return this.#settings.callStacks ? { ...this.#call, site: siteOf(above), of: this.#call } : this.#call
  }

  /** Resolves when the queue has capacity for a task. */
  #capacity(signal?: AbortSignal): Promise<void> {
    const promise = new Promise<void>(capture as never)
    const reject = rejectNext
    const { bridge, isOwn } = this.#submitter
    const waiting = new PlainCall(this.#call, resolveNext, reject)
    const limited = signal && new LimitedCapacityWait(bridge, this.#call, waiting, signal)
    if (isOwn) beforeFork()
    limited?.listen()
    const call = bridge.take(limited ?? waiting)
    this.#submitter.noteDepth()
    const outcome = native.zoneReady(this.#handle, call)
    if (outcome === 0) {
      limited?.begin(call, undefined)
      return promise
    }
    limited?.drop()
    bridge.release(call)
    try {
      this.#submitter.check(Math.min(outcome, 0), 0)
      return Promise.resolve()
    } catch (error) {
      reject(error)
      return promise
    }
  }

  #chunk(module: URL, name: string, args: unknown[], options: CallLimits, begun: Begun): Promise<Result> {
    const promise = new Promise<Result>(capture as never)
    const reject = rejectNext
    const { expired } = options
    const from = this.#callFrom(this.#chunk)
    const call =
      expired === undefined
        ? new ResultCall(from, resolveNext, reject)
        : new ExpiringCall(from, resolveNext, reject, expired)
    try {
      this.#submitter.submit(exportNumberAt({ module, name }), args, call, options, begun)
    } catch (error) {
      reject(error)
    }
    return promise
  }

  /**
   * A call was not sent. If that is because of streams among its arguments, they travel over links of their
   * own, whose code is loaded now.
   * @param what The function, or the number of an export; 0 or `undefined` when that is not known.
   */
  #refused(
    refusal: unknown,
    call: ValueCall,
    what: unknown,
    args: readonly unknown[],
    limits: CallLimits = NO_LIMITS,
  ): void {
    const isNumber = typeof what === 'number' && what > 0
    if (isRefusal(refusal) && (isNumber || typeof what === 'function'))
      void this.#withStreams(refusal, call, what, args, limits)
    else call.reject(refusal)
  }

  async #withStreams(
    refusal: unknown,
    call: ValueCall,
    what: Function | number,
    args: readonly unknown[],
    given: CallLimits,
  ): Promise<void> {
    // Before the code has been loaded, another task may run here.
    const limits: CallLimits = { ...given, taken: takenFor(given) ?? NOTHING_TAKEN }
    const submit = (module: URL, name: string, given: unknown[], made: ValueCall): void => {
      limits.signal?.throwIfAborted()
      this.#submitter.submit(exportNumberAt({ module, name }), given, made, limits)
    }
    try {
      const { sendWithStreams } = await import('../stream/carried/arguments.ts')
      const zone = { ahead: this.#settings, isIsolated: this.#call.isOutside, submit }
      if (typeof what === 'number') return sendWithStreams(zone, what, args, call, refusal)
      sendWithStreams(zone, calledNumber(what), calledArguments(what, args), call, refusal)
    } catch (error) {
      call.refuse(error)
    }
  }

  /** `begin` of a call that was not sent. */
  #begunWithStreams(
    error: unknown,
    call: ValueCall,
    what: Function | number | undefined,
    args: readonly unknown[],
    limits: CallLimits | undefined,
  ): (why?: unknown) => void {
    const stop = new AbortController()
    const { signal } = limits ?? {}
    const both = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal])
    this.#refused(error, call, what, args, {
      timeoutMs: limits?.timeoutMs,
      signal: both,
      order: limits?.order,
    })
    return (why) => stop.abort(why ?? leftAlone())
  }

  #broadcastParts(what: unknown, args: unknown, file: string): [number, Uint8Array] {
    const all = argumentsOf('zone.broadcast()', args)
    if (typeof what !== 'string' && typeof what !== 'function')
      throw wrong('zone.broadcast(): the first argument', 'a function or code', what)
    const number = typeof what === 'string' ? codeNumber(what, file) : calledNumber(what)
    const given = typeof what === 'string' ? all : calledArguments(what, all)
    return [number, given.length === 0 ? EMPTY : this.#submitter.frame(given)]
  }
}

const exportNumberAt = ({ module, name }: ExportAt): number =>
  seenExportNumber(module, name) || exportNumber(module, name, '')

/**
 * The number of an export; `from` is the file that names the module, or the method that the file called.
 */
function exportNumber(module: unknown, name: unknown, from: string | Function): number {
  const [url, found] = exportOf(module, name)
  return moduleFunctionNumber(url, found, typeof from === 'string' ? from : () => callerFile(from))
}

function nothing(): void {}
