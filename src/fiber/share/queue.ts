/**
 * Queue: values from fibers to fibers of one thread, first in, first out, each to one taker, uncopied.
 *
 * A taker whose turn has come reserves a value and takes it when its fiber goes on: until then the value is
 * in the queue, and an interrupted taker takes nothing. So values keep their order and the capacity holds.
 * Between threads there is the Channel of corespun/sync, which copies.
 */
import { integer, valueOfKind } from '../../base/index.ts'
import { FiberError, wrong } from '../errors.ts'
import type { Waitable } from '../core/endings.ts'
import { Fifo } from './fifo.ts'
import { Claim, Line, type WaitOptions, waitOf } from './line.ts'
import { waitable } from './waitable.ts'

/** What happens to a value that does not fit. */
export type Overflow = 'wait' | 'slide' | 'drop'

const CAPACITY = integer<number | undefined>(1, Number.MAX_SAFE_INTEGER, undefined)

/** The checked capacity of a queue. @throws {FiberError} `FIBER_ARGUMENT`. */
export function capacityOf(call: string, capacity: unknown): number {
  const checked = valueOfKind(call, 'capacity', capacity, CAPACITY, wrong)
  if (checked === undefined) throw wrong(call, 'a capacity', capacity, { verb: 'needs' })
  return checked
}

export function closedError(what: string): FiberError<'FIBER_CLOSED'> {
  return new FiberError('FIBER_CLOSED', { what })
}

/**
 * The end of a {@link Queue} from which values are taken; what `subscribe()` of a {@link PubSub} returns.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Dequeue, Queue } from 'corespun/fiber'
 *
 * async function sum(numbers: Dequeue<number>) {
 *   let sum = 0
 *   for await (const number of numbers) sum += number
 *   return sum
 * }
 * const queue = Queue.unbounded<number>()
 * for (const number of [1, 2, 3]) queue.offer(number)
 * queue.close()
 * assert.equal(await sum(queue), 6)
 * ```
 */
export abstract class Dequeue<out A> {
  /** Most values in it; `Infinity` for no limit. */
  readonly capacity: number
  readonly #takers: Line
  readonly #values = new Fifo<A>()
  /** Values that takers have been granted and not taken. */
  #reserved = 0
  #isClosed = false

  /** @internal */
  constructor(title: string, capacity: number) {
    this.#takers = new Line(title)
    this.capacity = capacity
  }

  /** How many values are in it. */
  get size(): number {
    return this.#values.length
  }

  /** Whether it accepts no more values. Those in it can be taken. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Removes and returns the oldest value; `undefined` when it is empty, or what it has was granted. */
  poll(): A | undefined {
    return this.takeUpTo(1)[0]
  }

