/**
 * WebSockets in streams of HTTP/2 (RFC 8441): what differs from those that have a connection of their own.
 *
 * Handlers, frames, limits, deadlines and rooms are tested over both in src/http/websocket.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { settled, until } from '../../base/wait.test.support.ts'
import { onServer } from '../cores.test.support.ts'
import { publish, upgrade, type WebSocketHandlers } from '../index.ts'
import { AUTHORITY, PATIENT, SERVER } from '../tls/client.test.support.ts'
import { closing, frame as wsFrame, openOn, OVER_HTTP2, RawClient } from '../websocket/client.test.support.ts'
import {
  connect,
  END_HEADERS,
  frame,
  RawClient as Frames,
  read,
  request,
  Type,
} from './client.test.support.ts'

const CANCEL = 8
const echo: WebSocketHandlers = { message: (socket, message) => void socket.send(message) }

/** The head of a request for a WebSocket, without a table: literal fields, none indexed. */
const ASKS = Buffer.concat(
  [
    [':method', 'CONNECT'],
    [':protocol', 'websocket'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'a'],
    ['sec-websocket-version', '13'],
  ].flatMap(([name, value]) => [
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]),
)

/** A request for a WebSocket, or another protocol, by the client of node:http2. */
function ask(
  session: http2.ClientHttp2Session,
  headers: http2.OutgoingHttpHeaders,
  options = {},
): http2.ClientHttp2Stream {
  return session.request(
    {
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':path': '/',
      'sec-websocket-version': '13',
      ...headers,
    },
    { endStream: false, ...options },
  )
}

onServer('sockets and requests share a connection, and one does not wait for another', async (start) => {
  const server = await start({
    routes: {
      '/': { websocket: { ...echo, open: (socket) => socket.subscribe('all') } },
      '/text': () => 'text',
      '/news': { POST: async (asked) => (publish(asked, 'all', await asked.text()), 'sent') },
    },
  })
  const session = connect(server.port)
  const clients: RawClient[] = []
  for (let count = 0; count < 20; count += 1) clients.push(await openOn(session))
  const large = 'x'.repeat(150_000)
  for (const client of clients) client.send(wsFrame(0x81, large), wsFrame(0x81, 'small'))
  assert.equal((await request(session, '/text')).body, 'text')
  await Promise.all(clients.map((client) => client.received(2)))
  assert.equal((await request(session, '/news', { body: large })).body, 'sent')
  await Promise.all(clients.map((client) => client.received(3)))
  for (const { words } of clients)
    assert.ok(words.join() === [large, 'small', large].map((one) => `text ${one}`).join())
  await clients[0].close()
  assert.equal((await request(session, '/text')).body, 'text')
  await Promise.all(clients.slice(1).map((client) => client.close()))
  session.close()
})

onServer('the request is shown as one of HTTP/1.1', async (start) => {
  const seen: unknown[] = []
  const server = await start({
    trustProxy: 1,
    fetch: (asked) => {
      const { method, url, headers } = asked
      seen.push(method, url, headers.get('upgrade'), headers.get('connection'), headers.get('x-more'))
      return upgrade(asked, { open: (socket) => void socket.send(socket.remoteAddress) })
    },
  })
  const client = await OVER_HTTP2.open(server.port, {
    path: '/live?a=1',
    more: ['x-more: 1', 'x-forwarded-for: 192.0.2.7'],
  })
  assert.deepEqual(await client.received(1), ['text 192.0.2.7'])
  assert.deepEqual(seen, ['GET', 'http://localhost/live?a=1', 'websocket', 'Upgrade', '1'])
  assert.equal(server.stats().errors, 0)
  await client.close()
})

onServer('they are served over TLS, too', async (start) => {
  let url = ''
  const server = await start({
    limits: PATIENT,
    tls: SERVER,
    routes: { '/': { websocket: { ...echo, upgrade: (asked) => ({ data: (url = asked.url) }) } } },
  })
  const session = http2.connect(`https://localhost:${server.port}`, {
    ca: AUTHORITY.cert,
    servername: 'localhost',
  })
  const client = await settled(openOn(session), 'a WebSocket')
  client.text('hello')
  assert.deepEqual(await client.received(1), ['text hello'])
  assert.equal(url, 'https://localhost/')
  await client.close()
  session.close()
})

