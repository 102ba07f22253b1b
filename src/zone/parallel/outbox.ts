/**
 * Chunks on their way into a zone that may be full, or may not take one as large.
 *
 * How much travels at once is the business of `map`, `forEach` and `reduce`, not of their callers. So a
 * chunk that is refused for its size is split in two, and one that finds no capacity waits: for a chunk of
 * its own flow that is in the zone, or for the zone. Only what the zone has not taken is sent again;
 * nothing runs twice.
 */
import { unwatch, watch } from '../../base/index.ts'
import type { Begun } from '../call/submitter.ts'
import { type ZoneError, isRefusal } from '../errors.ts'

/** Some items that travel together. */
export interface Chunk {
  readonly items: ArrayLike<unknown>
  /** The index of the first one. */
  readonly first: number
  readonly way: Way
}

/** The calls of one chunk and its parts, which may be cancelled before those of others. */
export class Way {
  #ended: { readonly why: unknown } | undefined
  #cancel: ((why: unknown) => void) | undefined

  /** A call is in flight for the chunk, or for a part of it. */
  readonly begun: Begun = (cancel) => {
    this.#cancel = cancel
    if (this.#ended !== undefined) cancel(this.#ended.why)
  }

  get isEnded(): boolean {
    return this.#ended !== undefined
  }

  /** Cancel the call in flight and all later ones. */
  end(why: unknown): void {
    this.#ended = { why }
    this.#cancel?.(why)
  }

  /** @throws the reason, if it has ended. */
  throwIfEnded(): void {
    if (this.#ended !== undefined) throw this.#ended.why
  }
}

/** Outcomes of a chunk, and of how many of its items, from the first on. */
export interface Sent {
  readonly outcomes: unknown[]
  readonly count: number
}

export interface OutboxPlan {
  /** Submit a chunk; rejects with the refusal if the zone did not take it. */
  offer(chunk: Chunk, signal: AbortSignal): Promise<Sent>
  /** The outcome of a chunk that failed; throws where that ends all. */
  failed(chunk: Chunk, error: unknown): unknown
  /** Resolves when the zone has capacity; `undefined` where the caller would wait for itself. */
  readonly capacity: ((signal: AbortSignal) => Promise<void>) | undefined
  /** The zone refuses chunks of more bytes. */
  bytesMax(most: number): void
}

type Offered =
  | { readonly sent: Sent; readonly refusal?: undefined }
  | { readonly sent?: undefined; readonly refusal: ZoneError }

/** Longest pause between two attempts where the zone has capacity, but not for this chunk; ms. */
const PAUSE_MS_MAX = 64

export class Outbox {
  readonly #plan: OutboxPlan
  /** Chunks in flight. */
  #out = 0
  #waiting: (() => void)[] = []

  constructor(plan: OutboxPlan) {
    this.#plan = plan
  }

  /**
   * Send a chunk, whole or in parts; the outcomes of the parts in the order of items. It may come back after
   * some of its items.
   * @throws what `failed` throws.
   */
  async send(chunk: Chunk, signal: AbortSignal): Promise<Sent> {
    try {
      for (let waits = 0; ; waits++) {
        const { sent, refusal } = await this.#offered(chunk, signal)
        if (refusal === undefined) return sent
        const bytesMax = tooLargeFor(refusal)
        if (bytesMax !== undefined) {
          this.#plan.bytesMax(bytesMax)
          if (chunk.items.length === 1) throw refusal
          break
        }
        await this.#capacity(refusal, waits, signal)
      }
    } catch (error) {
      return { outcomes: [this.#plan.failed(chunk, error)], count: chunk.items.length }
    }
    return this.#halves(chunk, signal)
  }

  async #offered(chunk: Chunk, signal: AbortSignal): Promise<Offered> {
    chunk.way.throwIfEnded()
    this.#out++
    let refusal: ZoneError | undefined
    try {
      return { sent: await this.#plan.offer(chunk, signal) }
    } catch (error) {
      if (!isRefusal(error)) throw error
      return { refusal: (refusal = error) }
    } finally {
      this.#out--
      // A refused chunk has freed no capacity.
      if (refusal === undefined) for (const again of this.#waiting.splice(0)) again()
    }
  }

  /** One after the other: each half may need all the capacity. */
  async #halves({ items, first, way }: Chunk, signal: AbortSignal): Promise<Sent> {
    const { slice } = items as unknown[]
    const middle = items.length >> 1
    const one = await this.send({ items: slice.call(items, 0, middle), first, way }, signal)
    if (one.count < middle) return one
    const other = await this.send({ items: slice.call(items, middle), first: first + middle, way }, signal)
    return { outcomes: [...one.outcomes, ...other.outcomes], count: middle + other.count }
  }

  /** Resolves when another attempt makes sense. */
  #capacity(refusal: ZoneError, waits: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const { capacity } = this.#plan
      let pause: NodeJS.Timeout | undefined
      const aborted = (): void => {
        clearTimeout(pause)
        reject(signal.reason)
      }
      const again = (): void => {
        unwatch(signal, aborted)
        resolve()
      }
      if (signal.aborted) return aborted()
      if (this.#out > 0) this.#waiting.push(again)
      else if (capacity === undefined) return reject(refusal)
      // There may be capacity for some bytes, and not for these; or for other tenants.
      else if (refusal.code === 'ZONE_BYTES_FULL' || refusal.code === 'ZONE_TENANT_FULL')
        pause = setTimeout(again, Math.min(2 ** waits, PAUSE_MS_MAX))
      // A closing zone refuses the next attempt.
      else void capacity(signal).then(again, again)
      watch(signal, aborted)
    })
  }
}

/** Most bytes that the zone ever takes at once, if the chunk was refused for having more. */
function tooLargeFor(refusal: ZoneError): number | undefined {
  const facts = refusal.facts as unknown as Record<string, number>
  const { taskBytes = 0, taskBytesMax, queueBytesMax = Infinity } = facts
  if (refusal.code === 'TASK_TOO_LARGE') return taskBytesMax
  return taskBytes > queueBytesMax ? queueBytesMax : undefined
}
