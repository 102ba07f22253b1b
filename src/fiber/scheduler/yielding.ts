/**
 * Stepping aside: the op that lets all others go first.
 *
 * A body asks for it by `yieldNow`. Combinators, and whatever else runs a body inside of a fiber, do it when
 * the steps of the turn are used up: a fiber whose bodies never wait leaves timers and I/O theirs, and stops
 * there when it is interrupted.
 */
import { Op, PENDING, type Step, type Waiter, outside, running, takeResult } from '../core/op.ts'
import { type Ready, turn } from './scheduler.ts'

/** How it goes on: one result for all, since nothing is in it. */
const OVER: IteratorResult<Step, void> = { done: true, value: undefined }

/** An op without a state of its own, one for all. */
class Turn extends Op<void> {
  /** See {@link Op.next}: the wait that is used most, so its calls are monomorphic and allocate nothing. */
  override next(): IteratorResult<Step, unknown> {
    const fiber = running.fiber
    if (!running.asks) {
      if (fiber?.op !== this) return { done: true, value: takeResult() }
      fiber.op = undefined
      return OVER
    }
    running.asks = false
    if (fiber === undefined) throw outside(`yield* of an operation (${this.describe()})`)
    fiber.op = this
    return PENDING
  }

  park(fiber: Waiter): void {
    fiber.makeReady()
  }

  unpark(): boolean {
    return true
  }

  take(): void {}

  describe(): string {
    return 'its turn'
  }
}

const TURN = new Turn()

/**
 * Lets all other ready fibers run first.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, yieldNow } from 'corespun/fiber'
 *
 * const order: string[] = []
 * function* late(word: string) {
 *   yield* yieldNow()
 *   order.push(word)
 * }
 * fork(late('second'))
 * order.push('first')
 * await fork(yieldNow()).join()
 * assert.deepEqual(order, ['first', 'second'])
 * ```
 */
export function yieldNow(): Op<void> {
  return TURN
}

/**
 * A step of code that is no fiber's: when the steps of the turn are used up, `ready` goes on behind timers
 * and I/O, with the fibers that are ready.
 * @returns Whether it waits for that; otherwise it goes on by itself.
 */
export function stepAside(ready: Ready): boolean {
  if (--turn.steps > 0) return false
  turn.scheduler.push(ready)
  return true
}
