/**
 * When a schedule is due next, by an interval or by the pattern of cron; and how one replaces another.
 *
 * Patterns with time zones and their changes of summer and winter are what the library croner is made for. It
 * is an optional peer, and intervals need nothing.
 */
import { peer } from '../peer.ts'
import { wrong } from '../errors.ts'
import type { Queue, Rank } from '../engine/engine.ts'
import type { Large } from './large.ts'
import { type Repeat, isSame, readJob } from './record.ts'

/**
 * The time, in ms since 1970, that follows `afterMs` by a schedule that was last due at `lastMs`.
 * @throws {FleetError} `FLEET_PEER_MISSING`; `FLEET_ARGUMENT` for a pattern that is wrong or never due.
 */
export async function nextOf(
  { everyMs, cron, timeZone }: Repeat,
  lastMs: number,
  afterMs: number,
): Promise<number> {
  if (everyMs > 0) return lastMs + everyMs * (Math.floor((afterMs - lastMs) / everyMs) + 1)
  const { Cron } = await peer('croner', () => import('croner'), 'schedule.cron')
  let next
  try {
    next = new Cron(cron, { timezone: timeZone }).nextRun(new Date(afterMs))
  } catch {
    throw wrong(
      'jobs.submit(): schedule',
      "a pattern of cron as '0 3 * * *', and a time zone",
      `${cron} ${timeZone}`,
    )
  }
  if (next === null) throw wrong('jobs.submit(): schedule.cron', 'a pattern that is due some time', cron)
  return next.getTime()
}

/** Replace the schedule that has a key; false for the same one, and for a key that a job has. */
export async function replaced(
  queue: Queue,
  large: Large,
  [key, bytes, rank]: readonly [key: string, bytes: Uint8Array, rank: Rank],
): Promise<boolean> {
  for (;;) {
    const found = await queue.find(key)
    const before = found && readJob(found.bytes)
    if (found !== undefined && (before?.repeat === undefined || isSame(before, readJob(bytes)!))) return false
    if (!(await queue.add(key, bytes, rank, found))) continue
    await large.delete(before?.args)
    return true
  }
}
