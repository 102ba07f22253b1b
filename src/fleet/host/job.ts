/**
 * Runs jobs in the host's zone, waits for a zone that is full, and receives what jobs report.
 *
 * Reports go over a channel of the process and not over the call: a call that is a stream costs
 * several times one that is not, and most jobs report nothing.
 */
import { BroadcastChannel, threadId } from 'node:worker_threads'
import { ZoneError } from '../../zone/index.ts'
import type { RemoteZone } from '../../zone/internal.ts'
import type { JobOutcome, JobTask } from '../jobs/attempt.ts'
import { REPORTS, type JobFacts } from './current.ts'
import type { Polling } from './polling.ts'
import { inTrace } from './running.ts'
import { type Outcome, type Target, errorFrame } from './task.ts'

const JOB = { module: new URL('./task.js', import.meta.url), name: 'job' }
let runs = 0

export class JobRunner {
  readonly #zone: RemoteZone
  readonly #target: Omit<Target, 'name'>
  readonly #polling: Polling
  readonly #running = new Map<string, JobTask>()
  readonly #reports = new BroadcastChannel(REPORTS).unref()

  constructor(zone: RemoteZone, target: Omit<Target, 'name'>, polling: Polling) {
    this.#zone = zone
    this.#polling = polling
    this.#target = target
    this.#reports.addEventListener('message', (event) => {
      const [run, frame] = (event as unknown as { data: [string, Uint8Array] }).data
      this.#running.get(run)?.progress(frame)
    })
    this.#reports.unref()
  }

  /** Never rejects. */
  async run(job: JobTask): Promise<JobOutcome> {
    const { key, attempt, name, args, timeoutMs, signal, trace } = job
    const facts: JobFacts = { key, attempt, run: `${threadId}.${++runs}`, trace }
    const task: Target = { ...this.#target, name }
    this.#running.set(facts.run, job)
    try {
      for (;;) {
        try {
          // Attempts have its baggage, and no parent: what has submitted the job is long over.
          const around = trace?.baggage === undefined ? undefined : { baggage: trace.baggage }
          return await inTrace(around, () => this.#called([task, args, facts], timeoutMs, signal))
        } catch (error) {
          if (!(error instanceof ZoneError) || error.code !== 'ZONE_FULL') throw error
        }
        await this.#zone.ready({ signal })
      }
    } catch (error) {
      return [true, errorFrame(error)]
    } finally {
      this.#running.delete(facts.run)
    }
  }

  #called(given: unknown[], timeoutMs: number | undefined, signal: AbortSignal): Promise<Outcome> {
    const begunMs = this.#polling.begun()
    const called = new Promise<Outcome>((resolve, reject) => {
      const limits = { timeoutMs, signal, order: undefined }
      this.#zone.begin(JOB, given, (outcome) => resolve(outcome as Outcome), reject, limits)
    })
    return called.finally(() => this.#polling.ended(begunMs))
  }

  close(): void {
    this.#reports.close()
  }
}
