/**
 * Children of one combinator: forked together, received one after the other, ended when it returns.
 *
 * While a combinator waits its fiber runs nothing else, so its nursery replaces the fiber's own
 * scope: what ends the fiber ends the nursery first. Failures of children are for the combinator to judge.
 * Only what the combinator itself forks is in it: what others fork into the fiber meanwhile, or the iterator
 * of `forEach`, belongs to the scope outside.
 */
import { yieldNow } from '../scheduler/yielding.ts'
import { closeScopes } from './closing.ts'
import { Exit, type Failed } from './exit.ts'
import type { Fiber } from './fiber.ts'
import { type AnyBody, type FailureOf, type ValueOf, forkIn } from './fork.ts'
import { type NewsSource, News } from './news.ts'
import type { Op, Operation } from './op.ts'
import { type Child, BaseScope } from './base-scope.ts'
import { reportLoser, troublesIn } from './fiber-scope.ts'
import { currentFiber } from './resources.ts'
import { turn } from '../scheduler/scheduler.ts'

export class Nursery extends BaseScope implements NewsSource<Fiber | undefined> {
  /** Those that have ended are from `#read` to `#end`; what was taken is dropped. */
  readonly #ended: (Fiber | undefined)[] = []
  #read = 0
  #end = 0
  #listener: (() => void) | undefined
  /** The fiber that waits for them. */
  readonly host: Fiber

  constructor(host: Fiber) {
    super(host.extra?.scope ?? host.children())
    this.host = host
  }

  override get forks(): BaseScope {
    return (this.outer as BaseScope).forks
  }

  fork<const B extends AnyBody>(body: B): Fiber<ValueOf<B>, FailureOf<B>> {
    return forkIn(this, body)
  }

  /** Whether a child has ended that was not yet given by {@link Nursery.take}. */
  get hasNews(): boolean {
    return this.#read < this.#end
  }

  /** Whether the fiber that waits has something to do. */
  get isReady(): boolean {
    return this.hasNews
  }

  /** Whether the fiber waits by {@link Nursery.next}. */
  get isAwaited(): boolean {
    return this.#listener !== undefined
  }

  /** The child that ended next, in the order of their ends. */
  take(): Fiber | undefined {
    if (this.#read === this.#end) return undefined
    const fiber = this.#ended[this.#read]
    this.#ended[this.#read++] = undefined
    if (this.#read === this.#end) this.#read = this.#end = 0
    return fiber
  }

  /** See {@link NewsSource}. */
  describe(): string {
    const names = [...this.children()].map(({ title }) => title)
    return names.length > 4 ? `${names.length} children` : names.join(', ')
  }

  /** Wait for {@link Nursery.take}; `undefined` when `untilMs` comes first. */
  next(untilMs?: number): Op<Fiber | undefined> {
    return new News(this, untilMs)
  }

  /** See {@link NewsSource}. */
  onNews(listener: (() => void) | undefined): void {
    this.#listener = listener
  }

  override childEnded(child: Child): void {
    const fiber = child as Fiber
    fiber.observe()
    this.#ended[this.#end++] = fiber
    this.wake()
  }

  protected wake(): void {
    const listener = this.#listener
    this.#listener = undefined
    listener?.()
  }

  /** What went wrong in a child that was not taken. */
  protected troublesOf({ exit }: Fiber): Failed[] {
    return exit === undefined || exit.kind === 'success' ? [] : troublesIn(exit)
  }

  /** Interrupts the rest, waits, and returns the errors of those that {@link Nursery.take} did not return. */
  *close(why: Exit<unknown, unknown>): Operation<Failed[]> {
    const errors = yield* closeScopes(this, this.outer, why)
    for (let child = this.take(); child !== undefined; child = this.take()) {
      for (const trouble of this.troublesOf(child)) errors.push(trouble)
    }
    return errors
  }

  /** Interrupt the rest, which have lost `call` against a value, and wait: what went wrong is reported. */
  *dismiss(why: Exit<unknown, unknown>, call: string): Operation<void> {
    yield* closeScopes(this, this.outer, why)
    for (let child = this.take(); child !== undefined; child = this.take()) reportLoser(child, call)
  }
}

/**
 * Run `work` with a nursery; whatever happens to the fiber, the nursery is empty afterwards.
 * @param work A generator function that is defined once: one for each call would cost more than the call.
 * @param make Makes the nursery. @throws What it throws, before anything has begun.
 */
export function* inNursery<A, E, I, N extends Nursery = Nursery>(
  call: string,
  input: I,
  work: (nursery: N, input: I) => Operation<A, E>,
  make: (host: Fiber, input: I) => N = plainNursery as never,
): Operation<A, E> {
  const host = currentFiber(call)
  if (--turn.steps <= 0) yield* yieldNow()
  const nursery = make(host, input)
  host.enter(nursery)
  try {
    return yield* work(nursery, input)
  } finally {
    if (!nursery.isIdle || nursery.hasNews) {
      // Only when the fiber is unwound or `work` has a defect: otherwise `work` has closed it.
      const isOutermost = host.mask(true)
      for (const error of yield* nursery.close(host.extra?.cause ?? Exit.interruption()))
        host.more().addError(error)
      if (isOutermost) host.mask(false)
    }
    host.enter(nursery.outer)
  }
}

function plainNursery(host: Fiber): Nursery {
  return new Nursery(host)
}
