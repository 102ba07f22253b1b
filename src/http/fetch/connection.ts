/**
 * The second argument of a `fetch`, where frameworks look for the client's address.
 *
 * It has the two forms that they read: `requestIP` of Bun's server, and `incoming` with a socket of Node's.
 * Nothing is read before somebody looks.
 */
import { CorespunRequest } from './request.ts'

/**
 * Where a request comes from: the second argument of `fetch`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp } from 'corespun/http'
 *
 * const app = createApp({
 *   trustProxy: 1,
 *   fetch: (request, connection) => Response.json(connection.requestIP(request)),
 * })
 * const response = await app.inject('/', { headers: { 'x-forwarded-for': '203.0.113.7' } })
 * assert.deepEqual(await response.json(), { address: '203.0.113.7', family: 'IPv4' })
 * ```
 */
export class Connection {
  readonly #request: CorespunRequest

  constructor(request: CorespunRequest) {
    this.#request = request
  }

  /**
   * The client's address; `null` on Unix sockets without a trusted proxy, and for requests of other servers.
   */
  requestIP(request: Request): { readonly address: string; readonly family: 'IPv4' | 'IPv6' } | null {
    return request instanceof CorespunRequest ? addressOf(request) : null
  }

  /** As of a request of node:http; the port is absent where a proxy states the client. */
  get incoming(): {
    readonly socket: {
      readonly remoteAddress?: string
      readonly remoteFamily?: string
      readonly remotePort?: number
    }
  } {
    const found = addressOf(this.#request)
    if (found === null) return { socket: {} }
    const { address: remoteAddress, family: remoteFamily } = found
    const { remotePort } = this.#request
    return { socket: { remoteAddress, remoteFamily, ...(remotePort > 0 && { remotePort }) } }
  }
}

function addressOf(request: CorespunRequest): ReturnType<Connection['requestIP']> {
  const { remoteAddress: address } = request
  return address === '' ? null : { address, family: address.includes(':') ? 'IPv6' : 'IPv4' }
}