onServer('what is not granted is not a success', async (start) => {
  const closed: string[] = []
  const server = await start({
    routes: {
      '/constant': 'constant',
      '/text': () => 'text',
      '/large': () => new Response(new Uint8Array(200_000)),
      '/moved': () => new Response(null, { status: 303, headers: { location: '/' } }),
      '/stream': ({ signal }) => {
        signal.addEventListener('abort', () => closed.push('aborted'))
        return new Response(
          new ReadableStream({
            pull: (to) => to.enqueue(new Uint8Array(1000)),
            cancel: () => void closed.push('cancelled'),
          }),
        )
      },
      '/': { websocket: echo, GET: () => 'page' },
    },
  })
  const session = connect(server.port)
  await once(session, 'remoteSettings')
  for (const [path, status] of [
    ['/constant', 501],
    ['/text', 501],
    ['/large', 501],
    ['/stream', 501],
    ['/moved', 303],
    ['/missing', 404],
  ] as const) {
    const got = await settled(read(ask(session, { ':path': path })), path)
    assert.equal(got.status, status, path)
    if (status === 501) assert.equal(got.body, 'no WebSocket here\n')
  }
  await until(() => closed.length > 0)
  const status = async (stream: http2.ClientHttp2Stream) => (await settled(read(stream), 'a response')).status
  assert.equal(await status(ask(session, { ':protocol': 'connect-udp' })), 501)
  assert.equal(await status(session.request({ ':method': 'CONNECT', ':authority': 'a:1' })), 501)
  assert.equal(await status(ask(session, {}, { endStream: true })), 400)
  assert.equal(await status(ask(session, { 'content-length': '5' })), 400)
  assert.equal((await request(session, '/')).body, 'page')
  session.close()
})

onServer('ends of a stream are those of a connection', async (start) => {
  const codes: number[] = []
  const server = await start({
    routes: {
      '/': {
        websocket: {
          message: (socket, message) => (message === 'end' ? socket.terminate() : void socket.send(message)),
          close: (_socket, code) => void codes.push(code),
        },
      },
    },
  })
  const session = connect(server.port)
  const ended = await openOn(session)
  ended.socket.end() // END_STREAM
  await until(() => codes.length === 1)
  const reset = await openOn(session)
  ;(reset.socket as http2.ClientHttp2Stream).close(CANCEL)
  await until(() => codes.length === 2)
  const terminated = await openOn(session)
  terminated.text('end')
  await until(() => codes.length === 3 && terminated.socket.destroyed)
  assert.equal((terminated.socket as http2.ClientHttp2Stream).rstCode, CANCEL)
  const last = await openOn(session)
  const beside = await openOn(session)
  last.send(wsFrame(0x88, closing(1000)))
  await last.rest()
  session.destroy()
  await until(() => codes.length === 5)
  beside.socket.destroy()
  assert.deepEqual(codes, [1006, 1006, 1006, 1000, 1006])
  await until(() => server.stats().connections === 0)
})

onServer('a request that is reset as it begins is closed once', async (start) => {
  const codes: number[] = []
  const server = await start({
    routes: { '/': { websocket: { close: (_socket, code) => void codes.push(code) } } },
  })
  const client = await Frames.connect(server.port)
  const both = (stream: number): Buffer =>
    Buffer.concat([
      frame(Type.headers, END_HEADERS, stream, ASKS),
      frame(Type.reset, 0, stream, Buffer.from([0, 0, 0, CANCEL])),
    ])
  client.socket.write(Buffer.concat([1, 3, 5].map(both)))
  client.socket.write(frame(Type.headers, END_HEADERS, 7, ASKS))
  await until(() => client.frames.some(({ type, stream }) => type === Type.headers && stream === 7))
  client.socket.destroy()
  await until(() => server.stats().connections === 0 && codes.length === 4)
  assert.deepEqual(new Set(codes), new Set([1006]))
})

onServer('a stream whose window stays closed is reset, and others go on', async (start) => {
  const codes: number[] = []
  let waiting = 0
  const server = await start({
    limits: { bodyMs: 300 },
    routes: {
      '/': {
        websocket: {
          open: (socket) => void (waiting = socket.send(new Uint8Array(100_000))),
          close: (_socket, code) => void codes.push(code),
        },
      },
      '/text': () => 'text',
    },
  })
  // SETTINGS_INITIAL_WINDOW_SIZE 1000
  const client = await Frames.connect(server.port, Buffer.from([0, 4, 0, 0, 3, 0xe8]))
  client.socket.write(frame(Type.headers, END_HEADERS, 1, ASKS))
  await until(() => client.frames.some(({ type, stream }) => type === Type.reset && stream === 1))
  const sent = client.frames.filter(({ type }) => type === Type.data).map(({ payload }) => payload.length)
  assert.equal(
    sent.reduce((sum, length) => sum + length, 0),
    1000,
  )
  assert.ok(waiting > 90_000, `${waiting} bytes wait`)
  await until(() => codes.length === 1)
  assert.deepEqual(codes, [1006])
  client.socket.write(frame(Type.ping, 0, 0, Buffer.alloc(8)))
  await until(() => client.frames.some(({ type, flags }) => type === Type.ping && flags === 1))
  client.socket.destroy()
})

onServer('sockets count as connections, and keep theirs open', async (start) => {
  const server = await start({
    limits: { connectionsMax: 3, idleMs: 50 },
    routes: { '/': { websocket: { ...echo, pingMs: 60_000 } } },
  })
  const session = connect(server.port)
  const ended = once(session, 'close')
  const one = await openOn(session)
  const two = await openOn(session)
  await assert.rejects(openOn(session), /^Error: 503/)
  assert.equal(server.stats().connections, 3)
  await two.close()
  await until(() => server.stats().connections === 2)
  one.text('still here')
  assert.deepEqual(await one.received(1), ['text still here'])
  await one.close()
  await settled(ended, 'the end of the idle connection')
})
