/**
 * The id of a request, and the headers that middleware adds to its response, whoever makes the response.
 *
 * Weak maps keep them as long as the request and cost nothing if unused. Responses to errors get the headers
 * too.
 */
import { CorespunHeaders } from '../fetch/headers.ts'
import { copyOf } from '../fetch/response.ts'

const headersOf = new WeakMap<object, CorespunHeaders>()
const idOf = new WeakMap<object, string>()

/** The headers to add to the response of a request; created on first use. */
export function carry(request: object): CorespunHeaders {
  let headers = headersOf.get(request)
  if (headers === undefined) headersOf.set(request, (headers = new CorespunHeaders()))
  return headers
}

/** The headers to add, if there are any. */
export function carriedHeaders(request: object): CorespunHeaders | undefined {
  return headersOf.get(request)
}

export function setRequestId(request: object, id: string): void {
  idOf.set(request, id)
}

/**
 * Returns the id of a request; `undefined` if `requestId()` is not in use.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, getRequestId, requestId, use } from 'corespun/http'
 *
 * const routes = use({ '/': (request) => `${getRequestId(request)}` }, requestId({ make: () => 'r-1' }))
 * assert.equal(await (await createApp({ routes }).inject('/')).text(), 'r-1')
 * ```
 */
export function getRequestId(request: object): string | undefined {
  return idOf.get(request)
}

/**
 * Returns the response with the headers: `vary`, `set-cookie` and `server-timing` are appended, others are
 * set unless the response has them. Nested layers call it in turn, so existing values are not added again.
 *
 * It changes a copy: a handler may return one Response object for many requests.
 */
export function withCarried(response: Response, headers: CorespunHeaders | undefined): Response {
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
    } else if (name === 'server-timing') {
      if (there.get(name)?.includes(value) !== true) changed().append(name, value)
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
