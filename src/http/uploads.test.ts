/**
 * Uploads that the native core or its app refuses: the client gets the response, whether it reads while it
 * sends or only behind that.
 *
 * A connection that closes with bytes unread is reset, and a reset may overtake what was sent before it.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { until, WAIT_MS_MAX } from '../base/wait.test.support.ts'
import { connect, readResponses } from './raw.test.support.ts'
import type { HttpServer } from './server.ts'
import { serve } from './serve.ts'

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

function start(bodyBytesMax = 1_000_000, headersMs = 10_000): Promise<HttpServer> {
  const refuses = (): Response => new Response('who are you?', { status: 401 })
  const limits = { bodyBytesMax, headersMs }
  const routes = { '/': async (request: Request): Promise<string> => `${(await request.text()).length}` }
  return serve({
    quiet: true,
    core: 'native',
    globals: false,
    host: '127.0.0.1',
    port: 0,
    limits,
    error: () => undefined,
    routes,
    fetch: refuses,
  })
}

for (const [client, upload] of Object.entries(CLIENTS)) {
  test(`a client ${client} sees why its upload is refused`, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const server = await start()
    const asking = await start(2 * UPLOAD_BYTES)
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

test(
  'a client that stops sending behind a refusal is not read for long',
  { timeout: 2 * WAIT_MS_MAX },
  async () => {
    const server = await start()
    const socket = await connect(server.port)
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\nabc`)
    let text = ''
    socket.setEncoding('latin1').on('data', (part: string) => (text += part))
    await once(socket, 'end')
    assert.match(text, /^HTTP\/1\.1 413 /)
    const late = Date.now() + 25_000 // the default of lingerMs is more
    while (server.stats().connections > 0) {
      assert.ok(Date.now() < late, 'the connection stays although its client is silent')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    socket.destroy()
    await server.close({ timeoutMs: 0 })
  },
)

test('stopping does not wait for the rest of a head', { timeout: 2 * WAIT_MS_MAX }, async () => {
  const server = await start(0, 300_000)
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
