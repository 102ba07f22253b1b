/**
 * What HttpArena checks of an entry before it is measured, of ours: bodies, types, and that nothing was made
 * in advance.
 *
 * Those of databases, gRPC and HTTP/3 do not apply. Over TLS the same routes are asked, with a certificate of
 * the test. Its server is that of the bench's own link, which run.mjs makes.
 */
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { brotliCompressSync } from 'node:zlib'
import { developmentTls, type HttpServer, serve } from 'corespun/http'
import { routes as hello } from '../arena/hello.ts'
import { arenaRoutes } from '../arena/routes.ts'
import { DATASET, itemsOf } from '../contenders/arena/dataset.ts'

const folder = mkdtempSync(join(tmpdir(), 'arena-'))
const FILES: Readonly<Record<string, string>> = {
  'reset.css': 'body { margin: 0 }\n'.repeat(200),
  'app.js': 'export const a = 1\n'.repeat(300),
  'manifest.json': '{"name":"arena"}',
  'logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
}
let server: HttpServer

before(async () => {
  mkdirSync(join(folder, 'static'))
  writeFileSync(join(folder, 'dataset.json'), JSON.stringify(DATASET))
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, 'static', name), content)
  writeFileSync(join(folder, 'static', 'app.js.br'), brotliCompressSync(FILES['app.js']))
  server = await serve(settings())
})
after(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

function settings(): Parameters<typeof serve>[0] {
  const limits = { bodyBytesMax: 64 * 2 ** 20 }
  return { routes: arenaRoutes(folder) as never, host: '127.0.0.1', port: 0, quiet: true, limits }
}

function get(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(server.url + path, init)
}

async function isText(response: Response, expected: string): Promise<void> {
  assert.equal(await response.text(), expected)
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain/)
}

/** Whether it is what the dataset has, with totals by this factor. */
function isItems(body: string, count: number, factor: number): void {
  assert.deepEqual(JSON.parse(body), itemsOf(count, factor))
}

/** What is responded to pieces that are sent one by one. */
async function sentInPieces(pieces: readonly string[]): Promise<string> {
  const socket = net.connect(server.port, '127.0.0.1').setNoDelay(true)
  for (const piece of pieces) {
    socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return text(socket)
}

test('baseline: the numbers of a query and a body are added', async () => {
  const [a, b, body] = [randomInt(1000), randomInt(1000), randomInt(1000)]
  const path = `/baseline11?a=${a}&b=${b}`
  await isText(await get(path), `${a + b}`)
  await isText(await get(path.replace('11', '2')), `${a + b}`)
  const headers = { 'content-type': 'text/plain' }
  await isText(await get(path, { method: 'POST', headers, body: `${body}` }), `${a + b + body}`)
  const chunked = { body: new Blob([`${body}`]).stream(), duplex: 'half' } as RequestInit
  await isText(await get(path, { method: 'POST', headers, ...chunked }), `${a + b + body}`)
})

test('baseline: a request may arrive in any pieces', async () => {
  const head = 'host: a\r\nconnection: close\r\n'
  const post = `POST /baseline11?a=13&b=42 HTTP/1.1\r\n${head}content-length: 2\r\n\r\n`
  const requests: readonly (readonly [readonly string[], number])[] = [
    [['GET /baseli', 'ne11?a=13&b=42 HTTP/1.1\r\n', `${head}\r\n`], 55],
    [['GET /baseline11?a=13&b=42 HTTP/1.1\r\n', 'host: a\r\n', 'connection: close\r\n\r\n'], 55],
    [[post, '20'], 75],
    [[post, '2', '0'], 75],
  ]
  for (const [pieces, sum] of requests)
    assert.match(await sentInPieces(pieces), new RegExp(`^HTTP/1.1 200 OK[^]*\r\n\r\n${sum}$`))
})

test('pipelined: sixteen requests in one write', async () => {
  await isText(await get('/pipeline'), 'ok')
  const one = (last: boolean): string =>
    `GET /pipeline HTTP/1.1\r\nhost: a\r\n${last ? 'connection: close\r\n' : ''}\r\n`
  const responses = await sentInPieces([one(false).repeat(15) + one(true)])
  assert.equal(responses.match(/\r\n\r\nok/g)?.length, 16)
})

test('json: so many items, with totals by the factor', async () => {
  for (const [count, factor] of [
    [12, 3],
    [22, 7],
    [50, 5],
    [0, 1],
  ]) {
    const response = await get(`/json/${count}?m=${factor}`, { headers: { 'accept-encoding': 'identity' } })
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
    assert.equal(response.headers.get('content-encoding'), null)
    isItems(await response.text(), count, factor)
  }
})

test('json-comp: compressed for who accepts it', async () => {
  for (const coding of ['br', 'gzip']) {
    const response = await get('/json/40?m=7', { headers: { 'accept-encoding': coding } })
    assert.equal(response.headers.get('content-encoding'), coding)
    isItems(await response.text(), 40, 7)
  }
})

test('upload: the bytes of any body are counted', async () => {
  for (const size of [17, 512_000, 20 * 2 ** 20]) {
    const body = randomBytes(size)
    const headers = { 'content-type': 'application/octet-stream' }
    await isText(await get('/upload', { method: 'POST', headers, body }), `${size}`)
  }
})

test('8gbit: a body returns as it is', async () => {
  const body = randomBytes(102_400)
  const response = await get('/echo', { method: 'POST', body })
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), body)
})

