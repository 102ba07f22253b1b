/**
 * A zone of a fleet, as callers see it: the exports of a module that hosts run.
 *
 * It resembles a zone; functions are called by name, since code is deployed and never sent, and
 * a call costs hundreds of local ones. Each method is described here and nowhere else. As an `AnyFarZone` it
 * runs parts of arrows, whose functions have names.
 */
import { type AnyIterable, Flow, ItemsReader, isItems, outcomesOf, readerOf } from '../../base/index.ts'
import { decode } from '../../transport/index.ts'
import { refuseClass } from '../../transport/internal.ts'
import { type ModuleCalls, ZoneError } from '../../zone/index.ts'
import {
  FAR,
  type AnyFarZone,
  type ExportName,
  type ExportValue,
  type FarHosts,
  moduleCalls,
} from '../../zone/internal.ts'
import { wrong } from '../errors.ts'
import { PART } from '../wire.ts'
import {
  type FarMapOptions,
  type FarOptions,
  type FarStreamOptions,
  checkExport,
  farOptions,
  mapOptions,
  streamOptions,
} from '../settings.ts'
import { type CallLimits, type Caller, FarCall } from './far-call.ts'
import { FarStream } from './far-stream.ts'

/** The arguments of an export. */
export type ExportArgs<Module, Name extends ExportName<Module>> = Module[Name] extends (
  ...args: infer Args
) => unknown
  ? Readonly<Args>
  : never

/** An item of an export's first argument. */
export type ExportItem<Module, Name extends ExportName<Module>> = Module[Name] extends (
  item: infer Item,
  ...rest: never[]
) => unknown
  ? Item
  : never

/** The items of what an export returns. */
export type ExportItems<Module, Name extends ExportName<Module>> = Module[Name] extends (
  ...args: never[]
) => AnyIterable<infer Item> | PromiseLike<AnyIterable<infer Item>>
  ? Item
  : never

/** Calls of a full zone try again after so long, if nothing has changed. */
const FULL_MS = 20
/** Where hosts are not known yet. */
const CALLS_DEFAULT = 64

/**
 * A zone on other machines. `fleet.zone(name)` makes it; it has no state that would have to be closed.
 *
 * All calls fail with what the function throws, with its class and code; with a `FleetError` `ZONE_NOWHERE`
 * at once when nobody hosts it, `HOST_LOST`, `EXPORT_MISSING`, `FLEET_TOO_LARGE`, `FLEET_CLOSED`, and
 * `HOST_CREDIT` of a host that breaks the protocol; with a `ZoneError` `ZONE_FULL`, `TASK_TIMEOUT`,
 * `WORKER_DIED`; with a `TransportError` for what cannot be encoded.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type FarZone, connect, host } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const module = new URL('data:text/javascript,export const double = (n) => n * 2')
 * await using hosting = await host(fleet, { name: 'math', module, version: 'v1' })
 * const math: FarZone<{ double(n: number): number }> = fleet.zone(hosting.name)
 * assert.deepEqual(await math.map([1, 2], 'double'), [2, 4])
 * ```
 */
export class FarZone<Module> implements AnyFarZone {
  /** Its name in the fleet. */
  readonly name: string
  readonly #caller: Caller

  /** @internal */
  constructor(caller: Caller) {
    this.name = caller.zone
    this.#caller = caller
  }

  /**
   * Call an export on one host, at most once: it is not repeated where it may have run.
   */
  run<Name extends ExportName<Module>>(
    name: Name,
    args: ExportArgs<Module, Name>,
    options?: FarOptions,
  ): Promise<ExportValue<Module, Name>>
  /** Call an export without arguments on one host. */
  run<Name extends ExportName<Module>>(
    ...call: [] extends ExportArgs<Module, Name> ? [name: Name] : never
  ): Promise<ExportValue<Module, Name>>
  run(name: unknown, args: unknown = [], options?: unknown): Promise<never> {
    return new Promise((resolve, reject) => {
      checkExport('far.run()', name)
      if (!Array.isArray(args)) throw wrong('far.run(): args', 'an array', args)
      this.#begin(name, args, farOptions('far.run()', options), resolve, reject)
    })
  }

  #call(name: string, args: readonly unknown[], limits: CallLimits): Promise<unknown> {
    return new Promise((resolve, reject) => this.#begin(name, args, limits, resolve, reject))
  }

