/**
 * The options of jobs, checked once and complete from then on.
 *
 * Limits and schedules travel in jobs too, so what another process has written is checked by the same kinds.
 */
import {
  type Kind,
  TIMER_MS_MAX,
  abortSignal,
  anything,
  flag,
  integer,
  milliseconds,
  oneOf,
  optionsOf,
  text,
} from '../base/index.ts'
import { wrong } from './errors.ts'
import { DAY_MS, FAR_KINDS, checkKey } from './settings.ts'

/** Most of the jobs of a rate: the times of so many are kept. */
export const RATE_JOBS_MAX = 1000

/** Most jobs that another one waits for. */
const AFTER_MAX = 10_000

/** Where a job is; the last three are ends. */
export type JobStatus = 'waiting' | 'running' | 'scheduled' | 'done' | 'dead' | 'cancelled'

/** What is done about an attempt of a job that fails. */
export interface RetryOptions {
  /** Most attempts that fail; then the job is a dead letter. Default 3. */
  readonly attemptsMax?: number
  /** The pause after the first failure, in ms; each further one is twice as long. Default 1000. */
  readonly backoffMs?: number
  /** Longest pause, in ms. Pauses are a half to the whole of their length. Default 60,000. */
  readonly backoffMsMax?: number
  /** Most hosts that may be lost while they run the job; then it is a dead letter. Default 3. */
  readonly hostsLostMax?: number
  /**
   * How long hosts whose module has no such function return it without counting that, as during a rollout, in
   * ms; then it fails as others do. 0: a misspelt name fails at once. Default 300,000.
   */
  readonly missingMs?: number | undefined
}

