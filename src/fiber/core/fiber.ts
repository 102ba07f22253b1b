/**
 * The fiber itself: its states, and every way from one to the next.
 *
 * ```text
 *   startLater          start             an invalid yield: ODD
 *  UNSTARTED ──────▶ running ◀─────────────────────────────────────────┐
 *      │               │  │  yields an op      makeReady               │ resume
 *      │               │  └───────────▶ parked ─────────▶ READY ───────┘
 *      │ interrupted   │                (op is set)         ▲
 *      │               │ body ends     interrupted: unpark ─┘
 *      ▼               ▼
 *  ────────────▶ settle, with the exit ──────▶ CLOSING ──────▶ DONE, and OK for a value
 *                      │   owns scopes    finalizers run as     ▲
 *                      │                  a generator: parks,   │
 *                      │                  is READY, runs        │
 *                      └───────────── owns nothing ─────────────┘
 * ```
 *
 * Beside these: ASYNC (the body is a promise: parked until it settles), CANCELLED (an interrupt has come) and
 * UNWINDING (its `finally` blocks run). CANCELLED becomes UNWINDING when the fiber next stops or goes on,
 * unless a mask forbids it: MASKED, CLOSING, UNWINDING itself. TROUBLED is looked at where it would park.
 *
 * Ending has three parts, none ever skipped: the body ends or is unwound, what it owns is closed, its exit is
 * published. A fiber that never waits is in no scope's list, so it costs its own object and no more.
 *
 * Over 400 lines: the transitions share private methods and flags, and the engine folds the flags' constants
 * only in the module that declares them.
 */
import { promiseOf, shown, whenSettled } from '../../base/index.ts'
import { FiberError, InterruptedError } from '../errors.ts'
import { Made } from './attempt.ts'
import {
  Ascended,
  BODY,
  Thrown,
  UNWIND,
  exitWithCause,
  interruptReason,
  isEchoOf,
  isWithoutThrow,
  withAdvice,
} from './causes.ts'
import { closeScopes } from './closing.ts'
import { EndPromise, Ending, Joining, type Waitable, isYieldable } from './endings.ts'
import { Exit, type Failed, checkedFailed, isValue, thrownBy, withErrors } from './exit.ts'
import { Extra } from './extra.ts'
import {
  type Step,
  type Waited,
  type Waiter,
  isStep,
  PARKED,
  PENDING,
  generatorNext,
  generatorThrow,
  isGenerator,
  running,
  takeResult,
} from './op.ts'
import type { Child, BaseScope } from './base-scope.ts'
import { FiberScope, isTrouble, root, troublesIn } from './fiber-scope.ts'
import { inline } from './promises.ts'
import { failedFrom } from './rejections.ts'
import { RUNNABLE, isRunnable } from './runnable.ts'
import { turn } from '../scheduler/scheduler.ts'
import { DONE, OBSERVED, OK } from './states.ts'
import { type Waiters, type Wakeable, wakeAll, withWaiter, withoutWaiter } from './waiters.ts'

/** In the scheduler's queue. */
const READY = 4
/** Shall unwind, as soon as no mask forbids it. */
const CANCELLED = 8
/** Is being unwound: its `finally` blocks run, and are not interrupted again. */
const UNWINDING = 16
/** Its own finalizers run. */
const CLOSING = 32
/** Inside `uninterruptible`. */
const MASKED = 64
/** Its body has not been called. */
const UNSTARTED = 256
/** Its body is a promise that has not settled. */
const ASYNC = 512
/** A child has failed and the body may not have looked. */
const TROUBLED = 1024
/** Its `op` is taken before its generator goes on: the error of an invalid `yield`, or another generator. */
const ODD = 2048
/** Parked, while its frame is still on the stack: the fiber that it joins runs on top of it. */
const BELOW = 4096
/** The scheduler's queue gets its `resumer`, which sets what is current and then resumes it. */
const CARRIES = 8192

/** Most fibers on the stack that have parked there. */
const BELOW_MAX = 16

const MASKS = UNWINDING | CLOSING | MASKED

/** What a fiber is doing. */
export type FiberStatus = 'unstarted' | 'running' | 'ready' | 'waiting' | 'closing' | 'done'

