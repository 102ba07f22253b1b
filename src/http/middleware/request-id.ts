/**
 * Request ids, in the response, the access log and responses to errors.
 *
 * It is part of Corespun because errors, 404 and 405 need the id too. Defaults: a random UUID in
 * `x-request-id`; an id of the client is used only with `trust`.
 */
import { type Kind, callback, flag, optionsOf, randomId } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import { carry, setRequestId } from '../app/carried.ts'
import { EVERYWHERE, type Middleware } from '../app/middleware.ts'

/** Options of {@link requestId}. */
export interface RequestIdOptions {
  /** The name of the header. Default 'x-request-id'. */
  readonly header?: string
  /** Whether to use the id of the request's header, for servers behind a trusted proxy. Default false. */
  readonly trust?: boolean
  /** Creates an id. Default: a random UUID. */
  readonly make?: () => string
}

const HEADER: Kind<string> = {
  expected: 'a header name',
  accepts: (header) => typeof header === 'string' && /^[\w-]+$/.test(header),
  default: 'x-request-id',
}
const OPTIONS = { header: HEADER, trust: flag(false), make: callback as Kind<RequestIdOptions['make']> }

const ID = /^[\w.:+/=@-]{1,128}$/

/**
 * Middleware that assigns an id to each request: `getRequestId(request)` returns it, the response has it.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, requestId, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': 'Hello' }, requestId({ make: () => 'r-1' })) })
 * assert.equal((await app.inject('/')).headers.get('x-request-id'), 'r-1')
 * ```
 */
export function requestId(options?: RequestIdOptions): Middleware {
  const { header, trust, make = randomId } = optionsOf(options, OPTIONS, wrong, 'requestId()')
  const middleware: Middleware = (request, next) => {
    const given = trust ? request.headers.get(header) : null
    const id = given !== null && ID.test(given) ? given : make()
    setRequestId(request, id)
    carry(request).set(header, id)
    return next()
  }
  return Object.assign(middleware, { [EVERYWHERE]: true })
}
