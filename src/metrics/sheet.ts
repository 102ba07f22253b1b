/**
 * The memory in which a thread counts, and any thread of the process reads: its sheet.
 *
 * Only its thread writes. A series is an instrument with values of its attributes: an entry of the directory,
 * the values as text, and cells. All of it is written before the number of series goes up, so what a reader
 * sees is complete. The sheet of a thread that has ended goes to the next one (crates/bridge/src/sheets.rs),
 * which counts on in it: nothing is added twice or lost, wherever the thread was stopped. What had begun in
 * it and not ended has died; that is the difference of two counts, so whoever looks finds the same. Doubles
 * are read while they are written; those that are aligned are whole on all platforms of this package.
 */
import { thisBridge } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { Exemplars, exemplarCells } from './exemplars.ts'
import { type Instrument, type InstrumentKey, LISTED, cellsOf, isOfThread, numberOf } from './instruments.ts'
import type { Point } from './points.ts'

/** Series of a thread; of those beyond, an instrument has one together, without values. */
const SERIES_MAX = 4096
/** Of an instrument whose series are named by whoever submits a job: they leave room for all others. */
const NAMED_MAX = 512
const NAMED_BYTES_MAX = 512
const NAMED = numberOf('jobsEnded')
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
  /** Whether it means nothing once its thread has ended. */
  readonly isOfThread: boolean
  readonly #cells: Float64Array
  readonly #at: number
  readonly #bounds: readonly number[]

  constructor(cells: Float64Array, at: number, instrument: Instrument) {
    this.isOfThread = isOfThread(instrument)
    this.#cells = cells
    this.#at = at
    this.#bounds = instrument.bounds
  }

  add(amount: number): void {
    this.#cells[this.#at] += amount
  }

  set(value: number): void {
    this.#cells[this.#at] = value
  }

  /** Adds what another process has counted since it had these counts `before`. */
  addCells(cells: readonly number[], before: readonly number[] | undefined): void {
    for (let index = 0; index < cells.length; index++)
      this.#cells[this.#at + index] += cells[index] - (before?.[index] ?? 0)
  }

  /** Sorts a value into the buckets of a histogram, so many times. */
  record(value: number, times = 1): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]) bucket++
    this.#cells[this.#at] += value * times
    this.#cells[this.#at + 1 + bucket] += times
  }
}

/** What a series is when it is read. */
export interface Reading {
  readonly instrument: number
  readonly values: readonly (string | number)[]
  /** Those of a counter, gauge or histogram, or `exemplars`. */
  readonly cells: Float64Array
  readonly exemplars: Int32Array | undefined
  /** What whoever collects has made of it: the point that it is added to, and the last copy of its cells. */
  point: Point | undefined
  copy: readonly number[] | undefined
}

/** Of requests that have died with their thread: the last one of their attributes. */
const DIED = 'died'
/** Added to the number of an instrument: exemplars of a series. */
const EXEMPLARS = 1 << 16

class Memory {
  readonly words: Int32Array
  readonly text: Uint8Array
  readonly cells: Float64Array
  readonly cellWords: Int32Array

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer, 0, TEXT_AT / 4)
    this.text = new Uint8Array(buffer, TEXT_AT, TEXT_BYTES)
    this.cells = new Float64Array(buffer, CELLS_AT, CELLS)
    this.cellWords = new Int32Array(buffer, CELLS_AT, CELLS * 2)
  }

  entry(index: number): { readonly instrument: number; readonly cell: number; readonly text: string } {
    const { words } = this
    const at = Head.words + index * Entry.words
    const [instrument, start, bytes, cell] = words.subarray(at, at + Entry.words) as unknown as number[]
    // Decoders refuse shared memory.
    const text = Buffer.from(this.text.slice(start, start + bytes)).toString()
    return { instrument, cell, text }
  }

  reading(index: number): Reading {
    const { instrument: number, cell, text } = this.entry(index)
    const values = JSON.parse(text) as Reading['values']
    const instrument = number & (EXEMPLARS - 1)
    if (number === instrument) {
      const cells = this.cells.subarray(cell, cell + cellsOf(LISTED[instrument]))
      return { instrument, values, cells, exemplars: undefined, point: undefined, copy: undefined }
    }
    const end = cell + exemplarCells(LISTED[instrument].bounds.length + 1)
    const exemplars = this.cellWords.subarray(cell * 2, end * 2)
    return { instrument, values, cells: NO_CELLS, exemplars, point: undefined, copy: undefined }
  }
}

