/**
 * Logs around handlers: they record the response that was sent, and one that fails has no other effect.
 *
 * An unhandled rejection would fail the test that caused it.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { pino } from 'pino'
import { fork, sleep, timeout as fiberTimeout } from '../../fiber/index.ts'
import { StoreError } from '../../store/index.ts'
import { SyncError } from '../../sync/index.ts'
import { ZoneError } from '../../zone/index.ts'
import { onServer } from '../cores.test.support.ts'
import { HttpError } from '../errors.ts'
import { native } from '../fetch/native.ts'
import type { HttpRequest } from '../app/routes.ts'
import { createApp } from '../server.ts'
import { accessLog, type AccessRecord } from './logs/access-log.ts'
import { getRequestId } from '../app/carried.ts'
import { chunks } from '../app/events.ts'
import { type Middleware, use } from '../app/middleware.ts'
import { requestId } from './request-id.ts'
import { jsonErrors } from '../app/status-error.ts'
import { timeout } from './timeout.ts'

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

onServer('request ids and the access log', async (start) => {
  const lines: string[] = []
  const logger = pino({}, { write: (line: string) => void lines.push(line) })
  const server = await start({
    routes: use(
      {
        '/who': (request: Request) => getRequestId(request) ?? 'nobody',
        '/fails': () => {
          throw new Error('x')
        },
        '/health': 'ok',
      },
      requestId({ trust: true, header: 'X-Trace' }),
      accessLog({
        log: logger,
        skip: ({ path }) => path === '/health',
      }),
    ),
  })
  const who = async (id: string): Promise<string> =>
    (await fetch(`${server.url}/who?q`, { headers: { 'x-trace': id } })).text()
  assert.equal(await who('from-proxy'), 'from-proxy')
  assert.match(await who('not an id'), /^[0-9a-f-]{36}$/)
  await (await fetch(`${server.url}/fails`)).text()
  await (await fetch(`${server.url}/health`)).text()
  const records = lines.map((line) => JSON.parse(line) as AccessRecord & { msg: string })
  const messages = ['GET /who 200', 'GET /who 200', 'GET /fails 500']
  assert.deepEqual(
    records.map(({ method, path, status }) => `${method} ${path} ${status}`),
    messages,
  )
  assert.deepEqual(
    records.map(({ msg }) => msg),
    messages,
  )
  assert.equal(records[0].requestId, 'from-proxy')
  assert.ok(records.every(({ ms }) => ms >= 0))
  // JSON.parse merges repeated keys, so they are counted in the text.
  for (const line of lines)
    assert.equal(line.match(/"(\w+)":/g)!.length, Object.keys(JSON.parse(line) as object).length)
})

onServer('the id is in the log wherever it is set, and a function receives the time', async (start) => {
  const records: AccessRecord[] = []
  const id = requestId({ make: () => 'id-1' })
  const log = accessLog({ log: (record) => records.push(record) })
  const throwing = (): never => {
    throw new Error('x')
  }
  const server = await start({
    routes: {
      ...use({ '/inside': () => 'x', '/throws': throwing }, log, id),
      ...use({ '/outside': () => 'x' }, id, log),
    },
  })
  for (const path of ['/inside', '/throws', '/outside']) await (await fetch(server.url + path)).text()
  assert.deepEqual(
    records.map(({ path, requestId: id }) => `${path} ${id}`),
    ['/inside id-1', '/throws id-1', '/outside id-1'],
  )
  assert.ok(records.every(({ time }) => !Number.isNaN(Date.parse(time))))
})

onServer('the access log records the status that was sent, whatever was thrown', async (start) => {
  const records: number[] = []
  const refuse = (error: Error) => async (): Promise<never> => {
    throw error
  }
  const server = await start({
    routes: use(
      {
        '/json': async (request: Request) => (await request.json()) as object,
        '/full': refuse(new ZoneError('ZONE_FULL', { zone: 'z', queueMax: 1 } as never)),
        '/large': refuse(new HttpError('HTTP_BODY_TOO_LARGE', { bodyBytesMax: 1 })),
        '/bug': refuse(new Error('x')),
      },
      accessLog({ log: ({ status }) => void records.push(status) }),
    ),
    error: jsonErrors({ log: () => {} }),
  })
  const responded: number[] = []
  for (const path of ['/json', '/full', '/large', '/bug'])
    responded.push((await fetch(server.url + path, { method: 'POST', body: '{' })).status)
  assert.deepEqual(responded, [400, 503, 413, 500])
  assert.deepEqual(records, responded)
})

onServer('a request that no route takes has its id and its record too', async (start) => {
  const records: AccessRecord[] = []
  let ids = 0
  const named = use(
    { '/here': { GET: () => 'here' }, '/constant': 'constant' },
    requestId({ make: () => `id-${(ids += 1)}` }),
    accessLog({ log: (record) => records.push(record) }),
    () => new Response('middleware that does not run for unmatched requests', { status: 500 }),
  )
  const server = await start({ routes: { ...named, '/bare': { GET: () => 'bare' } } })
  const ask = async (path: string, method = 'GET'): Promise<unknown[]> => {
    const response = await fetch(`${server.url}${path}`, { method })
    const { status, headers } = response
    return [status, await response.text(), headers.get('x-request-id'), headers.get('allow')]
  }
  assert.deepEqual(await ask('/nothing?q=1'), [404, 'Not Found', 'id-1', null])
  assert.deepEqual(await ask('/here', 'DELETE'), [405, 'Method Not Allowed', 'id-2', 'GET, HEAD, OPTIONS'])
  assert.deepEqual(await ask('/here', 'OPTIONS'), [204, '', 'id-3', 'GET, HEAD, OPTIONS'])
  assert.deepEqual(await ask('/nothing', 'HEAD'), [404, '', 'id-4', null])
  assert.deepEqual(await ask('/bare'), [200, 'bare', null, null])
  assert.deepEqual(
    records.map(({ requestId: id, method, path, status }) => `${id} ${method} ${path} ${status}`),
    ['id-1 GET /nothing 404', 'id-2 DELETE /here 405', 'id-3 OPTIONS /here 204', 'id-4 HEAD /nothing 404'],
  )
})

onServer('a log that throws or rejects affects neither the response nor the process', async (start, _, t) => {
  const reported = t.mock.method(console, 'error', () => {})
  const logs = [
    () => {
      throw new Error('the disk is full')
    },
    async () => {
      throw new Error('the disk is full')
    },
    () => ({
      then: (_: unknown, onError: (error: Error) => void) => onError(new Error('the disk is full')),
    }),
  ]
  for (const log of logs) {
    const broken = { '/fine': () => 'fine', '/bug': () => Promise.reject(new Error('a bug')) }
    const server = await start({
      routes: use(broken, requestId({ make: () => 'id-1' }), accessLog({ log: { info: log } })),
      error: jsonErrors({ log }),
    })
    assert.equal(await (await fetch(`${server.url}/fine`)).text(), 'fine')
    const response = await fetch(`${server.url}/bug`)
    const { error } = (await response.json()) as { error: object }
    const body = { code: 'INTERNAL_SERVER_ERROR', message: 'Internal Server Error', requestId: 'id-1' }
    assert.deepEqual([response.status, error, response.headers.get('x-request-id')], [500, body, 'id-1'])
    await later()
  }
  const failures = reported.mock.calls.map(({ arguments: [what] }) => String(what))
  const each = ['the access log', 'the access log', 'the log of jsonErrors()']
  const expected = logs.flatMap(() => each).map((what) => `corespun/http: ${what} failed:`)
  assert.deepEqual(failures.sort(), expected.sort())
})

test('a `skip` that throws does not affect the response', async (t) => {
  const reported = t.mock.method(console, 'error', () => {})
  const skip = (): never => {
    throw new Error('the disk is full')
  }
  const app = createApp({ routes: use({ '/': () => 'ok' }, accessLog({ log: () => {}, skip })) })
  assert.equal(await (await app.inject('/')).text(), 'ok')
  assert.equal(reported.mock.callCount(), 1)
})

onServer('an app adds fields to a record, and replaces none of it', async (start) => {
  const users = new WeakMap<HttpRequest, string>()
  const authenticate: Middleware = (request, next) => {
    users.set(request, 'ada')
    return next()
  }
  const records: object[] = []
  const fields = (request: HttpRequest) => ({ user: users.get(request), status: 'mine' })
  const log = accessLog({
    log: ({ user, path, status }) => void records.push({ user, path, status }),
    fields,
  })
  const server = await start({ routes: use({ '/me': () => 'ok' }, log, authenticate) })
  await fetch(`${server.url}/me`)
  await fetch(`${server.url}/missing`)
  const missing = { user: undefined, path: '/missing', status: 404 }
  assert.deepEqual(records, [{ user: 'ada', path: '/me', status: 200 }, missing])
})

test('`fields` that throw cost the record and nothing else', async (t) => {
  const reported = t.mock.method(console, 'error', () => {})
  const fields = (): never => {
    throw new Error('no such user')
  }
  const log = (): void => assert.fail('a record without its fields')
  const app = createApp({ routes: use({ '/': () => 'ok' }, accessLog({ log, fields })) })
  assert.equal(await (await app.inject('/')).text(), 'ok')
  assert.equal(reported.mock.callCount(), 1)
})

onServer('a response that cannot be sent is logged as the 500 that is sent', async (start) => {
  const records: string[] = []
  const routes = {
    '/network-error': () => native().Response.error(),
    '/read': async () => {
      const response = new Response('x')
      await response.text()
      return response
    },
  }
  const server = await start({
    routes: use(routes, accessLog({ log: ({ path, status }) => void records.push(`${path} ${status}`) })),
  })
  for (const path of Object.keys(routes)) assert.equal((await fetch(server.url + path)).status, 500, path)
  assert.deepEqual(records, ['/network-error 500', '/read 500'])
})

onServer('a disconnected client is logged as 499, a timeout with the status that was sent', async (start) => {
  const records: string[] = []
  let onRecord: (() => void) | undefined
  const waiting = (request: HttpRequest): Promise<never> =>
    new Promise((_, reject) => {
      onAsked?.()
      request.signal.addEventListener('abort', () => reject(request.signal.reason as Error))
    })
  let onAsked: (() => void) | undefined
  const reading = async (request: HttpRequest): Promise<string> => {
    onAsked?.()
    return request.text()
  }
  const buggy: Middleware = async (_, next) => {
    await next()
    throw new Error('a bug around a time limit')
  }
  const log = accessLog({
    log: ({ path, status }) => {
      records.push(`${path} ${status}`)
      onRecord?.()
    },
  })
  const server = await start({
    routes: {
      ...use({ '/waiting': waiting, '/reading': reading }, log),
      ...use({ '/late': waiting }, log, buggy, timeout(5)),
    },
  })
  for (const head of [
    'GET /waiting HTTP/1.1\r\nhost: x\r\n\r\n',
    'POST /reading HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1',
  ]) {
    const isRecorded = new Promise<void>((resolve) => (onRecord = resolve))
    const socket = connect(server.port, '127.0.0.1')
    await new Promise<void>((resolve) => {
      onAsked = resolve
      socket.write(head)
    })
    socket.destroy()
    await isRecorded
  }
  assert.equal((await fetch(`${server.url}/late`)).status, 500)
  assert.deepEqual(records, ['/waiting 499', '/reading 499', '/late 500'])
})

test('a timeout is 504 and a full queue or store 503, whatever part of Corespun throws it', async () => {
  const facts = { zone: 'z', timeoutMs: 1, started: false, kind: 'lock', name: 'l', id: 's' } as never
  const refuse = (error: Error) => (): never => {
    throw error
  }
  const app = createApp({
    routes: {
      '/fiber': () => fork(() => fiberTimeout(1, () => sleep(60_000))).join(),
      '/sync': refuse(new SyncError('SYNC_TIMEOUT', facts)),
      '/broadcast': refuse(new ZoneError('BROADCAST_TIMEOUT', facts)),
      '/broadcasts': refuse(new ZoneError('ZONE_BROADCASTS_FULL', facts)),
      '/store': refuse(new StoreError('STORE_FULL', facts)),
    },
    error: jsonErrors({ log: () => assert.fail('the log must not be called') }),
  })
  const responded: unknown[] = []
  for (const path of ['/fiber', '/sync', '/broadcast', '/broadcasts', '/store']) {
    const response = await app.inject(path)
    const { error } = (await response.json()) as { error: { code: string } }
    responded.push([response.status, error.code, response.headers.get('retry-after')])
  }
  assert.deepEqual(responded, [
    [504, 'FIBER_TIMEOUT', null],
    [504, 'SYNC_TIMEOUT', null],
    [504, 'BROADCAST_TIMEOUT', null],
    [503, 'ZONE_BROADCASTS_FULL', '1'],
    [503, 'STORE_FULL', '1'],
  ])
})

test('a stream that fails before its first byte is logged with the status of its response', async () => {
  const records: number[] = []
  const early = (): Response =>
    chunks(
      (async function* (): AsyncGenerator<string> {
        throw new Error('early')
      })(),
    )
  const app = createApp({
    routes: use({ '/': early }, accessLog({ log: ({ status }) => void records.push(status) })),
    error: () => undefined,
  })
  assert.equal((await app.inject('/')).status, 500)
  assert.deepEqual(records, [500])
})
