/**
 * A run that is run again from one of its steps, and a copy of one that is.
 *
 * A beginning of a journal is what the run had done at some time, so it can be continued. It is written under
 * a name of its own, and then the head names that one: a process that still has the run by the journal before
 * finds that none of its writes counts any more.
 *
 * Before it is written, the head has its name as `next`; a copy is one that was cancelled until then. So
 * whatever dies, no journal is without a run: the next call removes it, and so does `forget()`.
 */
import { certainly, isDone } from '../fleet/internal.ts'
import { RunError, type RunFacts, readable, wrong } from './errors.ts'
import { keepSignals } from './boxes.ts'
import { beginAgain, headOf, journalNamed, replaceHead, wake } from './heads.ts'
import type { Room } from './room.ts'
import { nameIn, pathIn } from './keys.ts'
import { type Kept, valueOf } from './values.ts'
import {
  type Head,
  type JournalEntry,
  NEXT_MS_MAX,
  type Signal,
  hasEnded,
  journalIn,
  readHead,
} from './records.ts'

/** How often it is looked whether a process has left a run that has failed. */
const LOOK_MS = 20
/** How long that is waited for. */
const LEFT_MS_MAX = 60_000

interface Cut {
  readonly kept: readonly JournalEntry[]
  /** Those that were received behind it. */
  readonly signals: readonly Signal[]
}

const isFinal = ({ kind }: JournalEntry): boolean => kind === 'done' || kind === 'error'

/** What there was before a step; what others had done until it ended is kept. */
function cutAt(entries: readonly JournalEntry[], key: string): Cut {
  const isOf = (entry: JournalEntry): boolean => entry.key === key
  const ended = entries.findIndex((entry) => isOf(entry) && isFinal(entry))
  const end = ended < 0 ? entries.findIndex(isOf) : ended
  const kept = entries.slice(0, end).filter((entry) => !isOf(entry))
  const signals = entries.slice(end).flatMap(({ key: of, signal: id, sent, frame }) => {
    const name = sent ?? /^signal\((.+)\)$/.exec(nameIn(of))?.[1]
    return id === undefined || name === undefined ? [] : [{ id, name, frame: frame ?? '' }]
  })
  return { kept, signals }
}

/** @throws {RunError} `RUN_ARGUMENT` if no step has that key. */
function cutBefore(call: string, entries: readonly JournalEntry[], from: string): Cut {
  const isThere = (key: string): boolean => key !== '' && entries.some((entry) => entry.key === key)
  const key = [from, `${from}#1`].find(isThere)
  if (key === undefined)
    throw wrong(`${call}: from`, 'the key of a step that state() has, such as "charge#1"', from)
  return cutAt(entries, key)
}

/** The step with whose error the run has failed is run again; what was recorded behind it is in the way. */
function cutOfFailure(run: RunFacts, head: Head, entries: readonly JournalEntry[]): Cut {
  const last = entries.findLastIndex(({ kind }) => kind === 'error')
  const failed = entries[last]
  if (failed === undefined || described(failed.frame) !== described(head.frame))
    return { kept: entries, signals: [] }
  const behind = entries.slice(last + 1).find(isFinal)
  if (behind !== undefined)
    throw new RunError('RUN_NOT_AGAIN', {
      ...run,
      reason:
        `behind ${JSON.stringify(failed.key)}, which has failed, it has recorded ` +
        `${JSON.stringify(behind.key)}: name the step from which on all is done anew with from`,
    })
  return cutAt(entries, failed.key)
}

/**
 * A child reports its end to the run that has started it. So a copy of a fiber that waits for one has not
 * started it, and starts its own.
 */
function withoutOpenChildren({ kept, signals }: Cut): readonly JournalEntry[] {
  const sent = new Set(signals.map(({ name }) => name))
  const lasts = new Map<string, JournalEntry>()
  for (const entry of kept)
    if (entry.key !== '' && entry.kind !== 'begun') lasts.set(pathIn(entry.key), entry)
  const isOpen = ({ kind, key }: JournalEntry): boolean =>
    kind === 'done' && nameIn(key).startsWith('child(') && !sent.has(key)
  return kept.filter((entry) => {
    const last = lasts.get(pathIn(entry.key))
    return last === undefined || !isOpen(last) || (entry !== last && entry.kind !== 'begun')
  })
}

