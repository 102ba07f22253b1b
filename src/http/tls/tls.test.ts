/**
 * TLS on both cores: versions, names, certificates of clients, resumption, other certificates at run time,
 * and clients that do not speak it.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import https from 'node:https'
import tls from 'node:tls'
import { settled, until } from '../../base/wait.test.support.ts'
import { onCores, onServer } from '../cores.test.support.ts'
import { connect as connectPlain, converse } from '../raw.test.support.ts'
import type { HttpRequest } from '../app/routes.ts'
import { AUTHORITY, certified, connect, isRefused, PATIENT, request, SERVER } from './client.test.support.ts'
import { makeCertificate } from './make.ts'

const HEADER = 'PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n'
const routes = {
  '/': 'Hello',
  '/url': (request: Request) => request.url,
  '/echo': async (request: Request) => new Uint8Array(await request.arrayBuffer()),
}

onCores('a server with certificates serves https, with TLS 1.2 and 1.3', async (start) => {
  const server = await start({ tls: SERVER, routes })
  assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  const { status, body, protocol } = await request(server.port)
  assert.deepEqual({ status, body, protocol }, { status: 200, body: 'Hello', protocol: 'TLSv1.3' })
  assert.equal((await request(server.port, '/url')).body, `https://127.0.0.1:${server.port}/url`)
  assert.equal((await request(server.port, '/', { maxVersion: 'TLSv1.2' })).protocol, 'TLSv1.2')
  const absolute = (scheme: string) => request(server.port, `${scheme}://127.0.0.1/url`)
  assert.equal((await absolute('https')).status, 200)
  assert.equal((await absolute('http')).status, 421)
})

onCores('minVersion refuses older versions, and 1.1 is always refused', async (start) => {
  const both = await start({ tls: SERVER, routes })
  const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  assert.equal(await isRefused(both.port, old), true)
  const newest = await start({ tls: { ...SERVER, minVersion: 'TLSv1.3' }, routes })
  assert.equal(await isRefused(newest.port, { maxVersion: 'TLSv1.2' }), true)
  assert.equal((await request(newest.port)).protocol, 'TLSv1.3')
})

onCores('a protocol is agreed on, and a client of other protocols is refused', async (start, core) => {
  const server = await start({ tls: SERVER, routes })
  const socket = await connect(server.port, { ALPNProtocols: ['http/1.1', 'h2'] })
  assert.equal(socket.alpnProtocol, core === 'native' ? 'h2' : 'http/1.1')
  socket.destroy()
  await assert.rejects(connect(server.port, { ALPNProtocols: ['h3'] }))
  const older = await start({ tls: { ...SERVER, alpn: ['http/1.1'] }, routes })
  const other = await connect(older.port, { ALPNProtocols: ['h2', 'http/1.1'] })
  assert.equal(other.alpnProtocol, 'http/1.1')
  // A client that has not agreed on HTTP/2 does not get it by beginning with it.
  other.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const [refusal] = (await settled(once(other, 'data'), 'a refusal')) as [Buffer]
  assert.match(refusal.toString('latin1'), /^HTTP\/1\.1 [45]/)
  other.destroy()
  await assert.rejects(connect(older.port, { ALPNProtocols: ['h2'] }))
})

onCores('long bodies go both ways, and a slow reader gets all of its response', async (start) => {
  const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => index % 251))
  const server = await start({ tls: SERVER, routes: { ...routes, '/long': () => new Uint8Array(bytes) } })
  assert.equal((await request(server.port, '/echo', { body: bytes })).body, bytes.toString('latin1'))
  const socket = await connect(server.port)
  socket.write('GET /long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  socket.pause()
  await until(() => server.stats().requests === 2)
  let all = ''
  for await (const piece of socket as AsyncIterable<Buffer>) all += piece.toString('latin1')
  assert.equal(all.slice(all.indexOf('\r\n\r\n') + 4), bytes.toString('latin1'))
})

onCores('each name gets its certificate; others get the first', async (start) => {
  const one = certified('one.example')
  const wild = certified('wild', ['*.two.example'])
  const server = await start({ tls: { ...SERVER, certificates: [one, wild] }, routes })
  const ask = async (servername: string) =>
    (await request(server.port, '/', { servername, checkServerIdentity: () => undefined })).names
  const rows: [string, string][] = [
    ['localhost', 'localhost'],
    ['one.example', 'one.example'],
    ['ONE.example', 'one.example'],
    ['a.two.example', '*.two.example'],
    ['a.b.two.example', 'localhost'],
    ['two.example', 'localhost'],
    ['other.example', 'localhost'],
    ['', 'localhost'],
  ]
  for (const [name, expected] of rows) assert.equal(await ask(name), `DNS:${expected}`, name)
})

onCores('sni chooses the certificate for names that none has', async (start) => {
  const asked: string[] = []
  const own = certified('own.example')
  const sni = async (name: string) => {
    asked.push(name)
    await new Promise((resolve) => setImmediate(resolve))
    if (name === 'fails.example') throw new Error('on purpose')
    return name === 'own.example' ? own : undefined
  }
  const server = await start({ tls: { ...SERVER, sni }, routes })
  const ask = async (servername: string, more: https.RequestOptions = {}) =>
    (await request(server.port, '/', { servername, checkServerIdentity: () => undefined, ...more })).names
  assert.equal(await ask('localhost'), 'DNS:localhost')
  assert.deepEqual(asked, [])
  assert.equal(await ask('OWN.example'), 'DNS:own.example')
  assert.equal(await ask('own.example', { maxVersion: 'TLSv1.2' }), 'DNS:own.example')
  assert.equal(await ask('other.example'), 'DNS:localhost')
  assert.deepEqual([...new Set(asked)], ['own.example', 'other.example'])
})

onServer('clients that wait for a certificate of sni at once are all served', async (start) => {
  let choose = (): void => {}
  const chosen = new Promise<void>((resolve) => (choose = resolve))
  let asked = 0
  const own = certified('own.example')
  const sni = async () => {
    asked += 1
    await chosen
    return own
  }
  const server = await start({ limits: PATIENT, tls: { ...SERVER, sni }, routes })
  const clients = Array.from({ length: 8 }, () => request(server.port, '/', { servername: 'own.example' }))
  await until(() => asked === 8)
  assert.equal((await request(server.port)).body, 'Hello') // others do not wait
  choose()
  for (const { names } of await Promise.all(clients)) assert.equal(names, 'DNS:own.example')
})

onCores('a client that leaves while sni chooses is closed at once', async (start) => {
  let choose = (): void => {}
  const chosen = new Promise<void>((resolve) => (choose = resolve))
  let asked = 0
  const sni = async (): Promise<undefined> => {
    asked += 1
    await chosen
  }
  const server = await start({ limits: PATIENT, tls: { ...SERVER, sni }, routes })
  const leave = async (how: 'end' | 'resetAndDestroy', count: number): Promise<void> => {
    const plain = await connectPlain(server.port)
    const socket = tls.connect({ socket: plain, servername: `${how}.example` }).on('error', () => {})
    await until(() => asked === count)
    plain[how]()
    await until(() => server.stats().connections === 0)
    socket.destroy()
  }
  await leave('end', 1)
  await leave('resetAndDestroy', 2)
  choose()
  assert.equal((await request(server.port)).body, 'Hello')
})

onCores('clients show certificates: required, or requested', async (start) => {
  const shown = { '/': (request: HttpRequest) => request.clientCertificate?.subject ?? 'none' }
  const ca = AUTHORITY.cert
  const client = certified('client')
  const foreign = makeCertificate({ name: 'client' })
  const require = await start({ tls: { ...SERVER, ca }, routes: shown })
  assert.equal((await request(require.port, '/', client)).body, 'CN=client')
  assert.equal((await request(require.port, '/', { ...client, maxVersion: 'TLSv1.2' })).body, 'CN=client')
  assert.equal(await isRefused(require.port), true)
  assert.equal(await isRefused(require.port, foreign), true)
  const asks = await start({ tls: { ...SERVER, ca: [ca], clients: 'request' }, routes: shown })
  assert.equal((await request(asks.port, '/', client)).body, 'CN=client')
  assert.equal((await request(asks.port)).body, 'none')
  assert.equal(await isRefused(asks.port, foreign), true)
  const plain = await start({ routes: shown })
  assert.equal(await (await fetch(plain.url)).text(), 'none')
})

/** The session of a connection that has had a response. */
async function sessionOf(port: number, more: tls.ConnectionOptions = {}): Promise<Buffer> {
  const socket = await connect(port, more)
  const session = once(socket, 'session')
  socket.resume().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  // With TLS 1.2 it is part of the handshake.
  const [found] =
    socket.getProtocol() === 'TLSv1.2' ? [socket.getSession()!] : await settled(session, 'a session')
  socket.destroy()
  return found as Buffer
}

