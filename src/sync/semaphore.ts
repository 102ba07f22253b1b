/**
 * Semaphore: a fixed number of permits for all threads of the process.
 *
 * The rules of granting are in guard.ts and in the core.
 */
import { integer, optionsOf, ownOptions, valueOfKind } from '../base/index.ts'
import { native } from '../native/index.ts'
import { registerHandle } from '../transport/internal.ts'
import { wrong } from './errors.ts'
import { type GuardInfo, guard, guardSync, tryGuard } from './guard.ts'
import { SyncHandle } from './handle.ts'
import { type BlockOptions, BLOCK_PERMITS, type WaitOptions, WAIT_PERMITS, blockOf } from './turn.ts'

/** Options of a new {@link Semaphore}. */
export interface SemaphoreOptions {
  /** Number of permits, 1 to 2,147,483,647. Required. */
  readonly permits: number
}

/** How many permits a call takes. */
export interface PermitOptions {
  /** Number of permits, 1 (the default) to all that the semaphore has. */
  readonly permits?: number
}

const KINDS = { permits: integer<number | undefined>(1, 2 ** 31 - 1, undefined) }
const PERMITS = new Set(['permits'])

/**
 * A counting semaphore across all threads of the process. Requests are granted in order.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Semaphore } from 'corespun'
 *
 * const semaphore = new Semaphore({ permits: 2 })
 * assert.deepEqual(await Promise.all([1, 2, 3].map((n) => semaphore.guard(() => n * n))), [1, 4, 9])
 * assert.equal(semaphore.free, 2)
 * ```
 */
export class Semaphore {
  static {
    registerHandle({
      tag: 'corespun.Semaphore',
      is: Semaphore,
      save: (semaphore: Semaphore) => semaphore.#handle.save(),
      load: (saved) => new Semaphore(SyncHandle.load('semaphore', saved as never)),
    })
  }

  /** The name in the process; `''` if the semaphore is anonymous. */
  readonly name: string
  readonly #handle: SyncHandle

  /** Creates an anonymous semaphore. @throws {SyncError} `SYNC_ARGUMENT`. */
  constructor(options: SemaphoreOptions)
  /** @internal */
  constructor(handle: SyncHandle)
  constructor(from: SemaphoreOptions | SyncHandle) {
    this.#handle =
      from instanceof SyncHandle
        ? from
        : SyncHandle.anonymous('semaphore', permitsOf('new Semaphore()', from))
    this.name = this.#handle.which.name
  }

  /**
   * Creates a semaphore with a name of 1 to 256 characters.
   * @throws {SyncError} `SYNC_EXISTS` when a semaphore has that name; `SYNC_ARGUMENT`.
   */
  static create(name: string, options: SemaphoreOptions): Semaphore {
    return new Semaphore(SyncHandle.create('semaphore', name, permitsOf('Semaphore.create()', options)))
  }

  /**
   * Returns the semaphore that any thread has created with that name.
   * @throws {SyncError} `SYNC_UNKNOWN` when no semaphore has that name; `SYNC_ARGUMENT`.
   */
  static get(name: string): Semaphore {
    return new Semaphore(SyncHandle.get('semaphore', name))
  }

  /**
   * Returns the semaphore with that name, and creates it if necessary.
   * @throws {SyncError} `SYNC_ARGUMENT`, also when it has another number of permits.
   */
  static getOrCreate(name: string, options: SemaphoreOptions): Semaphore {
    const permits = permitsOf('Semaphore.getOrCreate()', options)
    return new Semaphore(SyncHandle.getOrCreate('semaphore', name, permits))
  }

  /** Number of permits. */
  get permits(): number {
    return this.#handle.amount
  }

  /** Number of permits that are free now. */
  get free(): number {
    return native.semaphoreCounts(this.#handle.id, false)
  }

  /**
   * As {@link Lock.guardSync}, with `permits` permits (default 1).
   * @throws {SyncError} as there.
   */
  guardSync<R>(fn: (info: GuardInfo) => R, options?: BlockOptions & PermitOptions): R {
    const call = 'semaphore.guardSync()'
    const permits = this.#count(call, options)
    return guardSync(this.#handle, permits, fn, blockOf(call, this.#handle.which, options, BLOCK_PERMITS))
  }

  /**
   * As {@link Lock.guard}, with `permits` permits (default 1).
   * @throws {SyncError} as there.
   */
  async guard<R>(fn: (info: GuardInfo) => R | Promise<R>, options?: WaitOptions & PermitOptions): Promise<R> {
    const call = 'semaphore.guard()'
    return guard(call, this.#handle, this.#count(call, options), fn, options, WAIT_PERMITS)
  }

  /** As {@link Lock.tryGuard}, with `permits` permits (default 1). @throws {SyncError} `SYNC_ARGUMENT`. */
  tryGuard<R>(fn: (info: GuardInfo) => R, options?: PermitOptions): { readonly value: R } | undefined {
    const call = 'semaphore.tryGuard()'
    if (options !== undefined) ownOptions(options, PERMITS, wrong, call)
    return tryGuard(this.#handle, this.#count(call, options), fn)
  }

  /** Removes it from the process and frees its name. Threads that have a handle can still use it. */
  [Symbol.dispose](): void {
    this.#handle.dispose()
  }

  /** As `Symbol.dispose`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#handle.dispose()
  }

  #count(call: string, options: PermitOptions | undefined): number {
    if (options === undefined || options === null || !Object.hasOwn(options, 'permits')) return 1
    return valueOfKind(call, 'permits', options.permits, integer(1, this.#handle.amount, 1), wrong)
  }
}

function permitsOf(call: string, options: SemaphoreOptions): number {
  const { permits } = optionsOf(options, KINDS, wrong, call)
  if (permits === undefined) throw wrong(call, '{ permits }', permits, { verb: 'needs' })
  return permits
}
