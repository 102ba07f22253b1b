/**
 * A stream of one run at a time, which no signal ends.
 *
 * Nothing is read ahead and nothing runs beside anything else, so it needs no window: a request reads an
 * input, runs it and is answered, in one reaction of an asynchronous source's promise if the run does not
 * wait.
 */
import { type AnyIterable, Answers, resultOf } from '../../base/index.ts'
import type { Runs } from './runs.ts'

type Result = IteratorResult<unknown, void>

class OneByOne extends Answers<unknown> {
  readonly #source: AnyIterable<unknown>
  readonly #runs: Runs
  readonly #isAsync: boolean
  #iterator: AsyncIterator<unknown> | Iterator<unknown> | undefined
  /** The source has ended by itself, or has failed. */
  #hasEnded = false
  #count = 0

  constructor(source: AnyIterable<unknown>, isAsync: boolean, runs: Runs) {
    super()
    this.#source = source
    this.#isAsync = isAsync
    this.#runs = runs
  }

  protected opened(): void {}

  protected answers(): Result | Promise<Result> {
    if (!this.#runs.isAside) return this.#read()
    return new Promise<void>((resolve) => (this.#runs.resumed = resolve)).then(() => this.#read())
  }

  protected async closed(): Promise<void> {
    if (this.#hasEnded) return
    try {
      await this.#iterator?.return?.()
    } catch {
      // The reader has its results, or an error that matters more.
    }
  }

  #read(): Result | Promise<Result> {
    let next: unknown
    try {
      this.#iterator ??= this.#isAsync
        ? (this.#source as AsyncIterable<unknown>)[Symbol.asyncIterator]()
        : (this.#source as Iterable<unknown>)[Symbol.iterator]()
      next = this.#iterator.next()
      if (this.#isAsync)
        return Promise.resolve(next as Promise<IteratorResult<unknown>>).then(this.#arrived, this.#unread)
    } catch (why) {
      return this.#unread(why)
    }
    return this.#arrived(next as IteratorResult<unknown>)
  }

  readonly #unread = (why: unknown): Promise<Result> => {
    this.#hasEnded = true
    return this.#failed(why)
  }

  readonly #arrived = (next: IteratorResult<unknown>): Result | Promise<Result> => {
    let input: unknown
    try {
      if (resultOf(next).done === true) {
        this.#hasEnded = true
        return this.over(undefined)
      }
      input = next.value
    } catch (why) {
      return this.#unread(why)
    }
    const index = this.#count++
    let value: unknown
    try {
      value = this.#runs.run(input)
    } catch (thrown) {
      return this.#thrown(thrown, index)
    }
    return value instanceof Promise
      ? this.#later(value, index)
      : this.answer(this.#runs.outcome(value, index))
  }

  async #later(run: Promise<unknown>, index: number): Promise<Result> {
    let value: unknown
    try {
      value = await run
    } catch (thrown) {
      return this.#thrown(thrown, index)
    }
    return this.answer(this.#runs.outcome(value, index))
  }

  #thrown(thrown: unknown, index: number): Result | Promise<Result> {
    const runs = this.#runs
    const reason = runs.reason(thrown)
    return runs.isSettling ? this.answer(runs.rejected(reason, index)) : this.#failed(reason)
  }

  #failed(why: unknown): Promise<Result> {
    this.#runs.end(why)
    return this.over({ why })
  }
}

/** What `runs` brings for each input of `source`, as an async generator yields it. */
export function oneByOne(
  source: AnyIterable<unknown>,
  isAsync: boolean,
  runs: Runs,
): AsyncGenerator<unknown, void, undefined> {
  return new OneByOne(source, isAsync, runs) as unknown as AsyncGenerator<unknown, void, undefined>
}