/**
 * A running computation that can be joined and interrupted and that belongs to a scope. `fork` makes one. An
 * async body is called with its fiber, whose `signal` it should pass on.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, never } from 'corespun/fiber'
 *
 * const fiber = fork(never(), { name: 'idle' })
 * assert.equal(fiber.status, 'waiting')
 * const exit = await fiber.interrupt('not needed')
 * assert.equal(exit.kind, 'interruption')
 * ```
 *
 * Fields that are documented as internal change without notice.
 */
export class Fiber<out A = unknown, out E = unknown> {
  /**
   * By the fiber's state: UNSTARTED `{ body, input }`, then its generator, DONE its value or its
   * {@link Failed}. @internal
   */
  state: unknown
  /** See {@link Waiter}. @internal */
  op: Waited | undefined
  /** Who waits for its end. @internal */
  waiters: Waiters
  /** Whose list it is in; set when it first waits. @internal */
  scope: BaseScope | undefined
  /** See {@link Child}. @internal */
  younger: Child | undefined
  /** See {@link Child}. @internal */
  older: Child | undefined
  /** See the constants. @internal */
  flags: number
  /** What few fibers have. @internal */
  extra: Extra | undefined

  /** Use `fork`. @internal */
  constructor() {
    this.state = undefined
    this.op = undefined
    this.waiters = undefined
    this.scope = undefined
    this.younger = undefined
    this.older = undefined
    this.flags = 0
    this.extra = undefined
  }

  /** Its number in this thread, given when first asked for. */
  get id(): number {
    return this.more().id
  }

  /** The name it was forked with; `''` for none. */
  get name(): string {
    return this.extra?.name ?? ''
  }

  /** What it is doing. */
  get status(): FiberStatus {
    if ((this.flags & DONE) !== 0) return 'done'
    if ((this.flags & UNSTARTED) !== 0) return 'unstarted'
    if ((this.flags & CLOSING) !== 0) return 'closing'
    if ((this.flags & READY) !== 0) return 'ready'
    return this.op === undefined ? 'running' : 'waiting'
  }

  /** How it ended; `undefined` while it has not. */
  get exit(): Exit<A, E> | undefined {
    if ((this.flags & DONE) === 0) return undefined
    return (this.flags & OK) !== 0 ? Exit.success(this.state as A) : (this.state as Failed<E>)
  }

  /**
   * Aborted when the fiber is interrupted, with `interrupt`'s reason. Made when first asked for. Finalizers
   * run where interrupts are masked: theirs is another one, which is not aborted.
   */
  get signal(): AbortSignal {
    const extra = this.more()
    if (extra.controller === undefined) {
      extra.controller = new AbortController()
      const isCancelled = (this.flags & CANCELLED) !== 0 && (this.flags & (MASKED | CLOSING)) === 0
      if (isCancelled) extra.controller.abort(interruptReason(extra.cause))
    }
    return extra.controller.signal
  }

  /**
   * Wait for its end: its value, or its failure, its defect or an {@link InterruptedError} thrown. In a fiber
   * `yield* fiber.join()`, elsewhere `await fiber.join()`. An interrupted joiner leaves this fiber as it is.
   */
  join(): Waitable<A, E> {
    return (running.fiber === undefined ? new EndPromise(this, true) : new Joining(this)) as never
  }

  /** Wait for its end however it comes: its {@link Exit}. With `yield*` in a fiber, `await` elsewhere. */
  await(): Waitable<Exit<A, E>> {
    return (running.fiber === undefined ? new EndPromise(this, false) : new Ending(this)) as never
  }

  /**
   * Interrupts it now; the result waits until its finalizers have run and resolves with its exit.
   *
   * An {@link InterruptedError} is thrown at the `yield*` where a generator waits; its `finally` blocks run
   * and may wait, since a fiber is unwound once. A `catch` sees the error too and should let it pass: a body
   * that goes on is left to go on, and is interrupted all the same when it has ended. An async body's signal
   * is aborted. Nothing happens to a fiber that has ended.
   * @param reason The `reason` of its exit.
   */
  interrupt(reason?: unknown): Waitable<Exit<A, E>> {
    this.interruptWith(Exit.interruption(reason))
    return (running.fiber === undefined ? new EndPromise(this, false) : new Ending(this)) as never
  }

