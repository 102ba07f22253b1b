/**
 * Semaphore: a fixed number of permits for the fibers of one thread, granted in the order of the requests.
 *
 * Its guard runs a fiber's body. It crosses no border to the core and makes no promise; the Semaphore of
 * corespun/sync is for all threads of the process.
 */
import { integer, optionsOf } from '../../base/index.ts'
import { FiberError, wrong } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { within } from '../core/promises.ts'
import { Claim, Line, type LineOptions, WAIT, WAITING_MAX, type WaitOptions } from './line.ts'
import { waitable } from './waitable.ts'

/** Options of a {@link Semaphore}. */
export interface SemaphoreOptions extends LineOptions {
  /** Number of permits, 1 or more. Required. */
  readonly permits: number
}

/** Options of {@link Semaphore.withPermits}. */
export interface PermitOptions extends WaitOptions {
  /** Number of permits, 1 (the default) to all that the semaphore has. */
  readonly permits?: number
}

const PERMITS = integer<number | undefined>(1, Number.MAX_SAFE_INTEGER, undefined)
const KINDS = { permits: PERMITS, waitingMax: WAITING_MAX }

/**
 * Permits for the fibers of a thread. A request that cannot be granted holds up all behind it. It is not
 * reentrant: a body that asks for permits of its own semaphore may wait for itself.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Semaphore, all, fork, sleep } from 'corespun/fiber'
 *
 * const semaphore = new Semaphore({ permits: 2 })
 * function* work() {
 *   yield* sleep(1)
 *   return semaphore.free
 * }
 * function* program() {
 *   return yield* all([1, 2, 3].map(() => semaphore.withPermits(work)))
 * }
 * assert.deepEqual(await fork(program()).join(), [0, 0, 1])
 * assert.equal(await semaphore.withPermits(async () => semaphore.free), 1)
 * ```
 */
export class Semaphore {
  /** Number of permits. */
  readonly permits: number
  readonly #line: Line
  #free: number

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options: SemaphoreOptions)
  /** @internal */
  constructor(options: SemaphoreOptions, title?: string)
  constructor(options: SemaphoreOptions, title = 'a Semaphore') {
    const { permits, waitingMax } = optionsOf(options, KINDS, wrong, 'new Semaphore()')
    if (permits === undefined) throw wrong('new Semaphore()', '{ permits }', permits, { verb: 'needs' })
    this.permits = this.#free = permits
    this.#line = new Line(title, waitingMax)
  }

  /** Number of permits that are free now. */
  get free(): number {
    return this.#free
  }

  /** How many wait. */
  get waiting(): number {
    return this.#line.size
  }

  /**
   * Waits for permits, runs a body in this fiber and releases them, however it ends.
   * @throws {FiberError} `FIBER_ARGUMENT`; as a failure `FIBER_FULL` when `waitingMax` wait.
   */
  withPermits<const B extends AnyBody>(
    body: B,
    options?: PermitOptions,
  ): Waitable<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_FULL'>> {
    const kinds = { ...WAIT, permits: integer(1, this.permits, 1) }
    const { permits, signal } = optionsOf(options, kinds, wrong, 'withPermits()')
    return waitable(() => this.guarded(body, permits, signal))
  }

  /** @internal */
  *guarded<const B extends AnyBody>(
    body: B,
    permits: number,
    signal?: AbortSignal,
  ): Operation<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_FULL'>> {
    yield* new Permits(this.#line, signal, this, permits)
    try {
      return yield* within(body)
    } finally {
      this.change(permits)
      this.#line.serve()
    }
  }

  /** @internal */
  change(by: number): void {
    this.#free += by
  }
}

class Permits extends Claim<void, FiberError<'FIBER_FULL'>, Semaphore> {
  readonly #count: number

  constructor(line: Line, signal: AbortSignal | undefined, semaphore: Semaphore, count: number) {
    super(line, signal, semaphore)
    this.#count = count
  }

  canGrant(): boolean {
    return this.of.free >= this.#count
  }

  protected grant(): void {
    this.of.change(-this.#count)
  }

  protected collect(): void {}

  protected override undo(): void {
    this.of.change(this.#count)
  }
}
