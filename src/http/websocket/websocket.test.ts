/**
 * WebSockets as programs use them, on both cores: handlers, errors, limits, time, stops.
 *
 * rooms.test.ts has rooms. An assertion that fails in a handler ends the process with its error.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NodeSockets } from '../core/node/sockets.ts'
import { createApp, HttpError, publish, upgrade, use, type WebSocketHandlers } from '../index.ts'
import { closing, frame, later, onWires, serving } from './client.test.support.ts'
import { Hub } from '../message/hub.ts'
import type { Grant } from '../message/wire.ts'

onWires('handlers run in order, and the last of them is close', async (start, clients) => {
  const seen: string[] = []
  const closed = later<void>()
  const server = await start({
    routes: {
      '/chat/:room': {
        websocket: {
          upgrade: (request) => ({ data: { room: request.params['room'], url: request.url } }),
          open: (socket) => void seen.push(`open ${(socket.data as { room: string }).room}`),
          message: async (socket, message) => {
            seen.push(
              `message ${typeof message === 'string' ? message : Buffer.from(message).toString('hex')}`,
            )
            await Promise.resolve()
            socket.send(String(message))
          },
          close: (socket, code, reason) => {
            seen.push(`close ${code} ${reason} ${socket.readyState} ${socket.queuedBytes}`)
            assert.equal(socket.send('late'), -1)
            socket.close()
            socket.ping()
            socket.terminate()
            socket.subscribe('a')
            assert.deepEqual(socket.rooms, [])
            closed.resolve()
          },
        },
      },
    },
  })
  const client = await clients.open(server.port, { path: '/chat/blue' })
  client.send(frame(0x81, 'a'), frame(0x82, Buffer.from([1, 2])))
  await client.received(2)
  await client.close(4000)
  await closed.promise
  assert.deepEqual(seen, ['open blue', 'message a', 'message 0102', 'close 4000  3 0'])
  assert.equal(server.stats().errors, 0)
})

onWires('bytes that come with the request are frames, if it is granted', async (start, clients) => {
  const server = await start({
    routes: {
      '/': {
        websocket: {
          upgrade: async () => {
            await new Promise((resolve) => setImmediate(resolve))
            return {}
          },
          message: (socket, message) => void socket.send(`${message as string}!`),
        },
      },
    },
  })
  const early = Buffer.concat([frame(0x81, 'a'), frame(0x81, 'b'), frame(0x88, closing(1000))])
  const client = await clients.open(server.port, { early })
  assert.deepEqual(await client.rest(), ['text a!', 'text b!', 'close 1000'])
  client.socket.destroy()
})

onWires('every kind of message is sent, and wrong ones are refused', async (start, clients) => {
  const done = later<void>()
  const server = await serving(start, {
    open(socket) {
      const bytes = new Uint8Array([1, 2, 3])
      assert.equal(socket.readyState, 1)
      assert.ok(socket.send('text') >= 0)
      socket.send(bytes)
      bytes.fill(9) // it was copied
      socket.send(new Uint16Array([0x0201]))
      socket.send(new Uint8Array([4, 5]).buffer)
      socket.send(new DataView(new Uint8Array([6, 7, 8]).buffer, 1))
      socket.send(new Uint8Array(new SharedArrayBuffer(2)))
      socket.send('x'.repeat(100_000))
      socket.ping('p')
      socket.ping(new Uint8Array([65]))
      for (const wrong of [undefined, null, 1, {}, ['a']])
        assert.throws(() => socket.send(wrong as never), { code: 'HTTP_ARGUMENT' })
      assert.throws(() => socket.ping('p'.repeat(126)), { code: 'HTTP_ARGUMENT' })
      assert.throws(() => socket.ping(1 as never), { code: 'HTTP_ARGUMENT' })
      for (const code of [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 1.5, '1000'])
        assert.throws(() => socket.close(code as never), { code: 'HTTP_ARGUMENT' })
      assert.throws(() => socket.close(1000, 'é'.repeat(62)), { code: 'HTTP_ARGUMENT' })
      assert.throws(() => socket.subscribe(''), { code: 'HTTP_ARGUMENT' })
      assert.throws(() => socket.subscribe(undefined as never), { code: 'HTTP_ARGUMENT' })
      assert.throws(() => socket.publish('r', 1 as never), { code: 'HTTP_ARGUMENT' })
      socket.unsubscribe('never entered')
      socket.close(4001, 'bye')
      assert.equal(socket.readyState, 2)
      assert.equal(socket.send('late'), -1)
      socket.close(4002)
      done.resolve()
    },
  })
  const client = await clients.open(server.port)
  await done.promise
  await client.received(10)
  const words = client.words.map((word) => (word.length > 1000 ? word.length : word))
  assert.deepEqual(words, [
    'text text',
    'bytes 010203',
    'bytes 0102',
    'bytes 0405',
    'bytes 0708',
    'bytes 0000',
    100_005,
    'ping p',
    'ping A',
    'close 4001 bye',
  ])
  await client.close(4001)
})

onWires('an error of a handler closes with 1011 and is reported with the request', async (start, clients) => {
  for (const name of ['open', 'message', 'drain-less'] as const) {
    const reported: unknown[] = []
    const closed = later<unknown[]>()
    const fail = (): never => {
      throw new Error(`of ${name}`)
    }
    const server = await start({
      error: (cause, request) => void reported.push((cause as Error).message, new URL(request.url).pathname),
      routes: {
        '/live': {
          websocket: {
            open: () => (name === 'open' ? fail() : undefined),
            message: async () => {
              await Promise.resolve()
              fail()
            },
            close: (_socket, code, reason) => closed.resolve([code, reason]),
          },
        },
      },
    })
    const client = await clients.open(server.port, { path: '/live' })
    client.text('a')
    assert.deepEqual(await client.received(1), ['close 1011'])
    await client.close(1011)
    assert.deepEqual(await closed.promise, [1011, ''])
    assert.deepEqual(reported, [`of ${name}`, '/live'])
    assert.equal(server.stats().errors, 1)
  }
})

onWires('upgrade may refuse, add headers and choose the subprotocol', async (start, clients) => {
  const server = await start({
    routes: {
      '/': {
        websocket: {
          upgrade(request) {
            const { searchParams } = new URL(request.url)
            if (searchParams.has('refuse')) return new Response('who are you', { status: 401 })
            const protocol = searchParams.get('protocol')
            return { headers: { 'x-session': '7' }, ...(protocol === null ? {} : { protocol }) }
          },
          open: (socket) => void socket.send(`${socket.protocol} from ${socket.remoteAddress}`),
          protocols: ['b', 'a'],
        },
      },
    },
  })
  const refused = await clients.ask(server.port, { path: '/?refuse' })
  assert.equal(refused.status, 401)
  refused.socket.destroy()
  for (const [path, offered, agreed] of [
    ['/', 'a, b', 'b'],
    ['/', 'a', 'a'],
    ['/', 'c', ''],
    ['/?protocol=c', 'a, c', 'c'],
  ] as const) {
    const client = await clients.open(server.port, { path, more: [`Sec-WebSocket-Protocol: ${offered}`] })
    assert.equal(client.header('sec-websocket-protocol') ?? '', agreed)
    assert.equal(client.header('x-session'), '7')
    assert.deepEqual(await client.received(1), [`text ${agreed} from 127.0.0.1`])
    await client.close()
  }
  const wrong = await clients.ask(server.port, { path: '/?protocol=z' })
  assert.equal(wrong.status, 500)
  wrong.socket.destroy()
})

onWires(
  'other requests of the route have handlers of their own, and middleware runs around both',
  async (start, clients) => {
    const seen: string[] = []
    const server = await start({
      routes: use(
        {
          '/page': {
            websocket: { open: (socket) => void socket.send('hi') },
            GET: () => 'page',
            POST: () => 'posted',
          },
          '/fixed': { websocket: { message: () => {} }, GET: new Response('fixed') },
          '/only': { websocket: { message: () => {} } },
          '/json': { websocket: { is: 'data' } },
        },
        async (request, next) => {
          const response = await next()
          seen.push(`${new URL(request.url).pathname} ${response.status}`)
          return response
        },
      ),
    })
    assert.equal(await (await fetch(`${server.url}/page`)).text(), 'page')
    assert.equal(await (await fetch(`${server.url}/page`, { method: 'POST' })).text(), 'posted')
    for (let times = 0; times < 2; times++)
      assert.equal(await (await fetch(`${server.url}/fixed`)).text(), 'fixed')
    assert.equal((await fetch(`${server.url}/only`)).status, 426)
    assert.deepEqual(await (await fetch(`${server.url}/json`)).json(), { websocket: { is: 'data' } })
    const client = await clients.open(server.port, { path: '/page' })
    assert.deepEqual(await client.received(1), ['text hi'])
    await client.close()
    assert.deepEqual(seen, [
      '/page 200',
      '/page 200',
      '/fixed 200',
      '/fixed 200',
      '/only 426',
      '/json 200',
      '/page 204',
    ])
  },
)

onWires('upgrade() makes a WebSocket of a request of fetch', async (start, clients) => {
  const handlers: WebSocketHandlers<{ name: string }> = {
    message: (socket, message) => void socket.send(`${socket.data.name}: ${message as string}`),
  }
  const server = await start({
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/twice') {
        upgrade(request, handlers, { data: { name: 'once' } })
        return upgrade(request, handlers, { data: { name: 'twice' } })
      }
      if (pathname === '/late') await new Promise((resolve) => setImmediate(resolve))
      return upgrade(request, handlers, { data: { name: pathname } })
    },
  })
  for (const path of ['/now', '/late']) {
    const client = await clients.open(server.port, { path })
    client.text('a')
    assert.deepEqual(await client.received(1), [`text ${path}: a`])
    await client.close()
  }
  assert.equal((await fetch(`${server.url}/page`)).status, 426)
  const twice = await clients.open(server.port, { path: '/twice' })
  twice.text('a')
  assert.deepEqual(await twice.received(1), ['text once: a'], 'the second call throws')
  await twice.close()
  assert.equal(server.stats().errors, 1)
})

test('requests without a connection, and wrong arguments, are refused by name', async () => {
  let caught: unknown
  const fails =
    (call: (request: Request) => unknown) =>
    (request: Request): string => {
      try {
        call(request)
      } catch (error) {
        caught = error
      }
      return 'caught'
    }
  const handlers = { message: (): void => {} }
  const headers = {
    upgrade: 'websocket',
    connection: 'upgrade',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  const codeOf = async (call: (request: Request) => unknown): Promise<string> => {
    caught = undefined
    await createApp({ routes: { '/': fails(call) } }).inject('/', { headers })
    return caught instanceof HttpError ? `${caught.code} ${caught.message}` : String(caught)
  }
  assert.match(await codeOf((request) => upgrade(request, handlers)), /^HTTP_UPGRADE .*injected/)
  assert.match(
    await codeOf((request) => upgrade(request, 1 as never)),
    /^HTTP_ARGUMENT .*an object of handlers/,
  )
  assert.match(await codeOf((request) => upgrade(request, { mesage: 1 } as never)), /did you mean "message"/)
  assert.match(await codeOf(() => upgrade(new Request('http://a/'), handlers)), /^HTTP_ARGUMENT .*request/)
  assert.match(await codeOf(() => publish(new Request('http://a/'), 'r', 'a')), /^HTTP_ARGUMENT .*request/)
  assert.equal(await codeOf((request) => publish(request, 'r', 'a')), 'undefined')
  for (const [name, value] of [
    ['protocols', ['a b']],
    ['origins', 'http://a'],
    ['origins', ['http://a/']],
    ['messageBytesMax', 0],
    ['compression', -1],
    ['pingMs', 0],
    ['open', 1],
  ] as const) {
    const websocket = { message: (): void => {}, [name]: value }
    const make = (): unknown => createApp({ routes: { '/live': { websocket } } })
    assert.throws(make, (error) => error instanceof HttpError && error.message.includes(name), name)
  }
  const table = { websocket: handlers, get: (): string => '' }
  assert.throws(() => createApp({ routes: { '/live': table as never } }), { code: 'HTTP_ARGUMENT' })
  for (const more of [
    { connection: 'close' },
    { 'content-type': 'text/plain' },
    { 'sec-websocket-accept': 'x' },
  ])
    assert.match(
      await codeOf((request) => upgrade(request, handlers, { headers: more })),
      /HTTP_(ARGUMENT|UPGRADE)/,
    )
  assert.match(
    await codeOf((request) => upgrade(request, handlers, { headers: 1 } as never)),
    /HTTP_ARGUMENT/,
  )
})

test('without the package ws, node:http names what is missing', async () => {
  const sockets = new NodeSockets(new Hub(() => {}), 1024, 'corespun-has-no-such-package')
  await sockets.load()
  assert.throws(() => sockets.begin({} as never, {} as Grant, {} as never), {
    code: 'HTTP_UPGRADE',
    message: /npm install ws/,
  })
})

onWires('pages are allowed by list, by function, or all', async (start, clients) => {
  const message = (): void => {}
  const server = await start({
    routes: {
      '/list': { websocket: { message, origins: ['https://a.example'] } },
      '/function': { websocket: { message, origins: (origin) => origin.endsWith('.example') } },
      '/any': { websocket: { message, origins: 'any' } },
    },
  })
  for (const [path, origin, status] of [
    ['/list', 'https://a.example', 101],
    ['/list', 'https://a.example:8443', 403],
    ['/list', 'http://a.example', 403],
    ['/function', 'https://b.example', 101],
    ['/function', 'https://b.example.evil', 403],
    ['/any', 'null', 101],
  ] as const) {
    const client = await clients.ask(server.port, { path, more: [`Origin: ${origin}`] })
    assert.equal(client.status, status, `${path} ${origin}`)
    client.socket.destroy()
  }
})

onWires('a client that is silent is pinged, and closed if it does not respond', async (start, clients) => {
  const closed = later<number>()
  // A client on a busy machine takes its time; the node core looks for its response behind pongMs.
  const patient = await serving(start, {
    pingMs: 20,
    pongMs: 2000,
    close: (_socket, code) => closed.resolve(code),
  })
  const alive = await clients.open(patient.port)
  const respond = (): void => {
    if (alive.words.at(-1) === 'ping') alive.send(frame(0x8a))
  }
  alive.events.on('news', respond)
  respond() // the first one may be here already
  await alive.received(3)
  assert.ok(alive.words.every((word) => word === 'ping'))
  assert.equal(alive.isEnded, false)
  await alive.close()
  assert.equal(await closed.promise, 1000)
  const server = await serving(start, { pingMs: 20, pongMs: 20 })
  const silent = await clients.open(server.port)
  assert.deepEqual(await silent.rest(), ['ping'])
  silent.socket.destroy()
})

onWires('a client that does not respond to a close frame is closed after closeMs', async (start, clients) => {
  const closed = later<number>()
  const server = await serving(start, {
    closeMs: 20,
    open: (socket) => socket.close(4000),
    close: (_socket, code) => closed.resolve(code),
  })
  const client = await clients.open(server.port)
  assert.deepEqual(await client.rest(), ['close 4000'])
  assert.equal(await closed.promise, 1006)
  client.socket.destroy()
})

onWires('terminate closes at once, and a lost connection is reported as 1006', async (start, clients) => {
  const codes: number[] = []
  let wake = (): void => {}
  const server = await serving(start, {
    message: (socket) => socket.terminate(),
    close: (_socket, code) => {
      codes.push(code)
      wake()
    },
  })
  const terminated = await clients.open(server.port)
  terminated.text('end me')
  assert.deepEqual(await terminated.rest(), [])
  terminated.socket.destroy()
  const lost = await clients.open(server.port)
  lost.socket.destroy()
  while (codes.length < 2) await new Promise<void>((resolve) => (wake = resolve))
  assert.deepEqual(codes, [1006, 1006])
})

onWires(
  'a slow reader fills the queue, drain follows when it reads, and too much closes with 1013',
  async (start, clients) => {
    const drained = later<void>()
    const closed = later<number>()
    const piece = new Uint8Array(50_000)
    const large = new Uint8Array(100_000) // it is passed to the native core by itself
    const server = await start({
      limits: { outBytesMax: 65_536 },
      routes: {
        '/drain': {
          websocket: {
            queuedBytesMax: 1 << 30,
            open(socket) {
              while (socket.send(piece) <= 200_000);
              while (socket.send(large) <= 500_000);
              assert.ok(socket.queuedBytes > 400_000)
            },
            drain: () => drained.resolve(),
          },
        },
        '/full': {
          websocket: {
            queuedBytesMax: 1 << 20,
            message(socket) {
              for (let times = 0; times < 2000; times++) socket.send(piece)
            },
            close: (_socket, code) => closed.resolve(code),
          },
        },
      },
    })
    const reader = await clients.open(server.port, { path: '/drain' })
    await drained.promise
    reader.socket.destroy()
    const full = await clients.open(server.port, { path: '/full' })
    full.socket.pause()
    full.text('fill')
    assert.equal(await closed.promise, 1013)
    full.socket.destroy()
  },
)

onWires(
  'a server that stops closes with 1001, and cuts those that do not respond',
  async (start, clients) => {
    const codes: number[] = []
    const server = await serving(start, {
      closeMs: 60_000,
      message: () => {},
      close: (_socket, code) => void codes.push(code),
    })
    const polite = await clients.open(server.port)
    const silent = await clients.open(server.port)
    const stopped = server.close({ timeoutMs: 300 })
    assert.deepEqual(await polite.received(1), ['close 1001'])
    await polite.close(1001)
    assert.deepEqual(await silent.rest(), ['close 1001'])
    await stopped
    assert.deepEqual(codes, [1001, 1006])
    assert.equal(server.stats().connections, 0)
    server.publish('room', 'nobody')
    silent.socket.destroy()
  },
)
