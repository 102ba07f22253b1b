/**
 * The plain ops: to wait for time, and for ever.
 *
 * Times are those of the scheduler's clock, so a test runtime can replace it.
 */
import { checkMs } from '../errors.ts'
import { Op, type Step, type Waiter, outside, running } from '../core/op.ts'
import { turn } from './scheduler.ts'
import type { Timed } from './timers.ts'

class Sleep extends Op<void> implements Timed {
  atMs: number
  index = -1
  order = 0
  #waiter: Waiter | undefined
  readonly #ms: number

  constructor(ms: number) {
    super()
    this.atMs = 0
    this.#ms = ms
  }

  /** A sleep that is in use by one fiber is another one for the next. */
  override [Symbol.iterator](): Iterator<Step, void, unknown> {
    running.asks = true
    return (this.index < 0 ? this : new Sleep(this.#ms)) as never
  }

  park(fiber: Waiter): void {
    this.#waiter = fiber
    this.atMs = turn.scheduler.nowMs() + this.#ms
    turn.scheduler.wait(this)
  }

  unpark(): boolean {
    turn.scheduler.forget(this)
    return true
  }

  take(): void {}

  due(): void {
    this.#waiter?.makeReady()
  }

  describe(): string {
    return `${this.#ms} ms`
  }
}

/**
 * Waits for `ms` milliseconds, 0 or more, and never less. The clock is monotonic. `Infinity` is `never()`.
 * @throws {FiberError} `FIBER_ARGUMENT` when `ms` is not a number from 0.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, sleep } from 'corespun/fiber'
 *
 * const startMs = performance.now()
 * await fork(sleep(5)).join()
 * assert.ok(performance.now() - startMs >= 5)
 * ```
 */
export function sleep(ms: number): Op<void> {
  checkMs('sleep(): ms', ms, Infinity)
  return ms === Infinity ? NEVER : new Sleep(ms)
}

class Never extends Op<never> {
  park(): void {}

  unpark(): boolean {
    return true
  }

  take(): never {
    throw outside('never')
  }

  describe(): string {
    return 'an interrupt'
  }
}

const NEVER = new Never()

/**
 * Waits until interrupted.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, never } from 'corespun/fiber'
 *
 * const exit = await fork(never()).interrupt()
 * assert.equal(exit.kind, 'interruption')
 * ```
 */
export function never(): Op<never> {
  return NEVER
}
