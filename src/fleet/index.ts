/**
 * `corespun/fleet`: the same calls on other machines, over NATS, or in memory until there is a server.
 *
 * `connect(address)` returns a fleet; `host(fleet, options)` offers a module to it; `fleet.zone(name)` calls
 * one, `fleet.jobs(name)` has jobs of one, `fleet.store(name)` and `fleet.lock(name)` are shared by all, as
 * are the rooms of servers with `fleet.rooms(name)` and rate limits with `fleet.limits(name)`. Code is
 * deployed to hosts and never sent. The examples have `await using`, which needs Node 24 or a compiler;
 * elsewhere call `close()`.
 * @module corespun/fleet
 */
export { type Fleet, connect } from './connect.ts'
export { type CreateOptions, createStreams } from './create.ts'
export type { FleetChanges } from './changes.ts'
export { FleetError, type FleetCodes } from './errors.ts'
export { type FleetHost, type HostOptions, host } from './host/host.ts'
export { type CurrentJob, type EndedJob, currentJob } from './worker/current.ts'
export { NonRetryableError } from './worker/non-retryable.ts'
export { versionOf } from './version.ts'
export type { FleetHostInfo } from './presence.ts'
export type { FleetOverview, JobQueueInfo } from './overview.ts'
export type { DeadJob, JobInfo } from './jobs/info.ts'
export type { JobSubmission, Jobs } from './jobs/jobs.ts'
export type { JobCounts, JobPage, ListedJob } from './jobs/listing.ts'
export type { FarLimits, LimitsStats } from './limits/limits.ts'
export type { HostClosedEvent, HostClosingEvent, JobDeadEvent } from './jobs/events.ts'
export type { RoomsEvent, RoomsStats } from './rooms/events.ts'
export type { FarRooms } from './rooms/rooms.ts'
export type {
  EndState,
  JobBulkOptions,
  JobLimitOptions,
  JobListOptions,
  JobOptions,
  JobStatus,
  LiveState,
  RetryOptions,
  ScheduleOptions,
  SqlClient,
  SubmitManyOptions,
} from './job-settings.ts'
export type {
  ConnectOptions,
  CopyOptions,
  FarMapOptions,
  FarOptions,
  FarStoreOptions,
  FarStreamOptions,
  FarZoneOptions,
  FleetTls,
  LimitsOptions,
  LockOptions,
  OverviewOptions,
  RevisionOptions,
} from './settings.ts'
export { type FleetUser, type FleetUserStore, serverConfig } from './server-config.ts'
export { FarCopy } from './state/copy.ts'
export type { FarChange, FarEntry } from './state/change.ts'
export type { HeldLock } from './state/held.ts'
export type { FarLock } from './state/lock.ts'
export type { FarStore } from './state/store.ts'
export type { FarZone } from './zone/far-zone.ts'
export type { FarStream } from './zone/far-stream.ts'
