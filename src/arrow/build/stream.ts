/**
 * One arrow over many inputs, some at once: bounded, in order or as they end.
 *
 * It pulls: it reads an input only when a run may begin, and a run may begin only when the reader has taken
 * earlier results. Whatever ends the stream (a failure, the reader, the signal) interrupts the runs and
 * closes the source before the reader's promise settles; a source that is still producing its next input is
 * not waited for.
 */
import {
  type AnyIterable,
  Flow,
  type Reader,
  abortSignal,
  flag,
  integer,
  optionsOf,
  outcomesOf,
  readerOf,
} from '../../base/index.ts'
import { type Fiber } from '../../fiber/index.ts'
import { type Ready, runningFiber, stepAside } from '../../fiber/internal.ts'
import type { Settled } from '../../zone/index.ts'
import { bound } from '../../zone/internal.ts'
import { wrong } from '../errors.ts'
import { unwrapped } from './failure.ts'
import { valueOf } from '../run/interpreter.ts'
import { runNode } from '../run/run-node.ts'
import type { ArrowNode } from './node.ts'

/** Options of `Arrow.stream`. */
export interface StreamOptions {
  /** Most runs at once, 1 to 2^20. Default 1. */
  readonly concurrency?: number
  /** Results in the order of the inputs. Default true; false: in the order in which runs end. */
  readonly ordered?: boolean
  /**
   * Yield an outcome for each input, `{ index, status, value }` or `{ index, status, reason }`, instead of
   * ending with the first failure. Default false.
   */
  readonly settle?: boolean
  /** Ends the stream with its reason and interrupts all runs. */
  readonly signal?: AbortSignal
}

const STREAM = {
  concurrency: integer(1, 2 ** 20, 1),
  ordered: flag(true),
  settle: flag(false),
  signal: abortSignal,
}

export function streamed(
  node: ArrowNode,
  inputs: AnyIterable<unknown>,
  options?: StreamOptions,
): AsyncGenerator<unknown, void, undefined> {
  const { concurrency, ordered, settle, signal } = optionsOf(options, STREAM, wrong, 'stream()')
  const given = inputs as (Partial<AsyncIterable<unknown>> & Partial<Iterable<unknown>>) | null | undefined
  const open = given?.[Symbol.asyncIterator] ?? given?.[Symbol.iterator]
  if (typeof open !== 'function') throw wrong('stream(): inputs', 'an iterable or async iterable', inputs)
  return bound(new Stream(node, inputs, concurrency, ordered, settle).outcomes(signal))
}

class Stream implements Ready, Reader {
  readonly #fiber: Fiber | undefined = runningFiber()
  readonly #controller = new AbortController()
  readonly #flow: Flow<ArrayLike<unknown>, unknown>
  readonly #reader: Reader
  /** It waits for a turn of the event loop: runs that settle at once would starve timers, I/O and aborts. */
  #isAside = false

  constructor(node: ArrowNode, inputs: AnyIterable<unknown>, max: number, ordered: boolean, settle: boolean) {
    const { signal } = this.#controller
    this.#flow = new Flow<ArrayLike<unknown>, unknown>({
      run: (items) => {
        if (stepAside(this)) this.#isAside = true
        return runNode(node, items[0], signal, this.#fiber)
      },
      settled: (run) => {
        if (run.hasFailed) {
          const reason = unwrapped(run.value, signal)
          // A run that the end of the stream has interrupted has no outcome.
          if (settle && !signal.aborted) run.succeed(rejected(run.first, reason))
          else this.#flow.fail(reason, false)
        } else {
          const value = valueOf(run.value)
          run.value = settle ? fulfilled(run.first, value) : value
        }
      },
      failed: (why) => this.#controller.abort(why),
      ordered,
      runsMax: max,
      refillsLate: false,
      mayRead: () => !this.#isAside,
    })
    this.#reader = readerOf(inputs, this.#flow)
  }

  outcomes(signal: AbortSignal | undefined): AsyncGenerator<unknown, void, undefined> {
    return outcomesOf(this.#flow, this, signal)
  }

  read(): Promise<unknown> | void {
    return this.#reader.read()
  }

  async close(): Promise<void> {
    if (!this.#flow.isIdle) this.#flow.fail(new DOMException('the stream has ended', 'AbortError'), true)
    // Runs of asynchronous functions are abandoned; those of fibers have run their finalizers.
    await this.#flow.idle()
    try {
      await this.#reader.close()
    } catch {
      // The reader has its results, or an error that matters more.
    }
  }

  resume(): void {
    this.#isAside = false
    this.#flow.changed()
  }
}

function fulfilled(index: number, value: unknown): Settled<unknown> {
  return { index, status: 'fulfilled', value }
}

function rejected(index: number, reason: unknown): Settled<unknown> {
  return { index, status: 'rejected', reason }
}
