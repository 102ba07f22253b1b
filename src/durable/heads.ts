/**
 * How a run begins to be, and to be again: its item in the queue makes it run, its head makes it found.
 *
 * The item is added first, and has the head: who takes it writes that, if who has added it has died. So what
 * is done here is done as a whole, or not at all.
 */
import { type Lease, type Rank, type Waiting, certainly, isDone, unlessConflict } from '../fleet/internal.ts'
import { RunError, type RunFacts, readable } from './errors.ts'
import type { Room } from './room.ts'
import { Journal } from './journal.ts'
import { type Head, RECORD_BYTES, exposedName, hasEnded, journalIn, readHead, writeHead } from './records.ts'

/** The item of a run that was woken. What it is reads its head; without one it was forgotten meanwhile. */
const WOKEN = writeHead({ over: 0 } as Head)

/** Who holds an item without a head ends it later than that: it looks twice, and no lease is shorter. */
const LATE_MS = 100

const headIn = (run: RunFacts, bytes: Uint8Array): Head => readable(run, run.key, () => readHead(bytes))

/**
 * A process takes the run at once, if it has not ended.
 * @param isHeld Whether a process has it: it is taken only if it has no item, as one that a disk has lost.
 * @throws {RunError} `RUN_UNREADABLE`.
 */
export async function wake(room: Room, run: RunFacts, isHeld = false): Promise<void> {
  const { engine, queue, heads } = room
  const item = await certainly(engine, () => queue.find(run.key))
  if (item !== undefined && isHeld) return
  const bytes = item ? undefined : (await certainly(engine, () => heads.get(run.key)))?.bytes
  const head = bytes && headIn(run, bytes)
  if (item !== undefined || (head && !hasEnded(head))) await lendAgain(room, run.key, head)
}

/** A process takes the run at once. @param head Of one without an item. */
export const lendAgain = (room: OwnQueue, key: string, head?: Head): Promise<void> =>
  lend(room, key, (item) => {
    const before = item ? itemIn(item) : head
    return wokenAs(before?.rank, before?.turn)
  })

/** What cannot be read is replaced. */
function itemIn({ bytes }: Waiting): Head | undefined {
  try {
    return readHead(bytes)
  } catch {
    return undefined
  }
}

type OwnQueue = Pick<Room, 'engine' | 'queue'>

/** A process takes the item at once, also if it waits for something. */
async function lend(
  { engine, queue }: OwnQueue,
  key: string,
  as: (item: Waiting | undefined) => Head,
): Promise<void> {
  await certainly(engine, async () => {
    for (let isAdded = false; !isAdded;) {
      const item = await queue.find(key)
      const head = as(item)
      isAdded = await queue.add(key, writeHead(head), rankIn(head), item)
    }
  })
}

/**
 * The turn of a run that waits for its limit is called: a process takes it.
 * @returns False: it does not wait for that any more.
 */
export async function call(room: Room, key: string, turn: number): Promise<boolean> {
  const { heads, queue, name } = room
  const run = { name, key }
  for (;;) {
    const item = await queue.find(key)
    if (item === undefined) return false
    const { rank, turn: called } = itemIn(item) ?? {}
    if (called === turn) return true
    const bytes = (await heads.get(key))?.bytes
    const head = bytes && headIn(run, bytes)
    // One that is cancelled waits for no turn; the next one with its key may be without a limit, and run.
    if (head?.limit === undefined || hasEnded(head) || head.cancelMs !== undefined) return false
    const woken = wokenAs(rank, turn)
    if (await queue.add(key, writeHead(woken), rankIn(woken), item)) return true
  }
}

const wokenAs = (rank: Head['rank'], turn: number | undefined): Head =>
  ({ over: 0, ...(rank !== undefined && { rank }), ...(turn !== undefined && { turn }) }) as Head

const rankIn = ({ rank = 1 }: Pick<Head, 'rank'>): Rank => rank

/** @throws {RunError} `RUN_TOO_LARGE`, `RUN_UNREADABLE`. */
export async function begin(room: Room, key: string, head: Head): Promise<void> {
  const { engine, name, heads, queue } = room
  const run = { name, key }
  const bytes = writeHead(head)
  const bytesMax = engine.messageBytesMax - RECORD_BYTES
  if (bytes.length > bytesMax)
    throw new RunError('RUN_TOO_LARGE', { what: 'the input of the run', bytes: bytes.length, bytesMax })
  const begunMs = engine.clock.nowMs()
  // Of two that start it at once both write the head that the item has.
  const first = await certainly(engine, async () => {
    while (!(await queue.add(key, bytes, rankIn(head)))) {
      const found = await queue.find(key)
      if (found === undefined) continue
      const { over } = headIn(run, found.bytes)
      if (over === undefined) return found.bytes
      // That of a run which was forgotten begins nothing, and may be removed before this one has a head.
      const isLeft = (await heads.get(key)) === undefined
      if (!isLeft || (await queue.add(key, bytes, rankIn(head), found))) break
    }
    return bytes
  })
  await certainly(engine, async () => {
    let revision = 0
    while (!(await isDone(heads.put(key, first, { revision })))) {
      const found = await heads.get(key)
      if (!(await isToBegin(room, run, first, found?.bytes))) return
      revision = found?.revision ?? 0
    }
  })
  if (engine.clock.nowMs() - begunMs < LATE_MS) return
  // Who wakes one that was forgotten may have replaced the item, and that have ended without a head.
  const item = await certainly(engine, () => queue.find(key))
  if (item !== undefined && headIn(run, item.bytes).over !== 0) return
  const found = (await certainly(engine, () => heads.get(key)))?.bytes
  if (found !== undefined && Buffer.compare(found, first) === 0) await lendAgain(room, key, head)
}

