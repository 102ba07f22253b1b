/**
 * FiberSet and FiberMap: fibers that are begun one by one, kept while they run, and ended together.
 *
 * Both are a scope that counts: the first fiber that fails ends the others. A fiber that has ended is
 * removed at once, so a set of a server that runs for months stays as small as what runs now.
 */
import { optionsOf } from '../../base/index.ts'
import { FiberError, wrong } from '../errors.ts'
import { emptied } from '../core/closing.ts'
import type { Waitable } from '../core/endings.ts'
import type { Exit } from '../core/exit.ts'
import type { Fiber } from '../core/fiber.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { Scope } from '../core/scope.ts'
import { type Wakeable, withWaiter } from '../core/waiters.ts'
import { atMost } from './line.ts'
import { waitable } from './waitable.ts'

/** Options of a {@link FiberSet} and a {@link FiberMap}. */
export interface FiberSetOptions {
  /** Most fibers at once, 1 or more: `run` throws `FIBER_FULL` for another one. Default: no limit. */
  readonly fibersMax?: number
}

const KINDS = { fibersMax: atMost(1) }

/**
 * Fibers by key, one for each. A new one under a key replaces the other, which is interrupted. Made in a
 * fiber it ends with that fiber.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { FiberMap, never } from 'corespun/fiber'
 *
 * await using sessions = new FiberMap<string>({ fibersMax: 1000 })
 * const first = sessions.run('Ann', never())
 * sessions.run('Ann', never())
 * assert.equal((await first.await()).kind, 'interruption')
 * assert.equal(sessions.size, 1)
 * ```
 */
export class FiberMap<K = unknown> {
  readonly #scope: Scope
  readonly #fibers = new Map<K, Fiber>()
  readonly #fibersMax: number
  /** Those that were replaced and have not ended are counted, too. */
  #count = 0

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options?: FiberSetOptions) {
    this.#fibersMax = optionsOf(options, KINDS, wrong, 'fibers').fibersMax
    this.#scope = new Scope({ name: 'fibers' })
  }

  /** How many fibers have not ended, those included that were replaced and end. */
  get size(): number {
    return this.#count
  }

  /** The fiber under a key. */
  get(key: K): Fiber | undefined {
    return this.#fibers.get(key)
  }

  /** The keys with their fibers. */
  [Symbol.iterator](): Iterator<[K, Fiber]> {
    return this.#fibers.entries()
  }

  /**
   * Runs a body as a fiber under `key`, and interrupts the one that is there.
   * @throws {FiberError} `FIBER_FULL`; `FIBER_SCOPE_CLOSED` when it was closed, or a fiber has failed.
   */
  run<const B extends AnyBody>(key: K, body: B): Fiber<ValueOf<B>, FailureOf<B>> {
    if (this.#count >= this.#fibersMax)
      throw new FiberError('FIBER_FULL', { what: 'the set of fibers', most: this.#fibersMax })
    const other = this.#fibers.get(key)
    this.#fibers.delete(key)
    void other?.interrupt('replaced')
    const fiber = this.#scope.fork(body)
    if (fiber.exit !== undefined) return fiber
    this.#count += 1
    this.#fibers.set(key, fiber)
    const left: Wakeable = {
      wakeBy: () => {
        this.#count -= 1
        if (this.#fibers.get(key) === fiber) this.#fibers.delete(key)
      },
      waitsFor: () => true,
    }
    // Not as one that asks for its exit: a failure stays one that nobody has received.
    fiber.waiters = withWaiter(fiber.waiters, left)
    return fiber
  }

  /** Interrupts all fibers and waits for them; others can be run afterwards. */
  clear(): Waitable<void> {
    return waitable(() => this.#cleared())
  }

  /** Waits until no fiber runs. */
  empty(): Waitable<void> {
    return waitable(() => emptied(this.#scope.members))
  }

  /** Waits until all have ended by themselves, and closes it. Throws the failure of the first that failed. */
  join(): Waitable<void, unknown> {
    return this.#scope.join()
  }

  /** Interrupts all fibers and waits for them; no other can be run afterwards. Returns all errors. */
  close(): Waitable<Exit<void, unknown>> {
    return this.#scope.close()
  }

  /** As `close()`, and throws what a fiber has failed with that nobody has joined. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope[Symbol.asyncDispose]()
  }

  *#cleared(): Operation<void> {
    for (const fiber of [...this.#fibers.values()]) void fiber.interrupt('cleared')
    yield* emptied(this.#scope.members)
  }
}

/**
 * Fibers that run beside each other until they end, or are ended together. Made in a fiber it ends with that
 * fiber.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { FiberSet, sleep } from 'corespun/fiber'
 *
 * const requests = new FiberSet({ fibersMax: 100 })
 * for (const ms of [1, 2, 3]) requests.run(sleep(ms))
 * assert.equal(requests.size, 3)
 * await requests.join()
 * assert.equal(requests.size, 0)
 * ```
 */
export class FiberSet {
  readonly #fibers: FiberMap<object>

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options?: FiberSetOptions) {
    this.#fibers = new FiberMap(options)
  }

  /** How many fibers have not ended. */
  get size(): number {
    return this.#fibers.size
  }

  /** The fibers. */
  *[Symbol.iterator](): Generator<Fiber, void, undefined> {
    for (const [, fiber] of this.#fibers as Iterable<[object, Fiber]>) yield fiber
  }

  /** Runs a body as a fiber of the set. @throws {FiberError} As {@link FiberMap.run}. */
  run<const B extends AnyBody>(body: B): Fiber<ValueOf<B>, FailureOf<B>> {
    return this.#fibers.run({}, body)
  }

  /** See {@link FiberMap.clear}. */
  clear(): Waitable<void> {
    return this.#fibers.clear()
  }

  /** See {@link FiberMap.empty}. */
  empty(): Waitable<void> {
    return this.#fibers.empty()
  }

  /** See {@link FiberMap.join}. */
  join(): Waitable<void, unknown> {
    return this.#fibers.join()
  }

  /** See {@link FiberMap.close}. */
  close(): Waitable<Exit<void, unknown>> {
    return this.#fibers.close()
  }

  /** See {@link FiberMap.close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#fibers[Symbol.asyncDispose]()
  }
}
