/**
 * A name for each request, in its answer, in the access log and in the answer to an error.
 *
 * An id that came with the request is kept only where the settings say that its sender is trusted.
 */
import { randomUUID } from 'node:crypto'
import { type Kind, callback, flag, optionsOf } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import { carry, setRequestId } from '../app/carried.ts'
import { EVERYWHERE, type Middleware } from './middleware.ts'

/** What {@link requestId} takes. */
export interface RequestIdOptions {
  /** The header that carries it. Default 'x-request-id'. */
  readonly header?: string
  /** Whether an id in the request is taken over: behind a proxy of one's own. Default false. */
  readonly trust?: boolean
  /** Makes one. Default: a random UUID. */
  readonly make?: () => string
}

const HEADER: Kind<string> = {
  expected: 'a header name',
  accepts: (header) => typeof header === 'string' && /^[\w-]+$/.test(header),
  default: 'x-request-id',
}
const OPTIONS = { header: HEADER, trust: flag(false), make: callback as Kind<RequestIdOptions['make']> }

/** Ids that a header, a log and a person can carry. */
const ID = /^[\w.:+/=@-]{1,128}$/

/**
 * Gives each request an id; `getRequestId(request)` tells it, the answer carries it.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function requestId(options?: RequestIdOptions): Middleware {
  const { header, trust, make = randomUUID } = optionsOf(options, OPTIONS, wrong, 'requestId()')
  const middleware: Middleware = (request, next) => {
    const given = trust ? request.headers.get(header) : null
    const id = given !== null && ID.test(given) ? given : make()
    setRequestId(request, id)
    carry(request).set(header, id)
    return next()
  }
  return Object.assign(middleware, { [EVERYWHERE]: true })
}
