/**
 * What is kept of a job: the item that waits in the queue, and the record of how far it is.
 *
 * The record is a value with a revision, so that of all who write an end of one job exactly one does: that is
 * why a key has one result. A job that waits for its first attempt has no record. Bytes that are
 * neither are read as nothing, never as an error.
 */
import { type Engine, RANKS, type Rank } from '../engine/engine.ts'
import {
  type JobStatus,
  type ScheduleOptions,
  areLimits,
  isAfter,
  isJobLimit,
  isRepeat,
} from '../job-settings.ts'
import type { TraceContext } from '../../zone/index.ts'
import type { JobLimit } from './limit-state.ts'
import { type Carried, framed, isCount, readParts, readTrace, written } from '../wire.ts'

/** By the priority of a job. */
export const RANK_OF: Readonly<Record<string, Rank>> = { high: 0, normal: 1, low: 2 }

/** The limits of a job, complete. Of the spans that may be absent, 0. */
export interface JobLimits {
  readonly attemptsMax: number
  readonly hostsLostMax: number
  readonly backoffMs: number
  readonly backoffMsMax: number
  /** Absent: five minutes. */
  readonly missingMs?: number
  readonly timeoutMs: number
  readonly delayMs: number
  readonly ttlMs: number
}

/** When a job repeats. */
export interface Repeat {
  /** 0: by `cron`. */
  readonly everyMs: number
  readonly cron: string
  readonly timeZone: string
  /** Absent: true. */
  readonly overlaps?: ScheduleOptions['overlaps']
}

/** A job as it waits. */
export interface Job {
  readonly name: string
  /** A frame of their array, or the reference to a large one (large.ts). */
  readonly args: Carried
  readonly rank: Rank
  readonly limits: JobLimits
  readonly repeat: Repeat | undefined
  /** In which it was submitted. */
  readonly trace: TraceContext | undefined
  /** Which connection has submitted it: where its end is reported. */
  readonly origin: string
  /** Which one of that connection's submissions it is. */
  readonly submission: number
  /** How many run at once, on all hosts. */
  readonly limit: JobLimit | undefined
  /** The jobs that have to end before. */
  readonly after: readonly string[] | undefined
  /** It runs instead of what its key has had. */
  readonly replaces: boolean
  /** Of an item that has replaced itself to be lent at once (wake.ts). */
  readonly woken: Woken | undefined
}

export interface Woken {
  /** When its first item was added. */
  readonly firstMs: number
  /** The turn of its limit that is called; 0: none. */
  readonly turn: number
}

/** How far a job is. */
export interface JobRecord {
  readonly status: JobStatus
  /** Attempts that have failed. */
  readonly failures: number
  /** Hosts that were lost under it. */
  readonly hostsLost: number
  /** At which age of its item it may run; of a schedule when it is due, in ms since 1970. */
  readonly dueMs: number
  /**
   * At which age of its item a host first lacked the function; 0: none has. Of a schedule the time of the
   * last job that it has added.
   */
  readonly missingMs: number
  /** When its item was added; a key that was forgotten and submitted again has another one. */
  readonly addedMs: number
  /** Which call has cancelled it: of several at once one has. */
  readonly by?: string
  /** A frame of what the function has reported last. */
  readonly progress: Uint8Array | undefined
  /** A frame of what it has returned, or the reference to a large one (large.ts). */
  readonly value: Carried | undefined
  /** Frames of the last errors, the latest last. */
  readonly errors: readonly Uint8Array[]
}

/** The record of a job that nothing is known of. */
export const FRESH: JobRecord = {
  status: 'waiting',
  failures: 0,
  hostsLost: 0,
  dueMs: 0,
  missingMs: 0,
  addedMs: 0,
  progress: undefined,
  value: undefined,
  errors: [],
}

/** What of a message belongs to a job's record and not to its arguments or its value. */
export const RECORD_BYTES = 65_536
/** Most errors that are kept of a job. */
export const ERRORS_MAX = 10

