/**
 * Keeps the event loop of a host awake while a call runs that is likely to end soon.
 *
 * To wake a thread that sleeps takes 50 to 100 µs on a virtual machine, several times a short call. So when a
 * call begins the loop polls until it has ended, for a moment at most: it has a turn after the other, each
 * with I/O and timers as ever, instead of one that sleeps. Where calls are longer than that, one in
 * {@link PROBE} calls finds out whether they still are, so polling costs next to nothing there.
 */
import { effects } from '../../base/index.ts'

const POLL_MS = 0.25
/** After this number of calls in a row that were longer, the loop sleeps. */
const LONGER_MAX = 4
const PROBE = 32

export class Polling {
  #untilMs = 0
  /** When the call began that is waited for; 0: it has ended. */
  #begunMs = 0
  #isOn = false
  #longer = 0
  #count = 0
  #turns = 0

  /** How many turns it has made. */
  get turns(): number {
    return this.#turns
  }

  /** A call has begun. Returns when, for {@link ended}. */
  begun(): number {
    const nowMs = performance.now()
    this.#count++
    // In a seeded run each turn would be a step, and no time would pass.
    if (effects.seeded?.() !== undefined) return nowMs
    if (this.#longer >= LONGER_MAX && this.#count % PROBE !== 0) return nowMs
    this.#untilMs = nowMs + POLL_MS
    this.#begunMs = nowMs
    if (!this.#isOn) setImmediate(this.#turn)
    this.#isOn = true
    return nowMs
  }

  ended(begunMs: number): void {
    if (begunMs >= this.#begunMs) this.#begunMs = 0
    if (performance.now() - begunMs < POLL_MS) this.#longer = 0
  }

  readonly #turn = (): void => {
    this.#turns++
    const isOver = this.#begunMs === 0
    const isLonger = !isOver && performance.now() >= this.#untilMs
    if (isLonger) this.#longer++
    this.#isOn = !isOver && !isLonger
    if (this.#isOn) setImmediate(this.#turn)
  }
}
