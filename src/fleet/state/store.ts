/**
 * Values that all machines of a fleet share, by key, each write with a revision.
 *
 * The servers have them; reads here ask the servers, and a copy (copy.ts) is what is read without. A write by
 * revision is done on the value that its writer has seen, or not at all.
 */
import { decode, encode } from '../../transport/index.ts'
import { opened } from '../certainly.ts'
import { FleetChanges, unawaited } from '../changes.ts'
import type { Entry, Keeps } from '../engine/engine.ts'
import { checkSize, unlessConflict, wrong } from '../errors.ts'
import {
  type CopyOptions,
  type RevisionOptions,
  checkKey,
  copyOptions,
  revisionOptions,
} from '../settings.ts'
import { type FarChange, type FarEntry, changeOf } from './change.ts'
import { FarCopy } from './copy.ts'

/** The values of a store. */
export const storeName = (name: string): string => `store_${name}`
/** What of a message does not belong to the value. */
const HEAD_BYTES = 4096

/**
 * A store of a fleet. `fleet.store(name)` makes it; it has no state that would have to be closed.
 *
 * All methods fail with `FLEET_TIMEOUT` when the server does not confirm and with `FLEET_CLOSED` after the
 * end of the connection.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type FarStore, connect } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const prices: FarStore<number> = fleet.store('prices')
 * const revision = await prices.set('tea', 250)
 * await prices.update('tea', (cents = 0) => cents + 10)
 * assert.equal((await prices.get('tea'))?.value, 260)
 * await assert.rejects(prices.set('tea', 1, { revision }), { code: 'FLEET_CONFLICT' })
 * ```
 */
export class FarStore<Value> {
  /** The name in the fleet. */
  readonly name: string
  /** How long after its last write a value ends, in ms; 0: it is kept. */
  readonly ttlMs: number
  readonly #keeps: Keeps
  readonly #values = opened(() => this.#keeps.keyValue(storeName(this.name), { ttlMs: this.ttlMs }))

  /** @internal */
  constructor(keeps: Keeps, name: string, ttlMs = 0) {
    this.name = name
    this.#keeps = keeps
    this.ttlMs = ttlMs
  }

  /** Values that end are reported to nobody. */
  #checkKept(call: string): void {
    if (this.ttlMs > 0) throw wrong(`${call}: the store`, 'one without ttlMs', this.ttlMs)
  }

  /**
   * The value and its revision, by the servers; `undefined` for a key without one.
   * @throws {FleetError} `FLEET_ARGUMENT`.
   * @throws {TransportError} For a value of a class that is not registered here.
   */
  async get(key: string): Promise<FarEntry<Value> | undefined> {
    checkKey('store.get()', key)
    const entry = await (await this.#values()).get(key)
    if (entry?.bytes === undefined) return undefined
    return { key, value: decode(entry.bytes) as Value, revision: entry.revision }
  }

  /**
   * Write a value. Resolves with its revision when the servers have it.
   * @throws {FleetError} `FLEET_CONFLICT` when the value has another revision than `options` name;
   *   `FLEET_TOO_LARGE` for more than a message of the server; `FLEET_ARGUMENT`.
   * @throws {TransportError} For a value that cannot be encoded.
   */
  async set(key: string, value: Value, options?: RevisionOptions): Promise<number> {
    const call = 'store.set()'
    checkKey(call, key)
    const { revision } = revisionOptions(call, options)
    const bytes = encode(value)
    checkSize(bytes.length, this.#keeps.messageBytesMax - HEAD_BYTES, 'max_payload')
    return (await this.#values()).put(key, bytes, revision === undefined ? {} : { revision })
  }

  /**
   * Replace a value by what `fn` makes of it, which receives `undefined` for a key without one. When another
   * write comes between, `fn` is called again with what that has written.
   * @throws {FleetError} `FLEET_TIMEOUT` when it may be written or not: read before repeating it.
   * @throws Whatever `fn` throws; nothing is written then.
   */
  async update(key: string, fn: (value: Value | undefined) => Value): Promise<FarEntry<Value>> {
    if (typeof fn !== 'function') throw wrong('store.update(): fn', 'a function', fn)
    for (;;) {
      const found = await this.get(key)
      const value = fn(found?.value)
      const revision = await unlessConflict(this.set(key, value, { revision: found?.revision ?? 0 }))
      if (revision !== undefined) return { key, value, revision }
    }
  }

  /**
   * Delete a value; a key without one is skipped.
   * @throws {FleetError} `FLEET_CONFLICT` when the value has another revision than `options` name.
   */
  async delete(key: string, options?: RevisionOptions): Promise<void> {
    const call = 'store.delete()'
    checkKey(call, key)
    const { revision } = revisionOptions(call, options)
    await (await this.#values()).delete(key, revision)
  }

  /**
   * Every change from now on. A slow reader has the last one of each key, and `CHANGES_BEHIND` when it is
   * behind by 65,536 keys. Values that cannot be read here are left out. Leave the loop to end it.
   * @throws {FleetError} `FLEET_ARGUMENT` for a store with `ttlMs`.
   */
  watch(): Promise<FleetChanges<FarChange<Value>>> {
    return unawaited(this.#watch())
  }

  async #watch(): Promise<FleetChanges<FarChange<Value>>> {
    this.#checkKept('store.watch()')
    const changes = new FleetChanges<FarChange<Value>>(`the store ${JSON.stringify(this.name)}`)
    const changed = (entry: Entry): void => {
      const change = changeOf<Value>(entry)
      if (change !== undefined) changes.push(entry.key, () => change)
    }
    const values = await this.#values()
    changes.begun(await values.watch(changed, { from: 'now', over: (why) => changes.fail(why) }))
    return changes
  }

  /**
   * A copy of all values in the memory of this process, which follows the servers. All threads read it
   * without waiting: this one by what is returned, workers by `FarCopy.get(name)`.
   * @throws {StoreError} `STORE_EXISTS` when this process has a copy of that store; `STORE_FULL`.
   * @throws {FleetError} `FLEET_ARGUMENT`.
   */
  async copy(options?: CopyOptions): Promise<FarCopy<Value>> {
    this.#checkKept('store.copy()')
    const settings = copyOptions(options)
    return FarCopy.open<Value>(this.#keeps, this.name, await this.#values(), settings)
  }
}
