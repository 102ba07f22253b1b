/**
 * The outcomes of a flow, read one after the other, as an async generator would yield them: requests have
 * their turns, a value with a `then` is awaited, and what ends the loop closes the source.
 *
 * It is not an async generator, which takes three microtasks and two promises for each outcome. Where a
 * request has nothing to wait for but the next item, it returns the promise of that item's arrival.
 */
import { onAbort } from '../aborts.ts'
import type { Flow } from './flow.ts'
import type { Reader } from './readers.ts'
import { promiseOf } from '../thenable.ts'
import { Turns } from '../turns.ts'

type Result<Out> = IteratorResult<Out, void>

interface Failure {
  readonly why: unknown
}

/** For `Symbol.asyncIterator` and, on Nodes that have it, `Symbol.asyncDispose`. */
export const AsyncIteratorPrototype = Object.getPrototypeOf(
  Object.getPrototypeOf(Object.getPrototypeOf((async function* (): AsyncGenerator<undefined> {})())),
) as object

/**
 * An async generator's side of its reader: requests have their turns, one at a time, and it ends once.
 * What answers them is the subclass's.
 */
export abstract class Answers<Out> {
  #state: 'new' | 'open' | 'over' = 'new'
  /** Whether a request has not been answered. */
  #isBusy = false
  /** The requests behind it, in their order. */
  readonly #requests = new Set<() => void>()
  #isServing = false

  next(): Promise<Result<Out>> {
    return this.#isBusy ? this.#queued(() => this.#next()) : Promise.resolve(this.#next())
  }

  return(value: void | PromiseLike<void>): Promise<Result<Out>> {
    this.leaves()
    return this.#isBusy ? this.#queued(() => this.#left(value)) : this.#left(value)
  }

  throw(error: unknown): Promise<Result<Out>> {
    const failure = { why: error }
    this.leaves()
    return this.#isBusy ? this.#queued(() => this.over(failure)) : this.over(failure)
  }

  /** The first request is there. */
  protected abstract opened(): void
  /** The answer to a request: by `answer` or `over`. What it throws ends all. */
  protected abstract answers(): Result<Out> | Promise<Result<Out>>
  /** Whoever reads needs no more; a request that waits may be answered early. */
  protected leaves(): void {}
  /** It has been opened and is over; called once. */
  protected abstract closed(): Promise<void> | void

  /** Yields `value`, or what it is a promise of. */
  protected answer(value: Out): Result<Out> | Promise<Result<Out>> {
    const promise = promiseOf(value)
    if (promise !== undefined) return this.#awaited(promise as Promise<Out>)
    this.#release()
    return { value, done: false }
  }

  /** Closes the source, once; as where a loop ends, its error does not hide the one that has ended all. */
  protected async over(failure: Failure | undefined): Promise<Result<Out>> {
    const wasOpen = this.#state === 'open'
    this.#isBusy = true
    this.#state = 'over'
    try {
      if (wasOpen) await this.closed()
    } catch (error) {
      failure ??= { why: error }
    }
    this.#release()
    if (failure !== undefined) throw failure.why
    return { value: undefined, done: true }
  }

  #next(): Result<Out> | Promise<Result<Out>> {
    this.#isBusy = true
    if (this.#state !== 'open') {
      if (this.#state === 'over') return this.over(undefined)
      this.#state = 'open'
      this.opened()
    }
    try {
      return this.answers()
    } catch (why) {
      return this.over({ why })
    }
  }

