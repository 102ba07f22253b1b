/**
 * Zones: groups of worker threads that any thread may submit calls to.
 *
 * `zone.create(id, options)` creates one, `zone.get(id)` returns one that any thread has created,
 * `zone.current` is the one whose worker the calling thread is, `zone.node` is the calling thread itself,
 * `zone.main` the main thread.
 * @module corespun/zone
 */
export type { AnyZone, BroadcastOptions, ModuleOptions, Zone } from './api/any-zone.ts'
export type { CallOptions, TaskOptions } from './call/call.ts'
export type { OrderOptions, Priority } from './call/order.ts'
export { type Context, carry, currentTrace, measureCpu, withTrace } from './context/context.ts'
export type { CpuTime } from './ground/cpu.ts'
export type { TraceContext } from './ground/record.ts'
export { ZoneError, type ZoneCodes } from './errors.ts'
export { type Fork, join } from './call/join.ts'
export type {
  AnyIterable,
  Items,
  MapOptions,
  ParallelOptions,
  ReduceOptions,
  Settled,
} from './parallel/map-options.ts'
export type { StreamFunction, StreamOptions, StreamSource } from './call/call-options.ts'
export type { ZoneStream } from './stream/stream.ts'
export { Result } from './ground/result.ts'
export type { ExecutorName, WorkersOptions, ZoneOptions, ZoneSettings } from './ground/settings.ts'
export type { WorkerHook } from './ground/hooks.ts'
export type { ErrorListener } from './ground/uncaught.ts'
export { type ModuleCalls, type Passed, Task, type TaskFunction, currentTask } from './ground/task.ts'
export { workerState } from './worker/run-hooks.ts'
export type { StatsEvent, WorkerEvent, ZoneCreatedEvent, ZoneReloadedEvent } from './ground/events.ts'
export type { DurationStats, WorkerStats, ZoneStats } from './ground/stats.ts'
export { zone } from './api/zones.ts'
