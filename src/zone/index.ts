/**
 * Zones: groups of worker threads that any thread may submit calls to.
 *
 * `zone.create(id, settings)` makes one, `zone.get(id)` finds one made by any thread, `zone.current` is the
 * one whose worker this thread is, `zone.node` is this thread itself.
 */
export type { AnyZone } from './api/any-zone.ts'
export type { CallOptions } from './call/call.ts'
export { ZoneError, type ZoneCodes } from './errors.ts'

export { type Fork, join } from './call/join.ts'
export { NodeZone } from './api/node-zone.ts'
export type { Items, MapOptions, ReduceOptions, Settled, Source, SpreadOptions } from './parallel/parallel.ts'
export { Result } from './api/result.ts'
export type { ExecutorName, ZoneSettings, ZoneOptions } from './api/settings.ts'
export { type ModuleCalls, Task, type TaskFunction, currentTask } from './call/task.ts'
export type { ErrorListener } from './worker/uncaught.ts'
export type { StatsEvent, WorkerEvent, ZoneCreatedEvent } from './owner/events.ts'
export { type Times, type WorkerStats, Zone, type ZoneStats } from './api/zone.ts'
export { zone } from './api/zones.ts'
