/**
 * Cross-origin requests (CORS), as specified by the Fetch standard.
 *
 * It is part of Corespun because its headers must also be on errors, 404 and 405. Preflights never reach a
 * handler. A request of an origin that is not allowed still runs: its response lacks the headers, and the
 * browser hides it from the page. Defaults: every origin, no credentials, preflights cached for 600 s.
 */
import { CorespunResponse } from '../fetch/response.ts'
import { type Kind, anything, flag, integer, optionsOf } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import { carry } from '../app/carried.ts'
import { HANDLES_OPTIONS, EVERYWHERE, type Middleware } from '../app/middleware.ts'

/** Options of {@link cors}. */
export interface CorsOptions {
  /** Allowed origins: `'*'` for all, one or several names, or a predicate. Default '*'. */
  readonly origin?: '*' | string | readonly string[] | ((origin: string) => boolean)
  /** Allowed methods besides GET, HEAD and POST. Default PUT, PATCH, DELETE. */
  readonly methods?: readonly string[]
  /** Allowed request headers. Default: those that the preflight names. */
  readonly allowHeaders?: readonly string[]
  /** Response headers that scripts may read, besides the standard's. Default: none. */
  readonly exposeHeaders?: readonly string[]
  /** Whether browsers send cookies; requires an `origin` other than '*'. Default false. */
  readonly credentials?: boolean
  /** How long a browser may cache a preflight, in seconds, 0 to 86,400. Default 600. */
  readonly maxAgeS?: number
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const ASKED = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:\s*,\s*[!#$%&'*+\-.^_`|~0-9A-Za-z]+)*$/

function tokens<T>(otherwise: T): Kind<readonly string[] | T> {
  const accepts = (value: unknown): boolean =>
    Array.isArray(value) && value.every((one) => typeof one === 'string' && TOKEN.test(one))
  return { expected: 'an array of names', accepts, default: otherwise }
}

const OPTIONS = {
  origin: anything,
  methods: tokens(['PUT', 'PATCH', 'DELETE'] as const),
  allowHeaders: tokens(undefined),
  exposeHeaders: tokens([]),
  credentials: flag(false),
  maxAgeS: integer(0, 86_400, 600),
}

interface Rules {
  readonly isAllowed: (origin: string) => boolean
  readonly isOpen: boolean
  readonly methods: string
  readonly allowHeaders: string | undefined
  readonly exposeHeaders: string
  readonly credentials: boolean
  readonly maxAge: string
}

/**
 * Middleware that allows requests from pages of other origins.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options, and for `credentials` with the origin '*'.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { cors, createApp, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': 'Hello' }, cors({ origin: 'https://example.com' })) })
 * const response = await app.inject('/', { headers: { origin: 'https://example.com' } })
 * assert.equal(response.headers.get('access-control-allow-origin'), 'https://example.com')
 * ```
 */
export function cors(options?: CorsOptions): Middleware {
  const rules = parsed(options)
  const middleware: Middleware = (request, next) => {
    const origin = request.headers.get('origin')
    const headers = carry(request)
    if (!rules.isOpen) headers.append('vary', 'Origin')
    const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method')
    if (origin === null || !rules.isAllowed(origin)) return isPreflight ? responded() : next()
    headers.set('access-control-allow-origin', rules.isOpen ? '*' : origin)
    if (rules.credentials) headers.set('access-control-allow-credentials', 'true')
    if (!isPreflight) {
      if (rules.exposeHeaders !== '') headers.set('access-control-expose-headers', rules.exposeHeaders)
      return next()
    }
    headers.set('access-control-allow-methods', rules.methods)
    headers.set('access-control-max-age', rules.maxAge)
    const asked = request.headers.get('access-control-request-headers') ?? ''
    const allowed = rules.allowHeaders ?? (ASKED.test(asked) ? asked : '')
    if (rules.allowHeaders === undefined) headers.append('vary', 'Access-Control-Request-Headers')
    if (allowed !== '') headers.set('access-control-allow-headers', allowed)
    return responded()
  }
  // Where no route is, the page shall read that. A route without CORS stays closed: its OPTIONS is not 404.
  const unmatched: Middleware = async (request, next) => {
    const response = await next()
    if (request.method === 'OPTIONS' && response.status !== 404) return response
    return middleware(request, () => Promise.resolve(response))
  }
  return Object.assign(middleware, { [HANDLES_OPTIONS]: true, [EVERYWHERE]: unmatched })
}

function responded(): Response {
  return new CorespunResponse(null, { status: 204 })
}

function parsed(options: CorsOptions | undefined): Rules {
  const given = optionsOf(options, OPTIONS, wrong, 'cors()')
  const { origin = '*', credentials, maxAgeS, methods, allowHeaders, exposeHeaders } = given
  if (credentials && origin === '*')
    throw wrong('cors(): `credentials: true`', 'explicit origins', origin, { verb: 'needs' })
  return {
    isAllowed: originTest(origin),
    isOpen: origin === '*',
    methods: ['GET', 'HEAD', 'POST', ...methods].join(', '),
    allowHeaders: allowHeaders === undefined ? undefined : allowHeaders.join(', '),
    exposeHeaders: exposeHeaders.join(', '),
    credentials,
    maxAge: String(maxAgeS),
  }
}

function originTest(origin: unknown): (origin: string) => boolean {
  if (origin === '*') return () => true
  if (typeof origin === 'function') return (given) => (origin as (given: string) => unknown)(given) === true
  const names: unknown[] = Array.isArray(origin) ? (origin as unknown[]) : [origin]
  for (const name of names) {
    const isOrigin = typeof name === 'string' && URL.canParse(name) && new URL(name).origin === name
    if (!isOrigin)
      throw wrong('cors(): origin', "'*', origins such as 'https://example.com', or a function", name)
  }
  const known = new Set(names as string[])
  return (given) => known.has(given)
}
