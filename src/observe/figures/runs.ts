/**
 * Durable runs for who looks at a page: the definitions, the runs of one of them, and the steps of one run.
 *
 * Only what is open on the page is read, since a journal is read as a whole.
 */
import { type Kind, isObject, messageOf, oneLine, reasonOf } from '../../base/index.ts'
import type { RunInfo, RunPage, RunState } from '../../durable/index.ts'

/** Runs that are looked at: `await runs(fleet, { definitions })` of corespun/durable. */
export interface ObservedRuns {
  /** Those of the definitions. */
  readonly names: readonly string[]
  /** Returns a page of the runs of a definition. */
  list(name: string, options: { readonly itemsMax: number }): Promise<RunPage>
  /** Returns a run. */
  get(name: string, key: string): { state(): Promise<RunState> }
}

export const RUNS: Kind<readonly ObservedRuns[]> = {
  expected: 'an array of what runs() of corespun/durable returns',
  accepts: (all) =>
    Array.isArray(all) &&
    all.every((each: Partial<ObservedRuns> | null) => Array.isArray(each?.names) && isObject(each.get)),
  default: [],
}

/** A run in a list. */
export interface RunFigures {
  readonly key: string
  readonly status: string
  readonly startedMs: number
  /** Of one that has not ended, the time of the look. */
  readonly untilMs: number
}

/** A step of the run that is open. */
export interface StepFigures extends RunFigures {
  readonly failures: number
  /** Absent: it waits for no time. */
  readonly dueMs?: number
  /** What it has failed with last, as a line. */
  readonly error?: string
}

/** The run that is open. */
export interface OpenRun extends RunFigures {
  readonly resumedCount: number
  /** The process that has it. */
  readonly holder?: string
  readonly error?: string
  /** The last ones. */
  readonly steps: readonly StepFigures[]
}

/** What is looked at of durable runs. */
export interface RunsFigures {
  readonly names: readonly string[]
  /** The definition that is open. */
  readonly name?: string
  /** Its runs, the latest first, unless one is open. */
  readonly list: readonly RunFigures[]
  readonly run?: OpenRun
  /** Steps that are not among those of the run. */
  readonly stepsLeftOut: number
  /** What could not be read. */
  readonly problems: readonly string[]
}

const RUNS_MAX = 200
const STEPS_MAX = 200

/** @param name The definition that is open; @param key the run of it. */
export async function lookAtRuns(
  all: readonly ObservedRuns[],
  name: string | undefined,
  key: string | undefined,
): Promise<RunsFigures> {
  const names = all.flatMap((each) => each.names)
  const nothing = { names, list: [], stepsLeftOut: 0, problems: [] }
  const of = name === undefined ? undefined : all.find((each) => each.names.includes(name))
  if (name === undefined || of === undefined) return nothing
  try {
    if (key !== undefined) {
      const run = openRun(await of.get(name, key).state(), Date.now())
      const stepsLeftOut = Math.max(0, run.steps.length - STEPS_MAX)
      return { ...nothing, name, run: { ...run, steps: run.steps.slice(stepsLeftOut) }, stepsLeftOut }
    }
    const { items, next } = await of.list(name, { itemsMax: RUNS_MAX })
    const list = items.map((each) => figuresOf(each, Date.now()))
    const cut = `${name} has more runs: these are the first ${RUNS_MAX}, by key`
    list.sort((a, b) => b.startedMs - a.startedMs)
    return { ...nothing, name, list, problems: next === undefined ? [] : [cut] }
  } catch (error) {
    return { ...nothing, name, problems: [oneLine(messageOf(error))] }
  }
}

function figuresOf({ key, status, startedAt, endedAt }: RunInfo, nowMs: number): RunFigures {
  return { key, status, startedMs: startedAt.getTime(), untilMs: endedAt?.getTime() ?? nowMs }
}

const ENDS: ReadonlySet<string> = new Set(['done', 'failed', 'left'])

function openRun(state: RunState, nowMs: number): OpenRun {
  const run = figuresOf(state, nowMs)
  const begun = new Map(state.running.map(({ key, startedAt }) => [key, startedAt.getTime()]))
  const steps = state.steps.map(({ key, status, startedAt, at, dueAt, failures, error }): StepFigures => {
    const isRunning = begun.delete(key)
    return {
      key,
      status: isRunning ? 'running' : status,
      startedMs: (startedAt ?? at).getTime(),
      untilMs: ENDS.has(status) ? at.getTime() : run.untilMs,
      failures,
      ...(dueAt !== undefined && { dueMs: dueAt.getTime() }),
      ...(error !== undefined && { error: reasonOf(error) }),
    }
  })
  for (const [key, startedMs] of begun)
    steps.push({ key, status: 'running', startedMs, untilMs: run.untilMs, failures: 0 })
  const { resumedCount, holder, error } = state
  const at = holder === undefined ? {} : { holder: oneLine(holder) }
  return { ...run, resumedCount, ...at, ...(error !== undefined && { error: reasonOf(error) }), steps }
}