/** Whoever has submitted an item that cannot be read. */
export const NOBODY = {
  origin: '_',
  submission: 0,
  trace: undefined,
  woken: undefined,
  args: new Uint8Array(),
}
/** It becomes a part of a subject. */
const ORIGIN = /^[\w-]{1,64}$/
const ENDS: ReadonlySet<unknown> = new Set(['done', 'dead', 'cancelled'])
const STATUSES: ReadonlySet<unknown> = new Set([...ENDS, 'waiting', 'running', 'scheduled'])

/** A record that nothing changes any more. */
export type EndedRecord = JobRecord & { readonly status: 'done' | 'dead' | 'cancelled' }

export const hasEnded = (record: JobRecord | undefined): record is EndedRecord =>
  record !== undefined && ENDS.has(record.status)

/** Whether it is the end of a job: one that replaces another has no end but its own. */
export const isEndOf = (
  record: JobRecord | undefined,
  identity: number | undefined,
  job: Pick<Job, 'replaces'> | undefined,
): record is EndedRecord => hasEnded(record) && (job?.replaces !== true || record.addedMs === identity)

export const writeJob = (job: Job): Uint8Array => {
  const { name, args, rank, limits, repeat, trace, origin, submission, limit, woken, after, replaces } = job
  const more = [limit, woken, after, replaces]
  return written('job', name, args, rank, limits, repeat, trace, origin, submission, ...more)
}

/** Whether two jobs, as they were read, are the same, whoever has submitted them. */
export function isSame(one: Job, other: Job): boolean {
  const [bytes, others] = [one, other].map((job) =>
    writeJob({ ...job, ...NOBODY, args: contentOf(job.args) }),
  )
  return Buffer.compare(bytes, others) === 0
}

export function readJob(bytes: Uint8Array): Job | undefined {
  const [kind, ...parts] = readParts(bytes) ?? []
  const [name, args, rank, limits, repeat, trace, origin, submission, ...others] = parts as [
    string,
    Carried,
    Rank,
    JobLimits,
    Repeat | undefined,
    unknown,
    string,
    number,
    ...unknown[],
  ]
  const [limit, woken, after, replaces] = others as [
    JobLimit | undefined,
    Woken | undefined,
    readonly string[] | undefined,
    unknown,
  ]
  const isWhole = kind === 'job' && typeof name === 'string' && isCarried(args) && RANKS.includes(rank)
  if (!isWhole || !areLimits(limits) || (repeat !== undefined && !isRepeat(repeat))) return undefined
  if (typeof origin !== 'string' || !ORIGIN.test(origin) || !isCount(submission)) return undefined
  if ((limit !== undefined && !isJobLimit(limit)) || (woken !== undefined && !isWoken(woken)))
    return undefined
  if (after !== undefined && !isAfter(after)) return undefined
  const more = { trace: readTrace(trace), limit, woken, after, replaces: replaces === true }
  return { name, args, rank, limits, repeat, origin, submission, ...more }
}

function isWoken(woken: unknown): boolean {
  const { firstMs, turn } = Object(woken) as Woken
  return Number.isFinite(firstMs) && isCount(turn)
}

export const writeRecord = (record: JobRecord): Uint8Array => written('record', record)

export function readRecord(bytes: Uint8Array | undefined): JobRecord | undefined {
  const [kind, record] = (bytes && readParts(bytes)) ?? []
  return kind === 'record' && isRecord(record) ? writable(record) : undefined
}

/** Its frames are parts of a message. */
function writable<Read extends JobRecord>(record: Read): Read {
  const { progress, value, errors } = record
  return {
    ...record,
    progress: progress && framed(progress),
    value: value instanceof Uint8Array ? framed(value) : value,
    errors: errors.map(framed),
  }
}

