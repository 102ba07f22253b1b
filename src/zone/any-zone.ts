/**
 * The type of every zone: of workers, ready-made or created, and of the calling thread itself.
 *
 * Code that is given a place to run things takes an `AnyZone`. The classes say more: a `Zone` has settings,
 * and can be full; `zone.node` has neither a queue nor a hop. Also the shapes of calls, so that both classes
 * and this interface say the same.
 */
import type { CallOptions } from './call.ts'
import type { Items, MapOptions, ReduceOptions, Settled, Source, SpreadOptions } from './parallel.ts'
import type { Result } from './result.ts'
import type { ZoneStats } from './stats.ts'
import type { Task } from './task.ts'

/** A function that can be a task: it may use its {@link Task} as `this` and may be asynchronous. */
export type TaskFunction<Args extends unknown[], Value> = (this: Task, ...args: Args) => Value

/** The exported functions of a module as calls to a zone. */
export type ModuleCalls<Module> = {
  readonly [
    Name in keyof Module as Module[Name] extends (...args: never[]) => unknown ? Name : never
  ]: Module[Name] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Promise<Awaited<Value>>
    : never
}

/** See the module's text; what each method does stands at `Zone`. */
export interface AnyZone extends AsyncDisposable {
  /** The zone's name. */
  readonly id: string
  /** Run a function. */
  run<Args extends unknown[], Value>(fn: TaskFunction<Args, Value>, ...args: Args): Promise<Awaited<Value>>
  /** Run a function that takes nothing it must be given; or one with arguments; or an export of a module. */
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
  /** The functions that a module exports, as calls. */
  module<Module>(url: string | URL): ModuleCalls<Module>
  /** Run code, or a function, once on every worker. */
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
  /** The same, blocking. */
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
  /** A function of every item, in order. */
  map<Item, Value>(
    items: Items<Item>,
    fn: (item: Item, index: number) => Value,
    options: MapOptions & { readonly settle: true },
  ): Promise<Settled<Awaited<Value>>[]>
  map<Item, Value>(
    items: Items<Item>,
    fn: (item: Item, index: number) => Value,
    options?: MapOptions & { readonly settle?: false },
  ): Promise<Awaited<Value>[]>
  map<Item, Value>(
    items: Source<Item>,
    fn: (item: Item, index: number) => Value,
    options: MapOptions & { readonly settle: true },
  ): AsyncGenerator<Settled<Awaited<Value>>, void, undefined>
  map<Item, Value>(
    items: Source<Item>,
    fn: (item: Item, index: number) => Value,
    options?: MapOptions & { readonly settle?: false },
  ): AsyncGenerator<Awaited<Value>, void, undefined>
  /** The same for what it does. */
  forEach<Item>(
    items: Source<Item>,
    fn: (item: Item, index: number) => unknown,
    options?: SpreadOptions,
  ): Promise<void>
  /** The items folded into one value. */
  reduce<Item, Sum>(
    items: Source<Item>,
    fn: (sum: Sum, item: Item, index: number) => Sum,
    initial: Sum,
    options?: ReduceOptions<Sum>,
  ): Promise<Sum>
  /** What it has done and is doing. */
  stats(): ZoneStats
  /** Resolves when there is room for a task. */
  ready(options?: { readonly signal?: AbortSignal }): Promise<void>
  /** Finish what was accepted and end the workers. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>
}
