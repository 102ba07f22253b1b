/**
 * OpenAPI 3.1 of the routes that have contracts.
 *
 * Each library converts its schemas by itself (`~standard.jsonSchema`); here is only what OpenAPI does with
 * JSON Schema: parameters are the properties of an object, and definitions lie in one table of the document.
 * The document is made once, as a constant, so the core sends it without running JavaScript.
 */
import { callback, isPlainObject, messageOf, optionsOf, type Kind } from '../../base/index.ts'
import { HttpError } from '../errors.ts'
import { wrong } from '../message/limits.ts'
import { isMethodTable, type Json } from '../app/routes.ts'
import { Components, opened } from './components.ts'
import type { RequestPart } from './faults.ts'
import { inputSchemaOf, JSON_SCHEMA, type Schema, validated } from './schema.ts'
import type { Contract } from './types.ts'

/** Options of {@link openApi}. */
export interface OpenApiOptions {
  /** Title and version of the API, and other fields of OpenAPI's Info Object. */
  readonly info: Readonly<Record<string, unknown>> & { readonly title: string; readonly version: string }
  /** Where the API is served. Default: where the document is. */
  readonly servers?: readonly { readonly url: string; readonly description?: string }[]
  /** How clients authenticate, by name: OpenAPI's Security Scheme Objects. Default: none. */
  readonly securitySchemes?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** What every operation needs, as `[{ token: [] }]`. Default: nothing. */
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
}

const list = { expected: 'an array', accepts: Array.isArray, default: undefined }
const OPTIONS = {
  info: {
    expected: 'an object with title and version, both strings',
    accepts: (value) =>
      isPlainObject(value) && typeof value['title'] === 'string' && typeof value['version'] === 'string',
    default: undefined,
  } as Kind<OpenApiOptions['info'] | undefined>,
  servers: list as Kind<OpenApiOptions['servers']>,
  securitySchemes: { expected: 'an object', accepts: isPlainObject, default: undefined } as Kind<
    OpenApiOptions['securitySchemes']
  >,
  security: list as Kind<OpenApiOptions['security']>,
}

type JsonSchema = Record<string, unknown>
/** A contract, and where it is. */
interface Declared {
  readonly pattern: string
  readonly method: string
  readonly contract: Contract
}

const PARTS = [
  ['params', 'path'],
  ['query', 'query'],
  ['headers', 'header'],
  ['cookies', 'cookie'],
] as const
/** Header parameters of these names are ignored (OpenAPI 3.1, Parameter Object). */
const IGNORED = new Set(['accept', 'content-type', 'authorization'])
/** What requests get that do not fit; in the components of each document. */
const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'errors'],
  properties: {
    type: { const: 'about:blank' },
    title: { type: 'string' },
    status: { enum: [400, 415, 422] },
    errors: {
      type: 'array',
      maxItems: 100,
      items: {
        type: 'object',
        required: ['where', 'path', 'message'],
        properties: {
          where: { enum: ['params', 'query', 'headers', 'cookies', 'body'] },
          path: { type: 'array', items: { type: ['string', 'integer'] } },
          message: { type: 'string' },
        },
      },
    },
    leftOut: { type: 'integer' },
    requestId: { type: 'string' },
  },
}

/**
 * Returns the OpenAPI 3.1 document of all routes that are made by {@link route}, also with middleware around
 * them; other routes are not in it. Serve it as a constant: `'/openapi.json': openApi(routes, { info })`. A
 * contract for all methods of a pattern is listed under GET, or POST if it has a body.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options, and for a schema that has no JSON Schema; the
 *   message names the route and the part.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, openApi, route } from 'corespun/http'
 * import { z } from 'zod'
 *
 * const User = z.object({ id: z.int(), name: z.string() })
 * const get = route({ responses: { 200: User } }, () => ({ id: 7, name: 'Ada' }))
 * const routes = { '/users/:id': { GET: get } }
 * const document = openApi(routes, { info: { title: 'Users', version: '1' } })
 * const app = createApp({ routes: { ...routes, '/openapi.json': document } })
 * const { paths } = (await (await app.inject('/openapi.json')).json()) as { paths: object }
 * assert.deepEqual(Object.keys(paths), ['/users/{id}'])
 * ```
 */
