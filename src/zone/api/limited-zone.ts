/**
 * The view of a zone that `with` returns: every call has its limits.
 *
 * It adds its limits to the options of a call and hands that to the zone, so it has no state of its own and
 * zones pay nothing for it. Limits combine: the shorter timeout applies, and each signal aborts. The methods
 * resolve relative modules here, since the zone would see this file as the caller.
 */
import { isAbsolute } from 'node:path'
import { callerFile } from '../../transport/internal.ts'
import { type CallLimits, type CallOptions, NO_LIMITS, type TaskOptions } from '../call/call.ts'
import { ORDER_NAMES, WorkerNumber, orderOf } from '../call/order.ts'
import type { ModuleCalls } from '../ground/task.ts'
import type { AnyZone, ModuleOptions } from './any-zone.ts'
import { optionsOf } from './arguments.ts'
import type { ZoneStats } from '../ground/stats.ts'

/** An export of a module, by its absolute URL. */
export interface ExportAt {
  readonly module: URL
  readonly name: string
}

/** What can be called without a promise. */
export type Beginnable = ExportAt | ((...args: never[]) => unknown)

/** A zone that views can be made of. */
export interface LimitableZone extends AnyZone {
  runLimited(fn: unknown, args: readonly unknown[], limits: CallLimits): Promise<never>
  /**
   * `runLimited` without a promise; returns a function that cancels the call, with a reason for its task, and
   * settles nothing.
   */
  begin(
    what: Beginnable,
    args: readonly unknown[],
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
    limits?: CallLimits,
  ): (why?: unknown) => void
}

export class LimitedZone implements AnyZone {
  readonly id: string
  readonly zone: LimitableZone
  readonly limits: TaskOptions
  readonly #checked: CallLimits

  constructor(zone: LimitableZone, limits: TaskOptions) {
    this.id = zone.id
    this.zone = zone
    this.limits = limits
    const { timeoutMs, signal } = limits
    this.#checked = { timeoutMs, signal, order: orderOf('zone.with()', limits) }
  }

  with(options: TaskOptions): AnyZone {
    return limitedZone(this.zone, options, this.limits)
  }

