/**
 * Middleware around handlers: errors as responses, CORS, limits of bodies and times.
 *
 * Each test is requests and what came back; nothing is looked at inside. What has a file beside this one
 * (logs, carried headers, forms, rates, cookies) is tested there.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { zone } from '../../zone/index.ts'
import { onServer } from '../cores.test.support.ts'
import { HttpError } from '../errors.ts'
import { createApp } from '../server.ts'
import { CorespunResponse } from '../fetch/response.ts'
import { accessLog } from '../middleware/logs/access-log.ts'
import { carry } from './carried.ts'
import { cors } from '../middleware/cors.ts'
import { bodyLimit } from './body-limit.ts'
import { withMiddleware, use } from './middleware.ts'
import { rateLimit } from '../middleware/rate-limit.ts'
import { requestId } from '../middleware/request-id.ts'
import { jsonErrors, StatusError } from './status-error.ts'
import { timeout } from '../middleware/timeout.ts'

const read = async (response: Response): Promise<[number, unknown]> => [
  response.status,
  response.headers.get('content-type') === 'application/json' ? await response.json() : await response.text(),
]

onServer('an error is a response with its code, an unexpected one shows only an id', async (start) => {
  const logged: unknown[] = []
  const routes = {
    '/none': () => {
      throw new StatusError(404, 'no such user', {
        headers: { 'x-why': 'deleted' },
      })
    },
    '/secret': async () => Promise.reject(new Error('the password is 1234')),
    '/json': async (request: Request) => (await request.json()) as object,
    '/full': () => Promise.reject(new HttpError('HTTP_CORE', { reason: 'x' })),
  }
  const server = await start({
    routes: {
      ...use(routes, requestId({ make: () => 'id-1' })),
      '/bare': routes['/none'],
    },
    error: jsonErrors({
      log: (cause, about) => logged.push([(cause as Error).message, about]),
    }),
  })
  const get = async (path: string, init?: RequestInit): Promise<[number, unknown]> =>
    read(await fetch(server.url + path, init))
  const none = await fetch(`${server.url}/none`)
  assert.deepEqual([none.headers.get('x-why'), none.headers.get('x-request-id')], ['deleted', 'id-1'])
  const expected = {
    code: 'NOT_FOUND',
    message: 'no such user',
    requestId: 'id-1',
  }
  assert.deepEqual(await read(none), [404, { error: expected }])
  // An id that no log has is of no use.
  const bare = { code: 'NOT_FOUND', message: 'no such user' }
  assert.deepEqual(await get('/bare'), [404, { error: bare }])
  const hidden = {
    code: 'INTERNAL_SERVER_ERROR',
    message: 'Internal Server Error',
    requestId: 'id-1',
  }
  assert.deepEqual(await get('/secret'), [500, { error: hidden }])
  assert.deepEqual(logged, [['the password is 1234', { id: 'id-1', request: 'GET /secret' }]])
  assert.equal((await get('/json', { method: 'POST', body: '{' }))[0], 400)
  assert.equal((await get('/full'))[0], 500)
})

onServer('jsonErrors also handles unmatched requests; core errors are text', async (start, core) => {
  const routes = { '/here': { GET: () => 'here' }, '/user/:id': () => 'user' }
  const settings = { error: jsonErrors(), limits: { bodyBytesMax: 4 } }
  const bare = await start({ routes, ...settings })
  const named = await start({ routes: use(routes, requestId({ make: () => 'id-1' })), ...settings })
  const asked = async (url: string, method = 'GET', body: string | null = null): Promise<unknown[]> => {
    const response = await fetch(url, { method, body })
    const [text, allowed] = [await response.text(), response.headers.get('allow')]
    if (!text.startsWith('{')) return [response.status, text.trimEnd(), undefined, allowed]
    const { error } = JSON.parse(text) as { error: { code: string; requestId: string } }
    return [response.status, error.code, error.requestId, allowed]
  }
  const allow = 'GET, HEAD, OPTIONS'
  assert.deepEqual(await asked(`${named.url}/nothing`), [404, 'NOT_FOUND', 'id-1', null])
  assert.deepEqual(await asked(`${named.url}/here`, 'DELETE'), [405, 'METHOD_NOT_ALLOWED', 'id-1', allow])
  assert.deepEqual(await asked(`${bare.url}/here`, 'DELETE'), [405, 'METHOD_NOT_ALLOWED', undefined, allow])
  assert.deepEqual(await asked(`${bare.url}/nothing`, 'HEAD'), [404, '', undefined, null])
  assert.deepEqual(await asked(`${bare.url}/here`, 'OPTIONS'), [204, '', undefined, allow])
  assert.equal(bare.stats().errors, 0)
  for (const { url } of [bare, named]) {
    const [status, text] = await asked(`${url}/nothing`, 'POST', 'too long')
    assert.deepEqual([status, text], [413, core === 'native' ? 'body too long' : ''])
    assert.deepEqual((await asked(`${url}/user/%ff`)).slice(0, 2), [400, 'Bad Request'])
  }
})

onServer('the response for a worker that died shows nothing else', async (start, core) => {
  const own = zone.create(`a response of ${core}`, { workers: 1 })
  const records: number[] = []
  const logged: unknown[] = []
  const death = (): Promise<never> =>
    own.run(() => {
      setImmediate(() => {
        throw new Error('the password is 1234')
      })
      return new Promise<never>(() => {})
    })
  const server = await start({
    routes: use({ '/dies': death }, accessLog({ log: ({ status }) => records.push(status) })),
    error: jsonErrors({ log: (cause) => logged.push((cause as Error).message) }),
  })
  const response = await fetch(`${server.url}/dies`)
  const text = await response.text()
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  assert.deepEqual([response.status, error.code, error.message], [502, 'WORKER_DIED', 'Bad Gateway'])
  assert.ok(!text.includes('1234'), text)
  assert.match(String(logged[0]), /the password is 1234/)
  assert.deepEqual(records, [502])
  await own.close()
})

onServer('middleware: order, constants, tables, apps, arrows, thrown responses', async (start) => {
  const order: string[] = []
  const mark =
    (name: string) =>
    async (_: Request, next: () => Promise<Response>): Promise<Response> => {
      order.push(`${name} in`)
      const response = await next()
      order.push(`${name} out ${response.status}`)
      return response
    }
  const routes = {
    '/text': 'constant',
    '/table': {
      GET: () => ({ a: 1 }),
      POST: new Response('made', { status: 201 }),
    },
    '/app': { fetch: () => new CorespunResponse('app') },
    '/arrow': { run: (request: Request) => `arrow ${request.method}` },
    '/thrown': () => {
      throw new CorespunResponse('teapot', { status: 418 })
    },
    '/redirect': () => CorespunResponse.redirect('http://x/'),
    '/user/:id': (request: Request & { params: { id: string } }) => request.params.id,
  }
  const server = await start({
    routes: use(routes, requestId({ make: () => 'r' }), mark('a'), mark('b')),
  })
  const get = async (path: string, method = 'GET'): Promise<[number, unknown, string | null]> => {
    const response = await fetch(server.url + path, {
      method,
      redirect: 'manual',
    })
    return [...(await read(response)), response.headers.get('x-request-id')]
  }
  assert.deepEqual(await get('/text'), [200, 'constant', 'r'])
  assert.deepEqual(order, ['a in', 'b in', 'b out 200', 'a out 200'])
  assert.deepEqual(await get('/text', 'POST'), [405, 'Method Not Allowed', 'r'])
  assert.deepEqual(await get('/table'), [200, { a: 1 }, 'r'])
  assert.deepEqual(await get('/table', 'POST'), [201, 'made', 'r'])
  assert.deepEqual(await get('/table', 'POST'), [201, 'made', 'r'])
  assert.deepEqual(await get('/app'), [200, 'app', 'r'])
  assert.deepEqual(await get('/arrow', 'PUT'), [200, 'arrow PUT', 'r'])
  assert.deepEqual(await get('/thrown'), [418, 'teapot', 'r'])
  assert.deepEqual(await get('/redirect'), [302, '', 'r'])
  assert.deepEqual(await get('/user/7'), [200, '7', 'r'])
})

onServer('CORS: preflights, named origins, credentials, errors too', async (start) => {
  const own = 'https://app.example'
  const server = await start({
    routes: {
      ...use({ '/open': { POST: () => 'made' } }, cors()),
      ...use(
        {
          '/named': () => 'x',
          '/bad': () => {
            throw new StatusError(400)
          },
        },
        cors({ origin: own, credentials: true, exposeHeaders: ['x-a'] }),
      ),
    },
    error: jsonErrors(),
  })
  const ask = async (path: string, method: string, headers: Record<string, string>): Promise<Headers> =>
    (await fetch(server.url + path, { method, headers })).headers
  const asked = {
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'x-a, x-b',
  }
  const open = await ask('/open', 'OPTIONS', { origin: own, ...asked })
  assert.equal(open.get('access-control-allow-origin'), '*')
  assert.equal(open.get('access-control-allow-methods'), 'GET, HEAD, POST, PUT, PATCH, DELETE')
  assert.equal(open.get('access-control-allow-headers'), 'x-a, x-b')
  assert.equal((await ask('/open', 'OPTIONS', {})).get('allow'), 'OPTIONS, POST')
  const named = await ask('/named', 'GET', { origin: own })
  assert.equal(named.get('access-control-allow-origin'), own)
  assert.equal(named.get('access-control-allow-credentials'), 'true')
  assert.equal(named.get('access-control-expose-headers'), 'x-a')
  assert.equal(named.get('vary'), 'Origin')
  const other = await ask('/named', 'GET', {
    origin: 'https://evil.example',
  })
  assert.equal(other.get('access-control-allow-origin'), null)
  assert.equal((await ask('/bad', 'GET', { origin: own })).get('access-control-allow-origin'), own)
  assert.throws(() => cors({ credentials: true }), {
    code: 'HTTP_ARGUMENT',
    message: 'cors(): `credentials: true` needs explicit origins; received "*"',
  })
  assert.throws(() => cors({ origin: 'example.com' }), {
    code: 'HTTP_ARGUMENT',
  })
})

onServer(
  'CORS where no route is: the page reads 404 and 405, a route without CORS stays closed',
  async (start) => {
    const server = await start({
      routes: { ...use({ '/with': { GET: () => 'x' } }, cors()), '/without': { GET: () => 'x' } },
    })
    const ask = async (path: string, method: string): Promise<[number, string | null]> => {
      const asked = method === 'OPTIONS' ? { 'access-control-request-method': 'PUT' } : {}
      const response = await fetch(server.url + path, {
        method,
        headers: { origin: 'https://a.b', ...asked },
      })
      return [response.status, response.headers.get('access-control-allow-origin')]
    }
    assert.deepEqual(await ask('/nothing', 'GET'), [404, '*'])
    assert.deepEqual(await ask('/with', 'DELETE'), [405, '*'])
    assert.deepEqual(await ask('/nothing', 'OPTIONS'), [204, '*'])
    assert.deepEqual(await ask('/with', 'OPTIONS'), [204, '*'])
    assert.deepEqual(await ask('/without', 'OPTIONS'), [204, null])
    assert.deepEqual(await ask('/without', 'GET'), [200, null])
  },
)

onServer('use around use: both are everywhere, and each header comes once', async (start) => {
  const paths: string[] = []
  const own = 'https://app.example'
  const inner = use(
    { '/a': { GET: () => 'a' } },
    requestId({ make: () => 'inner' }),
    cors({ origin: own }),
    (request, next) => {
      carry(request).append('set-cookie', 'a=1')
      return next()
    },
  )
  const routes = use(use(inner, cors({ origin: own })), accessLog({ log: ({ path }) => paths.push(path) }))
  const server = await start({ routes, error: jsonErrors() })
  const ask = async (path: string): Promise<unknown[]> => {
    const { status, headers } = await fetch(server.url + path, { headers: { origin: own } })
    return [status, headers.get('x-request-id'), headers.get('vary'), headers.getSetCookie()]
  }
  assert.deepEqual(await ask('/a'), [200, 'inner', 'Origin', ['a=1']])
  assert.deepEqual(await ask('/none'), [404, 'inner', 'Origin', []])
  assert.deepEqual(paths, ['/a', '/none'])
  // Middleware without EVERYWHERE does not run, and does not disable the others.
  const again = await start({ routes: use(inner, timeout(1000)) })
  assert.equal((await fetch(`${again.url}/none`)).headers.get('x-request-id'), 'inner')
})

test('use refuses what serve refuses, and leaves out what is undefined', async () => {
  const made = (value: unknown): void => void use({ '/u': value as never }, cors())
  for (const value of [undefined, 7n, Symbol('s'), { GET: 7n }])
    assert.throws(() => made(value), { code: 'HTTP_ARGUMENT', message: /routes\['(GET )?\/u'\]/ })
  const routes = { '/u': { GET: undefined, POST: () => 'made' } as object }
  const app = createApp({ routes: use(routes, cors()) })
  assert.equal((await app.inject('/u')).status, 405)
  assert.equal((await app.inject('/u', { method: 'OPTIONS' })).headers.get('allow'), 'OPTIONS, POST')
  assert.equal(await (await app.inject('/u', { method: 'POST' })).text(), 'made')
})

/** Posts a body in chunks, without a content-length. */
function postChunked(url: string, body: Buffer): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve([response.statusCode!, text])).on('error', reject)
    })
    request.on('error', reject)
    request.write(body.subarray(0, 1))
    request.end(body.subarray(1))
  })
}

