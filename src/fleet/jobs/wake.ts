/**
 * Has an item lent now that was returned to its queue for longer: it is replaced by itself.
 *
 * The item that follows has the same identity, when its job was added first, so its record counts on, and
 * whoever has the one before, late, works on the same job.
 */
import type { Queue, Waiting } from '../engine/engine.ts'
import { type Job, readJob, writeJob } from './record.ts'

/** When the job of an item was added, in ms since 1970: by it records and items belong together. */
export const identityOf = (item: Waiting, job: Job | undefined = readJob(item.bytes)): number =>
  job?.woken?.firstMs ?? item.addedMs

/**
 * @param turn Of a limit, for which it is called; 0: none.
 * @returns False: there is no such job any more.
 */
export async function wake(
  queue: Queue,
  key: string,
  turn: number,
  certainly: <Value>(work: () => Promise<Value>) => Promise<Value>,
): Promise<boolean> {
  for (;;) {
    const found = await certainly(() => queue.find(key))
    const job = found && readJob(found.bytes)
    if (found === undefined || job === undefined) return false
    // What was not confirmed was done; and one that waits for no turn is woken once, whoever does it.
    if (turn > 0 ? job.woken?.turn === turn : job.woken !== undefined) return true
    const bytes = writeJob({ ...job, woken: { firstMs: identityOf(found, job), turn } })
    if (await certainly(() => queue.add(key, bytes, job.rank, found))) return true
  }
}
