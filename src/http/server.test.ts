/**
 * The server as users see it: responses, and bodies both ways. stop.test.ts has what ends them.
 *
 * conformance.test.ts tests the bytes on the wire; this file uses a normal client.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { settled, until } from '../base/wait.test.support.ts'
import { ZoneError } from '../zone/index.ts'
import { onCores, onServer } from './cores.test.support.ts'
import { connect, converse } from './raw.test.support.ts'
import { serve } from './serve.ts'

onCores('a string, bytes, JSON, a Response: each is sent as what it is', async (start) => {
  const server = await start({
    routes: {
      '/text': () => 'héllo',
      '/bytes': () => new Uint8Array([0, 255]),
      '/json': () => ({ a: [1, null] }),
      '/null': () => null,
      '/number': () => 1.5,
      '/response': () => new Response('made', { status: 201, headers: { 'X-Made': 'yes' } }),
      '/html': () => new Response('<p>', { headers: { 'content-type': 'text/html;charset=UTF-8' } }),
      '/native-json': () => Response.json({ b: 1 }),
      '/empty': () => new Response(null, { status: 204 }),
      '/later': async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return 'later'
      },
    },
  })
  const seen = async (path: string): Promise<unknown[]> => {
    const response = await fetch(server.url + path)
    const { status, headers } = response
    return [status, headers.get('content-type'), headers.get('content-length'), await response.text()]
  }
  assert.deepEqual(await seen('/text'), [200, 'text/plain;charset=UTF-8', '6', 'héllo'])
  assert.deepEqual(await seen('/bytes'), [200, 'application/octet-stream', '2', '\0\ufffd'])
  assert.deepEqual(await seen('/json'), [200, 'application/json', '14', '{"a":[1,null]}'])
  assert.deepEqual(await seen('/null'), [200, 'application/json', '4', 'null'])
  assert.deepEqual(await seen('/number'), [200, 'application/json', '3', '1.5'])
  assert.deepEqual(await seen('/response'), [201, 'text/plain;charset=UTF-8', '4', 'made'])
  assert.deepEqual(await seen('/html'), [200, 'text/html;charset=UTF-8', '3', '<p>'])
  assert.deepEqual(await seen('/native-json'), [200, 'application/json', '7', '{"b":1}'])
  assert.deepEqual(await seen('/empty'), [204, null, null, ''])
  assert.deepEqual(await seen('/later'), [200, 'text/plain;charset=UTF-8', '5', 'later'])
  assert.deepEqual(await seen('/nothing'), [404, 'text/plain;charset=UTF-8', '9', 'Not Found'])
})

onCores('the characters of a header are bytes, whatever body follows', async (start) => {
  const headers = { 'x-name': 'caf\xe9' }
  const text = (): Response => new Response('h\xe9llo', { headers })
  const server = await start({
    routes: {
      '/text': { GET: text, POST: text },
      '/bytes': () => new Response(new Uint8Array([0xff]), { headers }),
      '/stream': () => new Response(new Blob(['st', 'ream']).stream(), { headers }),
    },
  })
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`
  const unread = 'POST /text HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc'
  const requests = [get('/text'), get('/bytes'), get('/stream'), unread]
  const { responses } = await converse(server.port, requests, { responses: 4 })
  assert.deepEqual(
    responses.map((response) => [response.headers['x-name'], response.body]),
    ['h\xc3\xa9llo', '\xff', 'stream', 'h\xc3\xa9llo'].map((body) => ['caf\xe9', body]),
  )
})

onCores('an error without a response of its own is sent as the text of its status', async (start) => {
  const codes = ['ZONE_TENANT_FULL', 'WORKER_DIED', 'ZONE_FULL', 'TASK_TIMEOUT'] as const
  const facts = { zone: 'z', tasksMax: 1, worker: 'z/0', reason: 'none', timeoutMs: 1, started: true }
  const server = await start({
    routes: {
      '/:code': ({ params }) => Promise.reject(new ZoneError(params.code as 'ZONE_FULL', facts)),
    },
    error: () => undefined,
  })
  const texts = codes.map(async (code) => {
    const response = await fetch(`${server.url}/${code}`)
    return [response.status, response.statusText, await response.text()]
  })
  const names = ['Too Many Requests', 'Bad Gateway', 'Service Unavailable', 'Gateway Timeout']
  const statuses = [429, 502, 503, 504]
  const expected = statuses.map((status, n) => [status, names[n], names[n]])
  assert.deepEqual(await Promise.all(texts), expected)
})

onCores('routes: params, the rest, methods, HEAD, OPTIONS, 405', async (start) => {
  const server = await start({
    routes: {
      '/user/:id': { GET: (request) => ({ id: request.params.id }), POST: () => 'posted' },
      '/files/*': (request) => request.params['*'],
      '/constant': 'constant',
    },
  })
  const get = async (path: string, method = 'GET'): Promise<[number, string]> => {
    const response = await fetch(server.url + path, { method })
    return [
      response.status,
      method === 'OPTIONS' || response.status === 405
        ? response.headers.get('allow')!
        : await response.text(),
    ]
  }
  assert.deepEqual(await get('/user/a%20b'), [200, '{"id":"a b"}'])
  assert.deepEqual(await get('/user/1?x=1', 'POST'), [200, 'posted'])
  assert.deepEqual(await get('/user/1', 'DELETE'), [405, 'GET, HEAD, OPTIONS, POST'])
  assert.deepEqual(await get('/user/1', 'OPTIONS'), [204, 'GET, HEAD, OPTIONS, POST'])
  assert.deepEqual(await get('/user/%ff'), [400, 'Bad Request'])
  assert.deepEqual(await get('/files/a/b'), [200, 'a/b'])
  assert.deepEqual(await get('/constant?x'), [200, 'constant'])
  assert.deepEqual(await get('/constant', 'POST'), [405, 'GET, HEAD, OPTIONS'])
  const head = await fetch(`${server.url}/user/7`, { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('content-length'), await head.text()], [200, '10', ''])
  const fixed = await fetch(`${server.url}/constant`, { method: 'HEAD' })
  assert.deepEqual([fixed.status, fixed.headers.get('content-length'), await fixed.text()], [200, '8', ''])
})

onCores('a path with a character that no URI has is refused before it is routed', async (start) => {
  const { port } = await start({ routes: { '/admin': () => 'secret', '/*': () => 'page' } })
  for (const target of ['/public\\..\\admin', '/..\\admin', '/a"b', '/a|b', '/a^b', '/a`b', '/{a}', '/<a>']) {
    const { responses } = await converse(port, [`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`], {
      responses: 1,
    })
    assert.deepEqual(
      responses.map(({ status }) => status),
      [400],
      target,
    )
  }
})

onCores('a target with https is refused, since the connection has no TLS', async (start) => {
  const { port } = await start({ routes: { '/*': () => 'page' } })
  for (const [target, status] of [
    ['https://y/', 421],
    ['HTTPS://y:443/a?b', 421],
    ['http://y/https://y/', 200],
    ['/https://y/', 200],
  ] as const) {
    const { responses } = await converse(port, [`GET ${target} HTTP/1.1\r\nHost: y\r\n\r\n`], {
      responses: 1,
    })
    assert.deepEqual(
      responses.map((response) => response.status),
      [status],
      target,
    )
  }
})

onCores('the body of a request, in every way to read it', async (start) => {
  const server = await start({
    routes: {
      '/text': async (request) => request.text(),
      '/json': async (request) => request.json() as Promise<object>,
      '/bytes': async (request) => String((await request.bytes()).byteLength),
      '/buffer': async (request) => String((await request.arrayBuffer()).byteLength),
      '/blob': async (request) => (await request.blob()).type,
      '/form': async (request) => Object.fromEntries(await request.formData()) as Record<string, string>,
      '/stream': (request) => new Response(request.body),
      '/clone': async (request) => (await request.clone().text()) + (await request.text()),
      '/twice': async (request) => {
        await request.text()
        return request.text().catch((error: Error) => `${error.name} ${request.bodyUsed}`)
      },
    },
  })
  const post = async (path: string, body: string | FormData | Uint8Array<ArrayBuffer>): Promise<string> =>
    (await fetch(server.url + path, { method: 'POST', body })).text()
  const large = 'ü'.repeat(500_000)
  assert.equal(await post('/text', 'hé'), 'hé')
  assert.equal(await post('/text', large), large)
  assert.equal(await post('/json', '{"x":1}'), '{"x":1}')
  assert.equal(await post('/json', '{"x":'), 'Bad Request')
  assert.equal(await post('/bytes', large), '1000000')
  assert.equal(await post('/buffer', 'four'), '4')
  assert.equal(await post('/blob', 'four'), 'text/plain;charset=utf-8')
  const form = new FormData()
  form.set('name', 'värde')
  assert.equal(await post('/form', form), '{"name":"värde"}')
  assert.equal(await post('/stream', large), large)
  assert.equal(await post('/clone', 'ab'), 'abab')
  assert.equal(await post('/twice', 'ab'), 'TypeError true')
})

onServer('a streamed response waits for a slow reader, and one that fails is cut', async (start) => {
  let made = 0
  const server = await start({
    routes: {
      '/endless': () =>
        new Response(
          new ReadableStream({
            pull(controller) {
              made += 1
              controller.enqueue(new Uint8Array(65_536))
            },
          }),
        ),
      '/fails': () =>
        new Response(
          new ReadableStream({
            async pull(controller) {
              controller.enqueue(new TextEncoder().encode('some'))
              await new Promise((resolve) => setTimeout(resolve, 10))
              controller.error(new Error('no more'))
            },
          }),
        ),
      '/sized': () => new Response(new Blob(['12345']).stream(), { headers: { 'content-length': '5' } }),
      '/short': () => new Response(new Blob(['12345']).stream(), { headers: { 'content-length': '6' } }),
    },
  })
  const socket = await connect(server.port)
  socket.write('GET /endless HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => made > 0)
  let before = -1
  while (made !== before) {
    before = made
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.ok(made < 400, `${made} pieces made for a client that reads nothing`)
  socket.destroy()
  await assert.rejects(fetch(`${server.url}/fails`).then((response) => response.text()))
  const sized = await fetch(`${server.url}/sized`)
  assert.deepEqual([sized.headers.get('content-length'), await sized.text()], ['5', '12345'])
  // A 500 where the end of the stream is known before the head is sent, which depends on the Node; else cut.
  const short = await fetch(`${server.url}/short`)
    .then(async (response) => {
      return response.text().then(() => response.status)
    })
    .catch(() => 500)
  assert.equal(short, 500)
})

onServer('a body read after the response is that of its request, or an error', async (start) => {
  const seen: [string, unknown][] = []
  const later = (name: string, read: () => Promise<unknown>): void => {
    const record = (): Promise<number> =>
      read().then(
        (found) => seen.push([name, found]),
        (error: { code?: string }) => seen.push([name, error.code ?? error]),
      )
    setTimeout(() => void record(), 50)
  }
  const server = await start({
    routes: {
      '/clone': (request) => {
        const clone = request.clone()
        later('clone', () => clone.text())
        return 'ok'
      },
      '/body': (request) => {
        const { body } = request
        later('body', () => new Response(body).text())
        return 'ok'
      },
      '/later': async (request) => {
        const clone = request.clone()
        later('later', () => clone.text())
        await new Promise((resolve) => setTimeout(resolve, 5))
        return 'ok'
      },
      '/other': async (request) => request.text(),
    },
  })
  const post = async (path: string, body: string): Promise<string> =>
    (await fetch(server.url + path, { method: 'POST', body })).text()
  for (const [index, path] of ['/clone', '/body', '/later'].entries()) {
    await post(path, 'one')
    for (let round = 0; round < 5; round += 1) assert.equal(await post('/other', 'secret'), 'secret')
    await until(() => seen.length > index)
  }
  assert.deepEqual(seen, [
    ['clone', 'one'],
    ['body', 'HTTP_REQUEST_ENDED'],
    ['later', 'one'],
  ])
})

onServer('a pending read of a body ends with the response', async (start) => {
  const reads: Promise<unknown>[] = []
  const code = (error: { code?: string }): unknown => error.code ?? error
  const server = await start({
    routes: {
      '/whole': (request) => {
        reads.push(request.text().catch(code))
        return 'early'
      },
      '/later': async (request) => {
        reads.push(request.json().catch(code))
        await new Promise((resolve) => setTimeout(resolve, 20))
        return 'early'
      },
      '/stream': (request) => {
        const reader = request.body!.getReader()
        reads.push(
          reader
            .read()
            .then(() => reader.read())
            .catch(code),
        )
        return new Response(
          new ReadableStream({
            async start(out) {
              await new Promise((resolve) => setTimeout(resolve, 20))
              out.enqueue(new Uint8Array(9))
              await new Promise((resolve) => setTimeout(resolve, 20))
              out.close()
            },
          }),
        )
      },
      // Nobody looks at what becomes of it: that is no error of the process.
      '/nobody': (request) => {
        void request.text()
        return 'early'
      },
    },
  })
  for (const path of ['/whole', '/later', '/stream', '/nobody']) {
    const socket = await connect(server.port)
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf`)
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    await until(() => /early$|\r\n0\r\n\r\n$/.test(text))
    socket.destroy()
  }
  const found = await settled(Promise.all(reads), 'the ends of the reads')
  assert.deepEqual(found, ['HTTP_REQUEST_ENDED', 'HTTP_REQUEST_ENDED', 'HTTP_REQUEST_ENDED'])
})

onCores('a taken port is an error that names it', async (start) => {
  const server = await start({ routes: { '/': 'x' } })
  await assert.rejects(start({ port: server.port, routes: { '/': 'x' } }), { code: 'HTTP_PORT_TAKEN' })
})

onCores('pipelined responses arrive in the order of their requests', async (start) => {
  const server = await start({
    routes: {
      '/:ms': async (request) => {
        await new Promise((resolve) => setTimeout(resolve, Number(request.params.ms)))
        return request.params.ms
      },
    },
    limits: { streamsMax: 3 },
  })
  const delays = [30, 1, 20, 5, 10, 2]
  const text = delays.map((ms) => `GET /${ms} HTTP/1.1\r\nHost: x\r\n\r\n`).join('')
  const { responses } = await converse(server.port, [text], { responses: delays.length })
  assert.deepEqual(
    responses.map(({ body }) => Number(body)),
    delays,
  )
})

test('on node:http nothing after an offer to upgrade is taken for a request', async () => {
  const seen: string[] = []
  const routes = { '/*': ({ url }: Request) => (seen.push(new URL(url).pathname), 'hello') }
  const server = await serve({ quiet: true, core: 'node', host: '127.0.0.1', port: 0, routes })
  const offer = 'GET /offer HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n'
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n'
  const post = `POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: ${hidden.length}\r\n\r\n`
  const { responses, closed } = await converse(server.port, [offer + post, hidden], { responses: 3 })
  assert.deepEqual([responses.map(({ body }) => body), closed, seen], [['hello'], true, ['/offer']])
  await server.close({ timeoutMs: 0 })
})

onCores('a server on a Unix socket', async (start) => {
  const unixPath = `${process.env.TMPDIR ?? '/tmp'}/corespun-http-${process.pid}.sock`
  const server = await start({ unixPath, port: undefined as never, routes: { '/': 'by path' } })
  assert.equal(server.url, `unix:${unixPath}`)
  const request = http.get({ socketPath: unixPath, path: '/', agent: false })
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  assert.equal(text, 'by path')
})

onCores('a body that is read whole has a stream that nobody can read', async (start) => {
  const server = await start({
    routes: {
      '/': async (request) => {
        const text = request.text()
        const { body } = request
        const again = await request.text().catch((error: Error) => error.name)
        return [body?.locked, body === request.body, request.bodyUsed, (await text).length, again].join()
      },
      '/none': async (request) => `${await request.text()}${request.body}`,
    },
  })
  for (const bytes of [3, 1_000_000]) {
    const response = await fetch(server.url, { method: 'POST', body: 'x'.repeat(bytes) })
    assert.equal(await response.text(), `true,true,true,${bytes},TypeError`)
  }
  assert.equal(await (await fetch(`${server.url}/none`, { method: 'POST' })).text(), 'null')
})

const circle: Record<string, unknown> = {}
circle['self'] = circle

/** Values that would be sent as `{}`, or not at all. */
const NO_ENDPOINTS: readonly unknown[] = [
  Symbol('x'),
  { GET: () => 'x', PROPFIND: () => 'y' },
  { Get: () => 'x' },
  new ReadableStream(),
  Promise.resolve('x'),
  new Blob(['x']),
  new Map([['GET', () => 'x']]),
  new Date(0),
  circle,
  { bigint: 1n },
  [{ toJSON: () => assert.fail('on purpose') }],
]

