/**
 * Keeps the event loop of a host awake while a call runs that is likely to end soon.
 *
 * To wake a thread that sleeps takes 50 to 100 µs on a virtual machine, several times a short call. So while
 * calls have been short of late, and one has just begun, the loop polls: it has a turn after the other, each
 * with I/O and timers as ever, instead of one that sleeps. Calls that are longer end that, so polling costs
 * at most {@link SHORT_MS} of a core for each call that was expected to be shorter.
 */
const SHORT_MS = 0.25
/** How much of the mean each call makes up, and the most that a single long one counts. */
const WEIGHT = 1 / 8
const COUNTED_MS = 8 * SHORT_MS

export class Polling {
  readonly #running: () => number
  #meanMs = 0
  #untilMs = 0
  #isOn = false

  /** @param running How many calls run. */
  constructor(running: () => number) {
    this.#running = running
  }

  /** A call has begun. Returns when, for {@link ended}. */
  begun(): number {
    const nowMs = performance.now()
    if (this.#meanMs > SHORT_MS) return nowMs
    this.#untilMs = nowMs + SHORT_MS
    if (!this.#isOn) setImmediate(this.#turn)
    this.#isOn = true
    return nowMs
  }

  ended(begunMs: number): void {
    const tookMs = Math.min(performance.now() - begunMs, COUNTED_MS)
    this.#meanMs += (tookMs - this.#meanMs) * WEIGHT
  }

  readonly #turn = (): void => {
    this.#isOn = this.#running() > 0 && performance.now() < this.#untilMs
    if (this.#isOn) setImmediate(this.#turn)
  }
}
