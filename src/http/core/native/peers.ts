/**
 * The clients of a link's connections: who they are remains known after a connection.
 *
 * The core forgets a client with its connection. A request may be read later, so its address is read with the
 * first request of the connection, once for all of them.
 */
import type { Certificate } from '../../message/core-interface.ts'

export class Peer {
  /** Its IP address; empty for a Unix socket. */
  readonly address: string
  /** The port of its end of the connection; 0 if a proxy has stated the address, or none is known. */
  readonly port: number
  readonly #der: Uint8Array
  readonly #parse: ((der: Uint8Array) => Certificate) | undefined
  #certificate: Certificate | undefined

  /**
   * @param remote As of `httpRemote`: its port and address, or nothing.
   * @param der The certificate that it has shown; empty: none.
   * @param parse Makes an object of it; undefined without TLS.
   */
  constructor(remote: string, der: Uint8Array, parse: ((der: Uint8Array) => Certificate) | undefined) {
    const space = remote.indexOf(' ')
    this.address = remote.slice(space + 1)
    this.port = space < 0 ? 0 : Number(remote.slice(0, space))
    this.#der = der
    this.#parse = parse
    this.#certificate = undefined
  }

  get certificate(): Certificate | undefined {
    return this.#der.byteLength === 0 ? undefined : (this.#certificate ??= this.#parse?.(this.#der))
  }
}
