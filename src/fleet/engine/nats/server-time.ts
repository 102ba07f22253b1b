/**
 * The server's clock, as this thread has it between two readings.
 *
 * A difference of two clocks does not last: a machine that is suspended stops its own, and the server's may
 * be set. So it is read again each minute, after each reconnection, and when the two clocks of this machine
 * do not agree any more. A reading is behind by the way of its reply, so nothing is due too early.
 */
import type { Clock, End } from '../engine.ts'

/** A reading is that old at most, while the server can be asked. */
const READ_MS = 60_000
/** What a reading that failed is repeated after. */
const RETRY_MS = 1000
/** Clocks of this machine that differ by more have been stopped or set. */
const STEP_MS = 500

export class ServerTime {
  readonly #clock: Clock
  /** This machine's time of day, which goes on while it is suspended. */
  readonly #dateMs: () => number
  readonly #read: () => Promise<number>
  #aheadMs = 0
  /** How far the time of day was ahead of the clock, at the last reading. */
  #dateAheadMs = 0
  #isReading = false
  #isOver = false
  #endTimer: End = () => {}

  /** @param read The server's time now, in ms since 1970. */
  constructor(clock: Clock, read: () => Promise<number>, dateMs: () => number = Date.now) {
    this.#clock = clock
    this.#read = read
    this.#dateMs = dateMs
  }

  /** Resolves with the first reading. @throws What `read` throws. */
  async begin(): Promise<void> {
    await this.#take()
    this.#later(READ_MS)
  }

  /** In ms since 1970. */
  nowMs(): number {
    const nowMs = this.#clock.nowMs()
    // Whoever finds an item too young returns it, and asks again with the new reading.
    const stoodMs = this.#dateMs() - nowMs - this.#dateAheadMs
    if (Math.abs(stoodMs) > STEP_MS) this.refresh()
    return nowMs + this.#aheadMs
  }

  /** Read it, soon: as after a reconnection. */
  refresh(): void {
    if (this.#isReading || this.#isOver) return
    this.#endTimer()
    this.#take().then(
      () => this.#later(READ_MS),
      () => this.#later(RETRY_MS),
    )
  }

  async #take(): Promise<void> {
    this.#isReading = true
    // Before the reading, so that a machine that is suspended within it reads again.
    const dateAheadMs = this.#dateMs() - this.#clock.nowMs()
    try {
      this.#aheadMs = (await this.#read()) - this.#clock.nowMs()
      this.#dateAheadMs = dateAheadMs
    } finally {
      this.#isReading = false
    }
  }

  #later(ms: number): void {
    if (this.#isOver) return
    this.#endTimer = this.#clock.after(ms, () => this.refresh())
  }

  end(): void {
    this.#isOver = true
    this.#endTimer()
  }
}
