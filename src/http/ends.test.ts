/**
 * Ends: clients that stop sending or disconnect, and servers that stop while clients are connected.
 *
 * A client that may still be connected gets its whole response; a disconnection is reported at once.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { until } from '../base/wait.test.support.ts'
import { onServer } from './cores.test.support.ts'
import { connect, converse, readResponses } from './raw.test.support.ts'
import type { HttpServer } from './server.ts'

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const PIECE_BYTES = 64 * 1024
const PIECES = 400

/** A stream of `count` pieces, as fast as they are read; calls `cancelled` when the reader cancels. */
function pieces(count: number, cancelled: () => void = () => {}): ReadableStream<Uint8Array> {
  let left = count
  return new ReadableStream<Uint8Array>({
    pull(out) {
      if ((left -= 1) < 0) out.close()
      else out.enqueue(new Uint8Array(PIECE_BYTES).fill(120))
    },
    cancel: cancelled,
  })
}

/** All that comes until the server closes, as Latin-1. */
async function rest(socket: Socket): Promise<string> {
  const found: Buffer[] = []
  socket.on('data', (piece: Buffer) => found.push(piece))
  await Promise.race([once(socket, 'close'), once(socket, 'end')])
  socket.destroy()
  return Buffer.concat(found).toString('latin1')
}

/** Waits until no connection is left. */
async function untilAlone(server: HttpServer): Promise<void> {
  await until(() => server.stats().connections === 0)
  assert.equal(server.stats().connections, 0)
}

onServer('a client that only stopped sending receives a later response', async (start) => {
  const signals: AbortSignal[] = []
  const server = await start({
    routes: {
      '/later': async (request) => {
        signals.push(request.signal)
        await until(() => request.signal.aborted)
        return `later, ${request.signal.aborted ? 'aborted' : 'not aborted'}`
      },
      '/echo': async (request) => {
        await pause(30)
        return request.text()
      },
    },
  })
  const { responses, closed } = await converse(server.port, [get('/later').repeat(2)], {
    responses: 2,
    end: true,
  })
  assert.deepEqual(
    responses.map(({ status, body }) => [status, body]),
    [
      [200, 'later, aborted'],
      [200, 'later, aborted'],
    ],
  )
  assert.ok(closed)
  assert.deepEqual(
    signals.map((signal) => signal.aborted),
    [true, true],
  )
  // A body that has come whole is read behind the end as before it.
  const body = 'x'.repeat(100_000)
  const upload = `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const echoed = await converse(server.port, [upload], { responses: 1, end: true })
  assert.deepEqual([echoed.responses[0]?.body === body, echoed.closed], [true, true])
  await untilAlone(server)
  assert.equal(server.stats().aborted, 0)
})

onServer('a client that only stopped sending gets a stream whole, however long it takes', async (start) => {
  const server = await start({ routes: { '/': () => new Response(pieces(PIECES)) } })
  const socket = await connect(server.port)
  socket.pause().end(get('/'))
  await pause(50)
  const text = await rest(socket.resume())
  const { responses } = readResponses(text, [], true)
  assert.equal(responses[0]?.body.length, PIECES * PIECE_BYTES)
})

onServer(
  'a client that only stopped sending gets all of a pipeline of constants, read late',
  async (start) => {
    const [count, body] = [800, 'x'.repeat(20_000)]
    const server = await start({ routes: { '/': body } })
    const socket = await connect(server.port)
    socket.pause().end(get('/').repeat(count))
    // Until the kernel takes no more: what is unsent then is more than `outBytesMax`.
    for (let [before, now] = [-1, 0]; before !== now;) {
      await pause(100)
      ;[before, now] = [now, server.stats().bytesOut]
    }
    assert.ok(server.stats().bytesOut < count * body.length)
    const { responses } = readResponses(await rest(socket.resume()), [], true)
    assert.equal(responses.length, count)
    assert.ok(responses.every((response) => response.status === 200 && response.body === body))
    await untilAlone(server)
  },
)

onServer('a silent stream is cancelled a second after its client stops sending', async (start) => {
  let onCancel = (): void => {}
  const cancelled = new Promise<void>((resolve) => (onCancel = resolve))
  const server = await start({
    routes: {
      '/': () =>
        new Response(new ReadableStream({ start: (out) => out.enqueue(Buffer.from('x')), cancel: onCancel })),
    },
  })
  const socket = await connect(server.port)
  socket.resume().end(get('/'))
  await cancelled
  await untilAlone(server)
})

onServer('nobody is waited for longer than bodyMs by a client that stopped sending', async (start) => {
  const server = await start({ limits: { bodyMs: 100 }, routes: { '/': () => new Promise<never>(() => {}) } })
  const found = await converse(server.port, [get('/')], { responses: 0, end: true })
  assert.equal(found.responses.length, 0)
  await untilAlone(server)
  assert.equal(server.stats().aborted, 1)
})

onServer('a client that disconnects during an unread body is reported at once', async (start) => {
  const reasons: unknown[] = []
  const server = await start({
    error: (error) => void reasons.push(error),
    routes: {
      '/never': (request) =>
        new Promise<never>((_, reject) => {
          request.signal.addEventListener('abort', () => reject(request.signal.reason as Error))
        }),
      '/read': async (request) => request.text(),
    },
  })
  for (const path of ['/never', '/read']) {
    const upload = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc`
    const { responses, closed } = await converse(server.port, [upload], { responses: 1, end: true })
    assert.deepEqual([responses.length, closed], [0, true], path)
  }
  assert.deepEqual(reasons, [])
  await untilAlone(server)
})

onServer('CONNECT behind a stream is refused behind all of it', async (start) => {
  const server = await start({ routes: { '/': () => new Response(pieces(100)) } })
  const socket = await connect(server.port)
  socket.pause().write(`${get('/')}CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n`)
  await pause(50)
  const { responses } = readResponses(await rest(socket.resume()), [], true)
  assert.deepEqual(
    responses.map(({ status, body }) => [status, status === 200 ? body.length : 0]),
    [
      [200, 100 * PIECE_BYTES],
      [501, 0],
    ],
  )
})

onServer('stop() responds to requests in the kernel and to half-read heads', async (start) => {
  const server = await start({ routes: { '/': () => 'hello' } })
  const [kept, half] = await Promise.all([connect(server.port), connect(server.port)])
  const silent = await connect(server.port)
  for (const socket of [kept, half]) {
    socket.write(get('/'))
    await once(socket, 'data')
  }
  const head = get('/')
  half.write(head.slice(0, 10))
  await until(() => server.stats().bytesIn === 2 * head.length + 10, 'half a head')
  kept.write(head)
  const [stopped, found] = [server.close({ timeoutMs: 60_000 }), [rest(kept), rest(half), rest(silent)]]
  // In this turn: the server waits for a second.
  half.write(head.slice(10))
  const texts = await Promise.all(found)
  await stopped
  assert.deepEqual(
    texts.map((text) => readResponses(text, [], true).responses.map(({ body }) => body)),
    [['hello'], ['hello'], []],
  )
})

onServer('stop() sends pending responses to the last byte', async (start) => {
  const bytes = 20_000_000
  const server = await start({ routes: { '/': () => new Uint8Array(bytes) } })
  const socket = await connect(server.port)
  socket.pause().write(get('/'))
  await until(() => server.stats().bytesOut > 0, 'the first bytes of the response')
  const stopped = server.close({ timeoutMs: 60_000 })
  await pause(50)
  const { responses } = readResponses(await rest(socket.resume()), [], true)
  assert.equal(responses[0]?.body.length, bytes)
  await stopped
})
