/**
 * Contracts: what reaches a handler, what a request that does not fit gets, and which responses are checked.
 *
 * The same routes with schemas of four libraries; the rest is about this package and uses one of them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type } from 'arktype'
import * as Effect from 'effect/Schema'
import * as v from 'valibot'
import { z } from 'zod'
import { onCores, onServer } from '../cores.test.support.ts'
import { converse } from '../raw.test.support.ts'
import { replaceBody } from '../fetch/replaced-body.ts'
import { createApp, type InjectableApp, jsonErrors, requestId, route, use } from '../index.ts'
import type { HttpRequest, Middleware, Problem, ResponseValue, Schema } from '../index.ts'

const JSON_HEADERS = { 'content-type': 'application/json' }

function post(app: InjectableApp, path: string, body: unknown, headers: object = {}): Promise<Response> {
  const init = { method: 'POST', body: JSON.stringify(body), headers: { ...JSON_HEADERS, ...headers } }
  return app.inject(path, init)
}

/** The status of a response and where its faults are. */
async function faults(response: Response): Promise<[number, string[]]> {
  assert.equal(response.headers.get('content-type'), 'application/problem+json')
  const problem = (await response.json()) as Problem
  assert.equal(problem.status, response.status)
  assert.ok(problem.errors.every(({ message }) => message.length > 0))
  return [response.status, problem.errors.map(({ where, path }) => [where, ...path].join('.'))]
}

/** `{ name: string, tags: string[] }` with at least one character, by library. */
const USERS: Record<string, Schema<unknown, { name: string; tags: readonly string[] }>> = {
  zod: z.object({ name: z.string().min(1), tags: z.array(z.string()) }),
  valibot: v.object({ name: v.pipe(v.string(), v.minLength(1)), tags: v.array(v.string()) }),
  arktype: type({ name: 'string > 0', tags: 'string[]' }),
  effect: Effect.toStandardSchemaV1(
    Effect.Struct({ name: Effect.NonEmptyString, tags: Effect.Array(Effect.String) }),
    { parseOptions: { errors: 'all' } },
  ),
}

/** `{ [key]: a number }` of a text, by library. */
const NUMBERS: Record<string, (key: string) => Schema> = {
  zod: (key) => z.object({ [key]: z.coerce.number() }),
  valibot: (key) => v.object({ [key]: v.pipe(v.string(), v.toNumber()) }),
  arktype: (key) => type({ [key]: 'string.numeric.parse' }),
  effect: (key) => Effect.toStandardSchemaV1(Effect.Struct({ [key]: Effect.FiniteFromString })),
}

for (const [library, of] of Object.entries(NUMBERS))
  test(`each part of a request is converted by a schema of ${library}`, async () => {
    const contract = { params: of('id'), query: of('n'), headers: of('x-n'), cookies: of('n') }
    const echo = route(contract, (input) =>
      [input.params, input.query, input.headers, input.cookies].map(
        (part, index) => (part as Record<string, unknown>)[['id', 'n', 'x-n', 'n'][index]],
      ),
    )
    const app = createApp({ routes: { '/:id': echo } })
    for (let times = 0; times < 2; times++) {
      const response = await app.inject('/1?n=2', { headers: { 'x-n': '3', cookie: 'n=4' } })
      assert.deepEqual(await response.json(), [1, 2, 3, 4])
    }
    const wrong = await app.inject('/a?n=b', { headers: { 'x-n': 'c', cookie: 'n=d' } })
    const [status, where] = await faults(wrong)
    assert.deepEqual([status, where.sort()], [422, ['cookies.n', 'headers.x-n', 'params.id', 'query.n']])
  })

for (const [library, User] of Object.entries(USERS)) {
  test(`a schema of ${library} decides what reaches the handler, and finds all faults`, async () => {
    let calls = 0
    const create = route({ body: User, responses: { 201: User } }, ({ body, respond }) => {
      calls += 1
      return respond(201, body, { location: '/users/1' })
    })
    const app = createApp({ routes: { '/users': { POST: create } } })
    const user = { name: 'Ada', tags: ['x'] }
    const response = await post(app, '/users', user)
    assert.equal(response.status, 201)
    assert.equal(response.headers.get('location'), '/users/1')
    assert.equal(response.headers.get('content-type'), 'application/json')
    assert.deepEqual(await response.json(), user)
    const [status, where] = await faults(await post(app, '/users', { name: '', tags: [1] }))
    assert.deepEqual([status, where.sort()], [422, ['body.name', 'body.tags.0']])
    assert.equal((await post(app, '/users', undefined)).status, 422)
    assert.equal(calls, 1)
  })
}