onServer('a body limit of a route, with and without content-length', async (start) => {
  const server = await start({
    routes: use(
      {
        '/text': async (request: Request) => String((await request.text()).length),
        '/bytes': async (request: Request) => String((await request.bytes()).length),
        '/json': async (request: Request) => (await request.json()) as string,
        '/stream': (request: Request) => new Response(request.body),
      },
      bodyLimit(10),
    ),
    error: jsonErrors(),
  })
  const [small, large] = [Buffer.from('"34567890"'), Buffer.from('"3456789012345"')]
  for (const [path, response] of [
    ['/text', '10'],
    ['/bytes', '10'],
    ['/json', '34567890'],
  ] as const) {
    const accepted = await fetch(server.url + path, {
      method: 'POST',
      body: small,
    })
    assert.equal(await accepted.text(), response)
    assert.deepEqual(await postChunked(server.url + path, small), [200, response])
    const refused = await fetch(server.url + path, {
      method: 'POST',
      body: large,
    })
    assert.equal(refused.status, 413)
    assert.equal(((await refused.json()) as { error: { code: string } }).error.code, 'BODY_TOO_LARGE')
    const [status, text] = await postChunked(server.url + path, large)
    assert.deepEqual([status, text.includes('BODY_TOO_LARGE')], [413, true])
    // An injected request has no content-length.
    const put = async (body: string) => (await server.inject(path, { method: 'POST', body })).status
    assert.deepEqual([await put(small.toString()), await put(large.toString())], [200, 413])
  }
  assert.deepEqual(await postChunked(`${server.url}/stream`, small), [200, '"34567890"'])
})

