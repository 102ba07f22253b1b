/**
 * What attaches to an http.Server, as `ws` does: on node:http and behind `nodeHandler`, on both cores,
 * clients and apps see the same. Then frames byte by byte, also over HTTP/2.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { until } from '../../dist/base/wait.test.support.js'
import { onCores } from '../../dist/http/cores.test.support.js'
import { createApp, nodeHandler } from '../../dist/http/index.js'
import { connect as connectTls, PATIENT, SERVER } from '../../dist/http/tls/client.test.support.js'
import { closing, frame, LINES, onWires } from '../../dist/http/websocket/client.test.support.js'

const LARGE = Buffer.alloc(3_000_000, 'large')
const MESSAGES = 10

/** An app for node:http with an echo of WebSockets, as programs write it. */
function appOf(options = {}) {
  const log = []
  const server = http.createServer((req, res) => res.end(`${req.method} ${req.url}`))
  const sockets = new WebSocketServer({ server, path: '/live', ...options })
  sockets.on('connection', (socket, { url, headers, socket: { remoteAddress } }) => {
    log.push([url, socket.protocol, headers['x-asked'], remoteAddress])
    socket.on('message', (data, binary) => socket.send(data, { binary }))
    socket.on('close', (code, reason) => log.push([code, String(reason)]))
    socket.on('error', (error) => log.push(error.message))
    if (url === '/live?bye') socket.close(4001, 'bye')
    if (url === '/live?cut') socket.terminate()
  })
  return { server, sockets, log }
}

/** Plays `client` against node:http and each core; what it returns and what the app logs are equal. */
function check(name, client, options) {
  onCores(name, async (start) => {
    const direct = appOf(options)
    direct.server.listen(0, '127.0.0.1')
    await once(direct.server, 'listening')
    let expected
    try {
      expected = await client(direct.server.address().port)
      await until(() => direct.sockets.clients.size === 0, 'the end of all sockets')
    } finally {
      direct.server.close()
      direct.server.closeAllConnections()
    }
    const { server, sockets, log } = appOf(options)
    const started = await start({ fetch: nodeHandler(server) })
    assert.deepEqual(await client(started.port), expected)
    await until(() => sockets.clients.size === 0, 'the end of all sockets')
    assert.deepEqual(log, direct.log)
    assert.equal(started.stats().errors, 0)
  })
}

const connect = (port, path = '/live', options = {}) =>
  new WebSocket(`ws://127.0.0.1:${port}${path}`, options)

async function echoed(socket, message) {
  socket.send(message)
  const [data, isBinary] = await once(socket, 'message')
  return isBinary ? [data.length, data.equals(message)] : String(data)
}

async function ended(socket) {
  const [code, reason] = await once(socket, 'close')
  return [code, String(reason)]
}

check('ws echoes texts and bytes of any length, and closes', async (port) => {
  const socket = connect(port, '/live?a', { headers: { 'x-asked': 'yes' } })
  await once(socket, 'open')
  const texts = []
  for (const message of ['h\xe9llo', LARGE, Buffer.of()]) texts.push(await echoed(socket, message))
  socket.ping('there?')
  const [pong] = await once(socket, 'pong')
  socket.close(4000, 'done')
  return [texts, String(pong), await ended(socket)]
})

check(
  'extensions and subprotocols are those of ws',
  async (port) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/live`, ['b', 'a'])
    await once(socket, 'open')
    const found = [socket.extensions, socket.protocol, await echoed(socket, 'x'.repeat(100_000))]
    socket.close()
    return [found, await ended(socket)]
  },
  { perMessageDeflate: true },
)

check('the app ends a socket, with a close frame or without', async (port) => {
  const bye = await ended(connect(port, '/live?bye'))
  return [bye, await ended(connect(port, '/live?cut'))]
})

check(
  'an app refuses with its own response, and other requests are as ever',
  async (port) => {
    const refusals = []
    for (const [path, headers] of [
      ['/live', { origin: 'http://evil' }],
      ['/elsewhere', {}],
    ]) {
      const socket = connect(port, path, { headers })
      const [, response] = await once(socket, 'unexpected-response')
      const body = Buffer.concat(await response.toArray()).toString()
      refusals.push([response.statusCode, response.headers['content-type'], body])
    }
    const plain = await fetch(`http://127.0.0.1:${port}/live`)
    return [refusals, plain.status, await plain.text()]
  },
  { verifyClient: ({ origin }) => origin !== 'http://evil' },
)

