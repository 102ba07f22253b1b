/**
 * PubSub: each value to every subscriber, in one order.
 *
 * A subscription is a queue with a capacity of its own. A bounded publisher waits until all have room, and
 * then all receive the value at once; so a subscriber that takes nothing holds up all, until it is closed.
 */
import type { FiberError } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import { running } from '../core/op.ts'
import type { Fiber } from '../core/fiber.ts'
import { Claim, Line, type WaitOptions, waitOf } from './line.ts'
import { Dequeue, type Overflow, capacityOf, closedError } from './queue.ts'
import { waitable } from './waitable.ts'

const TITLE = 'a PubSub'

/**
 * Publishes values to all subscribers; without a subscriber a value is dropped.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { PubSub } from 'corespun/fiber'
 *
 * const news = PubSub.bounded<string>(16)
 * using one = news.subscribe()
 * using two = news.subscribe()
 * await news.publish('hello')
 * assert.deepEqual([await one.take(), await two.take()], ['hello', 'hello'])
 * ```
 */
export class PubSub<in out A> {
  readonly #publishers = new Line(TITLE)
  readonly #subscriptions = new Set<Subscription<A>>()
  readonly #capacity: number
  readonly #overflow: Overflow
  #isClosed = false

  private constructor(capacity: number, overflow: Overflow) {
    this.#capacity = capacity
    this.#overflow = overflow
  }

  /** `publish` waits while a subscription has `capacity` values. @throws {FiberError} `FIBER_ARGUMENT`. */
  static bounded<A>(capacity: number): PubSub<A> {
    return new PubSub(capacityOf('PubSub.bounded()', capacity), 'wait')
  }

  /** A full subscription drops its oldest value. @throws {FiberError} `FIBER_ARGUMENT`. */
  static sliding<A>(capacity: number): PubSub<A> {
    return new PubSub(capacityOf('PubSub.sliding()', capacity), 'slide')
  }

  /** A full subscription does not receive new values. @throws {FiberError} `FIBER_ARGUMENT`. */
  static dropping<A>(capacity: number): PubSub<A> {
    return new PubSub(capacityOf('PubSub.dropping()', capacity), 'drop')
  }

  /** As many values as there is memory for: a subscriber that takes nothing keeps all. */
  static unbounded<A>(): PubSub<A> {
    return new PubSub(Infinity, 'drop')
  }

  /** The number of subscriptions. */
  get size(): number {
    return this.#subscriptions.size
  }

  /** Whether nothing can be published any more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * Receives what is published from now on, until it is closed; in a fiber at the end of that fiber, or of
   * the `scoped` around, if not before.
   * @throws {FiberError} `FIBER_CLOSED`.
   */
  subscribe(): Dequeue<A> {
    if (this.#isClosed) throw closedError(TITLE)
    const subscription = new Subscription<A>(this.#capacity, () => {
      if (subscription.isClosed && this.#subscriptions.delete(subscription)) forget?.()
      this.#publishers.serve()
    })
    this.#subscriptions.add(subscription)
    const scope = (running.fiber as Fiber | undefined)?.children()
    const close = (): void => subscription.close()
    scope?.addFinalizer(close)
    const forget = scope && ((): void => scope.forgetFinalizer(close))
    return subscription
  }

  /** Publishes without waiting; returns whether all have received it. If bounded: all of them or none. */
  offer(value: A): boolean {
    return this.#publishers.first === undefined && this.canPublish && this.push(value)
  }

  /**
   * Publishes a value, a bounded one as soon as all have room. Returns whether all have received it.
   * @throws {FiberError} `FIBER_CLOSED`, as a failure.
   */
  publish(value: A, options?: WaitOptions): Waitable<boolean, FiberError<'FIBER_CLOSED'>> {
    const signal = waitOf('pubSub.publish()', options)
    return waitable(() => new Publish(this.#publishers, signal, this, value))
  }

  /** Closes it and all subscriptions, whose values can still be taken. Waiting calls of `publish` fail. */
  close(): void {
    this.#isClosed = true
    for (const subscription of this.#subscriptions) subscription.close()
    this.#publishers.serve()
  }

  /** As `close()`. */
  [Symbol.dispose](): void {
    this.close()
  }

  /** @internal */
  get canPublish(): boolean {
    if (this.#isClosed || this.#overflow !== 'wait') return true
    for (const { size, capacity } of this.#subscriptions) if (size >= capacity) return false
    return true
  }

  /** @internal */
  push(value: A): boolean {
    if (this.#isClosed) return false
    let isWhole = true
    for (const subscription of this.#subscriptions)
      isWhole = subscription.push(value, this.#overflow) && isWhole
    return isWhole
  }
}

class Subscription<out A> extends Dequeue<A> {
  readonly #changed: () => void

  constructor(capacity: number, changed: () => void) {
    super('a subscription', capacity)
    this.#changed = changed
  }

  protected roomMade(): void {
    this.#changed()
  }
}

class Publish<A> extends Claim<boolean, FiberError<'FIBER_CLOSED'>, PubSub<A>> {
  readonly #value: A
  #isWhole = false

  constructor(line: Line, signal: AbortSignal | undefined, hub: PubSub<A>, value: A) {
    super(line, signal, hub)
    this.#value = value
  }

  canGrant(): boolean {
    return this.of.canPublish
  }

  protected grant(): void {
    if (this.of.isClosed) this.fail(closedError(this.line.title))
    else this.#isWhole = this.of.push(this.#value)
  }

  protected collect(): boolean {
    return this.#isWhole
  }
}
