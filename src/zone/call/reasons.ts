/**
 * The reason of a cancelled task on its way to `task.signal.reason`.
 *
 * Mail to a worker carries one number. It is that of a new abort signal, whose reason the core keeps until
 * the task has ended.
 */
import { Mail, native } from '../../native/index.ts'
import { processFrame, readFrame } from '../../transport/internal.ts'
import { ZoneError } from '../errors.ts'
import { canTravel, portable } from './portable.ts'
import { stackless } from './stacks.ts'

/** No reason given. */
export const UNSAID = 0
/** The zone closes. */
const CLOSING = 0xffff_ffff

/** Timers that end what a closing zone runs and has waiting, and abort its tasks a little earlier. */
export function endWithin(zoneNumber: number, timeoutMs: number, graceMs: number): NodeJS.Timeout[] {
  const warnMs = timeoutMs - Math.min(graceMs, timeoutMs / 2)
  return [
    setTimeout(() => native.zoneTell(zoneNumber, CLOSING), warnMs),
    setTimeout(() => {
      native.zoneRefuse(zoneNumber)
      native.kick(zoneNumber, Mail.closeNow)
    }, timeoutMs),
  ]
}

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

export function cancelReason(number: number, zone: string): unknown {
  if (number === CLOSING) return stackless(() => new ZoneError('ZONE_CLOSED', { zone }))
  const frame = number === UNSAID ? undefined : native.signalReason(number)
  if (frame === undefined) return new DOMException('The caller no longer waits', 'AbortError')
  return reasonIn(frame)
}

/** The reason in a frame, or the error of reading it. */
export function reasonIn(frame: Uint8Array): unknown {
  try {
    return readFrame(frame, 0, frame.length)
  } catch (error) {
    return error
  }
}

/** A reason as a frame, or the error of writing it. */
export function reasonFrame(reason: unknown): Uint8Array {
  try {
    return processFrame(reason)
  } catch (error) {
    // A reason's own code may throw what cannot travel either.
    return processFrame(canTravel(error) ? error : portable(error, error))
  }
}
