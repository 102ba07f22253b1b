/**
 * What the threads of one server share: whether it runs, which workers serve, and what each has counted.
 *
 * A row belongs to a place in the zone and not to a thread: the worker that replaces another goes on counting
 * where that one had been. Rows are written by their worker alone, when it is asked and when it ends.
 */
import type { CoreStats } from '../core/core.ts'

/** Most workers of a zone. */
const ROWS = 1024
/** What is counted, in the order of a row; the first ones do not outlive their worker. */
const NAMES = [
  'connections',
  'heldBytes',
  'connectionsTotal',
  'requests',
  'constants',
  'refused',
  'aborted',
  'bytesIn',
  'bytesOut',
  'cut',
  'errors',
] as const

/** How many of them are of this moment. */
const OF_NOW = 2

/** The counts of one worker, or of all. */
export type Counts = CoreStats & {
  /** Errors that no handler caught and no client caused. */
  readonly errors: number
}

/** Where the whole server is: numbers of the first word. */
const Run = { begins: 0, runs: 1, stops: 2 } as const
/** Where a worker is: numbers of its word. */
const Row = { absent: 0, serves: 1, failed: 2 } as const
export class Board {
  /** What other threads make theirs from. */
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #members: Int32Array
  readonly #counts: Float64Array

  constructor(memory?: SharedArrayBuffer) {
    const wordsBytes = (1 + 2 * ROWS) * 4 + 4 // and up to a multiple of 8
    this.memory = memory ?? new SharedArrayBuffer(wordsBytes + ROWS * NAMES.length * 8)
    this.#words = new Int32Array(this.memory, 0, 1 + ROWS)
    this.#members = new Int32Array(this.memory, (1 + ROWS) * 4, ROWS)
    this.#counts = new Float64Array(this.memory, wordsBytes)
  }

  /** All workers serve: from now on a worker that does not is worth a warning. */
  run(): void {
    Atomics.compareExchange(this.#words, 0, Run.begins, Run.runs)
  }

  /** Nobody begins to serve any more. */
  stop(): void {
    Atomics.store(this.#words, 0, Run.stops)
  }

  /** Between `run` and `stop`. */
  get isRunning(): boolean {
    return Atomics.load(this.#words, 0) === Run.runs
  }

  /** Whether `stop` was called, by whichever thread. */
  get isStopped(): boolean {
    return Atomics.load(this.#words, 0) === Run.stops
  }

  /** A worker begins to serve, or has ended; its connections are gone then. */
  setServing(row: number, isServing: boolean): void {
    this.#counts.fill(0, row * NAMES.length, row * NAMES.length + OF_NOW)
    Atomics.store(this.#words, 1 + row, isServing ? Row.serves : Row.absent)
  }

  /** A worker listens, under that number of the core (`Core.member`). */
  setMember(row: number, member: number): void {
    Atomics.store(this.#members, row, member)
  }

  /** The number under which that worker, or the one before it, listens; 0: the core has none. */
  member(row: number): number {
    return Atomics.load(this.#members, row)
  }

  /** A worker runs, and could not begin to serve. */
  setFailed(row: number): void {
    Atomics.store(this.#words, 1 + row, Row.failed)
  }

  /** Whether that worker could not begin to serve; false for one that has not tried yet. */
  hasFailed(row: number): boolean {
    return Atomics.load(this.#words, 1 + row) === Row.failed
  }

  /** Whether that worker serves, or did when it died without a word. */
  isServing(row: number): boolean {
    return Atomics.load(this.#words, 1 + row) === Row.serves
  }

  /** Write what a worker has counted besides what the row began with. */
  write(row: number, before: Counts, counted: Counts): void {
    for (const [index, name] of NAMES.entries())
      this.#counts[row * NAMES.length + index] = before[name] + counted[name]
  }

  /** What stands in a row. */
  read(row: number): Counts {
    const numbers = this.#counts.subarray(row * NAMES.length, (row + 1) * NAMES.length)
    return Object.fromEntries(NAMES.map((name, index) => [name, numbers[index]])) as unknown as Counts
  }

  /** The sum of all rows; what is of this moment only of those given, the others are gone. */
  total(rows: readonly number[]): Counts {
    const every = Array.from({ length: ROWS }, (_, row) => row)
    const sums = NAMES.map((_, index) => {
      let sum = 0
      for (const row of index < OF_NOW ? rows : every) sum += this.#counts[row * NAMES.length + index]
      return sum
    })
    return Object.fromEntries(NAMES.map((name, index) => [name, sums[index]])) as unknown as Counts
  }
}

/** The row of a worker, from its name: `zone/3`. */
export function rowOf(worker: string): number {
  return Number(worker.slice(worker.lastIndexOf('/') + 1))
}