  /** Interrupts it and waits for its end. Throws what else went wrong in it, unless a join receives it. */
  async [Symbol.asyncDispose](): Promise<void> {
    const isReceived = this.isObserved
    const exit = await this.interrupt()
    if (!isReceived && exit.kind !== 'success' && isTrouble(exit)) throw thrownBy(troublesIn(exit)[0])
  }

  /** How a message calls it. @internal */
  get title(): string {
    return this.name === '' ? `fiber #${this.id}` : `fiber '${this.name}' (#${this.id})`
  }

  /** See {@link Extra}. @internal */
  more(): Extra {
    return (this.extra ??= new Extra())
  }

  /** @internal */
  get isObserved(): boolean {
    return (this.flags & OBSERVED) !== 0
  }

  /** Whether an interrupt would have to wait. @internal */
  get isMasked(): boolean {
    return (this.flags & MASKS) !== 0
  }

  /** See {@link Waiter}. @internal */
  get isStopped(): boolean {
    return (this.flags & CANCELLED) !== 0 && (this.flags & MASKS) === 0
  }

  /** Its failure counts as received. @internal */
  observe(): void {
    this.flags |= OBSERVED
  }

  /** Call its body soon, not now. @internal */
  startLater(body: unknown, input: unknown): void {
    this.flags |= UNSTARTED
    this.state = { body, input }
    this.link()
    this.makeReady()
  }

  /** The scope of what it forks and acquires now. @internal */
  children(): BaseScope {
    const extra = this.more()
    return (extra.scope ??= new FiberScope(this)).forks
  }

  /** Take its scope away for `scope`, in whose `outer` it is. @internal */
  enter(scope: BaseScope | undefined): void {
    this.more().scope = scope
  }

  /** Go on by `within`, wherever it is made ready. @internal */
  carry(within: (body: () => void) => void): void {
    this.flags |= CARRIES
    const resume = (): void => this.resume()
    this.more().resumer = { resume: () => within(resume) }
  }

  /** Belong to `scope` from now on. @internal */
  enterList(scope: BaseScope): void {
    this.scope = scope
    scope.add(this)
  }

  /** Call its body and run until the first wait. @internal */
  start(body: unknown, input: unknown): void {
    const outer = running.fiber
    running.fiber = this
    running.depth += 1
    let made: unknown
    let result: IteratorResult<unknown> | undefined
    let promise: Promise<unknown> | undefined
    try {
      made = typeof body !== 'function' ? body : input === undefined ? body(this) : body(input, this)
      if ((typeof made === 'object' && made !== null) || typeof made === 'function') {
        if (isGenerator(made)) {
          this.state = made
          result = generatorNext.call(made)
        } else if (made !== body && made instanceof Promise && !(Symbol.iterator in made)) {
          // Shorter than the way of all others: async bodies are the most common ones.
          promise = promiseOf(made)
        } else made = this.adopted(made, body, input)
      }
    } catch (thrown) {
      leave(outer)
      return this.bodyThrew(thrown)
    }
    leave(outer)
    if (result === undefined) {
      if (promise !== undefined) this.awaitPromise(promise, false)
      else if (made instanceof Awaited) this.awaitBody(made)
      else this.bodyEnded(made)
    } else if (result.done === true) this.bodyEnded(result.value)
    else this.yielded(result)
  }

  /** See {@link Ready}. @internal */
  resume(): void {
    const flags = (this.flags &= ~READY)
    if ((flags & (UNSTARTED | ODD)) !== 0) return this.resumeOddly()
    if ((flags & CANCELLED) !== 0 && (flags & MASKS) === 0) this.unwind()
    const outer = running.fiber
    running.fiber = this
    let result
    try {
      result = generatorNext.call(this.state)
    } catch (thrown) {
      running.fiber = outer
      return this.bodyThrew(thrown)
    }
    running.fiber = outer
    if (result.done === true) this.bodyEnded(result.value)
    else this.yielded(result)
  }

  /** See {@link Waiter}. @internal */
  makeReady(): void {
    if ((this.flags & (READY | DONE)) !== 0) return
    this.flags |= READY
    turn.scheduler.push((this.flags & CARRIES) === 0 ? this : (this.extra?.resumer ?? this))
  }

