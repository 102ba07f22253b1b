/**
 * Lock and RwLock: semaphores whose permits callers do not see.
 *
 * The rules of granting are in guard.ts and in the core.
 */
import { registerHandle } from '../transport/internal.ts'
import { type GuardInfo, guard, guardSync, tryGuard } from './guard.ts'
import { SyncHandle, handleOrNew } from './handle.ts'
import { type BlockOptions, type WaitOptions, blockOf } from './turn.ts'

/** Most concurrent readers of a read-write lock; a writer takes all permits. */
const READERS_MAX = 2 ** 30

/**
 * A mutual-exclusion lock across all threads of the process, granted in the order of the requests. It is not
 * reentrant.
 *
 * A named lock stays in the process until it is disposed of. An anonymous one is shared by sending it to
 * other threads.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Lock } from 'corespun'
 *
 * const lock = Lock.getOrCreate('report')
 * assert.equal(await lock.guard(async () => 'one at a time'), 'one at a time')
 * lock[Symbol.dispose]()
 * ```
 */
export class Lock {
  static {
    registerHandle({
      tag: 'corespun.Lock',
      is: Lock,
      save: (lock: Lock) => lock.#handle.save(),
      load: (saved) => new Lock(SyncHandle.load('lock', saved as never)),
    })
  }

  /** The name in the process; `''` if the lock is anonymous. */
  readonly name: string
  readonly #handle: SyncHandle

  /** Creates an anonymous lock. */
  constructor()
  /** @internal */
  constructor(handle: SyncHandle)
  constructor(handle?: SyncHandle) {
    this.#handle = handleOrNew('lock', 1, handle)
    this.name = this.#handle.which.name
  }

  /**
   * Creates a lock with a name of 1 to 256 characters.
   * @throws {SyncError} `SYNC_EXISTS` when a lock has that name; `SYNC_ARGUMENT`.
   */
  static create(name: string): Lock {
    return new Lock(SyncHandle.create('lock', name, 1))
  }

  /**
   * Returns the lock that any thread has created with that name.
   * @throws {SyncError} `SYNC_UNKNOWN` when no lock has that name; `SYNC_ARGUMENT`.
   */
  static get(name: string): Lock {
    return new Lock(SyncHandle.get('lock', name))
  }

  /** Returns the lock with that name, and creates it if necessary. @throws {SyncError} `SYNC_ARGUMENT`. */
  static getOrCreate(name: string): Lock {
    return new Lock(SyncHandle.getOrCreate('lock', name, 1))
  }

