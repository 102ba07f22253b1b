/**
 * 103 Early Hints, and responses after which the connection closes, on both cores.
 *
 * Read as they are on the wire: most clients hide what comes before a response.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as requestOf } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createApp, files, writeEarlyHints } from '../index.ts'
import { onCores, onServer } from '../cores.test.support.ts'
import { connect, converse } from '../raw.test.support.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const LINK = '</app.css>; rel=preload; as=style; title="a b"'

onCores('a handler sends hints before its response, and none after', async (start) => {
  const sent: boolean[] = []
  let ask = (): void => undefined
  const asked = new Promise<void>((resolve) => (ask = resolve))
  const { port } = await start({
    fetch: async (request) => {
      sent.push(
        writeEarlyHints(request, [
          ['link', LINK],
          ['Link', '</b>'],
          ['X-A', '\u00e4'],
          ['date', 'never'],
        ]),
      )
      sent.push(writeEarlyHints(request, { 'content-type': 'text/html;charset=UTF-8' }))
      await asked
      const pieces = ['a', 'b', 'c']
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
        const piece = pieces.shift()
        // The head of a stream is sent when its first piece is there and the second was asked for.
        if (piece === 'c') sent.push(writeEarlyHints(request, { link: '</late>' }))
        if (piece === undefined) controller.close()
        else controller.enqueue(Buffer.from(piece))
      }
      const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 })
      return new Response(body)
    },
  })
  const socket = await connect(port)
  let text = ''
  socket
    .setEncoding('latin1')
    .on('data', (piece: string) => (text += piece))
    .write(GET)
  const first = `HTTP/1.1 103 Early Hints\r\nlink: ${LINK}\r\nlink: </b>\r\nx-a: \u00e4\r\n\r\n`
  const second = 'HTTP/1.1 103 Early Hints\r\ncontent-type: text/html;charset=UTF-8\r\n\r\n'
  while (text.length < first.length + second.length) await once(socket, 'data')
  assert.equal(text, first + second)
  ask()
  while (!text.endsWith('0\r\n\r\n')) await once(socket, 'data')
  socket.destroy()
  assert.ok(text.startsWith(`${first}${second}HTTP/1.1 200 OK\r\n`), text)
  assert.equal(text.split('HTTP/1.1 ').length, 4)
  assert.deepEqual(sent, [true, true, false])
})

onCores('hints of a pipeline are sent in the order of its requests', async (start) => {
  const { port } = await start({
    routes: {
      '/a': async (request) => {
        await new Promise(setImmediate)
        writeEarlyHints(request, { link: '<a>' })
        await new Promise(setImmediate)
        return 'A'
      },
      '/b': (request) => (writeEarlyHints(request, { link: '<b>' }), 'B'),
    },
  })
  const both = GET.replace('/', '/a') + GET.replace('/', '/b')
  const { responses } = await converse(port, [both], { responses: 4 })
  const seen = responses.map(({ status, headers, body }) => `${status} ${headers.link ?? body}`)
  assert.deepEqual(seen, ['103 <a>', '200 A', '103 <b>', '200 B'])
})

onCores("Node's client receives the hints", async (start) => {
  const { url } = await start({
    fetch: (request) => (writeEarlyHints(request, { link: LINK }), new Response('a')),
  })
  const client = requestOf(url).end()
  const informed = once(client, 'information') as Promise<
    [{ statusCode: number; headers: { link?: string } }]
  >
  const responded = once(client, 'response') as Promise<[NodeJS.ReadableStream & { statusCode: number }]>
  const [{ statusCode, headers }] = await informed
  assert.deepEqual([statusCode, headers.link], [103, LINK])
  const [response] = await responded
  assert.equal(response.statusCode, 200)
  response.resume()
  await once(response, 'end')
})

onCores('clients of HTTP/1.0 get no hints', async (start) => {
  const sent: boolean[] = []
  const { port } = await start({
    fetch: (request) => (sent.push(writeEarlyHints(request, { link: '<a>' })), new Response('a')),
  })
  const { responses } = await converse(port, ['GET / HTTP/1.0\r\n\r\n'], { responses: 1 })
  assert.deepEqual([responses.map(({ status }) => status), sent], [[200], [false]])
})

onCores('hints cannot bring in other lines, and need a header and a request', async (start) => {
  const errors: unknown[] = []
  let last: Request | undefined
  const given = [{ link: '<a>\r\nx: y' }, { 'x\r\n': 'a' }, { link: 'a\u0001' }, {}, { connection: 'close' }]
  const { port } = await start({
    fetch: (request) => {
      last = request
      for (const headers of given)
        try {
          writeEarlyHints(request, headers)
        } catch (error) {
          errors.push((error as { code?: string }).code ?? (error as Error).name)
        }
      return new Response('a')
    },
  })
  const { responses } = await converse(port, [GET], { responses: 1 })
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200],
  )
  assert.deepEqual(errors, ['TypeError', 'TypeError', 'HTTP_HEADER', 'HTTP_ARGUMENT', 'HTTP_ARGUMENT'])
  assert.throws(() => writeEarlyHints(last!, { link: '<a>' }), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => writeEarlyHints(new Request('http://a'), { link: '<a>' }), { code: 'HTTP_ARGUMENT' })
})

test('hints of injected requests are not sent', async () => {
  const app = createApp({
    fetch: (request) => new Response(String(writeEarlyHints(request, { link: '<a>' }))),
  })
  assert.equal(await (await app.inject('/')).text(), 'false')
})

onCores('a response with connection: close is the last of its connection', async (start, core, t) => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-last-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'a.txt'), 'abc')
  const last = { headers: { connection: 'X-A, Close' } }
  const serveFile = files(folder)
  const { port } = await start({
    routes: {
      '/constant': new Response('abc', last),
      '/whole': () => new Response('abc', last),
      '/empty': () => new Response(null, { ...last, status: 204 }),
      '/large': () => new Response('x'.repeat(300_000), last),
      '/later': async () => (await new Promise(setImmediate), Response.json('abc', last)),
      '/stream': () =>
        new Response(new Blob(['abc']).stream().pipeThrough(new CompressionStream('gzip')), last),
      '/file/*': async (request) => {
        const response = await serveFile(request)
        response.headers.set('connection', 'close')
        return response
      },
      '/persists': () => new Response('abc', { headers: { connection: 'keep-alive, closed' } }),
    },
  })
  for (const path of ['/constant', '/whole', '/empty', '/large', '/later', '/stream', '/file/a.txt']) {
    const get = GET.replace('/', path)
    const { responses, closed } = await converse(port, [get + get], { responses: 2 })
    assert.deepEqual([responses.length, closed], [1, true], path)
    assert.equal(responses[0].headers.connection?.toLowerCase(), 'close', path)
  }
  const persists = await converse(port, [GET.replace('/', '/persists').repeat(2)], { responses: 2 })
  assert.deepEqual([persists.responses.length, persists.closed], [2, false], core)
})

onCores('requests behind a last response are dropped with their bodies unread', async (start) => {
  let next: (() => void) | undefined
  const aborted = new Promise<void>((resolve) => (next = resolve))
  const { port } = await start({
    routes: {
      '/last': async (request) => new Response(await request.text(), { headers: { connection: 'close' } }),
      '/next': (request) => new Promise<never>(() => request.signal.addEventListener('abort', () => next!())),
    },
  })
  const post = 'POST /last HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc'
  const { responses, closed } = await converse(port, [post + GET.replace('/', '/next')], { responses: 2 })
  assert.deepEqual([responses.map(({ body }) => body), closed], [['abc'], true])
  await aborted
})

onServer('a client that still sends receives a last response', async (start) => {
  const { port } = await start({
    routes: { '/': { POST: () => new Response('no', { status: 401, headers: { connection: 'close' } }) } },
    limits: { bodyBytesMax: 2 ** 30 },
  })
  const socket = await connect(port)
  let text = ''
  const ended = once(
    socket.on('data', (piece: Buffer) => (text += piece.toString())),
    'end',
  )
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n')
  for (let left = 40; left > 0 && !socket.readableEnded; left -= 1)
    if (!socket.write(Buffer.alloc(100_000))) await Promise.race([once(socket, 'drain'), ended])
  socket.end()
  await ended
  socket.destroy()
  assert.ok(text.startsWith('HTTP/1.1 401 ') && text.endsWith('no'), text)
})
