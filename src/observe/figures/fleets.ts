/**
 * The fleets that a process is connected to, as a snapshot has them: hosts, queues, and dead jobs with their
 * errors.
 *
 * Hosts and servers are asked, which takes a while; whoever looks meanwhile has what was found last.
 */
import type { DeadJob, FleetHostInfo, FleetOverview, JobQueueInfo } from '../../fleet/index.ts'
import {
  type Kind,
  connectedFleets,
  isObject,
  messageOf,
  oneLine,
  reasonOf,
  refuser,
} from '../../base/index.ts'
import { anyConnected, lookAtConnected } from '../../metrics/internal.ts'
import { ObserveError } from '../errors.ts'

/** A connection to a fleet, as far as it is looked at: `await connect('nats://a')` of corespun/fleet. */
export interface ObservedFleet {
  /** Returns hosts and queues. */
  overview(): Promise<FleetOverview>
  /** Returns the jobs of a zone. */
  jobs(zone: string): {
    dead(options: {
      readonly jobsMax: number
    }): Promise<readonly Pick<DeadJob, 'key' | 'name' | 'failures' | 'hostsLost' | 'errors'>[]>
    again(key: string): Promise<boolean>
  }
}

/** A job that has failed for good. */
export interface DeadFigures {
  readonly zone: string
  readonly key: string
  /** The export. */
  readonly name: string
  readonly failures: number
  readonly hostsLost: number
  /** Codes or names, and messages, of its last failures; the latest last. */
  readonly errors: readonly string[]
}

export const FLEETS: Kind<readonly ObservedFleet[] | undefined> = {
  expected: 'an array of connections to fleets',
  accepts: (fleets) =>
    Array.isArray(fleets) &&
    fleets.every((fleet: Partial<ObservedFleet> | null) => typeof fleet?.overview === 'function'),
  default: undefined,
}

/** What there is in the fleets. */
export interface FleetFigures {
  readonly hosts: readonly FleetHostInfo[]
  readonly queues: readonly JobQueueInfo[]
  readonly dead: readonly DeadFigures[]
  /** What could not be read. */
  readonly problems: readonly string[]
  /** How long ago it was read. */
  readonly ageMs: number
}

export type Found = Omit<FleetFigures, 'ageMs'>

/** Most dead jobs of a zone. */
const DEAD_MAX = 100
const HOSTS_MAX = 1000

/** Ask all of them. What does not answer is a problem in the result. */
export async function lookAt(fleets: readonly ObservedFleet[]): Promise<Found> {
  return together(await Promise.allSettled(fleets.map(one)))
}

function together(found: readonly PromiseSettledResult<Found>[]): Found {
  const parts = found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  const failed = found.flatMap((each) =>
    each.status === 'rejected' ? [oneLine(messageOf(each.reason))] : [],
  )
  return {
    hosts: parts.flatMap(({ hosts }) => hosts).slice(0, HOSTS_MAX),
    queues: parts.flatMap(({ queues }) => queues),
    dead: parts.flatMap(({ dead }) => dead).sort(byName),
    problems: [...parts.flatMap(({ problems }) => problems), ...failed],
  }
}

/** Look at those of this thread that lead there: other threads call it by its name. */
export function lookHere(where: readonly string[]): Promise<Found> {
  return lookAt(connectedFleets(where))
}

/** As {@link retryJob}, in those of this thread. */
export function retryHere(zone: string, key: string): Promise<boolean> {
  return retryJob(connectedFleets(), zone, key)
}

const module = new URL('./fleets.js', import.meta.url).href
/** What servers take is not the thread's fault. */
const ANSWER_MS = 10_000

/** Look at those of all threads. */
export async function lookConnected(): Promise<Found> {
  const { found, problems } = await lookAtConnected({ module, name: 'lookHere', here: lookHere }, ANSWER_MS)
  const all = together(found)
  return { ...all, problems: [...problems, ...all.problems] }
}

