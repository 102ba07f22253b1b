/**
 * `fork`: a body becomes a running fiber.
 *
 * The body is run at once, on the caller's stack, until it first waits; one that never waits has ended when
 * `fork` returns. Forks nested deeper than {@link DEPTH_MAX} start from the queue instead, so that programs
 * which fork recursively do not overflow the stack.
 */
import { ownOptions } from '../../base/index.ts'
import { FiberError, notABody, wrong } from '../errors.ts'
import { type Extra, SUPERVISOR, type Supervising } from './extra.ts'
import { Fiber } from './fiber.ts'
import { type Waitable, isYieldable } from './endings.ts'
import { type Op, type Step, isGenerator, running } from './op.ts'
import { type AnyScope, BaseScope } from './base-scope.ts'
import { root } from './fiber-scope.ts'
import type { AnyZone } from '../../zone/index.ts'
import { here } from '../../zone/internal.ts'
import { bodyAt } from '../remote/on.ts'
import { type Runnable, isRunnable } from './runnable.ts'
import { STEPS_MAX, turn } from '../scheduler/scheduler.ts'

/** Most forks that run inside each other on the stack. */
const DEPTH_MAX = 100

/** Everything that can be a fiber's body, whatever it returns. */
export type AnyBody =
  | ((...given: never[]) => unknown)
  | Generator<unknown, unknown, never>
  | Runnable<never, unknown, unknown>
  | Op<unknown, unknown>
  | Waitable<unknown, unknown>

/** The failures in what a generator yields. */
type FailureOfStep<Y> = Y extends Step<infer E> ? E : never

/** The value and the failures of what a call of a body returns. */
type FromCall<R> =
  R extends Generator<infer Y, infer A, infer _N>
    ? [A, FailureOfStep<Y>]
    : R extends Op<infer A, infer E> | Waitable<infer A, infer E>
      ? [A, E]
      : R extends PromiseLike<infer A>
        ? [Awaited<A>, unknown]
        : [R, never]

type Outcome<B> =
  B extends Runnable<infer _In, infer A, infer E>
    ? [A, E]
    : B extends (...given: never[]) => infer R
      ? FromCall<R>
      : FromCall<B>

/** The value that a fiber with the body `B` ends with. */
export type ValueOf<B> = Outcome<B>[0]

/** The failures that a fiber with the body `B` can end with. */
export type FailureOf<B> = Outcome<B>[1]

const FORK_OPTIONS = new Set(['name', 'scope', 'daemon', 'on', 'input'])

/** Options of `fork`. */
export interface ForkOptions {
  /** Its name, in `dump` and in messages. Default: none. */
  readonly name?: string
  /**
   * Who owns it: a scope, or a fiber that does not wait for the end of its children yet. Default: the fiber
   * that forks, the process outside of fibers. The values of fiber-locals are those of the fiber that forks;
   * outside of fibers those of the scope.
   */
  readonly scope?: AnyScope | Fiber
  /** It may outlive the fiber that forks it. It must have a `name`, and nobody interrupts it but by hand. */
  readonly daemon?: boolean
  /**
   * Run the body in that zone. It must be an arrow or a function without captured variables. Default: here.
   */
  readonly on?: AnyZone
  /** What the body is called with; functions get the fiber behind it. */
  readonly input?: unknown
}

/**
 * Runs a body as a fiber, at once, until it first waits.
 *
 * The body is a generator, usually a call of a generator function (`fork(visit(id))`); a function, generator
 * function or async function, which is called with its fiber (`async ({ signal }) => ...`); an arrow, or
 * whatever else is a {@link Runnable}, with `options.input`; or an op like `sleep(5)`. What `yield* fail(e)`
 * brings and what an async body rejects with are failures; what else is thrown is a defect. A generator
 * function that is defined once costs a fraction of `fork(function* () { ... })`.
 * @throws {FiberError} `FIBER_ARGUMENT` when the body or an option is invalid; `FIBER_SCOPE_CLOSED` when the
 *   scope is closed or closing. What the body throws is in its exit.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, sleep } from 'corespun/fiber'
 *
 * function* rest(ms: number) {
 *   yield* sleep(ms)
 *   return `slept ${ms} ms`
 * }
 * assert.equal(await fork(rest(1)).join(), 'slept 1 ms')
 * ```
 */
export function fork<const B extends AnyBody>(
  body: B,
  options?: ForkOptions,
): Fiber<ValueOf<B>, FailureOf<B>> {
  const fiber = fresh(body)
  let placed: unknown = body
  let input: unknown
  if (options !== undefined) {
    const own = ownOptions(options, FORK_OPTIONS, wrong, 'fork()')
    input = own.input
    if (own.on !== undefined) placed = bodyAt(own.on, body, input)
    configure(fiber, own)
  }
  begin(fiber, placed, input)
  return fiber
}

