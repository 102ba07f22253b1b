/**
 * What belongs to a request besides itself: its id, and headers that its answer will carry whoever makes it.
 *
 * Kept by the request in weak maps, so nothing is kept longer than the request and nothing costs anything
 * where it is not used. Headers are carried so that the answer to an error has them too.
 */
import { CorespunHeaders } from '../fetch/headers.ts'
import { copyOf } from '../fetch/response.ts'

const headersOf = new WeakMap<object, CorespunHeaders>()
const idOf = new WeakMap<object, string>()

/** The headers that the answer of a request will carry; made when asked for. */
export function carry(request: object): CorespunHeaders {
  let headers = headersOf.get(request)
  if (headers === undefined) headersOf.set(request, (headers = new CorespunHeaders()))
  return headers
}

/** The same where there are some. */
export function carriedHeaders(request: object): CorespunHeaders | undefined {
  return headersOf.get(request)
}

/** Remember the id of a request. */
export function setRequestId(request: object, id: string): void {
  idOf.set(request, id)
}

/** The id of a request; `undefined` where `requestId()` is not in use. */
export function getRequestId(request: object): string | undefined {
  return idOf.get(request)
}

/**
 * The answer with the headers: `vary` and `set-cookie` are added, others stand unless the answer has its own.
 * Layers inside of each other do this in turn, so what an answer has already is not added again.
 *
 * An answer is never changed: its handler may give it again, to somebody whose headers are others.
 */
export function withCarried(response: Response, headers: CorespunHeaders | undefined): Response {
  // What cannot be sent is refused further out, as it is.
  if (headers === undefined || response.type === 'error' || response.bodyUsed) return response
  let copy: Response | undefined
  const changed = (): Headers => (copy ??= copyOf(response)).headers
  for (const [name, value] of headers) {
    const there = (copy ?? response).headers
    if (name === 'vary') {
      const missing = missingOf(there.get(name), value)
      if (missing !== '') changed().append(name, missing)
    } else if (name === 'set-cookie') {
      if (!there.getSetCookie().includes(value)) changed().append(name, value)
    } else if (!there.has(name)) changed().set(name, value)
  }
  return copy ?? response
}

/** Those names of a list that another one lacks. */
function missingOf(list: string | null, names: string): string {
  const listed = (text: string): string[] => text.split(',').map((name) => name.trim())
  const before = new Set(listed((list ?? '').toLowerCase()))
  const missing = new Set(listed(names).filter((name) => !before.has(name.toLowerCase())))
  return [...missing].join(', ')
}
