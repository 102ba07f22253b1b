/**
 * Lists of jobs by their state, page by page, and how many there are of each.
 *
 * What has not ended is read from the queue, dead jobs from their letters, and only what has ended from the
 * records: so however many results are kept, no other list reads one of them.
 */
import { wrong } from '../errors.ts'
import type { Found, Keeps, KeyValue, Page, Paging, Queue } from '../engine/engine.ts'
import type { EndState, JobStatus, LiveState, bulkOptions, listOptions } from '../job-settings.ts'
import { QUEUE_KEY } from './gate.ts'
import { type JobInfo, infoOf } from './info.ts'
import {
  FRESH,
  type Job,
  type JobRecord,
  hasEnded,
  lettersName,
  readJob,
  readLetter,
  readRecord,
  recordsName,
} from './record.ts'

/** What jobs are kept in. */
export interface Room {
  readonly queue: Queue
  readonly records: KeyValue
  readonly letters: KeyValue
}

/** A job of a list. */
export interface ListedJob extends JobInfo {
  /** The export; `undefined` for a job that is done or cancelled, of which it is not kept. */
  readonly name: string | undefined
}

/** A page of a list of jobs. */
export interface JobPage {
  /** In the order of the engine. */
  readonly jobs: readonly ListedJob[]
  /** Pass it as `after` for the next page; `undefined`: this is the last one. */
  readonly next: string | undefined
}

/** How many jobs there are. */
export interface JobCounts {
  /** They wait for a host, a delay or another attempt; and schedules that no host has had yet. */
  readonly waiting: number
  /** A host runs them, as far as it has reported that: of short ones it does not. */
  readonly running: number
  /** Schedules. */
  readonly scheduled: number
  /** Dead letters. */
  readonly dead: number
  /** Done or cancelled, as long as that is kept. */
  readonly ended: number
}

/** Where a list is read. */
type Source = 'live' | 'lent' | 'letters' | 'records'
const SOURCE_OF: Readonly<Record<JobStatus, Source>> = {
  waiting: 'live',
  running: 'lent',
  scheduled: 'live',
  dead: 'letters',
  done: 'records',
  cancelled: 'records',
}
/** After so many jobs of other states a page ends, though it is empty. */
const READ_MAX = 10_000
/** Items that are read at once where they are counted. */
const COUNT_ITEMS = 256
/** Jobs that a bulk changes at once. */
const BULK_JOBS = 64
const CURSOR = /^(live|lent|letters|records):(.*)$/s