const everything = route(
  {
    params: z.object({ id: z.coerce.number().int() }),
    query: z.object({ limit: z.coerce.number().max(100).default(10), tag: z.array(z.string()).optional() }),
    headers: z.object({ 'x-tenant': z.string() }),
    cookies: z.object({ theme: z.enum(['dark', 'light']).optional() }),
    body: z.object({ name: z.string() }),
  },
  ({ params, query, headers, cookies, body, request }) => ({
    all: [params.id, query.limit, query.tag ?? null, headers['x-tenant'], cookies.theme ?? null, body.name],
    path: new URL(request.url).pathname,
  }),
)
const routes = { '/users/:id': { POST: everything } }

onCores('all parts of a request are checked, and their faults are one response', async (start) => {
  const server = await start({ routes })
  const send = (path: string, headers: Record<string, string>, body: string): Promise<Response> =>
    fetch(server.url + path, { method: 'POST', headers: { ...JSON_HEADERS, ...headers }, body })
  const cookie = 'other=1; theme="dark"; theme=light; =x; broken'
  const fits = await send('/users/7?tag=a', { 'x-tenant': 't', cookie }, '{"name":"Ada"}')
  assert.deepEqual(await fits.json(), { all: [7, 10, ['a'], 't', 'dark', 'Ada'], path: '/users/7' })
  const lists = await send('/users/7?tag=a&tag=b&limit=5', { 'x-tenant': 't' }, '{"name":"Ada"}')
  assert.deepEqual(((await lists.json()) as { all: unknown[] }).all, [7, 5, ['a', 'b'], 't', null, 'Ada'])
  const wrong = await send('/users/x?limit=101&limit=1', { cookie: 'theme=%E0%A4%A' }, '{"name":1}')
  assert.deepEqual(await faults(wrong), [
    422,
    ['params.id', 'query.limit', 'headers.x-tenant', 'cookies.theme', 'body.name'],
  ])
  const malformed = await send('/users/x', { 'x-tenant': 't' }, '{"name":')
  assert.deepEqual(await faults(malformed), [400, ['params.id', 'body']])
  assert.equal(server.stats().errors, 0)
})

test('the content type is JSON, or a type based on it', async () => {
  const echo = route({ body: z.object({ a: z.int() }) }, ({ body }) => body)
  const app = createApp({ routes: { '/': { POST: echo } } })
  const sent = async (
    contentType: string | undefined,
    body: string | Uint8Array = '{"a":1}',
  ): Promise<number> => {
    const headers = contentType === undefined ? undefined : { 'content-type': contentType }
    const init = { method: 'POST', body: body as string, ...(headers === undefined ? {} : { headers }) }
    return (await app.inject('/', init)).status
  }
  const accepted = ['application/json', 'Application/JSON; charset=utf-8', 'application/merge-patch+json']
  for (const name of accepted) assert.equal(await sent(name), 200, name)
  for (const name of ['text/plain', 'application/jsonx', 'text/json', 'application/x-www-form-urlencoded'])
    assert.equal(await sent(name), 415, name)
  assert.equal(await sent(undefined, Buffer.from('{"a":1}')), 415)
  assert.equal(await sent(undefined, new Uint8Array(0)), 422)
  const optional = route({ body: z.object({ a: z.int() }).optional() }, ({ body }) => ({
    body: body ?? null,
  }))
  const other = createApp({ routes: { '/': { POST: optional } } })
  assert.deepEqual(await (await other.inject('/', { method: 'POST' })).json(), { body: null })
})

