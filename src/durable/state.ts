/**
 * How far a run is, as its head and its journal have it.
 *
 * What runs now is not recorded: the process that has the run adds it, or has reported it (holder.ts).
 */
import type { Holding } from './holder.ts'
import { nameIn, pathIn } from './keys.ts'
import { type Head, type JournalEntry, type RunStatus, hasEnded, isBeingCopied } from './records.ts'
import { type Kept, valueOf } from './values.ts'

/** A run in a list. */
export interface RunInfo {
  /** Unique among the runs of its definition. */
  readonly key: string
  /**
   * `waiting`: outside of memory, for a pause, a signal or its limit. `diverged`: for code that fits its
   * journal. `cancelling`: its finalizers run, or will.
   */
  readonly status: RunStatus
  /** When it was started, by the clock of the process that has started it. */
  readonly startedAt: Date
  /** `undefined`: it has not ended. */
  readonly endedAt: Date | undefined
  /** The `release` of the process that has begun it, or has it since; `undefined`: that had none. */
  readonly release: string | undefined
}

/** A step, a pause, a wait for a signal or a time, as the journal has it. */
export interface RunStep {
  /** Names it in `again()` and `fork()`: its path, its name, and which one of that name it is. */
  readonly key: string
  /** The name of the step; `pause()`, `signal(name)` or `now()`. */
  readonly name: string
  /** What has asked for it: numbers of forks and names of branches, each followed by `/`; or empty. */
  readonly path: string
  /**
   * `retrying`: an attempt has failed, and another follows. `waiting`: until `dueAt`, or for a signal.
   * `left`: its fiber was interrupted.
   */
  readonly status: 'done' | 'failed' | 'retrying' | 'waiting' | 'left'
  /** When its first attempt or its wait began; `undefined` of `now()`, and of one that had not begun. */
  readonly startedAt: Date | undefined
  /** When its status was recorded. */
  readonly at: Date
  /** When the next attempt is made, or a wait ends. */
  readonly dueAt: Date | undefined
  /** Attempts that have failed. */
  readonly failures: number
  /** The error of the last of them. */
  readonly error: unknown
  /** Of `child()`: the key of its run. */
  readonly child: string | undefined
}

/** How far a run is. */
export interface RunState extends RunInfo {
  /** In the order in which they were first recorded. One that runs now is not among them. */
  readonly steps: readonly RunStep[]
  /**
   * The process that has it, as `machine:pid`; `undefined`: none, or another one that has not reported it.
   * It does so while a step runs, three times in its `leaseMs`. Lists do not have it: it is one more read.
   */
  readonly holder: string | undefined
  /** The keys of steps that run now, and since when; what another process runs, as far as it is reported. */
  readonly running: readonly { readonly key: string; readonly startedAt: Date }[]
  /** How often a process has taken it up again, after a crash or since it had waited outside of memory. */
  readonly resumedCount: number
  /** The error with which it has failed or diverged. */
  readonly error: unknown
  /** The names of the signals that it waits for. */
  readonly awaits: readonly string[]
}

/** The last time that a Date has, in ms. */
const DATE_MS_MAX = 8.64e15

/** @param holding The process that has it. */
export function stateOf(
  key: string,
  head: Head,
  entries: readonly JournalEntry[],
  holding: Holding | undefined,
  nowMs: number,
): RunState {
  const error = ['failed', 'diverged'].includes(head.status) ? errorIn(head.frame) : undefined
  const resumedCount = entries.filter(({ kind }) => kind === 'held').length
  const steps = stepsOf(entries)
  // What was reported may have ended since.
  const ended = (of: string, ms: number): boolean =>
    steps.some((step) => step.key === of && (step.status !== 'retrying' || step.at.getTime() > ms))
  const runs = [...(holding?.running ?? [])].filter(([of, ms]) => !ended(of, ms))
  const running = runs.map(([of, ms]) => ({ key: of, startedAt: new Date(ms) }))
  const awaits = hasEnded(head) ? [] : steps.flatMap(awaitedBy)
  const found = { steps, holder: holding?.holder, running, resumedCount, error }
  return { ...infoOf(key, head, nowMs), ...found, awaits: [...new Set(awaits)] }
}

export function infoOf(key: string, head: Head, nowMs: number): RunInfo {
  const { startedMs, endedMs, cancelMs, release } = head
  if (isBeingCopied(head, nowMs))
    return { key, status: 'running', startedAt: new Date(startedMs), endedAt: undefined, release }
  const status = cancelMs === undefined || hasEnded(head) ? head.status : 'cancelling'
  const endedAt = endedMs === 0 ? undefined : new Date(endedMs)
  return { key, status, startedAt: new Date(startedMs), endedAt, release }
}

/** The signal that a step waits for. */
const awaitedBy = ({ name, status }: RunStep): string[] =>
  status === 'waiting' ? (/^signal\((.+)\)$/.exec(name)?.slice(1) ?? []) : []

/** What a frame of an error has; one of a class that is not registered here is described. */
function errorIn(frame: Kept | undefined): unknown {
  try {
    return valueOf(frame)
  } catch (error) {
    return error
  }
}

const STATUS_OF = {
  done: 'done',
  error: 'failed',
  failed: 'retrying',
  begun: 'waiting',
  left: 'left',
} as const

function stepsOf(entries: readonly JournalEntry[]): RunStep[] {
  const steps = new Map<string, RunStep>()
  for (const { kind, key, atMs, begunMs = kind === 'begun' ? atMs : undefined, frame, dueMs } of entries) {
    const before = steps.get(key)
    if (
      kind === 'held' ||
      kind === 'still' ||
      kind === 'cancel' ||
      before?.status === 'done' ||
      before?.status === 'failed'
    )
      continue
    const isFailure = kind === 'failed' || kind === 'error'
    const name = nameIn(key)
    steps.set(key, {
      key,
      name,
      path: pathIn(key),
      status: STATUS_OF[kind],
      startedAt: before?.startedAt ?? (begunMs === undefined ? undefined : new Date(begunMs)),
      at: new Date(atMs),
      dueAt: dueMs === undefined ? undefined : new Date(Math.min(dueMs, DATE_MS_MAX)),
      failures: (before?.failures ?? 0) + (isFailure ? 1 : 0),
      error: isFailure ? errorIn(frame) : before?.error,
      child: kind === 'done' && frame && name.startsWith('child(') ? (valueOf(frame) as string) : undefined,
    })
  }
  return [...steps.values()]
}
