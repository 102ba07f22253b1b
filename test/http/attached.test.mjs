/**
 * What attaches to an http.Server, as `ws` does: on node:http and behind `nodeHandler`, on both cores,
 * clients and apps see the same. Then frames byte by byte, also over HTTP/2.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { until } from '../../dist/base/wait.test.support.js'
import { onCores } from '../../dist/http/cores.test.support.js'
import { createApp, nodeHandler } from '../../dist/http/index.js'
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