/**
 * Whether the item still begins its run although another head was there: that of a run that was forgotten, as
 * a process writes it, and deletes it, that was cut off with its item. Nothing is recorded of it.
 * @param first The head of the item. @param found What the key has by now.
 */
async function isToBegin(
  room: Room,
  run: RunFacts,
  first: Uint8Array,
  found: Uint8Array | undefined,
): Promise<boolean> {
  const other = found && headIn(run, found)
  if (other !== undefined) {
    const { id, status, by, before, journal, next, over } = other
    if (id === headIn(run, first).id || status !== 'running') return false
    // Whoever has one that had a checkpoint, or was run again or copied, has written one of these.
    if ((by ?? before ?? journal ?? next ?? over) !== undefined) return false
  }
  const item = await room.queue.find(run.key)
  if (item === undefined || Buffer.compare(item.bytes, first) !== 0) return false
  return other === undefined || (await journalNamed(room, run, other.id).read()).length === 0
}

/**
 * Writes a head by revision; one that was written, and not confirmed, counts.
 * @returns Its revision; `undefined`: another change was faster.
 */
export function replaceHead(
  { engine, heads }: Pick<Room, 'engine' | 'heads'>,
  key: string,
  head: Head,
  revision: number,
  { goesOn = (): boolean => true, ttlMs }: { goesOn?: () => boolean; ttlMs?: number | undefined } = {},
): Promise<number | undefined> {
  const bytes = writeHead(head)
  const how = { revision, ...(ttlMs !== undefined && { ttlMs }) }
  const write = async (): Promise<number | undefined> => {
    const written = await unlessConflict(heads.put(key, bytes, how))
    if (written !== undefined) return written
    const found = await heads.get(key)
    return found?.bytes !== undefined && Buffer.compare(found.bytes, bytes) === 0 ? found.revision : undefined
  }
  return certainly(engine, write, goesOn)
}

/**
 * The head replaces another, whose revision it has as `over`.
 * @returns Whether it has; another change was faster otherwise.
 */
export async function beginAgain(room: Room, key: string, head: Head & { over: number }): Promise<boolean> {
  const { engine, heads } = room
  const bytes = writeHead(head)
  await lend(room, key, () => head)
  return await certainly(engine, async () => {
    if (await isDone(heads.put(key, bytes, { revision: head.over }))) return true
    // Who has taken the item has written it.
    const found = (await heads.get(key))?.bytes
    if (found === undefined) return false
    const kept = readable({ name: room.name, key }, key, () => readHead(found))
    return journalIn(kept) === journalIn(head)
  })
}

interface HeadEntry {
  readonly bytes: Uint8Array
  readonly revision: number
}

/**
 * The head of the run of an item; of one whose starter has died before it was written, as the item has it;
 * `undefined` without one where the item begins nothing.
 * @param lease Of the item.
 */
export async function headOfItem(
  room: Room,
  run: RunFacts,
  lease: () => Lease,
  goesOn: () => boolean,
): Promise<HeadEntry | undefined> {
  const { engine, heads, queue } = room
  const { key } = run
  const { bytes } = lease()
  const { over } = headIn(run, bytes)
  // This process was cut off, and the run has ended and was forgotten. Who wakes one replaces its item too.
  const isGone = async (): Promise<boolean> => {
    const item = await queue.find(key)
    if (item?.addedMs === lease().addedMs) return false
    return item === undefined || headIn(run, item.bytes).over === undefined
  }
  let isOwn = false
  const read = async (): Promise<HeadEntry | undefined> => {
    const found = await heads.get(key)
    let revision = found?.revision ?? 0
    const kept = found?.bytes
    if (kept === undefined && over !== undefined) return undefined
    const isOther = kept !== undefined && revision !== over
    if (isOther && (over !== undefined || !(await isToBegin(room, run, bytes, kept)))) {
      // Else one that was written here, and not confirmed. One with another id was woken, or has begun anew
      // by a checkpoint; or it is that of the next run, which another item lends.
      if (!isOwn || Buffer.compare(kept, bytes) !== 0) {
        const isOwnRun = headIn(run, kept).id === headIn(run, bytes).id
        return isOwnRun || !(await isGone()) ? { bytes: kept, revision } : undefined
      }
    } else {
      isOwn = true
      const written = await unlessConflict(heads.put(key, bytes, { revision }))
      if (written === undefined) return read() // its starter has written it
      revision = written
    }
    if (!(await isGone())) return { bytes, revision }
    await isDone(heads.delete(key, revision))
    return undefined
  }
  return certainly(engine, read, goesOn)
}

