/**
 * What users see of a job's record.
 *
 * Frames are read, and what cannot be read here is described.
 */
import { decode } from '../../transport/index.ts'
import { thrownBy } from './frames.ts'
import type { JobStatus } from '../job-settings.ts'
import type { Job, JobRecord } from './record.ts'

/** How far a job is. */
export interface JobInfo {
  /** As it was submitted. */
  readonly key: string
  /** `scheduled`: it adds jobs. The last three are ends. */
  readonly status: JobStatus
  /** Attempts that have failed. */
  readonly failures: number
  /** Hosts that were lost while they ran it. */
  readonly hostsLost: number
  /** What the function has reported last. */
  readonly progress: unknown
  /** The errors of its last ten failures, the latest last. */
  readonly errors: readonly unknown[]
  /**
   * When a schedule, or a job that waits for its delay or for another attempt, is due; of a pattern of cron,
   * once a host has had it.
   */
  readonly dueAt: Date | undefined
}

/** A job that has failed for good. */
export interface DeadJob extends JobInfo {
  /** The export. */
  readonly name: string
  /** Its arguments; none where they cannot be read, or are larger than a message. */
  readonly args: readonly unknown[]
}

export function infoOf(key: string, record: JobRecord): JobInfo {
  const { status, failures, hostsLost, progress, errors } = record
  return {
    key,
    status,
    failures,
    hostsLost,
    progress: thrownBy(progress),
    errors: errors.map(thrownBy),
    dueAt: dueAtOf(record),
  }
}

function dueAtOf({ status, dueMs, addedMs }: JobRecord): Date | undefined {
  if (dueMs === 0 || (status !== 'scheduled' && status !== 'waiting')) return undefined
  return new Date(status === 'scheduled' ? dueMs : addedMs + dueMs)
}

/** The arguments of a job; none of one that cannot be read here, or has them elsewhere. */
export function argsOf(job: Job | undefined): readonly unknown[] {
  try {
    return job === undefined || typeof job.args === 'string' ? [] : (decode(job.args) as unknown[])
  } catch {
    return []
  }
}
