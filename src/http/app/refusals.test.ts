/**
 * Values that look like handlers and are not: each is refused at the start, or by a message that names the
 * route and the remedy.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onCores } from '../cores.test.support.ts'
import { native } from '../fetch/native.ts'
import { type Handler, type HttpError, type Middleware, createApp, use } from '../index.ts'

const { Response: NativeResponse } = native()

const methods = { handle: () => {}, set: () => {}, use: () => {} }
/** As express and connect make them. */
const express = Object.assign((_req: unknown, _res: unknown, _next: unknown) => {}, methods)
const koa = { callback: () => () => {}, use: () => {} }
const fastify = { inject: () => {}, register: () => {} }
/** As koa's `callback()`, Next.js and people write handlers; what they do plays no part. */
const nodeHandlers = [
  (_req: unknown, res: { end: () => void }) => res.end(),
  async (_req: unknown, res: unknown, _parsedUrl?: unknown) => res,
  async (_req: unknown, res: unknown, parsedUrl: unknown) => [res, parsedUrl],
  function handle(request: unknown, response: unknown) {
    return [request, response]
  },
  { async handle(_req: unknown, _res: unknown) {} }.handle,
  ({ url }: { url: string }, res: unknown) => [url, res],
]

test('an app for (req, res) is refused with the remedy, as fetch and as a route', () => {
  for (const app of [express, koa, fastify, ...nodeHandlers]) {
    const pass: Middleware = (_request, next) => next()
    const starts: (() => unknown)[] = [
      () => createApp({ fetch: app as never }),
      () => createApp({ routes: { '/*rest': app } as never }),
      () => createApp({ routes: { '/': { GET: app } } as never }),
      () => use({ '/': app } as never, pass),
      () => use({ '/': { GET: app } } as never, pass),
    ]
    for (const start of starts)
      assert.throws(
        start,
        (error: Error & { code: string }) =>
          error.code === 'HTTP_ARGUMENT' && error.message.includes('is passed as nodeHandler(app)'),
      )
  }
  createApp({ fetch: (_request: Request, _connection: unknown) => new Response('ok') })
  createApp({ fetch: ((_request: Request, _env: unknown, _context: unknown) => new Response('ok')) as never })
  for (const handler of [
    (_request: Request, _res = new Response()) => _res,
    (_request: Request, resource: unknown) => new Response(String(resource)),
    (_request: Request, { response }: { response: string }) => new Response(response),
    (_request: Request, ...res: unknown[]) => new Response(String(res.length)),
  ])
    createApp({ fetch: handler as never, routes: { '/': handler as never } })
})

test('a handler for (req, res) that is not recognised fails with the remedy at a request', async () => {
  interface NodeResponse {
    statusCode: number
    setHeader(name: string, value: string): void
    writeHead(status: number): void
  }
  const handlers: ((a: unknown, b: NodeResponse) => unknown)[] = [
    (_, b) => b.setHeader('a', 'b'),
    async (_, b) => b.writeHead(200),
    (_, b) => void (b.statusCode = 200),
    ((...given: [unknown, NodeResponse]) => given[1].writeHead(200)).bind(undefined),
  ]
  const causes: unknown[] = []
  const error = (cause: unknown): void => void causes.push(cause)
  for (const handler of handlers) {
    const app = createApp({ routes: { '/a': handler as never }, error })
    assert.equal((await app.inject('/a')).status, 500)
    const { code, facts, message, cause } = causes.pop() as HttpError<'HTTP_NODE_HANDLER'>
    assert.deepEqual([code, facts.where], ['HTTP_NODE_HANDLER', '/a'], message)
    assert.ok(message.startsWith('the handler of /a ') && message.endsWith('as nodeHandler(handler)'))
    assert.ok(cause instanceof TypeError)
  }
  const app = createApp({ fetch: handlers[0] as never, error })
  await app.inject('/a')
  assert.equal((causes.pop() as HttpError).code, 'HTTP_NODE_HANDLER')
})

test('a handler that returns nothing is named by method and route, with the response for it', async () => {
  const seen: string[] = []
  const nothing = (() => undefined) as unknown as Handler
  const app = createApp({
    routes: { '/': nothing, '/a/:b': { POST: nothing } },
    error: (cause) => void seen.push((cause as Error).message),
  })
  await app.inject('/')
  await app.inject('/a/1', { method: 'POST' })
  const rest =
    'must return a Response, a string, bytes, a stream or a JSON value; received undefined; ' +
    'for an empty response return new Response(null, { status: 204 })'
  assert.deepEqual(seen, [`the handler of GET / ${rest}`, `the handler of POST /a/:b ${rest}`])
})

test('a route of nothing but options of WebSockets is one, and no JSON', async () => {
  const sockets = { websocket: { origins: ['https://shop.example'] } }
  const app = createApp({ routes: { '/': sockets, '/json': { websocket: { value: 42 } } } })
  const response = await app.inject('/')
  assert.equal(response.status, 426)
  assert.equal((await response.text()).includes('shop.example'), false)
  assert.deepEqual(await (await app.inject('/json')).json(), { websocket: { value: 42 } })
})

onCores('a body that is known before the head is sent and has another length is a 500', async (start) => {
  const stated = { headers: { 'content-length': '20' } }
  const ending = (text: string): ReadableStream => new NativeResponse(text).body!
  const server = await start({
    routes: {
      '/text': () => new NativeResponse('abc', stated),
      '/stream': () => new Response(ending('abc'), stated),
      '/empty': () => new Response(ending(''), stated),
      '/right': () => new NativeResponse('12345678901234567890', stated),
    },
  })
  for (const path of ['/text', '/stream', '/empty'])
    assert.equal((await fetch(server.url + path)).status, 500, path)
  assert.equal(await (await fetch(`${server.url}/right`)).text(), '12345678901234567890')
})
