/**
 * A limit on request bodies for some routes, below the server's `bodyBytesMax`.
 *
 * It is part of Corespun because it replaces the body of a lazy request. A content-length is compared before
 * a byte is read; a chunked body is counted while it is read, without buffering. No default.
 */
import { integer, valueOfKind } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import { replaceBody } from '../fetch/replaced-body.ts'
import type { HttpRequest } from './routes.ts'
import type { Middleware } from './middleware.ts'
import { StatusError } from './status-error.ts'

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
    limitBody(request, most)
    return next()
  }
}

/** @throws {StatusError} 413, now or from whoever reads the body, if that is longer than `most` bytes. */
export function limitBody(request: HttpRequest, most: number): void {
  const length = request.headers.get('content-length')
  if (length !== null) {
    if (Number(length) > most) throw tooLarge(most)
  } else if (request.method !== 'GET' && request.method !== 'HEAD') countBody(request, most)
}

function tooLarge(most: number): StatusError {
  const reason = `the body is longer than ${most} bytes`
  return new StatusError(413, reason, { code: 'BODY_TOO_LARGE' })
}

/** Replaces the body of the request by a counted one. */
function countBody(request: HttpRequest, most: number): void {
  const { body } = request
  if (body === null) return
  let error: StatusError | undefined
  const counted = body.pipeThrough(counter(most, (found) => (error = found)))
  replaceBody(request, counted, () => error)
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
