/**
 * `route(contract, handler)`: a handler whose request is checked by schemas, and which is typed by them.
 *
 * It is a handler like any other: the app, middleware and the router see a function of a request. What is
 * checked is decided once, when `route` is called; a body that has arrived and synchronous schemas are
 * checked without a promise. A request that does not fit never reaches the handler, and never throws.
 */
import { callback, flag, integer, isPlainObject, optionsOf, promiseOf, type Kind } from '../../base/index.ts'
import { HttpError } from '../errors.ts'
import type { HttpRequest, ResponseValue } from '../app/routes.ts'
import { jsonOf } from '../app/value.ts'
import { bodyNow, headerNow } from '../fetch/request.ts'
import { NO_BYTES } from '../fetch/request-body.ts'
import { CorespunResponse, isResponse } from '../fetch/response.ts'
import { wrong } from '../message/limits.ts'
import { limitBody } from '../app/body-limit.ts'
import { accepting, converting } from './accepts.ts'
import { Faults, issuesLine, type RequestPart } from './faults.ts'
import { jsonIn, type LargeBody } from './large.ts'
import { isJsonType, queryReader, readCookies, readHeaders, type ReadPart } from './parts.ts'
import { Responded } from './responded.ts'
import { isSchema, type Schema, type SchemaResult, validated } from './schema.ts'
import type { Contract, ResponseSchemas, Route, RouteInput, RouteReturned } from './types.ts'
import { undeclared } from './undeclared.ts'

const SCHEMA: Kind<Schema | undefined> = {
  expected: 'a schema with the Standard Schema interface, such as those of zod, valibot and arktype',
  accepts: isSchema,
  default: undefined,
}
const RESPONSES: Kind<ResponseSchemas | undefined> = {
  expected: 'schemas, or null for no body (always of 204, 205 and 304), by status from 200 to 599',
  accepts: (value) =>
    isPlainObject(value) &&
    Object.entries(value).every(
      ([status, schema]) =>
        /^[2-5]\d\d$/.test(status) &&
        (schema === null || (isSchema(schema) && !/^(204|205|304)$/.test(status))),
    ),
  default: undefined,
}
/**
 * Of a contract without `large`: a list of wrong items has a fault for every two bytes, for each of which a
 * library needs half a kilobyte.
 */
const BODY_BYTES_MAX = 128 * 1024
const LARGE: Kind<LargeBody | undefined> = {
  expected: '{ bytesMin, read }, an integer from 0 and a function',
  accepts: (value) =>
    isPlainObject(value) &&
    Number.isSafeInteger(value['bytesMin']) &&
    (value['bytesMin'] as number) >= 0 &&
    callback.accepts(value['read']),
  default: undefined,
}
const text = (expected: string): Kind<string | undefined> => ({
  expected,
  accepts: (value) => typeof value === 'string',
  default: undefined,
})
const CONTRACT = {
  params: SCHEMA,
  query: SCHEMA,
  headers: SCHEMA,
  cookies: SCHEMA,
  body: SCHEMA,
  responses: RESPONSES,
  checkResponses: flag<boolean | undefined>(undefined),
  large: LARGE,
  bodyBytesMax: integer<undefined>(0, 2 ** 40, undefined),
  summary: text('a string'),
  description: text('a string'),
  operationId: text('a string'),
  deprecated: flag(false),
  tags: {
    expected: 'an array of strings',
    accepts: (value) => Array.isArray(value) && value.every((tag) => typeof tag === 'string'),
    default: undefined,
  } as Kind<readonly string[] | undefined>,
  openApi: { expected: 'an object', accepts: isPlainObject, default: undefined } as Kind<
    Record<string, unknown> | undefined
  >,
}

/** What a contract comes to: decided once. */
interface Plan {
  /** All parts but the body. */
  readonly parts: readonly { readonly name: RequestPart; readonly schema: Schema; readonly read: ReadPart }[]
  readonly body: Schema | undefined
  readonly large: LargeBody | undefined
  /** Most bytes of a body that is checked at once, when it is there already. */
  readonly bytesNowMax: number
  /** Most bytes of a body; `undefined`: what the server has. */
  readonly bodyBytesMax: number | undefined
  /** Of a value that is returned without one. */
  readonly status: number
  /** By status; `undefined`: anything may be sent. */
  readonly responses: ResponseSchemas | undefined
  readonly isChecking: boolean
}

