/**
 * Items on their way from fibers that produce them to one that takes them: bounded, in a flow.
 *
 * Buffers, merged streams, work that runs at once, groups and branches are each a passage. A producer puts an
 * item and waits when the passage is full; the taker waits when it is empty. An item may have work to do
 * before its turn to be taken: that is a run of the flow. Deliberately absent: how the producers' fibers end,
 * which is the children's (children.ts).
 */
import { Flow, type Run as FlowRun } from '../base/index.ts'
import { type Exit, type Op, type Operation, fromExit, yieldNow } from '../fiber/index.ts'
import { News, type NewsSource, turn } from '../fiber/internal.ts'
import { type Emit, type End, type Pending, STOP, type Wait, isPending, waited } from './run.ts'

/** An exit without a value. */
export type Failed = Exclude<Exit<never, unknown>, { readonly kind: 'success' }>
type Taken = FlowRun<unknown, unknown>
/** Whether whoever waits has to stop. */
type Go = typeof STOP | undefined

/** What a passage does. */
export interface PassagePlan {
  /** Most items that are in it, and were not taken. */
  readonly capacity: number
  /**
   * Whether items come in the order in which they were put, or as their work ends: then a producer holds the
   * next item while it is full, and a failure behind that does not wait for work. Default true.
   */
  readonly ordered?: boolean
  /** What an item becomes, or a promise of it; throws or rejects with a {@link Failed}. Default: itself. */
  readonly work?: (item: unknown) => unknown
  /** What becomes of items while it is full. Default `'wait'`. */
  readonly whenFull?: WhenFull
}

/** What a full buffer does with one more item: lets its source wait, drops it, or drops the oldest one. */
export type WhenFull = 'wait' | 'drop' | 'slide'

/** A fiber's wait, one of several. */
class Waiting implements NewsSource<Go> {
  readonly #waits: Waits
  readonly #result: () => Go | 'wait'
  listener: (() => void) | undefined

  constructor(waits: Waits, result: () => Go | 'wait') {
    this.#waits = waits
    this.#result = result
  }

  get isReady(): boolean {
    return this.#result() !== 'wait'
  }

  onNews(listener: (() => void) | undefined): void {
    this.listener = listener
    if (listener === undefined) this.#waits.delete(this)
    else this.#waits.add(this)
  }

  take(): Go {
    const result = this.#result()
    return result === 'wait' ? undefined : result
  }

  describe(): string {
    return 'the reader of its stream'
  }
}

/** Fibers that wait for the same condition, the first come first. */
class Waits extends Set<Waiting> {
  /** @param result `'wait'` while it has to wait. */
  wait(result: () => Go | 'wait'): Op<Go> {
    return new News(new Waiting(this, result))
  }

  wakeFirst(): void {
    for (const first of this) return first.listener?.()
  }

  wakeAll(): void {
    for (const one of [...this]) one.listener?.()
  }
}

export class Passage implements NewsSource<undefined> {
  readonly #flow: Flow<unknown, unknown>
  readonly #whenFull: WhenFull
  readonly #ordered: boolean
  readonly #writers = new Waits()
  readonly #slots = new Waits()
  /** How many fibers may put items still. */
  #producers = 0
  /** Nobody takes items any more. */
  #isLeft = false
  #listener: (() => void) | undefined
  /** The wait of who takes. */
  readonly arrival = new News(this)