  /** See {@link Waiter}. @internal */
  raise(failed: Failed): unknown {
    const extra = this.more()
    extra.raised = failed
    extra.thrown = thrownBy(failed)
    return extra.thrown
  }

  /** The error that unwinds the body. @internal */
  token(): InterruptedError {
    const extra = this.more()
    return (extra.token ??= new InterruptedError(interruptReason(extra.cause)))
  }

  /** Whether `thrown` unwinds the body: who catches it lets it pass. @internal */
  isToken(thrown: unknown): boolean {
    return this.extra?.token !== undefined && this.extra.token === thrown
  }

  /** The exit that `thrown` represents: what was raised in this fiber is that again. @internal */
  failedBy(thrown: unknown): Failed {
    const extra = this.extra
    if (this.isToken(thrown)) return extra?.cause as Failed
    if (extra?.raised !== undefined && Object.is(extra.thrown, thrown)) return extra.raised
    const replaced = extra?.replaced
    return replaced !== undefined && Object.is(thrownBy(replaced), thrown) ? replaced : Exit.defect(thrown)
  }

  /** See {@link Waiter}. @internal */
  failedBeside(failed: Failed): void {
    const extra = this.more()
    if (!isEchoOf(failed, extra.controller?.signal)) extra.addError(failed)
  }

  /** See {@link Child}. @internal */
  get failedBefore(): Failed | undefined {
    return this.extra?.before
  }

  /** See {@link Child}. @internal */
  interruptWith(why: Failed): void {
    if ((this.flags & DONE) !== 0) return
    const extra = this.more()
    // A closing fiber is not unwound: its exit remains, and errors are added to it.
    const hasTrouble = why.kind !== 'interruption' || why.others.length > 0
    if ((this.flags & CLOSING) !== 0 && hasTrouble) return extra.addError(why)
    if ((this.flags & CANCELLED) !== 0) {
      if (hasTrouble) extra.addError(why)
      return
    }
    this.flags |= CANCELLED
    extra.cause = why
    if ((this.flags & MASKS) !== 0) {
      extra.before = extra.raised
      return
    }
    // Listeners run here: they may end this very fiber, or fork.
    extra.controller?.abort(interruptReason(why))
    if ((this.flags & (READY | UNSTARTED | DONE)) !== 0) return
    // One that runs stops at its next `yield*`, which it does not while it has steps left.
    if (this.op === undefined) turn.steps = 0
    else if (this.op.unpark(this)) this.makeReady()
  }

  /** Forbid interrupts, or allow them again; returns whether they were allowed. @internal */
  mask(on: boolean): boolean {
    const wereAllowed = (this.flags & MASKED) === 0
    if (on) this.flags |= MASKED
    else this.flags &= ~MASKED
    if (!on && (this.flags & CANCELLED) !== 0) {
      turn.steps = 0
      if (!this.isMasked) this.extra?.controller?.abort(interruptReason(this.extra.cause))
    }
    return wereAllowed
  }

  /** Take `op` in its next turn, before its generator goes on. @internal */
  takeFirst(op: Waited): void {
    this.flags |= ODD
    this.op = op
    this.makeReady()
  }

  /** Go on in `inner`; its generator goes on when that has ended. @internal */
  descend(inner: unknown): void {
    const extra = this.more()
    extra.frame = { generator: this.state, outer: extra.frame }
    this.state = inner
  }

  /** A child has failed and nobody waits for it. @internal */
  troubledBy(child: Child, failed: Failed): void {
    if ((this.flags & READY) === 0 && this.op !== undefined) this.interruptWith(failed)
    else {
      this.flags |= TROUBLED
      const extra = this.more()
      ;(extra.troubles ??= []).push(child)
    }
  }

  /**
   * Its own code is about to wait for its end: only its unwinding can follow.
   * @throws {FiberError} `FIBER_DEADLOCK` when it would wait for ever.
   * @internal
   */
  checkAwaited(): void {
    const isUnwoundNow = (this.flags & CANCELLED) !== 0 && !this.isMasked
    if (running.fiber === this && !isUnwoundNow) throw this.waitsForItself('await()')
  }

  /** The error of one that waits for its own end. @internal */
  waitsForItself(call: string): FiberError {
    return new FiberError('FIBER_DEADLOCK', { id: this.id, name: this.name, call })
  }