/** What runs SQL within a transaction of a caller: a client of the package pg, or what has its `query`. */
export interface SqlClient {
  /** Run a statement with its parameters, `$1` and so on. */
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** When a job repeats: `everyMs` or `cron`. */
export interface ScheduleOptions {
  /** The interval in ms, from 1000, counted from when it was submitted. */
  readonly everyMs?: number | undefined
  /** As `0 3 * * *`; needs the package croner, here and at the hosts. */
  readonly cron?: string | undefined
  /** The time zone of `cron`, by its IANA name. Default `UTC`. */
  readonly timeZone?: string
  /**
   * Whether it adds a job while the one before waits or runs. False: that time is left out. `queue`: one job
   * waits for that one, and further times are left out. `cancel`: that one is cancelled. Default true.
   */
  readonly overlaps?: boolean | 'queue' | 'cancel'
}

/** How many jobs run at once, and how many begin in a span, on all hosts together. */
export interface JobLimitOptions {
  /** Whose limit it is, as a tenant's. Default: that of all jobs whose limit has no `per`. */
  readonly per?: string | undefined
  /** Most that run at once, 1 to 1000. Default: no limit. */
  readonly concurrency?: number | undefined
  /** Most attempts that begin in any span of `perMs`: 1 to 1000, and 100 ms to a day. Default: no limit. */
  readonly rate?: { readonly jobs: number; readonly perMs: number } | undefined
}

/** How a job is run. */
export interface JobOptions {
  /** Default: three attempts. */
  readonly retry?: RetryOptions
  /** Earliest begin, in ms after it was submitted. Default 0. */
  readonly delayMs?: number
  /** It adds a job, whose key is `<key>@<time in UTC>`, each time it is due. Default: it runs once. */
  readonly schedule?: ScheduleOptions | undefined
  /** Which waiting jobs begin first. Default `normal`. */
  readonly priority?: 'high' | 'normal' | 'low'
  /**
   * It is run instead of the job that its key has: one that waits never begins, the signal of one that runs
   * is aborted and its value dropped, and a result that is kept is forgotten. With `delayMs` that is a
   * debounce. Default false.
   */
  readonly replace?: boolean
  /** What it waits for beside a host. Pass the same one for all jobs of a `per`. Default: no limit. */
  readonly limit?: JobLimitOptions | undefined
  /**
   * Keys of jobs of this zone, which have to be submitted before: it begins when all of them have ended,
   * however that is, and `currentJob().ended` has their values and errors. At most 10,000. Default: none.
   */
  readonly after?: readonly string[] | undefined
  /** Longest time of an attempt, in ms; then it fails with `TASK_TIMEOUT`. Default: no limit. */
  readonly timeoutMs?: number | undefined
  /** How long its result and its key are kept, from 1000 ms, and two leases at least. Default: a day. */
  readonly ttlMs?: number
  /**
   * A client of the package pg within a transaction, over `postgres:` alone: the job is added in it, so it is
   * there when that is committed, and never if it is not. The client's database must be that of the fleet.
   * What the client throws is thrown as it is. Jobs of `after` are those of other transactions. Not with
   * `schedule` or `replace`. Default: a transaction of its own.
   */
  readonly client?: SqlClient | undefined
}

/** The longest span of a job: a year. */
const YEAR_MS = 365 * DAY_MS
const RETRY_KINDS = {
  attemptsMax: integer(1, 1000, 3),
  backoffMs: milliseconds(YEAR_MS, 1000),
  backoffMsMax: milliseconds(YEAR_MS, 60_000),
  hostsLostMax: integer(0, 1000, 3),
  missingMs: milliseconds<number | undefined>(YEAR_MS, undefined),
}
const OVERLAPS = [true, false, 'queue', 'cancel'] as const
const OVERLAPS_KIND: Kind<(typeof OVERLAPS)[number]> = {
  expected: "true, false, 'queue' or 'cancel'",
  accepts: (value) => OVERLAPS.some((each) => each === value),
  default: true,
}
const SCHEDULE_KINDS = {
  everyMs: integer<number | undefined>(1000, YEAR_MS, undefined),
  cron: text<string | undefined>(undefined),
  timeZone: text('UTC'),
  overlaps: OVERLAPS_KIND,
}
const LIMIT_OPTION_KINDS = {
  per: text<string | undefined>(undefined),
  concurrency: integer<number | undefined>(1, 1000, undefined),
  rate: anything,
}
const RATE_KINDS = {
  jobs: integer<number | undefined>(1, RATE_JOBS_MAX, undefined),
  perMs: integer<number | undefined>(100, DAY_MS, undefined),
}
const CLIENT_KIND: Kind<SqlClient | undefined> = {
  expected: 'a client with query(text, values), in a transaction',
  accepts: (value) => typeof (Object(value) as { readonly query?: unknown }).query === 'function',
  default: undefined,
}
const JOB_KINDS = {
  retry: anything,
  limit: anything,
  after: anything,
  replace: flag(false),
  delayMs: milliseconds(YEAR_MS, 0),
  schedule: anything,
  priority: oneOf(['high', 'normal', 'low'], 'normal'),
  timeoutMs: FAR_KINDS.timeoutMs,
  ttlMs: integer(1000, YEAR_MS, DAY_MS),
  client: CLIENT_KIND,
}

const { missingMs: MISSING_KIND, ...OTHER_RETRY_KINDS } = RETRY_KINDS
/** A list, since each job that is read is compared with it. */
const LIMIT_KINDS = Object.entries({
  ...OTHER_RETRY_KINDS,
  delayMs: JOB_KINDS.delayMs,
  ttlMs: JOB_KINDS.ttlMs,
  timeoutMs: milliseconds(TIMER_MS_MAX, 0),
})

/** Whether these are complete limits of a job, as another process has written them. */
export function areLimits(limits: unknown): boolean {
  const given = Object(limits) as Record<string, unknown>
  // Absent in jobs that have the default.
  const isMissingMs = given['missingMs'] === undefined || MISSING_KIND.accepts(given['missingMs'])
  return isMissingMs && LIMIT_KINDS.every(([name, kind]) => kind.accepts(given[name]))
}

/** Whether this is a schedule of a job, as another process has written it. */
export function isRepeat(repeat: unknown): boolean {
  const { everyMs, cron, timeZone, overlaps = true } = Object(repeat) as Record<string, unknown>
  const isDue = everyMs === 0 ? SCHEDULE_KINDS.cron.accepts(cron) : SCHEDULE_KINDS.everyMs.accepts(everyMs)
  return isDue && SCHEDULE_KINDS.timeZone.accepts(timeZone) && SCHEDULE_KINDS.overlaps.accepts(overlaps)
}

/** Whether this is a limit of a job, as another process has written it. */
export function isJobLimit(limit: unknown): boolean {
  const { per, concurrency, jobs, perMs } = Object(limit) as Record<string, unknown>
  const isRated = RATE_KINDS.jobs.accepts(jobs) && RATE_KINDS.perMs.accepts(perMs)
  const isNone = jobs === 0 && perMs === 0
  const isCounted = LIMIT_OPTION_KINDS.concurrency.accepts(concurrency)
  return typeof per === 'string' && (isRated || isNone) && (isCounted || (concurrency === 0 && isRated))
}

/** Whether these are keys of jobs that another one waits for, as another process has written them. */
export const isAfter = (keys: unknown): keys is readonly string[] =>
  Array.isArray(keys) && keys.length <= AFTER_MAX && keys.every((key) => typeof key === 'string')

/** @throws {FleetError} `FLEET_ARGUMENT`. */
function afterOf(call: string, keys: unknown): readonly string[] | undefined {
  if (keys === undefined) return undefined
  if (!isAfter(keys) || keys.length === 0) throw wrong(`${call}: after`, `1 to ${AFTER_MAX} keys`, keys)
  for (const key of keys) checkKey(`${call}: after`, key)
  return [...new Set(keys)]
}

/** A limit, complete. @throws {FleetError} `FLEET_ARGUMENT`. */
function limitOf(call: string, limit: unknown) {
  if (limit === undefined) return undefined
  const { per, concurrency, rate } = optionsOf(limit, LIMIT_OPTION_KINDS, wrong, call, 'limit')
  if (per !== undefined) checkKey(`${call}: limit.per`, per)
  const rated = optionsOf(rate, RATE_KINDS, wrong, call, 'limit.rate')
  const { jobs = 0, perMs = 0 } = rated
  if (rate !== undefined && (jobs === 0 || perMs === 0))
    throw wrong(`${call}: limit.rate`, '{ jobs, perMs }', rate)
  if (concurrency === undefined && rate === undefined)
    throw wrong(`${call}: limit`, 'concurrency, rate or both', limit)
  return { per: per ?? '', concurrency: concurrency ?? 0, jobs, perMs }
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function jobOptions(options: unknown) {
  const call = 'jobs.submit()'
  const { retry, schedule, limit: asked, after: keys, ...own } = optionsOf(options, JOB_KINDS, wrong, call)
  const [limit, after] = [limitOf(call, asked), afterOf(call, keys)]
  if (after !== undefined && schedule !== undefined)
    throw wrong(`${call}: after`, 'a job without a schedule', 'both')
  if (own.replace && schedule !== undefined)
    throw wrong(`${call}: replace`, 'left out with schedule, which always replaces another one', true)
  const repeat =
    schedule === undefined ? undefined : optionsOf(schedule, SCHEDULE_KINDS, wrong, call, 'schedule')
  if (repeat !== undefined && (repeat.everyMs === undefined) === (repeat.cron === undefined))
    throw wrong(`${call}: schedule`, 'everyMs or cron', schedule)
  if (own.replace && own.client !== undefined)
    throw wrong(`${call}: client`, 'left out with replace, which ends another job', 'both')
  if (repeat !== undefined && own.client !== undefined)
    throw wrong(`${call}: client`, 'left out with schedule, which may replace another one', 'both')
  const { missingMs, ...retries } = optionsOf(retry, RETRY_KINDS, wrong, call, 'retry')
  return {
    ...own,
    repeat,
    limit,
    after,
    retry: { ...retries, ...(missingMs !== undefined && { missingMs }) },
  }
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const resultOptions = (options: unknown) => optionsOf(options, FAR_KINDS, wrong, 'jobs.result()')
/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const deadOptions = (options: unknown) =>
  optionsOf(options, { jobsMax: integer(1, 1_000_000, 1000) }, wrong, 'jobs.dead()')

/** Which jobs are listed. */
export interface JobListOptions {
  /** Where they are. Default: all. */
  readonly state?: JobStatus | undefined
  /** `next` of the page before, of the same `state`. Default: from the first one. */
  readonly after?: string | undefined
  /** Most jobs of the page, 1 to 1000. Default 100. */
  readonly jobsMax?: number
  /** Aborting it rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** How many jobs a call is for. */
export interface JobBulkOptions {
  /** After so many it ends. Default: all that there are when it begins. */
  readonly jobsMax?: number | undefined
  /** Aborting it rejects with the signal's reason; what is done by then stays done. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** How many jobs are submitted. */
export interface SubmitManyOptions {
  /** Aborting it rejects with the signal's reason; what was added by then stays. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function submitManyOptions(jobs: unknown, options: unknown) {
  const call = 'jobs.submitMany()'
  const { [Symbol.iterator]: one, [Symbol.asyncIterator]: other } = Object(jobs) as Partial<
    Iterable<unknown> & AsyncIterable<unknown>
  >
  if (typeof jobs !== 'object' || (one ?? other) === undefined)
    throw wrong(`${call}: jobs`, 'an iterable of { key, name, args, options }', jobs)
  return optionsOf(options, { signal: abortSignal }, wrong, call)
}

const STATES = ['waiting', 'running', 'scheduled', 'done', 'dead', 'cancelled'] as const
/** The ends of a job. */
export type EndState = 'done' | 'dead' | 'cancelled'
/** Of one that has not ended. */
export type LiveState = 'waiting' | 'running' | 'scheduled'

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const listOptions = (options: unknown) =>
  optionsOf(
    options,
    {
      state: oneOf<JobStatus, undefined>(STATES, undefined),
      after: text<string | undefined>(undefined),
      jobsMax: integer(1, 1000, 100),
      signal: abortSignal,
    },
    wrong,
    'jobs.list()',
  )

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const bulkOptions = (call: string, options: unknown) =>
  optionsOf(
    options,
    { jobsMax: integer<number | undefined>(1, 2 ** 31, undefined), signal: abortSignal },
    wrong,
    call,
  )

const END_STATES = ['done', 'dead', 'cancelled'] as const
const LIVE_STATES = ['waiting', 'running', 'scheduled'] as const

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const endState = (call: string, state: unknown): EndState => stateOf(call, END_STATES, state)
/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const liveState = (call: string, state: unknown): LiveState => stateOf(call, LIVE_STATES, state)

function stateOf<State extends string>(call: string, states: readonly State[], state: unknown): State {
  const known = states.find((each) => each === state)
  if (known !== undefined) return known
  const [first, second, third] = states
  throw wrong(`${call}: the state`, `'${first}', '${second}' or '${third}'`, state)
}
