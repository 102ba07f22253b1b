/**
 * OpenAPI documents: valid by the specification's own schema, and what of a contract is where in them.
 *
 * One document of schemas of three libraries is validated; what is in it is compared part by part.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as Effect from 'effect/Schema'
import * as v from 'valibot'
import { z } from 'zod'
import { createApp, openApi, openApiPage, requestId, route, use } from '../index.ts'
import { Components } from './components.ts'
import { folderOf } from '../middleware/open-api-page.ts'

const info = { title: 'Shop', version: '1' }
interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[]
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, { schema: object }> }
  readonly responses: Record<string, { description: string; content?: Record<string, { schema: object }> }>
  readonly security?: unknown
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, Record<string, unknown>> }
}
const documentOf = (routes: object): Document => openApi(routes, { info }) as unknown as Document

const Item = z.object({ sku: z.string() }).meta({ id: 'Item' })
const Category = z.object({
  name: z.string(),
  get of() {
    return z.array(Category)
  },
})
const ofEffect = <S extends Parameters<typeof Effect.toStandardSchemaV1>[0]>(schema: S) =>
  Effect.toStandardJSONSchemaV1(Effect.toStandardSchemaV1(schema))
const Numbered = Effect.Struct({ id: Effect.FiniteFromString })
class Depot extends Effect.Class<Depot>('Depot')({ name: Effect.NonEmptyString }) {}
const routes = use(
  {
    '/orders/:id': {
      GET: route(
        {
          summary: 'One order',
          tags: ['orders'],
          params: z.object({ id: z.coerce.number().int().min(1) }),
          query: toStandardJsonSchema(v.object({ full: v.optional(v.string()), lang: v.string() })),
          headers: z.object({ 'x-tenant': z.string().describe('whose order'), authorization: z.string() }),
          cookies: type({ 'theme?': 'string' }),
          responses: { 200: z.object({ items: z.array(Item) }), 404: type({ reason: 'string' }), 204: null },
          openApi: { security: [{ token: [] }] },
        },
        ({ respond }) => respond(204, null),
      ),
      DELETE: route({ deprecated: true }, () => 'removed'),
      QUERY: route({}, () => 'not in OpenAPI 3.1'),
    },
    '/orders': {
      POST: route({ operationId: 'order', body: z.object({ item: Item, category: Category }) }, () => 'ok'),
      PATCH: route({ body: z.object({ a: z.string() }).optional() }, () => 'ok'),
    },
    '/files/*': { GET: route({ query: z.record(z.string(), z.string()) }, () => 'ok') },
    '/all/*rest': route({}, () => 'ok'),
    '/all/:one/put': route({ body: z.string() }, () => 'ok'),
    '/effects/:id': { PUT: route({ params: ofEffect(Numbered), body: ofEffect(Depot) }, () => 'ok') },
    '/plain': { GET: () => 'not described' },
    '/constant': 'not described',
  },
  requestId(),
)

test('a document of several libraries is valid, also where middleware is around the routes', async () => {
  const options = {
    info: { ...info, license: { name: 'Apache-2.0' } },
    servers: [{ url: 'https://shop.example' }],
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    security: [{ token: [] }],
  }
  const document = openApi(routes, options)
  const { valid, errors } = await new Validator().validate(document)
  assert.ok(valid, JSON.stringify(errors))
  const { paths } = document as unknown as Document
  const methods = Object.entries(paths).map(([path, item]) => `${path} ${Object.keys(item).join(' ')}`)
  assert.deepEqual(methods, [
    '/orders/{id} get delete',
    '/orders post patch',
    '/files/{rest} get',
    '/all/{rest} get',
    '/all/{one}/put post',
    '/effects/{id} put',
  ])
  const app = createApp({ routes: { ...routes, '/openapi.json': document } })
  assert.deepEqual(await (await app.inject('/openapi.json')).json(), document)
})

test('parts of a contract are parameters, a body and responses', () => {
  const { paths, components } = documentOf(routes)
  const get = paths['/orders/{id}']['get']
  assert.equal(get.operationId, 'getOrdersById')
  assert.deepEqual(get.security, [{ token: [] }])
  assert.deepEqual(
    get.parameters!.map((one) => [one.in, one.name, one.required]),
    [
      ['path', 'id', true],
      ['query', 'full', false],
      ['query', 'lang', true],
      ['header', 'x-tenant', true],
      ['cookie', 'theme', false],
    ],
  )
  assert.deepEqual(Object.keys(get.responses), ['200', '204', '404', '422'])
  assert.deepEqual(get.responses['204'], { description: 'No Content' })
  const order = paths['/orders']['post']
  assert.equal(order.operationId, 'order')
  assert.equal(order.requestBody!.required, true)
  assert.deepEqual(Object.keys(order.responses), ['200', '400', '415', '422'])
  assert.equal(paths['/orders']['patch'].requestBody!.required, false)
  assert.deepEqual(
    paths['/files/{rest}']['get'].parameters!.map((one) => [one.in, one.name]),
    [
      ['path', 'rest'],
      ['query', 'query'],
    ],
  )
  assert.deepEqual(Object.keys(components.schemas['Item']['properties'] as object), ['sku'])
  const unknown = JSON.stringify(paths).match(/#\/components\/schemas\/[\w.-]+/g)!
  for (const reference of unknown)
    assert.ok(Object.hasOwn(components.schemas, reference.slice('#/components/schemas/'.length)), reference)
})

test('definitions of one name are one component if they are equal', () => {
  const components = new Components()
  const of = (definition: object): object =>
    components.embedded({ $defs: { User: definition }, $ref: '#/$defs/User' }, 'x')
  assert.deepEqual(of({ type: 'string' }), { $ref: '#/components/schemas/User' })
  assert.deepEqual(of({ type: 'string' }), { $ref: '#/components/schemas/User' })
  assert.deepEqual(of({ type: 'number' }), { $ref: '#/components/schemas/User2' })
  const tree = {
    type: 'object',
    properties: { $ref: { $ref: '#' }, default: { $ref: '#' } },
    default: { $ref: '#' },
  }
  assert.deepEqual(components.embedded(tree, 'GET /tree body'), {
    $ref: '#/components/schemas/GET_tree_body',
  })
  const reference = { $ref: '#/components/schemas/GET_tree_body' }
  assert.deepEqual(components.schemas['GET_tree_body'], {
    type: 'object',
    properties: { $ref: reference, default: reference },
    default: { $ref: '#' },
  })
  const old = components.embedded(
    { definitions: { 'a/b': { type: 'null' } }, items: { $ref: '#/definitions/a~1b' } },
    'x',
  )
  assert.deepEqual(old, { items: { $ref: '#/components/schemas/a_b' } })
  const outside = { $ref: 'https://example.com/schema.json' }
  assert.deepEqual(components.embedded(outside, 'x'), outside)
  assert.deepEqual(components.embedded({ $defs: { Problem: {} }, $ref: '#/$defs/Problem' }, 'x'), {
    $ref: '#/components/schemas/Problem2',
  })
})

test('a named schema is one component, and two where what is accepted differs', () => {
  const of = (schema: z.ZodType): Document =>
    documentOf({ '/': { PUT: route({ body: schema, responses: { 200: schema } }, () => null) } })
  const same = of(z.object({ items: z.array(Item) }).meta({ id: 'Order' }))
  assert.deepEqual(Object.keys(same.components.schemas).sort(), ['Item', 'Order', 'Problem'])
  // `Box` has one text for both, and differs by what it refers to.
  const Lid = z.looseObject({ name: z.string().default('lid') }).meta({ id: 'Lid' })
  const { components, paths } = of(z.looseObject({ lid: Lid }).meta({ id: 'Box' }))
  const schemas = ['Box', 'BoxInput', 'Lid', 'LidInput', 'Problem']
  assert.deepEqual(Object.keys(components.schemas).sort(), schemas)
  assert.deepEqual(components.schemas['Lid']['required'], ['name'])
  assert.equal(components.schemas['LidInput']['required'], undefined)
  assert.match(JSON.stringify(components.schemas['BoxInput']), /LidInput/)
  assert.match(JSON.stringify(paths['/']['put'].requestBody), /BoxInput/)
})

test('names of operations are unique', () => {
  const get = (): object => ({ GET: route({}, () => 'ok') })
  const { paths } = documentOf({
    '/a/:id': get(),
    '/a/by/id': get(),
    '/a-b': get(),
    '/': get(),
    '/c/*': get(),
  })
  const names = Object.values(paths).map((item) => item['get'].operationId)
  assert.deepEqual(names, ['getAById', 'getAById2', 'getAB', 'get', 'getCByRest'])
  // One route in several paths, and a name that another one would get by its path.
  const user = { GET: route({ operationId: 'getUser' }, () => 'ok') }
  const taken = documentOf({
    '/users': get(),
    '/v1/user': user,
    '/v2/user': user,
    '/x': { GET: route({ operationId: 'getUsers' }, () => 'ok') },
  })
  const ids = Object.values(taken.paths).map((item) => item['get'].operationId)
  assert.deepEqual(ids, ['getUsers2', 'getUser', 'getV2User', 'getUsers'])
})

test('a schema that cannot be described is named, with the remedy', () => {
  const of = (body: object): unknown =>
    documentOf({ '/users': { POST: route({ body: body as never }, () => 'ok') } })
  assert.throws(() => of(v.string()), {
    code: 'HTTP_ARGUMENT',
    message: /body of POST \/users must be a schema with ~standard\.jsonSchema.*received a schema of valibot/,
  })
  assert.throws(() => of(z.bigint()), {
    code: 'HTTP_ARGUMENT',
    message: /body of POST \/users must be a schema that JSON Schema can express; received .*BigInt/,
  })
  // Its lists are not known then.
  const get = route({ query: v.object({ a: v.string() }) }, ({ query }) => query.a)
  return createApp({ routes: { '/': get } })
    .inject('/?a=1')
    .then(async (response) => assert.equal(await response.text(), '1'))
})

test('invalid options are refused', () => {
  const refused = (options: object, message: RegExp, given: unknown = {}): void => {
    assert.throws(() => openApi(given as object, options as never), { code: 'HTTP_ARGUMENT', message })
  }
  refused({}, /info must be an object with title and version/)
  refused({ info: { title: 'x' } }, /info must be/)
  refused({ info, servers: 'x' }, /servers must be an array/)
  refused({ info }, /routes must be an object of patterns/, 'routes')
})

test('the page loads nothing from other hosts, and only its own files', async () => {
  const page = openApiPage({ document: '/a.json?x=</script>', title: '<b>&' })
  const app = createApp({ routes: { '/docs/*': page } })
  const html = await app.inject('/docs/')
  assert.equal(html.headers.get('content-type'), 'text/html;charset=utf-8')
  assert.match(html.headers.get('content-security-policy')!, /^default-src 'none'; script-src 'self';/)
  const text = await html.text()
  assert.match(text, /<title>&lt;b>&amp;<\/title>/)
  assert.deepEqual(
    [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path),
    ['swagger-ui.css', 'swagger-ui-bundle.js', 'page.js'],
  )
  for (const path of ['swagger-ui.css', 'swagger-ui-bundle.js', 'page.js']) {
    const response = await app.inject(`/docs/${path}`)
    assert.equal(response.status, 200, path)
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
    assert.ok((await response.text()).length > 20)
  }
  assert.match(await (await app.inject('/docs/page.js')).text(), /"url":"\/a\.json\?x=<\/script>"/)
  for (const path of ['package.json', 'index.html', '../package.json', 'x'])
    assert.equal((await app.inject(`/docs/${path}`)).status, 404, path)
  assert.equal((await app.inject('/docs/', { method: 'POST' })).status, 405)
  assert.throws(() => folderOf('no-such-package'), {
    code: 'HTTP_ARGUMENT',
    message:
      /openApiPage\(\) needs the package no-such-package, an optional peer: npm install no-such-package/,
  })
})
