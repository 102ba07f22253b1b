/**
 * The items of a far function, read one by one: what has come and was not taken is bounded by credit.
 *
 * Parts arrive in order from far-call.ts; an error comes behind the items before it.
 */
import { Turns } from '../../base/index.ts'
import { decode } from '../../transport/index.ts'
import { type CallLimits, type Caller, FarCall } from './far-call.ts'

const DONE = { value: undefined, done: true } as const

interface Reader<Item> {
  resolve(result: IteratorResult<Item, undefined>): void
  reject(why: unknown): void
}

/**
 * The items that a far function returns. It begins with the first `next()`, and is read once.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { connect, host } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const module = new URL('data:text/javascript,export const rows = () => [1, 2]')
 * await using hosting = await host(fleet, { name: 'rows', module, version: 'v1' })
 * const rows = fleet.zone<{ rows(): number[] }>(hosting.name).stream('rows', [])
 * assert.deepEqual((await rows.next()).value, 1)
 * await rows.return()
 * ```
 */
export class FarStream<Item> implements AsyncIterableIterator<Item, undefined, undefined>, AsyncDisposable {
  readonly #begin: () => void
  readonly #call: FarCall
  readonly #aheadMax: number
  readonly #payloads: Uint8Array[] = []
  readonly #readers: Reader<Item>[] = []
  readonly #turns = new Turns()
  #hasBegun = false
  #end: { readonly why: unknown; readonly hasFailed: boolean } | undefined
  #taken = 0

  /** @internal */
  constructor(caller: Caller, name: string, args: readonly unknown[], limits: CallLimits, aheadMax: number) {
    this.#aheadMax = aheadMax
    this.#call = new FarCall(caller, limits, {
      part: (payload) => {
        this.#payloads.push(payload)
        this.#serve()
      },
      limited: () => void (this.#payloads.length = 0),
      value: () => this.#ended({ why: undefined, hasFailed: false }),
      failed: (why) => this.#ended({ why, hasFailed: true }),
    })
    this.#begin = () => this.#call.begin(name, args, aheadMax)
  }

  /** The next item. The first call begins the stream. */
  next(): Promise<IteratorResult<Item, undefined>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true
      this.#begin()
    }
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject })
      // A limit of a reader that computes passes meanwhile.
      if (this.#payloads.length === 0 || !this.#turns.pauses(this.#serve)) this.#serve()
    })
  }

  readonly #serve = (): void => {
    while (this.#readers.length > 0 && !this.#turns.isPausing) {
      const payload = this.#payloads.shift()
      if (payload === undefined && this.#end === undefined) return
      const reader = this.#readers.shift()!
      if (payload !== undefined) this.#pass(reader, payload)
      else if (this.#end!.hasFailed) {
        reader.reject(this.#end!.why)
        this.#end = { why: undefined, hasFailed: false }
      } else reader.resolve(DONE)
    }
  }

  #pass(reader: Reader<Item>, payload: Uint8Array): void {
    if (++this.#taken >= this.#aheadMax / 2) {
      this.#call.more(this.#taken)
      this.#taken = 0
    }
    try {
      reader.resolve({ value: decode(payload) as Item, done: false })
    } catch (error) {
      // An instance of a class that is not registered here.
      reader.reject(error)
      this.#call.cancel(error)
    }
  }

  #ended(end: { readonly why: unknown; readonly hasFailed: boolean }): void {
    this.#end ??= end
    this.#serve()
  }

  /** Ends the stream: the function's iterator is closed. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#hasBegun = true
    this.#payloads.length = 0
    this.#end = { why: undefined, hasFailed: false }
    this.#call.cancel(new DOMException('The rest is not needed', 'AbortError'))
    this.#serve()
    return DONE
  }

  /** As `return()`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  /** The stream itself. */
  [Symbol.asyncIterator](): this {
    return this
  }
}
