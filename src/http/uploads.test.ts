/**
 * Uploads that a core or its app refuses: the client gets the response, whether it reads while it sends or
 * only behind that.
 *
 * A connection that closes with bytes unread is reset, and a reset may overtake what was sent before it.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { until, WAIT_MS_MAX } from '../base/wait.test.support.ts'
import { connect, readResponses } from './raw.test.support.ts'
import type { HttpServer } from './server.ts'
import { serve } from './serve.ts'
import type { ServeOptions } from './app/settings.ts'

type CoreName = 'native' | 'node'
type Limits = NonNullable<ServeOptions['limits']>

const UPLOAD_BYTES = 24 * 1024 * 1024

type Upload = (port: number, path: string, isChunked: boolean) => Promise<number>

/** How a client uploads and what status it sees. */
const CLIENTS: Readonly<Record<string, Upload>> = {
  'that reads only when it has sent all': async (port, path, isChunked) => {
    const socket = await connect(port)
    const head = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${UPLOAD_BYTES}`
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n`)
    const piece = Buffer.alloc(1024 * 1024, 'x')
    const framed = isChunked ? Buffer.concat([Buffer.from('100000\r\n'), piece, Buffer.from('\r\n')]) : piece
    for (let sent = 0; sent < UPLOAD_BYTES; sent += piece.length) {
      const error = await new Promise<Error | null | undefined>((done) => socket.write(framed, done))
      assert.ok(error === null || error === undefined, `after ${sent} bytes: ${error?.message}`)
    }
    let text = ''
    socket.setEncoding('latin1').on('data', (part: string) => (text += part))
    await once(socket, 'end')
    socket.destroy()
    const { responses, rest } = readResponses(text, [], true)
    assert.deepEqual([responses.length, rest], [1, ''], text)
    return responses[0].status
  },
  'of node:http': (port, path, isChunked) =>
    new Promise((resolve, reject) => {
      const headers = isChunked ? {} : { 'content-length': UPLOAD_BYTES }
      const request = http.request({ port, path, method: 'POST', headers, agent: false }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode!))
        response.on('error', reject)
      })
      request.on('error', reject)
      for (let sent = 0; sent < UPLOAD_BYTES; sent += 1024 * 1024) request.write(Buffer.alloc(1024 * 1024))
      request.end()
    }),
  'of fetch': async (port, path, isChunked) => {
    const bytes = new Uint8Array(UPLOAD_BYTES)
    const body = isChunked ? new Blob([bytes]).stream() : bytes
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body, duplex: 'half' })
    await response.text()
    return response.status
  },
}

/** Windows has the adapter alone. */
const CORES = process.platform === 'win32' ? (['node'] as const) : (['native', 'node'] as const)

function start(core: CoreName, given: Limits = {}): Promise<HttpServer> {
  const limits = { bodyBytesMax: 1_000_000, ...given }
  // node:http reads a body that nobody has read to its end, unless the connection closes.
  const headers: Record<string, string> = core === 'node' ? { connection: 'close' } : {}
  const refuses = (): Response => new Response('who are you?', { status: 401, headers })
  const routes = { '/': async (request: Request): Promise<string> => `${(await request.text()).length}` }
  return serve({
    quiet: true,
    core,
    host: '127.0.0.1',
    port: 0,
    limits,
    error: () => undefined,
    routes,
    fetch: refuses,
  })
}

for (const core of CORES) {
  for (const [client, upload] of Object.entries(CLIENTS)) {
    const name = `a client ${client} sees why its upload is refused (${core})`
    test(name, { timeout: 2 * WAIT_MS_MAX }, async () => {
      const server = await start(core)
      const asking = await start(core, { bodyBytesMax: 2 * UPLOAD_BYTES })
      try {
        for (let round = 0; round < 4; round += 1) {
          assert.equal(await upload(server.port, '/', false), 413, 'a length above the bound')
          assert.equal(await upload(server.port, '/', true), 413, 'chunks above the bound')
          assert.equal(await upload(asking.port, '/login', false), 401, 'a handler that does not read')
          assert.equal(await upload(asking.port, '/login', true), 401, 'a handler that does not read chunks')
        }
      } finally {
        await Promise.all([server.close({ timeoutMs: 0 }), asking.close({ timeoutMs: 0 })])
      }
    })
  }

  const silent = `a client that stops sending behind a refusal is not read for long (${core})`
  test(silent, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const server = await start(core)
    const { socket, response } = await refused(server)
    assert.match(response, /^HTTP\/1\.1 413 /)
    await closedWithin(server, 25_000) // the default of bodyMs is more
    socket.destroy()
    await server.close({ timeoutMs: 0 })
  })

  const endless = `a client that sends without end behind a refusal is reset after bodyMs (${core})`
  test(endless, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const server = await start(core, { bodyMs: 100 })
    const { socket } = await refused(server)
    const more = (): void => void (socket.writable && socket.write(Buffer.alloc(65_536), more))
    more()
    await new Promise((closed) => socket.once('close', closed)) // with or without an error
    await closedWithin(server, WAIT_MS_MAX)
    await server.close({ timeoutMs: 0 })
  })

  const blocked = `what arrived while the thread was blocked counts as sent (${core})`
  test(blocked, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const server = await start(core)
    const { socket } = await refused(server)
    socket.write(Buffer.alloc(65_536))
    // Longer than the time in which a client has to send something.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500)
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.equal(server.stats().connections, 1, 'it was taken for a client that stopped')
    socket.destroy()
    await closedWithin(server, WAIT_MS_MAX)
    await server.close({ timeoutMs: 0 })
  })

  const full = `beyond a quarter of connectionsMax, connections are closed at once (${core})`
  test(full, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const server = await start(core, { connectionsMax: 4, bodyMs: 2 * WAIT_MS_MAX })
    const first = await refused(server)
    const drip = setInterval(() => first.socket.write(Buffer.alloc(2000)), 100)
    const second = await refused(server)
    await until(() => server.stats().connections === 1, 'the end of the second')
    clearInterval(drip)
    for (const { socket } of [first, second]) socket.destroy()
    await closedWithin(server, WAIT_MS_MAX)
    await server.close({ timeoutMs: 0 })
  })
}

/** A connection whose upload has just been refused. */
async function refused({ port }: HttpServer): Promise<{ socket: Socket; response: string }> {
  const socket = await connect(port)
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\nabc`)
  let response = ''
  socket.setEncoding('latin1').on('data', (part: string) => (response += part))
  await once(socket, 'end')
  return { socket, response }
}

async function closedWithin(server: HttpServer, ms: number): Promise<void> {
  const late = Date.now() + ms
  while (server.stats().connections > 0) {
    assert.ok(Date.now() < late, 'the connection stays')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('stopping does not wait for the rest of a head', { timeout: 2 * WAIT_MS_MAX }, async () => {
  const server = await start('native', { bodyBytesMax: 0, headersMs: 300_000 })
  const half = await connect(server.port)
  half.write('GET / HTTP/1.1\r\nHost:')
  await until(() => server.stats().bytesIn > 0, 'half a head')
  const ended = once(half.resume(), 'end')
  const late = setTimeout(() => half.end(), 40_000) // fails below, rather than hangs
  const from = performance.now()
  await server.close({ timeoutMs: 50_000 })
  assert.ok(performance.now() - from < 30_000, 'the server waited for a client that has sent half a head')
  await ended
  clearTimeout(late)
  half.destroy()
})
