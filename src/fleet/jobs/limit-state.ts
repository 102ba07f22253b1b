/**
 * What all hosts share of one limit of jobs: who has a slot, who is next, and when the last ones have begun.
 *
 * It is one value, written by revision, so of several hosts that admit at once one does. Its size does not
 * grow with the jobs that wait: each draws a turn, a number, and a value of its own has the job of that turn.
 *
 * ```text
 *  lent ─▶ a slot is free, and nobody waits ─▶ has a slot ─▶ ends: the next turn is called
 *    │                                            ▲
 *    ▼                                            │ its item is lent
 *  draws a turn, and is returned to the queue ─▶ called: the slot is kept for it, for some time
 * ```
 *
 * What may be done twice, since a write that was not confirmed is repeated, changes nothing the second time,
 * or draws a turn that is called in vain. Times are the server's.
 */
import { RATE_JOBS_MAX } from '../job-settings.ts'
import { readParts, written } from '../wire.ts'

/** A limit, as its jobs have it; 0: none. */
export interface JobLimit {
  /** Whose limit it is, as a tenant; empty: that of all jobs without one. */
  readonly per: string
  /** Most of its jobs that run at once. */
  readonly concurrency: number
  /** Most of its jobs that begin in any span of `perMs`. */
  readonly jobs: number
  readonly perMs: number
}

/** The key of a job that runs, or the turn that was called; who has admitted it; and when that is over. */
type Held = readonly [of: string | number, by: string, untilMs: number]

export interface LimitState {
  readonly held: readonly Held[]
  /** When the last jobs have begun, the latest last. */
  readonly begun: readonly number[]
  /** Until when the rate is promised to jobs that wait for it. */
  readonly promisedMs: number
  /** The turn that is called next, and the one that is drawn next; the same: nobody waits. */
  readonly first: number
  readonly next: number
}

export const NO_STATE: LimitState = { held: [], begun: [], promisedMs: 0, first: 1, next: 1 }

/** For so many leases a slot is held without being extended: its host ends the job after one. */
const HELD_LEASES = 1.5
/** For so many leases a slot is kept for a turn that was called, until its job is lent. */
const CALLED_LEASES = 3
/** A job that waits looks by itself after so many leases, and one more for each before it, up to an hour. */
const LOOK_LEASES = 2
const LOOK_MS_MAX = 3_600_000

/** Who changes it, and when. */
export interface Change {
  /** The host. */
  readonly by: string
  readonly limit: JobLimit
  readonly leaseMs: number
  readonly nowMs: number
}

/** A job that was lent. */
export interface Entering {
  readonly key: string
  /** Of this attempt; unique. */
  readonly id: string
  /** The turn that it was called by; 0: none. */
  readonly turn: number
  /** Whether it was lent for the first time. */
  readonly isFirst: boolean
}

/** Whether it may begin; otherwise it looks again by itself after `waitMs`. */
export interface Verdict {
  readonly waitMs: number | undefined
  /** What it has drawn; 0: nothing. */
  readonly turn: number
}

type Changed<Result> = readonly [state: LimitState, result: Result]

/** A job may begin, or waits. */
export function entered(from: LimitState, entering: Entering, change: Change): Changed<Verdict> {
  const { limit, leaseMs, nowMs } = change
  const { key, id, turn } = entering
  let state = inTime(from, nowMs)
  const is = (of: string | number) => (held: Held) => held[0] === of
  const [again, kept] = extended(state, new Set([id]), change)
  if (kept.size > 0) return [again, { waitMs: undefined, turn: 0 }]
  // Another host may run it still: that one ends it before its slot is over.
  const called = turn > 0 ? state.held.find(is(turn)) : undefined
  const before = state.held.find(is(key))
  if (before !== undefined) {
    const held = state.held.filter((one) => one !== called)
    return [withCalled({ ...state, held }, change), { waitMs: before[2] - nowMs, turn: 0 }]
  }
  if (called === undefined && limit.concurrency > 0) {
    state = withCalled(state, change)
    if (state.first < state.next || state.held.length >= limit.concurrency) {
      const waitMs = Math.min(LOOK_MS_MAX, leaseMs * (LOOK_LEASES + state.next - state.first))
      return [
        { ...state, next: state.next + 1 },
        { waitMs, turn: state.next },
      ]
    }
  }
  const others = state.held.filter((held) => held !== called)
  const [rated, waitMs] = beginning(state, entering, change)
  if (waitMs > 0) {
    const untilMs = nowMs + waitMs + CALLED_LEASES * leaseMs
    const held = called === undefined ? others : [...others, [turn, change.by, untilMs] as const]
    return [
      { ...rated, held },
      { waitMs, turn: 0 },
    ]
  }
  const own: Held[] = limit.concurrency > 0 ? [[key, id, heldUntil(change)]] : []
  return [
    { ...rated, held: [...others, ...own] },
    { waitMs: undefined, turn: 0 },
  ]
}

