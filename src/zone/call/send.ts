/**
 * What a call takes with it, and the limit that it inherits.
 *
 * A call has the time that the code which makes it has left, or less by its own `timeoutMs`. So no call
 * outlives the one it is part of, in whichever thread.
 */
import type { CallLimits } from './call.ts'
import { ZoneError } from '../errors.ts'
import { here } from '../ground/current.ts'
import { type Taken, nowMs, remainingMsOf } from '../ground/record.ts'

/** Node's timers may end so much early: who continues then has no time left. */
const TIMER_EARLY_MS = 1
export const NOTHING_TAKEN: Taken = { record: undefined, timeoutMs: undefined, isInherited: false }
const NOTHING_RECORDED = { carried: undefined, cpu: undefined }

/**
 * What a call of the calling code takes with it; `undefined` for nothing.
 * @param limits Those of the call itself.
 */
export function takenFor(limits: CallLimits): Taken | undefined {
  const { timeoutMs, deadlineMs, taken } = limits
  // Not what a program has put on `Object.prototype`.
  if (taken !== undefined && Object.hasOwn(limits, 'taken')) return taken
  if (deadlineMs === undefined || !Object.hasOwn(limits, 'deadlineMs')) {
    return timeoutMs === undefined ? takenHere() : takenBy(timeoutMs)
  }
  const inherited = here.carrier?.record()
  if (inherited !== undefined && timerMsOf(inherited.deadlineMs) === 0)
    return { record: inherited, timeoutMs: 0, isInherited: true }
  const { carried, cpu } = inherited ?? NOTHING_RECORDED
  const earliestMs = Math.min(deadlineMs, inherited?.deadlineMs ?? Infinity)
  // The whole has a timer for it.
  return { record: { deadlineMs: earliestMs, carried, cpu }, timeoutMs, isInherited: false }
}

/** {@link takenFor} of a call without limits of its own. */
function takenHere(): Taken | undefined {
  const record = here.carrier?.record()
  if (record === undefined) return undefined
  const { carried, deadlineMs } = record
  if (record === carried?.alone) return carried.taken
  return { record, timeoutMs: timerMsOf(deadlineMs), isInherited: true }
}

function takenBy(timeoutMs: number): Taken {
  const inherited = here.carrier?.record()
  const leftMs = inherited === undefined ? undefined : timerMsOf(inherited.deadlineMs)
  if (leftMs !== undefined && leftMs < timeoutMs)
    return { record: inherited, timeoutMs: leftMs, isInherited: true }
  const { carried, cpu } = inherited ?? NOTHING_RECORDED
  const record = { deadlineMs: nowMs() + timeoutMs, carried, cpu }
  return { record, timeoutMs, isInherited: false }
}

/** The shorter of a limit and what the calling code has left. */
export function shorterMs(timeoutMs: number | undefined): number | undefined {
  const { carrier } = here
  if (carrier === undefined) return timeoutMs
  const leftMs = timerMsOf(carrier.deadlineMs())
  return leftMs === undefined || (timeoutMs !== undefined && timeoutMs <= leftMs) ? timeoutMs : leftMs
}

/**
 * {@link shorterMs} of a broadcast.
 * @throws {ZoneError} `BROADCAST_TIMEOUT` when the calling code has no time left.
 */
export function broadcastMs(zone: string, givenMs: number | undefined): number | undefined {
  const timeoutMs = shorterMs(givenMs)
  if (timeoutMs === 0 && givenMs !== 0) throw new ZoneError('BROADCAST_TIMEOUT', { zone, timeoutMs })
  return timeoutMs
}

/** What is left, for a timer and an error's sentence. */
function timerMsOf(deadlineMs: number): number | undefined {
  const leftMs = remainingMsOf(deadlineMs)
  if (leftMs === undefined) return undefined
  return leftMs <= TIMER_EARLY_MS ? 0 : Math.ceil(leftMs)
}