onCores('neither side is read without a reader', async (start) => {
  const { server, sockets } = appOf()
  let atServer
  sockets.on('connection', (socket) => (atServer = socket))
  const running = await start({ fetch: nodeHandler(server) })
  const { port } = running
  const client = connect(port)
  await once(client, 'open')
  await until(() => atServer !== undefined, 'the socket')
  atServer.pause()
  for (let count = 0; count < MESSAGES; count += 1) client.send(LARGE)
  let [read, looks] = [-1, 0]
  await until(() => {
    looks = read === running.stats().bytesIn ? looks + 1 : 0
    read = running.stats().bytesIn
    return looks === 20
  }, 'the end of reading')
  assert.ok(read < 2 * LARGE.length, `${read} bytes were read`)
  let received = 0
  client.on('message', () => (received += 1))
  client.pause()
  atServer.resume()
  await until(() => atServer.bufferedAmount > 0, 'a client that does not read')
  client.resume()
  await until(() => received === MESSAGES, 'all echoes')
  client.close()
  assert.deepEqual(await ended(client), [1005, ''])
})

onCores('a client that leaves ends its socket', async (start) => {
  const { server, sockets, log } = appOf()
  const { port } = await start({ fetch: nodeHandler(server) })
  const [leaving, staying] = [connect(port), connect(port)]
  await Promise.all([once(leaving, 'open'), once(staying, 'open')])
  leaving.terminate()
  await until(() => log.some(([code]) => code === 1006), 'the end')
  assert.equal(sockets.clients.size, 1)
  for (const socket of sockets.clients) socket.close(1001)
  assert.deepEqual(await ended(staying), [1001, ''])
})

onWires('frames of any kind pass, also those that come with the request', async (start, clients) => {
  const { server, sockets, log } = appOf({ path: '/' })
  const running = await start({ fetch: nodeHandler(server) })
  const { port } = running
  const client = await clients.open(port, {
    more: ['Sec-WebSocket-Protocol: b, a'],
    early: Buffer.concat([frame(0x81, 'early'), frame(0x89, 'there?')]),
  })
  assert.equal(client.header('sec-websocket-protocol'), 'b')
  client.send(frame(0x01, 'in '), frame(0x80, 'pieces'))
  const words = [...(await client.received(3))].sort()
  assert.deepEqual(words, ['pong there?', 'text early', 'text in pieces'])
  client.send(frame(0x88, closing(4000, 'bye')))
  assert.equal((await client.rest()).at(-1), 'close 4000 bye')
  await until(() => sockets.clients.size === 0, 'the end of the socket')
  assert.deepEqual(log, [
    ['/', 'b', undefined, '127.0.0.1'],
    [4000, 'bye'],
  ])
  const old = LINES.map((line) => line.replace('Version: 13', 'Version: 7'))
  const refused = await clients.ask(port, { lines: old })
  assert.equal(refused.status, 400)
  for (const { socket } of [client, refused]) socket.destroy()
  await until(() => running.stats().connections === 0, 'the end of the connections')
})

onCores('a socket that the app drops closes the connection', async (start) => {
  const server = http.createServer().on('upgrade', (_req, socket) => socket.destroy())
  const { port } = await start({ fetch: nodeHandler(server) })
  const [error] = await once(connect(port), 'error')
  assert.match(error.message, /socket hang up|ECONNRESET/)
})

test('an injected request has no connection, and is one like any other', async () => {
  const app = createApp({ fetch: nodeHandler(appOf().server) })
  const response = await app.inject('/live', { headers: { upgrade: 'websocket', connection: 'upgrade' } })
  assert.equal(await response.text(), 'GET /live')
})

const ASKS = { connection: 'Upgrade', upgrade: 'websocket' }
const GRANT = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n'
/** More than sockets hold. */
const UNREAD = Buffer.alloc(30_000_000)

/** A server whose listener of `upgrade` depends on the path. */
function listening(listeners) {
  return http
    .createServer((req, res) => res.end(`${req.method} ${req.url}`))
    .on('upgrade', (req, socket) => listeners[req.url](req, socket))
}

/** The response to a request for a WebSocket, which is no 101. */
async function refusal(port, path, headers = ASKS) {
  const request = http.get({ host: '127.0.0.1', port, path, headers, agent: false })
  const [response] = await once(request, 'response')
  return [response.statusCode, Buffer.concat(await response.toArray()).toString()]
}

