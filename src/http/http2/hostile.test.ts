/**
 * Frames that no client sends in good faith: each is refused or its connection closed, and others are served
 * meanwhile.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { settled, until } from '../../base/wait.test.support.ts'
import { onServer, type Start } from '../cores.test.support.ts'
import type { HttpServer } from '../server.ts'
import {
  connect,
  END_HEADERS,
  END_STREAM,
  type Frame,
  frame,
  GET,
  POST,
  RawClient,
  request,
  Type,
} from './client.test.support.ts'

const Reason = { protocolError: 1, enhanceYourCalm: 11 } as const

/** Attacks a server, and asks it like everyone else afterwards. */
async function attacked(
  start: Start,
  limits: Record<string, number>,
  attack: (server: HttpServer) => Promise<void>,
): Promise<void> {
  const server = await start({
    limits,
    routes: { '/': async (asked) => (asked.method === 'POST' ? asked.text() : 'text') },
  })
  const beside = connect(server.port)
  assert.equal((await request(beside, '/')).body, 'text')
  await attack(server)
  assert.equal((await request(beside, '/')).body, 'text')
  beside.close()
}

const get = (stream: number) => frame(Type.headers, END_HEADERS | END_STREAM, stream, GET)
const reset = (stream: number) => frame(Type.reset, 0, stream, Buffer.from([0, 0, 0, 8]))

onServer('streams that are reset as soon as they begin', async (start) => {
  await attacked(start, {}, async ({ port }) => {
    const client = await RawClient.connect(port)
    for (let stream = 1; stream < 2000 && !client.socket.destroyed; stream += 2)
      client.socket.write(Buffer.concat([get(stream), reset(stream)]))
    await settled(client.closed, 'the end of the connection')
    assert.equal(client.reason, Reason.enhanceYourCalm)
  })
})

onServer('streams that are reset when they have got data end no connection', async (start) => {
  const { port } = await start({
    routes: {
      '/live': () => new Response(new ReadableStream({ start: (live) => live.enqueue(Buffer.from('x')) })),
      '/': 'text',
    },
    limits: { resetsMax: 1 },
  })
  const session = connect(port)
  for (let count = 0; count < 20; count += 1) {
    const live = session.request({ ':path': '/live' }).on('error', () => {})
    await settled(once(live, 'data'), 'data')
    live.close(8)
  }
  assert.equal((await request(session, '/')).body, 'text')
  session.close()
})

onServer('the open streams of a connection that ends for its resets are finished', async (start) => {
  await attacked(start, { resetsMax: 1 }, async ({ port }) => {
    const client = await RawClient.connect(port)
    const sent = (type: number, stream = 0) =>
      until(() => client.frames.some((one) => one.type === type && one.stream === stream))
    client.socket.write(frame(Type.headers, END_HEADERS, 1, POST))
    for (const stream of [3, 5]) {
      client.socket.write(frame(Type.headers, END_HEADERS, stream, POST))
      // Its handler has the request now, and waits for the body.
      client.socket.write(frame(Type.ping, 0, 0, Buffer.alloc(8, stream)))
      const isPong = (one: Frame) => one.type === Type.ping && one.payload[0] === stream
      await until(() => client.frames.some(isPong))
      client.socket.write(reset(stream))
    }
    await sent(Type.goAway)
    assert.equal(client.reason, 0)
    client.socket.write(get(7))
    await sent(Type.reset, 7)
    client.socket.write(frame(Type.data, END_STREAM, 1, Buffer.from('whole')))
    await sent(Type.data, 1)
    assert.equal(String(client.frames.find(({ type }) => type === Type.data)?.payload), 'whole')
    await settled(client.closed, 'the end of the connection')
  })
})

onServer('a head that never ends', async (start) => {
  await attacked(start, {}, async ({ port }) => {
    const client = await RawClient.connect(port)
    client.socket.write(frame(Type.headers, END_STREAM, 1, GET))
    const field = Buffer.concat([Buffer.from([0x00, 0x01, 0x78, 0x7f, 0x81, 0x1e]), Buffer.alloc(4000, 'x')])
    for (let count = 0; count < 200 && !client.socket.destroyed; count += 1)
      client.socket.write(frame(Type.continuation, 0, 1, field))
    await settled(client.closed, 'the end of the connection')
    assert.ok(client.reason !== undefined && client.reason > 0)
  })
})

onServer('pings and settings without end, from a client that reads nothing', async (start) => {
  await attacked(start, { bodyMs: 500 }, async ({ port }) => {
    const client = await RawClient.connect(port)
    client.socket.pause()
    const flood = Buffer.concat(
      Array.from({ length: 1000 }, () =>
        Buffer.concat([frame(Type.ping, 0, 0, Buffer.alloc(8)), frame(Type.settings, 0, 0)]),
      ),
    )
    let isFull = false
    for (let count = 0; count < 500 && !isFull; count += 1) {
      isFull = !client.socket.write(flood)
      await new Promise(setImmediate)
    }
    client.socket.resume()
    client.socket.destroy()
  })
})

