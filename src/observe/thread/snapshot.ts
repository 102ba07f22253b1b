/**
 * The figures of the process, for who asks by its control socket.
 *
 * Threads that are connected to fleets read those; while they are busy the last look is shown. A thread that
 * has not counted anything since the first look is a problem in the figures: something keeps it busy.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connectedThreads } from '../../metrics/internal.ts'
import { here } from '../../zone/internal.ts'
import { type Found, RecentLook, lookConnected, retryConnected } from '../figures/fleets.ts'
import { type Snapshot, snapshotOf } from '../figures/snapshot.ts'
import { threadNames } from '../figures/tasks.ts'
import type { Method } from '../protocol.ts'
import type { ObserverStart } from './control.ts'

/** How long a thread may take until it counts: most begin within a tenth of that. */
const BEGIN_MS = 1000
const POLL_MS = 50

/** Since when threads do not count, by their names. */
let silent = new Map<string, number>()
let isBegun = false

/** The figures of this process, after a second at most if it was not looked at before. */
async function figures({ name, actions }: Pick<ObserverStart, 'name' | 'actions'>): Promise<Snapshot> {
  for (;;) {
    const snapshot = snapshotOf({ name, actions })
    const nowMs = performance.now()
    const counted = new Set(snapshot.threads.map(({ thread }) => thread))
    const missing = threadNames().filter((thread) => !counted.has(thread))
    silent = new Map(missing.map((thread) => [thread, silent.get(thread) ?? nowMs]))
    const late = missing.filter((thread) => nowMs - silent.get(thread)! >= BEGIN_MS)
    isBegun ||= missing.length === late.length
    const problems = late.map((thread) => `${thread} has not responded: its own figures are missing`)
    if (isBegun) return { ...snapshot, problems }
    await pause(POLL_MS)
  }
}

/** @param given Asks the main thread for fleets that were passed to it. */
export function snapshots(start: ObserverStart, given: () => Promise<unknown>): Method {
  // What this thread is called among those that count.
  here.worker ??= 'observer'
  const isGiven = start.fleets === 'given'
  const recent = new RecentLook(isGiven ? (given as () => Promise<Found>) : lookConnected)
  return async (): Promise<Snapshot> => {
    const snapshot = await figures(start)
    const hasFleets = isGiven || (start.fleets === 'connected' && connectedThreads().length > 0)
    return hasFleets ? { ...snapshot, fleet: await recent.read() } : snapshot
  }
}

/** Run a dead job anew, whichever thread has a connection to its fleet. */
export async function retried(start: ObserverStart, zone: string, key: string): Promise<boolean> {
  await figures(start)
  return retryConnected(zone, key)
}
