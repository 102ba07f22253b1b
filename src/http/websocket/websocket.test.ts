/**
 * WebSockets as programs use them, on both cores: handlers, errors, limits, time, rooms, stops.
 *
 * An assertion that fails in a handler ends the process with its error.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { onCores, type Start } from '../cores.test.support.ts'
import { NodeSockets } from '../core/node/sockets.ts'
import {
  createApp,
  HttpError,
  publish,
  type ServerSocket,
  upgrade,
  use,
  type WebSocketHandlers,
} from '../index.ts'
import type { HttpServer } from '../server.ts'
import { closing, frame, RawClient } from './client.test.support.ts'
import { Hub } from './hub.ts'
import type { Grant } from './wire.ts'

/** A promise and what resolves it. */
function later<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((found) => (resolve = found))
  return { promise, resolve }
}

/** A server whose handlers do not fail: an assertion in one of them ends the process with its error. */
const serving = (start: Start, websocket: WebSocketHandlers): Promise<HttpServer> =>
  start({
    routes: { '/': { websocket } },
    error: (cause) => {
      setImmediate(() => {
        throw cause
      })
    },
  })

onCores('handlers run in order, and the last of them is close', async (start) => {
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
  const client = await RawClient.open(server.port, { path: '/chat/blue' })
  client.send(frame(0x81, 'a'), frame(0x82, Buffer.from([1, 2])))
  await client.received(2)
  await client.close(4000)
  await closed.promise
  assert.deepEqual(seen, ['open blue', 'message a', 'message 0102', 'close 4000  3 0'])
  assert.equal(server.stats().errors, 0)
})

onCores('bytes that come with the request are frames, if it is granted', async (start) => {
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
  const client = await RawClient.open(server.port, { early })
  assert.deepEqual(await client.rest(), ['text a!', 'text b!', 'close 1000'])
  client.socket.destroy()
})

