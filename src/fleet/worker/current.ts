/**
 * What a function can read about the job that it runs as: its key and its attempt; and where it reports.
 *
 * The key is what makes side effects idempotent: it is the same in each attempt, on each host.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { BroadcastChannel } from 'node:worker_threads'
import { decode, encode } from '../../transport/index.ts'
import type { TraceContext } from '../../zone/index.ts'
import { checkSize } from '../errors.ts'
import type { EndState } from '../job-settings.ts'

const jobs = new AsyncLocalStorage<CurrentJob>()
const PROGRESS_BYTES_MAX = 4096
/** Reports leave a worker so often at most: the thread that receives them extends the leases too. */
const REPORT_MS = 20
/** Between the workers of this process, which report, and its hosts. */
export const REPORTS = 'corespun.jobs'
let reports: BroadcastChannel | undefined
/** Between the hosts of this process and the workers whose jobs have asked: that a host leaves. */
export const LEAVING = 'corespun.jobs.leaving'
let leavings: BroadcastChannel | undefined
/** The controllers of runs that have asked, until their host leaves or they end. */
const asked = new Map<string, AbortController>()

/** The frame is that of its value, or of its last error. */
export type EndedFrame = readonly [key: string, status: EndedJob['status'], frame: Uint8Array | undefined]

/** A job that another one has waited for. `currentJob().ended` has them. */
export interface EndedJob {
  /** As it was submitted. */
  readonly key: string
  /** How it has ended; `unknown`: it was forgotten, or the time of its result was over. */
  readonly status: EndState | 'unknown'
  /** What it has returned, if it is `done`. */
  readonly value: unknown
  /** Its last error, if it is `dead`. */
  readonly error: unknown
}

/** Which job it is. */
export interface JobFacts {
  readonly key: string
  readonly attempt: number
  /** The id of this run, unique in the process. */
  readonly run: string
  /** In which it was submitted. */
  readonly trace: TraceContext | undefined
  /** It may begin later than its host passes it on, and reports that. */
  readonly isAnnounced: boolean
  /** Those that it has waited for. */
  readonly ended: readonly EndedFrame[] | undefined
  /** Its host, if that is in this thread: in a run of `corespun/test`. */
  readonly host?: { progress(frame: Uint8Array): void; readonly leaving: AbortSignal }
}

/**
 * The job that runs. {@link currentJob} returns it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type CurrentJob, currentJob } from 'corespun/fleet'
 *
 * export function pay(invoice: number): string {
 *   const job: CurrentJob | undefined = currentJob()
 *   job?.progress(0.5)
 *   return `paid ${invoice} as ${job?.key ?? 'a call'}`
 * }
 * assert.equal(pay(7), 'paid 7 as a call')
 * ```
 */
export class CurrentJob {
  /** As it was submitted; of a schedule with its time behind it. */
  readonly key: string
  /** From 1: failures and lost hosts before it, plus one. */
  readonly attempt: number
  /** The trace that the submitting code was part of: a cause, and not what the attempts are part of. */
  readonly trace: TraceContext | undefined
  readonly #run: string
  readonly #ended: readonly EndedFrame[]
  readonly #host: JobFacts['host']
  #leaving: AbortSignal | undefined
  #report: Uint8Array | undefined
  #sentMs = -Infinity
  #later: NodeJS.Timeout | undefined

  /** @internal */
  constructor({ key, attempt, run, trace, ended = [], host }: JobFacts) {
    this.#ended = ended
    this.#host = host
    this.trace = trace
    this.key = key
    this.attempt = attempt
    this.#run = run
  }

  /**
   * Report how far it is, as any value that can travel: `jobs.watch()` and `jobs.get(key)` have it. Reports
   * that follow each other soon are one. From a zone with `isolation: 'process'` none arrives.
   * @throws {FleetError} `FLEET_TOO_LARGE` for more than 4096 bytes.
   * @throws {TransportError} For what cannot be encoded.
   */
  progress(value: unknown): void {
    const frame = encode(value)
    checkSize(frame.length, PROGRESS_BYTES_MAX, 'progress')
    if (this.#host !== undefined) return this.#host.progress(frame)
    this.#report = frame
    if (performance.now() - this.#sentMs >= REPORT_MS) return this.#send()
    this.#later ??= setTimeout(() => this.#send(), REPORT_MS).unref()
  }

  /**
   * Aborted when the host begins to close: the job may go on for the time of its drain, and should store how
   * far it is, or fail, to go on elsewhere. From a zone with `isolation: 'process'` it is never aborted.
   */
  get leaving(): AbortSignal {
    return (this.#leaving ??= this.#host?.leaving ?? ask(this.#run))
  }

  /**
   * The jobs of the option `after`, in their order, however they have ended; a job without it has waited for
   * nobody. They are read anew each time.
   * @throws {TransportError} For what cannot be read here, as a value of a class that is not registered.
   */
  get ended(): readonly EndedJob[] {
    return this.#ended.map(([key, status, frame]) => {
      const read: unknown = frame === undefined ? undefined : decode(frame)
      return {
        key,
        status,
        value: status === 'done' ? read : undefined,
        error: status === 'done' ? undefined : read,
      }
    })
  }

  #send(): void {
    clearTimeout(this.#later)
    this.#later = undefined
    this.#sentMs = performance.now()
    post(this.#run, this.#report)
  }
}

/** The host replies, now or later. */
function ask(run: string): AbortSignal {
  if (leavings === undefined) {
    leavings = new BroadcastChannel(LEAVING)
    leavings.addEventListener('message', (event) => {
      const [of, isLeaving] = (event as unknown as { data: [string, boolean] }).data
      const why = new DOMException('The host of the job is closing', 'AbortError')
      if (isLeaving) asked.get(of)?.abort(why)
      asked.delete(of)
    })
    leavings.unref()
  }
  const controller = new AbortController()
  asked.set(run, controller)
  post(run, true)
  return controller.signal
}

/** @param report `undefined`: it begins; true: it asks whether its host leaves. */
function post(run: string, report: Uint8Array | true | undefined): void {
  reports ??= new BroadcastChannel(REPORTS).unref()
  reports.postMessage([run, report])
}

/** Report to the host that a job has begun. */
export const announce = ({ run }: JobFacts): void => post(run, undefined)

/**
 * The job that the calling function runs as; `undefined` when it was called in another way.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { currentJob } from 'corespun/fleet'
 *
 * assert.equal(currentJob(), undefined)
 * ```
 */
export const currentJob = (): CurrentJob | undefined => jobs.getStore()

/** Run `work` as a job. */
export const asJob = <Value>(job: CurrentJob, work: () => Value): Value => jobs.run(job, work)
