/**
 * RateLimiter: limits how many calls begin in a span of time, in the order of the requests.
 *
 * A token bucket, kept as one number: the time at which the bucket will be full again. Its timer is that
 * of the first in the line; while nobody waits it has no timer.
 */
import { integer, optionsOf } from '../../base/index.ts'
import { type FiberError, wrong } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { within } from '../core/promises.ts'
import { turn } from '../scheduler/scheduler.ts'
import type { Timed } from '../scheduler/timers.ts'
import { Claim, Line, type LineOptions, WAIT, WAITING_MAX, type WaitOptions } from './line.ts'
import { waitable } from './waitable.ts'

/** Options of a {@link RateLimiter}. */
export interface RateLimiterOptions extends LineOptions {
  /** Tokens that are added in `perMs`, 1 or more. Required. */
  readonly limit: number
  /** The time in which `limit` tokens are added, in ms, above 0. Default 1000. */
  readonly perMs?: number
  /** Most tokens that accumulate, and so can be taken at once. Default: `limit`. */
  readonly burst?: number
}

/** Options of a call of a {@link RateLimiter}. */
export interface TokenOptions extends WaitOptions {
  /** How many tokens it takes, 1 (the default) to `burst`. */
  readonly tokens?: number
}

const TOKENS = integer<number | undefined>(1, Number.MAX_SAFE_INTEGER, undefined)
const KINDS = {
  limit: TOKENS,
  perMs: { expected: 'a number of milliseconds above 0', accepts: isSpan, default: 1000 },
  burst: TOKENS,
  waitingMax: WAITING_MAX,
}

function isSpan(ms: unknown): boolean {
  return typeof ms === 'number' && ms > 0 && ms < Infinity
}

/**
 * At most `limit` calls in `perMs`, and at most `burst` at once. Further ones wait in line.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { RateLimiter } from 'corespun/fiber'
 *
 * const limiter = new RateLimiter({ limit: 100, perMs: 1000, burst: 2 })
 * const startMs = performance.now()
 * await Promise.all([1, 2, 3].map((id) => limiter.run(async () => id)))
 * assert.ok(performance.now() - startMs >= 9) // the third waits for its token
 * ```
 */
export class RateLimiter {
  readonly #line: Line
  /** @internal */
  readonly bucket: Bucket

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options: RateLimiterOptions) {
    const { limit, perMs, burst, waitingMax } = optionsOf(options, KINDS, wrong, 'new RateLimiter()')
    if (limit === undefined) throw wrong('new RateLimiter()', '{ limit }', limit, { verb: 'needs' })
    this.#line = new Line('a RateLimiter', waitingMax)
    this.bucket = new Bucket(this.#line, perMs / limit, burst ?? limit)
  }

  /** How many wait. */
  get waiting(): number {
    return this.#line.size
  }

  /** Takes tokens if there are enough and no call waits; returns whether it did. */
  tryTake(tokens = 1): boolean {
    const { bucket } = this
    const isFree = this.#line.first === undefined && bucket.waitMs(this.#checked({ tokens }).tokens) <= 0
    if (isFree) bucket.take(tokens)
    return isFree
  }

  /** Waits for tokens and takes them. @throws {FiberError} As {@link RateLimiter.run}. */
  take(options?: TokenOptions): Waitable<void, FiberError<'FIBER_FULL'>> {
    const { tokens, signal } = this.#checked(options)
    return waitable(() => new Tokens(this.#line, signal, this.bucket, tokens))
  }

  /**
   * Waits for tokens, takes them and runs a body in this fiber.
   * @throws {FiberError} `FIBER_ARGUMENT`; as a failure `FIBER_FULL` when `waitingMax` wait.
   */
  run<const B extends AnyBody>(
    body: B,
    options?: TokenOptions,
  ): Waitable<ValueOf<B>, FailureOf<B> | FiberError<'FIBER_FULL'>> {
    const { tokens, signal } = this.#checked(options)
    return waitable(() => this.#run(body, signal, tokens)) as Waitable<never, never>
  }

  *#run(body: AnyBody, signal: AbortSignal | undefined, tokens: number): Operation<unknown, unknown> {
    yield* new Tokens(this.#line, signal, this.bucket, tokens)
    return yield* within(body)
  }

  #checked(options: TokenOptions | undefined): {
    readonly tokens: number
    readonly signal: AbortSignal | undefined
  } {
    const kinds = { ...WAIT, tokens: integer(1, this.bucket.burst, 1) }
    return optionsOf(options, kinds, wrong, 'RateLimiter')
  }
}

/** The tokens, and the timer of the first who waits for some. */
class Bucket implements Timed {
  readonly burst: number
  readonly #line: Line
  readonly #tokenMs: number
  /** When it is full again, if nobody takes any. */
  #fullMs = -Infinity
  atMs = 0
  index = -1
  order = 0

  constructor(line: Line, tokenMs: number, burst: number) {
    this.#line = line
    this.#tokenMs = tokenMs
    this.burst = burst
    line.firstChanged = () => this.#rearm()
  }

  /** When `tokens` are there; each token that is missing takes its time. */
  #dueMs(tokens: number): number {
    return this.#fullMs - (this.burst - tokens) * this.#tokenMs
  }

  /** How long until `tokens` are there; not above 0 when they are. */
  waitMs(tokens: number): number {
    return this.#dueMs(tokens) - turn.scheduler.nowMs()
  }

  take(tokens: number): void {
    this.#fullMs = Math.max(this.#fullMs, turn.scheduler.nowMs()) + tokens * this.#tokenMs
  }

  putBack(tokens: number): void {
    this.#fullMs -= tokens * this.#tokenMs
  }

  /** A timer for the first in the line, or none. */
  #rearm(): void {
    const { first } = this.#line as { readonly first: Tokens | undefined }
    if (this.index >= 0) turn.scheduler.forget(this)
    if (first === undefined) return
    this.atMs = this.#dueMs(first.count)
    turn.scheduler.wait(this)
  }

  due(): void {
    this.#line.serve()
  }
}

class Tokens extends Claim<void, FiberError<'FIBER_FULL'>, Bucket> {
  readonly count: number

  constructor(line: Line, signal: AbortSignal | undefined, bucket: Bucket, count: number) {
    super(line, signal, bucket)
    this.count = count
  }

  canGrant(): boolean {
    return this.of.waitMs(this.count) <= 0
  }

  protected grant(): void {
    this.of.take(this.count)
  }

  protected collect(): void {}

  protected override undo(): void {
    this.of.putBack(this.count)
  }
}
