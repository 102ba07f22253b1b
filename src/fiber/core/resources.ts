/**
 * What must be given back, and what must not be interrupted.
 *
 * A fiber releases when it ends; `scoped` makes a smaller scope inside one fiber. Releases run in reverse
 * order, once, where interrupts are masked, however the scope ends.
 */
import { yieldNow } from '../scheduler/yielding.ts'
import { wrong } from '../errors.ts'
import { Exit, type Failed, withErrors } from './exit.ts'
import { closeScopes } from './closing.ts'
import type { Fiber } from './fiber.ts'
import type { AnyBody, FailureOf, ValueOf } from './fork.ts'
import { type Operation, outside, running } from './op.ts'
import type { BaseScope, Finalizer } from './base-scope.ts'
import { FiberScope } from './fiber-scope.ts'
import { fromExit, inline, within } from './promises.ts'
import { turn } from '../scheduler/scheduler.ts'

/** The fiber whose code runs; `undefined` elsewhere. */
export function runningFiber(): Fiber | undefined {
  return running.fiber as Fiber | undefined
}

/**
 * Returns the fiber whose code runs.
 * @throws {FiberError} `FIBER_REQUIRED` outside of a fiber, and behind an `await`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { currentFiber, fork } from 'corespun/fiber'
 *
 * assert.equal(await fork(() => currentFiber().name, { name: 'job' }).join(), 'job')
 * ```
 */
export function currentFiber(): Fiber
/** @internal */
export function currentFiber(call: string): Fiber
export function currentFiber(call = 'currentFiber()'): Fiber {
  if (running.fiber === undefined) throw outside(call)
  return running.fiber as Fiber
}

/**
 * Run `body` without being interrupted. An interrupt that comes meanwhile is delivered where the outermost
 * `uninterruptible` ends: what is behind it does not run. What `body` failed with is then kept in the exit's
 * `others`.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, sleep, uninterruptible } from 'corespun/fiber'
 *
 * let isSaved = false
 * const fiber = fork(
 *   uninterruptible(function* () {
 *     yield* sleep(1)
 *     isSaved = true
 *   }),
 * )
 * await fiber.interrupt()
 * assert.ok(isSaved)
 * ```
 */
export function* uninterruptible<const B extends AnyBody>(body: B): Operation<ValueOf<B>, FailureOf<B>> {
  const fiber = currentFiber('uninterruptible()')
  if (--turn.steps <= 0) yield* yieldNow()
  return yield* masked(fiber, () => within(body))
}

/** Runs a body as it would run outside of the mask; see {@link uninterruptibleMask}. */
export type Restore = <const B extends AnyBody>(body: B) => Operation<ValueOf<B>, FailureOf<B>>

/**
 * Run `body` without being interrupted, except in what it passes to `restore`: there interrupts are allowed
 * if they were allowed around the mask. An interrupt that is pending is delivered where `restore` begins.
 * @param body Called with `restore` instead of the fiber.
 * @throws {FiberError} `FIBER_ARGUMENT` when `body` is not a function; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, never, uninterruptibleMask } from 'corespun/fiber'
 *
 * let isReleased = false
 * const fiber = fork(
 *   uninterruptibleMask(function* (restore) {
 *     try {
 *       yield* restore(never())
 *     } finally {
 *       isReleased = true
 *     }
 *   }),
 * )
 * await fiber.interrupt()
 * assert.ok(isReleased)
 * ```
 */
export function* uninterruptibleMask<R>(
  body: (restore: Restore) => R,
): Operation<ValueOf<() => R>, FailureOf<() => R>> {
  if (typeof body !== 'function') throw wrong('uninterruptibleMask(): body', 'a function', body)
  const fiber = currentFiber('uninterruptibleMask()')
  if (--turn.steps <= 0) yield* yieldNow()
  const isRestored = !fiber.isMasked
  function* restore(inner: unknown): Operation<unknown, unknown> {
    return yield* isRestored && running.fiber === fiber ? unmasked(fiber, inner) : within(inner)
  }
  return yield* masked(fiber, () => within(() => body(restore)))
}

