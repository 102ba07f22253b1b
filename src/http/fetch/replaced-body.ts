/**
 * Another body for a handler's request: counted, decoded.
 *
 * The request remains the object that handlers and other middleware have, so the members that read its body
 * are redefined. What replaces it is lazy, too: nothing is read before somebody asks.
 */
import { clientFault } from '../errors.ts'
import { native } from './native.ts'

/** Methods that parse the body; their errors are caused by the client. */
const PARSING: readonly string[] = ['json', 'formData']

/** Errors of parsers; URIError for a file name with a broken escape. */
const PARSERS_ERRORS = [SyntaxError, TypeError, URIError] as const

/**
 * Replaces the body of the request, for every method that reads it.
 * @param failure Why the new body failed; `undefined`: it has not.
 */
export function replaceBody(
  request: Request,
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  failure: () => unknown,
): void {
  const { url, method, headers, signal } = request
  // A complete request: its clones are clones of this one.
  const replaced = new (native().Request)(url, { method, headers, signal, body, duplex: 'half' })
  for (const name of ['text', 'json', 'bytes', 'arrayBuffer', 'blob', 'formData'] as const) {
    const read = async (): Promise<unknown> => {
      if (replaced.bodyUsed || replaced.body?.locked === true)
        throw new TypeError('Request: the body has been read already')
      try {
        // Not every Node has bytes().
        if (name === 'bytes') return new Uint8Array(await replaced.arrayBuffer())
        return await replaced[name]()
      } catch (thrown) {
        // The parser's error about the truncated body is misleading.
        const isParsers = PARSERS_ERRORS.some((kind) => thrown instanceof kind)
        throw failure() ?? (isParsers && PARSING.includes(name) ? clientFault(thrown) : thrown)
      }
    }
    Object.defineProperty(request, name, { value: read, configurable: true })
  }
  const members = {
    body: { get: () => replaced.body },
    bodyUsed: { get: () => replaced.bodyUsed },
    clone: { value: () => replaced.clone() },
  }
  for (const [name, member] of Object.entries(members))
    Object.defineProperty(request, name, { ...member, configurable: true })
}