onCores('every kind of message is sent, and wrong ones are refused', async (start) => {
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
  const client = await RawClient.open(server.port)
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

onCores('an error of a handler closes with 1011 and is reported with the request', async (start) => {
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
    const client = await RawClient.open(server.port, { path: '/live' })
    client.text('a')
    assert.deepEqual(await client.received(1), ['close 1011'])
    await client.close(1011)
    assert.deepEqual(await closed.promise, [1011, ''])
    assert.deepEqual(reported, [`of ${name}`, '/live'])
    assert.equal(server.stats().errors, 1)
  }
})

onCores('upgrade may refuse, add headers and choose the subprotocol', async (start) => {
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
  const refused = await RawClient.ask(server.port, { path: '/?refuse' })
  assert.equal(refused.status, 401)
  refused.socket.destroy()
  for (const [path, offered, agreed] of [
    ['/', 'a, b', 'b'],
    ['/', 'a', 'a'],
    ['/', 'c', ''],
    ['/?protocol=c', 'a, c', 'c'],
  ] as const) {
    const client = await RawClient.open(server.port, { path, more: [`Sec-WebSocket-Protocol: ${offered}`] })
    assert.equal(client.header('sec-websocket-protocol') ?? '', agreed)
    assert.equal(client.header('x-session'), '7')
    assert.deepEqual(await client.received(1), [`text ${agreed} from 127.0.0.1`])
    await client.close()
  }
  const wrong = await RawClient.ask(server.port, { path: '/?protocol=z' })
  assert.equal(wrong.status, 500)
  wrong.socket.destroy()
})

onCores(
  'other requests of the route have handlers of their own, and middleware runs around both',
  async (start) => {
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
    const client = await RawClient.open(server.port, { path: '/page' })
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

onCores('upgrade() makes a WebSocket of a request of fetch', async (start) => {
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
    const client = await RawClient.open(server.port, { path })
    client.text('a')
    assert.deepEqual(await client.received(1), [`text ${path}: a`])
    await client.close()
  }
  assert.equal((await fetch(`${server.url}/page`)).status, 426)
  const twice = await RawClient.open(server.port, { path: '/twice' })
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

onCores('pages are allowed by list, by function, or all', async (start) => {
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
    const client = await RawClient.ask(server.port, { path, more: [`Origin: ${origin}`] })
    assert.equal(client.status, status, `${path} ${origin}`)
    client.socket.destroy()
  }
})

onCores('a client that is silent is pinged, and closed if it does not respond', async (start) => {
  const closed = later<number>()
  const server = await serving(start, {
    pingMs: 20,
    pongMs: 20,
    close: (_socket, code) => closed.resolve(code),
  })
  const alive = await RawClient.open(server.port)
  alive.events.on('news', () => {
    if (alive.words.at(-1) === 'ping') alive.send(frame(0x8a))
  })
  await alive.received(3)
  assert.ok(alive.words.every((word) => word === 'ping'))
  assert.equal(alive.isEnded, false)
  await alive.close()
  assert.equal(await closed.promise, 1000)
  const silent = await RawClient.open(server.port)
  assert.deepEqual(await silent.rest(), ['ping'])
  silent.socket.destroy()
})

onCores('a client that does not respond to a close frame is closed after closeMs', async (start) => {
  const closed = later<number>()
  const server = await serving(start, {
    closeMs: 20,
    open: (socket) => socket.close(4000),
    close: (_socket, code) => closed.resolve(code),
  })
  const client = await RawClient.open(server.port)
  assert.deepEqual(await client.rest(), ['close 4000'])
  assert.equal(await closed.promise, 1006)
  client.socket.destroy()
})

onCores('terminate closes at once, and a lost connection is reported as 1006', async (start) => {
  const codes: number[] = []
  let wake = (): void => {}
  const server = await serving(start, {
    message: (socket) => socket.terminate(),
    close: (_socket, code) => {
      codes.push(code)
      wake()
    },
  })
  const terminated = await RawClient.open(server.port)
  terminated.text('end me')
  assert.deepEqual(await terminated.rest(), [])
  terminated.socket.destroy()
  const lost = await RawClient.open(server.port)
  lost.socket.destroy()
  while (codes.length < 2) await new Promise<void>((resolve) => (wake = resolve))
  assert.deepEqual(codes, [1006, 1006])
})

onCores(
  'a slow reader fills the queue, drain follows when it reads, and too much closes with 1013',
  async (start) => {
    const drained = later<void>()
    const closed = later<number>()
    const piece = new Uint8Array(50_000)
    const server = await start({
      limits: { outBytesMax: 65_536 },
      routes: {
        '/drain': {
          websocket: {
            queuedBytesMax: 1 << 30,
            open(socket) {
              while (socket.send(piece) <= 500_000);
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
    const reader = await RawClient.open(server.port, { path: '/drain' })
    await drained.promise
    reader.socket.destroy()
    const full = await RawClient.open(server.port, { path: '/full' })
    full.socket.pause()
    full.text('fill')
    assert.equal(await closed.promise, 1013)
    full.socket.destroy()
  },
)

onCores('a server that stops closes with 1001, and cuts those that do not respond', async (start) => {
  const codes: number[] = []
  const server = await serving(start, {
    closeMs: 60_000,
    message: () => {},
    close: (_socket, code) => void codes.push(code),
  })
  const polite = await RawClient.open(server.port)
  const silent = await RawClient.open(server.port)
  const stopped = server.close({ timeoutMs: 300 })
  assert.deepEqual(await polite.received(1), ['close 1001'])
  await polite.close(1001)
  assert.deepEqual(await silent.rest(), ['close 1001'])
  await stopped
  assert.deepEqual(codes, [1001, 1006])
  assert.equal(server.stats().connections, 0)
  server.publish('room', 'nobody')
  silent.socket.destroy()
})

onCores('rooms: members receive what others, requests and the server publish', async (start) => {
  const server = await start({
    routes: {
      '/': {
        websocket: {
          open: (socket) => socket.subscribe('all'),
          message: (socket, message) => socket.publish('all', message),
          compression: 1000,
        },
      },
      '/news': {
        POST: async (request) => {
          publish(request, 'all', await request.text())
          return 'sent'
        },
      },
    },
  })
  const more = ['Sec-WebSocket-Extensions: permessage-deflate']
  const one = await RawClient.open(server.port)
  const two = await RawClient.open(server.port, { more })
  const three = await RawClient.open(server.port, { more })
  one.text('hello')
  await Promise.all([two.received(1), three.received(1)])
  await fetch(`${server.url}/news`, { method: 'POST', body: 'news' })
  await Promise.all([one.received(1), two.received(2), three.received(2)])
  server.publish('all', 'y'.repeat(40_000))
  server.publish('nobody', 'is there')
  assert.throws(() => server.publish('', 'a'), { code: 'HTTP_ARGUMENT' })
  await Promise.all([one.received(2), two.received(3), three.received(3)])
  assert.deepEqual(one.words, ['text news', `text ${'y'.repeat(40_000)}`])
  assert.deepEqual(two.words.slice(0, 2), ['text hello', 'text news'])
  assert.match(two.words[2], /^65 /, 'compressed for those that have agreed')
  assert.deepEqual(three.words, two.words)
  await Promise.all([one.close(), two.close(), three.close()])
})

/** A step of the model: who does what in which room. */
const STEP = fc.record({
  who: fc.nat(3),
  what: fc.constantFrom('enter', 'enter', 'leave', 'publish', 'publish', 'server', 'close'),
  room: fc.constantFrom('a', 'b', 'c'),
})

onCores('rooms behave like a plain list of members', async (start) => {
  const server = await serving(start, {
    message(socket: ServerSocket, message) {
      const [what, room, text] = String(message).split(' ')
      if (what === 'enter') socket.subscribe(room)
      else if (what === 'leave') socket.unsubscribe(room)
      else socket.publish(room, text)
      socket.send(`done ${[...socket.rooms].sort().join('')}`)
    },
  })
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 20 }), async (steps) => {
      const clients = await Promise.all([0, 1, 2, 3].map(() => RawClient.open(server.port)))
      const rooms = clients.map(() => new Set<string>())
      const expected: string[][] = clients.map(() => [])
      const open = clients.map(() => true)
      for (const [at, { who, what, room }] of steps.entries()) {
        const text = `m${at}`
        if (!open[who]) continue
        if (what === 'close') {
          open[who] = false
          expected[who].push('close 1000')
          rooms[who].clear()
          await clients[who].close()
          continue
        }
        if (what === 'enter') rooms[who].add(room)
        if (what === 'leave') rooms[who].delete(room)
        for (const [other, entered] of rooms.entries())
          if (entered.has(room) && (what === 'server' || (what === 'publish' && other !== who)))
            expected[other].push(`text ${text}`)
        if (what === 'server') server.publish(room, text)
        else {
          clients[who].text(`${what} ${room} ${text}`)
          expected[who].push(`text done ${[...rooms[who]].sort().join('')}`)
        }
        await Promise.all(clients.map((client, index) => client.received(expected[index].length)))
      }
      for (const [index, client] of clients.entries()) {
        if (open[index]) {
          await client.close()
          expected[index].push('close 1000')
        }
        assert.deepEqual(client.words, expected[index])
      }
    }),
    { numRuns: 12 },
  )
})

test('a socket may enter 1024 rooms', async (t) => {
  const { serve } = await import('../serve.ts')
  const checked = later<void>()
  const server = await serve({
    quiet: true,
    port: 0,
    routes: {
      '/': {
        websocket: {
          open(socket) {
            for (let room = 0; room < 1024; room++) socket.subscribe(`room ${room}`)
            socket.subscribe('room 0')
            assert.throws(() => socket.subscribe('one more'), { code: 'HTTP_ARGUMENT' })
            checked.resolve()
          },
        },
      },
    },
  })
  t.after(() => server.close({ timeoutMs: 100 }))
  const client = await RawClient.open(server.port)
  await checked.promise
  await client.close()
})
