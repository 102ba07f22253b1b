/**
 * Items on their way through a zone: read ahead, in flight, done and not yet taken.
 *
 * Reading is driven by what there is room for, not by who takes the results, so a result that is ready waits
 * for nobody's next item. Chunks in flight and items in all are bounded. What is done with a chunk is the
 * business of parallel.ts.
 */
import { onAbort } from '../call/aborts.ts'
import { type Reader, readerOf } from './readers.ts'

/** Some items that travel together. */
export interface Chunk {
  readonly items: ArrayLike<unknown>
  /** The index of the first one. */
  readonly first: number
  readonly way: Way
}

/** The way of a chunk through its zone, which may be ended before that of others. */
class Way {
  #ended: { readonly why: unknown } | undefined
  #giveUp: ((why: unknown) => void) | undefined

  /** A call is out for the chunk, or for a part of it. */
  readonly begun = (giveUp: (why: unknown) => void): void => {
    this.#giveUp = giveUp
    if (this.#ended !== undefined) giveUp(this.#ended.why)
  }

  /** Whether it was ended. */
  get isEnded(): boolean {
    return this.#ended !== undefined
  }

  /** End it: the call that is out, and those that would be. */
  end(why: unknown): void {
    this.#ended = { why }
    this.#giveUp?.(why)
  }

  /** @throws why it was ended, if it was. */
  throwIfEnded(): void {
    if (this.#ended !== undefined) throw this.#ended.why
  }
}

/** What a flow does and how much it may hold. */
export interface FlowPlan {
  /** How many items the next chunk should have, 1 or more. */
  readonly sizeNow: () => number
  /** Give a chunk to the zone; its results, of its parts in the order of items if it went in several. */
  readonly send: (chunk: Chunk) => Promise<readonly unknown[]>
  /** Whether results come in the order of items. */
  readonly ordered: boolean
  /** Most chunks in flight; without `aheadMax`, also of those whose results have not been taken. */
  readonly chunksMax: number
  /** Most items read and not yet taken, at least as many as a chunk may have. */
  readonly aheadMax: number | undefined
  readonly signal: AbortSignal
}

/** A chunk that was sent. */
interface Sent {
  readonly count: number
  readonly first: number
  readonly way: Way
  done: boolean
  failed: boolean
  results: readonly unknown[]
  error: unknown
}

/** See the module's text. */
export class Flow {
  readonly #plan: FlowPlan
  readonly #reader: Reader
  readonly #aborted = (): void => this.#fail(this.#plan.signal.reason)
  /** Sent and not taken, in the order of items; or done and not taken, in the order of ends. */
  readonly #queue: Sent[] = []
  /** Sent and not done, in the order of items. */
  readonly #out = new Set<Sent>()
  /** Chunks and items that were sent and not taken. */
  #held = 0
  #ahead = 0
  /** Of them, items whose results were handed out last. */
  #inHand = 0
  #index = 0
  #ended = false
  #isFull = false
  #failure: { readonly why: unknown } | undefined
  #wake: (() => void) | undefined

  constructor(source: Iterable<unknown> | AsyncIterable<unknown>, plan: FlowPlan) {
    this.#plan = plan
    this.#reader = readerOf(source, {
      room: (more) => this.#room(more),
      sizeNow: plan.sizeNow,
      chunk: (items) => this.#send(items),
      ended: () => {
        this.#ended = true
        this.#changed()
      },
      failed: (why) => this.#fail(why),
    })
    if (plan.signal.aborted) this.#aborted()
    else onAbort(plan.signal, this.#aborted)
  }

  /**
   * The results of chunks that have ended, each time as many as there are; the flow ends when this does.
   * @throws whatever reading or sending failed with, in its turn.
   */
  async *results(): AsyncGenerator<readonly unknown[], void, undefined> {
    let failed = false
    try {
      for (;;) {
        this.#reader.read()
        const ready = this.#taken()
        if (ready.length > 0) {
          yield ready
          // Not before: what the caller has in hand has been read and not taken.
          this.#ahead -= this.#inHand
          this.#inHand = 0
        } else if (this.#failure !== undefined) throw this.#failure.why
        else if (this.#ended && this.#held === 0) return
        else await this.#change()
      }
    } catch (error) {
      failed = true
      throw error
    } finally {
      this.#ended = true
      this.#plan.signal.removeEventListener('abort', this.#aborted)
      await this.#closeReader(failed)
    }
  }

  /** As where a loop ends: what the source's clean-up throws never hides the error that ended all. */
  async #closeReader(failed: boolean): Promise<void> {
    try {
      await this.#reader.close()
    } catch (error) {
      if (!failed) throw error
    }
  }

  /** What is done and whose turn it is; a failure among it is thrown when those before have been taken. */
  #taken(): unknown[] {
    const ready: unknown[] = []
    // With a bound on items a chunk at a time: the rest of several would wait in the caller's hand.
    const most = this.#plan.aheadMax === undefined ? Infinity : 1
    while (this.#queue[0]?.done === true && this.#failure === undefined && ready.length < most) {
      const { count, failed, results, error } = this.#queue.shift() as Sent
      this.#inHand += count
      this.#held--
      if (failed) this.#fail(error)
      else ready.push(...results)
    }
    return ready
  }

  #change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve))
  }

  #changed(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  #fail(why: unknown): void {
    this.#failure ??= { why }
    this.#ended = true
    this.#changed()
  }

  /** Whether so many more items may be read. */
  #room(more: number): boolean {
    const { chunksMax, aheadMax } = this.#plan
    if (this.#ended) return false
    const held = aheadMax === undefined ? this.#held : this.#out.size
    // Once full, room for several: refilled for each single one, chunks would cross threads one by one.
    if (this.#isFull && held > chunksMax - Math.max(1, chunksMax >> 2)) return false
    this.#isFull = held >= chunksMax
    if (this.#isFull) return false
    return aheadMax === undefined || this.#ahead + more <= aheadMax
  }

  /** A chunk has failed: in its turn that ends all, and until then nothing begins that comes after it. */
  #endBehind(failed: Sent): void {
    this.#ended = true
    const { ordered } = this.#plan
    const why = new DOMException('The rest is not needed', 'AbortError')
    for (const sent of this.#out) {
      if (!sent.way.isEnded && (!ordered || sent.first > failed.first)) sent.way.end(why)
    }
  }

  #send(items: ArrayLike<unknown>): void {
    // A reader may have had them when all was ended.
    if (this.#ended) return
    const [first, way] = [this.#index, new Way()]
    const sent: Sent = {
      count: items.length,
      first,
      way,
      done: false,
      failed: false,
      results: [],
      error: undefined,
    }
    const settle = (failed: boolean, results: readonly unknown[], error?: unknown): void => {
      sent.done = true
      sent.failed = failed
      sent.results = results
      sent.error = error
      this.#out.delete(sent)
      if (failed && !way.isEnded) this.#endBehind(sent)
      if (!this.#plan.ordered) this.#queue.push(sent)
      this.#changed()
      this.#reader.read()
    }
    this.#out.add(sent)
    this.#held++
    this.#ahead += items.length
    if (this.#plan.ordered) this.#queue.push(sent)
    this.#plan.send({ items, first, way }).then(
      (results) => settle(false, results),
      (error: unknown) => settle(true, [], error),
    )
    this.#index += items.length
  }
}