  constructor({ capacity, ordered = true, work, whenFull = 'wait' }: PassagePlan) {
    this.#whenFull = whenFull
    this.#ordered = ordered
    this.#flow = new Flow<unknown, unknown>({
      run: (item) => {
        if (item instanceof Failing) throw item.exit
        if (work !== undefined) return work(item)
        return item instanceof Promise ? new Boxed(item) : item
      },
      settled: ({ hasFailed }) => {
        this.#wake()
        if (hasFailed) this.#writers.wakeAll()
      },
      ordered,
      runsMax: capacity,
      refillsLate: false,
    })
  }

  /** Takes an item; its producer waits while the passage is full: behind it, or with it if unordered. */
  readonly put: Emit = (item) => {
    const flow = this.#flow
    if (this.#isOver) return STOP
    if (this.#whenFull !== 'wait' && !flow.hasCapacity(1)) {
      if (this.#whenFull === 'drop') return undefined
      flow.take()
    }
    if (!this.#ordered && !flow.hasCapacity(1)) return this.#held(item)
    flow.begin(item, 1)
    if (!this.#ordered || flow.hasCapacity(1) || this.#whenFull !== 'wait') return undefined
    return this.#writers.wait(this.#put)
  };

  *#held(item: unknown): Operation<End, unknown> {
    return (yield* this.#writers.wait(this.#put)) === STOP ? STOP : yield* waited(this.put(item))
  }

  readonly #put = (): Go | 'wait' => {
    if (this.#isOver) return STOP
    return this.#flow.hasCapacity(1) ? undefined : 'wait'
  }

  get #isOver(): boolean {
    return this.#isLeft || this.#flow.isEnded
  }

  /** A producer comes. */
  open(): void {
    this.#producers++
  }

  /** A producer has put its last item. */
  close(): void {
    this.#slots.wakeFirst()
    if (--this.#producers > 0) return
    this.#flow.ended()
    this.#wake()
  }

  /** A producer has failed; that is taken in its turn. */
  fail(exit: Failed): void {
    if (!this.#isOver) this.#flow.begin(new Failing(exit), 1)
  }

  /** Waits while there are more than `most` producers. */
  slot(most: number): Op<Go> | undefined {
    if (this.#producers <= most) return undefined
    return this.#slots.wait(() => (this.#isOver ? STOP : this.#producers > most ? 'wait' : undefined))
  }

  /** Nobody takes items any more: producers stop. */
  leave(): void {
    this.#isLeft = true
    this.#flow.stop()
    this.#writers.wakeAll()
    this.#slots.wakeAll()
  }

  get isLeft(): boolean {
    return this.#isLeft
  }

  /** Whether nothing is left to take, and nothing comes. */
  get isAtEnd(): boolean {
    return this.#flow.isOver
  }

  /** Whether it has ended or failed, and has no item before that. */
  get isSpent(): boolean {
    const flow = this.#flow
    return flow.next() === undefined && (flow.failure !== undefined || flow.isOver)
  }

  /** The next item, if it is there. */
  poll(): Taken | undefined {
    const flow = this.#flow
    const taken = flow.take()
    if (flow.hasCapacity(1)) {
      // A producer that may go on need not have an item: when nothing is left to take, all of them may.
      if (taken === undefined) this.#writers.wakeAll()
      else this.#writers.wakeFirst()
    }
    if (taken?.value instanceof Boxed) taken.value = taken.value.promise
    return taken
  }

  /** Waits for the next item; `undefined` at the end, or at `untilMs`, for which it waits at least once. */
  *next(untilMs = Infinity): Operation<Taken | undefined, unknown> {
    for (let isLate = false; ; isLate = turn.scheduler.nowMs() >= untilMs) {
      const taken = this.poll()
      if (taken !== undefined) return taken
      const { failure, isOver } = this.#flow
      if (failure !== undefined) return yield* fromExit(failure.why as Failed)
      if (isOver || isLate) return undefined
      yield* untilMs < Infinity ? new News(this, untilMs) : this.arrival
    }
  }

  /** Emits all items, in their turn. */
  *each(emit: Emit): Operation<End, unknown> {
    for (;;) {
      let taken = this.poll()
      if (taken === undefined) {
        yield* this.arrival
        taken = this.poll() ?? (yield* this.next())
        if (taken === undefined) return undefined
      }
      let end: End = emit(taken.value)
      if (isPending(end as Wait)) end = yield* end as Pending
      if (end === STOP) return STOP
      if (--turn.steps <= 0) yield* yieldNow()
    }
  }

  /** See {@link NewsSource}. */
  get isReady(): boolean {
    return this.#flow.next() !== undefined || this.isSpent
  }

  /** See {@link NewsSource}. */
  onNews(listener: (() => void) | undefined): void {
    this.#listener = listener
  }

  /** See {@link NewsSource}. */
  take(): undefined {
    return undefined
  }

  /** See {@link NewsSource}. */
  describe(): string {
    return 'the next item of a stream'
  }

  #wake(): void {
    this.#listener?.()
  }
}

/** An item that is a promise: a flow would wait for it. */
export class Boxed {
  readonly promise: unknown

  constructor(promise: unknown) {
    this.promise = promise
  }
}

/** What a producer has failed with, instead of an item. */
class Failing {
  readonly exit: Failed

  constructor(exit: Failed) {
    this.exit = exit
  }
}