  /**
   * Blocks the thread until it holds the lock, runs `fn` and returns its result.
   * @throws {SyncError} `SYNC_BLOCKING` in the main thread without `allowBlocking`, `SYNC_DEADLOCK` when the
   *   caller already holds or awaits the lock, `SYNC_TIMEOUT`, `SYNC_ASYNC_BODY` when `fn` returns a promise.
   */
  guardSync<R>(fn: (info: GuardInfo) => R, options?: BlockOptions): R {
    return guardSync(this.#handle, 1, fn, blockOf('lock.guardSync()', this.#handle.which, options))
  }

  /**
   * Waits for the lock without blocking the thread and runs `fn`. The lock is held until the result settles.
   * @throws {SyncError} `SYNC_DEADLOCK` when the calling code already holds the lock, `SYNC_TIMEOUT`.
   * @throws the signal's reason, and whatever `fn` throws.
   */
  guard<R>(fn: (info: GuardInfo) => R | Promise<R>, options?: WaitOptions): Promise<R> {
    return guard('lock.guard()', this.#handle, 1, fn, options)
  }

  /**
   * Runs `fn` if the lock is free and returns `{ value }`, otherwise `undefined`. If `value` is a promise,
   * the lock is held until it settles.
   */
  tryGuard<R>(fn: (info: GuardInfo) => R): { readonly value: R } | undefined {
    return tryGuard(this.#handle, 1, fn)
  }

  /** Removes the lock from the process and frees its name. Threads that have a handle can still use it. */
  [Symbol.dispose](): void {
    this.#handle.dispose()
  }

  /** As `Symbol.dispose`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#handle.dispose()
  }
}

/**
 * A read-write lock across all threads of the process: many readers or one writer. Requests are granted in
 * order, so a reader that arrives after a waiting writer waits behind it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { RwLock } from 'corespun'
 *
 * const lock = new RwLock()
 * assert.deepEqual(await Promise.all([1, 2].map((n) => lock.read(() => n))), [1, 2])
 * assert.equal(await lock.write(() => 'alone', { timeoutMs: 1000 }), 'alone')
 * ```
 */
export class RwLock {
  static {
    registerHandle({
      tag: 'corespun.RwLock',
      is: RwLock,
      save: (lock: RwLock) => lock.#handle.save(),
      load: (saved) => new RwLock(SyncHandle.load('rwLock', saved as never)),
    })
  }

  /** The name in the process; `''` if the lock is anonymous. */
  readonly name: string
  readonly #handle: SyncHandle

  /** Creates an anonymous lock. */
  constructor()
  /** @internal */
  constructor(handle: SyncHandle)
  constructor(handle?: SyncHandle) {
    this.#handle = handleOrNew('rwLock', READERS_MAX, handle)
    this.name = this.#handle.which.name
  }

  /**
   * Creates a read-write lock with a name of 1 to 256 characters.
   * @throws {SyncError} `SYNC_EXISTS` when a read-write lock has that name; `SYNC_ARGUMENT`.
   */
  static create(name: string): RwLock {
    return new RwLock(SyncHandle.create('rwLock', name, READERS_MAX))
  }

  /**
   * Returns the read-write lock that any thread has created with that name.
   * @throws {SyncError} `SYNC_UNKNOWN` when no read-write lock has that name; `SYNC_ARGUMENT`.
   */
  static get(name: string): RwLock {
    return new RwLock(SyncHandle.get('rwLock', name))
  }

  /** Returns the one with that name, and creates it if necessary. @throws {SyncError} `SYNC_ARGUMENT`. */
  static getOrCreate(name: string): RwLock {
    return new RwLock(SyncHandle.getOrCreate('rwLock', name, READERS_MAX))
  }

  /**
   * As {@link Lock.guardSync}, shared with other readers. A nested read of the same thread succeeds unless a
   * writer waits; then it throws `SYNC_DEADLOCK`, so do not nest reads.
   * @throws {SyncError} as there.
   */
  readSync<R>(fn: (info: GuardInfo) => R, options?: BlockOptions): R {
    return guardSync(this.#handle, 1, fn, blockOf('rwLock.readSync()', this.#handle.which, options))
  }

  /**
   * As {@link Lock.guard}, shared with other readers. A nested read by the same code succeeds unless a writer
   * waits; then it rejects with `SYNC_DEADLOCK`, because that writer waits for the outer read.
   * @throws {SyncError} as there.
   */
  read<R>(fn: (info: GuardInfo) => R | Promise<R>, options?: WaitOptions): Promise<R> {
    return guard('rwLock.read()', this.#handle, 1, fn, options)
  }

  /** As {@link Lock.tryGuard}, shared with other readers. */
  tryRead<R>(fn: (info: GuardInfo) => R): { readonly value: R } | undefined {
    return tryGuard(this.#handle, 1, fn)
  }

  /** As {@link Lock.guardSync}, exclusive. @throws {SyncError} as there. */
  writeSync<R>(fn: (info: GuardInfo) => R, options?: BlockOptions): R {
    const timeoutMs = blockOf('rwLock.writeSync()', this.#handle.which, options)
    return guardSync(this.#handle, READERS_MAX, fn, timeoutMs)
  }

  /** As {@link Lock.guard}, exclusive. @throws {SyncError} as there. */
  write<R>(fn: (info: GuardInfo) => R | Promise<R>, options?: WaitOptions): Promise<R> {
    return guard('rwLock.write()', this.#handle, READERS_MAX, fn, options)
  }

  /** As {@link Lock.tryGuard}, exclusive. */
  tryWrite<R>(fn: (info: GuardInfo) => R): { readonly value: R } | undefined {
    return tryGuard(this.#handle, READERS_MAX, fn)
  }

  /** Removes the lock from the process and frees its name. Threads that have a handle can still use it. */
  [Symbol.dispose](): void {
    this.#handle.dispose()
  }

  /** As `Symbol.dispose`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#handle.dispose()
  }
}
