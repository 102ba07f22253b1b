/**
 * The values of `routes`, and their compilation into the router and the constants of the cores.
 *
 * Each value is classified once, at the start: a handler, an app with `fetch`, an arrow with `run`, a table
 * of methods, or a constant.
 */
import { isPlainObject, jsonFault, shown } from '../../base/index.ts'
import { type Constant, TYPE_LAST, TYPES, TypeOf } from '../message/core-interface.ts'
import { HttpError } from '../errors.ts'
import { wrong } from '../message/limits.ts'
import { Connection } from '../fetch/connection.ts'
import type { CorespunRequest } from '../fetch/request.ts'
import { isResponse, responseParts } from '../fetch/response.ts'
import { isWebSocketRoute } from '../websocket/handlers.ts'
import type { WebSocketHandlers } from '../websocket/socket.ts'
import { socketHandler } from '../websocket/upgrade.ts'
import { isNodeApp } from '../listener/node-app.ts'
import type { HttpRequest } from '../message/http-request.ts'
import { Router } from './router.ts'

export type { HttpRequest } from '../message/http-request.ts'

/** JSON-serializable values; sent as `application/json`. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** What a handler may return; objects include iterators. docs/guide/http.md lists how each kind is sent. */
export type ResponseValue = Response | ReadableStream<Uint8Array> | Uint8Array | ArrayBuffer | Json | object

/** Receives each error that no handler catches; its return value, unless `undefined`, is the response. */
export type ErrorHandler = (cause: unknown, request: HttpRequest) => unknown

/** A function that responds to requests. */
export type Handler<Pattern extends string = string> = (
  request: HttpRequest<Pattern>,
) => ResponseValue | Promise<ResponseValue>

/** An arrow of `corespun/arrow`, or any object with `run(request)`. */
export interface ArrowLike {
  /** Receives the request and returns a {@link ResponseValue} or a promise of one. */
  run(input: never): unknown
}

/** A web-standard app, such as one made with hono, itty-router or h3. */
export interface FetchApp {
  /** Receives the request and returns the response. */
  fetch(request: Request, connection: Connection): Response | Promise<Response>
}

/** What responds to one method of a pattern. */
export type Endpoint<Pattern extends string = string> =
  | Handler<Pattern>
  | ArrowLike
  | FetchApp
  | Response
  | Json

/** Endpoints by method, in upper case. */
export type MethodTable<Pattern extends string = string> = {
  readonly [Method in (typeof METHODS)[number]]?: Endpoint<Pattern>
}

/** Handlers of WebSockets, and endpoints for other requests by method. */
export type WebSocketRoute<Pattern extends string = string> = MethodTable<Pattern> & {
  readonly websocket: WebSocketHandlers
}

/** The value of a pattern. A function, arrow or app responds to every method, a constant to GET and HEAD. */
export type RouteValue<Pattern extends string = string> =
  | WebSocketRoute<Pattern>
  | MethodTable<Pattern>
  | Endpoint<Pattern>

/** Handlers and constants by pattern. */
export type Routes<Pattern extends string = string> = { readonly [P in Pattern]: RouteValue<P> }

/** Under this key `use` stores the middleware for requests that match no route. */
export const UNMATCHED = Symbol('corespun.unmatched')

/** Under this key `use` records that it wrapped an app with `fetch`. */
export const HAS_APPS = Symbol('corespun.hasApps')

export type Wrap = (handler: (request: HttpRequest) => unknown) => (request: HttpRequest) => unknown

/** Methods that a table may name. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'] as const

const EXPECTED =
  'a handler, an arrow, an app with fetch(), a Response, a string, bytes, a JSON value, or these by method ' +
  `(${METHODS.join(', ')})`

const NOT_FOR_NODE =
  'a function (request) => Response; an app or handler for (req, res), such as one of express, koa, ' +
  'fastify or Next.js, is passed as nodeHandler(app)'

export interface Whole {
  readonly status: number
  readonly type: number
  readonly lines: string
  readonly body: Uint8Array
}

export interface Compiled {
  /** For errors: `GET /user/:id`. */
  readonly where: string
  /** Undefined for a constant. */
  readonly run: ((request: CorespunRequest) => unknown) | undefined
  /** Set by `ready` if its body must be read first. */
  constant: Whole | undefined
}