function described(kept: Kept | undefined): string {
  try {
    return String(valueOf(kept))
  } catch {
    return Buffer.from(kept as Uint8Array).toString('latin1')
  }
}

function inputOf(run: RunFacts, { input }: Head): Kept {
  const reason = 'its input is not kept: there was no room for it beside its result, or it is being forgotten'
  if (input === undefined) throw new RunError('RUN_NOT_AGAIN', { ...run, reason })
  return input
}

/** What the head of a run has that continues behind a cut. */
function continued(run: RunFacts, head: Head, { kept }: Cut) {
  const isCancelled = kept.some(({ kind }) => kind === 'cancel')
  return {
    input: inputOf(run, head),
    ...(isCancelled && head.cancelMs !== undefined && { cancelMs: head.cancelMs }),
    ...(head.ttlMs !== undefined && { ttlMs: head.ttlMs }),
    ...(head.rank !== undefined && { rank: head.rank }),
    ...(head.limit !== undefined && { limit: head.limit }),
    ...({ status: 'running', frame: undefined, endedMs: 0, dueMs: 0, awaits: [] } as const),
  }
}

/**
 * Of one that has failed or diverged. Who had it then removes its signals and its item, and must not
 * remove those of the next time.
 * @throws {RunError} `RUN_NOT_AGAIN`, `RUN_UNKNOWN`, `RUN_UNREADABLE`.
 */
async function headThatMayRun(room: Room, run: RunFacts): ReturnType<typeof headOf> {
  const { engine, queue } = room
  const begunMs = engine.clock.nowMs()
  for (;;) {
    const found = await headOf(room, run)
    const { status, next } = found.head
    if (status !== 'diverged' && status !== 'failed') {
      const reason = `it is ${status}, and has neither failed nor diverged; fork() makes a copy of it`
      throw new RunError('RUN_NOT_AGAIN', { ...run, reason })
    }
    const spentMs = engine.clock.nowMs() - begunMs
    const isItem = status === 'failed' && (await certainly(engine, () => queue.find(run.key))) !== undefined
    if (!isItem && (next === undefined || spentMs > NEXT_MS_MAX)) return found
    if (spentMs > LEFT_MS_MAX) {
      const reason =
        'it has failed, and its item is in the queue still: a process that offers it removes that'
      throw new RunError('RUN_NOT_AGAIN', { ...run, reason })
    }
    await looked(room)
  }
}

const looked = ({ engine }: Room): Promise<void> =>
  new Promise((resolve) => void engine.clock.after(LOOK_MS, resolve))

/**
 * Writes what continues behind a cut, as the run of that head. If it cannot, its journal is removed, and then
 * the head that has it as `next`: so the next call does not wait for this one.
 * @param of `claim`: that head. `rest`: what it is without that; `undefined`: nothing. `ttlMs`: of both.
 * @returns False: it was changed meanwhile.
 */
async function written(
  room: Room,
  run: RunFacts,
  entries: readonly JournalEntry[],
  { signals }: Cut,
  of: {
    readonly head: Head & { readonly over: number }
    readonly claim: Head
    readonly rest?: Head
    readonly ttlMs?: number | undefined
  },
): Promise<boolean> {
  const { head, claim, rest, ttlMs } = of
  const { engine, heads } = room
  const journal = journalNamed(room, run, journalIn(head))
  try {
    await Promise.all(entries.map((entry) => journal.append(entry)))
    await keepSignals(room, run, signals, true)
    if (await beginAgain(room, run.key, head)) return true
    await journal.remove()
    return false
  } catch (error) {
    // From then on the item of the head does not begin it.
    const mine = await replaceHead(room, run.key, claim, head.over, { ttlMs })
    if (mine === undefined) throw error
    await journal.remove()
    if (rest !== undefined) await replaceHead(room, run.key, rest, mine, { ttlMs })
    else await certainly(engine, () => isDone(heads.delete(run.key, mine)))
    throw error
  }
}

