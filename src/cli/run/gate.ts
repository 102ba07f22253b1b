/**
 * The gate every item passes just before the user's function is called with it.
 *
 * Closing it answers one question exactly, although many threads are passing: which item was the last to
 * start? Items up to that one run (those not yet at the gate too), all others turn back. So after an
 * interruption the items that are done are 1 to n, without a hole, and the job can be taken up at n + 1.
 *
 * One shared 32-bit word holds everything: the highest number that passed, modulo 2^30, and in the sign
 * whether the gate is closed. Because both are in one word, "closed" and "the last to start" cannot disagree.
 * Numbers wrap; two that meet at the gate are never 2^29 apart, since the window of items in flight is far
 * smaller.
 */

const NUMBER_BITS = 0x3fffffff
const CLOSED = -0x80000000

/** Bytes of memory a gate needs. */
export const GATE_BYTES = 4

/** One gate, seen by one thread; all threads construct theirs over the same memory. */
export class Gate {
  readonly #word: Int32Array

  /** @param memory {@link GATE_BYTES} shared bytes, all zero for a gate nobody has passed. */
  constructor(memory: SharedArrayBuffer) {
    this.#word = new Int32Array(memory, 0, 1)
  }

  /**
   * Start item number `item` (1 or more): `false` when the gate was closed before it or a later item started.
   */
  pass(item: number): boolean {
    const number = item & NUMBER_BITS
    for (;;) {
      const seen = Atomics.load(this.#word, 0)
      // The distance modulo 2^30, as a signed number: shifted so that bit 29 becomes the sign.
      const ahead = ((number - (seen & NUMBER_BITS)) << 2) >> 2
      if (ahead <= 0) return true
      if (seen < 0) return false
      if (Atomics.compareExchange(this.#word, 0, seen, number) === seen) return true
    }
  }

  /** Let nothing start that is later than the last item that did. Closing twice changes nothing. */
  close(): void {
    Atomics.or(this.#word, 0, CLOSED)
  }
}
