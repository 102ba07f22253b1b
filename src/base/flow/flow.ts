/**
 * Bounded, ordered concurrency: items that were read, run and not yet taken.
 *
 * `map` of a zone, `stream` of an arrow and the command's `run` are made of it. A run begins when a reader,
 * or whoever has the items, calls `begin`, which is allowed while `hasCapacity` returns true; its outcome is
 * taken by `next` and `drop`, or by `outcomesOf`, in the order of items or of ends. A run of many items may
 * end early with a `Part` of them: the others run before any that were not read yet, in runs of the size that
 * is right by then. It makes no promise for a run that ends at once.
 */
import { assert } from '../assert.ts'
import type { ReaderPlan } from './readers.ts'

/** What a flow does and how much it may hold. */
export interface FlowPlan<Of, Out> {
  /** How many items the next run should have, 1 or more. Absent: 1. */
  readonly sizeNow?: () => number
  /**
   * Begin a run of a chunk or an item; `first` is the index of its first item. An outcome, or for a chunk a
   * `Part`, or a promise of them.
   */
  readonly run: (of: Of, first: number) => Out | Part<Out> | Promise<Out | Part<Out>>
  /**
   * Called when a run has ended, before its turn to be taken. A failure ends reading and is thrown in its
   * turn, unless this makes a value of it (`succeed`) or calls `fail`.
   */
  readonly settled: (run: Run<Of, Out>) => void
  /** Adds an outcome to one before it: all that are there are taken at once, where items are unbounded. */
  readonly join?: (taken: Out, next: Out) => void
  /** Called once, when all is to end with an error: what runs is not needed. */
  readonly failed?: (why: unknown) => void
  /** Whether outcomes come in the order of items. */
  readonly ordered: boolean
  /** Most runs at once; without `aheadMax`, also of those that were not taken. */
  readonly runsMax: number
  /** Whether, once `runsMax` was reached, several begin together when a quarter of them has ended. */
  readonly refillsLate: boolean
  /** Most items in runs that were not taken, at least as many as a run may have. */
  readonly aheadMax?: number | undefined
  /** Asked before each run: what else keeps it from beginning; `changed` is called when that has changed. */
  readonly mayRead?: () => boolean
}

/**
 * The outcome of the first items of a chunk that ended before it had run all. The others run again, but for
 * one that may still run.
 */
export class Part<Out> {
  readonly value: Out
  /** How many items it is of: fewer than the chunk has, and 1 or more unless the first one still runs. */
  readonly count: number
  /** The outcome of the item behind them, if it still runs. */
  readonly running: Promise<Out> | undefined

  constructor(value: Out, count: number, running?: Promise<Out>) {
    this.value = value
    this.count = count
    this.running = running
  }
}

/** A run that has begun, or what another one has left. */
export class Run<Of, Out> {
  /** Its chunk or item, until it has ended. */
  of: Of | undefined
  /** The index of its first item. */
  readonly first: number
  count: number
  isSettled = false
  hasFailed = false
  /** Its outcome, or what it failed with. */
  value: Out | undefined = undefined
  /** The run to be taken after it. */
  next: Run<Of, Out> | undefined = undefined

  constructor(of: Of, first: number, count: number) {
    this.of = of
    this.first = first
    this.count = count
  }

  /** Its failure is an outcome like others. */
  succeed(value: Out): void {
    this.hasFailed = false
    this.value = value
  }
}

export class Flow<Of, Out> implements ReaderPlan {
  readonly #plan: FlowPlan<Of, Out>
  /** Not taken, in the order of items, or of ends: then only those that have ended. */
  #head: Run<Of, Out> | undefined
  #tail: Run<Of, Out> | undefined
  #running = 0
  /** Runs, and their items, that have begun and were not taken. */
  #held = 0
  #ahead = 0
  #count = 0
  #isEnded = false
  readonly #refillAt: number
  #isFull = false
  #isCut = false
  /** What runs have left, in the order of items; none of it has begun. */
  #left: Run<Of, Out>[] = []
  #isBeginning = false
  /** Items from here on do not run any more: one of a failed run, or any where there is no order. */
  #runsBefore = Infinity
  #failure: { readonly why: unknown } | undefined
  #wake: (() => void) | undefined
  #listener: (() => unknown) | undefined
  /** Whether what was taken last is in use still. */
  #isInHand = false

