/**
 * Functions around handlers: `use(routes, requestId(), cors())`.
 *
 * A middleware gets the request and `next`, which runs what lies inside and gives its answer as a Response.
 * Routes without middleware are not touched and keep their way without a promise. Of several, the first is
 * the outermost. A StatusError or a thrown Response is an answer for everything further out.
 */
import { CorespunResponse, NativeResponse } from '../fetch/response.ts'
import {
  type ResponseValue,
  type Handler,
  HAS_APPS,
  hasApps,
  type HttpRequest,
  isMethodTable,
  type Routes,
  UNMATCHED,
  wholeOf,
  type Wrap,
} from '../app/routes.ts'
import { wrong } from '../limits.ts'
import { carriedHeaders, withCarried } from '../app/carried.ts'
import { statusResponse } from '../app/status-error.ts'
import { responseOf } from '../app/value.ts'

/** Runs what lies inside. Rejects with errors that are no answers. */
export type Next = () => Promise<Response>

/** Stands around handlers; see the file's text. */
export type Middleware = (request: HttpRequest, next: Next) => ResponseValue | Promise<ResponseValue>

type AnyHandler = (request: HttpRequest) => unknown

/**
 * Marks a middleware that is also wanted where no route is: ids and logs know every request. True, or what
 * stands there in its place.
 */
export const EVERYWHERE = Symbol('corespun.everywhere')

/** Marks a middleware that answers OPTIONS by itself, so routes get that method for it. */
export const HANDLES_OPTIONS = Symbol('corespun.handlesOptions')

/**
 * A handler with middleware around it.
 * @throws {HttpError} `HTTP_ARGUMENT` for what is no function.
 */
export function withMiddleware<Pattern extends string>(
  handler: Handler<Pattern>,
  ...middleware: readonly Middleware[]
): Handler<Pattern> {
  if (typeof handler !== 'function') throw wrong('withMiddleware(): the handler', 'a function', handler)
  return chained(handler as AnyHandler, checked(middleware)) as Handler<Pattern>
}

/**
 * All routes with middleware around them: handlers, apps, arrows and constants alike. Give the result, with
 * others beside it, to `serve`. `requestId()`, `accessLog()` and `cors()` stand around its 404 and 405 too;
 * of several such results beside each other those of the last.
 * @throws {HttpError} `HTTP_ARGUMENT` for what is no function, and for routes that `serve` would refuse so.
 */
export function use<Pattern extends string>(
  routes: Routes<Pattern>,
  ...middleware: readonly Middleware[]
): Routes<Pattern> {
  const list = checked(middleware)
  const handlesOptions = list.some((one) => HANDLES_OPTIONS in one)
  const wrapped = Object.entries(routes).map(([pattern, value]) => [
    pattern,
    isMethodTable(value)
      ? tableOf(pattern, value, list, handlesOptions)
      : endpointOf(pattern, value, list, handlesOptions),
  ])
  const result = Object.fromEntries(wrapped) as Routes<Pattern>
  if (hasApps(routes)) Object.assign(result, { [HAS_APPS]: true })
  const unmatched = unmatchedOf(list, (routes as { readonly [UNMATCHED]?: Wrap })[UNMATCHED])
  return unmatched === undefined ? result : Object.assign(result, { [UNMATCHED]: unmatched })
}

/** What stands around 404 and 405, with what stood there before inside of it. */
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
  }
  return middleware as readonly Middleware[]
}

function tableOf(
  pattern: string,
  table: Record<string, unknown>,
  list: readonly Middleware[],
  handlesOptions: boolean,
): Record<string, unknown> {
  // What is undefined answers nothing, as in a table that is not wrapped.
  const methods = Object.keys(table).filter((method) => table[method] !== undefined)
  const entries = methods.map(
    (method) => [method, chained(runnerOf(table[method], `${method} ${pattern}`), list)] as const,
  )
  const wrapped: Record<string, unknown> = { ...table, ...Object.fromEntries(entries) }
  if (handlesOptions) wrapped['OPTIONS'] ??= chained(() => allowed(methods), list)
  return wrapped
}

/** A function, arrow or app answers every method, a constant GET and HEAD. */
function endpointOf(
  pattern: string,
  value: unknown,
  list: readonly Middleware[],
  handlesOptions: boolean,
): unknown {
  if (value === undefined) throw wrong(`routes['${pattern}']`, 'what answers there', value)
  const run = runnerOf(value, `GET ${pattern}`)
  return isConstant(value) ? tableOf(pattern, { GET: run }, list, handlesOptions) : chained(run, list)
}

function isConstant(value: unknown): boolean {
  if (typeof value === 'function') return false
  if (value === null || typeof value !== 'object') return true
  const { fetch, run } = value as { fetch?: unknown; run?: unknown }
  return typeof fetch !== 'function' && typeof run !== 'function'
}

/** @throws {HttpError} `HTTP_ARGUMENT` for a constant that can be none. */
function runnerOf(value: unknown, where: string): AnyHandler {
  if (typeof value === 'function') return value as AnyHandler
  if (value instanceof NativeResponse) return () => value.clone()
  if (isConstant(value)) {
    wholeOf(value, where)
    return () => value
  }
  const { fetch } = value as { fetch?: unknown }
  if (typeof fetch === 'function') return (request) => (value as { fetch: AnyHandler }).fetch(request)
  return (request) => (value as { run: AnyHandler }).run(request)
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
  return async (request) => {
    const response = await step(handler, list, 0, request)
    return withCarried(response, carriedHeaders(request))
  }
}

async function step(
  handler: AnyHandler,
  list: readonly Middleware[],
  index: number,
  request: HttpRequest,
): Promise<Response> {
  const middleware = list[index]
  try {
    if (middleware === undefined) return responseOf(await handler(request))
    return responseOf(await middleware(request, () => step(handler, list, index + 1, request)))
  } catch (thrown) {
    if (thrown instanceof NativeResponse) return thrown
    const response = statusResponse(thrown, request)
    if (response === undefined) throw thrown
    return response
  }
}