const NO_CELLS = new Float64Array()

/** This thread's. */
export class Sheet {
  readonly #memory: Memory
  readonly #known = new Map<string, Series>()
  readonly #exemplars = new Map<string, Exemplars>()
  #named = 0

  constructor() {
    thisBridge()
    const taken = native.sheetTake()
    const buffer =
      taken === 0 ? new SharedArrayBuffer(SHEET_BYTES) : (native.bufferTake(taken) as SharedArrayBuffer)
    if (taken === 0) native.sheetAdd(native.bufferShare(buffer))
    this.#memory = new Memory(buffer)
    if (taken !== 0) this.#takeOver()
  }

  /** Counts on from where another thread has ended. */
  #takeOver(): void {
    const { words, cells } = this.#memory
    const readings: Reading[] = []
    for (let index = 0; index < words[Head.series]; index++) {
      const { instrument, cell, text } = this.#memory.entry(index)
      readings.push(this.#memory.reading(index))
      if (instrument >= EXEMPLARS)
        this.#exemplars.set(`${instrument} ${text}`, this.#exemplarsAt(instrument, cell))
      else {
        const series = new Series(cells, cell, LISTED[instrument])
        if (series.isOfThread) series.set(0)
        if (instrument === NAMED && text !== '[]') this.#named++
        this.#known.set(`${instrument} ${text}`, series)
      }
    }
    for (const { values, count } of died(readings)) this.series('requests', ...values).add(count)
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

  /** The exemplars of a histogram with these values of its attributes, whether it is in this sheet or not. */
  exemplars(key: InstrumentKey, ...values: readonly (string | number)[]): Exemplars {
    const number = numberOf(key)
    const text = JSON.stringify(values)
    const known = this.#exemplars.get(`${number + EXEMPLARS} ${text}`)
    if (known !== undefined) return known
    const cell = this.#taken(number + EXEMPLARS, text, exemplarCells(LISTED[number].bounds.length + 1))
    const exemplars = this.#exemplarsAt(number + EXEMPLARS, cell)
    this.#exemplars.set(`${number + EXEMPLARS} ${text}`, exemplars)
    return exemplars
  }

  #exemplarsAt(number: number, cell: number | undefined): Exemplars {
    const { bounds } = LISTED[number - EXEMPLARS]
    if (cell === undefined) return new Exemplars(undefined, bounds)
    const words = this.#memory.cellWords.subarray(cell * 2)
    return new Exemplars(words, bounds)
  }

  #made(instrument: number, text: string): Series {
    const cell = this.#taken(instrument, text, cellsOf(LISTED[instrument]))
    if (cell === undefined) return this.#known.get(`${instrument} []`) ?? this.#made(instrument, '[]')
    const series = new Series(this.#memory.cells, cell, LISTED[instrument])
    this.#known.set(`${instrument} ${text}`, series)
    return series
  }

