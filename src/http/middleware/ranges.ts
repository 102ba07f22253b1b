/**
 * Conditions and ranges of a request for something that has an ETag and a date (RFC 9110, 13 and 14).
 *
 * Pure: decides what to send from the fields of a request and the validators of the resource. The response to
 * a request for several ranges is the whole resource, which the standard allows and every client accepts.
 */

export interface Validators {
  /** With its quotes, strong. */
  readonly etag: string
  /** In ms since 1970. */
  readonly modifiedMs: number
  /** Whether the date, in seconds, is that of this version alone (RFC 9110, 8.8.2.2). */
  readonly isDateStrong: boolean
  readonly bytes: number
}

/** What to send: the whole, a part (`end` is not in it), nothing new, or that it cannot be. */
export type Decision =
  | { readonly status: 200 }
  | { readonly status: 206; readonly start: number; readonly end: number }
  | { readonly status: 304 | 412 | 416 }

type Field = (name: string) => string | null

/** Decide; `method` is GET or HEAD. */
export function decide(method: string, field: Field, there: Validators): Decision {
  const isCurrent = preconditions(field, there)
  if (isCurrent !== undefined) return { status: isCurrent }
  const range = method === 'GET' ? field('range') : null
  if (range === null || !isSameAs(field('if-range'), there)) return { status: 200 }
  return partOf(range, there.bytes)
}

/** In the order of RFC 9110, 13.2.2. */
function preconditions(field: Field, there: Validators): 304 | 412 | undefined {
  const ifMatch = field('if-match')
  const ifUnmodified = field('if-unmodified-since')
  if (ifMatch !== null) {
    // Strong comparison: a weak tag matches nothing.
    if (!listed(ifMatch, there.etag, false)) return 412
  } else if (ifUnmodified !== null && isModifiedSince(ifUnmodified, there) === true) return 412
  const ifNone = field('if-none-match')
  const ifModified = field('if-modified-since')
  if (ifNone !== null) return listed(ifNone, there.etag, true) ? 304 : undefined
  if (ifModified !== null && isModifiedSince(ifModified, there) === false) return 304
  return undefined
}

function listed(list: string, etag: string, weakly: boolean): boolean {
  if (list.trim() === '*') return true
  for (const [, weak, tag] of list.matchAll(/(W\/)?("[^"]*")/g)) {
    if (tag === etag && (weakly || weak === undefined)) return true
  }
  return false
}

/** Returns `undefined` if `date` is not an HTTP date; the field is then ignored. */
function isModifiedSince(date: string, there: Validators): boolean | undefined {
  const ms = Date.parse(date)
  if (Number.isNaN(ms) || !date.trim().endsWith('GMT')) return undefined
  return Math.floor(there.modifiedMs / 1000) > Math.floor(ms / 1000)
}

function isSameAs(ifRange: string | null, there: Validators): boolean {
  if (ifRange === null) return true
  if (ifRange.includes('"')) return ifRange.trim() === there.etag
  return there.isDateStrong && Date.parse(ifRange) === Math.floor(there.modifiedMs / 1000) * 1000
}

function partOf(range: string, bytes: number): Decision {
  const match = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(range)
  const [first, last] = [match?.[1] ?? '', match?.[2] ?? '']
  if (first === '' && last === '') return { status: 200 } // several ranges, other units, or nonsense
  if (first === '') {
    const count = Math.min(Number(last), bytes)
    return count === 0 ? { status: 416 } : { status: 206, start: bytes - count, end: bytes }
  }
  const start = Number(first)
  const end = last === '' ? bytes : Math.min(Number(last) + 1, bytes)
  if (last !== '' && Number(last) < start) return { status: 200 } // not a range at all
  return start >= bytes ? { status: 416 } : { status: 206, start, end }
}
