/**
 * Whether the hosts of a zone take jobs, and how many of a host's jobs are under way.
 *
 * That a queue is paused is a value among the records, under the empty key, which no job has. Hosts watch it,
 * and read it once in a lease too: a change may be lost on the way.
 */
import type { Clock, End, KeyValue } from '../engine/engine.ts'
import { readParts, written } from '../wire.ts'

/** Where it is kept. */
export const QUEUE_KEY = ''

/** What is kept of a queue that is paused. */
export const writePaused = (): Uint8Array => written('queue', { isPaused: true })

export function isPausedBy(bytes: Uint8Array | undefined): boolean {
  const [kind, queue] = (bytes && readParts(bytes)) ?? []
  return kind === 'queue' && Object(queue).isPaused === true
}

/** Calls `on` with whether a queue is paused, at first and when it changes, until it is ended. */
export class PauseWatch {
  readonly #records: KeyValue
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #on: (isPaused: boolean) => void
  #isPaused: boolean | undefined
  #isRead = false
  #isOver = false
  #endWatching: End = () => {}
  #endLooking: End = () => {}

  private constructor(records: KeyValue, clock: Clock, everyMs: number, on: (isPaused: boolean) => void) {
    this.#records = records
    this.#clock = clock
    this.#everyMs = everyMs
    this.#on = on
  }

  /** Resolves when `on` was called. @throws {FleetError} What the engine fails with. */
  static async open(
    records: KeyValue,
    clock: Clock,
    everyMs: number,
    on: (isPaused: boolean) => void,
  ): Promise<PauseWatch> {
    const watch = new PauseWatch(records, clock, everyMs, on)
    watch.#endWatching = await records.watch(({ bytes }) => watch.#found(bytes), { key: QUEUE_KEY })
    await watch.#read().finally(() => watch.#isRead || watch.end())
    watch.#lookLater()
    return watch
  }

  #found(bytes: Uint8Array | undefined): void {
    const isPaused = isPausedBy(bytes)
    if (this.#isOver || isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    this.#on(isPaused)
  }

  async #read(): Promise<void> {
    this.#found((await this.#records.get(QUEUE_KEY))?.bytes)
    this.#isRead = true
  }

  #lookLater(): void {
    if (!this.#isOver) this.#endLooking = this.#clock.after(this.#everyMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    await this.#read().catch(() => {}) // it is read again
    this.#lookLater()
  }

  end(): void {
    this.#isOver = true
    this.#endWatching()
    this.#endLooking()
  }
}

/** Lets so many in at once; others wait in line. */
export class Slots {
  #free: number
  #isClosed = false
  readonly #waiting: ((isIn: boolean) => void)[] = []

  constructor(max: number) {
    this.#free = max
  }

  /** Whether one is in; false behind {@link close}. */
  enter(): boolean | Promise<boolean> {
    if (this.#isClosed) return false
    if (this.#free > 0) {
      this.#free--
      return true
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free++
    else next(true)
  }

  /** Nobody comes in any more. */
  close(): void {
    this.#isClosed = true
    for (const waiting of this.#waiting.splice(0)) waiting(false)
  }
}
