/**
 * Runs jobs in the host's zone, waits for a zone that is full, and receives what jobs report.
 *
 * Reports go over a channel of the process and not over the call: a call that is a stream costs
 * several times one that is not, and most jobs report nothing. So do announcements that a job begins, of one
 * that may have to wait for the zone: its time counts from then on. A job that asks whether its host leaves
 * has a reply when it does, and another one when the job ends.
 */
import { BroadcastChannel, threadId } from 'node:worker_threads'
import { ZoneError } from '../../zone/index.ts'
import type { RemoteZone } from '../../zone/internal.ts'
import { CLOCK, type End } from '../engine/engine.ts'
import type { JobOutcome, JobTask } from '../jobs/attempt.ts'
import { isOutside } from './capacity.ts'
import { LEAVING, REPORTS, type JobFacts } from '../worker/current.ts'
import { inTrace } from './running.ts'
import { type Outcome, type Target, errorFrame, ofZone } from '../worker/task.ts'

const JOB = { module: new URL('../worker/task.js', import.meta.url), name: 'job' }
let runs = 0

/** A job at the zone. */
interface Run {
  readonly job: JobTask
  /** It begins. */
  begun: () => void
  /** It has asked whether its host leaves, and has no reply. */
  isAsking: boolean
}

export class JobRunner {
  readonly #zone: RemoteZone
  readonly #target: Omit<Target, 'name'>
  readonly #running = new Map<string, Run>()
  readonly #reports = new BroadcastChannel(REPORTS).unref()
  #leavings: BroadcastChannel | undefined
  #isLeaving = false

  constructor(zone: RemoteZone, target: Omit<Target, 'name'>) {
    this.#zone = zone
    this.#target = target
    this.#reports.addEventListener('message', (event) => {
      const [run, report] = (event as unknown as { data: [string, Uint8Array | true | undefined] }).data
      const running = this.#running.get(run)
      if (report === undefined) running?.begun()
      else if (report !== true) running?.job.progress(report)
      else if (running !== undefined) {
        running.isAsking = true
        if (this.#isLeaving) this.#reply(run, running)
      }
    })
    this.#reports.unref()
  }

  /** How many jobs the zone has. */
  get size(): number {
    return this.#running.size
  }

  /** Jobs that have asked are notified. */
  leave(): void {
    this.#isLeaving = true
    for (const [run, running] of this.#running) this.#reply(run, running)
  }

  #reply(run: string, running: Run): void {
    if (!running.isAsking) return
    running.isAsking = false
    this.#leavings ??= new BroadcastChannel(LEAVING).unref()
    this.#leavings.postMessage([run, this.#isLeaving])
  }

  /** Never rejects. */
  async run(job: JobTask): Promise<JobOutcome> {
    const { key, attempt, name, args, signal, trace, ended } = job
    const isAnnounced = job.begun !== undefined && !isOutside(this.#zone)
    const facts: JobFacts = { key, attempt, run: `${threadId}.${++runs}`, trace, isAnnounced, ended }
    const task: Target = { ...this.#target, name }
    const running: Run = { job, begun: () => job.begun?.(), isAsking: false }
    this.#running.set(facts.run, running)
    if (!isAnnounced) running.begun()
    try {
      for (;;) {
        try {
          // Attempts have its baggage, and no parent: what has submitted the job is long over.
          const around = trace?.baggage === undefined ? undefined : { baggage: trace.baggage }
          return await inTrace(around, () => this.#called([task, args, facts], running))
        } catch (error) {
          if (!(error instanceof ZoneError) || error.code !== 'ZONE_FULL') throw error
        }
        await this.#zone.ready({ signal })
      }
    } catch (error) {
      return [true, errorFrame(ofZone(error, this.#target.zone))]
    } finally {
      this.#running.delete(facts.run)
      this.#reply(facts.run, running)
    }
  }

  #called(given: [Target, Uint8Array, JobFacts], running: Run): Promise<Outcome> {
    const { timeoutMs, signal } = running.job
    const { isAnnounced } = given[2]
    let endTimer: End = () => {}
    const called = new Promise<Outcome>((resolve, reject) => {
      const limits = { timeoutMs: isAnnounced ? undefined : timeoutMs, signal, order: undefined }
      const stop = this.#zone.begin(JOB, given, (outcome) => resolve(outcome as Outcome), reject, limits)
      if (!isAnnounced) return
      running.begun = () => {
        running.job.begun?.()
        if (timeoutMs === undefined) return
        endTimer = CLOCK.after(timeoutMs, () => {
          const late = new ZoneError('TASK_TIMEOUT', { zone: this.#zone.id, timeoutMs, started: true })
          stop(new DOMException(`The job did not end within ${timeoutMs} ms`, 'TimeoutError'))
          reject(late)
        })
      }
    })
    return isAnnounced ? called.finally(() => endTimer()) : called
  }

  close(): void {
    this.#reports.close()
    this.#leavings?.close()
  }
}