/**
 * A handler with a contract: schemas of any library with the Standard Schema interface, by which its input is
 * checked and typed. A request that does not fit gets a response with all of its faults, as problem details
 * (RFC 9457): 422, or 400 for a body that is not JSON, or 415 for one of another content type. Responses are
 * checked by their schemas too, unless NODE_ENV is `production`; one that does not fit is a 500 and an
 * `HTTP_CONTRACT` error.
 * @throws {HttpError} `HTTP_ARGUMENT` for an invalid contract.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, route } from 'corespun/http'
 * import { z } from 'zod'
 *
 * const User = z.object({ name: z.string().min(1) })
 * const rename = route({ body: User, responses: { 200: User } }, ({ params, body }) => ({
 *   name: `${body.name} (${params.id})`,
 * }))
 * const app = createApp({ routes: { '/users/:id': { PUT: rename } } })
 * const put = (body: string) =>
 *   app.inject('/users/7', { method: 'PUT', body, headers: { 'content-type': 'application/json' } })
 * assert.deepEqual(await (await put('{"name": "Ada"}')).json(), { name: 'Ada (7)' })
 * assert.equal((await put('{"name": ""}')).status, 422)
 * ```
 */
export function route<C extends Contract, Pattern extends string = string>(
  contract: C,
  handler: (input: RouteInput<C, Pattern>) => RouteReturned<C> | Promise<RouteReturned<C>>,
): Route<C, Pattern> {
  const plan = planOf(contract)
  if (typeof handler !== 'function') throw wrong('route(): handler', 'a function (input)', handler)
  const run = (request: HttpRequest): unknown => runPlan(plan, request, handler as never)
  return Object.assign(run, { '~contract': contract }) as unknown as Route<C, Pattern>
}

function planOf(contract: Contract): Plan {
  const given = optionsOf(contract, CONTRACT, wrong, 'route()')
  const { params, query, headers, cookies, body, responses, checkResponses, large, bodyBytesMax } = given
  const parts: Plan['parts'][number][] = []
  const add = (name: RequestPart, schema: Schema | undefined, read: ReadPart): void => {
    if (schema !== undefined) parts.push({ name, schema: converting(schema), read })
  }
  // Those of the request are frozen, and arktype converts what it is given.
  add('params', params, (request) => ({ ...request.params }))
  if (query !== undefined) add('query', query, queryReader(query))
  add('headers', headers, readHeaders)
  add('cookies', cookies, readCookies)
  if (large !== undefined && body === undefined)
    throw wrong('route(): large', '`body`, the schema of what it reads', undefined, { verb: 'needs' })
  const [status] = Object.keys(responses ?? {}).filter((name) => name < '300')
  const isChecking = responses !== undefined && (checkResponses ?? process.env['NODE_ENV'] !== 'production')
  const bytesMax = bodyBytesMax ?? (large === undefined ? BODY_BYTES_MAX : undefined)
  return {
    parts,
    body: body && accepting(body),
    large,
    bytesNowMax: Math.min(bytesMax ?? Infinity, (large?.bytesMin ?? Infinity) - 1),
    bodyBytesMax: bytesMax,
    status: Number(status ?? 200),
    responses,
    isChecking,
  }
}

/** What a handler receives; the parts that have no schema stay `undefined`. */
class Input {
  readonly request: HttpRequest
  params: unknown
  query: unknown
  headers: unknown
  cookies: unknown
  body: unknown

  constructor(request: HttpRequest) {
    this.request = request
    this.params = request.params
    this.query = undefined
    this.headers = undefined
    this.cookies = undefined
    this.body = undefined
  }

  respond(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Responded {
    return new Responded(status, body, headers)
  }
}

type AnyHandler = (input: Input) => unknown

/** One request on its way through a plan. */
class Checking {
  readonly input: Input
  faults: Faults | undefined = undefined
  /** Results of asynchronous schemas. */
  later: Promise<void>[] | undefined = undefined

  constructor(request: HttpRequest) {
    this.input = new Input(request)
  }

  check(name: RequestPart, schema: Schema, value: unknown): void {
    const result = validated(schema, value)
    const promise = promiseOf(result) as Promise<SchemaResult<unknown>> | undefined
    if (promise === undefined) return this.settle(name, result as SchemaResult<unknown>)
    const settled = promise.then((found) => this.settle(name, found))
    settled.catch(() => {}) // it is awaited after the body
    ;(this.later ??= []).push(settled)
  }

  settle(name: RequestPart, result: SchemaResult<unknown>): void {
    if (result.issues === undefined) this.input[name] = result.value
    else (this.faults ??= new Faults()).add(name, result.issues)
  }