/** @throws {FleetError} `FLEET_ARGUMENT`, and what the engine fails with. */
export async function listed(room: Room, options: ReturnType<typeof listOptions>): Promise<JobPage> {
  const { state, jobsMax, signal } = options
  let [source, after] = beginOf(state, options.after)
  for (let readCount = 0; ; readCount += jobsMax) {
    signal?.throwIfAborted()
    const { items, next } = await READ[source](room, { after, itemsMax: jobsMax }, state)
    const jobs = items.filter((job) => job !== undefined && (state === undefined || job.status === state))
    after = next
    // Behind all that has not ended there is what has.
    const isOver = next === undefined && (state !== undefined || source === 'records')
    if (next === undefined && !isOver) source = 'records'
    if (jobs.length > 0 || isOver || readCount + jobsMax >= READ_MAX)
      return { jobs: jobs as ListedJob[], next: isOver ? undefined : `${source}:${after ?? ''}` }
  }
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
function beginOf(state: JobStatus | undefined, cursor: string | undefined): [Source, string | undefined] {
  const source = state === undefined ? 'live' : SOURCE_OF[state]
  if (cursor === undefined) return [source, undefined]
  const [, of, after] = CURSOR.exec(cursor) ?? []
  if (of !== source && !(state === undefined && of === 'records'))
    throw wrong('jobs.list(): after', 'what next of a page of the same state is', cursor)
  return [of, after === '' ? undefined : after]
}

const READ = {
  live: (room, paging, state) => items(room, paging, { isLent: false, isSchedule: state === 'scheduled' }),
  lent: (room, paging) => items(room, paging, { isLent: true, isSchedule: false }),
  async letters({ letters, records }, paging) {
    const { items: all, next } = await letters.page(paging)
    const read = all.map(async ({ key, bytes }) => {
      const letter = readLetter(bytes)
      // The letter of a host that was lost before it had written the end, or of a job that runs anew.
      const isDead = readRecord((await records.get(key))?.bytes)?.status === 'dead'
      if (letter === undefined || !isDead) return undefined
      return { ...infoOf(key, letter.record), name: readJob(letter.job)?.name }
    })
    return { items: await Promise.all(read), next }
  },
  async records({ letters, records }, paging) {
    const { items: all, next } = await records.page(paging)
    const read = all.map(async ({ key, bytes }) => {
      const record = readRecord(bytes)
      if (!hasEnded(record)) return undefined
      const letter = record.status === 'dead' ? readLetter((await letters.get(key))?.bytes) : undefined
      return { ...infoOf(key, record), name: letter && readJob(letter.job)?.name }
    })
    return { items: await Promise.all(read), next }
  },
} satisfies Record<
  Source,
  (room: Room, paging: Paging, state: JobStatus | undefined) => Promise<Page<ListedJob | undefined>>
>

/** Jobs that have not ended. @param of Those that hosts have had; schedules, of others no record is read. */
async function items(
  { queue, records }: Room,
  paging: Paging,
  of: { readonly isLent: boolean; readonly isSchedule: boolean },
): Promise<Page<ListedJob | undefined>> {
  const { items: all, next } = await queue.page(paging, of.isLent)
  const read = all.map(async (item) => {
    const job = readJob(item.bytes)
    if (of.isSchedule && job?.repeat === undefined) return undefined
    const record = readRecord((await records.get(item.id))?.bytes)
    // The item of a host that was lost behind the end.
    if (hasEnded(record)) return undefined
    return { ...infoOf(item.id, record ?? freshOf(item, job)), name: job?.name }
  })
  return { items: await Promise.all(read), next }
}

/** The record of a job that no host has had. */
export function freshOf({ addedMs }: Pick<Found, 'addedMs'>, job: Job | undefined): JobRecord {
  if (job?.repeat === undefined) return { ...FRESH, addedMs, dueMs: job?.limits.delayMs ?? 0 }
  const { everyMs } = job.repeat
  return { ...FRESH, addedMs, status: 'scheduled', dueMs: everyMs > 0 ? addedMs + everyMs : 0 }
}

/** Reads what a host has had and has not ended, and counts the rest. */
export async function counted(room: Room, keeps: Keeps, zone: string): Promise<JobCounts> {
  const { queue, records } = room
  const [all, dead, kept, settings] = await Promise.all([
    queue.count(),
    keeps.valuesIn(lettersName(zone)),
    keeps.valuesIn(recordsName(zone)),
    records.get(QUEUE_KEY),
  ])
  const counts = { running: 0, scheduled: 0, over: 0, recorded: settings === undefined ? 0 : 1 }
  let after: string | undefined
  do {
    const page = await queue.page({ after, itemsMax: COUNT_ITEMS }, true)
    const read = page.items.map(async ({ id }) => readRecord((await records.get(id))?.bytes))
    for (const record of await Promise.all(read)) {
      if (record === undefined) continue
      if (hasEnded(record)) {
        counts.over++
        continue
      }
      counts.recorded++
      if (record.status === 'running' || record.status === 'scheduled') counts[record.status]++
    }
    after = page.next
  } while (after !== undefined)
  const { running, scheduled, over, recorded } = counts
  const ended = Math.max(0, kept - dead - recorded)
  return { waiting: Math.max(0, all - running - scheduled - over), running, scheduled, dead, ended }
}

/** Keys, a page at a time. */
type Pages = (
  paging: Paging,
) => Promise<{ readonly keys: readonly string[]; readonly next: string | undefined }>

/** Of jobs that have ended so by now; not of those that end so meanwhile. */
export async function endPages(room: Room, state: EndState): Promise<Pages> {
  const values = state === 'dead' ? room.letters : room.records
  const last = await values.last()
  return async (paging) => {
    const { items: all, next } = await values.page(paging)
    const isChosen = (bytes: Uint8Array | undefined): boolean =>
      state === 'dead' || readRecord(bytes)?.status === state
    const chosen = all.filter(({ revision, bytes }) => revision <= last && isChosen(bytes))
    return { keys: chosen.map(({ key }) => key), next }
  }
}

/** Of jobs that have not ended, those of a state among them. */
export const livePages =
  (room: Room, state: LiveState): Pages =>
  async (paging) => {
    const { items: all, next } = await room.queue.page(paging, state === 'running')
    return { keys: all.map(({ id }) => id), next }
  }

/**
 * Do something to jobs, some at once.
 * @param each Resolves with whether it was done.
 * @returns To how many it was done.
 * @throws What the first of those that fail is rejected with, when those that were begun have ended.
 */
export async function inBulk(
  pages: Pages,
  { jobsMax = Infinity, signal }: ReturnType<typeof bulkOptions>,
  each: (key: string) => Promise<boolean>,
): Promise<number> {
  let count = 0
  let after: string | undefined
  do {
    signal?.throwIfAborted()
    const { keys, next } = await pages({ after, itemsMax: Math.min(BULK_JOBS, jobsMax - count) })
    const outcomes = await Promise.allSettled(keys.map(each))
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') throw outcome.reason
      if (outcome.value) count++
    }
    after = next
  } while (after !== undefined && count < jobsMax)
  return count
}
