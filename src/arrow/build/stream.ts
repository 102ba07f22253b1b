/**
 * One arrow over many inputs, some at once: bounded, in order or as they come.
 *
 * It pulls: an input is taken only when there is room for its run, and there is room only when the reader has
 * taken what came before. Whatever ends it (a failure, the reader, the signal) ends all of it, as soon as it
 * is known: the runs are interrupted and have ended, the source is closed, and only then the reader hears;
 * but nobody waits for a source that is still looking for its next input.
 */
import { Flow, type Reader, abortSignal, flag, integer, optionsOf, readerOf } from '../../base/index.ts'
import { type Fiber } from '../../fiber/index.ts'
import { type Ready, runningFiber, stepAside } from '../../fiber/internal.ts'
import { wrong } from '../errors.ts'
import { unwrapped } from './failure.ts'
import { runNode, valueOf } from '../run/machine.ts'
import type { Node } from './node.ts'

/** How inputs are run. */
export interface StreamOptions {
  /** Most runs at once, 1 to 2^20. Default 1. */
  readonly concurrency?: number
  /** Results in the order of the inputs. Default true; false: as they come. */
  readonly ordered?: boolean
  /** Interrupts all of it. */
  readonly signal?: AbortSignal
}

const STREAM = { concurrency: integer(1, 2 ** 20, 1), ordered: flag(true), signal: abortSignal }

type Source = Iterable<unknown> | AsyncIterable<unknown>

/** See `Arrow.stream`. @throws {ArrowError} `ARROW_ARGUMENT`. */
export function streamed(
  node: Node,
  inputs: Source,
  options?: StreamOptions,
): AsyncGenerator<unknown, void, undefined> {
  const { concurrency, ordered, signal } = optionsOf(options, STREAM, wrong, 'stream()')
  const given = inputs as (Partial<AsyncIterable<unknown>> & Partial<Iterable<unknown>>) | null | undefined
  const open = given?.[Symbol.asyncIterator] ?? given?.[Symbol.iterator]
  if (typeof open !== 'function') throw wrong('stream(): inputs', 'something to iterate over', inputs)
  return new Stream(node, inputs, concurrency, ordered).outcomes(signal)
}

class Stream implements Ready, Reader {
  readonly #fiber: Fiber | undefined = runningFiber()
  readonly #controller = new AbortController()
  readonly #flow: Flow<ArrayLike<unknown>, unknown>
  readonly #reader: Reader
  /** Inputs and runs that are there at once leave timers, I/O and aborts their turn. */
  #isAside = false

  constructor(node: Node, inputs: Source, max: number, ordered: boolean) {
    const { signal } = this.#controller
    this.#flow = new Flow<ArrayLike<unknown>, unknown>({
      run: (items) => {
        if (stepAside(this)) this.#isAside = true
        return runNode(node, items[0], signal, this.#fiber)
      },
      settled: (run) => {
        if (run.hasFailed) this.#flow.fail(unwrapped(run.value, signal), false)
        else run.value = valueOf(run.value)
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
    return this.#flow.outcomes(this, signal)
  }

  read(): void {
    this.#reader.read()
  }

  async close(): Promise<void> {
    if (!this.#flow.isIdle) this.#flow.fail(new DOMException('the stream has ended', 'AbortError'), true)
    // Asynchronous functions are left behind, fibers have run their finalizers.
    await this.#flow.idle()
    try {
      await this.#reader.close()
    } catch {
      // What the source says to being closed concerns nobody: the reader has what it wanted, or an error.
    }
  }

  /** It has had to step aside. */
  resume(): void {
    this.#isAside = false
    this.#flow.changed()
  }
}