  run(fn: unknown, ...args: unknown[]): Promise<never> {
    return this.zone.runLimited(fn, args, this.#checked)
  }

  begin(
    what: Beginnable,
    args: readonly unknown[],
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
    limits?: CallLimits,
  ): (why?: unknown) => void {
    const { timeoutMs, signal } = limits ?? NO_LIMITS
    const both = limits === undefined ? this.#checked : this.#both({ timeoutMs, signal })
    return this.zone.begin(what, args, resolve, reject, both)
  }

  /** The limits of the view and of one call, which has no order of its own. */
  #both(given: CallOptions): CallLimits {
    const { timeoutMs, signal } = joined(this.limits, given)
    return { ...this.#checked, timeoutMs, signal }
  }

  execute(what: unknown, second?: unknown, third?: unknown, fourth?: unknown): Promise<never> {
    const { zone } = this
    if (typeof what === 'function')
      return zone.execute(what as never, second as never, this.#limited(third)) as Promise<never>
    const options = this.#resolving(what, fourth, this.execute)
    return zone.execute(what as string, second as string, third as [], options) as Promise<never>
  }

  module<Module>(url: string | URL, options?: ModuleOptions): ModuleCalls<Module> {
    return this.zone.module(url, this.#resolving(url, options, this.module))
  }

  broadcast(what: unknown, args?: unknown, options?: unknown): Promise<void> {
    const limited = this.#resolving(what, options, this.broadcast, this.#ofBroadcast())
    return this.zone.broadcast(what as string, args as [], limited)
  }

  broadcastSync(what: unknown, args?: unknown, options?: unknown): void {
    const given = this.#resolving(what, options, this.broadcastSync, this.#ofBroadcast())
    const { signal, ...limited } = given
    // A blocked thread receives no abort; one that has come already counts.
    signal?.throwIfAborted()
    this.zone.broadcastSync(what as string, args as [], limited)
  }

  map(items: unknown, fn: unknown, options?: unknown): never {
    return this.zone.map(items as never, fn as never, this.#limited(options) as never) as never
  }

  forEach(items: unknown, fn: unknown, options?: unknown): Promise<void> {
    return this.zone.forEach(items as never, fn as never, this.#limited(options))
  }

  reduce(items: unknown, fn: unknown, initial: unknown, options?: unknown): Promise<never> {
    const given = [items, fn, initial, this.#limited(options)]
    // Without an initial value the zone refuses: it counts the arguments.
    if (arguments.length < 3) given.length = 2
    return this.zone.reduce(...(given as [never, never, never]))
  }

  stream(fn: unknown, source: unknown, options?: unknown): never {
    return this.zone.stream(fn as never, source as never, this.#limited(options)) as never
  }

  stats(): ZoneStats {
    return this.zone.stats()
  }

  ready(options?: { readonly signal?: AbortSignal | undefined }): Promise<void> {
    return this.zone.ready(options)
  }

  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void> {
    return this.zone.close(options)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.zone.close()
  }

  /** The options of one call with the limits of the view; the zone refuses what is not an object. */
  #limited(options: unknown, limits = this.limits): TaskOptions {
    if (options === undefined) return limits
    if (options === null || typeof options !== 'object' || Array.isArray(options)) return options as never
    return { ...options, ...joined(limits, { ...options }) }
  }

  /** Broadcasts have no order. */
  #ofBroadcast(): CallOptions {
    const { timeoutMs, signal } = this.limits
    return { timeoutMs, signal }
  }

  #resolving(module: unknown, options: unknown, above: Function, limits?: CallOptions): ModuleOptions {
    const limited: ModuleOptions = this.#limited(options, limits)
    const isRelative = typeof module === 'string' && !isAbsolute(module) && !URL.canParse(module)
    if (!isRelative || limited === options || limited.from !== undefined) return limited
    const from = callerFile(above)
    return isAbsolute(from) || URL.canParse(from) ? { ...limited, from } : limited
  }
}

/** @throws {ZoneError} `ZONE_ARGUMENT`. */
export function limitedZone(zone: LimitableZone, options: TaskOptions, outer?: TaskOptions): AnyZone {
  const { timeoutMs, signal, order } = optionsOf('zone.with()', options ?? null)
  return new LimitedZone(zone, joined(outer ?? {}, { timeoutMs, signal, ...order?.given }))
}

/** The view of a zone whose calls run on one worker. */
export function workerView(zone: LimitableZone, worker: number): AnyZone {
  return new LimitedZone(zone, { affinity: new WorkerNumber(worker) as never })
}

/**
 * Both limits: the shorter timeout, each signal; of an order the inner options, where given. A value of the
 * wrong type stays, for the zone to refuse.
 */
function joined(outer: TaskOptions, inner: TaskOptions): TaskOptions {
  const limits: { -readonly [Name in keyof TaskOptions]: TaskOptions[Name] } = { ...outer }
  const { timeoutMs, signal } = inner
  const isOfOneWorker = (limits.affinity as unknown) instanceof WorkerNumber
  for (const name of ORDER_NAMES)
    if (Object.hasOwn(inner, name) && inner[name] !== undefined && !(name === 'affinity' && isOfOneWorker))
      limits[name] = inner[name] as never
  if (timeoutMs !== undefined)
    limits.timeoutMs =
      outer.timeoutMs === undefined || !(timeoutMs > outer.timeoutMs) ? timeoutMs : outer.timeoutMs
  if (signal !== undefined) {
    const isBoth = outer.signal !== undefined && signal instanceof AbortSignal
    limits.signal = isBoth ? AbortSignal.any([outer.signal, signal]) : signal
  }
  return limits
}