/** @throws {RunError} `RUN_NOT_AGAIN`, `RUN_ARGUMENT`, `RUN_UNKNOWN`, `RUN_UNREADABLE`. */
export async function again(room: Room, run: RunFacts, from: string | undefined): Promise<void> {
  const { head, revision } = await headThatMayRun(room, run)
  const { status, id, seed, parent } = head
  // It is tried again at once: other code may have been deployed.
  if (status === 'diverged' && from === undefined) return wake(room, run)
  const kept = journalNamed(room, run, journalIn(head))
  const entries = await kept.read()
  if (kept.count < (head.records ?? 0)) {
    const reason = 'what it has recorded is being deleted, as its ttlMs is over'
    throw new RunError('RUN_NOT_AGAIN', { ...run, reason })
  }
  const cut = from === undefined ? cutOfFailure(run, head, entries) : cutBefore('run.again()', entries, from)
  const journal = crypto.randomUUID()
  const of = { id, trace: head.trace, ...(seed !== undefined && { seed }), startedMs: head.startedMs }
  const next = { ...of, ...continued(run, head, cut), journal, before: journalIn(head) }
  const claim = { ...head, next: journal }
  // If this process dies, one that has ended is kept for its time, and not for good.
  const ttlMs = hasEnded(head) ? head.ttlMs && Math.max(head.ttlMs, NEXT_MS_MAX) : undefined
  const over = await replaceHead(room, run.key, claim, revision, { ttlMs })
  if (over !== undefined) {
    if (head.next !== undefined) await journalNamed(room, run, head.next).remove()
    const begun = { ...next, over, ...(parent && { parent }) }
    const rest = { ...head, next: undefined }
    if (await written(room, run, cut.kept, cut, { head: begun, claim, rest, ttlMs })) return
  }
  throw new RunError('RUN_NOT_AGAIN', { ...run, reason: 'it was changed meanwhile; look at its state()' })
}

/** Unless a run has that key. @throws {RunError} As {@link again}. */
export async function fork(room: Room, run: RunFacts, key: string, from: string): Promise<void> {
  const copy = { name: run.name, key }
  const found = await copyThatMayBegin(room, copy)
  if (found === undefined) return
  const { head } = await headOf(room, run)
  const cut = cutBefore('run.fork()', await journalNamed(room, run, journalIn(head)).read(), from)
  const id = crypto.randomUUID()
  const startedMs = room.nowMs()
  const of = { id, trace: head.trace, seed: head.seed ?? head.id, startedMs }
  const next = { ...of, ...continued(run, head, cut) }
  const claim = { ...next, next: id, status: 'cancelled', endedMs: startedMs } as const
  const over = await replaceHead(room, key, claim, found.revision)
  if (over === undefined) return fork(room, run, key, from)
  if (found.next !== undefined) await journalNamed(room, copy, found.next).remove()
  await written(room, copy, withoutOpenChildren(cut), cut, { head: { ...next, over }, claim })
}

/** What a key has where a copy may begin: nothing, or one whose `fork()` has died; `undefined`: a run. */
async function copyThatMayBegin(
  room: Room,
  copy: RunFacts,
): Promise<{ readonly revision: number; readonly next?: string } | undefined> {
  const { engine, heads } = room
  const begunMs = engine.clock.nowMs()
  for (;;) {
    const entry = await certainly(engine, () => heads.get(copy.key))
    const bytes = entry?.bytes
    if (entry === undefined || bytes === undefined) return { revision: 0 }
    const { id, next } = readable(copy, copy.key, () => readHead(bytes))
    if (next !== id) return undefined
    if (engine.clock.nowMs() - begunMs > NEXT_MS_MAX) return { revision: entry.revision, next }
    await looked(room)
  }
}
