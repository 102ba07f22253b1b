/**
 * Since when each call in flight has been running, in memory all threads see.
 *
 * `--timeout` limits the user's function, not the wait for a free worker, and the function starts in the
 * worker. So each call in flight has a clock that its worker starts and stops and the main thread reads from
 * time to time. A clock is one 32-bit word: milliseconds modulo 2^31, never 0 while it runs.
 */

const MS_BITS = 0x7fffffff

export class Clocks {
  readonly #words: Int32Array

  /** @param memory {@link clockBytes} shared bytes, all zero: nothing runs. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  /** The call that holds `clock` starts now. Returns what {@link Clocks.stop} needs. */
  start(clock: number, nowMs: number = monotonicMs()): number {
    return Atomics.store(this.#words, clock, Math.floor(nowMs % (MS_BITS + 1)) || 1)
  }

  /**
   * The call that holds `clock` no longer runs. A call that timed out may end late, when its clock already
   * times another: the clock then differs from `started`, and nothing changes.
   */
  stop(clock: number, started: number): void {
    Atomics.compareExchange(this.#words, clock, started, 0)
  }

  clear(clock: number): void {
    Atomics.store(this.#words, clock, 0)
  }

  /** How long `clock` has been running, at most 2^30 ms; 0 when it is not. */
  runningMs(clock: number, nowMs: number = monotonicMs()): number {
    const startMs = Atomics.load(this.#words, clock)
    if (startMs === 0) return 0
    // The distance modulo 2^31 as a signed number: a clock may have been started a moment after `nowMs`.
    return Math.max(0, ((Math.floor(nowMs % (MS_BITS + 1)) - startMs) << 1) >> 1)
  }
}

export function clockBytes(clockCount: number): number {
  return clockCount * Int32Array.BYTES_PER_ELEMENT
}

/** Milliseconds of the monotonic clock that all threads share. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
