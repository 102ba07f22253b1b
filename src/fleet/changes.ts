/**
 * Changes by key, read one by one: of a key whose changes were not read yet, the last one remains.
 *
 * So a slow reader has less, and never an older state behind a newer one.
 */
import { Turns } from '../base/index.ts'
import type { End } from './engine/engine.ts'
import { FleetError } from './errors.ts'

const KEYS_MAX = 65_536
const DONE = { value: undefined, done: true } as const

interface Reader<Change> {
  resolve(result: IteratorResult<Change, undefined>): void
  reject(error: FleetError): void
}

/**
 * A promise of changes that a loop was begun with instead of awaiting it: the loop's own TypeError is what is
 * reported, and not that the connection has closed under what nobody waits for.
 */
export function unawaited<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => {})
  return promise
}

/**
 * Changes of a zone's jobs, or of a store. `jobs.watch()` and `store.watch()` make it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type FleetChanges, type JobInfo, connect, host } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const module = new URL('data:text/javascript,export const one = () => 1')
 * await using hosting = await host(fleet, { name: 'one', module, version: 'v1', jobsMax: 1 })
 * const jobs = fleet.jobs<{ one(): number }>(hosting.name)
 * const changes: FleetChanges<JobInfo> = await jobs.watch()
 * await jobs.submit('a', 'one', [])
 * for await (const { key, status } of changes) {
 *   assert.equal(key, 'a')
 *   if (status === 'done') break
 * }
 * ```
 */
export class FleetChanges<Change>
  implements AsyncIterableIterator<Change, undefined, undefined>, AsyncDisposable
{
  readonly #of: string
  readonly #changes = new Map<string, () => Change>()
  readonly #readers: Reader<Change>[] = []
  readonly #turns = new Turns()
  #end: End = () => {}
  #isOver = false
  #error: FleetError | undefined

  /** @internal */
  constructor(of: string) {
    this.#of = of
  }

  /** @internal */
  begun(end: End): void {
    this.#end = end
    if (this.#isOver) end()
  }

  /** @internal */
  push(key: string, change: () => Change): void {
    if (this.#isOver) return
    this.#changes.delete(key)
    this.#changes.set(key, change)
    if (!this.#turns.isPausing) this.#serve()
    if (this.#changes.size > KEYS_MAX)
      this.fail(new FleetError('CHANGES_BEHIND', { of: this.#of, keysMax: KEYS_MAX }))
  }

  /** @internal */
  fail(error: FleetError): void {
    if (this.#isOver) return
    const reader = this.#readers.shift()
    if (reader === undefined) this.#error = error
    else reader.reject(error)
    void this.return()
  }

  /** The next change. @throws {FleetError} `CHANGES_BEHIND` or `FLEET_CLOSED`, once. */
  next(): Promise<IteratorResult<Change, undefined>> {
    if (this.#error !== undefined) {
      const error = this.#error
      this.#error = undefined
      return Promise.reject(error)
    }
    if (this.#isOver) return Promise.resolve(DONE)
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject })
      // What ends a reader that computes comes meanwhile.
      if (this.#changes.size === 0 || !this.#turns.pauses(this.#serve)) this.#serve()
    })
  }

  readonly #serve = (): void => {
    for (const [key, change] of this.#changes) {
      const reader = this.#readers.shift()
      if (reader === undefined) return
      this.#changes.delete(key)
      reader.resolve({ value: change(), done: false })
    }
  }

  /** Ends it: calls of `next` that wait resolve with the end. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true
    this.#end()
    this.#changes.clear()
    for (const reader of this.#readers.splice(0)) reader.resolve(DONE)
    return DONE
  }

  /** As `return()`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  /** The changes themselves. */
  [Symbol.asyncIterator](): this {
    return this
  }
}
