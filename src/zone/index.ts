/**
 * Zones: groups of worker threads that any thread may submit calls to.
 *
 * `zone.create(id, settings)` makes one, `zone.get(id)` finds one made by any thread, `zone.current` is the
 * one whose worker this thread is, `zone.node` is this thread itself.
 */
export type { AnyZone } from './any-zone.ts'
export type { CallOptions } from './call.ts'
export { ZoneError, type ZoneCodes } from './errors.ts'
export { installTypeScript } from './loader/index.ts'
export { type Fork, join } from './join.ts'
export { NodeZone } from './node-zone.ts'
export type { Items, MapOptions, ReduceOptions, Settled, Source, SpreadOptions } from './parallel.ts'
export { Result } from './result.ts'
export type { ExecutorName, Settings, ZoneSettings } from './settings.ts'
export { type ModuleCalls, Task, type TaskFunction, currentTask } from './task.ts'
export type { ErrorListener } from './uncaught.ts'
export type { StatsTold, WorkerTold, ZoneCreated } from './tell.ts'
export { type Times, type WorkerStats, Zone, type ZoneStats } from './zone.ts'
export { endWorker, zone } from './zones.ts'