  /** @internal */
  addWaiter(one: Wakeable): void {
    this.flags |= OBSERVED
    if ((this.flags & DONE) !== 0) one.wakeBy(this)
    else this.waiters = withWaiter(this.waiters, one)
  }

  /** Not any more. @internal */
  dropWaiter(one: Wakeable): void {
    this.waiters = withoutWaiter(this.waiters, one, this)
  }

  /** See {@link Waited}: to be joined. @internal */
  park(fiber: Waiter): void {
    this.addWaiter(fiber as Fiber)
  }

  /** See {@link Waited}. @internal */
  unpark(fiber: Waiter): boolean {
    fiber.op = undefined
    this.dropWaiter(fiber as Fiber)
    return true
  }

  /** See {@link Waited}. @throws Its failure, its defect, or an {@link InterruptedError}. @internal */
  take(fiber: Waiter): unknown {
    if ((this.flags & OK) !== 0) return this.state
    throw fiber.raise(this.state as Failed)
  }

  /** See {@link Waited}. @internal */
  describe(): string {
    return this.title
  }

  /** See {@link Wakeable}. @internal */
  waitsFor(target: object): boolean {
    return this.op === target
  }

  /** See {@link Wakeable}. @internal */
  wakeBy(target: object): void {
    if (this.op === target) this.makeReady()
  }

  /** For `yield*` of its join, apart from the `next` of ops, for monomorphic call sites. @internal */
  next(): IteratorResult<Step, unknown> {
    if (!running.asks) return { done: true, value: takeResult() }
    running.asks = false
    if ((this.flags & OK) !== 0 && --turn.steps > 0) return { done: true, value: this.state }
    return this.joinSlowly()
  }

  /**
   * A join when it has not ended, has failed, or is out of steps.
   * @throws {FiberError} `FIBER_REQUIRED`, `FIBER_DEADLOCK`.
   */
  private joinSlowly(): IteratorResult<Step, unknown> {
    const fiber = running.fiber as Fiber | undefined
    if (fiber === undefined) throw new FiberError('FIBER_REQUIRED', { call: 'yield* fiber.join()' })
    if (fiber === this) throw this.waitsForItself('join()')
    this.flags |= OBSERVED
    if ((this.flags & DONE) !== 0 && turn.steps > 0) return { done: true, value: this.take(fiber) }
    fiber.op = this
    const canRun = (this.flags & (READY | BELOW)) === READY && fiber.canRunBelow()
    if (!canRun || !turn.scheduler.takeOnly(this)) return PENDING
    if (!fiber.runBelow(this)) return PARKED
    fiber.op = undefined
    return { done: true, value: this.take(fiber) }
  }

  /** Whether it may park without leaving the stack. */
  private canRunBelow(): boolean {
    const isUsual = this.scope !== undefined && (this.flags & (CANCELLED | TROUBLED)) === 0
    return isUsual && running.depth === 0 && running.below < BELOW_MAX
  }

  /**
   * Nobody but `joined` is ready: park, and let it go on from here, as the queue would. When nobody but this
   * fiber is ready then, its generator has not been left.
   * @returns Whether it is this fiber's turn again.
   */
  private runBelow(joined: Fiber): boolean {
    joined.park(this)
    this.flags |= BELOW
    running.below += 1
    running.fiber = undefined
    try {
      joined.resume()
    } finally {
      running.fiber = this
      running.below -= 1
      this.flags &= ~BELOW
    }
    if ((this.flags & (READY | CANCELLED)) !== READY || !turn.scheduler.takeOnly(this)) return false
    this.flags &= ~READY
    return true
  }

  private resumeOddly(): void {
    if ((this.flags & UNSTARTED) !== 0) return this.startNow()
    this.flags &= ~ODD
    if ((this.flags & CANCELLED) !== 0 && (this.flags & MASKS) === 0) this.unwind()
    try {
      const op = this.op as Waited
      this.op = undefined
      op.take(this)
    } catch (error) {
      return this.throwIn(error)
    }
    this.resume()
  }

  private startNow(): void {
    const { body, input } = this.state as { body: unknown; input: unknown }
    this.flags &= ~UNSTARTED
    this.state = undefined
    if ((this.flags & CANCELLED) === 0) this.start(body, input)
    else this.endUnstarted()
  }