/** Counts the begin of a job, or states how long it waits for the rate. */
function beginning(state: LimitState, { isFirst }: Entering, { limit, nowMs }: Change): Changed<number> {
  const { jobs, perMs } = limit
  if (jobs === 0) return [state, 0]
  const begun = state.begun.filter((ms) => ms > nowMs - perMs)
  const overMs = begun.length < jobs ? 0 : begun[begun.length - jobs] + perMs - nowMs
  // One that was returned for this has had its promise; one that comes first waits behind those.
  if (overMs > 0 || (isFirst && state.promisedMs > nowMs)) {
    const soonest = nowMs + overMs
    const promisedMs = isFirst ? Math.max(soonest, state.promisedMs + perMs / jobs) : soonest
    return [
      { ...state, begun, promisedMs: Math.max(promisedMs, state.promisedMs) },
      Math.max(1, promisedMs - nowMs),
    ]
  }
  const latest = Math.max(nowMs, begun.at(-1) ?? 0)
  return [{ ...state, begun: [...begun, latest].slice(-RATE_JOBS_MAX) }, 0]
}

/** A job does not run any more, or a turn was called in vain. */
export function left(from: LimitState, of: string | number, by: string, change: Change): Changed<void> {
  const held = from.held.filter((each) => each[0] !== of || each[1] !== by)
  return [withCalled(inTime({ ...from, held }, change.nowMs), change), undefined]
}

/** Jobs run on: those that have their slot still. */
export function extended(from: LimitState, ids: ReadonlySet<string>, change: Change): Changed<Set<string>> {
  const kept = new Set<string>()
  const untilMs = heldUntil(change)
  const held = from.held.map((each): Held => {
    if (!ids.has(each[1])) return each
    kept.add(each[1])
    return [each[0], each[1], untilMs]
  })
  return [{ ...from, held }, kept]
}

const heldUntil = ({ nowMs, leaseMs }: Change): number => nowMs + HELD_LEASES * leaseMs

/** Without those whose host was lost, and whose turn was called in vain. */
function inTime(state: LimitState, nowMs: number): LimitState {
  return { ...state, held: state.held.filter(([, , untilMs]) => untilMs > nowMs) }
}

/** Free slots are kept for those that have waited longest. */
function withCalled(state: LimitState, { by, limit, leaseMs, nowMs }: Change): LimitState {
  let { first } = state
  const held = [...state.held]
  while (first < state.next && held.length < limit.concurrency)
    held.push([first++, by, nowMs + CALLED_LEASES * leaseMs])
  return { ...state, held, first }
}

/** The turns that this host has called. */
export const calledBy = ({ held }: LimitState, host: string): number[] =>
  held.flatMap(([of, by]) => (typeof of === 'number' && by === host ? [of] : []))

export const writeLimit = (state: LimitState): Uint8Array => written('limit', state)

/** What is not a state is read as none. */
export function readLimit(bytes: Uint8Array | undefined): LimitState {
  const [kind, state] = (bytes && readParts(bytes)) ?? []
  if (kind !== 'limit') return NO_STATE
  const { held, begun, promisedMs, first, next } = Object(state) as LimitState
  const numbers = [promisedMs, first, next, ...(Array.isArray(begun) ? begun : [NaN])]
  const isWhole = numbers.every(Number.isFinite) && Array.isArray(held) && held.every(isHeld)
  return isWhole ? { held, begun, promisedMs, first, next } : NO_STATE
}

function isHeld(held: unknown): boolean {
  const [of, by, untilMs] = Array.isArray(held) ? (held as unknown[]) : []
  return (typeof of === 'string' || Number.isFinite(of)) && typeof by === 'string' && Number.isFinite(untilMs)
}
