/**
 * `corespun/client`: a typed function that calls the routes of a server, or of an app in the same process.
 *
 * It has the types of the routes and none of their code: this module imports nothing, so it is what a browser
 * loads. Retries, deadlines and caches are left to what the caller has for any promise.
 * @module corespun/client
 */
import type {
  Contract,
  Params,
  Problem,
  ResponseBodyOf,
  ResponseSchemas,
  Schema,
  SchemaInput,
} from './http/index.ts'

type MethodName = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'QUERY'
type AnyFunction = (...args: never[]) => unknown
/** The routes of a module that exports them, or the routes themselves. */
type RoutesOf<App> = App extends { readonly routes: infer Routes } ? Routes : App

/** Methods that the value of a pattern responds to. */
export type ClientMethods<Value> = Value extends AnyFunction ? MethodName : Extract<keyof Value, MethodName>

type ContractOf<Value, Method> = Value extends { readonly '~contract': infer C extends Contract }
  ? C
  : Method extends keyof Value
    ? Value[Method] extends { readonly '~contract': infer C extends Contract }
      ? C
      : Contract
    : Contract

type Accepted<S, Otherwise> = S extends Schema ? SchemaInput<S> : Otherwise
/** Optional where nothing of it is required. */
type Field<Name extends string, Value> = {} extends Value
  ? { readonly [N in Name]?: Value }
  : undefined extends Value
    ? { readonly [N in Name]?: Value }
    : { readonly [N in Name]: Value }

/** What a call of this contract sends. */
export type ClientInput<C extends Contract, Pattern extends string> = Field<
  'params',
  Accepted<C['params'], Params<Pattern>>
> &
  Field<'query', Accepted<C['query'], Readonly<Record<string, unknown>> | undefined>> &
  Field<'body', Accepted<C['body'], unknown>> & {
    /** Further headers. */
    readonly headers?: Readonly<Record<string, string>>
    /** Ends the call. */
    readonly signal?: AbortSignal
  }

/** A response of which the status and the body are known. */
interface Known<Status, Body> {
  readonly status: Status
  /** JSON as its value, other types and malformed JSON of an error as text; `undefined` for an empty body. */
  readonly body: Body
  readonly headers: Headers
}

type Informed<R extends ResponseSchemas> =
  | { [Status in keyof R & number]: Known<Status, ResponseBodyOf<R[Status]>> }[keyof R & number]
  | Known<Exclude<Refused, keyof R>, Problem>
  | Known<Exclude<OtherStatus, keyof R>, unknown>

/** What a call of this contract resolves to: `status` decides what `body` is. */
export type ClientReply<C extends Contract> = C['responses'] extends ResponseSchemas
  ? Informed<C['responses']>
  : Known<number, unknown>

type Refused = 400 | 415 | 422
// Literals, since a `number` would be every status.
type OtherStatus =
  | (200 | 201 | 202 | 203 | 204 | 205 | 206 | 300 | 301 | 302 | 303 | 304 | 307 | 308)
  | (
      | 401
      | 402
      | 403
      | 404
      | 405
      | 406
      | 407
      | 408
      | 409
      | 410
      | 411
      | 412
      | 413
      | 414
      | 416
      | 417
      | 418
      | 421
    )
  | (423 | 424 | 425 | 426 | 428 | 429 | 431 | 451 | 500 | 501 | 502 | 503 | 504 | 505 | 507 | 508 | 511)

/** Calls a route by its method and pattern. */
export type Client<Routes> = <
  Pattern extends keyof Routes & string,
  Method extends ClientMethods<Routes[Pattern]>,
>(
  method: Method,
  pattern: Pattern,
  ...input: {} extends ClientInput<ContractOf<Routes[Pattern], Method>, Pattern>
    ? [input?: ClientInput<ContractOf<Routes[Pattern], Method>, Pattern>]
    : [input: ClientInput<ContractOf<Routes[Pattern], Method>, Pattern>]
) => Promise<ClientReply<ContractOf<Routes[Pattern], Method>>>

