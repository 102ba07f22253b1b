/**
 * Where the heads of requests are: in the region that the core reuses for the next batch, then in a copy.
 *
 * Whoever has a request may read it at any time, and whether somebody still has it is known to the garbage
 * collector alone. Therefore all heads of a batch are copied when it ends, in one piece, as text: strings are
 * made on the collector's heap, where those that nobody has cost nothing. A request that is read later takes
 * its part out. Bodies are left out.
 */
import {
  EVENT_WORDS,
  Event,
  FIELD_WORDS,
  HEADER_BYTES,
  Inbound,
  Request,
  Message,
} from '../../message/layout.ts'
import { latin1At, putLatin1 } from '../../message/text.ts'

/** Bytes between two heads that are copied with them, rather than in a piece of their own. */
const GAP_BYTES_MAX = 1024

/** The records and the bytes of some requests. The offsets in a record remain those of the region. */
export class Memory {
  readonly words: Int32Array
  /** Index in the region of the word that `words` begins with. */
  readonly shift: number
  readonly bytes: Uint8Array
  /** Offset in the region of the byte that `bytes` begins with. */
  readonly base: number
  /** The pieces of a batch that has ended, in the order of their records. */
  #pieces: Piece[] | undefined

  constructor(words: Int32Array, shift: number, bytes: Uint8Array, base: number) {
    this.words = words
    this.shift = shift
    this.bytes = bytes
    this.base = base
    this.#pieces = undefined
  }

  /** Where the request is whose record began at word `at`: here, or in a copy that is its own. */
  of(at: number): Memory {
    return this.#pieces === undefined ? this : own(this.#pieces, at)
  }

  /** The batch ends: copies its heads, before the core writes the next one. */
  close(): void {
    const { words } = this
    const pieces: Piece[] = []
    let first = 0
    let last = 0
    let from = 0
    let end = 0
    let at = HEADER_BYTES / 4
    for (let left = words[Inbound.count]; left > 0; left--) {
      const next = at + wordsOf(words, at)
      if ((words[at] & 0xff) === Event.request) {
        const headEnd = words[at + Request.bodyAt]
        const head = headEnd - words[at + Request.headBytes]
        if (first === 0 || head < end || head - end > GAP_BYTES_MAX) {
          if (first > 0) pieces.push(this.#piece(first, last, from, end))
          first = at
          from = head
        }
        last = next
        end = headEnd
      }
      at = next
    }
    pieces.push(this.#piece(first, last, from, end))
    this.#pieces = pieces
  }

  /** A copy of those words and bytes. */
  #piece(first: number, last: number, from: number, end: number): Piece {
    const words = latin1At(this.bytes, first * 4, (last - first) * 4)
    return { words, shift: first, bytes: latin1At(this.bytes, from, end - from), base: from }
  }
}

/** How many words the record at `at` has. */
export function wordsOf(words: Int32Array, at: number): number {
  const kind = words[at] & 0xff
  if (kind === Event.request) return Request.words + words[at + Request.fields] * FIELD_WORDS
  return kind === Event.message || kind === Event.closing ? Message.words : EVENT_WORDS
}

/** Records and heads that lay side by side, as text, and where they began in the region. */
interface Piece {
  readonly words: string
  readonly shift: number
  readonly bytes: string
  readonly base: number
}

function own(pieces: Piece[], at: number): Memory {
  const { words, shift, bytes, base } = pieces.findLast((piece) => piece.shift <= at)!
  const all = new Int32Array(bytesOf(words).buffer)
  const record = at - shift
  const end = all[record + Request.bodyAt]
  const from = end - all[record + Request.headBytes]
  const head = bytesOf(bytes.slice(from - base, end - base))
  return new Memory(all.slice(record, record + wordsOf(all, record)), at, head, from)
}

function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  putLatin1(bytes, text, 0)
  return bytes
}
