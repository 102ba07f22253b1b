/**
 * Values of users as they are kept: JSON where that reads back as the same value, so that whoever reads the
 * rows of an engine sees them, and a frame of the transport otherwise.
 *
 * It is one form and not both: JSON of a small value takes a fifth of the time of a frame.
 */
import { decode, encode } from '../transport/index.ts'

/** The text of a JSON value, or a frame. An empty text is `undefined`. */
export type Kept = string | Uint8Array

/** Larger ones are frames: nobody reads them in a row, and frames of numbers are smaller. */
const TEXT_CHARS_MAX = 32_768
const NODES_MAX = 2048
const DEPTH_MAX = 64

/** Of U+0000 and of halves of a pair, of which Postgres makes no text: who reads the row would fail. */
export const NO_TEXT = /\\u(?:0000|d)/

/** @throws What the transport refuses. */
export function keptOf(value: unknown): Kept {
  if (value === undefined) return ''
  if (!isJson(value)) return encode(value)
  const text = JSON.stringify(value)
  return text.length > TEXT_CHARS_MAX || NO_TEXT.test(text) ? encode(value) : text
}

/** A copy. @throws For a frame that cannot be read here. */
export function valueOf(kept: Kept | undefined): unknown {
  if (kept === undefined || kept === '') return undefined
  return typeof kept === 'string' ? JSON.parse(kept) : decode(kept)
}

/** What it takes at most: a text is UTF-8 in JSON, and may be UTF-16 in a row that is a frame. */
export function bytesIn(kept: Kept): number {
  if (typeof kept !== 'string') return kept.length
  const bytes = Buffer.byteLength(kept)
  return bytes === kept.length ? bytes : Math.max(bytes, 2 * kept.length)
}

export const isSame = (one: Kept, other: Kept): boolean =>
  typeof one === 'string' || typeof other === 'string' ? one === other : Buffer.compare(one, other) === 0

interface Walk {
  readonly seen: Set<object>
  left: number
  chars: number
}

/** Whether its JSON reads back as the same value; an object that is in it twice would be two. */
export function isJson(value: unknown): boolean {
  return isPart(value, { seen: new Set(), left: NODES_MAX, chars: TEXT_CHARS_MAX }, 0)
}

function isPart(part: unknown, walk: Walk, depth: number): boolean {
  if (walk.left-- === 0) return false
  if (typeof part === 'string') return (walk.chars -= part.length) >= 0
  if (typeof part === 'number') return Number.isFinite(part) && !Object.is(part, -0)
  if (part === null || typeof part === 'boolean') return true
  if (typeof part !== 'object' || depth > DEPTH_MAX || walk.seen.has(part)) return false
  walk.seen.add(part)
  // Not among its names, JSON.stringify() would call it all the same.
  if (typeof (part as { toJSON?: unknown }).toJSON === 'function') return false
  const prototype: unknown = Object.getPrototypeOf(part)
  if (Array.isArray(part)) {
    if (prototype !== Array.prototype || part.length > walk.left) return false
    if (Object.keys(part).length !== part.length) return false
    // With a hole, and a property beside, the value of an index is undefined.
    for (let index = 0; index < part.length; index++) if (!isPart(part[index], walk, depth + 1)) return false
    return true
  }
  // A view has a name for each of its bytes.
  if (prototype !== Object.prototype || Object.getOwnPropertySymbols(part).length > 0) return false
  const names = Object.keys(part)
  return (
    names.length <= walk.left &&
    names.every((name) => isPart((part as Record<string, unknown>)[name], walk, depth + 1))
  )
}
