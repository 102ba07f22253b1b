/**
 * Work in one shape for both callers: `yield*` runs it in the fiber that is there, `await` in one of its own.
 *
 * Outside of fibers it begins at once, as a promise does. In the code of a fiber nothing begins before
 * `yield*` or `await`: a race may drop what it has not begun, and nobody is left in a line.
 */
import { fibers } from '../../base/index.ts'
import { attempt } from '../core/attempt.ts'
import { EndPromise, type Waitable } from '../core/endings.ts'
import { Exit } from '../core/exit.ts'
import type { Fiber } from '../core/fiber.ts'
import { type AnyBody, fork } from '../core/fork.ts'
import { Op, type Operation, type Step, type Waiter, Yieldable, running } from '../core/op.ts'
import type { Wakeable } from '../core/waiters.ts'

type Make<A, E> = () => Operation<A, E> | Op<A, E>

class Program<A, E> extends Yieldable<A, E> {
  readonly #make: Make<A, E>

  constructor(make: Make<A, E>) {
    super()
    this.#make = make
  }

  [Symbol.iterator](): Iterator<Step<E>, A, unknown> {
    return this.#make()[Symbol.iterator]()
  }

  // oxlint-disable-next-line unicorn/no-thenable -- `await` is what it is for
  then(...listeners: never[]): Promise<unknown> {
    return this.#begun().then(...listeners)
  }

  catch(listener: never): Promise<unknown> {
    return this.#begun().catch(listener)
  }

  finally(listener: never): Promise<unknown> {
    return this.#begun().finally(listener)
  }

  get [Symbol.toStringTag](): string {
    return 'Promise'
  }

  #begun(): Promise<unknown> {
    return fork(this as unknown as AnyBody).join()
  }
}

/** What runs already, in a fiber of its own. A fiber that waits for it by `yield*` takes it over. */
class Begun extends EndPromise {
  readonly #fiber: Fiber

  constructor(fiber: Fiber) {
    super(fiber, true)
    this.#fiber = fiber
  }

  override [Symbol.iterator](): object {
    // Its rejection is received there.
    this.then(undefined, () => {})
    running.asks = true
    return new Owned(this.#fiber)
  }
}
// As in endings.ts.
Reflect.defineProperty(Begun.prototype, 'constructor', { value: Promise })

/** The end of a fiber that is interrupted, and waited for, when who waits for it is interrupted. */
class Owned extends Op<unknown, unknown> implements Wakeable {
  readonly #fiber: Fiber
  #waiter: Waiter | undefined
  #isLeft = false

  constructor(fiber: Fiber) {
    super()
    this.#fiber = fiber
  }

  override isReady(): boolean {
    return this.#fiber.exit !== undefined
  }

  park(fiber: Waiter): void {
    this.#waiter = fiber
    this.#fiber.addWaiter(this)
  }

  unpark(fiber: Waiter): boolean {
    this.#isLeft = true
    this.#fiber.interruptWith((fiber as Fiber).extra?.cause ?? Exit.interruption())
    return false
  }

  waitsFor(): boolean {
    return true
  }

  wakeBy(): void {
    const exit = this.#fiber.exit as Exit<unknown, unknown>
    if (this.#isLeft && exit.kind !== 'success') this.#waiter?.failedBeside(exit)
    this.#waiter?.makeReady()
  }

  take(fiber: Waiter): unknown {
    const exit = this.#fiber.exit as Exit<unknown, unknown>
    if (exit.kind === 'success') return exit.value
    throw fiber.raise(exit)
  }

  describe(): string {
    return this.#fiber.title
  }
}

/** What `make` makes, for `yield*` and for `await`. Outside of fibers it runs already. */
export function waitable<A, E = never>(make: Make<A, E>): Waitable<A, E> {
  const program = new Program(make) as unknown
  return (running.fiber === undefined ? new Begun(fork(program as AnyBody)) : program) as Waitable<A, E>
}

fibers.later = (begin) =>
  running.fiber === undefined ? undefined : (waitable(() => attempt(begin)) as Waitable<never, unknown>)
