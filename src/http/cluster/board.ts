/**
 * Memory that the threads of a server share: whether it runs, which workers serve, and their counts.
 *
 * A row belongs to a worker's name, not to a thread: a worker that replaces another continues its counts.
 * Only the worker writes its row, when it is asked to and when it ends. One that finishes its requests while
 * another has its name has one of the last rows meanwhile.
 */
import type { Mark } from '../../zone/internal.ts'
import type { CoreStats } from '../message/core-interface.ts'

/** Most workers of a zone. */
const ROWS = 1024
/** Rows for workers that were replaced and finish their requests. */
const LEFT_ROWS = 64
/** Those that may receive messages to rooms: the workers, and the thread that starts them behind them. */
const ROOM_ROWS = ROWS + 1
/** The counts in the order of a row; the first `OF_NOW` are reset when their worker ends. */
const NAMES = [
  'connections',
  'heldBytes',
  'openFiles',
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

/** Counts that describe the present and are not totals. */
const OF_NOW = 3

/** The counts of one worker, or of all. */
export type Counts = CoreStats & {
  /** Errors that no handler caught and no client caused. */
  readonly errors: number
}

/** States of the server, in the first word. */
const Run = { begins: 0, runs: 1, stops: 2, closes: 3 } as const
/** States of a worker, in its word; from `left` on it finishes its requests, and another has its name. */
const Row = { absent: 0, serves: 1, failed: 2, left: 3 } as const
/**
 * Bytes of messages to rooms: how many rows may listen, the bytes sent by all, by each row, and received by
 * each row, plus one; 0: it does not listen. A row does not receive what it sends itself.
 */
const Rooms = { rows: 0, sent: 1, sentBy: 2, received: 2 + ROOM_ROWS } as const

export class Board {
  /** Passed to the `Board` of other threads. */
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #members: Int32Array
  /** 1: requests are followed through their promises. */
  readonly #follows: Int32Array
  readonly #counts: Float64Array
  /** Bytes of messages to rooms: see `Rooms`. */
  readonly #rooms: BigInt64Array

  constructor(memory?: SharedArrayBuffer) {
    const wordsBytes = (2 + 2 * ROWS) * 4 // a multiple of 8
    const countsBytes = ROWS * NAMES.length * 8
    const roomsBytes = (Rooms.received + ROOM_ROWS) * 8
    this.memory = memory ?? new SharedArrayBuffer(wordsBytes + countsBytes + roomsBytes)
    this.#words = new Int32Array(this.memory, 0, 1 + ROWS)
    this.#members = new Int32Array(this.memory, (1 + ROWS) * 4, ROWS)
    this.#follows = new Int32Array(this.memory, (1 + 2 * ROWS) * 4, 1)
    this.#counts = new Float64Array(this.memory, wordsBytes, ROWS * NAMES.length)
    this.#rooms = new BigInt64Array(this.memory, wordsBytes + countsBytes)
  }

  /** All workers serve: from now on a worker that fails to is reported. */
  run(): void {
    Atomics.compareExchange(this.#words, 0, Run.begins, Run.runs)
  }

  /** The server closes soon: its workers serve, and readiness turns 503. */
  announceStop(): void {
    Atomics.compareExchange(this.#words, 0, Run.runs, Run.closes)
  }

  /** No worker begins to serve any more. */
  stop(): void {
    Atomics.store(this.#words, 0, Run.stops)
  }

  /** Between `run` and `stop`. */
  get isRunning(): boolean {
    return Atomics.load(this.#words, 0) === Run.runs || this.isClosing
  }

  /** Between `announceStop` and `stop`. */
  get isClosing(): boolean {
    return Atomics.load(this.#words, 0) === Run.closes
  }

  /** Whether any thread has called `stop`. */
  get isStopped(): boolean {
    return Atomics.load(this.#words, 0) === Run.stops
  }

  /** An error has strayed: workers that begin from now on follow their requests. */
  follow(): void {
    Atomics.store(this.#follows, 0, 1)
  }

  get isFollowing(): boolean {
    return Atomics.load(this.#follows, 0) === 1
  }

  /**
   * A row for a worker that another one replaces while it finishes its requests, and what frees it;
   * `undefined` where none is free.
   * @param thread The number of its thread.
   */
  claim(thread: number): { readonly row: number; readonly mark: Mark } | undefined {
    const value = Row.left + thread
    for (let row = ROWS - 1; row >= ROWS - LEFT_ROWS; row--)
      if (Atomics.compareExchange(this.#words, 1 + row, Row.absent, value) === Row.absent)
        return { row, mark: { word: this.#words.subarray(1 + row, 2 + row), value } }
    return undefined
  }

  /** The rows of such workers. */
  left(): number[] {
    const rows = Array.from({ length: LEFT_ROWS }, (_, index) => ROWS - LEFT_ROWS + index)
    return rows.filter((row) => Atomics.load(this.#words, 1 + row) >= Row.left)
  }

  /** A worker begins to serve, or has ended and has no connections. */
  setServing(row: number, isServing: boolean): void {
    this.#counts.fill(0, row * NAMES.length, row * NAMES.length + OF_NOW)
    Atomics.store(this.#rooms, Rooms.received + row, 0n)
    Atomics.store(this.#words, 1 + row, isServing ? Row.serves : Row.absent)
  }

  /**
   * A worker receives messages to rooms from now on; its channel is open already, so none that is counted
   * from now on is missed.
   */
  listenToRooms(row: number): void {
    const rooms = this.#rooms
    const before = Atomics.load(rooms, Rooms.sent) - Atomics.load(rooms, Rooms.sentBy + row)
    Atomics.store(rooms, Rooms.received + row, before + 1n)
    for (;;) {
      const rows = Atomics.load(rooms, Rooms.rows)
      if (rows > row || Atomics.compareExchange(rooms, Rooms.rows, rows, BigInt(row + 1)) === rows) return
    }
  }

  /** Counts a message that is about to be sent; `row` -1: by a thread without a row. */
  sendToRooms(row: number, bytes: number): void {
    if (row >= 0) Atomics.add(this.#rooms, Rooms.sentBy + row, BigInt(bytes))
    Atomics.add(this.#rooms, Rooms.sent, BigInt(bytes))
  }

  /** Counts a message that a worker has received. */
  receiveRoom(row: number, bytes: number): void {
    Atomics.add(this.#rooms, Rooms.received + row, BigInt(bytes))
  }

  /** Whether messages to rooms wait for a row that listens. */
  waitsForRooms(row: number): boolean {
    const rooms = this.#rooms
    const sent = Atomics.load(rooms, Rooms.sent) - Atomics.load(rooms, Rooms.sentBy + row)
    return sent > Atomics.load(rooms, Rooms.received + row) - 1n
  }

  /** Whether a row but this one listens, and the first of them for which more than `bytesMax` wait. */
  roomListeners(row: number, bytesMax: number): { readonly isReceived: boolean; readonly full?: number } {
    const rooms = this.#rooms
    let isReceived = false
    for (let other = Number(Atomics.load(rooms, Rooms.rows)) - 1; other >= 0; other--) {
      const received = Atomics.load(rooms, Rooms.received + other)
      if (other === row || received === 0n) continue
      isReceived = true
      const sent = Atomics.load(rooms, Rooms.sent) - Atomics.load(rooms, Rooms.sentBy + other)
      if (sent - (received - 1n) > BigInt(bytesMax)) return { isReceived, full: other }
    }
    return { isReceived }
  }

  /** Sets the number of a worker that listens: `Core.member`. */
  setMember(row: number, member: number): void {
    Atomics.store(this.#members, row, member)
  }

  /** The number of that worker, or of the one it replaces; 0: its core has no number. */
  member(row: number): number {
    return Atomics.load(this.#members, row)
  }

  /** A worker runs but could not begin to serve. */
  setFailed(row: number): void {
    Atomics.store(this.#words, 1 + row, Row.failed)
  }

  /** Whether that worker could not begin to serve; false before it has tried. */
  hasFailed(row: number): boolean {
    return Atomics.load(this.#words, 1 + row) === Row.failed
  }

  /** Whether that worker serves, or did when it died without a report. */
  isServing(row: number): boolean {
    return Atomics.load(this.#words, 1 + row) === Row.serves
  }

  /** Writes the counts of a worker, added to those of the worker it replaces. */
  write(row: number, before: Counts, counted: Counts): void {
    for (const [index, name] of NAMES.entries())
      this.#counts[row * NAMES.length + index] = before[name] + counted[name]
  }

  read(row: number): Counts {
    const numbers = this.#counts.subarray(row * NAMES.length, (row + 1) * NAMES.length)
    return Object.fromEntries(NAMES.map((name, index) => [name, numbers[index]])) as unknown as Counts
  }

  /** What a worker has to add to its counts, so that a row has what they become from now on. */
  beforeFrom(row: number, counted: Counts): Counts {
    const there = this.read(row)
    const differences = NAMES.map((name, at) => [name, at < OF_NOW ? 0 : there[name] - counted[name]])
    return Object.fromEntries(differences) as Counts
  }

  /** The sum of all rows; counts of the present only of the rows in `rows`. */
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
