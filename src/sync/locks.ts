/**
 * Lock, RwLock and Semaphore: names for gates.
 *
 * All rules are in guard.ts; these say how many permits each way in takes.
 */
import { ownOptions } from '../base/index.ts'
import { native } from '../native/index.ts'
import { type Held, guard, guardSync, tryGuard } from './guard.ts'
import { wrong } from './errors.ts'
import { type Arrived, Thing, checkCount } from './thing.ts'
import { type BlockOptions, BLOCK_PERMITS, type WaitOptions, WAIT_PERMITS, blockOf } from './turn.ts'

/** Readers that hold a read-write lock at once; writers take all of it. */
const READERS_MAX = 2 ** 30
const PERMITS = new Set(['permits'])
const PERMITS_MAX = 2 ** 31 - 1

/** Lets one call in at a time, across all threads, in the order they came. Not reentrant. */
export class Lock extends Thing {
  /**
   * @param name Process-wide; without one the lock is known by its handles only.
   * @throws {SyncError} `SYNC_ARGUMENT`.
   */
  constructor(name?: string | Arrived) {
    super('lock', name, 1)
  }

  /**
   * Run `fn` with the lock and return its result; blocks the thread until the lock is free.
   * @throws {SyncError} `SYNC_BLOCKING` in the main thread, `SYNC_OWN`, `SYNC_TIMEOUT`, `SYNC_ASYNC_BODY`.
   */
  guardSync<R>(fn: (held: Held) => R, options?: BlockOptions): R {
    return guardSync(this, 1, fn, blockOf('lock.guardSync()', this.which, options))
  }

  /**
   * Run `fn` with the lock when it is this call's turn; it is held until what `fn` returns has settled.
   * @throws {SyncError} `SYNC_OWN`, `SYNC_TIMEOUT`. @throws the signal's reason, and what `fn` throws.
   */
  guard<R>(fn: (held: Held) => R | Promise<R>, options?: WaitOptions): Promise<R> {
    return guard('lock.guard()', this, 1, fn, options)
  }

  /**
   * Run `fn` with the lock if it is free now; `undefined` when it is not, as when the caller has it. A
   * promise keeps it until it settles.
   */
  tryGuard<R>(fn: (held: Held) => R): { readonly value: R } | undefined {
    return tryGuard(this, 1, fn)
  }
}

/** Lets in any number of readers, or one writer. Whoever comes while others wait stands behind them. */
export class RwLock extends Thing {
  /**
   * @param name Process-wide; without one the lock is known by its handles only.
   * @throws {SyncError} `SYNC_ARGUMENT`.
   */
  constructor(name?: string | Arrived) {
    super('rwLock', name, READERS_MAX)
  }

  /**
   * As {@link Lock.guardSync}, with other readers. Within a read of the same thread it is let in, but
   * `SYNC_OWN` when a writer waits: do not nest them.
   * @throws {SyncError} as there.
   */
  readSync<R>(fn: (held: Held) => R, options?: BlockOptions): R {
    return guardSync(this, 1, fn, blockOf('rwLock.readSync()', this.which, options))
  }

  /**
   * As {@link Lock.guard}, with other readers. Within a read by the same code it is let in, but `SYNC_OWN`
   * when a writer waits: that one waits for the outer read.
   * @throws {SyncError} as there.
   */
  read<R>(fn: (held: Held) => R | Promise<R>, options?: WaitOptions): Promise<R> {
    return guard('rwLock.read()', this, 1, fn, options)
  }

  /** As {@link Lock.tryGuard}, with other readers. */
  tryRead<R>(fn: (held: Held) => R): { readonly value: R } | undefined {
    return tryGuard(this, 1, fn)
  }

  /** As {@link Lock.guardSync}, alone. @throws {SyncError} as there. */
  writeSync<R>(fn: (held: Held) => R, options?: BlockOptions): R {
    return guardSync(this, READERS_MAX, fn, blockOf('rwLock.writeSync()', this.which, options))
  }

  /** As {@link Lock.guard}, alone. @throws {SyncError} as there. */
  write<R>(fn: (held: Held) => R | Promise<R>, options?: WaitOptions): Promise<R> {
    return guard('rwLock.write()', this, READERS_MAX, fn, options)
  }

  /** As {@link Lock.tryGuard}, alone. */
  tryWrite<R>(fn: (held: Held) => R): { readonly value: R } | undefined {
    return tryGuard(this, READERS_MAX, fn)
  }
}

/** Lets in as many calls as it has permits. */
export class Semaphore extends Thing {
  /**
   * @param permits How many; an existing one of that name must have as many.
   * @param name Process-wide; without one the semaphore is known by its handles only.
   * @throws {SyncError} `SYNC_ARGUMENT`, `SYNC_DIFFERENT`.
   */
  constructor(permits: number, name?: string | Arrived) {
    super('semaphore', name, checkCount('new Semaphore(): permits', permits, PERMITS_MAX))
  }

  /** How many it has. */
  get permits(): number {
    return this.amount
  }

  /** How many are free now. */
  get free(): number {
    return native.semaphoreCounts(this.handle, false)
  }

  /** As {@link Lock.guardSync}, with `permits` of it (1). @throws {SyncError} as there. */
  guardSync<R>(fn: (held: Held) => R, options?: BlockOptions & { readonly permits?: number }): R {
    return guardSync(
      this,
      this.#count('semaphore.guardSync()', options),
      fn,
      blockOf('semaphore.guardSync()', this.which, options, BLOCK_PERMITS),
    )
  }

  /** As {@link Lock.guard}, with `permits` of it (1). @throws {SyncError} as there. */
  async guard<R>(
    fn: (held: Held) => R | Promise<R>,
    options?: WaitOptions & { readonly permits?: number },
  ): Promise<R> {
    return guard(
      'semaphore.guard()',
      this,
      this.#count('semaphore.guard()', options),
      fn,
      options,
      WAIT_PERMITS,
    )
  }

  /** As {@link Lock.tryGuard}, with `permits` of it (1). @throws {SyncError} `SYNC_ARGUMENT`. */
  tryGuard<R>(
    fn: (held: Held) => R,
    options?: { readonly permits?: number },
  ): { readonly value: R } | undefined {
    if (options !== undefined) ownOptions(options, PERMITS, wrong, 'semaphore.tryGuard()')
    return tryGuard(this, this.#count('semaphore.tryGuard()', options), fn)
  }

  #count(call: string, options: { readonly permits?: number } | undefined): number {
    const permits = options !== undefined && Object.hasOwn(options, 'permits') ? options.permits : undefined
    return permits === undefined ? 1 : checkCount(`${call}: permits`, permits, this.amount)
  }
}