  async #awaited(promise: Promise<Out>): Promise<Result<Out>> {
    let value: Out
    try {
      value = await promise
    } catch (why) {
      return this.over({ why })
    }
    this.#release()
    return { value, done: false }
  }

  async #left(value: void | PromiseLike<void>): Promise<Result<Out>> {
    this.#isBusy = true
    let failure: Failure | undefined
    let last: void
    try {
      last = await value
    } catch (why) {
      failure = { why }
    }
    await this.over(failure)
    return { value: last, done: true }
  }

  #queued(request: () => Result<Out> | Promise<Result<Out>>): Promise<Result<Out>> {
    return new Promise((resolve) => this.#requests.add(() => resolve(request())))
  }

  /** The request is answered; those behind it have their turns, not inside of each other. */
  #release(): void {
    this.#isBusy = false
    if (this.#requests.size === 0 || this.#isServing) return
    this.#isServing = true
    for (const request of this.#requests) {
      this.#requests.delete(request)
      request()
      if (this.#isBusy) break
    }
    this.#isServing = false
  }

  get [Symbol.toStringTag](): string {
    return 'AsyncGenerator'
  }
}
Object.setPrototypeOf(Answers.prototype, AsyncIteratorPrototype)

class Outcomes<Of, Out> extends Answers<Out> {
  readonly #flow: Flow<Of, Out>
  readonly #reader: Reader
  readonly #signal: AbortSignal | undefined
  readonly #aborted = (): void => this.#flow.cut(this.#signal?.reason)
  /** Pauses of a reader that computes, whose signal would not abort. */
  readonly #turns: Turns | undefined
  /** Whether each item that a request waited for had its outcome when it was there. */
  #runsEndAtOnce = true

  constructor(flow: Flow<Of, Out>, reader: Reader, signal: AbortSignal | undefined) {
    super()
    this.#flow = flow
    this.#reader = reader
    this.#signal = signal
    this.#turns = signal === undefined ? undefined : new Turns()
  }

  protected opened(): void {
    const signal = this.#signal
    if (signal === undefined) return
    if (signal.aborted) this.#aborted()
    else onAbort(signal, this.#aborted)
  }

  protected answers(): Result<Out> | Promise<Result<Out>> {
    return this.#turns?.isDue() === true ? this.#behindTurn(this.#turns) : this.#answered()
  }

  async #behindTurn(turns: Turns): Promise<Result<Out>> {
    await turns.taken()
    try {
      return this.#answered()
    } catch (why) {
      return this.over({ why })
    }
  }

  #answered(): Result<Out> | Promise<Result<Out>> {
    this.#flow.release()
    const arrival = this.#reader.read() as Promise<Result<Out>> | undefined
    const result = this.#present()
    if (result !== undefined) return result
    // Nothing but the arrival can end the wait: an abort would have to end it earlier.
    if (arrival === undefined || !this.#runsEndAtOnce || this.#signal !== undefined || !this.#flow.isIdle)
      return this.#later()
    this.#flow.onArrival(this.#arrived)
    return arrival
  }

  protected override leaves(): void {
    this.#reader.leave?.()
  }

  protected async closed(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#aborted)
    this.#flow.stop()
    await this.#reader.close()
  }

  readonly #arrived = (): Result<Out> | Promise<Result<Out>> => {
    try {
      const result = this.#present()
      if (result !== undefined) return result
    } catch (why) {
      return this.over({ why })
    }
    this.#runsEndAtOnce = false
    return this.#later()
  }

  /** The answer to the request, if it is there. */
  #present(): Result<Out> | Promise<Result<Out>> | undefined {
    const flow = this.#flow
    const run = flow.take()
    if (run !== undefined) return this.answer(run.value as Out)
    const { failure } = flow
    return failure !== undefined || flow.isOver ? this.over(failure) : undefined
  }

  async #later(): Promise<Result<Out>> {
    try {
      for (;;) {
        await this.#flow.change()
        // Reading may have become possible, or a run has ended.
        void this.#reader.read()
        const result = this.#present()
        if (result !== undefined) return result
      }
    } catch (why) {
      return this.over({ why })
    }
  }
}

/**
 * Outcomes in their turn, of what `reader` reads; the flow ends when this does.
 * @param signal Ends all with its reason.
 * @throws what reading or a run failed with.
 */
export function outcomesOf<Of, Out>(
  flow: Flow<Of, Out>,
  reader: Reader,
  signal: AbortSignal | undefined,
): AsyncGenerator<Out, void, undefined> {
  return new Outcomes(flow, reader, signal) as unknown as AsyncGenerator<Out, void, undefined>
}