test('close() refuses unknown and invalid options', async () => {
  const server = await serve({ quiet: true, port: 0, host: '127.0.0.1', routes: { '/': 'x' } })
  const refused = [
    [null, 'options'],
    [5, 'options'],
    [{ drain: 5 }, 'drain'],
    [{ timeoutMs: '5' }, 'timeoutMs'],
  ] as const
  for (const [options, name] of refused) {
    assert.throws(
      () => server.close(options as never),
      (error: { code?: string; facts?: { name: string } }) => {
        assert.deepEqual([error.code, error.facts?.name], ['HTTP_ARGUMENT', `server.close(): ${name}`])
        return true
      },
    )
  }
  await server.close()
})

test('settings are checked by name', async () => {
  const refused = [
    [{ routes: { '/': 'x' }, prot: 1 }, 'prot'],
    [{ routes: { '/': 'x' }, port: 70_000 }, 'port'],
    [{ routes: { '/': 'x' }, limits: { idleMs: -1 } }, 'limits.idleMs'],
    [{ routes: { '/': 'x' }, limits: { idle: 1 } }, 'limits.idle'],
    [{ routes: { '/': 'x' }, core: 'bun' }, 'core'],
    [{ routes: { '/': 'x' }, host: '' }, 'host'],
    [{ routes: { '/': 'x' }, unixPath: `/tmp/${'x'.repeat(200)}` }, 'unixPath'],
    ...NO_ENDPOINTS.map((value) => [{ routes: { '/': value } }, "routes['/']"] as const),
    [{ fetch: 3 }, 'fetch'],
  ] as const satisfies readonly (readonly [unknown, string])[]
  for (const [settings, name] of refused) {
    await assert.rejects(serve(settings as never), (error: { code?: string; facts?: { name: string } }) => {
      const named = name.startsWith('routes[') ? name : `serve(): ${name}`
      assert.deepEqual([error.code, error.facts?.name], ['HTTP_ARGUMENT', named])
      return true
    })
  }
  const missing = { code: 'HTTP_ARGUMENT', message: 'serve() needs `routes` or `fetch`' }
  await assert.rejects(serve({}), missing)
  const pattern = { code: 'HTTP_ROUTE', message: "invalid route '/a/:': missing parameter name after ':'" }
  await assert.rejects(serve({ routes: { '/a/:': 'x' } }), pattern)
})
