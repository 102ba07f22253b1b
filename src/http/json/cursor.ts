/**
 * Where a reading of JSON is, and how it reads what every layout has: strings, numbers, true, false, null.
 *
 * It never says what is wrong with a text: whatever it does not take is a {@link MISS}, and the engine's own
 * parser has the last word. So it may be strict where that is simpler, but never lax.
 */
import { latin1At, utf8Of } from '../native-text.ts'

/**
 * Thrown when a text is not what was expected. No error: nobody looks at it, and a stack would be its price.
 */
export const MISS = Symbol('another layout')

const [QUOTE, PLUS, MINUS, DOT, ZERO, NINE, BACKSLASH, EXPONENT] = [34, 43, 45, 46, 48, 57, 92, 101]
/**
 * Slices of fewer characters are copies; a longer one would keep the whole text alive as long as it lives.
 */
const COPIED_CHARACTERS = 13
/** From so many characters on the engine looks for the end, and reads what is between. */
const LONG_CHARACTERS = 48
/** Strings with so many bytes are looked through here for what the engine would have to read. */
const LOOKED_THROUGH_BYTES = 192
/** Digits that a double holds exactly, whichever they are. */
const DIGITS_MAX = 15
/** The powers of ten that are exact: a whole number of 15 digits divided by one is rounded once. */
const POWERS = Array.from({ length: DIGITS_MAX + 1 }, (_, power) => 10 ** power)

const NONE = new Uint8Array()
/** The engine's own, whatever the application puts in its place later. */
const { parse } = JSON

/** See the file's text. Generated code moves `at` itself. */
export class Cursor {
  bytes: Uint8Array = NONE
  /** The bytes as text, a character for each: right for what is ASCII. */
  text = ''
  at = 0
  end = 0
  /** Strings and numbers of this text that the engine was asked about: it reads whole texts faster. */
  askedCount = 0

  /** Begin with `bytes`. */
  open(bytes: Uint8Array): void {
    this.bytes = bytes
    this.end = bytes.byteLength
    this.text = latin1At(bytes, 0, this.end)
    this.at = 0
    this.askedCount = 0
  }

  /** Forget them. */
  close(): void {
    this.bytes = NONE
    this.text = ''
  }

  /** The string, number, true, false or null that stands here. @throws {symbol} {@link MISS} */
  scalar(): unknown {
    const { bytes, at } = this
    const byte = at < this.end ? bytes[at]! : 0
    if (byte === QUOTE) return stringAt(this, at + 1)
    if (byte === MINUS || (byte >= ZERO && byte <= NINE)) return numberAt(this, at, byte)
    return wordAt(this, at, byte)
  }

  /** Whether these bytes stand there. */
  isAt(literal: Uint8Array, at: number): boolean {
    const { bytes } = this
    const length = literal.byteLength
    if (at + length > this.end) return false
    for (let index = 0; index < length; index += 1) if (bytes[at + index] !== literal[index]) return false
    return true
  }
}

function stringAt(cursor: Cursor, from: number): string {
  const { bytes } = cursor
  const end = Math.min(from + LONG_CHARACTERS, cursor.end)
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      cursor.at = at + 1
      const length = at - from
      return length < COPIED_CHARACTERS ? cursor.text.slice(from, at) : latin1At(bytes, from, length)
    }
    if (byte < 32 || byte > 126 || byte === BACKSLASH) break
  }
  return otherStringAt(cursor, from)
}

/** A string that is long, has escapes, or is beyond ASCII. */
function otherStringAt(cursor: Cursor, from: number): string {
  const { bytes, text } = cursor
  let at = text.indexOf('"', from)
  while (at !== -1 && isEscaped(bytes, from, at)) at = text.indexOf('"', at + 1)
  if (at === -1) throw MISS
  cursor.at = at + 1
  cursor.askedCount += 1
  const decoded = utf8Of(bytes, from, at)
  return isPlain(bytes, from, at) ? decoded : (asked(`"${decoded}"`) as string)
}

/** Whether it is short, and neither escapes nor control characters stand there. */
function isPlain(bytes: Uint8Array, from: number, end: number): boolean {
  if (end - from > LOOKED_THROUGH_BYTES) return false
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at]!
    if (byte < 32 || byte === BACKSLASH) return false
  }
  return true
}

/** Whether an odd number of backslashes stands before it. */
function isEscaped(bytes: Uint8Array, from: number, at: number): boolean {
  let before = at
  while (before > from && bytes[before - 1] === BACKSLASH) before -= 1
  return ((at - before) & 1) === 1
}

function numberAt(cursor: Cursor, from: number, first: number): number {
  const { bytes } = cursor
  const start = first === MINUS ? from + 1 : from
  let value = 0
  let at = start
  for (let digit = digitAt(bytes, at); digit >= 0; digit = digitAt(bytes, (at += 1)))
    value = value * 10 + digit
  let digitsCount = at - start
  // No digit, or a zero before others.
  if (digitsCount === 0 || (digitsCount > 1 && bytes[start] === ZERO)) throw MISS
  if (bytes[at] === DOT) {
    const point = at
    at += 1
    for (let digit = digitAt(bytes, at); digit >= 0; digit = digitAt(bytes, (at += 1)))
      value = value * 10 + digit
    const decimalsCount = at - point - 1
    if (decimalsCount === 0) throw MISS
    digitsCount += decimalsCount
    if (digitsCount <= DIGITS_MAX) value /= POWERS[decimalsCount]!
  }
  if (digitsCount > DIGITS_MAX || (bytes[at]! | 32) === EXPONENT) return rareNumberAt(cursor, from)
  cursor.at = at
  return first === MINUS ? -value : value
}

/** A number with an exponent, or of many digits. */
function rareNumberAt(cursor: Cursor, from: number): number {
  const { bytes, end } = cursor
  let at = from
  while (at < end && isOfNumber(bytes[at]!)) at += 1
  cursor.at = at
  cursor.askedCount += 1
  return asked(latin1At(bytes, from, at - from)) as number
}

/** A digit, a sign, a point or an exponent. */
function isOfNumber(byte: number): boolean {
  if (byte >= ZERO && byte <= NINE) return true
  return byte === MINUS || byte === PLUS || byte === DOT || (byte | 32) === EXPONENT
}

/** The digit there; less than 0 for anything else. */
function digitAt(bytes: Uint8Array, at: number): number {
  const digit = bytes[at]! - ZERO // not a number behind the end
  return digit <= 9 ? digit : -1
}

const [TRUE, FALSE] = [116, 102]
const WORDS: readonly (readonly [text: Uint8Array, value: boolean | null])[] = [
  [Buffer.from('true'), true],
  [Buffer.from('false'), false],
  [Buffer.from('null'), null],
]

function wordAt(cursor: Cursor, at: number, first: number): boolean | null {
  const [text, value] = WORDS[first === TRUE ? 0 : first === FALSE ? 1 : 2]!
  if (!cursor.isAt(text, at)) throw MISS
  cursor.at = at + text.byteLength
  return value
}

/** What the engine makes of a part that is rare. */
function asked(text: string): unknown {
  try {
    return parse(text)
  } catch {
    throw MISS // it says of the whole text what is wrong with it, and where
  }
}
