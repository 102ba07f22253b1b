/**
 * Pool: resources that are made when they are needed, used by one at a time, and kept for the next.
 *
 * Each is checked before it is used again, and replaced when it is not healthy. It has no timers: what was
 * idle too long is found when the next one asks.
 */
import { callback, integer, milliseconds, optionsOf } from '../../base/index.ts'
import { type FiberError, wrong } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import type { Exit } from '../core/exit.ts'
import type { Fiber } from '../core/fiber.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { exitWithin, fail, fromExit, inline, within } from '../core/promises.ts'
import { type Restore, uninterruptibleMask } from '../core/resources.ts'
import { allSettled } from '../combine/combine.ts'
import { turn } from '../scheduler/scheduler.ts'
import { type LineOptions, WAITING_MAX, type WaitOptions, waitOf } from './line.ts'
import { Latch } from './latch.ts'
import { closedError } from './queue.ts'
import { Semaphore } from './semaphore.ts'
import { waitable } from './waitable.ts'

/** Options of a {@link Pool}. */
export interface PoolOptions<B extends AnyBody = AnyBody> extends LineOptions {
  /** Makes a resource: a body, which runs where interrupts are masked. Required. */
  readonly acquire: B
  /** Releases one. It may return a generator or a promise, which is waited for. Required. */
  readonly release: (resource: ValueOf<B>) => unknown
  /** Most resources, 1 or more. Required. */
  readonly sizeMax: number
  /**
   * Whether an idle resource can be used again; it may return a generator or a promise of the answer. One
   * that fails counts as false. An interrupt does not wait for it. Default: always.
   */
  readonly isHealthy?: (resource: ValueOf<B>) => unknown
  /** A resource that was idle for longer is released, in ms. Default: never. */
  readonly idleMs?: number
}

const KINDS = {
  acquire: { expected: 'a body', accepts: (body: unknown) => body !== null, default: undefined as unknown },
  release: callback,
  sizeMax: integer<number | undefined>(1, Number.MAX_SAFE_INTEGER, undefined),
  isHealthy: callback,
  idleMs: milliseconds(Infinity, Infinity),
  waitingMax: WAITING_MAX,
}

/** A resource that nobody uses. */
interface Idle {
  readonly resource: unknown
  readonly sinceMs: number
}

/**
 * Resources, each with one user at a time. Calls receive them in the order in which they asked.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Pool } from 'corespun/fiber'
 *
 * let opened = 0
 * const pool = new Pool({
 *   acquire: async () => ({ id: (opened += 1), isOpen: true }),
 *   release: (connection) => void (connection.isOpen = false),
 *   isHealthy: (connection) => connection.isOpen,
 *   sizeMax: 2,
 * })
 * const ids = await Promise.all([1, 2, 3].map(() => pool.use(async (connection) => connection.id)))
 * assert.deepEqual(ids, [1, 2, 1])
 * await pool.close()
 * ```
 */
export class Pool<B extends AnyBody> {
  readonly #semaphore: Semaphore
  readonly #options: Required<Omit<PoolOptions<B>, 'waitingMax' | 'sizeMax'>>
  /** The one that was used last is used next, so that others become too old. */
  #idle: Idle[] = []
  #usedCount = 0
  /** Open while nobody uses a resource. */
  readonly #unused = new Latch({ count: 0 })
  #isClosed = false

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options: PoolOptions<B>) {
    const checked = optionsOf(options, KINDS, wrong, 'new Pool()')
    for (const name of ['acquire', 'release', 'sizeMax'] as const)
      if (checked[name] === undefined) throw wrong('new Pool()', `{ ${name} }`, undefined, { verb: 'needs' })
    const { sizeMax, waitingMax, acquire, release, isHealthy = () => true, idleMs } = checked
    this.#options = { acquire, release, isHealthy, idleMs } as never
    this.#semaphore = new Semaphore({ permits: sizeMax as number, waitingMax }, 'a Pool')
  }

  /** How many resources are idle. */
  get idle(): number {
    return this.#idle.length
  }

  /** How many wait for one. */
  get waiting(): number {
    return this.#semaphore.waiting
  }

  /**
   * Waits for a resource, and runs a body with it, in this fiber. A body that fails leaves it in the pool,
   * where the next one checks it.
   * @throws {FiberError} As failures `FIBER_CLOSED`, and `FIBER_FULL` when `waitingMax` wait.
   */
  use<R>(
    work: (resource: ValueOf<B>, fiber: Fiber) => R,
    options?: WaitOptions,
  ): Waitable<
    ValueOf<() => R>,
    FailureOf<() => R> | FailureOf<B> | FiberError<'FIBER_FULL' | 'FIBER_CLOSED'>
  > {
    if (typeof work !== 'function') throw wrong('pool.use(): work', 'a function', work)
    const signal = waitOf('pool.use()', options)
    const guarded = (): Operation<unknown, unknown> =>
      uninterruptibleMask((restore) => this.#used(work as never, restore))
    return waitable(() => this.#semaphore.guarded(guarded, 1, signal)) as Waitable<never, never>
  }

  /** Refuses further calls and waits until all are released. Fails with what `release` throws. */
  close(): Waitable<void, unknown> {
    this.#isClosed = true
    return waitable(() => this.#emptied())
  }

  /** As `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  *#used(work: (resource: unknown, fiber: Fiber) => unknown, restore: Restore): Operation<unknown, unknown> {
    if (this.#usedCount++ === 0) this.#unused.close()
    try {
      const resource = yield* this.#acquired(restore)
      try {
        return yield* restore((fiber: Fiber) => work(resource, fiber))
      } finally {
        yield* this.#returned({ resource, sinceMs: turn.scheduler.nowMs() })
      }
    } finally {
      if (--this.#usedCount === 0) this.#unused.open()
    }
  }

  *#returned(idle: Idle): Operation<void> {
    if (this.#isClosed) yield* this.#released(idle.resource)
    else this.#idle.push(idle)
  }

  *#acquired(restore: Restore): Operation<unknown, unknown> {
    for (;;) {
      if (this.#isClosed) yield* fail(closedError('a Pool'))
      const idle = this.#idle.pop()
      if (idle === undefined) return yield* within(this.#options.acquire)
      if (yield* this.#isUsable(idle, restore)) return idle.resource
      yield* this.#released(idle.resource)
    }
  }

  /** An interrupt does not wait for the answer. */
  *#isUsable(idle: Idle, restore: Restore): Operation<boolean> {
    if (turn.scheduler.nowMs() - idle.sinceMs > this.#options.idleMs) return false
    let exit: Exit<unknown, unknown> | undefined
    try {
      exit = yield* exitWithin(() => restore(() => this.#options.isHealthy(idle.resource as never)))
    } finally {
      if (exit === undefined) yield* this.#returned(idle)
    }
    // What cannot be checked cannot be used.
    return exit.kind === 'success' && exit.value === true
  }

  *#released(resource: unknown): Operation<unknown> {
    return yield* inline(this.#options.release(resource))
  }

  *#emptied(): Operation<void, unknown> {
    const idle = this.#idle
    this.#idle = []
    const exits = yield* allSettled(
      idle.map(
        ({ resource }) =>
          () =>
            this.#released(resource),
      ),
    )
    yield* this.#unused.await()
    for (const exit of exits) if (exit.kind !== 'success') yield* fromExit(exit)
  }
}
