/**
 * What an app for node:http has written of a response that is streamed: a queue between `res.write` and the
 * core.
 *
 * The core reads the next piece when the client has taken those before, so the queue is what `write` and
 * `drain` report. As in Node, an app that ignores both is not refused.
 */
import type { ReadResult } from '../message/standard.ts'
import { LazyBody } from '../fetch/lazy-body.ts'

type Callback = (error?: unknown) => void

interface Piece {
  readonly bytes: Uint8Array
  readonly callback: Callback | undefined
  next: Piece | undefined
}

interface Events {
  /** A piece is taken: the client has received those before. */
  onTaken(): void
  /** All pieces are taken, after `write` has returned false. */
  onDrain(): void
  /** The core has all of it. */
  onEnd(): void
  /** The core takes no more of it; without a reason, it sends the head alone. */
  onCancel(reason: unknown): void
}

export class WrittenBody extends LazyBody {
  /** Linked, because an array moves all of its items for the first, and an app may write without waiting. */
  #first: Piece | undefined
  #last: Piece | undefined
  readonly #bytesMax: number
  readonly #events: Events
  #bytes = 0
  #isFull = false
  #isEnded = false
  #failure: { readonly error: unknown } | undefined
  #reader: { resolve(result: ReadResult): void; reject(error: unknown): void } | undefined

  constructor(bytesMax: number, events: Events) {
    super()
    this.#bytesMax = bytesMax
    this.#events = events
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns whether there is room for more. An empty piece sends the head of the response. */
  write(bytes: Uint8Array, callback: Callback | undefined): boolean {
    if (this.#failure !== undefined) return false
    this.#bytes += bytes.byteLength
    const piece: Piece = { bytes, callback, next: undefined }
    if (this.#last === undefined) this.#first = piece
    else this.#last.next = piece
    this.#last = piece
    if (this.#reader !== undefined) this.#serve()
    this.#isFull ||= this.#bytes >= this.#bytesMax
    return !this.#isFull
  }

  end(): void {
    this.#isEnded = true
    if (this.#reader !== undefined) this.#serve()
  }

  /** The response is aborted. */
  fail(error: unknown): void {
    this.#failure = { error }
    for (let piece = this.#first; piece !== undefined; piece = piece.next)
      if (piece.callback !== undefined) process.nextTick(piece.callback, error)
    this.#first = this.#last = undefined
    this.#bytes = 0
    this.#reader?.reject(error)
    this.#reader = undefined
  }

  read(): Promise<ReadResult> {
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
      this.#serve()
    })
  }

  override cancel(reason: unknown): Promise<void> {
    this.#events.onCancel(reason)
    return Promise.resolve()
  }

  again(): undefined {
    return undefined
  }

  #serve(): void {
    const { resolve, reject } = this.#reader!
    const piece = this.#first
    if (this.#failure === undefined && piece === undefined && !this.#isEnded) return
    this.#reader = undefined
    if (this.#failure !== undefined) return reject(this.#failure.error)
    if (piece === undefined) {
      resolve({ done: true, value: undefined })
      return this.#events.onEnd()
    }
    const { bytes, callback } = piece
    this.#first = piece.next
    if (this.#first === undefined) this.#last = undefined
    this.#bytes -= bytes.byteLength
    this.#events.onTaken()
    resolve({ done: false, value: bytes })
    if (callback !== undefined) process.nextTick(callback)
    if (this.#isFull && this.#first === undefined) {
      this.#isFull = false
      this.#events.onDrain()
    }
  }
}