onCores('a refusal arrives as a listener has written it, however it ends its socket', async (start) => {
  const server = listening({
    '/destroyed': (_req, socket) => {
      socket.write('HTTP/1.1 401 Unauthorized\r\n\r\n') // as the README of ws has it
      socket.destroy()
    },
    '/ended': (_req, socket) => socket.end('HTTP/1.0 403 Forbidden\r\nx-why: a\r\n\r\nno'),
    '/kept': (_req, socket) => socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno'),
    '/empty': (_req, socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
    '/chunks': (req, socket) => {
      const response = new http.ServerResponse(req) // as @fastify/websocket
      response.assignSocket(socket)
      response.write('a piece, ')
      setImmediate(() => response.end('and more'))
    },
    '/joined': (_req, socket) => socket.end('HTTP/1.1 502 x\r\ntransfer-encoding: chunked\r\n\r\ndecoded'),
  })
  const running = await start({ fetch: nodeHandler(server) })
  const found = {}
  for (const name of ['destroyed', 'ended', 'kept', 'empty', 'chunks', 'joined'])
    found[name] = await refusal(running.port, `/${name}`)
  assert.deepEqual(found, {
    destroyed: [401, ''],
    ended: [403, 'no'],
    kept: [404, 'no'],
    empty: [204, ''],
    chunks: [200, 'a piece, and more'],
    joined: [502, 'decoded'],
  })
  // node:http has `request` for these.
  assert.deepEqual(await refusal(running.port, '/kept', { upgrade: 'websocket' }), [200, 'GET /kept'])
  assert.equal(running.stats().errors, 0)
})

onCores('an error of a listener, and what cannot be a response, are a 500', async (start) => {
  const ended = []
  const logged = (name, listener) => (req, socket) => {
    socket.on('close', () => ended.push(name)).on('error', () => {})
    listener(socket)
  }
  const server = listening({
    '/status': logged('status', (socket) => socket.end('HTTP/1.1 600 x\r\n\r\n')),
    '/field': logged('field', (socket) => socket.end('HTTP/1.1 403 x\r\nno field\r\n\r\n')),
    '/endless': logged('endless', (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.write(Buffer.alloc(2_000_000))
    }),
    '/throws': logged('throws', () => {
      throw new Error('on purpose')
    }),
  })
  const running = await start({ fetch: nodeHandler(server) })
  const names = ['status', 'field', 'endless', 'throws']
  for (const name of names) assert.equal((await refusal(running.port, `/${name}`))[0], 500, name)
  await until(() => ended.length === names.length, 'the end of the sockets')
  assert.equal(running.stats().errors, names.length)
})

onCores('the end of a client is noticed where nobody reads, and so is a timeout', async (start) => {
  const ended = []
  const server = listening({
    '/unread': (_req, socket) => socket.on('close', () => ended.push('unread')).write(GRANT),
    '/silent': (_req, socket) => {
      socket.setTimeout(1, () => socket.destroy()).on('close', () => ended.push('silent'))
      socket.write(GRANT)
    },
    '/dropped': (req, socket) => {
      socket.on('close', () => ended.push('dropped')).write(GRANT)
      req.destroy()
    },
  })
  const { port } = await start({ fetch: nodeHandler(server) })
  for (const path of ['/unread', '/silent', '/dropped']) {
    const request = http.get({ host: '127.0.0.1', port, path, headers: ASKS, agent: false })
    const [, socket] = await once(request, 'upgrade')
    if (path === '/unread') socket.end()
    else await once(socket.resume(), 'close')
    await until(() => ended.includes(path.slice(1)), `the end of ${path}`)
  }
})

onCores('a socket that is dropped while its client does not read is closed, with TLS too', async (start) => {
  const called = []
  const server = listening({
    '/': (_req, socket) => {
      socket.on('close', () => called.push('close')).write(GRANT)
      socket.write(UNREAD, () => called.push('write'))
      setImmediate(() => socket.destroy())
    },
  })
  for (const tls of [undefined, SERVER]) {
    const running = await start({ fetch: nodeHandler(server), limits: PATIENT, ...(tls && { tls }) })
    const client = tls ? await connectTls(running.port) : net.connect(running.port, '127.0.0.1')
    client.on('error', () => {}).pause()
    client.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    await until(() => called.length === 2, 'the end of the socket and of what it writes')
    await until(() => running.stats().connections === 0, 'the end of the connection')
    assert.deepEqual(called.splice(0).sort(), ['close', 'write'])
    client.destroy()
  }
})

onCores('while the server stops, what has attached goes on until it closes', async (start) => {
  const { server, sockets } = appOf()
  const running = await start({ fetch: nodeHandler(server) })
  const client = connect(running.port)
  await once(client, 'open')
  const stopped = running.close()
  assert.equal(await echoed(client, 'still'), 'still')
  for (const socket of sockets.clients) socket.close(1001)
  assert.deepEqual(await ended(client), [1001, ''])
  await stopped
})