export interface CompiledRoutes {
  readonly router: Router<Compiled>
  /** Middleware for 404 and 405 responses. */
  readonly unmatched: Wrap | undefined
  /** Whether a route is an app with `fetch`, as frameworks make them. */
  readonly hasApps: boolean
  /** Reads what can only be read asynchronously. Rejects when a constant's body cannot be read. */
  ready(): Promise<void>
  /** For the core; complete after `ready`. */
  constants(): Constant[]
}

/**
 * @throws {HttpError} `HTTP_ROUTE`, `HTTP_ROUTE_CONFLICT`, or `HTTP_ARGUMENT` for an invalid value.
 */
export function compileRoutes(routes: unknown, call: string): CompiledRoutes {
  if (!isPlainObject(routes)) throw wrong(`${call}: routes`, 'an object of patterns', routes)
  const router = new Router<Compiled>()
  const late: (() => Promise<void>)[] = []
  for (const [pattern, given] of Object.entries(routes)) {
    const value = isWebSocketRoute(given) ? withSockets(given, pattern) : given
    if (value === undefined) throw wrong(`routes['${pattern}']`, 'a handler or a constant', value)
    const isTable = isMethodTable(value)
    const table = isTable ? Object.entries(value) : [[methodFor(value), value] as const]
    for (const [method, endpoint] of table) {
      if (endpoint === undefined) continue
      const where = method === '*' ? pattern : `${method} ${pattern}`
      const option = `routes['${pattern}']${isTable ? `.${method}` : ''}`
      router.add(pattern, method, compile(endpoint, where, option, late))
    }
  }
  let reading: Promise<void> | undefined
  return {
    router,
    hasApps: hasApps(routes),
    unmatched: (routes as { readonly [UNMATCHED]?: Wrap })[UNMATCHED],
    ready: () => (reading ??= Promise.all(late.map((read) => read())).then(() => {})),
    constants: () => constantsOf(router),
  }
}

/**
 * A table in which requests for a WebSocket are handled by GET, and others as before.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function withSockets(
  { websocket, ...table }: { readonly websocket: object } & Record<string, unknown>,
  pattern: string,
): Record<string, unknown> {
  const option = `routes['${pattern}']`
  const { GET: page } = table
  const otherwise = page === undefined ? undefined : runnerOf(page, `${option}.GET`)
  const all = { ...table, GET: socketHandler(websocket, `${option}.websocket`, otherwise) }
  if (!isMethodTable(all))
    throw wrong(option, `websocket and a table of methods (${METHODS.join(', ')})`, table)
  return all
}

/**
 * The function that runs any value of a route, a constant as well.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function runnerOf(value: unknown, option: string): (request: HttpRequest) => unknown {
  if (isNodeApp(value)) throw wrong(option, NOT_FOR_NODE, value)
  const run = runOf(value)
  if (run !== undefined) return run as (request: HttpRequest) => unknown
  if (isResponse(value)) return () => value.clone()
  wholeOf(value, option)
  return () => value
}

/** Whether a route is an app with `fetch`, also where `use` has wrapped it. */
export function hasApps(routes: object): boolean {
  if (HAS_APPS in routes) return true
  return Object.values(routes).some(
    (value) => isApp(value) || (isMethodTable(value) && Object.values(value).some(isApp)),
  )
}

/** Whether all keys of a value are methods. */
export function isMethodTable(value: unknown): value is Record<string, unknown> {
  if (!isPlainObject(value)) return false
  const keys = Object.keys(value)
  return keys.length > 0 && keys.every((key) => (METHODS as readonly string[]).includes(key))
}

function methodFor(value: unknown): string {
  return runOf(value) === undefined ? 'GET' : '*'
}

function compile(value: unknown, where: string, option: string, late: (() => Promise<void>)[]): Compiled {
  if (isNodeApp(value)) throw wrong(option, NOT_FOR_NODE, value)
  const run = runOf(value)
  if (run !== undefined) return { where, run, constant: undefined }
  const compiled: Compiled = { where, run: undefined, constant: undefined }
  if (isResponse(value)) late.push(() => readConstant(value, compiled))
  else compiled.constant = wholeOf(value, option)
  return compiled
}