/** Run `work` masked; deliver at the end the interrupt that came meanwhile. */
function* masked(fiber: Fiber, work: () => Operation<unknown>): Operation<unknown> {
  const isOutermost = fiber.mask(true)
  let value: unknown
  try {
    value = yield* work()
  } catch (thrown) {
    if (isOutermost) fiber.mask(false)
    if (!fiber.isStopped) throw thrown
    fiber.failedBeside(fiber.failedBy(thrown))
  }
  if (isOutermost) fiber.mask(false)
  if (fiber.isStopped) yield* yieldNow()
  return value
}

/**
 * Runs `body` with interrupts allowed, also inside of `uninterruptible`: one that is pending is delivered
 * where it begins. In finalizers, and in a fiber that is being interrupted, it changes nothing.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, interruptible, never, uninterruptible } from 'corespun/fiber'
 *
 * const exit = await fork(uninterruptible(() => interruptible(never()))).interrupt()
 * assert.equal(exit.kind, 'interruption')
 * ```
 */
export function* interruptible<const B extends AnyBody>(body: B): Operation<ValueOf<B>, FailureOf<B>> {
  const fiber = currentFiber('interruptible()')
  if (--turn.steps <= 0) yield* yieldNow()
  return yield* unmasked(fiber, body)
}

/** Run `body` with interrupts allowed inside of a mask: those that come are delivered before it ends. */
function* unmasked(fiber: Fiber, body: unknown): Operation<unknown> {
  const wereAllowed = fiber.mask(false)
  try {
    if (fiber.isStopped) yield* yieldNow()
    const value = yield* within(body)
    if (fiber.isStopped) yield* yieldNow()
    return value
  } finally {
    if (!wereAllowed) fiber.mask(true)
  }
}

/**
 * Acquires something that must be released: `acquire` runs uninterruptibly, and when the fiber, or the
 * `scoped` around, ends, `release` is called once, with the value and the exit. An interrupt during `acquire`
 * is delivered when it has ended: what is behind does not run, and `release` does.
 * @param release May return a generator or a promise, which is waited for; what it throws is kept with the
 *   exit.
 * @throws {FiberError} `FIBER_ARGUMENT` when `release` is not a function; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { acquireRelease, fork } from 'corespun/fiber'
 *
 * const file = { isOpen: false }
 * function* program() {
 *   const open = yield* acquireRelease(
 *     () => Object.assign(file, { isOpen: true }),
 *     (file) => void (file.isOpen = false),
 *   )
 *   return open.isOpen
 * }
 * assert.equal(await fork(program()).join(), true)
 * assert.equal(file.isOpen, false)
 * ```
 */
export function* acquireRelease<const B extends AnyBody>(
  acquire: B,
  release: (value: ValueOf<B>, exit: Exit<unknown, unknown>) => unknown,
): Operation<ValueOf<B>, FailureOf<B>> {
  if (typeof release !== 'function') throw wrong('acquireRelease(): release', 'a function', release)
  return yield* uninterruptible(acquired(acquire, release))
}

function* acquired<const B extends AnyBody>(
  acquire: B,
  release: (value: ValueOf<B>, exit: Exit<unknown, unknown>) => unknown,
): Operation<ValueOf<B>, FailureOf<B>> {
  const value = (yield* within(acquire)) as ValueOf<B>
  currentFiber()
    .children()
    .addFinalizer((exit) => release(value, exit))
  return value
}

/**
 * Call `finalizer` with the exit when the running fiber, or the `scoped` around, ends: before all that were
 * added earlier. It may return a generator or a promise.
 * @throws {FiberError} `FIBER_REQUIRED`; `FIBER_ARGUMENT` when `finalizer` is not a function.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { addFinalizer, fork } from 'corespun/fiber'
 *
 * const kinds: string[] = []
 * await fork(() => addFinalizer((exit) => void kinds.push(exit.kind))).join()
 * assert.deepEqual(kinds, ['success'])
 * ```
 */