  /** Enters a series into the directory. Returns its first cell; `undefined`: the sheet is full. */
  #taken(number: number, text: string, size: number): number | undefined {
    const { words, text: texts } = this.#memory
    const bytes = Buffer.from(text)
    const [count, textEnd, cellsEnd] = words as unknown as [number, number, number]
    const left = SERIES_MAX - count
    const isNamed = number === NAMED && text !== '[]'
    if (isNamed && (this.#named === NAMED_MAX || bytes.length > NAMED_BYTES_MAX)) return undefined
    // What is left is for the series of what does not fit.
    const fits =
      left > LISTED.length &&
      textEnd + bytes.length + LISTED.length * 8 <= TEXT_BYTES &&
      cellsEnd + size + LISTED.length * 32 <= CELLS
    if (!fits && text !== '[]') return undefined
    texts.set(bytes, textEnd)
    words.set([number, textEnd, bytes.length, cellsEnd], Head.words + count * Entry.words)
    words[Head.text] = textEnd + bytes.length
    words[Head.cells] = cellsEnd + size
    Atomics.store(words, Head.series, count + 1)
    if (isNamed) this.#named++
    return cellsEnd
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
    const count = Atomics.load(this.#memory.words, Head.series)
    for (let index = this.#readings.length; index < count; index++)
      this.#readings.push(this.#memory.reading(index))
    return this.#readings
  }
}

const readers = new Map<number, Reader>()

/** The series of all threads; of those that have ended their counts, and what has died with them. */
export function* readSheets(): Generator<Reading> {
  const sheets = new Uint32Array(native.sheetsAll().buffer)
  for (let at = 0; at < sheets.length; at += 2) {
    const [buffer, thread] = sheets.subarray(at, at + 2) as unknown as [number, number]
    let reader = readers.get(buffer)
    if (reader === undefined)
      readers.set(buffer, (reader = new Reader(native.bufferTake(buffer) as SharedArrayBuffer)))
    const readings = reader.readings()
    for (const reading of readings) if (thread !== 0 || !isOfThread(LISTED[reading.instrument])) yield reading
    if (thread !== 0) continue
    for (const { values, count } of died(readings))
      yield {
        instrument: numberOf('requests'),
        values,
        cells: Float64Array.of(count),
        exemplars: undefined,
        point: undefined,
        copy: undefined,
      }
  }
}

/** A series, wherever it was read. */
export type Counted = Pick<Reading, 'instrument' | 'values'> & { readonly cells: ArrayLike<number> }

/** Requests that have begun and not ended, in the order of their attributes. */
export interface Unended {
  readonly values: readonly (string | number)[]
  readonly count: number
}

/** By method and route. Where attributes did not fit, all of them together. */
export function unended(readings: Iterable<Counted>): Unended[] {
  const counts = new Map<string, { values: readonly (string | number)[]; count: number }>()
  let isFull = false
  const add = (values: readonly (string | number)[], count: number): void => {
    isFull ||= values.length === 0
    const key = `${values[0]}\0${values[1]}`
    const known = counts.get(key)
    if (known === undefined) counts.set(key, { values: values.slice(0, 2), count })
    else known.count += count
  }
  const [begun, ended, others] = (['activeRequests', 'requestSeconds', 'requests'] as const).map(numberOf)
  for (const { instrument, values, cells } of readings) {
    if (instrument === begun) add(values, cells[0])
    else if (instrument === ended && cells.length > 0) add(values, -sumOf(cells))
    else if (instrument === others && values[3] === DIED) add(values, -cells[0])
  }
  const all = [...counts.values()]
  return isFull ? [{ values: [], count: all.reduce((sum, { count }) => sum + count, 0) }] : all
}

/** The count of a histogram. */
export function sumOf(cells: ArrayLike<number>): number {
  let sum = 0
  for (let index = 1; index < cells.length; index++) sum += cells[index]
  return sum
}

/** What has died with the thread of a sheet, by the attributes of requests. */
export function died(readings: Iterable<Counted>): Unended[] {
  const left = unended(readings).filter(({ count }) => count > 0)
  return left.map(({ values: [method = '', route = ''], count }) => ({
    values: [method, route, '', DIED],
    count,
  }))
}

/** How many threads have a sheet now. */
export function countedThreads(): number {
  const sheets = new Uint32Array(native.sheetsAll().buffer)
  return sheets.filter((thread, index) => index % 2 === 1 && thread !== 0).length
}
