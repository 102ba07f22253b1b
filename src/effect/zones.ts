/**
 * Zones whose calls are Effects: what the function returns may be a value, a promise or an Effect.
 *
 * An Effect that a function returns is run in the worker, with the services of the ManagedRuntime that the
 * zone's `setup` has returned there; worker.ts is that side. Its exit comes back whole. An interrupt of the
 * calling fiber cancels the task and does not wait for it: a worker that ignores it is replaced.
 */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as Effect from 'effect/Effect'
import type { Scope } from 'effect/Scope'
import { callerFile, calledArguments, calledNumber, moduleFunctionNumber } from '../transport/internal.ts'
import {
  type AnyZone,
  type TaskFunction,
  type TaskOptions,
  type ZoneCodes,
  type ZoneOptions,
  withTrace,
  zone,
} from '../zone/index.ts'
import { type RemoteZone, isZone, moduleCalls, workerZoneOf, wrong } from '../zone/internal.ts'
import { carriedBy, traceOf } from './carried.ts'
import { type Failures, TaskError, failed, refusing } from './errors.ts'
import type { Reply } from './worker.ts'

const WORKER = new URL('./worker.js', import.meta.url)
const TASK = { module: WORKER, name: 'runTask' }

/** Services that a task needs and the zone's workers have not. */
export interface NotInWorker<Services> {
  /** Provide them by the runtime of the zone's `setup`. */
  readonly notInWorker: Services
}

type Missing<Needs, Services> = [Exclude<Needs, Services>] extends [never]
  ? never
  : NotInWorker<Exclude<Needs, Services>>

type Lost = TaskError | Failures<ZoneCodes>

/** What calling a function in a zone is here: its Effect, or the value of its promise. */
export type Called<Value, Services = never> = [Awaited<Value>] extends [never]
  ? Effect.Effect<never, Lost>
  : [Awaited<Value>] extends [Effect.Effect<infer A, infer E, infer Needs>]
    ? Effect.Effect<A, E | Lost, Missing<Needs, Services>>
    : Effect.Effect<Awaited<Value>, Lost>

/** The exported functions of a module as Effects that run in a zone. */
export type EffectCalls<Module, Services = never> = {
  readonly [
    Name in keyof Module as Module[Name] extends (...args: never[]) => unknown ? Name : never
  ]: Module[Name] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Called<Value, Services>
    : never
}

/** A zone for Effects; `Services` are what the ManagedRuntime of its workers provides. */
export interface EffectZone<Services = never> {
  /** The zone itself. */
  readonly zone: AnyZone
  /**
   * Runs a function on one worker, by the rules of `zone.run`. What it throws is a `TaskError`; an Effect
   * that it returns runs there and ends here as it has ended there: failure, defect or interruption.
   */
  run<Args extends unknown[], Value>(fn: TaskFunction<Args, Value>, ...args: Args): Called<Value, Services>
  /** The functions that a module exports, which each worker loads before its next task. */
  module<Module>(url: string | URL): EffectCalls<Module, Services>
  /** A view with limits, as `zone.with`. */
  with(options: TaskOptions): EffectZone<Services>
}

/**
 * A zone that is closed with its scope: `Layer.effect(Render, makeZone('render', { workers: 2 }))`.
 *
 * `setup` may return a ManagedRuntime, or resolve to one: the services of the Effects that tasks return
 * there. It is disposed of when the worker leaves, unless there is a `teardown`. Fails with `ZONE_EXISTS`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { makeZone } from 'corespun/effect'
 *
 * const program = Effect.gen(function* () {
 *   const cpu = yield* makeZone('cpu', { workers: 1 })
 *   return yield* cpu.run((n: number) => n * n, 12)
 * })
 * assert.equal(await Effect.runPromise(Effect.scoped(program)), 144)
 * ```
 */
