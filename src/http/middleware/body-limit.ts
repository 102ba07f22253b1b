/**
 * A limit on request bodies for some routes, below the server's `bodyBytesMax`.
 *
 * It is part of Corespun because it replaces the body of a lazy request. A content-length is compared before
 * a byte is read; a chunked body is counted while it is read, without buffering. No default.
 */
import { integer, valueOfKind } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import { clientFault } from '../errors.ts'
import { NativeRequest } from '../fetch/request.ts'
import type { HttpRequest } from '../app/routes.ts'
import type { Middleware } from './middleware.ts'
import { StatusError } from '../app/status-error.ts'

const BYTES = integer(0, 2 ** 40, 0)

/**
 * Middleware that responds with 413 (`BODY_TOO_LARGE`) to requests with a larger body.
 * @param bodyBytesMax Most bytes of a body, 0 or more. The server's `bodyBytesMax` applies as well.
 * @throws {HttpError} `HTTP_ARGUMENT` for another value.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { bodyLimit, createApp, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': { POST: (request) => request.text() } }, bodyLimit(4)) })
 * assert.equal((await app.inject('/', { method: 'POST', body: 'too long' })).status, 413)
 * ```
 */
export function bodyLimit(bodyBytesMax: number): Middleware {
  const most = valueOfKind('bodyLimit()', 'bodyBytesMax', bodyBytesMax ?? null, BYTES, wrong)
  return (request, next) => {
    const length = request.headers.get('content-length')
    if (length !== null) {
      if (Number(length) > most) throw tooLarge(most)
    } else if (request.method !== 'GET' && request.method !== 'HEAD') limit(request, most)
    return next()
  }
}

function tooLarge(most: number): StatusError {
  const reason = `the body is longer than ${most} bytes`
  return new StatusError(413, reason, { code: 'BODY_TOO_LARGE' })
}

/** Methods that parse the body; their errors are caused by the client. */
const PARSING: readonly string[] = ['json', 'formData']

/** Errors of parsers; URIError for a file name with a broken escape. */
const PARSERS_ERRORS = [SyntaxError, TypeError, URIError] as const

/** Replaces the body of the request by a counted one, for every method that reads it. */
function limit(request: HttpRequest, most: number): void {
  const { body, url, method, headers, signal } = request
  if (body === null) return
  let error: StatusError | undefined
  // A complete request: its clones are clones of this one.
  const counted = new NativeRequest(url, {
    method,
    headers,
    signal,
    body: body.pipeThrough(counter(most, (found) => (error = found))),
    duplex: 'half',
  })
  for (const name of ['text', 'json', 'bytes', 'arrayBuffer', 'blob', 'formData'] as const) {
    const read = async (): Promise<unknown> => {
      if (counted.bodyUsed || counted.body?.locked === true)
        throw new TypeError('Request: the body has been read already')
      try {
        // Not every Node has bytes().
        if (name === 'bytes') return new Uint8Array(await counted.arrayBuffer())
        return await counted[name]()
      } catch (thrown) {
        // The parser's error about the truncated body is misleading.
        const isParsers = PARSERS_ERRORS.some((kind) => thrown instanceof kind)
        throw error ?? (isParsers && PARSING.includes(name) ? clientFault(thrown) : thrown)
      }
    }
    Object.defineProperty(request, name, { value: read, configurable: true })
  }
  Object.defineProperty(request, 'body', {
    get: () => counted.body,
    configurable: true,
  })
  Object.defineProperty(request, 'bodyUsed', {
    get: () => counted.bodyUsed,
    configurable: true,
  })
  Object.defineProperty(request, 'clone', {
    value: () => counted.clone(),
    configurable: true,
  })
}

function counter(
  most: number,
  onOver: (error: StatusError) => void,
): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let bytes = 0
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.byteLength
      if (bytes <= most) return controller.enqueue(chunk)
      const error = tooLarge(most)
      onOver(error)
      controller.error(error)
    },
  })
}
