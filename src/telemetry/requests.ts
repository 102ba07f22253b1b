/**
 * HTTP requests as server spans of OpenTelemetry, under the span of their client.
 *
 * Names and attributes are those of the semantic conventions for HTTP servers. A span ends when the head of
 * its response is decided, as a record of the access log; a streamed body takes longer. It ends also when the
 * connection closes before: its handler may never settle.
 */
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  context,
  propagation,
  trace,
} from '@opentelemetry/api'
import { optionsOf } from '../base/index.ts'
import type { HttpRequest, Middleware } from '../http/index.ts'
import { HttpError, statusOf, wrong } from '../http/internal.ts'
import {
  EVERYWHERE,
  FOR_ROUTE,
  countTrace,
  isClientDisconnected,
  onClosed,
} from '../http/middleware/internal.ts'
import { checkedTrace } from '../zone/internal.ts'
import { contextOf, traceparentOf } from './context.ts'
import { failed } from './tasks.ts'
import { PROVIDER, type TelemetryOptions, tracerOf } from './tracer.ts'

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

/**
 * Middleware that makes a span of each request, under the one of the `traceparent` header (or of the
 * propagators that the SDK has registered). The handler runs in it, so its calls to zones and other spans
 * are below it. Pass it to `use`, so that spans have the route's pattern as `http.route`; it also runs for
 * requests without a route.
 * @param options.tracerProvider Default: the global one.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { createApp, use } from 'corespun/http'
 * import { traceRequests } from 'corespun/telemetry'
 *
 * const app = createApp({ routes: use({ '/': 'Hello' }, traceRequests()) })
 * assert.equal(await (await app.inject('/')).text(), 'Hello')
 * ```
 */
export function traceRequests(options?: TelemetryOptions): Middleware {
  const { tracerProvider } = optionsOf(options, { tracerProvider: PROVIDER }, wrong, 'traceRequests()')
  const forRoute = (route: string | undefined): Middleware => middlewareOf(tracerProvider, route)
  const middleware = forRoute(undefined)
  return Object.assign(middleware, { [EVERYWHERE]: forRoute(undefined), [FOR_ROUTE]: forRoute })
}

function middlewareOf(provider: TracerProvider | undefined, route: string | undefined): Middleware {
  return async (request, next) => {
    const parent = parentOf(request.headers)
    const method = METHODS.has(request.method) ? request.method : 'HTTP'
    const span = tracerOf(provider).startSpan(
      route === undefined ? method : `${method} ${route}`,
      { kind: SpanKind.SERVER, attributes: attributesOf(request, route) },
      parent,
    )
    countTrace(request, traceparentOf(span.spanContext()))
    let isOver = false
    onClosed(request, () => {
      if (isOver) return
      isOver = true
      failed(span, new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'the request' }))
    })
    let response: Response
    try {
      response = await context.with(trace.setSpan(parent, span), next)
    } catch (error) {
      if (!isOver) thrown(span, request, error)
      isOver = true
      throw error
    }
    if (isOver) return response
    isOver = true
    responded(span, response.type === 'error' || response.bodyUsed ? 500 : response.status)
    span.end()
    return response
  }
}

/** The context of the client's span; the root without one. */
function parentOf(headers: Headers): Context {
  if (propagation.fields().length === 0) {
    const given = (name: string): string | undefined => headers.get(name) ?? undefined
    return contextOf(
      checkedTrace({
        traceparent: given('traceparent'),
        tracestate: given('tracestate'),
        baggage: given('baggage'),
      }),
    )
  }
  return propagation.extract(ROOT_CONTEXT, headers, {
    get: (from, name) => from.get(name) ?? undefined,
    keys: (from) => [...from.keys()],
  })
}

function attributesOf(request: HttpRequest, route: string | undefined): Attributes {
  const { method } = request
  const url = new URL(request.url)
  const agent = request.headers.get('user-agent')
  const known = METHODS.has(method)
  return {
    'http.request.method': known ? method : '_OTHER',
    ...(known ? {} : { 'http.request.method_original': method }),
    ...(route === undefined ? {} : { 'http.route': route }),
    'url.scheme': url.protocol.slice(0, -1),
    'url.path': url.pathname,
    ...(url.search === '' ? {} : { 'url.query': url.search.slice(1) }),
    'server.address': url.hostname,
    'server.port': url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
    ...(request.remoteAddress === '' ? {} : { 'client.address': request.remoteAddress }),
    ...(agent === null ? {} : { 'user_agent.original': agent }),
  }
}

function responded(span: Span, status: number): void {
  span.setAttribute('http.response.status_code', status)
  if (status < 500) return
  span.setAttribute('error.type', `${status}`)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/** The handler has thrown what is not a response. */
function thrown(span: Span, request: HttpRequest, error: unknown): void {
  // Without a response there is no status.
  const status = isClientDisconnected(request, error) ? 0 : statusOf(error)
  if (status !== 0) responded(span, status)
  if (status === 0 || status >= 500) failed(span, error)
  else span.end()
}