onCores('sessions are resumed, with the certificate of their client', async (start) => {
  const server = await start({ tls: { ...SERVER, ca: AUTHORITY.cert }, routes })
  const client = certified('client')
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const session = await sessionOf(server.port, { ...client, maxVersion })
    const { isReused, body } = await request(server.port, '/', { ...client, session, maxVersion })
    assert.deepEqual({ isReused, body }, { isReused: true, body: 'Hello' })
  }
})

onServer('other servers resume a session only if they ask the same of clients', async (start) => {
  const first = await start({ tls: SERVER, routes })
  const same = await start({ tls: SERVER, routes })
  const other = await start({ tls: { ...SERVER, ca: AUTHORITY.cert }, routes })
  const session = await sessionOf(first.port)
  assert.equal((await request(same.port, '/', { session })).isReused, true)
  assert.equal(await isRefused(other.port, { session }), true)
  const renewed = certified('localhost')
  await first.setTls(renewed)
  assert.equal((await request(first.port, '/', { session })).isReused, true)
})

onCores('sessions outlive a renewal, unless clients have to prove something else', async (start) => {
  const ca = AUTHORITY.cert
  const client = certified('client')
  const server = await start({ tls: { ...SERVER, ca }, routes })
  const session = await sessionOf(server.port, client)
  const isReused = async (): Promise<boolean | undefined> =>
    (await request(server.port, '/', { ...client, session })).isReused
  for (const again of ['once', 'twice']) {
    await server.setTls({ ...certified('localhost'), ca })
    assert.equal(await isReused(), true, again)
  }
  await server.setTls({ ...SERVER, ca: [ca, makeCertificate({ name: 'other', isAuthority: true }).cert] })
  assert.equal(await isReused(), false, 'other authorities')
  await server.setTls({ ...SERVER, ca: makeCertificate({ name: 'third', isAuthority: true }).cert })
  assert.equal(await isRefused(server.port, { ...client, session }), true, 'an authority of before')
  const open = await start({ tls: SERVER, routes })
  const anonymous = await sessionOf(open.port)
  await open.setTls({ ...SERVER, ca })
  assert.equal(await isRefused(open.port, { session: anonymous }), true, 'a client without a certificate')
})