  /** It was interrupted before its generator began. */
  private endUnstarted(): void {
    this.flags |= UNWINDING
    this.settle(Exit.success(undefined))
  }

  /** What a body has made that is neither a generator nor a plain value. */
  private adopted(made: object, body: unknown, input: unknown): unknown {
    let promise: unknown = made
    const isRun = made === body && isRunnable(made)
    if (isRun) promise = made[RUNNABLE](input, this.signal)
    if (isYieldable(promise)) {
      this.state = inline(promise)
      return new Awaited(undefined, false)
    }
    const awaited = promiseOf(promise)
    if (awaited !== undefined) return new Awaited(awaited, isRun)
    return isRun ? this.valueOf(promise as Exit<unknown, unknown>) : made
  }

  /** The value of a body's own exit, or what to throw instead. */
  private valueOf(exit: Exit<unknown, unknown>): unknown {
    if (isValue(exit)) return exit.value
    throw this.raise(checkedFailed(exit))
  }

  private awaitBody({ promise, givesExit }: Awaited): void {
    if (promise !== undefined) this.awaitPromise(promise, givesExit)
    else if ((this.flags & CANCELLED) === 0) this.resume()
    else this.endUnstarted()
  }

  private awaitPromise(promise: Promise<unknown>, givesExit: boolean): void {
    this.flags |= ASYNC
    this.op = BODY
    if (this.scope === undefined) this.link()
    whenSettled(
      promise,
      (value) => this.bodySettled(value, false, givesExit),
      (reason) => this.bodySettled(reason, true, givesExit),
    )
  }

  /** The promise of its body has been fulfilled with `outcome`, or rejected. */
  private bodySettled(outcome: unknown, isRejected: boolean, givesExit: boolean): void {
    const { scheduler } = turn
    const isTurn = scheduler.beginTurn()
    this.flags &= ~ASYNC
    this.op = undefined
    if ((this.flags & CANCELLED) !== 0) this.flags |= UNWINDING
    if (isRejected) this.bodyThrew(this.raise(givesExit ? Exit.defect(outcome) : failedFrom(outcome)))
    else if (!givesExit) this.bodyEnded(outcome)
    else {
      const exit = outcome as Exit<unknown, unknown>
      if (isValue(exit)) this.bodyEnded(exit.value)
      else this.bodyThrew(this.raise(checkedFailed(exit)))
    }
    if (isTurn) scheduler.endTurn()
  }

  private link(): void {
    if (this.scope !== undefined) return
    const parent = running.fiber as Fiber | undefined
    this.enterList(parent === undefined ? root : parent.children())
  }

  /** The generator has yielded. */
  private yielded(result: IteratorResult<unknown>): void {
    if (!isStep(result, PENDING)) {
      if (!isStep(result, PARKED)) this.throwIn(this.wrongYield(result.value))
      return
    }
    if ((this.flags & (CANCELLED | TROUBLED)) !== 0 && this.isDiverted()) return this.divert()
    if (this.scope === undefined) this.link()
    ;(this.op as Waited).park(this)
  }

  /** It unwinds instead of waiting, unless what it has begun must be waited for all the same. */
  private divert(): void {
    const op = this.op as Waited
    if (op.leave === undefined || op.leave(this)) {
      this.unwind()
      return this.resume()
    }
    if (this.scope === undefined) this.link()
  }

  /** Whether it has to unwind instead of waiting. */
  private isDiverted(): boolean {
    const op = this.op
    this.op = undefined
    if ((this.flags & TROUBLED) !== 0) {
      this.flags &= ~TROUBLED
      for (const failed of this.troubles()) this.interruptWith(failed)
    }
    this.op = op
    return (this.flags & CANCELLED) !== 0 && (this.flags & MASKS) === 0
  }

  /** The exits of children that failed while it ran and that nobody has joined since. */
  private troubles(): Failed[] {
    const extra = this.more()
    const children = extra.troubles ?? []
    extra.troubles = undefined
    return children.filter((child) => !child.isObserved).map((child) => child.exit as Failed)
  }

  /** From here on it is on its way out: the interrupt is thrown where it waits. */
  private unwind(): void {
    const { op } = this
    this.flags |= UNWINDING
    this.op = UNWIND
    op?.drop?.(this)
  }

