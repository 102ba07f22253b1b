/**
 * A store of a fleet, copied into the memory of the process, where all threads read it without waiting.
 *
 * Values are those of a store of the process, which the copy alone writes; how old they may be is beside
 * them, so that any thread can ask.
 */
import { effects } from '../../base/index.ts'
import { type Store, store } from '../../store/index.ts'
import type { Connected, Entry, KeyValue } from '../engine/engine.ts'
import { type CopySettings, checkName } from '../settings.ts'
import { changeOf } from './change.ts'
import { Following } from './following.ts'

const AGES = 'corespun fleet copies'
/** In a seeded run each task that is a process has copies of its own, and that of the first task. */
const keyOf = (name: string): string => `${effects.seeded?.()?.process ?? ''}${name}`
const idOf = (key: string): string => `corespun fleet copy ${key}`
/** The same in all threads. */
const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6

/**
 * The copy of a store. `store.copy()` makes it; `FarCopy.get(name)` returns it in other threads.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { FarCopy, connect } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const prices = fleet.store<number>('prices')
 * await prices.set('tea', 250)
 * await using copy = await prices.copy()
 * assert.equal(copy.get('tea'), 250)
 * assert.equal(FarCopy.get<number>('prices').get('tea'), 250)
 * assert.ok(copy.ageMs < 60_000)
 * ```
 */
export class FarCopy<Value> {
  /** The name of the store in the fleet. */
  readonly name: string
  /** Of its values and its age. */
  readonly #key: string
  readonly #values: Store<Value>
  readonly #ages = store.getOrCreate<number>(AGES)
  #following: Following | undefined

  private constructor(name: string, key: string, values: Store<Value>) {
    this.name = name
    this.#key = key
    this.#values = values
  }

  /**
   * The copy that a thread of this process has made.
   * @throws {StoreError} `STORE_UNKNOWN` when no thread has made it.
   */
  static get<Value = unknown>(name: string): FarCopy<Value> {
    checkName('FarCopy.get()', name)
    const own = keyOf(name)
    const key = store.getOrCreate<number>(AGES).has(own) ? own : name
    return new FarCopy(name, key, store.get<Value>(idOf(key)))
  }

  /** @internal */
  static async open<Value>(
    { clock }: Connected,
    name: string,
    values: KeyValue,
    { bytesMax, checkMs }: CopySettings,
  ): Promise<FarCopy<Value>> {
    const limits = bytesMax === undefined ? {} : { bytesMax }
    const key = keyOf(name)
    const copy = new FarCopy(name, key, store.create<Value>(idOf(key), { eviction: 'none', ...limits }))
    copy.#following = new Following(clock, values, {
      checkMs,
      nowMs,
      apply: (entry) => copy.#apply(entry),
      confirmed: (atMs) => copy.#ages.set(key, atMs),
    })
    try {
      await copy.#following.begin()
    } catch (error) {
      copy.close()
      throw error
    }
    return copy
  }

  #apply(entry: Entry): void {
    const change = changeOf<Value>(entry)
    if (change === undefined || change.isDeleted) this.#values.delete(entry.key)
    else this.#values.set(entry.key, change.value as Value)
  }

  /** The value, from memory; `undefined` for a key without one. @throws {StoreError} `STORE_CLOSED`. */
  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  /** How many values there are. */
  get size(): number {
    return this.#values.size
  }

  /**
   * How long ago it certainly had what the servers had, in ms. It is about `checkMs` while they can be
   * reached; it grows while they cannot, and once the values exceed `bytesMax`. Infinite for one that is
   * closed.
   */
  get ageMs(): number {
    return nowMs() - (this.#ages.get(this.#key) ?? -Infinity)
  }

  /** End the copy, in the thread that has made it; in others this does nothing. */
  close(): void {
    if (this.#following === undefined) return
    this.#following.close()
    this.#following = undefined
    this.#ages.delete(this.#key)
    this.#values.close()
  }

  /** `close()`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }
}