onCores('certificates are replaced under load without a failed request', async (start) => {
  const server = await start({ limits: PATIENT, tls: SERVER, routes })
  const agent = new https.Agent({ ca: AUTHORITY.cert, keepAlive: true, maxSockets: 4 })
  const kept = await connect(server.port)
  let isOver = false
  const load = Array.from({ length: 4 }, async () => {
    for (let count = 0; !isOver || count < 20; count += 1) {
      const got = await request(server.port, '/', count % 2 === 0 ? { agent } : {})
      assert.equal(got.body, 'Hello')
    }
  })
  for (const name of ['first.example', 'second.example']) {
    await server.setTls(certified(name, ['localhost', name]))
    assert.match((await request(server.port)).names!, new RegExp(name))
  }
  isOver = true
  await Promise.all(load)
  agent.destroy()
  kept.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  let all = ''
  for await (const piece of kept as AsyncIterable<Buffer>) all += piece.toString()
  assert.match(all, /Hello$/)
})

onCores('setTls refuses what it cannot use and keeps what there is', async (start) => {
  const server = await start({ tls: SERVER, routes })
  await assert.rejects(server.setTls({ cert: SERVER.cert, key: AUTHORITY.key }), { code: 'HTTP_TLS_KEY' })
  await assert.rejects(server.setTls({ cert: SERVER.cert }), { code: 'HTTP_ARGUMENT' })
  await server.setTls() // reads nothing: there are no files
  assert.equal((await request(server.port)).body, 'Hello')
  const plain = await start({ routes })
  await assert.rejects(plain.setTls(SERVER), { code: 'HTTP_ARGUMENT' })
})

onServer('a client of http gets a response that names https', async (start) => {
  const server = await start({ tls: SERVER, routes })
  const { responses, closed } = await converse(server.port, ['GET / HTTP/1.1\r\nHost: a\r\n\r\n'], {
    responses: 2,
  })
  assert.deepEqual(
    responses.map(({ status, body }) => [status, body]),
    [[400, 'this port serves https: begin with TLS\n']],
  )
  assert.equal(closed, true)
})

onCores('what is not TLS is closed, and others are served', async (start) => {
  const server = await start({ tls: SERVER, routes })
  const garbage = [
    Buffer.alloc(100, 0xff),
    Buffer.from('16030100050100000100', 'hex'),
    Buffer.concat([Buffer.from('1603010200', 'hex'), Buffer.alloc(512, 1)]),
    Buffer.from('160301ffff', 'hex'),
  ]
  for (const bytes of garbage) {
    const socket = await connectPlain(server.port)
    const closed = once(socket.resume(), 'close')
    socket.end(bytes)
    await settled(closed, `the end after ${bytes.toString('hex', 0, 10)}`)
  }
  await until(() => server.stats().connections === 0)
  assert.equal((await request(server.port)).body, 'Hello')
})

