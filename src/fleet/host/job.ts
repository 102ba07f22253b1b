/**
 * Runs jobs in the host's zone, waits for a zone that is full, and receives what jobs report.
 *
 * Reports go over a channel of the process and not over the call: a call that is a stream costs
 * several times one that is not, and most jobs report nothing.
 */
import { BroadcastChannel, threadId } from 'node:worker_threads'
import { type AnyZone, ZoneError } from '../../zone/index.ts'
import type { JobOutcome, JobTask } from '../jobs/attempt.ts'
import { REPORTS, type JobFacts } from './current.ts'
import { inTrace } from './running.ts'
import { type Outcome, type Target, errorFrame } from './task.ts'

const TASK = new URL('./task.js', import.meta.url)
let runs = 0

export class JobRunner {
  readonly #zone: AnyZone
  readonly #target: Omit<Target, 'name'>
  readonly #running = new Map<string, JobTask>()
  readonly #reports = new BroadcastChannel(REPORTS).unref()

  constructor(zone: AnyZone, target: Omit<Target, 'name'>) {
    this.#zone = zone
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
          const limits = { timeoutMs, signal }
          const execute = async (): Promise<unknown> =>
            (await this.#zone.execute(TASK, 'job', [task, args, facts], limits)).value
          // Attempts have its baggage, and no parent: what has submitted the job is long over.
          return (await inTrace(
            trace?.baggage === undefined ? undefined : { baggage: trace.baggage },
            execute,
          )) as Outcome
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

  close(): void {
    this.#reports.close()
  }
}
