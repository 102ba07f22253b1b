/**
 * How items pass through a stream: its run calls `emit` with one after the other.
 *
 * A run is a part of one fiber, which is the source's, the stages' and the sink's at once: `emit` is a call,
 * so an item that no stage waits for costs a call for each stage, and nothing is read before the sink needs
 * it. What `emit` returns the run has to wait for before it may emit again; `STOP`: it must emit no more. So
 * backpressure is a `yield*`, an interrupt unwinds sink, stages and source in this order, and each closes
 * what it has opened where its part of the run ends.
 */
import { type Exit, type Op, type Operation, fail } from '../fiber/index.ts'
import { Settling, type Yieldable, isGenerator, isYieldable } from '../fiber/internal.ts'
import { promiseOf } from '../base/index.ts'
import { StreamError, type StreamCodes } from './errors.ts'

/** Whoever receives items needs no more. */
export const STOP = Object.freeze({ stop: true })
/** How a run ends, or what waiting brings: whatever is not `STOP` means that more may come. */
export type End = unknown
/** What a run has to wait for before it may emit again: `undefined` or `STOP` when it has not to. */
export type Wait = typeof STOP | undefined | Pending
/** What a fiber waits for. */
export type Pending = Operation<unknown, unknown> | Yieldable<unknown, unknown>
/** Takes an item. */
export type Emit = (item: unknown) => Wait
/** Emits all items of a stream. */
export type Run = (emit: Emit) => Operation<End, unknown>

/** Waits for what `emit` has returned. */
export function* waited(wait: Wait): Operation<End, unknown> {
  return isPending(wait) ? yield* wait : wait
}

/** Whether a run has to wait. */
export function isPending(wait: Wait): wait is Pending {
  return wait !== undefined && wait !== STOP
}

/** What a fiber has to wait for in what a call of a body has made; `undefined` when that is its value. */
export function pendingIn(made: unknown): Pending | undefined {
  if ((typeof made !== 'object' || made === null) && typeof made !== 'function') return undefined
  if (isGenerator(made)) return made as Operation<unknown, unknown>
  if (isYieldable(made)) return made
  const promise = promiseOf(made)
  return promise === undefined ? undefined : new Settling(promise, true)
}

/**
 * Call `work` as a body for each item, one after the other, and emit what `pick` makes of the item and the
 * value.
 */
export function worked(
  run: Run,
  work: (item: unknown) => unknown,
  pick: (item: unknown, value: unknown) => unknown,
): Run {
  return (emit) => {
    function* behind(pending: Pending, item: unknown): Operation<End, unknown> {
      return yield* waited(emit(pick(item, yield* pending)))
    }
    return run((item) => {
      const made = work(item)
      const pending = pendingIn(made)
      return pending === undefined ? emit(pick(item, made)) : behind(pending, item)
    })
  }
}

/**
 * An `emit` that remembers whether what failed was below it: the failure of who receives items is not one of
 * the stream.
 */
export class Guard {
  hasFailed = false
  hasEmitted = false
  readonly #emit: Emit

  readonly emit: Emit = (item) => {
    this.hasEmitted = true
    this.hasFailed = true
    const wait = this.#emit(item)
    return isPending(wait) ? this.#waited(wait) : (this.#passed(wait) as Wait)
  }

  constructor(emit: Emit) {
    this.#emit = emit
  }

  *#waited(wait: Wait): Operation<End, unknown> {
    return this.#passed(yield* waited(wait))
  }

  #passed(end: End): End {
    // Nothing may be emitted instead of what fails behind a STOP.
    this.hasFailed = end === STOP
    return end
  }

  /** The failure of the stream itself; `undefined` for other exits of a run. */
  failureIn(exit: Exit<End, unknown>): { readonly error: unknown } | undefined {
    return exit.kind === 'failure' && !this.hasFailed ? exit : undefined
  }
}

/** Waits, and goes on whatever that brings. */
export function goesOn(wait: Wait): Wait {
  return isPending(wait) ? continued(wait) : undefined
}

function* continued(wait: Pending): Operation<undefined, unknown> {
  yield* wait
  return undefined
}

/** Fails with an error of streams. */
export function refused<Code extends keyof StreamCodes>(
  code: Code,
  facts: StreamCodes[Code],
): Op<never, unknown> {
  return fail(new StreamError(code, facts))
}
