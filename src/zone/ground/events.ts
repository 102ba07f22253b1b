/**
 * What zones publish on `node:diagnostics_channel`: rare events only, none per task.
 *
 * A channel without subscribers costs one property read. The names are API; docs/guide/events.md lists them
 * with their messages. The thread that starts a worker publishes the events of that worker.
 */
import { channel } from 'node:diagnostics_channel'
import type { ZoneSettings } from './settings.ts'
import type { ZoneStats } from './stats.ts'

/** The message of `corespun:zone:created`: this thread has created a zone. */
export interface ZoneCreatedEvent {
  /** The zone's id. */
  readonly zone: string
  /** Its complete settings. */
  readonly settings: ZoneSettings
}

/** The message of `corespun:worker:started`, `corespun:worker:ready` and `corespun:worker:ended`. */
export interface WorkerEvent {
  /** The worker's name: the zone's id, a slash, its slot. */
  readonly worker: string
  /** Why the worker has ended. Only in `corespun:worker:ended`. */
  readonly reason?: string
  /** The uncaught error that ended the worker, if one did. Only in `corespun:worker:ended`. */
  readonly error?: unknown
}

/** The message of `corespun:zone:reloaded`: `reload()` has ended. */
export interface ZoneReloadedEvent {
  /** The zone's id. */
  readonly zone: string
  /** How many workers were replaced. */
  readonly workers: number
  /** How long it took, ms. */
  readonly ms: number
  /** Why the other workers were not replaced; `undefined` if all were. */
  readonly error: unknown
}

/** The message of `corespun:zone:stats`: this thread has called `stats()`. */
export interface StatsEvent {
  /** The zone's id. */
  readonly zone: string
  /** The value that `stats()` returned. */
  readonly stats: ZoneStats
}

const created = channel('corespun:zone:created')
const closed = channel('corespun:zone:closed')
const reloaded = channel('corespun:zone:reloaded')
const stats = channel('corespun:zone:stats')
const started = channel('corespun:worker:started')
const ready = channel('corespun:worker:ready')
const ended = channel('corespun:worker:ended')

export const publish = {
  zoneCreated(zone: string, settings: ZoneSettings): void {
    if (created.hasSubscribers) created.publish({ zone, settings } satisfies ZoneCreatedEvent)
  },
  zoneClosed(zone: string): void {
    if (closed.hasSubscribers) closed.publish({ zone })
  },
  zoneReloaded(event: ZoneReloadedEvent): void {
    if (reloaded.hasSubscribers) reloaded.publish(event)
  },
  zoneStats(zone: string, now: ZoneStats): void {
    if (stats.hasSubscribers) stats.publish({ zone, stats: now } satisfies StatsEvent)
  },
  workerStarted(worker: string): void {
    if (started.hasSubscribers) started.publish({ worker } satisfies WorkerEvent)
  },
  workerReady(worker: string): void {
    if (ready.hasSubscribers) ready.publish({ worker } satisfies WorkerEvent)
  },
  workerEnded(worker: string, reason: string, error: unknown): void {
    if (ended.hasSubscribers) ended.publish({ worker, reason, error } satisfies WorkerEvent)
  },
}
