/**
 * The runs of a stream: how one begins, and what is yielded for it.
 *
 * Runs that settle at once would starve timers, I/O and aborts, so each is a step of the fibers' budget.
 */
import { type Fiber } from '../../fiber/index.ts'
import { type Ready, runningFiber, stepAside } from '../../fiber/internal.ts'
import type { Settled } from '../../zone/index.ts'
import { watch } from '../../base/index.ts'
import { valueOf } from '../run/interpreter.ts'
import { runNode } from '../run/run-node.ts'
import { unwrapped } from '../build/failure.ts'
import type { ArrowNode } from '../build/node.ts'

const stays = (): void => {}

export class Runs implements Ready {
  readonly #node: ArrowNode
  readonly #fiber: Fiber | undefined = runningFiber()
  readonly #controller = new AbortController()
  readonly #signal = this.#controller.signal
  /** Whether outcomes are yielded, also of runs that fail. */
  readonly isSettling: boolean
  /** Whether the next run waits for a turn of the event loop; `resumed` is called then. */
  isAside = false
  resumed = (): void => {}

  constructor(node: ArrowNode, isSettling: boolean) {
    this.#node = node
    this.isSettling = isSettling
    // Runs come and go: with one that stays the listener that they share is added once.
    watch(this.#signal, stays)
  }

  /** Returns what `outcome` needs, or a promise of it. @throws What `reason` needs. */
  run(input: unknown): unknown {
    if (stepAside(this)) this.isAside = true
    return runNode(this.#node, input, this.#signal, this.#fiber)
  }

  resume(): void {
    this.isAside = false
    this.resumed()
  }

  outcome(settled: unknown, index: number): unknown {
    const value = valueOf(settled)
    return this.isSettling ? ({ index, status: 'fulfilled', value } satisfies Settled<unknown>) : value
  }

  rejected(reason: unknown, index: number): Settled<unknown> {
    return { index, status: 'rejected', reason }
  }

  reason(thrown: unknown): unknown {
    return unwrapped(thrown, this.#signal)
  }

  /** The stream ends: what runs still is interrupted. */
  end(why: unknown): void {
    this.#controller.abort(why)
  }

  get hasEnded(): boolean {
    return this.#signal.aborted
  }
}
