/**
 * Characters in and out of bytes: Latin-1 where all of a chunk fits, else UTF-16, so that lone surrogates
 * survive.
 *
 * The fast calls are methods that Node's Buffer has had since its beginning and that its types do not
 * mention; they work on any Uint8Array and take no time for short texts.
 */
import type { Position } from './sink.ts'

interface RawText {
  latin1Write(text: string, at: number, bytes: number): number
  ucs2Write(text: string, at: number, bytes: number): number
  utf8Write(text: string, at: number, bytes: number): number
  latin1Slice(start: number, end: number): string
  ucs2Slice(start: number, end: number): string
  utf8Slice(start?: number, end?: number): string
}

export const rawText = Buffer.prototype as unknown as RawText
const { latin1Write, ucs2Write, latin1Slice, ucs2Slice } = rawText

/** Up to this many characters are copied one by one: the call out of JavaScript costs more. */
const COPY_MAX = 8
/** The same of characters that are written, of which a call needs two: one looks for wide ones. */
const WRITE_COPY_MAX = 16
/** Takes one comparison where the engine stores one byte per character; else it looks at each. */
const isWide = /[^\0-\xff]/

/**
 * Write a chunk: u32 of twice its characters plus 1 when they take two bytes, then the characters. Nothing is
 * written behind the end of `bytes`; the position returned then lies behind it.
 */
export function writeText(bytes: Uint8Array, text: string, at: Position): Position {
  const length = text.length
  if (length <= WRITE_COPY_MAX) {
    let index = 0
    for (; index < length; index++) {
      const character = text.charCodeAt(index)
      if (character > 255) return writeWide(bytes, text, at)
      bytes[at + 4 + index] = character
    }
    return writeHead(bytes, at, length * 2) + length
  }
  const wide = isWide.test(text)
  const bytesLength = wide ? length * 2 : length
  if (at + 4 + bytesLength <= bytes.length) {
    if (wide) ucs2Write.call(bytes, text, at + 4, bytesLength)
    else latin1Write.call(bytes, text, at + 4, bytesLength)
  }
  return writeHead(bytes, at, length * 2 + (wide ? 1 : 0)) + bytesLength
}

/** A short chunk of two bytes per character. */
function writeWide(bytes: Uint8Array, text: string, at: Position): Position {
  const { length } = text
  let end = writeHead(bytes, at, length * 2 + 1)
  for (let index = 0; index < length; index++) {
    const character = text.charCodeAt(index)
    bytes[end] = character
    bytes[end + 1] = character >> 8
    end += 2
  }
  return end
}

function writeHead(bytes: Uint8Array, at: Position, head: number): Position {
  bytes[at] = head
  bytes[at + 1] = head >>> 8
  bytes[at + 2] = head >>> 16
  bytes[at + 3] = head >>> 24
  return at + 4
}

/** The characters in `bytes` from `start`, of which `length` bytes are theirs. */
export function readText(bytes: Uint8Array, start: number, length: number, wide: boolean): string {
  if (wide) return ucs2Slice.call(bytes, start, start + length)
  return length <= COPY_MAX ? shortText(bytes, start, length) : latin1Slice.call(bytes, start, start + length)
}

function shortText(bytes: Uint8Array, at: number, length: number): string {
  const make = String.fromCharCode
  const [a, b, c, d] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
  switch (length) {
    case 0:
      return ''
    case 1:
      return make(a)
    case 2:
      return make(a, b)
    case 3:
      return make(a, b, c)
    case 4:
      return make(a, b, c, d)
    case 5:
      return make(a, b, c, d, bytes[at + 4])
    case 6:
      return make(a, b, c, d, bytes[at + 4], bytes[at + 5])
    case 7:
      return make(a, b, c, d, bytes[at + 4], bytes[at + 5], bytes[at + 6])
    default:
      return make(a, b, c, d, bytes[at + 4], bytes[at + 5], bytes[at + 6], bytes[at + 7])
  }
}
