/**
 * What zones tell the world, on `node:diagnostics_channel`: rare events only, nothing for every task.
 *
 * A channel without subscribers costs one property read. Names are API; they and their messages are listed in
 * docs/design/zones.md. Workers are told of by the thread that starts them.
 */
import { channel } from 'node:diagnostics_channel'
import type { Settings } from '../api/settings.ts'
import type { ZoneStats } from '../api/stats.ts'

/** A zone was made by this thread. */
export interface ZoneCreated {
  readonly zone: string
  readonly settings: Settings
}

/** Something about one worker; where it has ended, why, and the error that nobody caught if that was it. */
export interface WorkerTold {
  readonly worker: string
  readonly reason?: string
  readonly error?: unknown
}

/** `zone.stats()` was asked for in this thread. */
export interface StatsTold {
  readonly zone: string
  readonly stats: ZoneStats
}

const created = channel('corespun.zone.created')
const closed = channel('corespun.zone.closed')
const stats = channel('corespun.zone.stats')
const started = channel('corespun.worker.started')
const ready = channel('corespun.worker.ready')
const ended = channel('corespun.worker.ended')

/** Publish, if anybody listens. */
export const tell = {
  zoneCreated(zone: string, settings: Settings): void {
    if (created.hasSubscribers) created.publish({ zone, settings } satisfies ZoneCreated)
  },
  zoneClosed(zone: string): void {
    if (closed.hasSubscribers) closed.publish({ zone })
  },
  zoneStats(zone: string, told: ZoneStats): void {
    if (stats.hasSubscribers) stats.publish({ zone, stats: told } satisfies StatsTold)
  },
  workerStarted(worker: string): void {
    if (started.hasSubscribers) started.publish({ worker } satisfies WorkerTold)
  },
  workerReady(worker: string): void {
    if (ready.hasSubscribers) ready.publish({ worker } satisfies WorkerTold)
  },
  workerEnded(worker: string, reason: string, error: unknown): void {
    if (ended.hasSubscribers) ended.publish({ worker, reason, error } satisfies WorkerTold)
  },
}
