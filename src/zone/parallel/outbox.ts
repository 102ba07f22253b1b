/**
 * Chunks on their way into a zone that may be full, or may not take one as large.
 *
 * How much travels at once is the business of `map` and its kin, not of who calls them. So a chunk that is
 * refused for its size is cut in two, and one that finds no room waits: for a chunk of its own flow that is
 * in the zone, or for the zone. Only what the zone has not taken is sent again; nothing runs twice.
 */
import { onAbort } from '../../base/index.ts'
import { type ZoneError, isRefusal } from '../errors.ts'

/** Some items that travel together. */
export interface Chunk {
  readonly items: ArrayLike<unknown>
  /** The index of the first one. */
  readonly first: number
  readonly way: Way
}

/** The way of a chunk through its zone, which may be ended before that of others. */
export class Way {
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

/** What an outbox is for. */
export interface OutboxPlan {
  /** Give a chunk to the zone: what becomes of it there. Rejects with the refusal if it was not taken. */
  offer(chunk: Chunk, signal: AbortSignal): Promise<unknown>
  /** What becomes of a chunk that fails; throws where that ends all. */
  failed(chunk: Chunk, error: unknown): unknown
  /** Resolves when the zone has room; `undefined` where the caller would wait for itself. */
  readonly room: ((signal: AbortSignal) => Promise<void>) | undefined
  /** Chunks of more than so many bytes are not taken. */
  bytesMax(most: number): void
}

/** Longest pause between two attempts where the zone has room, but not for so many bytes; ms. */
const PAUSE_MS_MAX = 64
export class Outbox {
  readonly #plan: OutboxPlan
  /** Chunks that were offered and have not come back. */
  #out = 0
  #waiting: (() => void)[] = []

  constructor(plan: OutboxPlan) {
    this.#plan = plan
  }

  /**
   * Send a chunk, whole or in parts; what becomes of it, by parts in the order of items.
   * @throws what `failed` throws.
   */
  async send(chunk: Chunk, signal: AbortSignal): Promise<unknown[]> {
    try {
      for (let waits = 0; ; waits++) {
        const { outcome, refusal } = await this.#offered(chunk, signal)
        if (refusal === undefined) return [outcome]
        const bytesMax = tooLargeFor(refusal)
        if (bytesMax !== undefined) {
          this.#plan.bytesMax(bytesMax)
          if (chunk.items.length === 1) throw refusal
          break
        }
        await this.#room(refusal, waits, signal)
      }
    } catch (error) {
      return [this.#plan.failed(chunk, error)]
    }
    return this.#halves(chunk, signal)
  }

  async #offered(chunk: Chunk, signal: AbortSignal): Promise<{ outcome?: unknown; refusal?: ZoneError }> {
    chunk.way.throwIfEnded()
    this.#out++
    let refusal: ZoneError | undefined
    try {
      return { outcome: await this.#plan.offer(chunk, signal) }
    } catch (error) {
      if (!isRefusal(error)) throw error
      return { refusal: (refusal = error) }
    } finally {
      this.#out--
      // What was refused has made no room.
      if (refusal === undefined) for (const again of this.#waiting.splice(0)) again()
    }
  }

  /** One after the other: what is too large as one is large enough as two. */
  async #halves({ items, first, way }: Chunk, signal: AbortSignal): Promise<unknown[]> {
    const { slice } = items as unknown[]
    const middle = items.length >> 1
    const one = await this.send({ items: slice.call(items, 0, middle), first, way }, signal)
    const other = await this.send({ items: slice.call(items, middle), first: first + middle, way }, signal)
    return [...one, ...other]
  }

  /** Until another attempt makes sense. */
  #room(refusal: ZoneError, waits: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const { room } = this.#plan
      let pause: NodeJS.Timeout | undefined
      const aborted = (): void => {
        clearTimeout(pause)
        reject(signal.reason)
      }
      const again = (): void => {
        signal.removeEventListener('abort', aborted)
        resolve()
      }
      if (signal.aborted) return aborted()
      if (this.#out > 0) this.#waiting.push(again)
      else if (room === undefined) return reject(refusal)
      // For some bytes there may be room, and not for so many.
      else if (refusal.code === 'ZONE_BYTES_FULL')
        pause = setTimeout(again, Math.min(2 ** waits, PAUSE_MS_MAX))
      // A zone that closes says so at the next attempt.
      else void room(signal).then(again, again)
      onAbort(signal, aborted)
    })
  }
}

/** The most bytes that this zone ever takes at once, when a chunk of more was refused for that. */
function tooLargeFor(refusal: ZoneError): number | undefined {
  const facts = refusal.facts as unknown as Record<string, number>
  const { taskBytes = 0, taskBytesMax, queueBytesMax = Infinity } = facts
  if (refusal.code === 'TASK_TOO_LARGE') return taskBytesMax
  return taskBytes > queueBytesMax ? queueBytesMax : undefined
}