/** The function that runs a value; `undefined` for a constant. */
function runOf(value: unknown): Compiled['run'] {
  if (typeof value === 'function') return value as (request: CorespunRequest) => unknown
  if (value === null || typeof value !== 'object') return undefined
  if (isApp(value)) return runOfApp(value)
  const { run } = value as { run?: unknown }
  if (typeof run === 'function') return (request) => (value as unknown as ArrowLike).run(request as never)
  return undefined
}

/** The handler that runs an app. */
function runOfApp(app: FetchApp): (request: CorespunRequest) => Response | Promise<Response> {
  return (request) => app.fetch(request, new Connection(request))
}

function isApp(value: unknown): value is FetchApp {
  return typeof value === 'object' && value !== null && 'fetch' in value && typeof value.fetch === 'function'
}

/** @param option As the program wrote it: `routes['/a']`, `routes['/a'].GET`. */
function wholeOf(value: unknown, option: string): Whole {
  if (typeof value === 'string') return whole(TypeOf.text, Buffer.from(value))
  if (value instanceof Uint8Array) return whole(TypeOf.bytes, new Uint8Array(value))
  if (value instanceof ArrayBuffer) return whole(TypeOf.bytes, new Uint8Array(value.slice()))
  const text = isJson(value) ? jsonOfOption(value, option) : undefined
  if (text !== undefined) return whole(TypeOf.json, Buffer.from(text))
  throw wrong(option, tableExpected(value) ?? EXPECTED, value)
}

/** What a table of methods must be that has a handler under another name. */
function tableExpected(value: unknown): string | undefined {
  if (!isPlainObject(value)) return undefined
  const methods: readonly string[] = METHODS
  const name = Object.keys(value).find((key) => typeof value[key] === 'function' && !methods.includes(key))
  if (name === undefined) return undefined
  return methods.includes(name.toUpperCase())
    ? `a table of methods; method names are upper case: ${name.toUpperCase()} instead of ${name}`
    : `a table of methods (${METHODS.join(', ')}), which ${name} is not`
}

/** Whether the top level of a value is JSON: `{Get: handler}` would be sent as `{}`. */
function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return true
  if (Array.isArray(value)) return true
  return isPlainObject(value) && Object.values(value).every((field) => typeof field !== 'function')
}

function jsonOfOption(value: unknown, option: string): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    const received = jsonFault(value) ?? shown(value)
    const facts = { name: option, expected: 'a JSON-serializable value', received }
    throw new HttpError('HTTP_ARGUMENT', facts, { cause })
  }
}

function whole(type: number, body: Uint8Array): Whole {
  return { status: 200, type, lines: '', body }
}

async function readConstant(response: Response, compiled: Compiled): Promise<void> {
  const { status, head, body } = responseParts(response)
  const bytes =
    typeof body === 'string'
      ? Buffer.from(body)
      : body instanceof Uint8Array
        ? body
        : new Uint8Array(await wholeBody(response))
  compiled.constant = { status, type: head.type, lines: head.lines, body: bytes }
}

function wholeBody(response: Response): Promise<ArrayBuffer> {
  return response.body === null ? Promise.resolve(new ArrayBuffer(0)) : response.clone().arrayBuffer()
}

/** Only fixed paths, since the core compares paths and does not match patterns. It derives HEAD from GET. */
function constantsOf(router: Router<Compiled>): Constant[] {
  const constants: Constant[] = []
  for (const { pattern, names, methods } of router.routes) {
    if (names.length > 0) continue
    const path = new URL(`http://x${pattern}`).pathname
    for (const [method, { constant }] of methods) {
      if (constant === undefined || (method === 'GET' && methods.has('HEAD'))) continue
      const { status, type, lines, body } = constant
      if (type >= TYPE_LAST) continue // the core's constants persist
      const typed = type === TypeOf.none ? lines : `content-type: ${TYPES[type as 1]}\r\n${lines}`
      constants.push({ method, path, status, headers: typed, body })
    }
  }
  return constants
}

export function fetchOf(call: string, value: unknown): ((request: Request) => unknown) | undefined {
  if (value === undefined) return undefined
  if (isNodeApp(value)) throw wrong(`${call}: fetch`, NOT_FOR_NODE, value)
  if (typeof value !== 'function') throw wrong(`${call}: fetch`, 'a function (request) => Response', value)
  const fetch = value as (request: Request, connection: Connection) => unknown
  return (request) => fetch(request, new Connection(request as CorespunRequest))
}
