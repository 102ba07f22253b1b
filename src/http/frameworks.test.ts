/**
 * Apps of other frameworks, as their users write them, unchanged on every core.
 *
 * Each app is also asked through its own `fetch` with Node's own classes: what a client sees must be the
 * same.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { Elysia } from 'elysia'
import { H3, HTTPError, readBody } from 'h3'
import { Hono, type MiddlewareHandler } from 'hono'
import { basicAuth } from 'hono/basic-auth'
import { cors } from 'hono/cors'
import { etag } from 'hono/etag'
import { HTTPException } from 'hono/http-exception'
import { sign, verify } from 'hono/jwt'
import { secureHeaders as honoHeaders } from 'hono/secure-headers'
import { stream, streamSSE } from 'hono/streaming'
import { AutoRouter, error, type IRequest, json } from 'itty-router'
import { onCores } from './cores.test.support.ts'
import {
  authenticate,
  type HttpRequest,
  jsonErrors,
  type Middleware,
  requestId,
  requestValue,
  secureHeaders,
  StatusError,
  use,
} from './index.ts'

type Fetch = (request: Request) => Response | Promise<Response>

interface Asked {
  readonly path: string
  readonly init?: RequestInit
}

/** Headers that a server adds, or that a client and an app do not agree on. */
const IGNORED = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length'])

async function seen(response: Response): Promise<unknown> {
  void response.body // h3's own responses have a content-type from the moment somebody looks
  const headers = [...response.headers].filter(([name]) => !IGNORED.has(name)).sort()
  return {
    status: response.status,
    headers,
    body: (await response.text()).replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1'),
  }
}

/** Ask an app directly and through a server, with and without the globals replaced. */
function check(name: string, app: () => Fetch, asked: readonly Asked[]): void {
  for (const globals of [true, false]) {
    onCores(`${name}${globals ? '' : ', on the global classes of Node'}`, async (start) => {
      const expected: unknown[] = []
      const direct = app()
      for (const { path, init } of asked)
        expected.push(await seen(await direct(new Request(`http://127.0.0.1${path}`, init))))
      const served = app()
      const server = await start(
        globals ? { fetch: served } : { routes: { '/*': (request) => served(request) } },
      )
      for (const [at, { path, init }] of asked.entries()) {
        const found = await seen(await fetch(server.url + path, init))
        assert.deepEqual(found, expected[at], `${init?.method ?? 'GET'} ${path}`)
      }
      assert.equal(server.stats().errors, 0)
    })
  }
}

const post = (body: string, type = 'application/json'): RequestInit => ({
  method: 'POST',
  body,
  headers: { 'content-type': type },
})

function honoApp(): Fetch {
  const app = new Hono()
  app.use('/mid/*', cors(), honoHeaders(), etag())
  app.use('/header/*', async (c, next) => {
    await next()
    c.header('x-after', 'yes')
    c.res.headers.append('x-more', '1')
  })
  app.get('/', (c) => c.text('hono'))
  app.get('/user/:id', (c) => c.json({ id: c.req.param('id'), q: c.req.query('q') ?? null }))
  app.get('/html', (c) => c.html('<p>hi</p>'))
  app.get('/mid/x', (c) => c.text('body'))
  app.get('/header/x', (c) => c.json({ a: 1 }))
  app.get('/redirect', (c) => c.redirect('/elsewhere'))
  app.get('/cookies', (c) => {
    c.header('set-cookie', 'a=1', { append: true })
    c.header('set-cookie', 'b=2', { append: true })
    return c.body(null, 204)
  })
  app.post('/json', async (c) => c.json(await c.req.json()))
  app.post('/form', async (c) => c.json(await c.req.parseBody()))
  app.post('/text', async (c) => c.text(`${c.req.header('content-type')} ${await c.req.text()}`))
  app.get('/headers', (c) => c.json(Object.keys(c.req.header()).includes('x-asked')))
  app.get('/raw', (c) => c.json(c.req.raw instanceof Request && c.req.raw.headers instanceof Headers))
  app.get('/made', () => new Response('plain', { headers: [['x-pair', 'v']] }))
  app.get('/stream', (c) =>
    stream(c, async (out) => {
      for (const part of ['a', 'b', 'c']) {
        await out.write(part)
        await out.sleep(2)
      }
    }),
  )
  app.get('/sse', (c) =>
    streamSSE(c, async (out) => {
      await out.writeSSE({ data: 'one', id: '1' })
      await out.writeSSE({ data: 'two' })
    }),
  )
  app.get('/throws', () => {
    throw new HTTPException(401, { message: 'who are you' })
  })
  app.mount('/mounted', (request: Request) => new Response(new URL(request.url).pathname))
  app.all('/again', (c) => app.fetch(new Request(new URL('/user/again', c.req.url), { method: 'GET' })))
  app.post('/over', async (c) => app.fetch(new Request(new URL('/text', c.req.url), c.req.raw)))
  app.onError((err, c) => (err instanceof HTTPException ? err.getResponse() : c.text('broken', 500)))
  return app.fetch
}

