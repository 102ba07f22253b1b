/**
 * A stream as an asynchronous iterator, for `for await`, `ReadableStream.from` and `Readable.from`.
 *
 * A fiber of its own runs it, from the first request on, and never further than to the item that is asked
 * for. Whoever leaves the loop interrupts the fiber, also while a request waits, and waits for its end.
 */
import { Flow, outcomesOf } from '../base/index.ts'
import type { Exit, Fiber, Operation } from '../fiber/index.ts'
import { News, type NewsSource, forkAsked, isTrouble, thrownBy, troublesIn } from '../fiber/internal.ts'
import type { Emit, Run } from './run.ts'

export function readerOf(run: Run): AsyncGenerator<unknown, void, undefined> {
  const reader = new StreamReader(run)
  return outcomesOf(reader.flow, reader, undefined)
}

class StreamReader implements NewsSource<undefined> {
  readonly flow: Flow<unknown, unknown> = new Flow<unknown, unknown>({
    run: (item) => item,
    settled: () => {},
    ordered: true,
    runsMax: 1,
    // With a bound on items an item counts until the next request.
    aheadMax: 1,
    refillsLate: false,
  })
  readonly #run: Run
  readonly #request = new News(this)
  #listener: (() => void) | undefined
  #fiber: Fiber | undefined
  #answer: ((result: unknown) => void) | undefined
  #isLeft = false

  constructor(run: Run) {
    this.#run = run
  }

  read(): Promise<unknown> | undefined {
    const { flow } = this
    if (this.#fiber === undefined) this.#begin()
    else this.#listener?.()
    if (flow.next() !== undefined || flow.isEnded) return undefined
    return new Promise((resolve) => (this.#answer = resolve))
  }

  leave(): void {
    this.#isLeft = true
    void this.#fiber?.interrupt('its reader needs no more')
  }

  /** @throws What has failed while the stream was closed. */
  async close(): Promise<void> {
    this.leave()
    const exit = await this.#fiber?.await()
    if (exit !== undefined && exit.kind !== 'success' && isTrouble(exit)) throw thrownBy(troublesIn(exit)[0])
  }

  #begin(): void {
    const run = this.#run
    const emit = this.#emit
    this.#fiber = forkAsked(function* (): Operation<unknown, unknown> {
      return yield* run(emit)
    }, undefined)
    this.#fiber.addWaiter({ waitsFor: () => true, wakeBy: () => this.#ended() })
  }

  readonly #emit: Emit = (item) => {
    this.flow.begin(item, 1)
    this.#arrived()
    return this.#request
  }

  /** See {@link NewsSource}: whether an item is asked for. */
  get isReady(): boolean {
    return this.flow.hasCapacity(1)
  }

  /** See {@link NewsSource}. */
  onNews(listener: (() => void) | undefined): void {
    this.#listener = listener
  }

  /** See {@link NewsSource}. */
  take(): undefined {
    return undefined
  }

  /** See {@link NewsSource}. */
  describe(): string {
    return 'the next request of a loop'
  }

  #ended(): void {
    const exit = this.#fiber?.exit as Exit<unknown, unknown>
    if (exit.kind === 'success' || (this.#isLeft && !isTrouble(exit))) this.flow.ended()
    else this.flow.fail(thrownBy(exit), false)
    this.#arrived()
  }

  #arrived(): void {
    const answer = this.#answer
    this.#answer = undefined
    answer?.(this.flow.arrived())
  }
}