function isRecord(value: unknown): value is JobRecord {
  const record = Object(value) as JobRecord
  const { status, failures, hostsLost, dueMs, missingMs, addedMs, progress, errors } = record
  const numbers = [failures, hostsLost, dueMs, missingMs, addedMs]
  return (
    STATUSES.has(status) &&
    numbers.every((number) => Number.isFinite(number) && number >= 0) &&
    (progress === undefined || isFrame(progress)) &&
    (status === 'done' ? isCarried(record.value) : record.value === undefined) &&
    Array.isArray(errors) &&
    errors.length <= ERRORS_MAX &&
    errors.every(isFrame)
  )
}

/** An end, as it is reported to whoever has submitted the job. */
export interface Ended {
  readonly key: string
  readonly record: EndedRecord
}

/** Report an end, to whoever has submitted the job and to all that wait. Without messages they watch. */
export function sendEnd(
  { messages }: Engine,
  zone: string,
  { origin, submission }: Pick<Job, 'origin' | 'submission'>,
  { key, record }: Ended,
): void {
  if (messages === undefined) return
  messages.send(originSubject(zone, origin), written('end', key, record, submission))
  messages.send(endSubject(zone, key), written('end'))
}

export function readEnd(bytes: Uint8Array): (Ended & { readonly submission: number }) | undefined {
  const [kind, key, record, submission] = readParts(bytes) ?? []
  const isWhole = kind === 'end' && typeof key === 'string' && isRecord(record) && hasEnded(record)
  return isWhole && isCount(submission) ? { key, record, submission } : undefined
}

const isFrame = (value: unknown): value is Uint8Array => value instanceof Uint8Array

const REFERENCE = /^\d{1,15}\.[\w-]{0,64}\.[\w-]{1,64}$/
const isCarried = (value: unknown): value is Carried =>
  typeof value === 'string' ? REFERENCE.test(value) : isFrame(value)

/** What two references have in common whose bytes are the same. */
const contentOf = (carried: Carried): Carried =>
  typeof carried === 'string' ? carried.slice(0, carried.lastIndexOf('.')) : carried

/** A dead letter: a job that has failed for good, and what it failed with. */
export interface Letter {
  readonly job: Uint8Array
  readonly record: JobRecord
}

export const writeLetter = ({ job, record }: Letter): Uint8Array => written('letter', job, record)

export function readLetter(bytes: Uint8Array | undefined): Letter | undefined {
  const [kind, job, record] = (bytes && readParts(bytes)) ?? []
  return kind === 'letter' && isFrame(job) && isRecord(record) ? { job, record: writable(record) } : undefined
}

/** The queue, the records and the dead letters of a zone's jobs. */
export const queueName = (zone: string): string => `jobs_${zone}`
/** The zone whose jobs a queue has; `undefined` for another queue. */
export const zoneOfQueue = (queue: string): string | undefined => /^jobs_(.+)$/.exec(queue)?.[1]
export const recordsName = (zone: string): string => `jobs_${zone}`
export const lettersName = (zone: string): string => `dead_${zone}`
/** What is large of a zone's jobs (large.ts): what there is, and its parts. */
export const largeName = (zone: string): string => `large_${zone}`
export const partsName = (zone: string): string => `parts_${zone}`
/** The limits of a zone's jobs, and whose turn it is. */
export const limitsName = (zone: string): string => `limits_${zone}`
/** Where hosts receive that a job is cancelled. */
export const cancelSubject = (zone: string): string => `corespun.jobs.${zone}`
/** Where a connection receives the ends of the jobs that it has submitted. */
export const originSubject = (zone: string, origin: string): string => `corespun.ends.${zone}.${origin}`
/** Where others are notified that a job has ended. */
export const endSubject = (zone: string, key: string): string =>
  `corespun.job.${zone}.${Buffer.from(key).toString('base64url')}`
/** That of all jobs. */
export const anyEndSubject = (zone: string): string => `corespun.job.${zone}.*`
/** Both, of all jobs. */
export const endSubjects = (zone: string): string[] => [originSubject(zone, '*'), anyEndSubject(zone)]