test('what middleware has changed of a request is what is checked', async () => {
  const echo = route({ query: z.object({ a: z.string() }), body: z.object({ b: z.int() }) }, (input) => ({
    ...input.query,
    ...input.body,
  }))
  const changed: Middleware = (request, next) => {
    request.headers.set('content-type', 'application/json')
    Object.defineProperty(request, 'url', { value: 'http://other/?a=changed' })
    replaceBody(request, new Blob(['{"b":2}']).stream(), () => undefined)
    return next()
  }
  const app = createApp({ routes: use({ '/': { POST: echo } }, changed) })
  const init = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{"b":1}' }
  assert.deepEqual(await (await app.inject('/?a=sent', init)).json(), { a: 'changed', b: 2 })
  const foreign = new Request('http://x/?a=own', { ...init, headers: JSON_HEADERS })
  assert.deepEqual(await echo(foreign as never), { a: 'own', b: 1 })
})

onServer('a handler whose request has arrived is called without a promise', async (start) => {
  const seen: unknown[] = []
  const get = route({ body: z.object({ b: z.int() }) }, ({ body }) => body)
  const look = (request: HttpRequest): ResponseValue | Promise<ResponseValue> => {
    const value = get(request)
    seen.push(value instanceof Promise)
    return value
  }
  const { port } = await start({ routes: { '/': { POST: look } } })
  const sent = (body: string): string =>
    `POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n${body}`
  const { responses } = await converse(port, [sent('{"b":1}') + sent('{"b":""')], { responses: 2 })
  const statuses = responses.map(({ status }) => status)
  assert.deepEqual(statuses, [200, 400])
  assert.deepEqual(seen, [false, false])
})

test('faults are bounded, whatever a client sends', async () => {
  const app = createApp({
    routes: use(
      { '/': { POST: route({ body: z.record(z.string(), z.array(z.int())) }, () => 'ok') } },
      requestId(),
    ),
  })
  const long = 'k'.repeat(100_000)
  const response = await post(app, '/', { [long]: Array.from({ length: 5000 }, () => 'x') })
  const text = await response.text()
  assert.ok(text.length < 100_000, `${text.length}`)
  const { errors, leftOut, requestId: id } = JSON.parse(text) as Problem
  assert.deepEqual([errors.length, leftOut], [100, 4900])
  assert.equal(id, response.headers.get('x-request-id'))
  assert.equal(errors[0]?.path[0], `${'k'.repeat(99)}…`)
})

test('a body above its limit is refused, by its length or as it is read', async () => {
  const body = z.array(z.object({}))
  const larger = route({ body, bodyBytesMax: 300_000 }, () => 'ok')
  const app = createApp({ routes: { '/': { POST: route({ body }, () => 'ok') }, '/more': { POST: larger } } })
  const text = `[${'0,'.repeat(70_000)}0]`
  const chunked = (): ReadableStream<Uint8Array> => new Blob([text]).stream()
  for (const [path, sent, status] of [
    ['/', text, 413],
    ['/', chunked(), 413],
    ['/', '[{}]', 200],
    ['/more', text, 422],
    ['/more', chunked(), 422],
  ] as const) {
    const headers = { 'content-type': 'application/json' }
    const response = await app.inject(path, { method: 'POST', headers, body: sent, duplex: 'half' } as never)
    assert.equal(response.status, status, `${path} ${typeof sent}`)
    await response.text()
  }
})

test('a value that is too deep for a recursive schema does not fit', async () => {
  interface Tree {
    readonly of?: Tree | undefined
  }
  const Tree: z.ZodType<Tree> = z.lazy(() => z.object({ of: Tree.optional() }))
  const deep = route({ body: Tree, bodyBytesMax: 2_000_000 }, () => 'ok')
  const app = createApp({ routes: { '/': { POST: deep } } })
  const depth = 200_000
  const body = `${'{"of":'.repeat(depth)}{}${'}'.repeat(depth)}`
  const response = await app.inject('/', { method: 'POST', body, headers: JSON_HEADERS })
  assert.equal(response.status, 422)
})

