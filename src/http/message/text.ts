/**
 * Text to bytes and back, without allocating buffers.
 *
 * Short texts are copied character by character, which costs less than a call into the engine.
 */
import { rawText } from '../../transport/internal.ts'

const { latin1Write, utf8Write, latin1Slice, utf8Slice } = rawText

/** Longest text that is copied character by character. */
const COPY_MAX = 6

/** Write `text` as UTF-8 at `at`, where three bytes per character are free. Returns its length in bytes. */
export function putUtf8(bytes: Uint8Array, text: string, at: number): number {
  const length = text.length
  if (length > COPY_MAX) return utf8Write.call(bytes, text, at, length * 3)
  for (let index = 0; index < length; index++) {
    const unit = text.charCodeAt(index)
    if (unit > 127) return utf8Write.call(bytes, text, at, length * 3)
    bytes[at + index] = unit
  }
  return length
}

export function putLatin1(bytes: Uint8Array, text: string, at: number): void {
  const length = text.length
  if (length > COPY_MAX) latin1Write.call(bytes, text, at, length)
  else for (let index = 0; index < length; index++) bytes[at + index] = text.charCodeAt(index)
}

export function latin1At(bytes: Uint8Array, at: number, length: number): string {
  return latin1Slice.call(bytes, at, at + length)
}

/** A body as UTF-8 text: malformed bytes become U+FFFD, a byte order mark is removed. */
export function decodeUtf8(bytes: Uint8Array): string {
  const text = utf8Slice.call(bytes)
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

/** Compare the bytes at `at` with `name`, which is in lower case, ignoring their case. */
export function isName(bytes: Uint8Array, at: number, name: string): boolean {
  for (let index = 0; index < name.length; index++) {
    const byte = bytes[at + index]
    const lower = byte >= 65 && byte <= 90 ? byte | 32 : byte
    if (lower !== name.charCodeAt(index)) return false
  }
  return true
}

/** Text that is known to be valid, with its byte order mark if it has one. */
export function utf8At(bytes: Uint8Array, at: number, length: number): string {
  return utf8Slice.call(bytes, at, at + length)
}

/** A hash as text. Node's module for it, and the fifty below it, are loaded by the first call. */
export function sha256(text: string): string {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(text).digest('base64url')
}
