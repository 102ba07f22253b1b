/**
 * Requests of a server with `trustProxy`: URL and address are those of the client that proxies state.
 *
 * A class of its own, so that requests of other servers have no field for it. Its headers are read once.
 */
import type { ProxiedClient, Proxies } from '../message/proxies.ts'
import type { Target } from '../message/target.ts'
import type { Exchange } from '../message/core-interface.ts'
import { CorespunRequest } from './request.ts'

/** A request of a server that trusts proxies: its client is the one that they state. */
export class ProxiedRequest extends CorespunRequest {
  readonly #proxies: Proxies
  /** The host of the request's target, as a proxy may pass it on. */
  readonly #host: string
  #client: ProxiedClient | undefined

  constructor(
    exchange: Exchange,
    params: Readonly<Record<string, string>> | undefined,
    target: Target,
    proxies: Proxies,
  ) {
    super(exchange, params, target)
    this.#proxies = proxies
    this.#host = target.host
    this.#client = undefined
  }

  protected override clientOf(exchange: Exchange): ProxiedClient {
    return (this.#client ??= this.#proxies.clientOf(exchange, this.#host || (exchange.header('host') ?? '')))
  }
}
