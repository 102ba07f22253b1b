/**
 * A limit on the body of some routes' requests, below the server's own `bodyBytesMax`.
 *
 * A length that is told is compared before a byte is read. A body that comes in chunks is counted as it is
 * read, and reading it fails at the limit; nothing is gathered here.
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
 * Answers 413 (`BODY_TOO_LARGE`) to requests with more than so many bytes of body.
 * @param bodyBytesMax 0 or more. The server's limit applies as well.
 * @throws {HttpError} `HTTP_ARGUMENT`.
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

/** Ways to read a body in which the bytes themselves can be wrong: a client's fault, as without a limit. */
const PARSING: readonly string[] = ['json', 'formData']

/** What parsers throw; URIError for a file name with a broken escape. */
const PARSERS_ERRORS = [SyntaxError, TypeError, URIError] as const

/** Put a counted body in the place of the request's own, for every way to read it. */
function limit(request: HttpRequest, most: number): void {
  const { body, url, method, headers, signal } = request
  if (body === null) return
  let error: StatusError | undefined
  // All of the request, since its clones are clones of this.
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
        // What a parser says of the cut is not what happened.
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
