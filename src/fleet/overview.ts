/**
 * A fleet as somebody sees it who looks: its hosts, by asking all of them, and its queues of jobs.
 *
 * Hosts send nothing unasked, so nobody pays for being seen but when somebody looks.
 */
import type { Engine, Keeps } from './engine/engine.ts'
import { type FleetHostInfo, hostsOf } from './presence.ts'
import { lettersName, zoneOfQueue } from './jobs/record.ts'

/** The durable jobs of a zone, or the durable runs of a definition. */
export interface JobQueueInfo {
  /** What waits in it. */
  readonly kind: 'jobs' | 'runs'
  /** Whose jobs they are, or the name of the definition. */
  readonly zone: string
  /** Jobs or runs that no host or process has had yet. */
  readonly waiting: number
  /**
   * Those that run, jobs that wait for a delay, a schedule or another attempt, and runs that wait for a time
   * or a signal.
   */
  readonly taken: number
  /** Dead letters; 0 of runs. */
  readonly dead: number
  /** How long the oldest of the waiting ones has waited, in ms. */
  readonly waitedMs: number
}

/** What there is in a fleet. */
export interface FleetOverview {
  /** In the order of zones, machines and ids; none over an engine without messages, by which they reply. */
  readonly hosts: readonly FleetHostInfo[]
  /** The queues of all zones that ever had a job, in their order, and of all definitions that had a run. */
  readonly queues: readonly JobQueueInfo[]
}

/** @param waitMs How long hosts have to reply. */
export async function overviewOf(engine: Engine, waitMs: number): Promise<FleetOverview> {
  const asked = engine.messages && hostsOf(engine.messages, waitMs)
  const [hosts, queues] = await Promise.all([asked, queuesOf(engine)])
  return { hosts: hosts ?? [], queues }
}

/** The queue of a definition's runs. */
export const runsQueueName = (definition: string): string => `runs_${definition}`
const definitionOf = (queue: string): string | undefined => /^runs_(.+)$/.exec(queue)?.[1]

/** Those of jobs in the order of their zones, then those of runs in the order of their definitions. */
export async function queuesOf(keeps: Keeps): Promise<JobQueueInfo[]> {
  const queues: JobQueueInfo[] = []
  for (const { name, waiting, lent: taken, waitedMs } of await keeps.queues()) {
    const found = { waiting, taken, waitedMs: Math.round(waitedMs) }
    const [zone, definition] = [zoneOfQueue(name), definitionOf(name)]
    if (zone !== undefined)
      queues.push({ kind: 'jobs', zone, ...found, dead: await keeps.valuesIn(lettersName(zone)) })
    else if (definition !== undefined) queues.push({ kind: 'runs', zone: definition, ...found, dead: 0 })
  }
  const order = ({ kind, zone }: JobQueueInfo): string => `${kind} ${zone}`
  return queues.sort((a, b) => (order(a) < order(b) ? -1 : 1))
}
