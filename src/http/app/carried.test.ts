/**
 * Headers that responses carry for their request: each client gets its own, and each response has them.
 *
 * Responses are shared between requests on purpose: the headers for one client must not stay on them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { until } from '../../base/wait.test.support.ts'
import { onCores, onServer } from '../cores.test.support.ts'
import { native } from '../fetch/native.ts'
import { CorespunResponse } from '../fetch/response.ts'
import { createApp } from '../server.ts'
import { carry } from './carried.ts'
import { chunks } from './events.ts'
import { cors } from '../middleware/cors.ts'
import { rateLimit } from '../middleware/rate-limit.ts'
import { requestId } from '../middleware/request-id.ts'
import { type Middleware, use } from './middleware.ts'

const { Response: NativeResponse } = native()

const OWN = ['https://a.example', 'https://b.example']
const EVIL = 'https://evil.example'

/** A cookie with the origin of its request in it. */
const cookies: Middleware = (request, next) => {
  carry(request).append('set-cookie', `of=${request.headers.get('origin')}`)
  return next()
}

onServer('each client of a shared response gets its own headers', async (start, core) => {
  const shared = {
    '/empty': new CorespunResponse(null, { status: 204 }),
    '/native': new NativeResponse(null, { status: 204 }),
    '/text': new CorespunResponse('whole'),
    '/bytes': new CorespunResponse(Uint8Array.of(119, 104, 111, 108, 101)),
    '/thrown': new CorespunResponse('whole', { status: 403 }),
  }
  const routes = Object.fromEntries(
    Object.entries(shared).map(([path, response]) => [
      path,
      () => {
        if (path === '/thrown') throw response
        return response
      },
    ]),
  )
  let ids = 0
  const server = await start({
    routes: use(
      routes,
      requestId({ make: () => `id-${(ids += 1)}` }),
      cors({ origin: OWN, credentials: true }),
      rateLimit({ requestsMax: 100, name: `shared responses of ${core}`, now: () => 1_000_000 }),
      cookies,
    ),
  })
  let asked = 0
  for (const path of Object.keys(shared)) {
    for (const origin of [...OWN, EVIL, ...OWN]) {
      asked += 1
      const response = await fetch(server.url + path, { headers: { origin } })
      const { status, headers } = response
      const isOwn = origin !== EVIL
      assert.equal(headers.get('access-control-allow-origin'), isOwn ? origin : null, path)
      assert.equal(headers.get('access-control-allow-credentials'), isOwn ? 'true' : null, path)
      assert.equal(headers.get('x-request-id'), `id-${asked}`)
      assert.match(headers.get('ratelimit') ?? '', new RegExp(`;r=${100 - asked};`))
      assert.deepEqual(headers.getSetCookie(), [`of=${origin}`])
      assert.equal(headers.get('vary'), 'Origin')
      assert.equal(await response.text(), status === 204 ? '' : 'whole')
    }
  }
  for (const [path, response] of Object.entries(shared)) {
    const names = [...response.headers.keys()].filter((name) => name !== 'content-type')
    assert.deepEqual(names, [], path)
  }
})

test('a response that has all carried headers is not copied', async () => {
  const own = new CorespunResponse('x', { headers: { 'x-request-id': 'own', vary: 'origin' } })
  let seen: Response | undefined
  const look: Middleware = async (_, next) => (seen = await next())
  const inner = use({ '/': () => own }, requestId(), cors({ origin: OWN }))
  const app = createApp({ routes: use(inner, look) })
  assert.equal((await app.inject('/')).headers.get('x-request-id'), 'own')
  assert.equal(seen, own)
})

onServer('the response to an error has the carried headers, whoever makes it', async (start, _, t) => {
  t.mock.method(console, 'error', () => {}) // errors that no handler receives
  const routes = {
    '/bug': () => Promise.reject(new Error('a bug')),
    '/json': async (request: Request) => (await request.json()) as object,
    '/stream': () =>
      new ReadableStream({
        pull: () => {
          throw new Error('early')
        },
      }),
  }
  const shared = new CorespunResponse('sorry', { status: 503 })
  const handlers: Readonly<Record<string, [number, (() => unknown) | undefined]>> = {
    'a response': [503, () => new CorespunResponse('sorry', { status: 503 })],
    'a shared response': [503, () => shared],
    'a response later': [503, async () => new NativeResponse('sorry', { status: 503 })],
    'a value': [200, () => ({ sorry: true })],
    nothing: [500, () => undefined],
    'nothing later': [500, async () => undefined],
    'no response': [500, () => () => {}],
    'an error': [500, () => Promise.reject(new Error('worse'))],
    none: [500, undefined],
  }
  for (const [name, [status, error]] of Object.entries(handlers)) {
    const around = [requestId({ make: () => 'id-1' }), cors({ origin: OWN }), cookies]
    const server = await start({ routes: use(routes, ...around), error: error as never })
    for (const path of Object.keys(routes)) {
      const init = path === '/json' ? { method: 'POST', body: '{' } : {}
      const response = await fetch(server.url + path, { ...init, headers: { origin: OWN[0] } })
      const expected = path === '/json' && /nothing|an error|none/.test(name) ? 400 : status
      assert.equal(response.status, expected, `${name} ${path}`)
      assert.equal(response.headers.get('x-request-id'), 'id-1', `${name} ${path}`)
      assert.equal(response.headers.get('access-control-allow-origin'), OWN[0], `${name} ${path}`)
      assert.deepEqual(response.headers.getSetCookie(), [`of=${OWN[0]}`], `${name} ${path}`)
      assert.match(
        await response.text(),
        expected === 400 ? /^Bad Request$/ : /^(sorry|\{"sorry":true\}|Internal Server Error)$/,
      )
    }
    await server.close()
  }
})

onServer('a carried header that cannot be sent is a plain 500', async (start, _, t) => {
  t.mock.method(console, 'error', () => {})
  const odd: Middleware = (request, next) => {
    carry(request).set('x-odd', 'a\x01b')
    return next()
  }
  const server = await start({ routes: use({ '/': () => 'x', '/later': async () => 'x' }, odd) })
  for (const path of ['/', '/later']) {
    const response = await fetch(server.url + path)
    assert.deepEqual([response.status, await response.text()], [500, 'Internal Server Error'])
  }
})

onCores('the source of a stream with carried headers ends when the client leaves', async (start) => {
  let endedCount = 0
  async function* source(): AsyncGenerator<string> {
    try {
      for (;;) {
        await nextTurn()
        yield 'more'
      }
    } finally {
      endedCount += 1
    }
  }
  const server = await start({ routes: use({ '/': () => chunks(source()) }, requestId()) })
  const leaves = new AbortController()
  const response = await fetch(server.url, { signal: leaves.signal })
  await response.body!.getReader().read()
  leaves.abort()
  await until(() => endedCount === 1)
})
