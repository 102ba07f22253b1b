/**
 * Why a task was given up, on its way to the task: what `task.signal.reason` says.
 *
 * A worker is told by mail, which has room for one number. It is that of an abort signal made for the
 * occasion, whose reason the core keeps until the task has come home.
 */
import { native } from '../../native/index.ts'
import { processFrame, readFrame } from '../../transport/internal.ts'
import { ZoneError } from '../errors.ts'
import { canTravel, portable } from './portable.ts'
import { stackless } from './stacks.ts'

/** Nobody said why. */
export const UNSAID = 0
/** The zone closes. */
export const CLOSING = 0xffff_ffff

/** Keep a reason in the core, until {@link forgetReason}; its number. */
export function keepReason(reason: unknown): number {
  const number = native.signalMake()
  native.signalFire(number, reasonFrame(reason))
  return number
}

/** Its task is over. */
export function forgetReason(number: number): void {
  if (number !== UNSAID) native.signalForget(number)
}

/** The reason of a number, in the thread that was told it. */
export function reasonOf(number: number, zone: string): unknown {
  if (number === CLOSING) return stackless(() => new ZoneError('ZONE_CLOSED', { zone }))
  const frame = number === UNSAID ? undefined : native.signalReason(number)
  if (frame === undefined) return new DOMException('The caller no longer waits', 'AbortError')
  return reasonIn(frame)
}

/** The reason in a frame; what says why, where this thread cannot read it. */
export function reasonIn(frame: Uint8Array): unknown {
  try {
    return readFrame(frame, 0, frame.length)
  } catch (error) {
    return error
  }
}

/** A reason as a frame; one that cannot travel arrives as what says so. */
export function reasonFrame(reason: unknown): Uint8Array {
  try {
    return processFrame(reason)
  } catch (error) {
    // A reason's own code may throw what cannot travel either.
    return processFrame(canTravel(error) ? error : portable(error, error))
  }
}
