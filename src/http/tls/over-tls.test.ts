/**
 * What servers send over TLS beside whole bodies: files, streams, WebSockets, hints and trailers, to readers
 * that are slow.
 *
 * The rules of each are tested without TLS; here their bytes have to arrive, all of them and in order.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after } from 'node:test'
import { settled, until } from '../../base/wait.test.support.ts'
import { onCores } from '../cores.test.support.ts'
import { writeEarlyHints, withTrailers } from '../index.ts'
import { files } from '../middleware/files.ts'
import { frame, LINES } from '../websocket/client.test.support.ts'
import { AUTHORITY, connect, PATIENT, request, SERVER } from './client.test.support.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-tls-files-'))
after(() => rmSync(folder, { recursive: true }))
/** More than sockets hold. */
const LARGE = Buffer.from(Uint8Array.from({ length: 6_000_000 }, (_, at) => at * 7 + at / 251))
writeFileSync(join(folder, 'large.bin'), LARGE)
writeFileSync(join(folder, 'small.txt'), 'small')

async function* pieces(): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < LARGE.length; at += 50_000) yield LARGE.subarray(at, at + 50_000)
}

onCores('files arrive whole, also at a client that does not read at first', async (start) => {
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/*': files(folder) } })
  assert.equal((await request(server.port, '/small.txt')).body, 'small')
  assert.equal((await request(server.port, '/large.bin')).body, LARGE.toString('latin1'))
  const { status, body } = await request(server.port, '/large.bin', { headers: { range: 'bytes=5-9' } })
  assert.deepEqual([status, body], [206, LARGE.toString('latin1', 5, 10)])
  const socket = await connect(server.port)
  socket.pause().write('GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  await until(() => server.stats().requests === 4)
  const read: Buffer[] = []
  for await (const piece of socket as AsyncIterable<Buffer>) read.push(piece)
  const all = Buffer.concat(read)
  assert.ok(all.subarray(all.indexOf('\r\n\r\n') + 4).equals(LARGE))
})

onCores('a stream arrives whole', async (start) => {
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': pieces } })
  assert.equal((await request(server.port)).body, LARGE.toString('latin1'))
})

onCores('WebSockets are served over TLS', async (start) => {
  let url = ''
  const server = await start({
    limits: PATIENT,
    tls: SERVER,
    routes: {
      '/live': {
        websocket: {
          upgrade: (asked) => ({ data: (url = asked.url) }),
          message: (socket, message) => void socket.send(message),
        },
      },
    },
  })
  const socket = await connect(server.port)
  let received = Buffer.alloc(0)
  socket.on('data', (piece: Buffer) => (received = Buffer.concat([received, piece])))
  const large = 'x'.repeat(100_000)
  socket.write(`GET /live HTTP/1.1\r\n${LINES.join('\r\n')}\r\n\r\n`)
  socket.write(frame(0x81, 'Hello'))
  socket.write(frame(0x81, large))
  await until(() => received.length > large.length && received.toString('latin1').endsWith(large))
  const text = received.toString('latin1')
  assert.match(text, /^HTTP\/1\.1 101 /)
  assert.ok(text.includes('\x81\x05Hello'))
  assert.equal(url, 'https://localhost/live')
  socket.destroy()
})

onCores('hints come before a response, and trailers go both ways', async (start) => {
  const server = await start({
    limits: PATIENT,
    tls: SERVER,
    routes: {
      '/': async (asked) => {
        writeEarlyHints(asked, { link: '</a.css>; rel=preload' })
        const body = await asked.text()
        const sum = (await asked.trailers).get('x-sum')
        const pieces = Readable.toWeb(Readable.from([Buffer.from(`${body} ${sum}`)])) as ReadableStream
        return withTrailers(new Response(pieces), { 'x-length': () => '3' })
      },
    },
  })
  const sent = https.request({
    host: '127.0.0.1',
    port: server.port,
    method: 'POST',
    servername: 'localhost',
    ca: AUTHORITY.cert,
    agent: false,
    headers: { trailer: 'x-sum', te: 'trailers' },
  })
  sent.addTrailers({ 'x-sum': '7' })
  const hinted = once(sent, 'information')
  const responded = once(sent, 'response')
  sent.end('abc')
  const [{ statusCode, headers }] = (await settled(hinted, 'hints')) as [
    { statusCode: number; headers: Record<string, string> },
  ]
  assert.deepEqual([statusCode, headers['link']], [103, '</a.css>; rel=preload'])
  const [response] = (await settled(responded, 'a response')) as [IncomingMessage]
  let body = ''
  for await (const piece of response as AsyncIterable<Buffer>) body += piece.toString()
  assert.deepEqual([body, response.trailers], ['abc 7', { 'x-length': '3' }])
})