test('static: files with their types, as they are on the disk now', async () => {
  const types = [/^text\/css/, /^(text|application)\/javascript/, /^application\/json/, /^image\/svg\+xml/]
  for (const [at, [name, content]] of Object.entries(FILES).entries())
    for (const coding of ['identity', 'br, gzip']) {
      const response = await get(`/static/${name}`, { headers: { 'accept-encoding': coding } })
      assert.match(response.headers.get('content-type') ?? '', types[at])
      assert.equal(await response.text(), content)
      const isCompressed = name === 'app.js' && coding !== 'identity'
      assert.equal(response.headers.get('content-encoding'), isCompressed ? 'br' : null)
    }
  assert.equal((await get('/static/nonexistent.txt')).status, 404)
  const path = join(folder, 'static', 'reset.css')
  const changed = `${readFileSync(path, 'utf8')}/* changed */`
  writeFileSync(path, changed)
  assert.equal(await (await get('/static/reset.css')).text(), changed)
})

test('echo-ws: messages return as they are', { skip: typeof WebSocket !== 'function' }, async () => {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`)
  socket.binaryType = 'arraybuffer'
  await once(socket, 'open')
  for (const message of ['hello', 'x'.repeat(70_000), randomBytes(1000)]) {
    socket.send(message)
    const [{ data }] = (await once(socket, 'message')) as [{ readonly data: string | ArrayBuffer }]
    if (typeof data === 'string') assert.equal(data, message)
    else assert.deepEqual(Buffer.from(data), message)
  }
  socket.close()
  await once(socket, 'close')
})

test('json-tls and baseline-h2: the same over TLS, by the protocol that is offered', async () => {
  const tls = await developmentTls()
  const [only1, both] = await Promise.all([
    serve({ ...settings(), tls: { ...tls, alpn: ['http/1.1'] } }),
    serve({ ...settings(), tls }),
  ])
  try {
    const sent = https.get(`${only1.url}/json/7?m=2`, { ca: tls.cert, agent: false })
    const [response] = await once(sent, 'response')
    assert.equal(response.httpVersion, '1.1')
    isItems(await text(response), 7, 2)
    const session = http2.connect(both.url, { ca: tls.cert })
    const stream = session.request({ ':path': '/baseline2?a=13&b=42' })
    assert.equal(await text(stream), '55')
    assert.equal(session.alpnProtocol, 'h2')
    session.close()
  } finally {
    await Promise.all([only1.close(), both.close()])
  }
})

test('the entry for fastify/benchmarks', async () => {
  const other = await serve({ routes: hello, host: '127.0.0.1', port: 0, quiet: true })
  const response = await fetch(other.url)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(await response.text(), '{"hello":"world"}')
  await other.close()
})