  refuse(status: 400 | 415, message: string): void {
    ;(this.faults ??= new Faults()).refuse(status, message)
  }
}

function runPlan(plan: Plan, request: HttpRequest, handler: AnyHandler): unknown {
  const checking = new Checking(request)
  for (const { name, schema, read } of plan.parts) checking.check(name, schema, read(request))
  if (plan.body !== undefined) {
    const body = bodyNow(request, plan.bytesNowMax)
    if (body === undefined) return runWithBody(plan, plan.body, checking, handler)
    checkBody(plan.body, body, checking)
  }
  if (checking.later === undefined) return handled(plan, checking, handler)
  return Promise.all(checking.later).then(() => handled(plan, checking, handler))
}

/** A body that is not there yet, that is too long, or that another reads: a promise of the response. */
async function runWithBody(
  plan: Plan,
  schema: Schema,
  checking: Checking,
  handler: AnyHandler,
): Promise<unknown> {
  const { request } = checking.input
  const { bodyBytesMax, large } = plan
  if (bodyBytesMax !== undefined) limitBody(request, bodyBytesMax)
  // A body of another type is not read.
  const isRead = typeFault(request, 0) === undefined
  const body = isRead ? await bodyOf(request, large) : NO_BYTES
  if (large !== undefined && body.length >= large.bytesMin && typeFault(request, body.length) === undefined)
    await readElsewhere(large, body, checking)
  else checkBody(schema, body, checking)
  if (checking.later !== undefined) await Promise.all(checking.later)
  return handled(plan, checking, handler)
}

/** By the method that middleware may have replaced. */
async function bodyOf(request: HttpRequest, large: LargeBody | undefined): Promise<Uint8Array> {
  if (large === undefined && Object.hasOwn(request, 'text')) return Buffer.from(await request.text())
  return new Uint8Array(await request.arrayBuffer())
}

function checkBody(schema: Schema, body: Uint8Array, checking: Checking): void {
  const fault = typeFault(checking.input.request, body.length)
  if (fault !== undefined) return checking.refuse(415, fault)
  const parsed = jsonIn(body)
  if ('malformed' in parsed) checking.refuse(400, parsed.malformed)
  else checking.check('body', schema, parsed.value)
}

/** Why the content type does not fit a body of so many bytes. */
function typeFault(request: HttpRequest, bytes: number): string | undefined {
  const type = headerNow(request, 'content-type') ?? request.headers.get('content-type')
  if (type === null ? bytes === 0 : isJsonType(type)) return undefined
  return `content-type must be application/json; received ${type ?? 'none'}`
}

async function readElsewhere({ read }: LargeBody, bytes: Uint8Array, checking: Checking): Promise<void> {
  const result = await read(bytes)
  if ('value' in result) checking.input.body = result.value
  else if ('malformed' in result) checking.refuse(400, result.malformed)
  else (checking.faults ??= new Faults()).add('body', result.issues, result.leftOut)
}

type Reply = Pick<Responded, 'status' | 'body' | 'headers'>

/** What is sent: the faults, or what the handler returned. */
function handled(plan: Plan, { faults, input }: Checking, handler: AnyHandler): unknown {
  if (faults !== undefined) return faults.response(input.request)
  const value = handler(input)
  const promise = promiseOf(value)
  if (promise === undefined) return sent(plan, value, input.request)
  return promise.then((found) => sent(plan, found, input.request))
}

/** A value of a handler, checked if that is due, as the response. */
function sent(plan: Plan, value: unknown, request: HttpRequest): unknown {
  if (isResponse(value)) return value
  const isResponded = value instanceof Responded
  if (plan.responses === undefined && !isResponded) return value
  const reply: Reply = isResponded ? value : { status: plan.status, body: value, headers: undefined }
  if (!plan.isChecking) return asResponse(plan, reply, request)
  const checked = checkResponse(plan.responses!, reply, request)
  if (checked === undefined) return asResponse(plan, reply, request)
  return checked.then(() => asResponse(plan, reply, request))
}

/** JSON, also of a string: a contract states what is sent as JSON. */
function asResponse(
  { responses }: Plan,
  { status, body, headers }: Reply,
  request: HttpRequest,
): ResponseValue {
  if (body === undefined || responses?.[status] === null)
    return new CorespunResponse(null, { status, ...(headers === undefined ? {} : { headers }) })
  if (status === 200 && headers === undefined && (Array.isArray(body) || isPlainObject(body))) return body
  try {
    return CorespunResponse.json(body, { status, ...(headers === undefined ? {} : { headers }) })
  } catch (error) {
    jsonOf(body, whereOf(request)) // throws an error that names the part which is not JSON-serializable
    throw error
  }
}

/** @returns A promise if the schema is asynchronous. @throws {HttpError} `HTTP_CONTRACT`. */
function checkResponse(
  responses: ResponseSchemas,
  { status, body }: Reply,
  request: HttpRequest,
): Promise<void> | undefined {
  const refuse = (reason: string): never => {
    throw new HttpError('HTTP_CONTRACT', { where: whereOf(request), status, reason })
  }
  if (!Object.hasOwn(responses, status)) return refuse('this status is not declared')
  const schema = responses[status]
  if (schema === null) {
    if (body !== undefined && body !== null) refuse('a body is not declared')
    return undefined
  }
  const settle = (result: SchemaResult<unknown>): void => {
    const issues = result.issues ?? undeclared(body, result.value)
    if (issues.length > 0) refuse(issuesLine(issues))
  }
  const result = validated(schema, body)
  const promise = promiseOf(result) as Promise<SchemaResult<unknown>> | undefined
  if (promise !== undefined) return promise.then(settle)
  settle(result as SchemaResult<unknown>)
  return undefined
}

function whereOf({ method, url }: HttpRequest): string {
  return `${method} ${new URL(url).pathname}`
}