  constructor(plan: FlowPlan<Of, Out>) {
    this.#plan = plan
    this.#refillAt = plan.runsMax - (plan.refillsLate ? Math.max(1, plan.runsMax >> 2) : 1)
  }

  get count(): number {
    return this.#count
  }

  /** How many items that were read are to run again. */
  get leftCount(): number {
    let count = 0
    for (const run of this.#left) count += run.count
    return count
  }

  get isIdle(): boolean {
    return this.#running === 0 && this.#left.length === 0
  }

  sizeNow(): number {
    return this.#plan.sizeNow?.() ?? 1
  }

  hasCapacity(more: number): boolean {
    const { runsMax, aheadMax } = this.#plan
    if (this.#isEnded || this.#left.length > 0 || this.#plan.mayRead?.() === false) return false
    const held = aheadMax === undefined ? this.#held : this.#running
    this.#isFull = held > (this.#isFull ? this.#refillAt : runsMax - 1)
    return !this.#isFull && (aheadMax === undefined || this.#ahead + more <= aheadMax)
  }

  chunk(items: ArrayLike<unknown>): void {
    // A reader may have had them when all was ended, or when what a run has left took the capacity.
    if (this.#isEnded) return
    if (this.#running < this.#plan.runsMax) this.begin(items as Of, items.length)
    else this.#left.push(this.#added(items as Of, items.length))
  }

  /** Run a chunk of `count` items, or one item. */
  begin(of: Of, count: number): void {
    this.#start(this.#added(of, count))
  }

  #added(of: Of, count: number): Run<Of, Out> {
    const run = new Run<Of, Out>(of, this.#count, count)
    this.#count += count
    this.#ahead += count
    this.#held++
    if (this.#plan.ordered) this.#append(run)
    return run
  }

  #start(run: Run<Of, Out>): void {
    this.#running++
    let value: Out | Part<Out> | Promise<Out | Part<Out>>
    try {
      value = this.#plan.run(run.of as Of, run.first)
    } catch (error) {
      return this.#settle(run, true, error)
    }
    if (value instanceof Promise) this.#await(run, value)
    else this.#settle(run, false, value)
  }

  #await(run: Run<Of, Out>, value: Promise<Out | Part<Out>>): void {
    value.then(
      (out) => {
        if (out instanceof Part && out.running !== undefined) this.#split(run, out, out.running)
        else this.#settle(run, false, out)
      },
      (error: unknown) => this.#settle(run, true, error),
    )
  }

  /** The run ends before an item that still runs, which becomes a run of its own. */
  #split(run: Run<Of, Out>, { value, count }: Part<Out>, running: Promise<Out>): void {
    const slow = count === 0 ? run : this.#cut(run, count)
    if (slow.count > 1) this.#leave(slow, 1)
    this.#await(slow, running)
    if (slow !== run) {
      this.#running++
      this.#settle(run, false, value)
      return
    }
    this.#beginLeft()
    this.changed()
  }

  ended(): void {
    this.#isEnded = true
    this.changed()
  }

  failed(why: unknown): void {
    this.fail(why, false)
  }

  /** End all with an error; `isCut`: at once, otherwise behind the outcomes whose turn has come. */
  fail(why: unknown, isCut: boolean): void {
    if (this.#failure === undefined) {
      this.#failure = { why }
      this.#isCut = isCut
      this.#left = []
      this.#plan.failed?.(why)
    }
    this.ended()
  }

  /** A limit ends all: at once, and instead of an error that outcomes are still before. */
  cut(why: unknown): void {
    this.fail(why, true)
    if (!this.#isCut) this.#failure = { why }
    this.#isCut = true
  }

  /** The run whose turn it is to be taken, if it has ended. */
  next(): Run<Of, Out> | undefined {
    const run = this.#head
    if (run === undefined || !run.isSettled || this.#isCut) return undefined
    if (!run.hasFailed) return run
    this.fail(run.value, true)
    return undefined
  }

  /** Take the run that `next` returned. */
  drop(): void {
    const run = this.#head as Run<Of, Out>
    this.#head = run.next
    if (run.next === undefined) this.#tail = undefined
    // One that is old already would keep all that come after it.
    run.next = undefined
    this.#held--
    this.#ahead -= run.count
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** What has ended it before its end. */
  get failure(): { readonly why: unknown } | undefined {
    return this.#failure
  }

  get isOver(): boolean {
    return this.#isEnded && this.#running === 0 && this.#head === undefined
  }

  /** `next`, taken; with a bound on items it counts until `release`. */
  take(): Run<Of, Out> | undefined {
    const run = this.next()
    if (run === undefined) return undefined
    if (this.#plan.aheadMax !== undefined) this.#isInHand = true
    else this.#take(run)
    return run
  }

  /** What `take` has returned is in use no more. */
  release(): void {
    if (!this.#isInHand) return
    this.#isInHand = false
    this.drop()
  }

  /** Nothing more is read or run. */
  stop(): void {
    this.#left = []
    this.#runsBefore = 0
    this.ended()
  }

  /** Call once when the item that is being read has arrived: the read resolves with what it returns. */
  onArrival(listener: () => unknown): void {
    this.#listener = listener
  }

  arrived(): unknown {
    const listener = this.#listener
    if (listener === undefined) return undefined
    this.#listener = undefined
    return listener()
  }

  async idle(): Promise<void> {
    while (this.#running > 0) await this.change()
  }

  /** Resolves when something may have changed. */
  change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve))
  }

  /** Who waits looks again. */
  changed(): void {
    const wake = this.#wake
    if (wake === undefined) return
    this.#wake = undefined
    wake()
  }

  #take(run: Run<Of, Out>): void {
    this.drop()
    const { join } = this.#plan
    if (join === undefined) return
    for (let more = this.next(); more !== undefined; more = this.next()) {
      this.drop()
      join(run.value as Out, more.value as Out)
    }
  }

  #append(run: Run<Of, Out>): void {
    if (this.#tail === undefined) this.#head = run
    else this.#tail.next = run
    this.#tail = run
  }

  #settle(run: Run<Of, Out>, hasFailed: boolean, value: unknown): void {
    run.isSettled = true
    run.hasFailed = hasFailed
    run.value = (value instanceof Part ? value.value : value) as Out
    this.#running--
    if (value instanceof Part) this.#leave(run, value.count)
    if (!this.#plan.ordered) this.#append(run)
    this.#plan.settled(run)
    run.of = undefined
    if (run.hasFailed) this.#endBehind(run)
    this.#beginLeft()
    this.changed()
  }

  /** What a part has left stays in the list, even if it is not to run any more: all behind it waits. */
  #leave(run: Run<Of, Out>, count: number): void {
    const rest = this.#cut(run, count)
    if (!this.#isNeeded(run)) return
    this.#left.push(rest)
    this.#left.sort((one, other) => one.first - other.first)
  }

  /** Nothing begins any more that comes after a failed run. */
  #endBehind({ first }: Run<Of, Out>): void {
    this.#isEnded = true
    this.#runsBefore = Math.min(this.#runsBefore, this.#plan.ordered ? first : 0)
    this.#left = this.#left.filter((left) => this.#isNeeded(left))
  }

  #isNeeded({ first }: Run<Of, Out>): boolean {
    return this.#failure === undefined && first < this.#runsBefore
  }

  /** Shorten a run to `count` items; returns a run of the others, behind it. */
  #cut(run: Run<Of, Out>, count: number): Run<Of, Out> {
    const { of, first } = run
    const items = of as ArrayLike<unknown>
    assert(count > 0 && count < run.count, 'a part has some of the items')
    const rest = new Run<Of, Out>(sliced(items, count, run.count) as Of, first + count, run.count - count)
    run.of = sliced(items, 0, count) as Of
    run.count = count
    this.#held++
    if (this.#plan.ordered) {
      rest.next = run.next
      run.next = rest
      if (this.#tail === run) this.#tail = rest
    }
    return rest
  }

  /** They are held already, so only those that run count; a run that ends at once comes back here. */
  #beginLeft(): void {
    if (this.#left.length === 0 || this.#isBeginning) return
    this.#isBeginning = true
    while (this.#left.length > 0 && this.#running < this.#plan.runsMax) {
      const run = this.#left.shift() as Run<Of, Out>
      const size = this.sizeNow()
      if (run.count > size) this.#left.unshift(this.#cut(run, size))
      this.#start(run)
    }
    this.#isBeginning = false
  }
}

/** Not by a method of the array's own class, which may have another `slice`. */
function sliced(items: ArrayLike<unknown>, from: number, to: number): ArrayLike<unknown> {
  if (ArrayBuffer.isView(items)) return Uint8Array.prototype.slice.call(items, from, to)
  const some: unknown[] = []
  for (let index = from; index < to; index++) some.push(items[index])
  return some
}
