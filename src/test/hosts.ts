/**
 * Hosts of jobs in a run: they take jobs of the fleet of the run, and die with their task.
 *
 * What takes, extends and ends a job is that of hosts outside; only a function is called in this thread, as a
 * task of its own.
 */
import { integer, optionsOf } from '../base/index.ts'
import {
  CurrentJob,
  type Fleet,
  type JobOutcome,
  type JobTask,
  NonRetryableError,
  asJob,
  errorFrame,
} from '../fleet/internal.ts'
import { decode, encode } from '../transport/index.ts'
import { ZoneError } from '../zone/index.ts'
import { wrong } from './errors.ts'
import type { FleetParts } from './network.ts'
import { type Actor, type Play, current } from './play.ts'
import { Job } from './tasks.ts'

/** Options of a host of a {@link World}. */
export interface SeededHostOptions {
  /** The zone whose jobs it takes. */
  readonly name: string
  /** The functions that jobs name. */
  readonly module: Readonly<Record<string, (...args: never[]) => unknown>>
  /** Most jobs that run here at once; default 1. */
  readonly jobsMax?: number
  /** How long after its loss its jobs begin elsewhere, in ms; default 10,000. */
  readonly leaseMs?: number
}

/** A host of a run. */
export interface SeededHost extends AsyncDisposable {
  /** How many jobs run. */
  readonly jobsRunning: number
  /** Takes no more, and waits for those that run: up to 10 s, by default; others begin elsewhere. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>
}

const CLOSE_MS = 10_000
const KINDS = { jobsMax: integer(1, 65_536, 1), leaseMs: integer(100, 2 ** 31 - 1, 10_000) }

/** Resolves when it takes jobs. */
export async function hostOf(
  play: Play,
  parts: FleetParts,
  fleet: Fleet,
  options: SeededHostOptions,
): Promise<SeededHost> {
  const owner = play.actor('host()')
  const { name: zone, module, ...others } = options
  const { jobsMax, leaseMs } = optionsOf(others, KINDS, wrong, 'host()')
  const leaving = new AbortController()
  const run = async (task: JobTask): Promise<JobOutcome> => {
    task.begun?.()
    const fn = Object.hasOwn(module, task.name) ? module[task.name] : undefined
    if (fn === undefined)
      return [
        true,
        errorFrame(
          new parts.FleetError('EXPORT_MISSING', { zone, name: task.name, exported: Object.keys(module) }),
        ),
      ]
    const facts = { ...task, run: '', isAnnounced: false }
    const job = new CurrentJob({ ...facts, host: { progress: task.progress, leaving: leaving.signal } })
    const called = (...args: unknown[]): unknown => asJob(job, () => (fn as typeof called)(...args))
    return outcomeOf(play, owner, zone, task, called)
  }
  const { engine } = fleet
  const id = `${owner.name} ${owner.number}`
  const taker = await parts.JobTaker.open({ engine, zone, id, jobsMax, leaseMs, isFree: () => true, run })
  const closed = play.opened(owner, `the host of ${zone}`)
  owner.whenDead(closed)
  const close = async ({ timeoutMs = CLOSE_MS } = {}): Promise<void> => {
    leaving.abort(new DOMException('The host of the job is closing', 'AbortError'))
    await taker.close(timeoutMs, new parts.FleetError('FLEET_CLOSED', { reason: 'the host has closed' }))
    closed()
  }
  return {
    close,
    [Symbol.asyncDispose]: close,
    get jobsRunning() {
      return taker.running
    },
  }
}

/** A call, which others overtake at its waits; after an abort its result is not awaited. */
async function outcomeOf(
  play: Play,
  owner: Actor,
  zone: string,
  { key, name, args, signal, timeoutMs = Infinity }: JobTask,
  fn: (...args: unknown[]) => unknown,
): Promise<JobOutcome> {
  const work = async (): Promise<Uint8Array> => encode(await fn(...(decode(args) as unknown[])))
  const job = new Job(play, owner, `${name} of ${key}`, work)
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  const facts = { zone, timeoutMs, started: true }
  const [late, end] = play.late(owner, timeoutMs, () => new ZoneError('TASK_TIMEOUT', facts))
  try {
    const frame = await Promise.race([current.run(owner, () => job.join()), aborted, late])
    return [false, frame]
  } catch (error) {
    return [true, errorFrame(error), error instanceof NonRetryableError]
  } finally {
    end()
  }
}
