/**
 * A run that is run again from one of its steps, and a copy of one that is.
 *
 * A beginning of a journal is what the run had done at some time, so it can be continued. It is written under
 * a name of its own, and then the head names that one: a process that still has the run by the journal before
 * finds that none of its writes counts any more.
 */
import { certainly } from '../fleet/internal.ts'
import { RunError, type RunFacts, readable, wrong } from './errors.ts'
import { keepSignals, wake } from './boxes.ts'
import { begin, beginAgain, headOf, journalNamed } from './heads.ts'
import type { Room } from './room.ts'
import { nameIn, pathIn } from './keys.ts'
import { decode } from '../transport/index.ts'
import { type Head, type JournalEntry, type Signal, journalIn, readHead } from './records.ts'

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
    return id === undefined || name === undefined ? [] : [{ id, name, frame: frame as Uint8Array }]
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

function described(frame: Uint8Array | undefined): string {
  try {
    return String(frame && decode(frame))
  } catch {
    return frame === undefined ? '' : Buffer.from(frame).toString('latin1')
  }
}

function inputOf(run: RunFacts, { input }: Head): Uint8Array {
  const reason = 'its input is not kept: there was no room for it beside its result'
  if (input === undefined) throw new RunError('RUN_NOT_AGAIN', { ...run, reason })
  return input
}

/** What the head of a run has that continues behind a cut. */
function continued(run: RunFacts, head: Head, { kept }: Cut) {
  const isCancelled = kept.some(({ kind }) => kind === 'cancel')
  return {
    input: inputOf(run, head),
    ...(isCancelled && head.cancelMs !== undefined && { cancelMs: head.cancelMs }),
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
  const untilMs = engine.clock.nowMs() + LEFT_MS_MAX
  for (;;) {
    const found = await headOf(room, run)
    const { status } = found.head
    if (status === 'diverged') return found
    if (status !== 'failed') {
      const reason = `it is ${status}, and has neither failed nor diverged; fork() makes a copy of it`
      throw new RunError('RUN_NOT_AGAIN', { ...run, reason })
    }
    if ((await certainly(engine, () => queue.find(run.key))) === undefined) return found
    if (engine.clock.nowMs() > untilMs) {
      const reason =
        'it has failed, and its item is in the queue still: a process that offers it removes that'
      throw new RunError('RUN_NOT_AGAIN', { ...run, reason })
    }
    await new Promise<void>((resolve) => engine.clock.after(LOOK_MS, resolve))
  }
}

/** @throws {RunError} `RUN_NOT_AGAIN`, `RUN_ARGUMENT`, `RUN_UNKNOWN`, `RUN_UNREADABLE`. */
export async function again(room: Room, run: RunFacts, from: string | undefined): Promise<void> {
  const { head, revision } = await headThatMayRun(room, run)
  const { status, id, seed } = head
  // It is tried again at once: other code may have been deployed.
  if (status === 'diverged' && from === undefined) return wake(room, run.key)
  const entries = await journalNamed(room, run, journalIn(head)).read()
  const cut = from === undefined ? cutOfFailure(run, head, entries) : cutBefore('run.again()', entries, from)
  const journal = crypto.randomUUID()
  const of = { id, trace: head.trace, ...(seed !== undefined && { seed }), startedMs: head.startedMs }
  const next = { ...of, ...continued(run, head, cut), journal, before: journalIn(head), over: revision }
  const written = journalNamed(room, run, journal)
  await Promise.all(cut.kept.map((entry) => written.append(entry)))
  await keepSignals(room, run, cut.signals, true)
  if (await beginAgain(room, run.key, { ...next, ...(head.parent && { parent: head.parent }) })) return
  await written.remove()
  throw new RunError('RUN_NOT_AGAIN', { ...run, reason: 'it was changed meanwhile; look at its state()' })
}

/** @throws {RunError} As {@link again}. */
export async function fork(room: Room, run: RunFacts, key: string, from: string): Promise<void> {
  const { head } = await headOf(room, run)
  const cut = cutBefore('run.fork()', await journalNamed(room, run, journalIn(head)).read(), from)
  const id = crypto.randomUUID()
  const of = { id, trace: head.trace, seed: head.seed ?? head.id, startedMs: room.nowMs() }
  const copy = { ...of, ...continued(run, head, cut) }
  const written = journalNamed(room, run, id)
  await Promise.all(withoutOpenChildren(cut).map((entry) => written.append(entry)))
  await keepSignals(room, { name: run.name, key }, cut.signals, true)
  await begin(room, key, copy)
  const bytes = (await certainly(room.engine, () => room.heads.get(key)))?.bytes
  // Another call has started the run of that key.
  if (bytes === undefined) return
  const begun = readable({ name: run.name, key }, key, () => readHead(bytes))
  if (begun.id !== id) await written.remove()
}
