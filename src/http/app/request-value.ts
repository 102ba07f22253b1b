/**
 * Values of a request that middleware finds and handlers need: who asks, for which tenant.
 *
 * A weak map under the request, so a value lasts as long as its request, and two libraries with the same name
 * do not meet. Nothing is added to the request itself, whose shape is that of every request.
 */
import { HttpError } from '../errors.ts'
import { wrong } from '../message/limits.ts'

/** What {@link requestValue} returns: one value per request, with its type. */
export interface RequestValue<Value> {
  /** Sets the value, for everything that runs later for this request. */
  set(request: object, value: Value): void
  /**
   * Returns the value.
   * @throws {HttpError} `HTTP_VALUE_MISSING` if no middleware around the handler has set it.
   */
  get(request: object): Value
  /** Returns the value; `undefined` if it is not set. */
  find(request: object): Value | undefined
}

/**
 * Creates a typed value of requests, which middleware sets and handlers get.
 * @param name For the error of a handler without the middleware.
 * @throws {HttpError} `HTTP_ARGUMENT` for a name that is not a string.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, type Middleware, requestValue, use } from 'corespun/http'
 *
 * const user = requestValue<{ name: string }>('user')
 * const authenticate: Middleware = (request, next) => {
 *   user.set(request, { name: request.headers.get('x-user') ?? 'nobody' })
 *   return next()
 * }
 * const app = createApp({ routes: use({ '/me': (request) => user.get(request).name }, authenticate) })
 * assert.equal(await (await app.inject('/me', { headers: { 'x-user': 'Ada' } })).text(), 'Ada')
 * ```
 */
export function requestValue<Value>(name: string): RequestValue<Value> {
  if (typeof name !== 'string') throw wrong('requestValue(): name', 'a string', name)
  const values = new WeakMap<object, Value>()
  return {
    set: (request, value) => void values.set(request, value),
    get(request) {
      if (!values.has(request)) throw new HttpError('HTTP_VALUE_MISSING', { name })
      return values.get(request) as Value
    },
    find: (request) => values.get(request),
  }
}
