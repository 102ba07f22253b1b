/**
 * What a run shows of itself while it runs: a value that its process writes beside what is recorded, and that
 * any process reads, also when the run waits outside of memory.
 *
 * It is written some time after a change, and before the run ends or leaves memory. Nothing depends on it:
 * one that cannot be written is written with the next change.
 */
import { type End, type Engine, type KeyValue, errorFrame } from '../fleet/internal.ts'
import { decode, encode } from '../transport/index.ts'
import { RunError, type RunFacts, readable } from './errors.ts'
import { RECORD_BYTES } from './records.ts'

/** Least time between two writes. */
const PUBLISH_MS = 50

/** Writes what `see` returns, when something may have changed. */
export class Exposed {
  readonly #engine: Engine
  readonly #values: () => Promise<KeyValue>
  readonly #key: string
  readonly #see: () => unknown
  #last: Uint8Array | undefined
  #endTimer: End | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(engine: Engine, values: () => Promise<KeyValue>, key: string, see: () => unknown) {
    this.#engine = engine
    this.#values = values
    this.#key = key
    this.#see = see
  }

  /** Something may have changed. */
  changed(): void {
    this.#endTimer ??= this.#engine.clock.after(PUBLISH_MS, () => {
      this.#endTimer = undefined
      void this.write()
    })
  }

  /** Nothing is written any more. */
  end(): void {
    this.#endTimer?.()
  }

  /** Resolves when it is written, or cannot be. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write()).catch(() => {})
    return this.#writing
  }

  async #write(): Promise<void> {
    const bytes = this.#bytes()
    if (this.#last !== undefined && Buffer.compare(this.#last, bytes) === 0) return
    const values = await this.#values()
    await values.put(this.#key, bytes)
    this.#last = bytes
  }

  #bytes(): Uint8Array {
    try {
      const bytes = encode(['exposed', true, encode(this.#see())])
      const bytesMax = this.#engine.messageBytesMax - RECORD_BYTES
      if (bytes.length <= bytesMax) return bytes
      throw new RunError('RUN_TOO_LARGE', { what: 'what expose() shows', bytes: bytes.length, bytesMax })
    } catch (error) {
      return encode(['exposed', false, errorFrame(error)])
    }
  }
}

/** @throws What the function of `expose()` has thrown; {RunError} `RUN_UNREADABLE`. */
export function exposedIn(run: RunFacts, bytes: Uint8Array): unknown {
  const [isValue, value] = readable(run, 'exposed', () => {
    const [, isValue, frame] = decode(bytes) as [string, boolean, Uint8Array]
    return [isValue, decode(frame)]
  })
  if (isValue !== true) throw value
  return value
}
