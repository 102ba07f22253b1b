/**
 * Errors of Corespun as values of Effect: what a program can handle is a tagged error in the E channel, a
 * wrong call is a defect.
 *
 * The tag of a refusal is its code, so `Effect.catchTag('TASK_TIMEOUT', …)` selects one.
 */
import * as Cause from 'effect/Cause'
import * as Data from 'effect/Data'
import * as Effect from 'effect/Effect'
import { CorespunError, isAbort } from '../base/index.ts'
import { FunctionError, TransportError } from '../transport/internal.ts'
import { Exit, type Failed } from '../fiber/index.ts'

/**
 * What a zone, a store or a server has refused or lost, with the code as its `_tag`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { fromStore } from 'corespun/effect'
 * import { store } from 'corespun'
 *
 * const closed = store.create<number>('closed')
 * closed.close()
 * const read = fromStore(closed).use((values) => values.get('key'))
 * const recovered = read.pipe(Effect.catchTag('STORE_CLOSED', ({ facts }) => Effect.succeed(facts.id)))
 * assert.equal(await Effect.runPromise(recovered), 'closed')
 * ```
 */
export class CorespunFailure<Code extends string = string, Facts = unknown> extends Data.Error<{
  readonly _tag: string
  readonly facts: unknown
  readonly message: string
  readonly cause: unknown
}> {
  /** The code of the error, such as `TASK_TIMEOUT`. */
  declare readonly _tag: Code
  /** What the failure is about: names, limits and values. */
  declare readonly facts: Facts

  /** The error that the module has thrown. */
  constructor(cause: CorespunError<{ [code: string]: object }>) {
    super({ _tag: cause.code as string, facts: cause.facts, message: cause.message, cause })
  }

  /** As errors of this package show their class. */
  override get name(): string {
    return 'CorespunFailure'
  }
}

/** The failures with the codes of a module; wrong arguments are defects. */
export type Failures<Codes> = {
  [Code in keyof Codes & string]: Code extends `${string}_ARGUMENT`
    ? never
    : CorespunFailure<Code, Codes[Code]>
}[keyof Codes & string]

/**
 * A function without an Effect, in a task or a transaction, has thrown `cause` or rejected with it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { zone } from 'corespun'
 * import { TaskError, fromZone } from 'corespun/effect'
 *
 * const read = fromZone(zone.node).run((text: string) => JSON.parse(text) as unknown, '{')
 * const error = await Effect.runPromise(Effect.flip(read))
 * assert.ok(error instanceof TaskError && error.cause instanceof SyntaxError)
 * ```
 */
export class TaskError extends Data.TaggedError('TaskError')<{
  readonly cause: unknown
  readonly message: string
}> {
  /** What the function has thrown. */
  constructor(cause: unknown) {
    super({ cause, message: cause instanceof Error ? cause.message : String(cause) })
  }
}

/** What a call of this package has thrown or rejected with. */
export function failed<Codes>(error: unknown): Effect.Effect<never, Failures<Codes>> {
  if (isAbort(error)) return Effect.interrupt
  const isBug =
    !(error instanceof CorespunError) || error instanceof TransportError || error instanceof FunctionError
  if (isBug || String(error.code).endsWith('_ARGUMENT')) return Effect.die(error)
  return Effect.fail(new CorespunFailure(error as never) as unknown as Failures<Codes>)
}

/** A function of this package that throws its refusals, as an Effect. */
export function refusing<Codes, A>(body: () => A): Effect.Effect<A, Failures<Codes>> {
  return Effect.suspend(() => {
    try {
      return Effect.succeed(body())
    } catch (error) {
      return failed<Codes>(error)
    }
  })
}

/** A promise of this package; an interrupt aborts its signal. */
export function awaiting<A, E>(
  body: (signal: AbortSignal) => PromiseLike<A>,
  refused: (error: unknown) => Effect.Effect<never, E>,
): Effect.Effect<A, E> {
  return Effect.callback((resume, signal) => {
    body(signal).then(
      (value) => resume(Effect.succeed(value)),
      (error: unknown) => resume(refused(error)),
    )
  })
}

/** How a fiber or an arrow has ended. */
export function effectOf<A, E>(exit: Exit<A, E>): Effect.Effect<A, E> {
  return exit.kind === 'success' ? Effect.succeed(exit.value) : Effect.failCause(causeOf<E>(exit))
}

function causeOf<E>(exit: Failed<E>): Cause.Cause<E> {
  return Cause.fromReasons([exit, ...exit.others].map((one) => reasonOf<E>(one as Failed<E>)))
}

function reasonOf<E>(exit: Failed<E>): Cause.Reason<E> {
  if (exit.kind === 'failure') return Cause.makeFailReason(exit.error)
  return exit.kind === 'defect' ? Cause.makeDieReason(exit.defect) : Cause.makeInterruptReason()
}

/**
 * How an Effect has failed, as an exit of fibers and arrows: a failure counts more than a defect.
 * @param why The reason of an interruption.
 */
export function exitOf<E>(cause: Cause.Cause<E>, why: unknown): Failed<E> {
  const exits = cause.reasons.map((reason): Failed<E> => {
    if (reason._tag === 'Fail') return Exit.failure(reason.error)
    return reason._tag === 'Die' ? Exit.defect(reason.defect) : Exit.interruption(why)
  })
  exits.sort((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind))
  const [first = Exit.interruption(why), ...others] = exits
  return { ...first, others }
}

const KINDS = ['failure', 'defect', 'interruption']