check('a hono app', honoApp, [
  { path: '/' },
  { path: '/user/7?q=a%20b' },
  { path: '/user/h%C3%A9' },
  { path: '/html' },
  { path: '/mid/x' },
  { path: '/mid/x', init: { method: 'OPTIONS', headers: { origin: 'http://a' } } },
  { path: '/mid/x', init: { headers: { 'if-none-match': '"02083f4579e08a612425c0c1a17ee47add783b94"' } } },
  { path: '/header/x' },
  { path: '/redirect', init: { redirect: 'manual' } },
  { path: '/cookies' },
  { path: '/json', init: post('{"a":[1,2]}') },
  { path: '/form', init: post('a=1&b=%C3%BC', 'application/x-www-form-urlencoded') },
  { path: '/text', init: post('hello', 'text/plain') },
  { path: '/headers', init: { headers: { 'x-asked': '1' } } },
  { path: '/raw' },
  { path: '/made' },
  { path: '/stream' },
  { path: '/sse' },
  { path: '/throws' },
  { path: '/mounted/deep/er' },
  { path: '/again' },
  { path: '/over', init: post('through', 'text/plain') },
  { path: '/nowhere' },
  { path: '/', init: { method: 'HEAD' } },
])

check(
  'an itty-router app',
  () => {
    const router = AutoRouter()
    router
      .get('/', () => 'itty')
      .get('/user/:id', (request: IRequest) => ({ id: request.params.id, query: request.query }))
      .post('/json', (request: Request) => request.json().then((body) => json(body, { status: 201 })))
      .get('/error', () => error(418, 'teapot'))
      .get('/response', () => new Response('made', { headers: { 'x-made': '1' } }))
    return router.fetch as Fetch
  },
  [
    { path: '/' },
    { path: '/user/5?a=1' },
    { path: '/json', init: post('{"x":null}') },
    { path: '/error' },
    { path: '/response' },
    { path: '/nowhere' },
  ],
)

check(
  'an h3 app',
  () => {
    const app = new H3()
    app.get('/', () => 'h3')
    app.get('/user/:id', (event) => ({ id: event.context.params?.id, path: event.url.pathname }))
    app.post('/json', async (event) => ({ got: await readBody(event) }))
    app.get('/header', (event) => {
      event.res.headers.set('x-set', 'yes')
      event.res.status = 202
      return 'set'
    })
    app.get('/response', () => new Response('made', { status: 203 }))
    app.get('/stream', () => new Blob(['streamed']).stream())
    app.get('/throws', () => {
      throw new HTTPError({ status: 409, message: 'conflict' })
    })
    return app.fetch
  },
  [
    { path: '/' },
    { path: '/user/5' },
    { path: '/json', init: post('{"x":[1]}') },
    { path: '/header' },
    { path: '/response' },
    { path: '/stream' },
    { path: '/throws' },
    { path: '/nowhere' },
  ],
)

check(
  'an elysia app',
  () => {
    const app = new Elysia()
      .get('/', () => 'elysia')
      .get('/user/:id', ({ params, query }) => ({ id: params.id, query }))
      .post('/json', ({ body, set }) => {
        set.status = 201
        return body
      })
      .get('/header', ({ set }) => {
        set.headers['x-set'] = 'yes'
        return 'set'
      })
      .get('/response', () => new Response('made', { status: 203 }))
      .get('/throws', ({ status }) => status(409, 'conflict'))
    return app.fetch
  },
  [
    { path: '/' },
    { path: '/user/5?a=1' },
    { path: '/json', init: post('{"x":[1]}') },
    { path: '/header' },
    { path: '/response' },
    { path: '/throws' },
    { path: '/nowhere' },
  ],
)

onCores('an app of a framework below a pattern, beside routes', async (start) => {
  const app = new Hono().basePath('/api')
  app.get('/x', (c) => c.text('from hono'))
  const server = await start({ routes: { '/api/*': app, '/x': 'fixed' }, fetch: () => new Response('fetch') })
  const get = async (path: string): Promise<string> => (await fetch(server.url + path)).text()
  assert.deepEqual(
    [await get('/api/x'), await get('/api/y'), await get('/x'), await get('/y')],
    ['from hono', '404 Not Found', 'fixed', 'fetch'],
  )
})

/** As docs/guide/http-handlers.md has it. */
function fromHono(...handlers: MiddlewareHandler[]): Middleware {
  const app = new Hono<{ Bindings: { next(): Promise<Response> } }>()
  app.use(...handlers).all('*', (c) => c.env.next())
  app.onError((error) => {
    if ('getResponse' in error) return (error as HTTPException).getResponse()
    throw error
  })
  return (request, next) => app.fetch(request, { next })
}