  /** Removes and returns the oldest values, at most `max`, without waiting. Default: all. */
  takeUpTo(max = Infinity): A[] {
    const taken: A[] = []
    while (taken.length < max && this.hasFree) taken.push(this.#values.shift())
    if (taken.length > 0) this.roomMade()
    return taken
  }

  /**
   * Waits for a value, removes the oldest one and returns it.
   * @throws {FiberError} `FIBER_CLOSED`, as a failure, when it is closed and empty.
   */
  take(options?: WaitOptions): Waitable<A, FiberError<'FIBER_CLOSED'>> {
    const signal = waitOf('take()', options)
    return waitable(() => new Take(this.#takers, signal, this))
  }

  /** Accepts no more values. Waiting calls of `put` fail, and those of `take` once it is empty. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.roomMade()
    this.#takers.serve()
  }

  /** As `close()`. */
  [Symbol.dispose](): void {
    this.close()
  }

  /** Takes values until it is closed and empty. */
  async *[Symbol.asyncIterator](): AsyncGenerator<A, void, undefined> {
    for (;;) {
      if (!this.hasFree && this.isClosed) return
      let value: A
      try {
        value = await this.take()
      } catch (error) {
        // Another one has taken the last value.
        if (error instanceof FiberError && error.code === 'FIBER_CLOSED' && this.isClosed) return
        throw error
      }
      yield value
    }
  }

  /** Whether there is a value that nobody has reserved. @internal */
  get hasFree(): boolean {
    return this.#values.length > this.#reserved
  }

  /** Adds a value, for the first who waits. @internal */
  push(value: unknown, overflow: Overflow): boolean {
    const isFull = this.size >= this.capacity
    if (this.#isClosed || (isFull && overflow !== 'slide')) return false
    if (isFull) this.#values.shift()
    this.#values.push(value as A)
    this.#takers.serve()
    return true
  }

  /** @internal */
  reserve(change: 1 | -1): void {
    this.#reserved += change
  }

  /** Takes what was reserved. @internal */
  collect(): A {
    this.#reserved -= 1
    const value = this.#values.shift()
    this.roomMade()
    return value
  }

  /** A value has left, or it is closed. @internal */
  protected abstract roomMade(): void
}

class Take<A> extends Claim<A, FiberError<'FIBER_CLOSED'>, Dequeue<A>> {
  canGrant(): boolean {
    return this.of.hasFree || this.of.isClosed
  }

  protected grant(): void {
    if (this.of.hasFree) this.of.reserve(1)
    else this.fail(closedError(this.line.title))
  }

  protected collect(): A {
    return this.of.collect()
  }

  protected override undo(): void {
    this.of.reserve(-1)
  }
}

/**
 * A queue of values between the fibers of a thread. What happens when it is full is in the name of its
 * constructor.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Queue, fork } from 'corespun/fiber'
 *
 * const queue = Queue.bounded<number>(2)
 * function* producer() {
 *   for (const n of [1, 2, 3]) yield* queue.put(n) // waits while the queue is full
 *   queue.close()
 * }
 * const fiber = fork(producer())
 * const values: number[] = []
 * for await (const value of queue) values.push(value)
 * assert.deepEqual(values, [1, 2, 3])
 * await fiber.join()
 * ```
 */
export class Queue<in out A> extends Dequeue<A> {
  readonly #putters = new Line('a Queue')
  readonly #overflow: Overflow

  private constructor(capacity: number, overflow: Overflow) {
    super('a Queue', capacity)
    this.#overflow = overflow
  }

  /** At most `capacity` values; `put` waits while it is full. @throws {FiberError} `FIBER_ARGUMENT`. */
  static bounded<A>(capacity: number): Queue<A> {
    return new Queue(capacityOf('Queue.bounded()', capacity), 'wait')
  }

  /** When it is full the oldest value is dropped for a new one. @throws {FiberError} `FIBER_ARGUMENT`. */
  static sliding<A>(capacity: number): Queue<A> {
    return new Queue(capacityOf('Queue.sliding()', capacity), 'slide')
  }

  /** When it is full new values are dropped. @throws {FiberError} `FIBER_ARGUMENT`. */
  static dropping<A>(capacity: number): Queue<A> {
    return new Queue(capacityOf('Queue.dropping()', capacity), 'drop')
  }

  /** Limited by memory alone: for producers that are slower than consumers. */
  static unbounded<A>(): Queue<A> {
    return new Queue(Infinity, 'drop')
  }

  /** Adds a value without waiting; returns whether it did: not when it is closed, or full without sliding. */
  offer(value: A): boolean {
    return !this.#isWaited && this.push(value, this.#overflow)
  }

  /**
   * Adds a value, in a bounded queue as soon as there is room. Returns false if the value was dropped.
   * @throws {FiberError} `FIBER_CLOSED`, as a failure.
   */
  put(value: A, options?: WaitOptions): Waitable<boolean, FiberError<'FIBER_CLOSED'>> {
    const signal = waitOf('put()', options)
    return waitable(() => new Put(this.#putters, signal, this, value, this.#overflow))
  }

  /** @internal */
  protected roomMade(): void {
    this.#putters.serve()
  }

  get #isWaited(): boolean {
    return this.#putters.first !== undefined
  }
}

class Put<A> extends Claim<boolean, FiberError<'FIBER_CLOSED'>, Queue<A>> {
  readonly #value: A
  readonly #overflow: Overflow
  #isAdded = false

  constructor(line: Line, signal: AbortSignal | undefined, queue: Queue<A>, value: A, overflow: Overflow) {
    super(line, signal, queue)
    this.#value = value
    this.#overflow = overflow
  }

  canGrant(): boolean {
    const { isClosed, size, capacity } = this.of
    return isClosed || size < capacity || this.#overflow !== 'wait'
  }

  protected grant(): void {
    if (this.of.isClosed) this.fail(closedError(this.line.title))
    else this.#isAdded = this.of.push(this.#value, this.#overflow)
  }

  protected collect(): boolean {
    return this.#isAdded
  }
}
