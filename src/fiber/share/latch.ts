/**
 * Latch: fibers wait until it is open.
 *
 * It is opened at once, or by a number of calls; and it can be closed again.
 */
import { integer, optionsOf } from '../../base/index.ts'
import type { Waitable } from '../core/endings.ts'
import { wrong } from '../errors.ts'
import { Claim, Line, type WaitOptions, waitOf } from './line.ts'
import { waitable } from './waitable.ts'

/** Options of a {@link Latch}. */
export interface LatchOptions {
  /** After how many calls of `countDown` it is open, 0 or more. Default 1. */
  readonly count?: number
}

const KINDS = { count: integer(0, Number.MAX_SAFE_INTEGER, 1) }

/**
 * Fibers wait at it until it is open.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Latch, fork } from 'corespun/fiber'
 *
 * const loaded = new Latch({ count: 2 })
 * const fiber = fork(loaded.await())
 * loaded.countDown()
 * assert.equal(fiber.status, 'waiting')
 * loaded.countDown()
 * await fiber.join()
 * assert.equal(loaded.isOpen, true)
 * ```
 */
export class Latch {
  readonly #line = new Line('a Latch')
  readonly #count: number
  #left: number

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options?: LatchOptions) {
    this.#count = this.#left = optionsOf(options, KINDS, wrong, 'new Latch()').count
  }

  /** Whether `await` returns at once. */
  get isOpen(): boolean {
    return this.#left === 0
  }

  /** Counts down by one, and opens it at 0. */
  countDown(): void {
    if (this.#left > 0 && --this.#left === 0) this.#line.serve()
  }

  /** Opens it, whatever the count. */
  open(): void {
    this.#left = 0
    this.#line.serve()
  }

  /** Closes it: the count is as at the beginning, and at least 1. */
  close(): void {
    this.#left = Math.max(1, this.#count)
  }

  /** Waits until it is open. */
  await(options?: WaitOptions): Waitable<void> {
    const signal = waitOf('latch.await()', options)
    return waitable(() => new Opening(this.#line, signal, this))
  }
}

class Opening extends Claim<void, never, Latch> {
  canGrant(): boolean {
    return this.of.isOpen
  }

  protected grant(): void {}

  protected collect(): void {}
}
