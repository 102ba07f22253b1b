/**
 * Lines to a stream: joined into large pieces, flushed every turn of the event loop, and with back-pressure.
 *
 * A reader that leaves early (`| head`) is not a failure: the EPIPE of the pipe becomes a call of `onClosed`,
 * and later lines are dropped. Any other error of the stream goes to `onFailed`, once.
 */
import type { Writable } from 'node:stream'
import { type CliError, outputFailed } from '../errors.ts'
import type { Sink } from './item-runner.ts'

const PIECE_CHARS = 65_536

export interface OutputEvents {
  /** The stream accepts lines again after {@link Output.blocked}. */
  onDrain(): void
  /** The reader left. */
  onClosed(): void
  /** The stream broke. */
  onFailed(error: CliError): void
  /** Around each write, so that a progress line on the same terminal can get out of the way. */
  beforeWrite(): void
}

export class Output implements Sink {
  readonly #stream: Writable
  readonly #events: OutputEvents
  #piece = ''
  #pieceLines = 0
  #deliveredCount = 0
  #flushSoon = false
  #full = false
  #broken = false

  constructor(stream: Writable, events: OutputEvents) {
    this.#stream = stream
    this.#events = events
    stream.on('drain', () => {
      this.#full = false
      events.onDrain()
    })
    stream.on('error', (error: NodeJS.ErrnoException) => this.#fail(error))
  }

  get blocked(): boolean {
    return this.#full && !this.#broken
  }

  /** Lines that have left the process; the others are lost if it ends now. */
  get deliveredCount(): number {
    return this.#deliveredCount
  }

  write(lines: string, count: number): void {
    this.#piece += `${lines}\n`
    this.#pieceLines += count
    if (this.#piece.length >= PIECE_CHARS) this.#flush()
    else if (!this.#flushSoon) {
      this.#flushSoon = true
      setImmediate(() => {
        this.#flushSoon = false
        this.#flush()
      })
    }
  }

  /** Write what is left; resolves when the stream has taken all of it. */
  async end(): Promise<void> {
    this.#flush()
    if (this.#broken) return
    await new Promise<void>((resolve) => {
      this.#stream.once('close', resolve)
      this.#stream.once('error', () => resolve())
      this.#stream.write('', () => resolve())
    })
  }

  #flush(): void {
    const piece = this.#piece
    const lines = this.#pieceLines
    this.#piece = ''
    this.#pieceLines = 0
    if (piece === '' || this.#broken) return
    this.#events.beforeWrite()
    const taken = (error?: Error | null): void => {
      if (error === undefined || error === null) this.#deliveredCount += lines
    }
    if (!this.#stream.write(piece, taken)) this.#full = true
  }

  #fail(error: NodeJS.ErrnoException): void {
    if (this.#broken) return
    this.#broken = true
    if (error.code === 'EPIPE' || error.code === 'ECONNRESET') {
      this.#events.onClosed()
      return
    }
    this.#events.onFailed(outputFailed('standard output', error))
  }
}