/** Run a dead job anew, whichever thread has a connection to its fleet. */
export async function retryConnected(zone: string, key: string): Promise<boolean> {
  const isHere = await retryHere(zone, key).catch((error: unknown) => ({ error }))
  if (isHere === true) return true
  if (await anyConnected({ module, name: 'retryHere' }, [zone, key], ANSWER_MS)) return true
  if (isHere === false) return false
  throw isHere.error
}

async function one(fleet: ObservedFleet): Promise<Found> {
  const { hosts, queues } = await fleet.overview()
  const letters = queues.filter(({ dead }) => dead > 0)
  const found = await Promise.allSettled(
    letters.map(async ({ zone }) => {
      const dead = await fleet.jobs(zone).dead({ jobsMax: DEAD_MAX })
      return dead.map(({ key, name, failures, hostsLost, errors }): DeadFigures => {
        return { zone, key, name, failures, hostsLost, errors: errors.map(described) }
      })
    }),
  )
  const dead = found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  const problems = found.flatMap((each, index) =>
    each.status === 'rejected'
      ? [`dead jobs of ${letters[index].zone}: ${oneLine(messageOf(each.reason))}`]
      : [],
  )
  return { hosts, queues, dead, problems }
}

const wrong = refuser((facts) => new ObserveError('OBSERVE_ARGUMENT', facts))

/** The job of `retry {"zone":"mail","key":"a"}`. @throws {ObserveError} `OBSERVE_ARGUMENT`. */
export function jobOf({ zone, key }: Readonly<Record<string, unknown>>): [zone: string, key: string] {
  if (typeof zone !== 'string') throw wrong('retry: zone', 'the name of a zone with jobs', zone)
  return [zone, key as string]
}

/**
 * Run a dead job anew.
 * @returns Whether a fleet had it.
 */
export async function retryJob(
  fleets: readonly ObservedFleet[],
  zone: string,
  key: string,
): Promise<boolean> {
  for (const fleet of fleets) if (await fleet.jobs(zone).again(key)) return true
  return false
}

/** Buttons stay where they are. */
function byName(a: DeadFigures, b: DeadFigures): number {
  const [first, second] = [a, b].map(({ zone, key }) => `${zone}\0${key}`)
  return first < second ? -1 : 1
}

/** An error as a line. Jobs may throw anything. */
function described(error: unknown): string {
  const { code } = (isObject(error) ? error : {}) as { readonly code?: unknown }
  return typeof code === 'string' ? oneLine(`${code}: ${messageOf(error)}`) : reasonOf(error)
}

/** How long a look is shown before the next one begins, and how long the first one is waited for. */
const FRESH_MS = 2000
const WAIT_MS = 1000

/** The last look, renewed in the background. */
export class RecentLook {
  readonly #look: () => Promise<Found>
  #looking: Promise<void> | undefined
  #found: Found = { hosts: [], queues: [], dead: [], problems: ['not read yet'] }
  #atMs = -Infinity

  constructor(look: () => Promise<Found>) {
    this.#look = look
  }

  /** Returns after a second at most. */
  async read(): Promise<FleetFigures> {
    const isFirst = this.#atMs === -Infinity && this.#looking === undefined
    if (performance.now() - this.#atMs > FRESH_MS) this.#looking ??= this.#renew()
    if (isFirst && this.#looking !== undefined) await within(this.#looking, WAIT_MS)
    const ageMs = this.#atMs === -Infinity ? 0 : Math.round(performance.now() - this.#atMs)
    return { ...this.#found, ageMs }
  }

  async #renew(): Promise<void> {
    try {
      this.#found = await this.#look()
    } catch (error) {
      this.#found = { ...this.#found, problems: [oneLine(messageOf(error))] }
    } finally {
      this.#atMs = performance.now()
      this.#looking = undefined
    }
  }
}

async function within(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([work, late])
  clearTimeout(timer)
}