onCores('a handshake that takes too long is closed', async (start) => {
  const server = await start({ tls: SERVER, routes, limits: { headersMs: 100 } })
  for (const bytes of ['', '16030100']) {
    const socket = await connectPlain(server.port)
    const closed = once(socket.resume(), 'close')
    socket.write(Buffer.from(bytes, 'hex'))
    await settled(once(socket, 'end'), 'the end of a slow handshake')
    socket.destroy()
    await closed
  }
})

onCores('at most a quarter of connectionsMax is in a handshake', async (start) => {
  const server = await start({ tls: SERVER, routes, limits: { ...PATIENT, connectionsMax: 8 } })
  const waiting = [await connectPlain(server.port), await connectPlain(server.port)]
  const third = await connectPlain(server.port)
  await settled(once(third.resume(), 'end'), 'the end of the third')
  third.destroy()
  for (const socket of waiting) socket.destroy()
  await until(async () => !(await isRefused(server.port)))
})

onCores('a client cannot renegotiate', async (start) => {
  const server = await start({ limits: PATIENT, tls: SERVER, routes })
  const socket = await connect(server.port, { maxVersion: 'TLSv1.2' })
  const outcome = new Promise<string>((resolve) => {
    socket.on('error', () => {}).once('close', () => resolve('refused'))
    socket.renegotiate({ rejectUnauthorized: false }, () => resolve('renegotiated'))
  })
  assert.equal(await settled(outcome, 'the end of a client that renegotiates'), 'refused')
  assert.equal((await request(server.port)).body, 'Hello')
})

onServer('a client that has sent its end gets a whole response', async (start) => {
  let reply = (_: string): void => {}
  const replied = new Promise<string>((resolve) => (reply = resolve))
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': () => replied } })
  const plain = await connectPlain(server.port)
  const socket = await connect(server.port, { socket: plain }) // which may be half open
  socket.end('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => server.stats().requests === 1)
  reply('late')
  let all = ''
  for await (const piece of socket as AsyncIterable<Buffer>) all += piece.toString()
  assert.match(all, /late$/)
  plain.destroy()
})

onCores('an upload that ends before its length fails', async (start) => {
  let failed = (_: unknown): void => {}
  const failure = new Promise((resolve) => (failed = resolve))
  const server = await start({
    tls: SERVER,
    routes: { '/': (request) => request.text().catch((error: unknown) => (failed(error), 'cut')) },
  })
  const socket = await connect(server.port)
  socket.on('error', () => {})
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nshort')
  await until(() => server.stats().requests === 1)
  socket.destroy()
  assert.equal(((await settled(failure, 'the failure')) as { code: string }).code, 'HTTP_CLIENT_DISCONNECTED')
})

onServer('a response is followed by close_notify, and one that is cut is not', async (start) => {
  let cut = (): void => {}
  const seen = new Promise<void>((resolve) => (cut = resolve))
  async function* broken(): AsyncGenerator<string> {
    yield 'begun'
    await seen
    throw new Error('on purpose')
  }
  const server = await start({ tls: SERVER, routes: { ...routes, '/cut': broken } })
  for (const path of ['/', '/cut']) {
    const socket = await connect(server.port)
    let end = ''
    socket.on('end', () => (end ||= 'notified')).on('error', () => (end ||= 'cut'))
    socket.on('data', () => path === '/cut' && cut())
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    await until(() => socket.closed)
    assert.equal(end, path === '/' ? 'notified' : 'cut', path)
  }
})

onCores('the PROXY protocol comes before TLS', async (start) => {
  const server = await start({
    limits: PATIENT,
    tls: SERVER,
    proxyProtocol: true,
    routes: { '/': (request) => `${request.remoteAddress} ${request.url}` },
  })
  for (const isCut of [false, true]) {
    const socket = await connectPlain(server.port)
    for (const piece of isCut ? ['PROXY TCP4 192.0.2.7 192.', '0.2.1 56324 443\r\n'] : [HEADER])
      socket.write(piece)
    const secure = await connect(server.port, { socket })
    secure.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    let all = ''
    for await (const piece of secure as AsyncIterable<Buffer>) all += piece.toString()
    assert.match(all, /192\.0\.2\.7 https:\/\/a\/$/)
    socket.destroy() // what TLS is on stays open otherwise
  }
  const { closed } = await converse(server.port, ['GET / HTTP/1.1\r\nHost: a\r\n\r\n'], { responses: 2 })
  assert.equal(closed, true)
})