/** @throws {RunError} `RUN_UNKNOWN`, `RUN_UNREADABLE`. */
export async function headOf(
  { engine, heads }: Room,
  run: RunFacts,
): Promise<{ readonly head: Head; readonly revision: number }> {
  const entry = await certainly(engine, () => heads.get(run.key))
  const bytes = entry?.bytes
  if (entry === undefined || bytes === undefined) throw new RunError('RUN_UNKNOWN', run)
  return { head: readable(run, run.key, () => readHead(bytes)), revision: entry.revision }
}

/**
 * Removes what waits of a run that has ended: its item, its signals, and what it has shown. May be repeated.
 * What is found before its head is read is its own, and what the next run with its key has is another one.
 * @param what `signals`: those alone. `timed`: its item, which one that begins nothing replaces;
 *   who is lent that does the rest.
 * @param revision Of its head. Default: of any that has ended, and is not run again.
 */
export async function clear(
  room: Room,
  run: RunFacts,
  what: 'all' | 'timed' | 'signals',
  revision?: number,
): Promise<void> {
  const { engine, heads, boxes, queue, name } = room
  const { key } = run
  const isShown = what === 'all' && (await engine.valuesIn(exposedName(name))) > 0
  const kept = what === 'timed' ? [] : isShown ? [boxes, await room.exposed()] : [boxes]
  const item = what === 'signals' ? undefined : await queue.find(key)
  const found = await Promise.all(kept.map((values) => values.get(key)))
  const isNothing = item === undefined && found.every((value) => value?.bytes === undefined)
  if (isNothing && what !== 'timed') return
  const entry = await heads.get(key)
  if (entry?.bytes === undefined || (revision ?? entry.revision) !== entry.revision) return
  const head = headIn(run, entry.bytes)
  if (revision === undefined && (!hasEnded(head) || head.next !== undefined)) return
  if (what === 'timed') await queue.add(key, WOKEN, 1, item)
  else if (item !== undefined) await queue.remove(key, item)
  for (const [index, value] of found.entries())
    if (value?.bytes !== undefined) await isDone(kept[index].delete(key, value.revision))
}

/**
 * The time begins after which what is kept of a run that has ended is deleted. Whose item it is must begin
 * nothing, since that may outlive the head. May be repeated.
 */
async function expire(room: Room, run: RunFacts, goesOn: () => boolean): Promise<void> {
  const { engine, heads, name } = room
  const { key } = run
  // It may be that of the next run by now, which is kept for good.
  const { head, revision } = await headOf(room, run)
  const { ttlMs, before, next } = head
  if (ttlMs === undefined || !hasEnded(head) || next !== undefined) return
  for (const id of [before, journalIn(head)])
    if (id !== undefined) await journalNamed(room, run, id, goesOn).expire(ttlMs)
  const isShown = (await certainly(engine, () => engine.valuesIn(exposedName(name)), goesOn)) > 0
  const exposed = isShown ? await room.exposed() : undefined
  await certainly(
    engine,
    async () => {
      const shown = await exposed?.get(key)
      if (shown?.bytes !== undefined)
        await isDone(exposed!.put(key, shown.bytes, { revision: shown.revision, ttlMs }))
      await isDone(heads.put(key, writeHead(head), { revision, ttlMs }))
    },
    goesOn,
  )
}

/**
 * The item of a run that has ended is done. Of one that is kept for a time another one begins that, which
 * begins no run when its head is deleted.
 */
export async function drop(
  room: Room,
  run: RunFacts,
  { ttlMs }: Head,
  lease: () => Lease,
  goesOn: () => boolean,
): Promise<void> {
  if (ttlMs !== undefined && headIn(run, lease().bytes).over === 0) await expire(room, run, goesOn)
  else if (ttlMs !== undefined) await certainly(room.engine, () => clear(room, run, 'timed'), goesOn)
  await certainly(room.engine, () => lease().done(), goesOn)
}

/** A journal, for who looks at it or copies it. */
export function journalNamed(
  { engine, journals: values }: Room,
  run: RunFacts,
  id: string,
  goesOn = (): boolean => true,
): Journal {
  return new Journal({ engine, values, id, run, sinceMs: 0, goesOn, lost: () => {} })
}
