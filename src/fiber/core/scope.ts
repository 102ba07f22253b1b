/**
 * A scope that is an object: it owns fibers and resources until it is closed, wherever that is.
 *
 * The first child that fails fails the scope: the others are interrupted and all is released. Its exit keeps
 * every error. A fiber has a scope of its own and needs none of these; they are for code outside of fibers,
 * and for resources that outlive one fiber.
 */
import { type Kind, optionsOf } from '../../base/index.ts'
import { yieldNow } from '../scheduler/yielding.ts'
import { FiberError, wrong } from '../errors.ts'
import { closeScopes, emptied } from './closing.ts'
import { Exit, type Failed, exitValue, flatExits, withErrors } from './exit.ts'
import type { Waitable } from './endings.ts'
import type { Fiber } from './fiber.ts'
import { type AnyBody, type FailureOf, type ForkOptions, type ValueOf, fork, forkIn } from './fork.ts'
import { Nursery } from './nursery.ts'
import { type Operation, running } from './op.ts'
import { type AnyScope, BaseScope, type Child, type Finalizer } from './base-scope.ts'
import { FiberScope, isTrouble, troublesIn } from './fiber-scope.ts'
import { fromExit } from './promises.ts'

/** Options of a scope. */
export interface ScopeOptions {
  /** Its name in messages and in `dump`. Default: none. */
  readonly name?: string
}

/** Scopes that have children, for `dump`. */
export const scopesWithChildren = new Set<Scope>()

const NAME: Kind<string> = { expected: 'a string', accepts: (name) => typeof name === 'string', default: '' }
const SCOPE = { name: NAME }

/**
 * Owns fibers and finalizers. When it closes, the fibers are interrupted and the finalizers run, last added
 * first.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Scope, sleep } from 'corespun/fiber'
 *
 * const scope = new Scope({ name: 'jobs' })
 * const job = scope.fork(sleep(60_000))
 * await scope.close()
 * assert.equal(job.exit?.kind, 'interruption')
 * ```
 */
export class Scope implements AnyScope {
  /** Its name; `''` for none. */
  readonly name: string
  /** Its children and finalizers. @internal */
  readonly members: BaseScope
  readonly #failedChildren: Child[] = []
  #failed: Failed | undefined
  #closing: Fiber<void, unknown> | undefined
  /** Takes it from the list of the fiber that made it. */
  readonly #leaveHost: (() => void) | undefined
  /** Somebody has its exit, or will. */
  #isAsked = false

  /**
   * Made inside a fiber it is closed when that fiber ends, if not before, and what failed it fails the fiber
   * when nobody has joined or closed it; elsewhere whoever makes it closes it (`await using scope = new
   * Scope()`), which throws it.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  constructor(options?: ScopeOptions) {
    this.members = new Members(this)
    this.name = optionsOf(options, SCOPE, wrong, 'new Scope()').name
    const host = running.fiber as Fiber | undefined
    if (host === undefined) return
    const outer = host.children()
    const end = (): unknown => this.#endWithHost()
    outer.addFinalizer(end)
    this.#leaveHost = () => outer.forgetFinalizer(end)
  }

  /** Whether it has not begun to close. */
  get isOpen(): boolean {
    return this.#closing === undefined
  }

  /** How a message calls it. */
  get title(): string {
    return this.name === '' ? 'the scope' : `scope '${this.name}'`
  }

  /**
   * Run a body as a fiber that this scope owns.
   * @throws {FiberError} `FIBER_SCOPE_CLOSED`; and as `fork`.
   */
  fork<const B extends AnyBody>(
    body: B,
    options?: Omit<ForkOptions, 'scope' | 'daemon'>,
  ): Fiber<ValueOf<B>, FailureOf<B>> {
    return options === undefined ? forkIn(this.members, body) : fork(body, { ...options, scope: this })
  }

  /**
   * Call `finalizer` when the scope closes, before all that were added earlier; with the scope's exit so far.
   * @throws {FiberError} `FIBER_SCOPE_CLOSED`.
   */
  addFinalizer(finalizer: Finalizer): void {
    this.members.checkOpen()
    if (typeof finalizer !== 'function')
      throw wrong('scope.addFinalizer(): finalizer', 'a function', finalizer)
    this.members.addFinalizer(finalizer)
  }

  /**
   * Wait until all children have ended by themselves, then close. Throws what failed the
   * scope. With `yield*` in a fiber, `await` elsewhere.
   * @throws {FiberError} `FIBER_DEADLOCK` in a fiber that the scope owns.
   */
  join(): Waitable<void, unknown> {
    const fiber = running.fiber as Fiber | undefined
    if (fiber !== undefined) this.checkJoiner(fiber)
    const options = { name: `join of ${this.title}`, daemon: true, input: { scope: this, joiner: fiber } }
    return fork(joinScope, options).join()
  }