const FLOODS = {
  PING: [frame(Type.ping, 0, 0, Buffer.alloc(8)), 1],
  SETTINGS: [frame(Type.settings, 0, 0), 1],
  PRIORITY: [frame(2, 0, 3, Buffer.from([0, 0, 0, 0, 1])), 1],
  WINDOW_UPDATE: [frame(Type.windowUpdate, 0, 0, Buffer.from([0, 0, 0, 1])), 8],
  'no known type': [frame(0x42, 0, 0), 1],
} as const

for (const [name, [one, times]] of Object.entries(FLOODS))
  onServer(`frames without end: ${name}`, async (start) => {
    await attacked(start, {}, async ({ port }) => {
      const client = await RawClient.connect(port)
      const part = Buffer.concat(Array.from({ length: 1000 * times }, () => one))
      // What time allows meanwhile is far less than this client sends.
      const more = () => {
        if (client.socket.writable) client.socket.write(part, () => setImmediate(more))
      }
      more()
      await settled(client.closed, 'the end of the connection')
      assert.equal(client.reason, Reason.enhanceYourCalm)
    })
  })

onServer('as many pings as a client in good faith sends', async (start) => {
  await attacked(start, {}, async ({ port }) => {
    const client = await RawClient.connect(port)
    const ping = frame(Type.ping, 0, 0, Buffer.alloc(8))
    const pings = (count: number) => Buffer.concat(Array.from({ length: count }, () => ping))
    for (let burst = 1; burst <= 10; burst += 1) {
      client.socket.write(pings(100))
      await until(() => client.frames.filter(({ type }) => type === Type.ping).length === 100 * burst)
    }
    assert.equal(client.reason, undefined)
    client.socket.destroy()
  })
})

onServer('bytes that are not frames', async (start) => {
  await attacked(start, {}, async ({ port }) => {
    const client = await RawClient.connect(port)
    client.socket.write(Buffer.alloc(5000, 0xff))
    await settled(client.closed, 'the end of the connection')
    assert.ok(client.reason !== undefined && client.reason > 0)
  })
})

onServer('a preface without its rest', async (start) => {
  await attacked(start, { headersMs: 300 }, async (server) => {
    const client = await RawClient.connect(server.port)
    client.socket.destroy()
    const { default: net } = await import('node:net')
    const socket = net.connect({ port: server.port, host: '127.0.0.1' }).on('error', () => {})
    socket.write('PRI * HTTP/2.0\r\n\r\n')
    await settled(new Promise((resolve) => socket.resume().on('close', resolve)), 'the end')
  })
})

onServer('a body that does not come', async (start) => {
  await attacked(start, { bodyMs: 300 }, async (server) => {
    const client = await RawClient.connect(server.port)
    client.socket.write(frame(Type.headers, END_HEADERS, 1, POST))
    await until(() => client.frames.some(({ type, stream }) => type === Type.headers && stream === 1))
    client.socket.destroy()
  })
})

onServer('a window that stays closed', async (start) => {
  await attacked(start, { bodyMs: 300 }, async (server) => {
    // SETTINGS_INITIAL_WINDOW_SIZE 0
    const client = await RawClient.connect(server.port, Buffer.from([0, 4, 0, 0, 0, 0]))
    client.socket.write(get(1))
    await until(() => client.frames.some(({ type, stream }) => type === Type.reset && stream === 1))
    client.socket.destroy()
  })
})

onServer('a window of one byte at a time', async (start) => {
  await attacked(start, { bodyMs: 300 }, async (server) => {
    const client = await RawClient.connect(server.port, Buffer.from([0, 4, 0, 0, 0, 0]))
    client.socket.write(frame(Type.headers, END_HEADERS, 1, POST))
    client.socket.write(frame(Type.data, END_STREAM, 1, Buffer.alloc(4000, 'x')))
    const opens = setInterval(() => {
      client.socket.write(frame(Type.windowUpdate, 0, 1, Buffer.from([0, 0, 0, 1])))
    }, 50)
    try {
      await until(() => client.frames.some(({ type, stream }) => type === Type.reset && stream === 1))
    } finally {
      clearInterval(opens)
    }
    client.socket.destroy()
  })
})

onServer('more streams than are allowed', async (start) => {
  await attacked(start, { streamsMax: 3, bodyMs: 60_000 }, async (server) => {
    const client = await RawClient.connect(server.port)
    for (const stream of [1, 3, 5, 7]) client.socket.write(frame(Type.headers, END_HEADERS, stream, POST))
    await until(() => client.frames.some(({ type }) => type === Type.reset))
    const refused = client.frames.find(({ type }) => type === Type.reset)
    assert.deepEqual([refused?.stream, refused?.payload.readUInt32BE(0)], [7, 7]) // REFUSED_STREAM
    client.socket.destroy()
  })
})
