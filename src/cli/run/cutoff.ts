/**
 * Decides, in all threads, which items still start after an interruption.
 *
 * Every worker asks just before it calls the user's function. `close` fixes the last item that has started in
 * any thread: earlier items still run, later ones do not. The items that are done are then 1 to n without a
 * gap, and the job can continue at n + 1.
 *
 * One shared 32-bit word holds the highest number that has started, modulo 2^30, and in its sign whether the
 * cutoff is closed, so the two cannot disagree. Numbers wrap; two that are compared are never 2^29 apart,
 * because far fewer items are in flight.
 */

const NUMBER_BITS = 0x3fffffff
const CLOSED = -0x80000000

export const CUTOFF_BYTES = 4

export class Cutoff {
  readonly #word: Int32Array

  /** @param memory {@link CUTOFF_BYTES} shared bytes, all zero at first. */
  constructor(memory: SharedArrayBuffer) {
    this.#word = new Int32Array(memory, 0, 1)
  }

  /** Whether `item` (1 or more) starts: not if the cutoff was closed before it or a later item started. */
  mayStart(item: number): boolean {
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

  /** No item starts that is later than the last one that has. */
  close(): void {
    Atomics.or(this.#word, 0, CLOSED)
  }
}
