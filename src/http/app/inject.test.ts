/**
 * Requests without a socket: the same way through the app, back-pressure and aborts included.
 *
 * No server runs here, so what is `Request` and `Response` is Node's own.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lift, liftAsync } from '../../arrow/index.ts'
import { zone } from '../../zone/index.ts'
import { createApp, type HttpError } from '../index.ts'

test('a path, a URL and a request can be injected', async () => {
  const app = createApp({
    routes: {
      '/:a': (request) => `${request.method} ${request.params.a} ${new URL(request.url).host}`,
      '/': 'root',
    },
  })
  const text = async (...args: Parameters<typeof app.inject>): Promise<string> =>
    (await app.inject(...args)).text()
  assert.equal(await text('/x'), 'GET x localhost')
  assert.equal(await text(new URL('http://h/x')), 'GET x h')
  assert.equal(await text(new Request('http://h/x', { method: 'PUT' })), 'PUT x h')
  assert.equal(await text('/x', { method: 'POST', body: 'b' }), 'POST x localhost')
  assert.equal(await text('/'), 'root')
  const head = await app.inject('/x', { method: 'HEAD' })
  assert.deepEqual([head.headers.get('content-length'), await head.text()], ['16', ''])
  assert.equal((await app.inject('/', { method: 'POST' })).status, 405)
})

test('bodies go through, at once and streamed', async () => {
  const app = createApp({
    routes: { '/echo': async (request) => request.text(), '/pipe': (request) => new Response(request.body) },
  })
  assert.equal(await (await app.inject('/echo', { method: 'POST', body: 'abc' })).text(), 'abc')
  const body = new Blob(['x'.repeat(300_000)]).stream()
  const piped = await app.inject('/pipe', { method: 'POST', body, duplex: 'half' })
  assert.equal((await piped.text()).length, 300_000)
})

test('request.json() makes no code from what clients send', async () => {
  const app = createApp({ routes: { '/echo': async (request) => await request.json() } })
  const body = JSON.stringify({ 'a key that the client chose': 1, second: ['a list', { of: 'objects' }] })
  const found = globalThis.Function
  let made = 0
  const count = (): void => void (made += 1)
  globalThis.Function = new Proxy(found, {
    construct: (target, args) => (count(), Reflect.construct(target, args) as object),
    apply: (target, self, args) => (count(), Reflect.apply(target, self, args) as unknown),
  })
  try {
    for (let at = 0; at < 100; at += 1)
      assert.equal(await (await app.inject('/echo', { method: 'POST', body })).text(), body)
  } finally {
    globalThis.Function = found
  }
  assert.equal(made, 0)
})

test('a response is produced as it is read, and its source is cancelled with the reader', async () => {
  let made = 0
  let isCancelled = (): void => {}
  const cancelled = new Promise<void>((resolve) => (isCancelled = resolve))
  const app = createApp({
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            made += 1
            controller.enqueue(new Uint8Array(1000))
          },
          cancel: () => isCancelled(),
        }),
      ),
  })
  const response = await app.inject('/')
  const reader = response.body!.getReader()
  await reader.read()
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(made < 10, `${made} pieces made, one read`)
  await reader.cancel()
  await cancelled
})

test('an aborted request aborts the signal of the handler and rejects', async () => {
  let aborted = false
  let isCalled = (): void => {}
  const called = new Promise<void>((resolve) => (isCalled = resolve))
  const app = createApp({
    fetch: (request) =>
      new Promise((_, reject) => {
        isCalled()
        request.signal.addEventListener('abort', () => {
          aborted = true
          reject(request.signal.reason as Error)
        })
      }),
  })
  const controller = new AbortController()
  const response = app.inject('/', { signal: controller.signal })
  await called
  controller.abort()
  await assert.rejects(response, { name: 'AbortError' })
  assert.equal(aborted, true)
})

test('a response that fails half-way fails where it is read', async () => {
  const app = createApp({
    fetch: () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue(new Uint8Array(10))
            await new Promise((resolve) => setTimeout(resolve, 5))
            controller.error(new Error('broke'))
          },
        }),
      ),
    error: () => undefined,
  })
  await assert.rejects((await app.inject('/')).arrayBuffer())
})

test('arrows, apps and tables of methods can be routes', async () => {
  const app = createApp({
    routes: {
      '/arrow': { run: (request: Request) => ({ ran: request.method }) },
      '/app/*': { fetch: (request: Request) => new Response(request.url) },
      '/json': { some: { json: [1, 2] } },
      '/list': [1, 2],
      '/response': new Response('made before', { status: 202, headers: { a: 'b' } }),
    },
  })
  const text = async (path: string): Promise<string> => (await app.inject(path)).text()
  assert.equal(await text('/arrow'), '{"ran":"GET"}')
  assert.equal(await text('/app/x'), 'http://localhost/app/x')
  assert.equal(await text('/json'), '{"some":{"json":[1,2]}}')
  assert.equal(await text('/list'), '[1,2]')
  const response = await app.inject('/response')
  assert.deepEqual(
    [response.status, response.headers.get('a'), await response.text()],
    [202, 'b', 'made before'],
  )
})

test('an arrow that would send its request to another thread fails and names the alternative', async () => {
  const work = await zone.create('requests', { workers: 1 })
  const failures: unknown[] = []
  const app = createApp({
    routes: {
      '/placed': lift((request: Request) => request.method).on(work),
      '/read': liftAsync((request: Request) => request.text()).andThen(
        lift((text: string) => text.toUpperCase()).on(work),
      ),
    },
    error: (error) => void failures.push(error),
  })
  const placed = await app.inject('/placed')
  const read = await app.inject('/read', { method: 'POST', body: 'hey' })
  assert.deepEqual([placed.status, await read.text()], [500, 'HEY'])
  const [error] = failures as HttpError[]
  assert.deepEqual([failures.length, error?.code], [1, 'HTTP_REQUEST_NOT_TRANSPORTABLE'])
  assert.match(error.message, /a request.*read it first and send the data.*andThen\(work\.on\(zone\)\)/)
  await work.close()
})