export function makeZone<Services = never>(
  id: string,
  options: ZoneOptions = {},
): Effect.Effect<EffectZone<Services>, Failures<ZoneCodes>, Scope> {
  const { setup, teardown = setup === undefined ? undefined : WORKER } = options
  const from = callerFile(makeZone)
  const hooks = setup === undefined ? {} : { setup: located(setup, from) }
  const settings = {
    ...options,
    ...hooks,
    ...(teardown === undefined ? {} : { teardown: located(teardown, from) }),
  }
  return Effect.acquireRelease(
    refusing<ZoneCodes, AnyZone>(() => zone.create(id, settings)),
    (made) => Effect.promise(() => made.close()),
  ).pipe(Effect.map((made) => fromZone<Services>(made)))
}

/**
 * A zone that something else closes, such as `zone.cpu`, or a view of one with limits.
 * @throws {ZoneError} `ZONE_ARGUMENT` for what is not a zone of this process.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { zone } from 'corespun'
 * import { fromZone } from 'corespun/effect'
 *
 * const cpu = fromZone(zone.cpu).with({ timeoutMs: 60_000 })
 * const sum = cpu.run((numbers: number[]) => numbers.reduce((a, b) => a + b), [1, 2, 3])
 * assert.equal(await Effect.runPromise(sum), 6)
 * ```
 */
export function fromZone<Services = never>(of: AnyZone): EffectZone<Services> {
  if (!isZone(of)) throw wrong('fromZone(): the zone', 'a zone of this process', of)
  return new Callable(of) as unknown as EffectZone<Services>
}

/** A relative name of a module as its URL; anything else as it is. */
function located<Hook>(hook: Hook, from: string): Hook | URL {
  if (typeof hook !== 'string' || !/^\.\.?\//.test(hook)) return hook
  return new URL(hook, isAbsolute(from) ? pathToFileURL(from) : from)
}

/** The modules that the workers of a zone load before their next tasks. */
const loadedIn = new WeakMap<AnyZone, Set<string>>()

class Callable {
  readonly zone: RemoteZone

  constructor(zone: RemoteZone) {
    this.zone = zone
  }

  run(fn: (...args: never[]) => unknown, ...args: unknown[]): Effect.Effect<unknown, unknown> {
    return this.#call(() => [calledNumber(fn), calledArguments(fn, args)])
  }

  module(url: string | URL): unknown {
    const from = callerFile(this.module)
    const at = located(url, from)
    const call = (name: string, args: unknown[]): Effect.Effect<unknown, unknown> =>
      this.#call(() => {
        this.#load(String(at))
        return [moduleFunctionNumber(at, name, () => from), args]
      })
    return moduleCalls(call as never)
  }

  with(options: TaskOptions): Callable {
    return new Callable(this.zone.with(options) as RemoteZone)
  }

  /** Before arguments are read there: the module registers their classes. */
  #load(url: string): void {
    const owner = workerZoneOf(this.zone)
    if (owner === undefined || !URL.canParse(url)) return
    const loaded = loadedIn.get(owner) ?? new Set()
    if (loaded.has(url)) return
    loadedIn.set(owner, loaded.add(url))
    // A zone that refuses it refuses the call, which reports that.
    owner.broadcast(load, [url]).catch(() => loaded.delete(url))
  }

  #call(task: () => [number: number, args: readonly unknown[]]): Effect.Effect<unknown, unknown> {
    return Effect.withFiber((fiber) =>
      Effect.callback((resume) => {
        const carried = carriedBy(fiber)
        const send = (): (() => void) =>
          this.zone.begin(
            TASK,
            [...task(), carried],
            (reply) => resume(outcome(reply as Reply)),
            (error) => resume(failed<ZoneCodes>(error)),
          )
        const trace = traceOf(fiber)
        const cancel = trace === undefined ? send() : withTrace(trace, send)
        return Effect.sync(cancel)
      }),
    )
  }
}

/** What a module throws is reported by the calls that need it. */
async function load(url: string): Promise<void> {
  await import(url).catch(() => {})
}

function outcome(reply: Reply): Effect.Effect<unknown, unknown> {
  if ('value' in reply) return Effect.succeed(reply.value)
  return 'cause' in reply ? Effect.failCause(reply.cause) : Effect.fail(new TaskError(reply.thrown))
}