/** An app in the same process: what `createApp` and `serve` return. */
export interface ClientApp {
  /** As `fetch`, without a socket. */
  inject(input: string, init?: RequestInit): Promise<Response>
}

interface Sent {
  readonly params?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/**
 * Returns a function that calls the routes of an app by fetch, or in the same process. Its types are those of
 * the routes, or of a module that exports `routes`; nothing is checked here, since the server does it. It
 * rejects as `fetch` does, and resolves for every status.
 * @param target The URL of the server, or an app.
 * @throws {TypeError} For another target. The function rejects with one for a parameter that no path has.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { client } from 'corespun/client'
 * import { createApp, route } from 'corespun/http'
 * import { z } from 'zod'
 *
 * const User = z.object({ id: z.string() })
 * const get = route({ params: User, responses: { 200: User } }, ({ params }) => params)
 * const routes = { '/users/:id': { GET: get } }
 * const call = client<typeof routes>(createApp({ routes }))
 * const { status, body } = await call('GET', '/users/:id', { params: { id: '7' } })
 * assert.deepEqual([status, body], [200, { id: '7' }])
 * ```
 */
export function client<App extends object>(target: string | URL | ClientApp): Client<RoutesOf<App>> {
  const send = senderOf(target)
  const call = async (method: string, pattern: string, input: Sent = {}): Promise<Known<number, unknown>> => {
    const { body, signal, query } = input
    const headers = new Headers(input.headers)
    if (body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json')
    const response = await send(pathOf(pattern, input.params ?? {}) + queryOf(query), {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    return { status: response.status, headers: response.headers, body: await bodyOf(response) }
  }
  return call as unknown as Client<RoutesOf<App>>
}

type Send = (path: string, init: RequestInit) => Promise<Response>

function senderOf(target: unknown): Send {
  if (typeof target === 'string' || target instanceof URL) {
    const base = new URL(target).href.replace(/[?#].*$/, '').replace(/\/$/, '')
    return (path, init) => fetch(base + path, init)
  }
  if (typeof (target as Partial<ClientApp> | undefined)?.inject !== 'function')
    throw new TypeError('client() needs the URL of a server, or an app with inject()')
  const app = target as ClientApp
  return (path, init) => app.inject(path, init)
}

function pathOf(pattern: string, params: Readonly<Record<string, unknown>>): string {
  return pattern
    .split('/')
    .map((segment) => {
      if (segment.startsWith(':')) return encoded(pattern, segment.slice(1), params)
      if (!segment.startsWith('*')) return segment
      const rest = valueOf(pattern, segment === '*' ? '*' : segment.slice(1), params)
      const parts = rest === '' ? [] : rest.split('/')
      return parts.map((part) => encodedPart(pattern, segment, part)).join('/')
    })
    .join('/')
}

function encoded(pattern: string, name: string, params: Readonly<Record<string, unknown>>): string {
  return encodedPart(pattern, name, valueOf(pattern, name, params))
}

function valueOf(pattern: string, name: string, params: Readonly<Record<string, unknown>>): string {
  const value = params[name]
  if (value === undefined || value === null) throw new TypeError(`client(): ${pattern} needs params.${name}`)
  return String(value)
}

/** A URL would resolve dots, and lead to another route. */
function encodedPart(pattern: string, name: string, value: string): string {
  if (value === '' || value === '.' || value === '..')
    throw new TypeError(
      `client(): ${JSON.stringify(value)} of ${name} is not a segment of a path (${pattern})`,
    )
  return encodeURIComponent(value)
}

function queryOf(query: Readonly<Record<string, unknown>> = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null) search.append(name, String(one))
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text()
  if (text === '') return undefined
  const type = response.headers.get('content-type') ?? ''
  if (!/^application\/(?:[^;\s]+\+)?json *(?:;|$)/i.test(type)) return text
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    if (response.ok) throw error
    return text // of a proxy, or cut: the status counts
  }
}
