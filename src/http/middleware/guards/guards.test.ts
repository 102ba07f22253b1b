/**
 * Guards around routes: requests of other sites, headers for browsers, credentials.
 *
 * Each is a table of requests and what they get.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { authenticate, createApp, csrf, jsonErrors, requestValue, secureHeaders, use } from '../../index.ts'

test('requests of other sites are refused, others are not', async () => {
  const app = createApp({
    routes: use({ '/': () => 'done' }, csrf({ origins: ['https://admin.example'] })),
    error: jsonErrors(),
  })
  const check = async (expected: number, headers: Record<string, string>, method = 'POST'): Promise<void> => {
    const response = await app.inject('http://shop.example/', {
      method,
      headers: { host: 'shop.example', ...headers },
    })
    assert.equal(response.status, expected, JSON.stringify(headers))
    if (expected === 403) assert.match(await response.text(), /"CROSS_SITE"/)
  }
  await check(200, {})
  await check(200, { 'sec-fetch-site': 'same-origin', origin: 'http://shop.example' })
  await check(200, { 'sec-fetch-site': 'none' })
  await check(403, { 'sec-fetch-site': 'same-site', origin: 'http://other.shop.example' })
  await check(403, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })
  await check(200, { 'sec-fetch-site': 'cross-site', origin: 'https://admin.example' })
  await check(200, { origin: 'https://shop.example' })
  await check(403, { origin: 'https://shop.example.evil.example' })
  await check(403, { origin: 'http://shop.example:81' })
  await check(403, { origin: 'null' })
  await check(403, { 'sec-fetch-site': 'cross-site' }, 'DELETE')
  for (const method of ['GET', 'HEAD', 'OPTIONS'])
    await check(200, { 'sec-fetch-site': 'cross-site' }, method)
  for (const origins of ['https://a.example', ['a.example'], ['https://a.example/']])
    assert.throws(() => csrf({ origins: origins as string[] }), {
      code: 'HTTP_ARGUMENT',
      message: /array of origins/,
    })
})

test('security headers are on every response, unless it has its own', async () => {
  const routes = {
    '/': 'Hello',
    '/own': () => new Response('x', { headers: { 'referrer-policy': 'origin' } }),
    '/fails': () => Promise.reject(new Error('a bug')),
  }
  const guard = secureHeaders({ 'x-frame-options': false, 'permissions-policy': 'camera=()' })
  const app = createApp({ routes: use(routes, guard), error: jsonErrors({ log: () => {} }), trustProxy: 1 })
  for (const path of ['/', '/own', '/fails', '/missing']) {
    const { headers } = await app.inject(path)
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'self';/, path)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('permissions-policy'), 'camera=()')
    assert.equal(headers.get('x-frame-options'), null)
    assert.equal(headers.get('referrer-policy'), path === '/own' ? 'origin' : 'no-referrer')
    assert.equal(headers.get('strict-transport-security'), null)
  }
  const forwarded = { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https' }
  const secure = await app.inject('/', { headers: forwarded })
  assert.equal(secure.headers.get('strict-transport-security'), 'max-age=31536000')
  assert.throws(() => secureHeaders({ 'x-a': 1 as never }), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => secureHeaders({ 'x a': 'b' }))
})

test('credentials are parsed, and without valid ones the response is a 401 with the schemes', async () => {
  const user = requestValue<string>('user')
  const basic = (name: string, password: string): string | undefined =>
    password === 'p:w' ? name : undefined
  const bearer = async (token: string): Promise<string | undefined> =>
    Promise.resolve(token === 'a.b-c~d+/=' ? 'token' : undefined)
  const me = { '/': (request: Request) => user.get(request) }
  const of = (options: object) =>
    createApp({ routes: use(me, authenticate(user, options)), error: jsonErrors() })
  const seen = async (options: object, authorization?: string): Promise<unknown[]> => {
    const headers = authorization === undefined ? {} : { headers: { authorization } }
    const response = await of(options).inject('/', headers)
    const text = await response.text()
    return response.status === 200 ? [text] : [response.status, response.headers.get('www-authenticate')]
  }
  const code = (text: string): string => Buffer.from(text).toString('base64')
  const both = { basic, bearer }
  assert.deepEqual(await seen(both, `Basic ${code('Ada:p:w')}`), ['Ada'])
  assert.deepEqual(await seen(both, `bAsIc  ${code('Zoë:p:w')}`), ['Zoë'])
  assert.deepEqual(await seen(both, 'Bearer a.b-c~d+/='), ['token'])
  const refused = [401, 'Basic realm="private", charset="UTF-8", Bearer realm="private"']
  const invalid = [
    undefined,
    'Bearer',
    'Bearer x',
    'Bearer a b',
    'Bearer "x"',
    'Digest x',
    `Basic ${code('Ada')}`,
  ]
  for (const text of [...invalid, 'Basic !', `Basic ${code('Ada:other')}`])
    assert.deepEqual(await seen(both, text), refused, String(text))
  assert.deepEqual(await seen({ bearer, realm: 'api' }, `Basic ${code('Ada:p:w')}`), [
    401,
    'Bearer realm="api"',
  ])
  assert.deepEqual(await seen({ basic }, 'Bearer a.b-c~d+/='), [
    401,
    'Basic realm="private", charset="UTF-8"',
  ])
  for (const nobody of [null, false])
    assert.deepEqual(await seen({ bearer: () => nobody }, 'Bearer x'), [401, 'Bearer realm="private"'])
  assert.throws(() => authenticate(user, {}), { code: 'HTTP_ARGUMENT', message: /needs `basic` or `bearer`/ })
  assert.throws(() => authenticate(user, { basic, realm: 'a"b' }), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => authenticate('user' as never, { basic }), {
    code: 'HTTP_ARGUMENT',
    message: /requestValue/,
  })
})
