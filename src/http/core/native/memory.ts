/**
 * Where the heads of requests are: in the region that the core reuses for the next batch, then in a copy.
 *
 * Whoever has a request may read it at any time, and whether somebody still has it is known to the garbage
 * collector alone. Therefore all heads of a batch are copied when it ends, in one piece, as text: strings are
 * made on the collector's heap, where those that nobody has cost nothing. A request that is read later takes
 * its part out. Bodies are left out.
 */
import { FIELD_WORDS, REQUEST_WORDS, Request } from '../../message/layout.ts'
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
  /** The same as text, once the region has another batch. */
  #text: Text | undefined

  constructor(words: Int32Array, shift: number, bytes: Uint8Array, base: number) {
    this.words = words
    this.shift = shift
    this.bytes = bytes
    this.base = base
    this.#text = undefined
  }

  /** Where the request is whose record began at word `at`: here, or in a copy that is its own. */
  of(at: number): Memory {
    return this.#text === undefined ? this : own(this.#text, at)
  }

  store(text: Text): void {
    this.#text = text
  }
}

/** The words and the bytes of a group, and where they began in the region. */
interface Text {
  readonly words: string
  readonly shift: number
  readonly bytes: string
  readonly base: number
}

function own({ words, shift, bytes, base }: Text, at: number): Memory {
  const all = new Int32Array(bytesOf(words).buffer)
  const record = at - shift
  const wordsEnd = record + REQUEST_WORDS + all[record + Request.fields] * FIELD_WORDS
  const end = all[record + Request.bodyAt]
  const from = end - all[record + Request.headBytes]
  return new Memory(all.slice(record, wordsEnd), at, bytesOf(bytes.slice(from - base, end - base)), from)
}

function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  putLatin1(bytes, text, 0)
  return bytes
}

/** Heads of a batch that lie side by side. */
interface Group {
  readonly memory: Memory
  readonly wordsFrom: number
  wordsEnd: number
  readonly from: number
  end: number
}

/** The heads of the current batch. */
export class Heads {
  readonly #words: Int32Array
  readonly #bytes: Uint8Array
  readonly #groups: Group[] = []
  #group: Group | undefined

  /** @param bytes The region. @param words The same as words. */
  constructor(bytes: Uint8Array, words: Int32Array) {
    this.#bytes = bytes
    this.#words = words
  }

  /** The memory of the request whose record begins at word `at`, behind those before. */
  of(at: number): Memory {
    const words = this.#words
    const end = words[at + Request.bodyAt]
    const from = end - words[at + Request.headBytes]
    const wordsEnd = at + REQUEST_WORDS + words[at + Request.fields] * FIELD_WORDS
    const group = this.#group
    if (group !== undefined && from >= group.end && from - group.end <= GAP_BYTES_MAX) {
      group.end = end
      group.wordsEnd = wordsEnd
      return group.memory
    }
    const memory = new Memory(words, 0, this.#bytes, 0)
    this.#groups.push((this.#group = { memory, wordsFrom: at, wordsEnd, from, end }))
    return memory
  }

  /** The batch ends: copies its heads, before the core writes the next one. */
  copy(): void {
    this.#group = undefined
    for (let group = this.#groups.pop(); group !== undefined; group = this.#groups.pop()) {
      const { memory, wordsFrom, wordsEnd, from, end } = group
      const words = latin1At(this.#bytes, wordsFrom * 4, (wordsEnd - wordsFrom) * 4)
      memory.store({ words, shift: wordsFrom, bytes: latin1At(this.#bytes, from, end - from), base: from })
    }
  }
}
