/**
 * RwLock: many readers or one writer among the fibers of one thread, in the order of the requests.
 *
 * A writer takes all permits of a semaphore. So a reader that comes after a waiting writer waits behind it.
 */
import { optionsOf } from '../../base/index.ts'
import { type FiberError, wrong } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import { type LineOptions, WAITING_MAX, type WaitOptions, waitOf } from './line.ts'
import { Semaphore } from './semaphore.ts'
import { waitable } from './waitable.ts'

/** Most readers at once. */
const READERS_MAX = 2 ** 30

/**
 * A read-write lock for the fibers of a thread. It is not reentrant, and a read does not become a write.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { RwLock } from 'corespun/fiber'
 *
 * const lock = new RwLock()
 * let text = 'old'
 * const reads = [lock.read(async () => text), lock.read(() => text)]
 * await lock.write(() => void (text = 'new'))
 * assert.deepEqual([...(await Promise.all(reads)), text], ['old', 'old', 'new'])
 * ```
 */
export class RwLock {
  readonly #semaphore: Semaphore

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options?: LineOptions) {
    const { waitingMax } = optionsOf(options, { waitingMax: WAITING_MAX }, wrong, 'new RwLock()')
    this.#semaphore = new Semaphore({ permits: READERS_MAX, waitingMax }, 'a RwLock')
  }

  /** How many wait. */
  get waiting(): number {
    return this.#semaphore.waiting
  }

  /** Runs a body beside other readers. @throws {FiberError} As {@link Semaphore.withPermits}. */
  read<const B extends AnyBody>(
    body: B,
    options?: WaitOptions,
  ): Waitable<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_FULL'>> {
    const signal = waitOf('rwLock.read()', options)
    return waitable(() => this.#semaphore.guarded(body, 1, signal))
  }

  /** Runs a body while nobody reads or writes. @throws {FiberError} As {@link Semaphore.withPermits}. */
  write<const B extends AnyBody>(
    body: B,
    options?: WaitOptions,
  ): Waitable<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_FULL'>> {
    const signal = waitOf('rwLock.write()', options)
    return waitable(() => this.#semaphore.guarded(body, READERS_MAX, signal))
  }
}