test('schemas and handlers may be asynchronous', async () => {
  const free = z.string().refine(async (name) => Promise.resolve(name !== 'taken'), 'is taken')
  const contract = { query: z.object({ name: free }), responses: { 200: z.object({ name: free }) } }
  const get = route(contract, async ({ query }) => Promise.resolve({ name: query.name }))
  const both = route({ ...contract, body: z.object({ name: free }) }, ({ body }) => body)
  const app = createApp({ routes: { '/': { GET: get, POST: both } }, error: () => undefined })
  assert.deepEqual(await (await app.inject('/?name=free')).json(), { name: 'free' })
  assert.deepEqual(await faults(await app.inject('/?name=taken')), [422, ['query.name']])
  const wrong = await post(app, '/?name=taken', { name: 'taken' })
  assert.deepEqual((await faults(wrong))[1].sort(), ['body.name', 'query.name'])
  assert.deepEqual(await (await post(app, '/?name=a', { name: 'b' })).json(), { name: 'b' })
})

test('an error of a schema is an error of the handler', async () => {
  const broken = z.string().refine(() => {
    throw new RangeError('a bug')
  })
  const seen: unknown[] = []
  const app = createApp({
    routes: { '/': { GET: route({ query: z.object({ a: broken }) }, () => 'ok') } },
    error: (error) => void seen.push((error as Error).message),
  })
  assert.equal((await app.inject('/?a=1')).status, 500)
  assert.deepEqual(seen, ['a bug'])
})

test('responses are checked, and what is not declared is not sent', async () => {
  const User = z.object({ id: z.int(), email: z.email().optional() })
  const contract = { responses: { 200: User, 204: null, 404: z.object({ reason: z.string() }) } }
  const returned: Record<string, unknown> = {
    fits: { id: 1 },
    wrong: { id: '1' },
    secret: { id: 1, passwordHash: 'x' },
    entity: new (class {
      id = 1
      passwordHash = 'x'
    })(),
    itself: new Response('as it is', { status: 418 }),
  }
  const of = (checkResponses: boolean): InjectableApp =>
    createApp({
      routes: {
        '/plain/:name': route(
          { ...contract, checkResponses },
          ({ params }) => returned[params.name] as { id: number },
        ),
        '/404': route({ ...contract, checkResponses }, ({ respond }) => respond(404, { reason: 'removed' })),
        '/204': route({ ...contract, checkResponses }, ({ respond }) => respond(204, null)),
        '/filled': route({ ...contract, checkResponses }, ({ respond }) => respond(204, 'x' as never)),
        '/undeclared': route({ ...contract, checkResponses }, ({ respond }) =>
          respond(500 as 404, { reason: '' }),
        ),
      },
      error: (error) => new Response((error as Error).message, { status: 500 }),
    })
  const seen = async (app: InjectableApp, path: string): Promise<[number, string]> => {
    const response = await app.inject(path)
    return [response.status, await response.text()]
  }
  const checked = of(true)
  assert.deepEqual(await seen(checked, '/plain/fits'), [200, '{"id":1}'])
  assert.deepEqual(await seen(checked, '/plain/itself'), [418, 'as it is'])
  assert.deepEqual(await seen(checked, '/404'), [404, '{"reason":"removed"}'])
  assert.deepEqual(await seen(checked, '/204'), [204, ''])
  const refused = async (path: string, reason: RegExp): Promise<void> => {
    const [status, text] = await seen(checked, path)
    assert.equal(status, 500)
    assert.match(text, reason)
  }
  await refused('/plain/wrong', /^the response 200 of GET \/plain\/wrong does not fit its contract: id: /)
  for (const name of ['secret', 'entity'])
    await refused(`/plain/${name}`, /passwordHash: the schema does not have this key/)
  await refused('/filled', /a body is not declared/)
  await refused('/undeclared', /this status is not declared/)
  const trusted = of(false)
  assert.deepEqual(await seen(trusted, '/plain/wrong'), [200, '{"id":"1"}'])
  assert.deepEqual(await seen(trusted, '/filled'), [204, ''])
  assert.deepEqual(await seen(trusted, '/undeclared'), [500, '{"reason":""}'])
})

test('a map or a set, of which JSON has nothing, does not fit while responses are checked', async () => {
  const seen: unknown[] = []
  const contract = {
    responses: { 200: z.object({ in: z.array(z.union([z.map(z.string(), z.int()), z.set(z.int())])) }) },
  }
  const get = route({ ...contract, checkResponses: true }, () => ({
    in: [new Map([['a', 1]]), new Set([1])],
  }))
  const app = createApp({ routes: { '/': get }, error: (error) => void seen.push((error as Error).message) })
  assert.equal((await app.inject('/')).status, 500)
  assert.match(String(seen), /in\.0: JSON of a Map is an empty object; in\.1: JSON of a Set /)
})

