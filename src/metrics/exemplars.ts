/**
 * Exemplars: for each bucket of a histogram the last value that was part of a trace, and which.
 *
 * They lie in the sheet of their thread, in cells behind those that count. Readers do not stop the writer: a
 * number that is odd while it writes shows them that what they have read is not whole, and they leave it out.
 */

export interface Exemplar {
  readonly value: number
  /** When, in seconds since 1970. */
  readonly atS: number
  /** In hexadecimal digits, 32 and 16 of them. */
  readonly traceId: string
  readonly spanId: string
}

/** Words of one: its turn, the two ids; the value and the time, which are doubles. */
const Word = { turn: 0, ids: 1, numbers: 8, all: 12 } as const
const ID_WORDS = 6

/** Cells of 64 bits for a histogram with so many buckets. */
export function exemplarCells(buckets: number): number {
  return (buckets * Word.all) / 2
}

/** Those of a series of this thread. */
export class Exemplars {
  /** `undefined`: the sheet has no memory for them. */
  readonly #words: Int32Array | undefined
  readonly #bounds: readonly number[]
  readonly #numbers = new Float64Array(2)
  readonly #numberWords = new Int32Array(this.#numbers.buffer)

  constructor(words: Int32Array | undefined, bounds: readonly number[]) {
    this.#words = words
    this.#bounds = bounds
  }

  /** Replaces the one of the bucket that the value belongs to. */
  put(value: number, traceId: string, spanId: string): void {
    const words = this.#words
    if (words === undefined) return
    const above = this.#bounds.findIndex((bound) => value <= bound)
    const start = (above < 0 ? this.#bounds.length : above) * Word.all
    const id = traceId + spanId
    this.#numbers.set([value, Date.now() / 1000])
    // Each is sequentially consistent, so a reader that has seen a part of this sees another turn.
    // The one before may have been stopped while it wrote.
    const turn = (Atomics.load(words, start + Word.turn) & ~1) + 1
    Atomics.store(words, start + Word.turn, turn)
    for (let index = 0; index < ID_WORDS; index++)
      Atomics.store(
        words,
        start + Word.ids + index,
        Number.parseInt(id.slice(8 * index, 8 * index + 8), 16) | 0,
      )
    for (const [index, word] of this.#numberWords.entries())
      Atomics.store(words, start + Word.numbers + index, word)
    Atomics.store(words, start + Word.turn, turn + 1)
  }
}

/** By bucket. */
export function readExemplars(words: Int32Array): (Exemplar | undefined)[] {
  const found: (Exemplar | undefined)[] = []
  for (let start = 0; start < words.length; start += Word.all) found.push(readOne(words, start))
  return found
}

function readOne(words: Int32Array, start: number): Exemplar | undefined {
  const turn = Atomics.load(words, start + Word.turn)
  if (turn === 0 || turn % 2 !== 0) return undefined
  const copy = Int32Array.from({ length: Word.all }, (_, index) => Atomics.load(words, start + index))
  if (Atomics.load(words, start + Word.turn) !== turn) return undefined
  const ids = Array.from(copy.subarray(Word.ids, Word.ids + ID_WORDS), (word) =>
    (word >>> 0).toString(16).padStart(8, '0'),
  ).join('')
  const [value, atS] = new Float64Array(copy.buffer, Word.numbers * 4, 2)
  return { value, atS, traceId: ids.slice(0, 32), spanId: ids.slice(32) }
}
