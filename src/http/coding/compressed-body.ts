/**
 * The body of a response in a content coding, made while it is read.
 *
 * What the source has yielded is flushed as soon as it makes the client wait for more, so an event arrives
 * when it happens; a source that always has more is compressed without flushes. At most two pieces are ahead
 * of the client: one in the compressor, one behind it.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type ChunkSource, LazyBody } from '../fetch/lazy-body.ts'
import type { ReadResult } from '../message/standard.ts'
import { drained, type Engine } from './codings.ts'

/** How many microtasks a source has to yield its next chunk before the event loop is asked. */
const LOOKS_MAX = 8

/** How a body is compressed. */
export interface Compressing {
  /** Creates the compressor, at the first read. */
  readonly start: () => { readonly engine: Engine; readonly flushKind: number }
  /** Called once after `start`, when the compressor is no longer needed. */
  readonly ended: () => void
}

export class CompressedBody extends LazyBody {
  readonly #source: ChunkSource
  readonly #how: Compressing
  #engine: Engine | undefined
  #flushKind = 0
  #pieces: AsyncIterator<Uint8Array> | undefined
  #isCancelled = false
  #isOver = false
  /** The source has ended, failed or been cancelled. */
  #isSourceOver = false

  constructor(source: ChunkSource, how: Compressing) {
    super()
    this.#source = source
    this.#how = how
  }

  override async read(): Promise<ReadResult> {
    const pieces = (this.#pieces ??= this.#started())
    try {
      const result = await pieces.next()
      if (result.done !== true) return { done: false, value: result.value }
      await this.#close(undefined)
      return { done: true }
    } catch (error) {
      await this.#close(error)
      if (this.#isCancelled) return { done: true }
      throw error
    }
  }

  override cancel(reason: unknown): Promise<void> {
    this.#isCancelled = true
    return this.#close(reason)
  }

  override again(): undefined {
    return undefined
  }

  #started(): AsyncIterator<Uint8Array> {
    const { engine, flushKind } = this.#how.start()
    this.#engine = engine
    this.#flushKind = flushKind
    engine.on('error', () => {}) // the iterator has it
    void this.#feed(engine)
    return (engine as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
  }

  async #close(reason: unknown): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#engine !== undefined) {
      this.#engine.destroy()
      this.#how.ended()
    }
    if (this.#isSourceOver) return
    this.#isSourceOver = true
    await this.#source.cancel(reason)
  }

  /** Never rejects: an error of the source ends the compressor, whose reader receives it. */
  async #feed(engine: Engine): Promise<void> {
    const source = this.#source
    let isReading = true
    try {
      for (let isFlushed = true; ; isFlushed = false) {
        isReading = true
        const next = Promise.resolve(source.read())
        if (!isFlushed && !(await isSoon(next))) await this.#flushed(engine)
        const result = await next
        isReading = false
        if (engine.destroyed) return
        const chunk = source.chunk(result)
        if (chunk === undefined) break
        if (chunk.byteLength > 0 && !engine.write(chunk)) await drained(engine)
        if (engine.destroyed) return
      }
      this.#isSourceOver = true
      engine.end()
    } catch (error) {
      if (this.#isSourceOver) return // it was cancelled
      this.#isSourceOver = true
      if (isReading) source.failed(error)
      else source.cancel(error).catch(() => {}) // it has the reason
      engine.destroy(error as Error)
    }
  }

  #flushed(engine: Engine): Promise<void> {
    return new Promise((resolve) => {
      engine.once('close', resolve)
      engine.flush(this.#flushKind, () => {
        engine.off('close', resolve)
        resolve()
      })
    })
  }
}

/** Whether a promise settles without anybody waiting for a socket, a file, a timer or another thread. */
async function isSoon(next: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  const settled = (): void => {
    isSettled = true
  }
  next.then(settled, settled)
  for (let look = 0; look < LOOKS_MAX && !isSettled; look += 1) await Promise.resolve()
  if (!isSettled) await nextTurn()
  return isSettled
}