  /**
   * Interrupt all children, wait for them, release in reverse order. The first call does it, every call waits
   * for the end and returns the scope's exit: a value, or all errors. With `yield*` in a fiber,
   * `await` elsewhere.
   */
  close(): Waitable<Exit<void, unknown>> {
    this.#isAsked = true
    const closing = this.#close()
    if (closing.exit !== undefined) this.#leaveHost?.()
    return closing.await()
  }

  /** Closes; throws what failed the scope, unless a join of the failed fiber has received it. */
  async [Symbol.asyncDispose](): Promise<void> {
    const exit = await this.close()
    if (!this.#isReceived(exit)) exitValue(exit)
  }

  /** Whether joins of the failed fibers have received all errors. */
  #isReceived(exit: Exit<void, unknown>): boolean {
    if (exit.kind === 'success') return true
    const areJoined = this.#failedChildren.every((child) => child.isObserved)
    return areJoined && flatExits(exit).length <= this.#failedChildren.length
  }

  /** The fiber that made it ends: close it, and let nothing be lost that nobody has asked for. */
  *#endWithHost(): Operation<void, unknown> {
    const exit = yield* this.#close().await()
    if (!this.#isAsked && !this.#isReceived(exit)) yield* fromExit(exit)
  }

  /**
   * Refuse a joiner that the scope waits for, or whose end one of those waits for.
   * @throws {FiberError} `FIBER_DEADLOCK`.
   * @internal
   */
  checkJoiner(fiber: Fiber): void {
    if (isWithin(fiber, this)) throw fiber.waitsForItself(`join() of ${this.title}`)
  }

  /** A child has ended; `failed` unless with a value. @internal */
  childEnded(child: Child, failed: Failed | undefined): void {
    if (failed === undefined || !isTrouble(failed)) return
    this.#failedChildren.push(child)
    if (this.#failed !== undefined || !this.isOpen) {
      for (const trouble of troublesIn(failed)) this.members.errors.push(trouble)
      return
    }
    this.#failed = failed
    this.#close()
  }

  #close(): Fiber<void, unknown> {
    if (this.#closing !== undefined) return this.#closing
    const options = { name: `close of ${this.title}`, daemon: true, input: this }
    this.#closing = fork(closeScope, options)
    // The scope keeps what went wrong until it is asked; see `[Symbol.asyncDispose]`.
    this.#closing.observe()
    return this.#closing
  }

  /**
   * It has closed with `exit`: nothing is left for the fiber that made it, unless a failure was not received.
   * @internal
   */
  closed(exit: Exit<void, unknown>): void {
    if (this.#isAsked || exit.kind === 'success') this.#leaveHost?.()
  }

  /** What has failed it, for the fiber that closes it. @internal */
  get failed(): Failed | undefined {
    return this.#failed
  }
}

/** The children and finalizers of a {@link Scope}, whose users see none of these methods. */
class Members extends BaseScope {
  readonly #scope: Scope

  constructor(scope: Scope) {
    super()
    this.#scope = scope
  }

  override checkOpen(): void {
    if (!this.#scope.isOpen) throw new FiberError('FIBER_SCOPE_CLOSED', { scope: this.#scope.title })
  }

  override add(child: Child): void {
    if (!this.hasChildren) scopesWithChildren.add(this.#scope)
    super.add(child)
  }

  override remove(child: Child): void {
    super.remove(child)
    if (!this.hasChildren) scopesWithChildren.delete(this.#scope)
  }

  override childEnded(child: Child, failed: Failed | undefined): void {
    this.#scope.childEnded(child, failed)
  }
}

/** Whether `scope` waits for `fiber`, or for one that waits for it. */
function isWithin(fiber: Fiber, scope: Scope): boolean {
  for (let around = fiber.scope; around !== undefined;) {
    if (around === scope.members) return true
    around = around instanceof FiberScope || around instanceof Nursery ? around.host.scope : undefined
  }
  return false
}

interface ScopeJoin {
  readonly scope: Scope
  readonly joiner: Fiber | undefined
}

function* joinScope({ scope, joiner }: ScopeJoin): Operation<void, unknown> {
  if (joiner !== undefined) {
    // In its first step a fiber is in no scope's list yet, nor may be the one that forks it.
    yield* yieldNow()
    if (joiner.exit === undefined) scope.checkJoiner(joiner)
  }
  if (scope.isOpen) yield* emptied(scope.members)
  yield* fromExit(yield* scope.close())
}

function* closeScope(scope: Scope, fiber: Fiber): Operation<void, unknown> {
  fiber.mask(true)
  // The scope must have this fiber before a child is interrupted.
  yield* yieldNow()
  const exit: Exit<void, unknown> = scope.failed ?? Exit.success(undefined)
  const errors = yield* closeScopes(scope.members, undefined, exit)
  const final = withErrors(exit, errors)
  scope.closed(final)
  yield* fromExit(final)
}