onServer('under a body limit a request stays itself: whose fault it is, what its clone is', async (start) => {
  const routes = {
    '/json': async (request: Request) => (await request.json()) as string,
    '/form': async (request: Request) => [...(await request.formData()).keys()],
    '/twice': async (request: Request) => [await request.text(), await request.json()],
    '/clone/:id': async (request: Request) => {
      const clone = request.clone()
      const { method, url, headers } = clone
      const bodies = [await clone.text(), await request.text()]
      return { method, path: url.slice(new URL(url).origin.length), a: headers.get('x-a'), bodies }
    },
  }
  for (const given of [routes, use(routes, bodyLimit(100))]) {
    const server = await start({ routes: given, error: jsonErrors({ log: () => {} }) })
    const put = (path: string, body: string, headers = {}): Promise<Response> =>
      server.inject(path, { method: 'PUT', body, headers })
    assert.equal((await put('/json', '{')).status, 400)
    assert.equal(
      (await put('/form', '--x broken', { 'content-type': 'multipart/form-data; boundary=x' })).status,
      400,
    )
    assert.equal((await put('/twice', '{}')).status, 500) // the handler's mistake
    const clone = await put('/clone/7?q=1', 'body', { 'x-a': 'b' })
    const expected = { method: 'PUT', path: '/clone/7?q=1', a: 'b', bodies: ['body', 'body'] }
    assert.deepEqual(await clone.json(), expected)
  }
})

