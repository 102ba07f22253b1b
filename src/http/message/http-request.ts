/**
 * The type of the request that handlers receive: of HTTP requests, and those that ask for a WebSocket.
 *
 * The class is CorespunRequest; a type alone names the parameters of its route.
 */
import type { Certificate } from './core-interface.ts'
import type { Params } from '../app/router.ts'

/** The request that a handler receives: a standard `Request` with the members below. */
export type HttpRequest<Pattern extends string = string> = Request & {
  /** Values of the named segments of the pattern, percent-decoded. */
  readonly params: string extends Pattern ? Readonly<Record<string, string>> : Params<Pattern>
  /**
   * The client's address without its port; '' on a Unix socket and for injected requests. With `trustProxy`,
   * the client that the proxies state.
   */
  readonly remoteAddress: string
  /** The same as `remoteAddress`, under the name that frameworks read. */
  readonly ip: string
  /**
   * The trailers of a chunked body, when it has been read to its end; empty before. Names that may not come
   * after a body, such as `content-length`, are left out. Never part of `headers`.
   */
  readonly trailers: Headers
  /**
   * The certificate that the client has shown, verified by an authority of the option `tls.ca`; undefined
   * without one.
   */
  readonly clientCertificate: Certificate | undefined
}
