/**
 * A fleet as somebody sees it who looks: its hosts, by asking all of them, and its queues of jobs.
 *
 * Hosts send nothing unasked, so nobody pays for being seen but when somebody looks.
 */
import type { Engine, Keeps } from './engine/engine.ts'
import { type FleetHostInfo, hostsOf } from './presence.ts'
import { lettersName, zoneOfQueue } from './jobs/record.ts'

/** The durable jobs of a zone. */
export interface JobQueueInfo {
  /** Whose jobs they are. */
  readonly zone: string
  /** Jobs that no host has had yet. */
  readonly waiting: number
  /** Jobs that run, and those that wait for a delay, a schedule or another attempt. */
  readonly taken: number
  /** Dead letters. */
  readonly dead: number
  /** How long the oldest of the waiting ones has waited, in ms. */
  readonly waitedMs: number
}

/** What there is in a fleet. */
export interface FleetOverview {
  /** In the order of zones, machines and ids; none over an engine without messages, by which they reply. */
  readonly hosts: readonly FleetHostInfo[]
  /** The queues of all zones that ever had a job, in their order. */
  readonly queues: readonly JobQueueInfo[]
}

/** @param waitMs How long hosts have to reply. */
export async function overviewOf(engine: Engine, waitMs: number): Promise<FleetOverview> {
  const asked = engine.messages && hostsOf(engine.messages, waitMs)
  const [hosts, queues] = await Promise.all([asked, queuesOf(engine)])
  return { hosts: hosts ?? [], queues }
}

/** The queues of all zones that ever had a job, in their order. */
export async function queuesOf(keeps: Keeps): Promise<JobQueueInfo[]> {
  const queues: JobQueueInfo[] = []
  for (const { name, waiting, lent: taken, waitedMs } of await keeps.queues()) {
    const zone = zoneOfQueue(name)
    if (zone === undefined) continue
    const dead = await keeps.valuesIn(lettersName(zone))
    queues.push({ zone, waiting, taken, dead, waitedMs: Math.round(waitedMs) })
  }
  return queues.sort((a, b) => (a.zone < b.zone ? -1 : 1))
}