  /** It has yielded what nobody can wait for. */
  private wrongYield(value: unknown): FiberError {
    return new FiberError('FIBER_YIELD', { id: this.id, name: this.name, received: shown(value) })
  }

  /** Throws `error` at the `yield` where its generator waits. */
  private throwIn(error: unknown): void {
    const outer = running.fiber
    running.fiber = this
    let result
    try {
      result = generatorThrow.call(this.state, error)
    } catch (thrown) {
      running.fiber = outer
      // A `yield*` of an iterator that cannot throw, such as an array's, hides what it has yielded.
      return this.bodyThrew(isWithoutThrow(thrown) ? error : thrown)
    }
    running.fiber = outer
    if (result.done === true) return this.bodyEnded(result.value)
    if (isStep(result, PENDING) || isStep(result, PARKED)) return this.yielded(result)
    // A body that catches the error and does it again may do so for ever: in turns, not on the stack.
    if (this.scope === undefined) this.link()
    this.takeFirst(new Thrown(this.wrongYield(result.value)))
  }

  private bodyEnded(value: unknown): void {
    if (this.extra !== undefined) {
      if (this.ascend()) {
        this.op = new Made(value)
        this.makeReady()
      } else this.settle(Exit.success(value))
    } else if (this.scope !== undefined || this.waiters !== undefined) this.finish(OK, value)
    else {
      // It never waited: it is in no list, and nothing waits for it.
      this.flags = DONE | OK
      this.state = value
    }
  }

  private bodyThrew(thrown: unknown): void {
    if (this.ascend()) return this.takeFirst(new Ascended(thrown))
    this.settle(this.failedBy(withAdvice(thrown)))
  }

  /** Its generator has ended: whether another one waits for that, and is the fiber's again. */
  private ascend(): boolean {
    const frame = this.extra?.frame
    if (frame === undefined) return false
    ;(this.extra as Extra).frame = frame.outer
    this.state = frame.generator
    return true
  }

  /** The body has ended, or the closing of what it owns. */
  private settle(exit: Exit<unknown, unknown>): void {
    const extra = this.more()
    let final = exit
    if ((this.flags & CLOSING) !== 0) {
      const errors = exit.kind === 'success' ? (exit.value as Failed[]) : [exit]
      final = withErrors(extra.exit as Exit<unknown, unknown>, [...errors, ...this.troubles()])
    } else final = this.withCause(exit)
    const errors = extra.errors
    if (errors !== undefined) {
      extra.errors = undefined
      final = withErrors(final, errors)
    }
    if (extra.scope !== undefined && (this.flags & CLOSING) === 0) {
      extra.exit = final
      extra.controller = undefined
      this.flags |= CLOSING
      this.state = closeScopes(extra.scope, undefined, final)
      return this.resume()
    }
    if (final.kind === 'success') this.finish(OK, final.value)
    else this.finish(0, final)
  }

  /** The exit of a body that may have been interrupted meanwhile, or whose children have failed. */
  private withCause(exit: Exit<unknown, unknown>): Exit<unknown, unknown> {
    const final = exitWithCause(exit, this.extra, (this.flags & UNWINDING) !== 0)
    return this.extra?.troubles === undefined ? final : withErrors(final, this.troubles())
  }

  private finish(ok: number, state: unknown): void {
    this.flags = (this.flags & OBSERVED) | DONE | ok
    this.state = state
    this.op = undefined
    const { scope, waiters } = this
    if (scope !== undefined) scope.remove(this)
    if (waiters !== undefined) {
      this.waiters = undefined
      wakeAll(waiters, this)
    }
    if (scope !== undefined) scope.childEnded(this, ok === 0 ? (state as Failed) : undefined)
    else if (ok === 0) {
      const parent = running.fiber as Fiber | undefined
      const above = parent === undefined ? root : parent.children()
      above.childEnded(this, state as Failed)
    }
  }
}

/** A body whose end is a promise; without a promise its generator is in the fiber's state. */
class Awaited {
  readonly promise: Promise<unknown> | undefined
  readonly givesExit: boolean

  constructor(promise: Promise<unknown> | undefined, givesExit: boolean) {
    this.promise = promise
    this.givesExit = givesExit
  }
}

function leave(outer: Waiter | undefined): void {
  running.fiber = outer
  running.depth -= 1
}