/** A fiber for `body`, which has not begun. */
function fresh(body: AnyBody): Fiber {
  const fiber = new Fiber()
  const parent = running.fiber as Fiber | undefined
  if (parent !== undefined && parent.extra !== undefined && parent.extra.locals !== undefined)
    fiber.more().locals = parent.extra.locals
  if (here.carrier !== undefined) carryInto(fiber)
  if (typeof body !== 'function') checkBody(body)
  return fiber
}

/** Something is carried in this thread: the fiber goes on in the context of its fork. */
function carryInto(fiber: Fiber): void {
  const within = here.carrier?.bound()
  if (within !== undefined) fiber.carry(within)
}

function begin(fiber: Fiber, body: unknown, input: unknown): void {
  if (fiber.extra !== undefined) supervised(fiber, fiber.extra)
  if (running.depth >= DEPTH_MAX) fiber.startLater(body, input)
  else if (running.fiber !== undefined || turn.scheduler.isDraining) fiber.start(body, input)
  else startOutside(fiber, body, input)
}

function supervised(fiber: Fiber, { locals }: Extra): void {
  const supervising = locals?.get(SUPERVISOR) as Supervising | undefined
  supervising?.(fiber)
}

/**
 * Code that is no fiber's has a budget of steps for each fork. That of the queue stays as it is: the fork may
 * be in a microtask, one of many, and timers and I/O have had no turn.
 */
function startOutside(fiber: Fiber, body: unknown, input: unknown): void {
  const { steps } = turn
  turn.steps = STEPS_MAX
  fiber.start(body, input)
  turn.steps = steps
}

function configure(fiber: Fiber, options: ForkOptions): void {
  const { name, scope, daemon } = options
  if (name !== undefined) {
    if (typeof name !== 'string' || name === '')
      throw wrong('fork(): name', 'a string that is not empty', name)
    fiber.more().name = name
  }
  if (daemon === true) {
    if (name === undefined) throw wrong('fork(): `daemon: true`', '`name`', name, { verb: 'needs' })
    if (scope !== undefined)
      throw wrong('fork(): scope', '`daemon: true`: a daemon has no scope', scope, {
        verb: 'cannot be combined with',
      })
    fiber.enterList(root)
  }
  if (scope !== undefined)
    adopt(fiber, scope instanceof Fiber ? scope : ((scope as AnyScope | null)?.members ?? (scope as never)))
}

/** @throws {FiberError} `FIBER_SCOPE_CLOSED`; `FIBER_ARGUMENT`. */
function adopt(fiber: Fiber, scope: BaseScope | Fiber): void {
  if (scope instanceof Fiber) {
    if (scope.exit !== undefined) throw new FiberError('FIBER_SCOPE_CLOSED', { scope: scope.title })
    const innermost = scope.children()
    innermost.checkOpen()
    const locals = running.fiber === undefined ? scope.extra?.locals : undefined
    if (locals !== undefined) fiber.more().locals = locals
    fiber.enterList(innermost)
  } else if (scope instanceof BaseScope) {
    scope.checkOpen()
    fiber.enterList(scope)
  } else throw wrong('fork(): scope', 'a Scope or a Fiber', scope)
}

/**
 * {@link fork} with the options `scope` and `input`, for callers whose options need no check.
 * @throws {FiberError} `FIBER_SCOPE_CLOSED`.
 */
export function forkIn(scope: BaseScope | Fiber, body: AnyBody, input?: unknown): Fiber {
  const fiber = fresh(body)
  adopt(fiber, scope)
  begin(fiber, body, input)
  return fiber
}

/**
 * Fork for somebody who will ask how it ends: even a failure before the first wait is not its scope's. The
 * scope is the fiber whose code runs, otherwise `scope`.
 * @throws {FiberError} `FIBER_SCOPE_CLOSED`.
 */
export function forkAsked(body: AnyBody, scope: Fiber | undefined): Fiber {
  const fiber = fresh(body)
  fiber.observe()
  if (scope !== undefined && running.fiber === undefined) adopt(fiber, scope)
  begin(fiber, body, undefined)
  return fiber
}

/** Whether `value` is a generator, an op or a runnable: a body that need not be called. */
export function isProgram(value: unknown): value is Exclude<AnyBody, (...given: never[]) => unknown> {
  return isGenerator(value) || isYieldable(value) || isRunnable(value)
}

function checkBody(body: unknown): void {
  if (!isProgram(body)) throw notABody('fork(): the body', body)
}
