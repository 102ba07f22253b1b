/**
 * Sessions in a store of the process, what their cookie has, and what becomes of them when the store fails.
 *
 * The tests of what they promise are in sessions.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { store as stores } from '../../../store/index.ts'
import { createApp, getSession, sessions, use } from '../../index.ts'
import type { Session, SessionStore, SessionsOptions } from '../../index.ts'
import { onCores, onServer } from '../../cores.test.support.ts'
import { SERVER, connect } from '../../tls/client.test.support.ts'
import { appWith, codeOf, look, sessionTests, visit } from '../../sessions.test.support.ts'

let count = 0
const newStore = () => stores.create<unknown>(`sessions ${++count}`)

sessionTests('store', async () => newStore())

test('the cookie is as its options', async () => {
  const rows: [SessionsOptions['cookie'], RegExp][] = [
    [{}, /; SameSite=Lax$/],
    [{ secure: true }, /; SameSite=Lax; Secure$/],
    [{ name: '__Host-id', sameSite: 'strict', secure: true }, /^__Host-id=.*; SameSite=Strict; Secure$/],
    [
      { name: 'id', path: '/app', domain: 'example.com', sameSite: 'none', secure: true },
      /^id=[\w-]{43}; Path=\/app; Domain=example\.com; Max-Age=60; HttpOnly; SameSite=None; Secure$/,
    ],
  ]
  for (const [cookie, expected] of rows) {
    const [, , [set]] = await appWith(newStore(), { cookie, ttlMs: 60_000 })({ cookie: '' }, visit)
    assert.match(set, expected)
  }
})

onCores('over TLS the cookie is Secure', async (start) => {
  const begin = (request: Request): Promise<string> => getSession<string>(request).update(() => 'begun')
  for (const [cookie, isSecure] of [
    [{}, '; Secure'],
    [{ secure: false }, undefined],
  ] as const) {
    const routes = use({ '/': begin }, sessions({ store: newStore(), cookie }))
    const server = await start({ tls: SERVER, routes })
    const socket = await connect(server.port)
    socket.setEncoding('utf8').write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    let response = ''
    for await (const piece of socket as AsyncIterable<string>) response += piece
    assert.equal(/^set-cookie: sid=.*; HttpOnly; SameSite=Lax(; Secure)?\r$/im.exec(response)![1], isSecure)
  }
})

test('wrong options are refused by name', () => {
  const store = newStore()
  const rows: [unknown, RegExp][] = [
    [undefined, /sessions\(\): store must be a store, or fleet\.store/],
    [{ store: new Map() }, /sessions\(\): store must be/],
    [
      { store: { get() {}, update() {}, delete() {}, ttlMs: 0 } },
      /store must be one whose ttlMs is at least 86/,
    ],
    [{ store, ttlMs: 5 }, /ttlMs must be an integer from 1000/],
    [{ store, dataBytesMax: 2 ** 20 }, /dataBytesMax/],
    [{ store, cookie: { name: 'a b' } }, /cookie\.name/],
    [{ store, cookie: { path: '/; Domain=x' } }, /cookie\.path/],
    [{ store, cookie: { domain: 'a;b' } }, /cookie\.domain/],
    [{ store, cookie: { name: '__Host-a', path: '/b' } }, /cookie\.name must be without __Host-/],
    [{ store, cookie: { sameSite: 'none', secure: false } }, /cookie\.secure must be true/],
    [{ store, cookies: {} }, /unknown option "cookies"; did you mean "cookie"/],
  ]
  for (const [options, message] of rows)
    assert.throws(() => sessions(options as SessionsOptions), { code: 'HTTP_ARGUMENT', message })
  assert.throws(() => getSession(new Request('http://localhost')), {
    code: 'HTTP_ARGUMENT',
    message: /getSession\(\): request must be one that has passed sessions\(\)/,
  })
})

test('a store that fails is status 503, and no session is lost', async () => {
  const kept = newStore()
  let failing: readonly string[] = []
  const failsOr = (name: string): void => {
    if (failing.includes(name)) throw new Error('the servers are lost')
  }
  const store: SessionStore = {
    get: async (key) => (failsOr('get'), kept.get(key)),
    update: async (key, fn, options) => (failsOr('update'), kept.update(key, fn, options)),
    delete: async (key) => (failsOr('delete'), kept.delete(key)),
  }
  const ask = appWith(store)
  const jar = { cookie: '' }
  await ask(jar, visit)
  const rotate = (session: Session<never>): Promise<void> => session.rotate()
  const destroy = (session: Session<never>): Promise<void> => session.destroy()
  for (const [names, work] of [
    [['get'], look],
    [['get'], visit],
    [['update'], visit],
    [['update'], rotate],
    [['delete'], destroy],
  ] as const) {
    failing = names
    const [status, body, set] = await ask(jar, work as never)
    assert.deepEqual([status, codeOf(body), set], [503, 'SESSIONS_UNAVAILABLE', []])
    failing = []
    assert.deepEqual((await ask(jar, look))[1], { visits: 1 })
  }
  // One that fails once is asked again in the same request.
  failing = ['get']
  const again = async (session: Session<never>): Promise<unknown> => {
    await assert.rejects(session.get(), { status: 503 })
    failing = []
    return session.get()
  }
  assert.deepEqual((await ask(jar, again as never))[1], { visits: 1 })
})

test('what is read of a session that cannot be extended is the response', async () => {
  let now = Date.UTC(2026, 5)
  let isFull = false
  const kept = newStore()
  const store: SessionStore = {
    get: (key) => kept.get(key),
    update(key, fn, options) {
      if (isFull) throw new Error('the disk is full')
      return kept.update(key, fn, options)
    },
    delete: (key) => kept.delete(key),
  }
  const ask = appWith(store, { ttlMs: 3_600_000, now: () => now })
  const jar = { cookie: '' }
  await ask(jar, visit)
  isFull = true
  now += 3_000_000
  assert.deepEqual(await ask(jar, look), [200, { visits: 1 }, []])
  assert.equal((await ask(jar, visit))[0], 503)
})

test('an old id names no session where the clock is behind, or when it cannot be deleted', async () => {
  const kept = newStore()
  const store: SessionStore = {
    get: (key) => kept.get(key),
    update: (key, fn, options) => kept.update(key, fn, { ttlMs: options.ttlMs + 60_000 }),
    delete() {
      throw new Error('the servers are lost')
    },
  }
  const jar = { cookie: '' }
  await appWith(store)(jar, visit)
  const old = { ...jar }
  await appWith(store)(jar, (session) => session.rotate())
  assert.notEqual(jar.cookie, old.cookie)
  const behind = appWith(store, { now: () => Date.now() - 60_000 })
  assert.deepEqual(await behind({ ...old }, look), [200, null, []])
  const held = { ...jar }
  const change = async (session: Session<never>): Promise<unknown> => {
    await session.get()
    await appWith(store)(held, (other) => other.rotate())
    await assert.rejects(session.rotate(), { status: 409 })
    return session.get()
  }
  // It has read the session before that was rotated elsewhere.
  assert.equal((await behind({ ...jar }, change as never))[1], null)
})

test('a session cannot begin after the response', async () => {
  let late: Session<number> | undefined
  const keep = (request: Request): string => {
    late = getSession(request)
    return 'ok'
  }
  const app = createApp({ routes: use({ '/': keep }, sessions({ store: newStore() })) })
  await app.inject('/')
  await assert.rejects(
    late!.update(() => 1),
    { code: 'HTTP_SESSION_LATE', facts: { cookie: 'sid' } },
  )
})

onServer('a session over a connection, with a response that others must not keep', async (start) => {
  const count = async (request: Request): Promise<Response> =>
    Response.json(await getSession<number>(request).update((visits = 0) => visits + 1))
  const server = await start({ routes: use({ '/': count }, sessions({ store: newStore() })) })
  const first = await fetch(server.url)
  assert.equal(first.headers.get('cache-control'), 'no-store')
  const [cookie] = first.headers.getSetCookie()[0].split(';')
  assert.equal(await (await fetch(server.url, { headers: { cookie } })).json(), 2)
})
