/**
 * A job instead of the one that its key has, whether that waits, runs or has ended.
 *
 * Hosts pass over an end that is not of its own item, so it is never lost by one that comes late. Its record
 * is written behind it: then the end of a run of the one before, which is written by revision, is refused.
 */
import type { Rank } from '../engine/engine.ts'
import { isDone } from '../errors.ts'
import { type Large, argsIn } from './large.ts'
import type { Room } from './listing.ts'
import { FRESH, readJob, readLetter, readRecord, writeRecord } from './record.ts'
import { identityOf } from './wake.ts'

/** @returns False for a key that a schedule has. */
export async function substituted(
  room: Room,
  large: Large,
  [key, bytes, rank]: readonly [key: string, bytes: Uint8Array, rank: Rank],
): Promise<boolean> {
  const { queue, records, letters } = room
  for (;;) {
    const found = await queue.find(key)
    if (found !== undefined && readJob(found.bytes)?.repeat !== undefined) return false
    const entry = await records.get(key)
    const record = readRecord(entry?.bytes)
    const letter = record?.status === 'dead' ? await letters.get(key) : undefined
    if (!(await queue.add(key, bytes, rank, found))) continue
    // One that the new job has left by now stays.
    if (letter !== undefined) await isDone(letters.delete(key, letter.revision))
    if (found !== undefined || entry !== undefined) await begun(room, key)
    // The one that is found may be this one, added and not confirmed.
    const before = new Set([argsIn(found?.bytes), argsIn(readLetter(letter?.bytes)?.job), record?.value])
    before.delete(argsIn(bytes))
    for (const carried of before) await large.delete(carried)
    return true
  }
}

/** The record of a key is that of its item. */
async function begun({ queue, records }: Room, key: string): Promise<void> {
  for (;;) {
    const item = await queue.find(key)
    const entry = await records.get(key)
    // Without an item it has ended by now.
    const addedMs = item && identityOf(item)
    if (addedMs === undefined || readRecord(entry?.bytes)?.addedMs === addedMs) return
    const fresh = writeRecord({ ...FRESH, addedMs })
    if (await isDone(records.put(key, fresh, { revision: entry?.revision ?? 0 }))) return
  }
}
