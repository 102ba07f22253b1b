/**
 * Barrier: a number of fibers wait for each other, again and again.
 *
 * One that is interrupted while it waits is not counted, and the others wait for another one.
 */
import { integer, optionsOf } from '../../base/index.ts'
import type { Waitable } from '../core/endings.ts'
import { wrong } from '../errors.ts'
import { Claim, Line, type WaitOptions, waitOf } from './line.ts'
import { waitable } from './waitable.ts'

/** Options of a {@link Barrier}. */
export interface BarrierOptions {
  /** How many continue together, 1 or more. Required. */
  readonly parties: number
}

const KINDS = { parties: integer(1, Number.MAX_SAFE_INTEGER, undefined) }

/**
 * Each fiber waits until `parties` of them do. Then these continue, and the next round begins.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Barrier } from 'corespun/fiber'
 *
 * const round = new Barrier({ parties: 2 })
 * assert.deepEqual(await Promise.all([round.await(), round.await()]), [0, 1])
 * ```
 */
export class Barrier {
  /** How many continue together. */
  readonly parties: number
  readonly #line = new Line('a Barrier')

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options: BarrierOptions) {
    const { parties } = optionsOf(options, KINDS, wrong, 'new Barrier()')
    if (parties === undefined) throw wrong('new Barrier()', '{ parties }', parties, { verb: 'needs' })
    this.parties = parties
  }

  /** How many wait. */
  get waiting(): number {
    return this.#line.size
  }

  /** Waits until `parties` wait. Returns how many came before, of the same round: 0 for the first. */
  await(options?: WaitOptions): Waitable<number> {
    const signal = waitOf('barrier.await()', options)
    return waitable(() => new Arrival(this.#line, signal, this))
  }
}

class Arrival extends Claim<number, never, Barrier> {
  /** -1 until its round is whole. */
  #index = -1

  canGrant(): boolean {
    return false
  }

  /** The last of a round waits for nobody. */
  protected override isNext(): boolean {
    return this.line.size + 1 === this.of.parties
  }

  protected grant(): void {
    if (this.#index >= 0) return
    this.#index = this.of.parties - 1
    for (let index = 0; this.line.first !== undefined; index += 1) {
      const first = this.line.first as unknown as Arrival
      first.#index = index
      first.leave(true)
    }
  }

  protected collect(): number {
    return this.#index
  }
}
