/**
 * Values that look like handlers and are not: each is refused at the start, or by a message that names the
 * route and the remedy.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onCores } from '../cores.test.support.ts'
import { NativeResponse } from '../fetch/response.ts'
import { type Handler, createApp } from '../index.ts'

const methods = { handle: () => {}, set: () => {}, use: () => {} }
/** As express and connect make them. */
const express = Object.assign((_req: unknown, _res: unknown, _next: unknown) => {}, methods)
const koa = { callback: () => () => {}, use: () => {} }
const fastify = { inject: () => {}, register: () => {} }

test('an app for (req, res) is refused with the remedy, as fetch and as a route', () => {
  for (const app of [express, koa, fastify]) {
    for (const settings of [{ fetch: app }, { routes: { '/*rest': app } }, { routes: { '/': { GET: app } } }])
      assert.throws(
        () => createApp(settings as never),
        (error: Error & { code: string }) =>
          error.code === 'HTTP_ARGUMENT' && error.message.includes('createServer() of node:http'),
      )
  }
  createApp({ fetch: (_request: Request, _connection: unknown) => new Response('ok') })
  createApp({ fetch: ((_request: Request, _env: unknown, _context: unknown) => new Response('ok')) as never })
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