export function addFinalizer(finalizer: Finalizer): void {
  if (typeof finalizer !== 'function') throw wrong('addFinalizer(): finalizer', 'a function', finalizer)
  currentFiber('addFinalizer()').children().addFinalizer(finalizer)
}

/**
 * Run `body` in a scope of its own: what it forks is interrupted and what it acquires is released when it
 * ends, not when the fiber does.
 * @throws {FiberError} `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { addFinalizer, fork, scoped } from 'corespun/fiber'
 *
 * const order: string[] = []
 * function* program() {
 *   yield* scoped(() => addFinalizer(() => void order.push('released')))
 *   order.push('behind')
 * }
 * await fork(program()).join()
 * assert.deepEqual(order, ['released', 'behind'])
 * ```
 */
export function scoped<const B extends AnyBody>(body: B): Operation<ValueOf<B>, FailureOf<B>> {
  return concluded('scoped()', body, FiberScope)
}

/**
 * Runs `body` in this fiber; when it ends, however, `finalizer` runs before anything else, with its exit,
 * where interrupts are masked. It may return a generator or a promise; what it throws is kept with the exit.
 * What the body forks belongs to the fiber, as without it.
 * @throws {FiberError} `FIBER_ARGUMENT` when `finalizer` is not a function; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { ensuring, fork, sleep } from 'corespun/fiber'
 *
 * const kinds: string[] = []
 * await fork(ensuring(sleep(60_000), (exit) => void kinds.push(exit.kind))).interrupt()
 * assert.deepEqual(kinds, ['interruption'])
 * ```
 */
export function ensuring<const B extends AnyBody>(
  body: B,
  finalizer: (exit: Exit<ValueOf<B>, FailureOf<B>>) => unknown,
): Operation<ValueOf<B>, FailureOf<B>> {
  if (typeof finalizer !== 'function') throw wrong('ensuring(): finalizer', 'a function', finalizer)
  return concluded('ensuring()', body, undefined, finalizer)
}

/** Runs `body`, in a scope of `Kind` if it is there; closes that, or calls `finalizer`, when it has ended. */
export function* concluded(
  call: string,
  body: unknown,
  Kind: (new (host: Fiber, outer?: BaseScope) => FiberScope) | undefined,
  finalizer?: Finalizer,
): Operation<never, never> {
  const fiber = currentFiber(call)
  const scope = Kind && new Kind(fiber, fiber.extra?.scope)
  if (scope !== undefined) fiber.enter(scope)
  let exit: Exit<unknown, unknown>
  let token: unknown
  try {
    exit = Exit.success(yield* within(body))
  } catch (thrown) {
    exit = fiber.failedBy(thrown)
    if (fiber.isToken(thrown)) token = thrown
  }
  const isOutermost = fiber.mask(true)
  const extra = fiber.more()
  const { controller } = extra
  extra.controller = undefined // For finalizers one that is not aborted.
  const errors = yield* scope === undefined
    ? finalized(fiber, finalizer as Finalizer, exit)
    : closeScopes(scope, scope.outer, exit)
  extra.controller = controller
  if (scope !== undefined) fiber.enter(scope.outer)
  if (isOutermost) fiber.mask(false)
  if (token === undefined) {
    const whole = withErrors(exit, errors)
    // Interrupted meanwhile: the next step unwinds, and would drop what went wrong here.
    if (fiber.isStopped && whole.kind !== 'success') fiber.more().addError(whole)
    return yield* fromExit(whole) as Operation<never, never>
  }
  for (const error of errors) fiber.more().addError(error)
  throw token
}

function* finalized(fiber: Fiber, finalizer: Finalizer, exit: Exit<unknown, unknown>): Operation<Failed[]> {
  try {
    yield* inline(finalizer(exit))
    return []
  } catch (thrown) {
    return [fiber.failedBy(thrown)]
  }
}
