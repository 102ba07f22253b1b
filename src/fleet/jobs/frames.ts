/**
 * Errors of jobs as frames, each bounded, since several are kept with a job.
 *
 * They are those of far calls, of which a long one keeps its name, its code and the begin of its message.
 */
import { decode } from '../../transport/index.ts'
import { type FleetError, hasCode } from '../errors.ts'
import { errorFrame } from '../worker/task.ts'

const FRAME_BYTES_MAX = 4096
/** With three bytes to each, all of what is kept stays below {@link FRAME_BYTES_MAX}. */
const MESSAGE_CHARS_MAX = 500
const NAME_CHARS_MAX = 100

/** The frame of an error, bounded. */
export const frameOf = (error: unknown): Uint8Array => boundedFrame(errorFrame(error))

export function boundedFrame(frame: Uint8Array): Uint8Array {
  if (frame.length <= FRAME_BYTES_MAX) return frame
  const { name, message, code } = Object(thrownBy(frame)) as {
    name?: unknown
    message?: unknown
    code?: unknown
  }
  const short = new Error(String(message).slice(0, MESSAGE_CHARS_MAX))
  return errorFrame(
    Object.assign(short, {
      name: String(name).slice(0, NAME_CHARS_MAX),
      stack: undefined,
      ...(typeof code === 'string' && { code: code.slice(0, NAME_CHARS_MAX) }),
    }),
  )
}

/** Whether it is the error of a host whose module has no such function: nothing has run. */
export function isMissing(frame: Uint8Array, zone: string, name: string): boolean {
  const error = thrownBy(frame)
  if (!hasCode(error, 'EXPORT_MISSING')) return false
  const { facts } = error as FleetError<'EXPORT_MISSING'>
  return facts.zone === zone && facts.name === name // and not of a call that the function has made
}

/** What a frame of an error has; one of a class that is not registered here is described. */
export function thrownBy(frame: Uint8Array | undefined): unknown {
  if (frame === undefined) return undefined
  try {
    return decode(frame)
  } catch (error) {
    return error
  }
}
