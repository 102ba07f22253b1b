/**
 * The clients of a link's connections: who they are remains known after a connection.
 *
 * The core forgets a client with its connection. A request may be read later, so its address is read with the
 * first request of the connection, once for all of them.
 */
import type { Certificate } from '../../message/core.ts'

export class Peer {
  /** Its IP address; empty for a Unix socket. */
  readonly address: string
  readonly #der: Uint8Array
  readonly #parse: ((der: Uint8Array) => Certificate) | undefined
  #certificate: Certificate | undefined

  /**
   * @param der The certificate that it has shown; empty: none.
   * @param parse Makes an object of it; undefined without TLS.
   */
  constructor(address: string, der: Uint8Array, parse: ((der: Uint8Array) => Certificate) | undefined) {
    this.address = address
    this.#der = der
    this.#parse = parse
    this.#certificate = undefined
  }

  get certificate(): Certificate | undefined {
    return this.#der.byteLength === 0 ? undefined : (this.#certificate ??= this.#parse?.(this.#der))
  }
}
