/**
 * Ends a job before it ends by itself, for who asks for it and for schedules that cancel their last job.
 *
 * A job has its end in its record, by revision, as any other; a schedule is removed.
 */
import { meters } from '../../base/index.ts'
import { written } from '../wire.ts'
import type { Engine, Waiting } from '../engine/engine.ts'
import { isDone } from '../errors.ts'
import type { LiveState } from '../job-settings.ts'
import type { Large } from './large.ts'
import type { Room } from './listing.ts'
import {
  type EndedRecord,
  FRESH,
  type Job,
  cancelSubject,
  isEndOf,
  readJob,
  readRecord,
  sendEnd,
  writeRecord,
} from './record.ts'
import { identityOf } from './wake.ts'

interface Of extends Pick<Room, 'queue' | 'records'> {
  readonly engine: Engine
  readonly zone: string
  readonly large: Large
}

/**
 * @param state Of another one nothing is done.
 * @returns The job; `undefined`: it has ended, or the key is free.
 */
export async function cancelled(of: Of, key: string, state?: LiveState): Promise<Job | undefined> {
  const { large, queue, records } = of
  const by = crypto.randomUUID()
  let tried: { readonly job: Job; readonly item: Waiting } | undefined
  for (;;) {
    const entry = await records.get(key)
    const found = readRecord(entry?.bytes)
    if (tried !== undefined && found?.by === by)
      return ended(of, key, tried, { ...found, status: 'cancelled' }) // it was done, and not confirmed
    const item = await queue.find(key)
    const job = item && readJob(item.bytes)
    if (item === undefined || job === undefined) return undefined
    const addedMs = identityOf(item, job)
    if (isEndOf(found, addedMs, job)) return undefined
    // That of a job which this one replaces is not its own.
    const record = found?.addedMs === addedMs ? found : FRESH
    // A schedule is one before a host has had it, too.
    const status = job.repeat === undefined ? record.status : 'scheduled'
    if (state !== undefined && status !== state) return undefined
    if (job.repeat !== undefined) {
      // One that has replaced it meanwhile goes on.
      await queue.remove(key, item)
      await forgetSchedule(of, key, addedMs)
      await large.delete(job.args)
      return job
    }
    const end = { ...record, status: 'cancelled', addedMs, by } as const
    const how = { revision: entry?.revision ?? 0, ttlMs: job.limits.ttlMs }
    if (await isDone(records.put(key, writeRecord(end), how))) return ended(of, key, { job, item }, end)
    tried = { job, item }
  }
}

async function ended(
  { engine, zone, large, queue }: Of,
  key: string,
  { job, item }: { readonly job: Job; readonly item: Waiting },
  record: EndedRecord,
): Promise<Job> {
  await queue.remove(key, item)
  engine.messages?.send(cancelSubject(zone), written('cancel', key))
  sendEnd(engine, zone, job, { key, record })
  meters.ended?.('jobsEnded', zone, job.name, 'cancelled')
  await large.delete(job.args)
  return job
}

async function forgetSchedule({ records }: Of, key: string, addedMs: number): Promise<void> {
  for (;;) {
    const entry = await records.get(key)
    const record = readRecord(entry?.bytes)
    if (record?.status !== 'scheduled' || record.addedMs > addedMs) return
    if (await isDone(records.delete(key, entry!.revision))) return
  }
}
