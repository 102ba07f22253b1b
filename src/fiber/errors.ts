/**
 * What fibers, scopes and schedules refuse, and what becomes of those who wait for an interrupted fiber.
 *
 * A body's own failures and defects are not here: they arrive as what they were. Decide by `code`, read
 * `facts`.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  messageOf,
  refuser,
} from '../base/index.ts'

/** A fiber in the facts of an error. */
export interface FiberFacts {
  /** Its number in its thread. */
  readonly id: number
  /** Its name; `''` by default. */
  readonly name: string
}

/** The facts of each code. */
export type FiberCodes = {
  /** An argument or an option is not what it must be. */
  FIBER_ARGUMENT: ArgumentFacts
  /** What was waited for was interrupted; `cause` is the reason when it is an error. */
  FIBER_INTERRUPTED: { readonly reason: string }
  /** `timeout` ran out before its body ended. */
  FIBER_TIMEOUT: { readonly timeoutMs: number }
  /** A fiber was forked into, or a finalizer added to, a scope that is closed or closing. */
  FIBER_SCOPE_CLOSED: { readonly scope: string }
  /** A generator yielded a value that a fiber cannot wait for. */
  FIBER_YIELD: FiberFacts & { readonly received: string }
  /** Something that only a running fiber can do was done outside of one. */
  FIBER_REQUIRED: { readonly call: string }
  /** A fiber waits for itself, or for a scope that waits for it. */
  FIBER_DEADLOCK: FiberFacts & { readonly call: string }
  /** A fiber failed and nobody joined it; `cause` is its failure or defect. */
  FIBER_UNHANDLED: { readonly fiber: string; readonly kind: string; readonly error: string }
  /** A queue, a PubSub or a pool was used after it was closed. */
  FIBER_CLOSED: { readonly what: string }
  /** A limit on waiting calls, or on the number of fibers, is reached. */
  FIBER_FULL: { readonly what: string; readonly most: number }
  /** A loser of `race` or `any` failed beside the value that won; `cause` is its failure or defect. */
  FIBER_LOSER_FAILED: { readonly fiber: string; readonly call: string; readonly error: string }
}

const SENTENCES: Sentences<FiberCodes> = {
  FIBER_ARGUMENT: argumentSentence,
  FIBER_INTERRUPTED: (f) => `interrupted: ${f.reason}`,
  FIBER_TIMEOUT: (f) =>
    `the body of timeout() did not end within ${f.timeoutMs} ms; ` +
    'raise the timeout, or handle it with catchAll()',
  FIBER_SCOPE_CLOSED: (f) => `${f.scope} is closed; fork before it ends, or in another scope`,
  FIBER_YIELD: (f) =>
    `${fiberText(f)} yielded ${f.received}; ` +
    'use yield* with an operation, as in yield* sleep(5), and yield* attempt(promise) for a promise',
  FIBER_REQUIRED: (f) => `${f.call} works in a fiber only, in function* body() { ... } of fork(body())`,
  FIBER_DEADLOCK: (f) =>
    `${fiberText(f)}: ${f.call} would wait for this fiber itself; call it in another fiber`,
  FIBER_UNHANDLED: (f) =>
    `${f.fiber} ended with a ${f.kind} and nobody joined it: ${f.error}; ` +
    'join() it, handle the error inside, or receive it with onError()',
  FIBER_CLOSED: (f) => `${f.what} is closed; close it after its last use, or handle the end with catchAll()`,
  FIBER_FULL: (f) => `${f.what} is at its limit of ${f.most}; try again later, or raise the limit`,
  FIBER_LOSER_FAILED: (f) =>
    `${f.fiber}, a loser of ${f.call}, failed while it ended: ${f.error}; ` +
    `the result of ${f.call} is unaffected; ` +
    'handle the error inside the fiber, or receive it with onError()',
}

function fiberText({ id, name }: FiberFacts): string {
  return name === '' ? `fiber #${id}` : `fiber '${name}' (#${id})`
}

/**
 * An error of fibers, scopes and schedules. Decide by `code`; `facts` has the details.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { FiberError, sleep } from 'corespun/fiber'
 *
 * assert.throws(() => sleep(-1), (error) => error instanceof FiberError && error.code === 'FIBER_ARGUMENT')
 * ```
 */
export class FiberError<Code extends keyof FiberCodes = keyof FiberCodes> extends CorespunError<
  FiberCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

/**
 * Thrown by a join of an interrupted fiber. A fiber whose body does not catch it counts as interrupted too.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { InterruptedError, fork, never } from 'corespun/fiber'
 *
 * const fiber = fork(never())
 * await fiber.interrupt('not needed')
 * const exit = await fiber.join().catch((error: unknown) => error)
 * assert.ok(exit instanceof InterruptedError && exit.reason === 'not needed')
 * ```
 */
export class InterruptedError extends FiberError<'FIBER_INTERRUPTED'> {
  /** The argument of `interrupt`; `undefined` by default. */
  readonly reason: unknown

  /** @param reason Why the fiber was interrupted. */
  constructor(reason: unknown) {
    const text = reason === undefined ? 'no reason' : messageOf(reason)
    super('FIBER_INTERRUPTED', { reason: text }, reason instanceof Error ? { cause: reason } : undefined)
    this.reason = reason
  }
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new FiberError('FIBER_ARGUMENT', facts))

/** The error for what cannot be run as a fiber's body; `name` is that of the argument. */
export function notABody(name: string, received: unknown): FiberError {
  const isPromise = received instanceof Promise
  const advice = isPromise ? '; pass a promise as attempt(promise)' : ''
  return wrong(name, `a function, a generator, an arrow or an operation${advice}`, received)
}

/**
 * Checks a time in ms, 0 to `mostMs`; default: any but an infinite one.
 * @throws {FiberError} `FIBER_ARGUMENT`.
 */
export function checkMs(name: string, ms: unknown, mostMs = Number.MAX_VALUE): void {
  if (!(typeof ms === 'number' && ms >= 0 && ms <= mostMs))
    throw wrong(name, 'a number of milliseconds from 0', ms)
}
