/**
 * The result of `execute`: decoded when its value is first read.
 *
 * napajs's Result, with bytes of Corespun's transport as payload where napajs has JSON.
 */
import { processFrame, publicFrame } from '../../transport/internal.ts'
import { messageOf } from '../../base/index.ts'
import { valueOf } from '../../bridge/index.ts'

const NO_FRAME = new Uint8Array(0)
const unread: unique symbol = Symbol('unread')

/**
 * What `execute` resolves to: the value, and its bytes for other threads.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun/zone'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * const result = await cpu.execute((text: string) => text.length, ['four'])
 * assert.equal(result.value, 4)
 * await cpu.close()
 * ```
 */
export class Result<T = unknown> {
  readonly #frame: Uint8Array
  #value: T | typeof unread = unread

  /** @internal */
  constructor(frame: Uint8Array) {
    this.#frame = frame
  }

  /** The result of a value that has not come as bytes. @internal */
  static of<T>(value: T): Result<T> {
    const result = new Result<T>(NO_FRAME)
    result.#value = value
    return result
  }

  /** The value as bytes, a copy each time, for `decode(payload, { mode: 'process' })` in this process. */
  get payload(): Uint8Array {
    return publicFrame(this.frameBytes === 0 ? processFrame(this.value) : this.#frame)
  }

  /** Bytes that the value took on its way; 0 for `undefined`. @internal */
  get frameBytes(): number {
    return this.#frame.length
  }

  /** The value, decoded once. @throws {TransportError} when this thread cannot read it. */
  get value(): T {
    if (this.#value === unread) this.#value = valueOf(this.#frame, 0, this.#frame.length) as T
    return this.#value
  }

  /** Its value: `JSON.stringify(result)` is that of the value. @throws {TransportError} as `value`. */
  toJSON(): T {
    return this.value
  }

  /** `console.log` prints its value, and that it is in `value`. @internal */
  [Symbol.for('nodejs.util.inspect.custom')](depth: number, options: object, inspect: Inspect): string {
    if (depth < 0) return '[Result]'
    try {
      return `Result ${inspect({ value: this.value }, options)}`
    } catch (error) {
      return `Result { unreadable: ${messageOf(error)} }`
    }
  }
}

type Inspect = (value: unknown, options: object) => string
