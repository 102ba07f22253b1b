/**
 * Middleware: `use(routes, requestId(), cors())`.
 *
 * A middleware receives the request and `next`, which runs the inner functions and resolves to a Response.
 * The first of several is the outermost. To the outer ones, a StatusError or a thrown Response is a response.
 * Routes without middleware pay nothing for it: their handlers still run without a promise.
 */
import { changeable, CorespunResponse, isResponse } from '../fetch/response.ts'
import {
  type ResponseValue,
  type Handler,
  HAS_APPS,
  hasApps,
  type HttpRequest,
  isMethodTable,
  type Routes,
  UNMATCHED,
  runnerOf,
  withSockets,
  type Wrap,
} from './routes.ts'
import { isWebSocketRoute } from '../websocket/handlers.ts'
import { wrong } from '../message/limits.ts'
import { carriedHeaders, withCarried } from './carried.ts'
import { statusResponse } from './status-error.ts'
import { ANY_HANDLER, responseOf } from './value.ts'
import { HttpError } from '../errors.ts'
import { isPlainObject, shown } from '../../base/index.ts'

/** Runs the inner middleware and the handler. Rejects with errors that are not responses. */
export type Next = () => Promise<Response>

/** A function around handlers: returns `next()`, a changed response, or a response of its own. */
export type Middleware = (request: HttpRequest, next: Next) => ResponseValue | Promise<ResponseValue>

const ROUTES = 'an object of patterns; around one handler use withMiddleware(handler, ...middleware)'

type AnyHandler = (request: HttpRequest) => unknown

/**
 * Marks middleware that also runs for 404 and 405 responses. True, or the middleware to run there instead.
 */
export const EVERYWHERE = Symbol('corespun.everywhere')

/** Marks middleware that is made for each route: a function of the route's pattern. */
export const FOR_ROUTE = Symbol('corespun.forRoute')

/** Marks middleware that responds to OPTIONS, so that `use` adds this method to the routes. */
export const HANDLES_OPTIONS = Symbol('corespun.handlesOptions')

/**
 * Returns a handler that runs middleware around another handler.
 * @throws {HttpError} `HTTP_ARGUMENT` if an argument is not a function.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { bodyLimit, createApp, withMiddleware } from 'corespun/http'
 *
 * const upload = withMiddleware(async (request) => `${(await request.text()).length} bytes`, bodyLimit(10))
 * const app = createApp({ routes: { '/upload': { POST: upload } } })
 * const response = await app.inject('/upload', { method: 'POST', body: 'hello' })
 * assert.equal(await response.text(), '5 bytes')
 * ```
 */
export function withMiddleware<Pattern extends string>(
  handler: Handler<Pattern>,
  ...middleware: readonly Middleware[]
): Handler<Pattern> {
  const name = 'withMiddleware(): the handler'
  const expected = 'a function (request), before its middleware'
  if (typeof handler !== 'function') throw wrong(name, expected, handler)
  const list = checked(middleware)
  // Middleware without `next` runs no handler, so it is one; a handler may have an optional second parameter.
  if (handler.length > 1 && list.some(({ length }) => length < 2))
    throw new HttpError('HTTP_ARGUMENT', { name, expected, received: parametersOf(handler) })
  return chained(handler as AnyHandler, list) as Handler<Pattern>
}

/**
 * Returns routes that run middleware around each handler, app, arrow and constant. `requestId()`,
 * `accessLog()` and `cors()` also run for 404 and 405 responses; if the results of several `use` calls are
 * merged, those of the last one do.
 * @throws {HttpError} `HTTP_ARGUMENT` for middleware that is not a function and for invalid routes.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, use } from 'corespun/http'
 *
 * const timed = async (request: Request, next: () => Promise<Response>) => {
 *   const response = await next()
 *   response.headers.set('x-path', new URL(request.url).pathname)
 *   return response
 * }
 * const app = createApp({ routes: use({ '/': () => 'Hello' }, timed) })
 * assert.equal((await app.inject('/')).headers.get('x-path'), '/')
 * ```
 */
export function use<Pattern extends string>(
  routes: Routes<Pattern>,
  ...middleware: readonly Middleware[]
): Routes<Pattern> {
  const list = checked(middleware)
  // Of a function there are no entries: swapped arguments would leave no routes.
  if (!isPlainObject(routes)) throw wrong('use(): routes', ROUTES, routes)
  const handlesOptions = list.some((one) => HANDLES_OPTIONS in one)
  const wrapped = Object.entries(routes).map(([pattern, given]) => {
    const value = isWebSocketRoute(given) ? withSockets(given, pattern) : given
    const own = forRoute(list, pattern)
    return [
      pattern,
      isMethodTable(value)
        ? tableOf(pattern, value, own, handlesOptions)
        : endpointOf(pattern, value, own, handlesOptions),
    ]
  })
  const result = Object.fromEntries(wrapped) as Routes<Pattern>
  if (hasApps(routes)) Object.assign(result, { [HAS_APPS]: true })
  const unmatched = unmatchedOf(list, (routes as { readonly [UNMATCHED]?: Wrap })[UNMATCHED])
  return unmatched === undefined ? result : Object.assign(result, { [UNMATCHED]: unmatched })
}

