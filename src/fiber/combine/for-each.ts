/**
 * `forEach`: a bounded number of items at a time.
 *
 * The fiber that waits is not resumed for each item: when one has ended with a value, the next is taken at
 * once, where that one ended, and in the name of the waiting fiber. It goes on when all have ended, when one
 * has failed, and when the steps of the turn are used up.
 */
import { integer, optionsOf, resultOf } from '../../base/index.ts'
import { wrong } from '../errors.ts'
import type { Failed } from '../core/exit.ts'
import { type FailureOf, type ValueOf, forkIn } from '../core/fork.ts'
import type { Fiber } from '../core/fiber.ts'
import { type Operation, running } from '../core/op.ts'
import { DONE, OK } from '../core/states.ts'
import { type Wakeable, withWaiter } from '../core/waiters.ts'
import { turn } from '../scheduler/scheduler.ts'
import type { Child } from '../core/base-scope.ts'
import { Nursery, inNursery } from '../core/nursery.ts'
import { decided } from './combine.ts'

const FOR_EACH = { concurrency: integer(1, Infinity, 16) }

/** Options of `forEach`. */
export interface ForEachOptions {
  /** Most items processed at the same time, 1 or more. Default 16. */
  readonly concurrency?: number
}

/**
 * Runs `work` for each item, a bounded number at a time, and returns the values in the items' order. The
 * first failure interrupts the running ones, and no further item is taken.
 * @param work Called as a body is: a generator function, an async function or a plain function.
 * @throws {FiberError} `FIBER_ARGUMENT` when an argument or an option is invalid; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { attempt, forEach, fork } from 'corespun/fiber'
 *
 * const lengths = forEach(['a', 'bb', 'ccc'], (text) => attempt(async () => text.length), { concurrency: 2 })
 * assert.deepEqual(await fork(lengths).join(), [1, 2, 3])
 * ```
 */
export function forEach<I, R>(
  items: Iterable<I>,
  work: (item: I, index: number) => R,
  options?: ForEachOptions,
): Operation<ValueOf<() => R>[], FailureOf<() => R>> {
  const { concurrency } = optionsOf(options, FOR_EACH, wrong, 'forEach()')
  if (typeof (items as Partial<Iterable<I>> | null)?.[Symbol.iterator] !== 'function')
    throw wrong('forEach(): items', 'an iterable', items)
  if (typeof work !== 'function') throw wrong('forEach(): work', 'a function', work)
  const loop: Loop = { items, work: work as Loop['work'], concurrency }
  return inNursery('forEach()', loop, eachOf, lanesOf) as Operation<ValueOf<() => R>[], FailureOf<() => R>>
}

interface Loop {
  readonly items: Iterable<unknown>
  readonly work: (item: unknown, index: number) => unknown
  readonly concurrency: number
}

function lanesOf(host: Fiber, loop: Loop): Lanes {
  return new Lanes(host, loop)
}

function* eachOf(lanes: Lanes): Operation<unknown[], unknown> {
  try {
    for (;;) {
      lanes.fill()
      if (lanes.isDone) return lanes.values
      const failed = yield* lanes.next()
      if (failed !== undefined) return yield* decided(lanes, failed.exit as Failed)
    }
  } finally {
    lanes.letGo()
  }
}

/** An item that was taken, until it has ended. */
class Item implements Wakeable {
  readonly lanes: Lanes
  readonly value: unknown
  readonly index: number

  constructor(lanes: Lanes, value: unknown, index: number) {
    this.lanes = lanes
    this.value = value
    this.index = index
  }

  wakeBy(fiber: object): void {
    this.lanes.itemEnded(this.index, fiber as Fiber)
  }

  waitsFor(): boolean {
    return true
  }
}

/** The fibers of the items that run, and the values of those that have ended. */
class Lanes extends Nursery {
  readonly values: unknown[] = []
  readonly #iterator: Iterator<unknown>
  readonly #body: (item: Item) => unknown
  readonly #max: number
  /** How many run or have failed. */
  #count = 0
  /** Also while it runs: an iterator that throws has ended. */
  #isAtEnd = false
  #isFilling = false
  #thrown: { readonly error: unknown } | undefined

  constructor(host: Fiber, { items, work, concurrency }: Loop) {
    super(host)
    this.#iterator = items[Symbol.iterator]()
    this.#body = ({ value, index }) => work(value, index)
    this.#max = concurrency
  }

  get isDone(): boolean {
    return this.#isAtEnd && this.#count === 0
  }

  override get isReady(): boolean {
    return this.hasNews || this.#hasRoom || this.isDone || this.#thrown !== undefined
  }

  /** Takes items while there is room; for the waiting fiber itself. @throws What the iterator throws. */
  fill(): void {
    this.#fillWhile(false)
    if (this.#thrown !== undefined) throw this.#thrown.error
  }

  /** One that waited has ended: {@link Lanes.childEnded} follows. */
  itemEnded(index: number, fiber: Fiber): void {
    if ((fiber.flags & OK) === 0) return
    this.#count -= 1
    this.values[index] = fiber.state
  }

  /** An item has ended. After a value, others are taken. */
  override childEnded(child: Child): void {
    if (((child as Fiber).flags & OK) === 0) return super.childEnded(child)
    // Otherwise whoever fills, or the waiting fiber when it goes on, takes the next.
    if (this.#isFilling || !this.isAwaited) return
    const outer = running.fiber
    running.fiber = this.host
    this.#fillWhile(true)
    running.fiber = outer
    if (this.isReady) this.wake()
  }

  /** Let the iterator clean up, unless it has ended. */
  letGo(): void {
    if (!this.#isAtEnd) this.#iterator.return?.()
  }

  get #hasRoom(): boolean {
    return !this.#isAtEnd && this.#count < this.#max
  }

  /** @param isHosted Only while the fiber waits: what an item does may let it go on. */
  #fillWhile(isHosted: boolean): void {
    this.#isFilling = true
    try {
      while (this.#hasRoom && !this.hasNews && turn.steps > 0 && (!isHosted || this.isAwaited))
        this.#takeOne()
    } catch (error) {
      this.#thrown = { error }
    }
    this.#isFilling = false
  }

  #takeOne(): void {
    turn.steps -= 1
    this.#isAtEnd = true
    const { done, value } = resultOf(this.#iterator.next())
    if (done === true) return
    this.#isAtEnd = false
    const index = this.values.push(undefined) - 1
    const item = new Item(this, value, index)
    const fiber = forkIn(this, this.#body, item)
    if ((fiber.flags & OK) !== 0) this.values[index] = fiber.state
    else {
      this.#count += 1
      if ((fiber.flags & DONE) === 0) fiber.waiters = withWaiter(fiber.waiters, item)
    }
  }
}
