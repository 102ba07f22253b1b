/**
 * What handlers return, as responses.
 *
 * Whatever the Fetch standard accepts as a body is sent as such. A returned error counts as thrown. An object
 * whose content JSON omits, such as a `Map`, is refused: `{}` with status 200 would hide the mistake.
 */
import { types } from 'node:util'
import { jsonFault, shown } from '../../base/index.ts'
import { HttpError } from '../errors.ts'
import { iterated } from './events.ts'
import { type ResponseBody, CorespunResponse, fitted, isResponse } from '../fetch/response.ts'

/** What is known of a Response of another maker: a ponyfill, a second copy of undici. */
interface ResponseLike {
  readonly status: number
  readonly statusText?: string
  readonly headers: {
    get(name: string): string | null
    forEach(each: (value: string, name: string) => void): void
    getSetCookie?(): string[]
    /** What node-fetch has, which has no `getSetCookie`. */
    raw?(): Record<string, string[]>
  }
  readonly url?: string
  readonly body: unknown
  readonly bodyUsed?: boolean
}

/** Where a value is from that does not come from a known route. */
export const ANY_HANDLER = 'a handler'

/**
 * Any value of a handler as a Response; `where` names the handler for errors.
 * @throws {HttpError} `HTTP_RESPONSE` for what cannot be sent. Whatever error was returned.
 */
export function responseOf(value: unknown, where = ANY_HANDLER): Response {
  if (isResponse(value)) return value
  if (typeof value === 'string') return new CorespunResponse(value)
  if (typeof value === 'object' && value !== null) {
    const response = objectAsResponse(value, where)
    if (response !== undefined) return response
  } else if (value !== null && !['number', 'boolean'].includes(typeof value))
    throw new HttpError('HTTP_RESPONSE', { where, received: shown(value) })
  return new CorespunResponse(jsonOf(value, where), { headers: { 'content-type': 'application/json' } })
}

/**
 * An object that is not sent as JSON; undefined: it is.
 * @throws {HttpError} `HTTP_RESPONSE` if JSON represents nothing of the object. The value itself, if it is an
 *   error.
 */
export function objectAsResponse(value: object, where: string): Response | undefined {
  if (types.isNativeError(value) || value instanceof Error) throw value
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value) || value instanceof ReadableStream) {
    const headers = { 'content-type': 'application/octet-stream' }
    return new CorespunResponse(value as ResponseBody, { headers })
  }
  if (value instanceof Blob || value instanceof URLSearchParams || isForm(value))
    return new CorespunResponse(value as ResponseBody)
  if (isResponseLike(value)) return copied(value)
  const pieces = iterated(value)
  if (pieces !== undefined) return pieces
  if (isShownByJson(value)) return undefined
  throw new HttpError('HTTP_RESPONSE', {
    where,
    received: `${shown(value)}, which has no enumerable properties to serialize`,
  })
}

/** As `instanceof`, for which Node would load the class. */
function isForm(value: object): value is FormData {
  return Object.prototype.toString.call(value) === '[object FormData]' && value instanceof FormData
}

/** Whether JSON represents the object. */
function isShownByJson(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null || Array.isArray(value)) return true
  return typeof (value as { toJSON?: unknown }).toJSON === 'function' || Object.keys(value).length > 0
}

function isResponseLike(value: object): value is ResponseLike {
  if (!('body' in value)) return false
  const { status, headers } = value as Partial<ResponseLike>
  return (
    typeof status === 'number' && typeof headers?.get === 'function' && typeof headers.forEach === 'function'
  )
}

/** @throws {TypeError} When its body was read. */
function copied({ status, statusText = '', headers: given, url, body, bodyUsed }: ResponseLike): Response {
  if (bodyUsed === true) throw new TypeError('Response: the body was read before the response was sent')
  const headers = new CorespunResponse(null).headers
  const cookies = given.getSetCookie?.() ?? given.raw?.()['set-cookie']
  given.forEach((text, name) => {
    if (name.toLowerCase() !== 'set-cookie' || cookies === undefined) headers.append(name, text)
  })
  for (const cookie of cookies ?? []) headers.append('set-cookie', cookie)
  return new CorespunResponse(bodyFrom(body), { status, statusText, headers: fitted(headers, url, body) })
}

/** Streams of another maker are read by their reader. */
function bodyFrom(body: unknown): ResponseBody {
  if (body === null || body === undefined || body instanceof ReadableStream)
    return (body ?? null) as ResponseBody
  const { getReader } = body as Partial<ReadableStream<Uint8Array>>
  if (typeof getReader !== 'function') return body as ResponseBody // bytes, a string, an async iterable
  const reader = getReader.call(body, undefined as never) as ReadableStreamDefaultReader<Uint8Array>
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  ) as ResponseBody
}

/** @throws {HttpError} `HTTP_RESPONSE` that names the part which is not JSON-serializable. */
export function jsonOf(value: unknown, where: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value) as string | undefined
  } catch (cause) {
    const fault = jsonFault(value)
    if (fault === undefined) throw cause // of a toJSON() or a getter
    throw new HttpError(
      'HTTP_RESPONSE',
      { where, expected: 'a JSON-serializable value', received: fault },
      { cause },
    )
  }
  if (text !== undefined) return text
  throw new HttpError('HTTP_RESPONSE', { where, received: 'an object whose toJSON() returned undefined' })
}