/** The list, with those that are made for each route made for this one. */
function forRoute(list: readonly Middleware[], pattern: string): readonly Middleware[] {
  type ForRoute = { readonly [FOR_ROUTE]?: (pattern: string) => Middleware }
  return list.map((one) => (one as ForRoute)[FOR_ROUTE]?.(pattern) ?? one)
}

/** Middleware for 404 and 405 responses, around that of an inner `use`. */
function unmatchedOf(list: readonly Middleware[], inner: Wrap | undefined): Wrap | undefined {
  const everywhere = list.flatMap((one) => {
    const there = (one as { readonly [EVERYWHERE]?: true | Middleware })[EVERYWHERE]
    return there === undefined ? [] : [there === true ? one : there]
  })
  if (everywhere.length === 0) return inner
  return (handler) => chained(inner?.(handler) ?? handler, everywhere)
}

function checked(middleware: readonly unknown[]): readonly Middleware[] {
  for (const [index, one] of middleware.entries()) {
    if (typeof one !== 'function')
      throw wrong(`use(): middleware ${index + 1}`, 'a function (request, next)', one)
    if (one.length > 2) {
      const received = parametersOf(one)
      const name = `use(): middleware ${index + 1}`
      throw new HttpError('HTTP_ARGUMENT', { name, expected: 'a function (request, next)', received })
    }
  }
  return middleware as readonly Middleware[]
}

function parametersOf(given: { readonly length: number }): string {
  return `${shown(given)} of ${given.length} parameters`
}

function tableOf(
  pattern: string,
  table: Record<string, unknown>,
  list: readonly Middleware[],
  handlesOptions: boolean,
): Record<string, unknown> {
  const methods = Object.keys(table).filter((method) => table[method] !== undefined)
  const entries = methods.map(
    (method) => [method, chained(runnerOf(table[method], `routes['${pattern}'].${method}`), list)] as const,
  )
  const wrapped: Record<string, unknown> = { ...table, ...Object.fromEntries(entries) }
  if (handlesOptions) wrapped['OPTIONS'] ??= chained(() => allowed(methods), list)
  return wrapped
}

function endpointOf(
  pattern: string,
  value: unknown,
  list: readonly Middleware[],
  handlesOptions: boolean,
): unknown {
  if (value === undefined) throw wrong(`routes['${pattern}']`, 'a handler or a constant', value)
  const run = runnerOf(value, `routes['${pattern}']`)
  return isConstant(value) ? tableOf(pattern, { GET: run }, list, handlesOptions) : chained(run, list)
}

function isConstant(value: unknown): boolean {
  if (typeof value === 'function') return false
  if (value === null || typeof value !== 'object') return true
  const { fetch, run } = value as { fetch?: unknown; run?: unknown }
  return typeof fetch !== 'function' && typeof run !== 'function'
}

function allowed(methods: readonly string[]): Response {
  const all = new Set([...methods, 'OPTIONS', ...(methods.includes('GET') ? ['HEAD'] : [])])
  return new CorespunResponse(null, {
    status: 204,
    headers: { allow: [...all].sort().join(', ') },
  })
}

function chained(handler: AnyHandler, list: readonly Middleware[]): AnyHandler {
  if (list.length === 0) return handler
  const run: AnyHandler = async (request) => {
    const response = await step(handler, list, 0, request)
    return withCarried(response, carriedHeaders(request))
  }
  // What a handler declares, it declares with middleware around it as well.
  return '~contract' in handler ? Object.assign(run, { '~contract': handler['~contract'] }) : run
}

/** An error about a returned value, with what returned it: middleware or the handler. */
function located(
  error: HttpError<'HTTP_RESPONSE'>,
  middleware: Middleware | undefined,
  index: number,
  request: HttpRequest,
): HttpError {
  const { facts } = error
  if (facts.where !== ANY_HANDLER) return error
  const route = `${request.method} ${new URL(request.url).pathname}`
  if (middleware === undefined)
    return new HttpError('HTTP_RESPONSE', { ...facts, where: `the handler of ${route}` })
  const name = middleware.name === '' ? '' : ` (${middleware.name})`
  const isFunction = facts.received.includes('function')
  const expected = isFunction
    ? `a response; use() takes what a factory returns, as in ${middleware.name || 'cors'}()`
    : 'a response, as in `return next()`'
  return new HttpError('HTTP_RESPONSE', {
    ...facts,
    where: `middleware ${index + 1}${name} of ${route}`,
    expected,
  })
}

async function step(
  handler: AnyHandler,
  list: readonly Middleware[],
  index: number,
  request: HttpRequest,
): Promise<Response> {
  const middleware = list[index]
  try {
    if (middleware === undefined) return changeable(responseOf(await handler(request)))
    return responseOf(await middleware(request, () => step(handler, list, index + 1, request)))
  } catch (thrown) {
    if (isResponse(thrown)) return changeable(thrown)
    if (thrown instanceof HttpError && thrown.code === 'HTTP_RESPONSE')
      throw located(thrown as HttpError<'HTTP_RESPONSE'>, middleware, index, request)
    const response = statusResponse(thrown, request)
    if (response === undefined) throw thrown
    return response
  }
}
