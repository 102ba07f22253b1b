/**
 * The memory in which a thread counts, and any thread of the process reads: its sheet.
 *
 * Only its thread writes. A series is an instrument with values of its attributes: an entry of the directory,
 * the values as text, and cells. All of it is written before the number of series goes up, so what a reader
 * sees is complete. The sheet of a thread that has ended goes to the next one (crates/bridge/src/sheets.rs),
 * which counts on in it: nothing is added twice or lost, wherever the thread was stopped. Doubles are read
 * while they are written; those that are aligned are whole on all platforms of this package.
 */
import { thisBridge } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { type Instrument, type InstrumentKey, LISTED, cellsOf, numberOf } from './instruments.ts'

/** Series of a thread; of those beyond, an instrument has one together, without values. */
const SERIES_MAX = 4096
/** Memory is taken from the system as it is touched. */
const TEXT_BYTES = 512 * 1024
const CELLS = 64 * 1024
/** Words of the head: series, bytes of text, cells. */
const Head = { series: 0, text: 1, cells: 2, words: 8 } as const
/** Words of a series in the directory: its instrument, its text, its first cell. */
const Entry = { instrument: 0, at: 1, bytes: 2, cell: 3, words: 4 } as const
const TEXT_AT = (Head.words + SERIES_MAX * Entry.words) * 4
const CELLS_AT = TEXT_AT + TEXT_BYTES
const SHEET_BYTES = CELLS_AT + CELLS * 8

/** A counter, gauge or histogram of this thread, with values of its attributes. */
export class Series {
  readonly isGauge: boolean
  readonly #cells: Float64Array
  readonly #at: number
  readonly #bounds: readonly number[]

  constructor(cells: Float64Array, at: number, { kind, bounds }: Instrument) {
    this.isGauge = kind === 'gauge'
    this.#cells = cells
    this.#at = at
    this.#bounds = bounds
  }

  add(amount: number): void {
    this.#cells[this.#at] += amount
  }

  set(value: number): void {
    this.#cells[this.#at] = value
  }

  /** Adds what another process has counted since it had these counts `before`. */
  addCells(cells: Float64Array, before: Float64Array | undefined): void {
    for (let index = 0; index < cells.length; index++)
      this.#cells[this.#at + index] += cells[index] - (before?.[index] ?? 0)
  }

  /** Sorts a value into the buckets of a histogram. */
  record(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]) bucket++
    this.#cells[this.#at] += value
    this.#cells[this.#at + 1 + bucket] += 1
  }
}

/** What a series is when it is read. */
export interface Reading {
  readonly instrument: number
  readonly values: readonly (string | number)[]
  readonly cells: Float64Array
}

class Memory {
  readonly words: Int32Array
  readonly text: Uint8Array
  readonly cells: Float64Array

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer, 0, TEXT_AT / 4)
    this.text = new Uint8Array(buffer, TEXT_AT, TEXT_BYTES)
    this.cells = new Float64Array(buffer, CELLS_AT, CELLS)
  }

  entry(index: number): { readonly instrument: number; readonly cell: number; readonly text: string } {
    const { words } = this
    const at = Head.words + index * Entry.words
    const [instrument, start, bytes, cell] = words.subarray(at, at + Entry.words) as unknown as number[]
    // Decoders refuse shared memory.
    const text = Buffer.from(this.text.slice(start, start + bytes)).toString()
    return { instrument, cell, text }
  }
}

/** This thread's. */
export class Sheet {
  readonly #memory: Memory
  readonly #known = new Map<string, Series>()

  constructor() {
    const bridge = thisBridge
    bridge()
    const taken = native.sheetTake()
    const buffer =
      taken === 0 ? new SharedArrayBuffer(SHEET_BYTES) : (native.bufferTake(taken) as SharedArrayBuffer)
    if (taken === 0) native.sheetAdd(native.bufferShare(buffer))
    this.#memory = new Memory(buffer)
    const { words, cells } = this.#memory
    for (let index = 0; index < words[Head.series]; index++) {
      const { instrument, cell, text } = this.#memory.entry(index)
      const series = new Series(cells, cell, LISTED[instrument])
      if (series.isGauge) series.set(0)
      this.#known.set(`${instrument} ${text}`, series)
    }
  }

  /** The series of an instrument with these values of its attributes. */
  series(key: InstrumentKey, ...values: readonly (string | number)[]): Series {
    return this.numbered(numberOf(key), values)
  }

  /** The same by the instrument's number. */
  numbered(instrument: number, values: readonly (string | number)[]): Series {
    const text = JSON.stringify(values)
    return this.#known.get(`${instrument} ${text}`) ?? this.#made(instrument, text)
  }

  #made(instrument: number, text: string): Series {
    const { words, cells, text: texts } = this.#memory
    const bytes = Buffer.from(text)
    const size = cellsOf(LISTED[instrument])
    const [count, textEnd, cellsEnd] = words as unknown as [number, number, number]
    const left = SERIES_MAX - count
    // What is left is for the series of what does not fit.
    const fits =
      left > LISTED.length &&
      textEnd + bytes.length + LISTED.length * 8 <= TEXT_BYTES &&
      cellsEnd + size + LISTED.length * 32 <= CELLS
    if (!fits && text !== '[]') {
      const overflow = this.#known.get(`${instrument} []`) ?? this.#made(instrument, '[]')
      return overflow
    }
    texts.set(bytes, textEnd)
    words.set([instrument, textEnd, bytes.length, cellsEnd], Head.words + count * Entry.words)
    words[Head.text] = textEnd + bytes.length
    words[Head.cells] = cellsEnd + size
    Atomics.store(words, Head.series, count + 1)
    const series = new Series(cells, cellsEnd, LISTED[instrument])
    this.#known.set(`${instrument} ${text}`, series)
    return series
  }
}

/** Another thread's sheet, as this one reads it. */
class Reader {
  readonly #memory: Memory
  readonly #readings: Reading[] = []

  constructor(buffer: SharedArrayBuffer) {
    this.#memory = new Memory(buffer)
  }

  readings(): readonly Reading[] {
    const { words, cells } = this.#memory
    const count = Atomics.load(words, Head.series)
    for (let index = this.#readings.length; index < count; index++) {
      const { instrument, cell, text } = this.#memory.entry(index)
      const values = JSON.parse(text) as (string | number)[]
      this.#readings.push({
        instrument,
        values,
        cells: cells.subarray(cell, cell + cellsOf(LISTED[instrument])),
      })
    }
    return this.#readings
  }
}

const readers = new Map<number, Reader>()

/** The series of all threads; gauges of those that have ended are left out. */
export function* readSheets(): Generator<Reading> {
  const sheets = new Uint32Array(native.sheetsAll().buffer)
  for (let at = 0; at < sheets.length; at += 2) {
    const [buffer, thread] = sheets.subarray(at, at + 2) as unknown as [number, number]
    let reader = readers.get(buffer)
    if (reader === undefined)
      readers.set(buffer, (reader = new Reader(native.bufferTake(buffer) as SharedArrayBuffer)))
    for (const reading of reader.readings())
      if (thread !== 0 || LISTED[reading.instrument].kind !== 'gauge') yield reading
  }
}

/** How many threads have a sheet now. */
export function countedThreads(): number {
  const sheets = new Uint32Array(native.sheetsAll().buffer)
  return sheets.filter((thread, index) => index % 2 === 1 && thread !== 0).length
}
