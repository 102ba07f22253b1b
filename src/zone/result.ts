/**
 * The result of `execute`: decoded when it is looked at, or never.
 *
 * napajs's Result, with bytes of Skein's transport as payload where napajs has JSON.
 */
import { valueOf } from './port.ts'

const unread: unique symbol = Symbol('unread')

/** See the module's text. */
export class Result<T = unknown> {
  /** The value as a frame of the transport, in process mode; empty for `undefined`. */
  readonly payload: Uint8Array
  #value: T | typeof unread = unread

  constructor(payload: Uint8Array) {
    this.payload = payload
  }

  /** The value, decoded once. @throws {TransportError} when this thread cannot read it. */
  get value(): T {
    if (this.#value === unread) this.#value = valueOf(this.payload, 0, this.payload.length) as T
    return this.#value as T
  }
}