export function openApi(routes: object, options: OpenApiOptions): { readonly [field: string]: Json } {
  const { info, servers, securitySchemes, security } = optionsOf(options, OPTIONS, wrong, 'openApi()')
  if (info === undefined) throw wrong('openApi(): info', OPTIONS.info.expected, info)
  if (!isPlainObject(routes)) throw wrong('openApi(): routes', 'an object of patterns', routes)
  const components = new Components()
  const paths: Record<string, Record<string, unknown>> = {}
  // Responses first: where one name has two definitions, that of what is accepted has another name.
  const all = named(declaredIn(routes)).map(
    ([declared, name]) => [declared, name, responsesOf(declared, components)] as const,
  )
  for (const [declared, name, responses] of all) {
    const path = (paths[pathOf(declared.pattern)] ??= {})
    path[declared.method.toLowerCase()] = operationOf(declared, components, name, responses)
  }
  components.schemas['Problem'] ??= PROBLEM
  const document = {
    openapi: '3.1.1',
    info,
    servers,
    security,
    paths,
    components: { schemas: components.schemas, securitySchemes },
  }
  return JSON.parse(JSON.stringify(document)) as { readonly [field: string]: Json }
}

function declaredIn(routes: Record<string, unknown>): Declared[] {
  return Object.entries(routes).flatMap(([pattern, value]) => {
    const alone = contractOf(value)
    if (alone !== undefined)
      return [{ pattern, method: alone.body === undefined ? 'GET' : 'POST', contract: alone }]
    if (!isMethodTable(value)) return []
    return Object.entries(value).flatMap(([method, endpoint]) => {
      const contract = contractOf(endpoint)
      // OpenAPI 3.1 has no field for QUERY.
      return contract === undefined || method === 'QUERY' ? [] : [{ pattern, method, contract }]
    })
  })
}

function contractOf(value: unknown): Contract | undefined {
  return callback.accepts(value) ? (value as { '~contract'?: Contract })['~contract'] : undefined
}

/** `/users/:id` is `/users/{id}`; the rest of a path is one parameter, though it may have slashes. */
function pathOf(pattern: string): string {
  return pattern.replace(
    /(^|\/)(?::|\*)([^/]*)/g,
    (_, slash: string, name: string) => `${slash}{${name || 'rest'}}`,
  )
}

function namesIn(pattern: string): { name: string; shown: string; isRest: boolean }[] {
  return [...pattern.matchAll(/\/([:*])([^/]*)/g)].map(([, kind, name]) => ({
    name: name || '*',
    shown: name || 'rest',
    isRest: kind === '*',
  }))
}

function operationOf(
  declared: Declared,
  components: Components,
  operationId: string,
  responses: JsonSchema,
): JsonSchema {
  const { contract } = declared
  const { summary, description, tags, deprecated, body, openApi: more } = contract
  const parameters = PARTS.flatMap(([part, where]) => parametersOf(declared, part, where, components))
  return {
    operationId,
    summary,
    description,
    tags,
    deprecated,
    parameters: parameters.length === 0 ? undefined : parameters,
    requestBody: body === undefined ? undefined : requestBodyOf(declared, body, components),
    responses,
    ...more,
  }
}

/**
 * Unique names: that of the contract for the first of its routes; for the others and those without one a name
 * of method and path, which does not depend on other routes.
 */
function named(all: readonly Declared[]): (readonly [Declared, string])[] {
  const names = new Set<string>()
  const own = all.map(({ contract: { operationId } }) => {
    if (operationId === undefined || names.has(operationId)) return undefined
    names.add(operationId)
    return operationId
  })
  return all.map((declared, index) => [declared, own[index] ?? freeName(declared, names)])
}

/** `getUsersById`, with a number behind it if another one has that. */
function freeName({ method, pattern }: Declared, names: Set<string>): string {
  const words = pattern.split('/').flatMap((segment) => {
    const plain = segment.replace(/[^\w]+/g, ' ').trim()
    return segment.startsWith(':') || segment.startsWith('*') ? ['by', plain || 'rest'] : plain.split(' ')
  })
  const name = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('')
  const first = method.toLowerCase() + name
  let free = first
  for (let number = 2; names.has(free); number += 1) free = `${first}${number}`
  names.add(free)
  return free
}