onCores('middleware of hono around routes: ETags, credentials, errors', async (start) => {
  const routes = {
    '/data': (request: HttpRequest) => ({ path: new URL(request.url).pathname }),
    '/own': () => new Response('versioned', { headers: { etag: 'W/"7"', 'x-own': 'yes' } }),
    '/echo': { POST: (request: HttpRequest) => request.json() },
    '/fails': () => {
      throw new StatusError(409, 'not now', { code: 'NOT_NOW' })
    },
  }
  const user = requestValue<string>('user')
  const bearer = (token: string) =>
    verify(token, 'secret', 'HS256').then(
      ({ sub }) => String(sub),
      () => undefined,
    )
  const server = await start({
    routes: use(
      {
        ...routes,
        ...use({ '/basic': 'welcome' }, fromHono(basicAuth({ username: 'ada', password: 'b' }))),
        ...use({ '/jwt': (request: HttpRequest) => user.get(request) }, authenticate(user, { bearer })),
      },
      secureHeaders(),
      fromHono(etag()),
    ),
    error: jsonErrors(),
  })
  const check = async (expected: unknown[], path: string, init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(server.url + path, init)
    assert.deepEqual([response.status, await response.text()], expected, path)
    assert.equal(response.headers.get('x-frame-options'), 'DENY')
    return response
  }
  const found = (await check([200, '{"path":"/data"}'], '/data')).headers.get('etag')!
  assert.match(found, /^"[\da-f]{40}"$/)
  const known = (tag: string): RequestInit => ({ headers: { 'if-none-match': tag } })
  assert.equal((await check([304, ''], '/data', known(`"x", W/${found}`))).headers.get('etag'), found)
  assert.equal((await check([200, ''], '/data', { method: 'HEAD' })).headers.get('etag'), found)
  assert.equal((await check([200, 'versioned'], '/own', known('"6"'))).headers.get('x-own'), 'yes')
  await check([304, ''], '/own', known('W/"7"'))
  const echoed = await check([200, '[1]'], '/echo', post('[1]'))
  assert.equal(echoed.headers.get('etag'), null)
  await check([409, '{"error":{"code":"NOT_NOW","message":"not now"}}'], '/fails')
  await check([404, '{"error":{"code":"NOT_FOUND","message":"Not Found"}}'], '/missing')
  await check([401, 'Unauthorized'], '/basic')
  const basic = { headers: { authorization: `Basic ${btoa('ada:b')}` } }
  await check([200, 'welcome'], '/basic', basic)
  const token = await sign({ sub: 'ada' }, 'secret')
  await check([200, 'ada'], '/jwt', { headers: { authorization: `Bearer ${token}` } })
  const forged = await fetch(`${server.url}/jwt`, { headers: { authorization: `Bearer ${token}x` } })
  assert.equal(forged.status, 401)
})

test('Response is replaced by every server, the others where a framework is served', async () => {
  const { serve } = await import('./serve.ts')
  const { Response: NodeResponse, Request: NodeRequest, fetch: nodeFetch } = globalThis
  const app = new Hono()
  const replaced = [
    { fetch: app.fetch },
    { routes: { '/a': app } },
    { routes: use({ '/a': app }, requestId()) },
    { routes: { '/a': { POST: app } } },
  ]
  const kept = [
    { routes: { '/': 'x', '/run': () => new Response('x') } },
    { routes: use({ '/a': () => 'x' }, requestId()) },
    { routes: { '/*': (request: Request) => app.fetch(request) } },
  ]
  for (const settings of [...replaced, ...kept]) {
    const server = await serve({ quiet: true, port: 0, ...settings } as never)
    const areReplaced = [globalThis.Request !== NodeRequest, globalThis.fetch !== nodeFetch]
    assert.notEqual(globalThis.Response, NodeResponse)
    await server.close()
    assert.equal(globalThis.Response, NodeResponse)
    const isApp = (replaced as unknown[]).includes(settings)
    assert.deepEqual(areReplaced, [isApp, isApp], inspect(settings))
  }
})

test('the globals come back when the last server stops', async () => {
  const { serve } = await import('./serve.ts')
  const { Response: NodeResponse } = globalThis
  const before = [globalThis.Request, NodeResponse, globalThis.Headers, globalThis.fetch]
  const given = {
    quiet: true,
    port: 0,
    host: '127.0.0.1',
    core: 'node',
    fetch: () => new Response('x'),
  } as const
  const first = await serve(given)
  const second = await serve(given)
  assert.notEqual(globalThis.Response, NodeResponse)
  assert.ok(new NodeResponse('') instanceof Response)
  await first.close()
  assert.notEqual(globalThis.Response, NodeResponse)
  await second.close()
  assert.deepEqual([globalThis.Request, globalThis.Response, globalThis.Headers, globalThis.fetch], before)
})
