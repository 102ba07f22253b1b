/**
 * Cache: results of a lookup by key, kept for a time; concurrent requests for a key share one lookup.
 *
 * A lookup runs in a fiber of its own. An interrupted request leaves it to the others, and the last one ends
 * it. It has no timers: what is too old is found when it is asked for, and the least recently used go first.
 * Its values are those of this thread, as they are; a store shares copies with all threads.
 */
import { integer, milliseconds, optionsOf } from '../../base/index.ts'
import { wrong } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import type { Fiber } from '../core/fiber.ts'
import { root } from '../core/fiber-scope.ts'
import { type FailureOf, type ValueOf, forkIn } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { exitWithin } from '../core/promises.ts'
import { turn } from '../scheduler/scheduler.ts'
import { Deferred } from './deferred.ts'
import { type WaitOptions, waitOf } from './line.ts'
import { waitable } from './waitable.ts'

/** Options of a {@link Cache}. */
export interface CacheOptions {
  /** Most values; the least recently used are dropped. 1 or more. Required. */
  readonly entriesMax: number
  /** How long a value is returned, in ms from the end of its lookup. Default: until it is dropped. */
  readonly ttlMs?: number
}

const KINDS = {
  entriesMax: integer(1, Number.MAX_SAFE_INTEGER, undefined),
  ttlMs: milliseconds(Infinity, Infinity),
}

interface Entry {
  /** What the lookup ends with. */
  readonly done: Deferred<unknown, unknown>
  /** Runs the lookup. */
  fiber: Fiber | undefined
  /** How many wait for it. */
  waiting: number
  /** All who waited were interrupted, and so is the lookup: the next one begins when it has ended. */
  isLeft: boolean
  /** Until when it may be returned; `undefined` while the lookup runs. */
  untilMs: number | undefined
}

/**
 * Values by key, each made by one lookup. A failed lookup fails all calls that wait for it and is not kept:
 * the next `get` looks up again.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Cache, sleep } from 'corespun/fiber'
 *
 * let lookups = 0
 * function* load(id: number) {
 *   lookups += 1
 *   yield* sleep(1)
 *   return { id }
 * }
 * const users = new Cache(load, { entriesMax: 1000, ttlMs: 60_000 })
 * const [one, two] = await Promise.all([users.get(7), users.get(7)])
 * assert.equal(one, two)
 * assert.equal(lookups, 1)
 * ```
 */
export class Cache<K, R> {
  readonly #lookup: (key: K, fiber: Fiber) => R
  readonly #entriesMax: number
  readonly #ttlMs: number
  /** The least recently used first. */
  readonly #entries = new Map<K, Entry>()

  /**
   * @param lookup Called like a body, with the key before its fiber: `async (key, { signal }) => ...`.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  constructor(lookup: (key: K, fiber: Fiber) => R, options: CacheOptions) {
    const { entriesMax, ttlMs } = optionsOf(options, KINDS, wrong, 'new Cache()')
    if (typeof lookup !== 'function') throw wrong('new Cache(): lookup', 'a function', lookup)
    if (entriesMax === undefined) throw wrong('new Cache()', '{ entriesMax }', entriesMax, { verb: 'needs' })
    this.#lookup = lookup
    this.#entriesMax = entriesMax
    this.#ttlMs = ttlMs
  }

  /** How many values are kept, including expired ones that nothing has asked for since. */
  get size(): number {
    return this.#entries.size
  }

  /** The value of a key, from its lookup if it is not there. Fails as the lookup does. */
  get(key: K, options?: WaitOptions): Waitable<ValueOf<() => R>, FailureOf<() => R>> {
    waitOf('cache.get()', options)
    return waitable(() => this.#got(key, options)) as Waitable<never, never>
  }

  /** The value of a key if it is in the cache; starts no lookup. */
  peek(key: K): ValueOf<() => R> | undefined {
    const exit = this.#fresh(key)?.done.exit
    return exit?.kind === 'success' ? exit.value : undefined
  }

  /** Drops a value and returns whether there was one. A running lookup continues; its value is not kept. */
  delete(key: K): boolean {
    return this.#entries.delete(key)
  }

  /** Drops all values, as `delete` does. */
  clear(): void {
    this.#entries.clear()
  }

  *#got(key: K, options: WaitOptions | undefined): Operation<unknown, unknown> {
    let entry = this.#fresh(key)
    while (entry?.isLeft === true) {
      yield* (entry.fiber as Fiber).await()
      entry = this.#fresh(key)
    }
    entry ??= this.#begun(key)
    // The last of the map is the most recently used; a lookup that has failed already is not there.
    if (this.#entries.delete(key)) this.#entries.set(key, entry)
    entry.waiting += 1
    try {
      return yield* entry.done.await(options)
    } finally {
      entry.waiting -= 1
      if (entry.waiting === 0 && entry.done.exit === undefined) {
        entry.isLeft = true
        void (entry.fiber as Fiber).interrupt('nobody waits for this lookup')
      }
    }
  }

  #fresh(key: K): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry?.untilMs === undefined || turn.scheduler.nowMs() < entry.untilMs) return entry
    this.#entries.delete(key)
    return undefined
  }

  #begun(key: K): Entry {
    const entry: Entry = {
      done: new Deferred(),
      fiber: undefined,
      waiting: 0,
      isLeft: false,
      untilMs: undefined,
    }
    this.#entries.set(key, entry)
    entry.fiber = forkIn(root, () => this.#looked(key, entry))
    return entry
  }

  *#looked(key: K, entry: Entry): Operation<void> {
    try {
      const exit = yield* exitWithin((fiber: Fiber) => this.#lookup(key, fiber))
      if (exit.kind === 'success') {
        entry.untilMs = turn.scheduler.nowMs() + this.#ttlMs
        this.#evict()
      }
      entry.done.done(exit)
    } finally {
      if (entry.untilMs === undefined && this.#entries.get(key) === entry) this.#entries.delete(key)
    }
  }

  /** Drops the least recently used; those that run are waited for. */
  #evict(): void {
    let over = this.#entries.size - this.#entriesMax
    for (const [key, { untilMs }] of this.#entries) {
      if (over <= 0) return
      if (untilMs === undefined) continue
      this.#entries.delete(key)
      over -= 1
    }
  }
}
