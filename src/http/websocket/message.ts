/**
 * Checks of what programs send: messages, and the names of rooms.
 *
 * Anything that has bytes is sent as bytes; other values are refused, so that no object is sent as its name.
 */
import { type Kind, valueOfKind } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'

/** @throws {HttpError} `HTTP_ARGUMENT`. */
export function checkRoom(room: unknown, call: string): void {
  valueOfKind(call, 'room', room ?? null, ROOM, wrong)
}

const ROOM: Kind<string> = {
  expected: 'a name of 1 to 512 characters',
  accepts: (room) => typeof room === 'string' && room.length > 0 && room.length <= 512,
  default: '',
}

/**
 * A message as it is sent. @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function payloadOf(value: unknown, call: string): string | Uint8Array {
  if (typeof value === 'string' || value instanceof Uint8Array) return value
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return new Uint8Array(value)
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  throw wrong(`${call}: the message`, 'a string or bytes; of JSON, pass JSON.stringify(value)', value)
}
