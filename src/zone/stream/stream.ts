/**
 * `zone.stream` as its reader sees it: options that are checked, and the items.
 *
 * What runs a stream (run.ts) is loaded with the first item that a thread requests. Programs without streams
 * load neither that nor the channels below it.
 */
import type { Spreader } from '../parallel/engine.ts'
import { type CheckedOptions, checked } from '../call/call-options.ts'
import type { Run } from './run.ts'
import { here } from '../ground/current.ts'
import { deepen, leastDepth, readsFrom } from './waits.ts'

/** What runs streams, once a stream of this thread has begun. */
let runs: typeof import('./run.ts') | undefined

async function load(): Promise<void> {
  runs = await import('./run.ts')
}

const DONE = { value: undefined, done: true } as const

/** Begins a stream, whose task has at least that depth. */
type Begin = (module: typeof import('./run.ts'), depthMin: number) => Run

/** Streams that nobody can read any more. */
const unread = new FinalizationRegistry<Run>((run) => run.abandon())

/**
 * The items that a stream returns. It begins with the first `next()`, and must be read to its end or ended by
 * `return()`, as `for await` does.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun/zone'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * async function* doubled(numbers: AsyncIterable<number>): AsyncGenerator<number> {
 *   for await (const number of numbers) yield number * 2
 * }
 * const results: number[] = []
 * for await (const number of cpu.stream(doubled, [1, 2, 3])) results.push(number)
 * assert.deepEqual(results, [2, 4, 6])
 * await cpu.close()
 * ```
 */
export class ZoneStream<Item> implements AsyncIterableIterator<Item, undefined, undefined>, AsyncDisposable {
  readonly #begin: Begin
  #run: Run | undefined
  /** Until the first stream of the thread can begin. */
  #loading: Promise<void> | undefined
  #hasEnded = false

  /** @internal */
  constructor(begin: Begin) {
    this.#begin = begin
  }

  /** The next item. The first call begins the stream. */
  next(): Promise<IteratorResult<Item, undefined>> {
    if (this.#run !== undefined) return this.#run.next() as Promise<IteratorResult<Item, undefined>>
    if (this.#hasEnded) return Promise.resolve(DONE)
    // A call behind others that wait waits as well, so that items are returned in the order of the calls.
    if (runs === undefined || this.#loading !== undefined) return this.#whenLoaded()
    try {
      this.#run = this.#begin(runs, leastDepth(this))
      deepen(this, this.#run.depth + 1)
    } catch (error) {
      this.#hasEnded = true
      return Promise.reject(error)
    }
    unread.register(this, this.#run)
    return this.next()
  }

  async #whenLoaded(): Promise<IteratorResult<Item, undefined>> {
    this.#loading ??= load()
    await this.#loading
    this.#loading = undefined
    return this.next()
  }

  /**
   * Ends the stream: the function's iterator and the source are closed. Resolves when the function's clean-up
   * has run, or its task was cancelled because that takes longer than the zone's `graceMs`.
   */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#hasEnded = true
    await this.#run?.leave()
    return DONE
  }

  /** As `return()`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  /** The stream itself: it is read once. */
  [Symbol.asyncIterator](): this {
    return this
  }
}

export function stream(zone: Spreader, fn: unknown, source: unknown, options: unknown): ZoneStream<unknown> {
  let refused: unknown
  let isRefused = false
  let complete: CheckedOptions | undefined
  try {
    complete = checked(fn, source, options, zone.ahead)
  } catch (error) {
    refused = error
    isRefused = true
  }
  const begin: Begin = ({ Run }, depthMin) => {
    if (isRefused || complete === undefined) throw refused
    complete.signal?.throwIfAborted()
    return new Run(zone, fn as Function, source as object, complete, depthMin)
  }
  // The task belongs to this call, wherever its stream is read.
  const within = here.carrier?.bound()
  const made = new ZoneStream(
    within === undefined ? begin : (module, depth) => within(() => begin(module, depth)),
  )
  if (complete !== undefined) readsFrom(made, source as object)
  return made
}