function parametersOf(
  declared: Declared,
  part: Exclude<RequestPart, 'body'>,
  where: (typeof PARTS)[number][1],
  components: Components,
): JsonSchema[] {
  const schema = declared.contract[part]
  const shown = schema === undefined ? {} : schemaOf(declared, part, schema, 'input', components)
  const [, name = ''] = /^#\/components\/schemas\/(.+)/.exec(String(shown['$ref'])) ?? []
  const whole = components.schemas[name] ?? shown
  const properties = isPlainObject(whole['properties']) ? whole['properties'] : undefined
  if (where === 'path')
    return namesIn(declared.pattern).map(({ name, shown, isRest }) => ({
      name: shown,
      in: where,
      required: true,
      description: isRest ? 'the rest of the path, which may have slashes' : undefined,
      schema: properties?.[name] ?? { type: 'string' },
    }))
  if (schema === undefined) return []
  // Not an object of properties: one parameter with all names.
  if (properties === undefined) return [{ name: part, in: where, schema: whole }]
  const required = Array.isArray(whole['required']) ? (whole['required'] as unknown[]) : []
  return Object.entries(properties)
    .filter(([name]) => where !== 'header' || !IGNORED.has(name.toLowerCase()))
    .map(([name, value]) => {
      const isRequired = required.includes(name)
      if (!isPlainObject(value)) return { name, in: where, required: isRequired, schema: value }
      const { description, ...rest } = value
      return { name, in: where, required: isRequired, description, schema: rest }
    })
}

function requestBodyOf(declared: Declared, schema: Schema, components: Components): JsonSchema {
  const content = { 'application/json': { schema: schemaOf(declared, 'body', schema, 'input', components) } }
  const none = validated(schema, undefined)
  // One that is asynchronous is asked again with each request.
  if (none instanceof Promise) none.catch(() => {})
  return { required: none instanceof Promise || none.issues !== undefined, content }
}

function responsesOf(declared: Declared, components: Components): JsonSchema {
  const { contract } = declared
  const { STATUS_CODES } = process.getBuiltinModule('node:http')
  const responses: JsonSchema = {}
  for (const [status, schema] of Object.entries(contract.responses ?? {})) {
    const words = STATUS_CODES[status] ?? `Status ${status}`
    if (schema === null) responses[status] = { description: words }
    else {
      const shown = schemaOf(declared, `response ${status}`, schema, 'output', components)
      responses[status] = {
        description: typeof shown['description'] === 'string' ? shown['description'] : words,
        content: { 'application/json': { schema: shown } },
      }
    }
  }
  if (contract.responses === undefined) responses['200'] = { description: 'OK' }
  const problem = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
  const isChecked = (part: RequestPart): boolean => contract[part] !== undefined
  if (isChecked('body'))
    for (const status of ['400', '415'])
      responses[status] ??= { description: STATUS_CODES[status], content: problem }
  if ((['params', 'query', 'headers', 'cookies', 'body'] as const).some(isChecked))
    responses['422'] ??= { description: STATUS_CODES['422'], content: problem }
  return responses
}

/** @throws {HttpError} `HTTP_ARGUMENT`. */
function schemaOf(
  { method, pattern }: Declared,
  part: string,
  schema: Schema,
  side: 'input' | 'output',
  components: Components,
): JsonSchema {
  const name = `openApi(): ${part} of ${method} ${pattern}`
  const { jsonSchema, vendor } = schema['~standard']
  if (jsonSchema === undefined) {
    const expected =
      'a schema with ~standard.jsonSchema: zod from 4.2 on, arktype from 2.1.28 on, for valibot what ' +
      'toStandardJsonSchema() of @valibot/to-json-schema returns, for Effect toStandardJSONSchemaV1()'
    throw new HttpError('HTTP_ARGUMENT', { name, expected, received: `a schema of ${vendor} without it` })
  }
  try {
    const shown = jsonSchema[side]({ target: JSON_SCHEMA })
    const title = `${method} ${pattern} ${part}`
    if (side === 'input') return components.embedded(shown, title, 'Input')
    return components.embedded(opened(shown, inputSchemaOf(schema)), title)
  } catch (cause) {
    const expected = 'a schema that JSON Schema can express'
    throw new HttpError('HTTP_ARGUMENT', { name, expected, received: messageOf(cause) }, { cause })
  }
}