test('a response after the timeout is cancelled, and its open file is closed', async () => {
  let cancelled: (reason: unknown) => void
  const isCancelled = new Promise((resolve) => (cancelled = resolve))
  let release: (() => void) | undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const slow = async (): Promise<Response> => {
    await released
    return new Response(new ReadableStream({ cancel: () => cancelled(true) }, { highWaterMark: 0 }))
  }
  const app = createApp({ routes: use({ '/': slow }, timeout(5)), error: jsonErrors() })
  assert.equal((await app.inject('/')).status, 503)
  release!()
  assert.equal(await isCancelled, true)
})

onServer('a handler that takes too long: 503, and its signal is aborted', async (start) => {
  let reason: unknown
  const slow = (request: Request): Promise<string> =>
    new Promise((_, reject) => {
      request.signal.addEventListener('abort', () => {
        reason = request.signal.reason
        reject(reason)
      })
    })
  const server = await start({
    routes: use({ '/slow': slow, '/fast': 'fast' }, timeout(20)),
    error: jsonErrors(),
  })
  const [status, body] = await read(await fetch(`${server.url}/slow`))
  assert.deepEqual([status, (body as { error: { code: string } }).error.code], [503, 'HANDLER_TIMEOUT'])
  assert.ok(reason instanceof StatusError)
  assert.deepEqual(await read(await fetch(`${server.url}/fast`)), [200, 'fast'])
})

