/**
 * What belongs to a request besides itself: its id, and headers that its answer will carry whoever makes it.
 *
 * Kept by the request in weak maps, so nothing is kept longer than the request and nothing costs anything
 * where it is not used. Headers are carried so that the answer to an error has them too.
 */
import { SkeinHeaders } from '../headers.ts'
import { SkeinResponse } from '../response.ts'

const headersOf = new WeakMap<object, SkeinHeaders>()
const idOf = new WeakMap<object, string>()

/** The headers that the answer of a request will carry; made when asked for. */
export function carry(request: object): SkeinHeaders {
  let headers = headersOf.get(request)
  if (headers === undefined) headersOf.set(request, (headers = new SkeinHeaders()))
  return headers
}

/** The same where there are some. */
export function carriedHeaders(request: object): SkeinHeaders | undefined {
  return headersOf.get(request)
}

/** Remember the id of a request. */
export function setRequestId(request: object, id: string): void {
  idOf.set(request, id)
}

/** The id of a request; `undefined` where `requestId()` is not in use. */
export function requestIdOf(request: object): string | undefined {
  return idOf.get(request)
}

/**
 * The answer with the headers: `vary` and `set-cookie` are added, others stand unless the answer has its own.
 * Layers inside of each other do this in turn, so what an answer has already is not added again.
 */
export function withCarried(answer: Response, headers: SkeinHeaders | undefined): Response {
  if (headers === undefined) return answer
  const target = changeable(answer)
  for (const [name, value] of headers) {
    if (name === 'vary') addVary(target.headers, value)
    else if (name === 'set-cookie') {
      if (!target.headers.getSetCookie().includes(value)) target.headers.append(name, value)
    } else if (!target.headers.has(name)) target.headers.set(name, value)
  }
  return target
}

function addVary(headers: Headers, names: string): void {
  const listed = (text: string): string[] => text.split(',').map((name) => name.trim())
  const before = new Set(listed((headers.get('vary') ?? '').toLowerCase()))
  const missing = new Set(listed(names).filter((name) => !before.has(name.toLowerCase())))
  if (missing.size > 0) headers.append('vary', [...missing].join(', '))
}

/** A response whose headers may be changed: those of redirects and of `fetch` may not. */
function changeable(answer: Response): Response {
  try {
    answer.headers.delete('x-skein-no-such-header')
    return answer
  } catch {
    const { status, statusText, headers } = answer
    return new SkeinResponse(answer.body, { status, statusText, headers })
  }
}
