/**
 * The client: the same calls by fetch and in the same process; paths, queries and bodies that it makes.
 *
 * Its types are tested in client-types.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { client, type ClientApp } from './client.ts'
import { createApp, route, serve } from './http/index.ts'

const User = z.object({ id: z.string(), tags: z.array(z.string()) })
const routes = {
  '/users/:id': {
    GET: route(
      {
        params: z.object({ id: z.string() }),
        query: z.object({ tag: z.array(z.string()).optional(), none: z.string().optional() }),
        responses: { 200: User, 404: z.object({ reason: z.string() }) },
      },
      ({ params, query, respond }) =>
        params.id === 'none'
          ? respond(404, { reason: 'no such user' })
          : { id: params.id, tags: query.tag ?? [] },
    ),
    PUT: route({ body: z.object({ name: z.string() }), responses: { 204: null } }, ({ respond }) =>
      respond(204, null),
    ),
  },
  '/files/*path': { GET: (request: { params: Record<string, string> }) => `file ${request.params['path']}` },
  '/header': { GET: (request: Request) => request.headers.get('x-a') ?? 'none' },
}
const app = createApp({ routes })

async function check(target: string | URL | ClientApp): Promise<void> {
  const call = client<typeof routes>(target)
  const found = await call('GET', '/users/:id', { params: { id: 'a/b ?#' }, query: { tag: ['x', 'y'] } })
  assert.deepEqual([found.status, found.body], [200, { id: 'a/b ?#', tags: ['x', 'y'] }])
  assert.equal(found.headers.get('content-type'), 'application/json')
  const none = await call('GET', '/users/:id', { params: { id: 'none' } })
  assert.equal(none.status === 404 ? none.body.reason : '', 'no such user')
  const put = await call('PUT', '/users/:id', { params: { id: '7' }, body: { name: 'Ada' } })
  assert.deepEqual([put.status, put.body], [204, undefined])
  const wrong = await call('PUT', '/users/:id', {
    params: { id: '7' },
    body: { name: 1 as unknown as string },
  })
  assert.deepEqual(wrong.status === 422 ? wrong.body.errors[0].path : [], ['name'])
  const file = await call('GET', '/files/*path', { params: { path: 'a b/c' } })
  assert.equal(file.body, 'file a b/c')
  assert.equal((await call('GET', '/files/*path', { params: { path: '' } })).body, 'file ')
  assert.equal((await call('GET', '/header', { headers: { 'x-a': '1' } })).body, '1')
  const headers = { 'Content-Type': 'application/a+json' }
  const typed = await call('PUT', '/users/:id', { params: { id: '7' }, body: { name: 'Ada' }, headers })
  assert.equal(typed.status, 204)
}

test('calls in the same process', () => check(app))

test('calls by fetch', async () => {
  const server = await serve({ port: 0, quiet: true, routes })
  try {
    await check(server.url)
    await check(new URL(`${server.url}/`))
    await check(server)
  } finally {
    await server.close({ timeoutMs: 100 })
  }
})

test('a parameter that would lead to another route is refused', async () => {
  const call = client<typeof routes>(app)
  for (const id of ['', '.', '..'])
    await assert.rejects(call('GET', '/users/:id', { params: { id } }), /is not a segment of a path/)
  await assert.rejects(call('GET', '/files/*path', { params: { path: 'a/../../users/7' } }), /"\.\."/)
  const untyped = call as unknown as (method: string, pattern: string) => Promise<unknown>
  await assert.rejects(untyped('GET', '/files/*path'), /\/files\/\*path needs params\.path/)
  await assert.rejects(untyped('GET', '/users/:id'), /\/users\/:id needs params\.id/)
})

test('an error page that states to be JSON is text; a malformed response of a success rejects', async () => {
  const page = (status: number): Response =>
    new Response('<h1>Bad Gateway</h1>', { status, headers: { 'content-type': 'application/json' } })
  const asked = (status: number) =>
    client<{ readonly '/': () => string }>({ inject: async () => page(status) })('GET', '/')
  const { status, body } = await asked(502)
  assert.deepEqual([status, body], [502, '<h1>Bad Gateway</h1>'])
  await assert.rejects(asked(200), SyntaxError)
})

test('a call ends by its signal', async () => {
  const slow = createApp({ routes: { '/': () => new Promise<string>(() => {}) } })
  const call = client<{ readonly '/': { readonly GET: () => string } }>(slow)
  await assert.rejects(call('GET', '/', { signal: AbortSignal.abort(new Error('enough')) }), /enough/)
})

test('a target that is neither a URL nor an app is refused', () => {
  assert.throws(
    () => client({} as ClientApp),
    /client\(\) needs the URL of a server, or an app with inject\(\)/,
  )
  assert.throws(() => client('not a url'), TypeError)
})