test('a handler may have a second parameter that is optional', async () => {
  const handler = (_: Request, context?: { readonly name: string }): string => `${context?.name}`
  assert.equal(handler.length, 2)
  const app = createApp({ routes: { '/': withMiddleware(handler, timeout(5000)) } })
  assert.equal(await (await app.inject('/')).text(), 'undefined')
})

test('settings are checked where they are given', () => {
  assert.throws(() => new StatusError(200), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => withMiddleware('x' as never), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => withMiddleware(timeout(5) as never, () => 'x'), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => use({}, 1 as never), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => requestId({ header: 'a b' }), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => accessLog({ log: {} as never }), {
    code: 'HTTP_ARGUMENT',
  })
  assert.throws(() => bodyLimit(-1), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => timeout(0), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => rateLimit({ requestsMax: 0 }), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => rateLimit(undefined as never), { message: 'rateLimit() needs { requestsMax }' })
})

onServer('a StatusError is the response also without an error handler', async (start) => {
  const server = await start({
    routes: {
      '/taken': () => {
        throw new StatusError(409, 'taken')
      },
    },
  })
  const response = await fetch(`${server.url}/taken`)
  assert.deepEqual(await read(response), [409, { error: { code: 'CONFLICT', message: 'taken' } }])
  assert.equal(server.stats().errors, 0)
})