test('NODE_ENV decides whether responses are checked, when the route is made', async () => {
  const before = process.env['NODE_ENV']
  const status = async (): Promise<number> => {
    const get = route({ responses: { 200: z.int() } }, () => 'text' as unknown as number)
    return (await createApp({ routes: { '/': { GET: get } }, error: () => undefined }).inject('/')).status
  }
  try {
    process.env['NODE_ENV'] = 'production'
    assert.equal(await status(), 200)
    delete process.env['NODE_ENV']
    assert.equal(await status(), 500)
  } finally {
    if (before !== undefined) process.env['NODE_ENV'] = before
  }
})

test('what a contract sends is JSON', async () => {
  const routes = {
    '/text': route({ responses: { 200: z.string() } }, () => 'a "word"'),
    '/none': route({ responses: { 202: null } }, () => undefined),
    '/null': route({ responses: { 200: z.null() } }, () => null),
    '/list': route({ responses: { 200: z.array(z.int()) } }, () => [1, 2]),
    '/created': route({ responses: { 201: z.object({ a: z.int() }), 409: z.string() } }, () => ({ a: 1 })),
    '/free': route({ query: z.object({}) }, ({ respond }) => respond(203, 'free')),
    '/plain': route({}, () => 'plain'),
  }
  const app = createApp({ routes })
  const seen = async (path: string): Promise<unknown[]> => {
    const response = await app.inject(path)
    return [response.status, response.headers.get('content-type'), await response.text()]
  }
  assert.deepEqual(await seen('/text'), [200, 'application/json', '"a \\"word\\""'])
  assert.deepEqual(await seen('/none'), [202, null, ''])
  assert.deepEqual(await seen('/null'), [200, 'application/json', 'null'])
  assert.deepEqual(await seen('/list'), [200, 'application/json', '[1,2]'])
  assert.deepEqual(await seen('/created'), [201, 'application/json', '{"a":1}'])
  assert.deepEqual(await seen('/free'), [203, 'application/json', '"free"'])
  assert.deepEqual(await seen('/plain'), [200, 'text/plain;charset=UTF-8', 'plain'])
})

test('a response that is not JSON-serializable names its part', async () => {
  const get = route({ responses: { 201: z.any() } }, () => ({ a: [1n] }))
  const reasons: string[] = []
  const app = createApp({ routes: { '/': { GET: get } }, error: (error) => void reasons.push(`${error}`) })
  assert.equal((await app.inject('/')).status, 500)
  assert.match(reasons[0], /GET \/.*a\[0\]/)
  const bad = route({ responses: { 200: z.int() } }, ({ respond }) => respond(200, 1, { 'x-a': 'a\nb' }))
  const other = createApp({ routes: { '/': { GET: bad } }, error: jsonErrors({ log: () => {} }) })
  assert.equal((await other.inject('/')).status, 500)
})

test('an invalid contract is refused when it is made', () => {
  const refused = (contract: object, message: RegExp): void => {
    assert.throws(() => route(contract, () => 'x'), { code: 'HTTP_ARGUMENT', message })
  }
  refused({ body: {} }, /route\(\): body must be a schema with the Standard Schema interface/)
  refused({ body: 'string' }, /received 'string'|received "string"/)
  refused({ responses: { 99: z.any() } }, /responses must be schemas/)
  refused({ responses: { 200: {} } }, /responses must be schemas/)
  for (const status of [204, 205, 304])
    refused({ responses: { [status]: z.string() } }, /null for no body \(always of 204, 205 and 304\)/)
  refused({ bodi: z.any() }, /unknown option "bodi"; did you mean/)
  refused({ tags: 'users' }, /tags must be an array of strings/)
  refused({ body: z.any(), bodyBytesMax: -1 }, /bodyBytesMax must be/)
  refused({ large: { bytesMin: 1, read: () => {} } }, /large needs `body`/)
  refused({ body: z.any(), large: { bytesMin: -1, read: () => {} } }, /large must be/)
  assert.throws(() => route({}, 'x' as never), {
    code: 'HTTP_ARGUMENT',
    message: /handler must be a function/,
  })
})