  #begin(
    name: string,
    args: readonly unknown[],
    limits: CallLimits,
    resolve: (value: never) => void,
    failed: (why: unknown) => void,
  ): void {
    const value = (payload: Uint8Array): void => resolve(decode(payload) as never)
    new FarCall(this.#caller, limits, { value, failed }).begin(name, args, 0)
  }

  /** The exports as functions. Nothing is sent here. The options apply to every call. */
  module(options?: FarOptions): ModuleCalls<Module> {
    const limits = farOptions('far.module()', options)
    return moduleCalls(async (name, args) => {
      checkExport('far.module()', name)
      return this.#call(name, args, limits)
    })
  }

  /** What runs a part of an arrow: `arrow.on(zone)`. */
  get [FAR](): FarHosts {
    const { id, zone, version = '', module } = this.#caller
    const key = ['\0far', id, zone, version, module].join(' ')
    const run: FarHosts['run'] = (part, input, signal) =>
      this.#call(PART, [part, input], { timeoutMs: undefined, signal })
    return { key, module, run }
  }

  /** `map` of an array: a promise of all values. */
  map<Name extends ExportName<Module>>(
    items: readonly ExportItem<Module, Name>[],
    name: Name,
    options?: FarMapOptions,
  ): Promise<ExportValue<Module, Name>[]>
  /**
   * Call an export with each item and its index, and return the values in the order of items; of an iterable
   * an async iterable, which reads its input no further ahead than calls are in flight. A full zone is waited
   * for. The first error, in the order of items, ends it, and nothing after it begins.
   */
  map<Name extends ExportName<Module>>(
    items: AnyIterable<ExportItem<Module, Name>>,
    name: Name,
    options?: FarMapOptions,
  ): AsyncGenerator<ExportValue<Module, Name>, void, undefined>
  map(items: AnyIterable<unknown>, name: unknown, options?: unknown): unknown {
    const { callsMax, timeoutMs, signal } = mapOptions(options)
    checkExport('far.map()', name)
    const limit = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
    const stop = new AbortController()
    const ended = AbortSignal.any([stop.signal, signal, limit].filter((each) => each !== undefined))
    const spread = this.#spread(items, name, callsMax, ended)
    const values = outcomesIn(spread, stop, () =>
      limit?.aborted === true && signal?.aborted !== true
        ? new ZoneError('TASK_TIMEOUT', { zone: this.name, timeoutMs: timeoutMs!, started: true })
        : undefined,
    )
    return isItems(items) ? allOf(values) : values
  }

  async *#spread(
    items: AnyIterable<unknown>,
    name: string,
    callsMax: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<unknown, void> {
    await this.#caller.hosts.find()
    const capacity = this.#caller.hosts.usable.reduce((sum, { inFlightMax }) => sum + inFlightMax, 0)
    const limits = { timeoutMs: undefined, signal }
    const flow: Flow<ArrayLike<unknown>, unknown> = new Flow<ArrayLike<unknown>, unknown>({
      run: (chunk, index) => this.#whenNotFull(name, [chunk[0], index], limits),
      settled: () => void reader.read(),
      ordered: true,
      runsMax: callsMax ?? (capacity || CALLS_DEFAULT),
      refillsLate: false,
    })
    const reader = isItems(items) ? new ItemsReader(items, flow) : readerOf(items, flow)
    yield* outcomesOf(flow, reader, signal)
  }

  async #whenNotFull(name: string, args: readonly unknown[], limits: CallLimits): Promise<unknown> {
    for (;;) {
      try {
        return await this.#call(name, args, limits)
      } catch (error) {
        if (!(error instanceof ZoneError) || error.code !== 'ZONE_FULL') throw error
        await this.#caller.hosts.change(FULL_MS)
      }
    }
  }

  /**
   * Call an export that returns an iterable, a generator in most cases, and read its items as they come. The
   * host sends at most `aheadMax` items ahead of the reader; the function itself runs further ahead, by the
   * windows of the host's zone (4,096 items, 1 MiB). Leaving the loop ends the function.
   */
  stream<Name extends ExportName<Module>>(
    name: Name,
    args: ExportArgs<Module, Name>,
    options?: FarStreamOptions,
  ): FarStream<ExportItems<Module, Name>> {
    const { aheadMax, ...limits } = streamOptions(options)
    checkExport('far.stream()', name)
    if (!Array.isArray(args)) throw wrong('far.stream(): args', 'an array', args)
    return new FarStream(this.#caller, name, args, limits, aheadMax)
  }

  /**
   * Resolves when a host has capacity for a call, as far as is known here. Rejects with `ZONE_NOWHERE` and
   * with the signal's reason.
   */
  async ready(options?: Pick<FarOptions, 'signal'>): Promise<void> {
    const { signal } = farOptions('far.ready()', options)
    const { hosts } = this.#caller
    for (;;) {
      signal?.throwIfAborted()
      await hosts.find()
      if (hosts.usable.some(({ load }) => load < 1)) return
      await hosts.change(FULL_MS)
    }
  }
}

refuseClass(
  FarZone,
  'a zone of other machines belongs to the thread of its connection; use it there: in an arrow, ' +
    'put its on() beside the part that runs in a local zone, not inside of it',
)

/** The outcomes; whatever ends them ends what is in flight. */
async function* outcomesIn(
  values: AsyncIterable<unknown>,
  stop: AbortController,
  instead: () => Error | undefined,
): AsyncGenerator<unknown, void> {
  try {
    yield* values
  } catch (error) {
    throw instead() ?? error
  } finally {
    stop.abort(new DOMException('The rest is not needed', 'AbortError'))
  }
}

async function allOf(values: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const value of values) all.push(value)
  return all
}
