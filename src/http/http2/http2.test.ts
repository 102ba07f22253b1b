/**
 * HTTP/2 by prior knowledge on the native core: what an app sees and sends is as over HTTP/1.1.
 *
 * The frames themselves are tested in crates/http and by h2spec.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { settled, until } from '../../base/wait.test.support.ts'
import { onServer } from '../cores.test.support.ts'
import { withTrailers, writeEarlyHints } from '../index.ts'
import { files } from '../middleware/files.ts'
import { connect, read, request } from './client.test.support.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-http2-'))
after(() => rmSync(folder, { recursive: true }))
const LARGE = Buffer.from(Uint8Array.from({ length: 3_000_000 }, (_, at) => at * 7 + at / 251))
writeFileSync(join(folder, 'large.bin'), LARGE)

onServer('requests and responses are those of HTTP/1.1', async (start) => {
  const server = await start({
    routes: {
      '/': () => 'text',
      '/constant': 'constant',
      '/json': () => ({ a: [1] }),
      '/none': () => new Response(null, { status: 204 }),
      '/cookies': () =>
        new Response('', {
          headers: [
            ['set-cookie', 'a=1'],
            ['set-cookie', 'b=2'],
          ],
        }),
      '/seen': (asked) => ({
        url: asked.url,
        host: asked.headers.get('host'),
        cookie: asked.headers.get('cookie'),
        ip: asked.ip,
      }),
      '/echo': async (asked) => new Response(await asked.text(), { headers: { 'Keep-Alive': 'timeout=5' } }),
      '/fail': () => {
        throw new Error('planned')
      },
    },
  })
  const session = connect(server.port)
  const get = async (path: string, headers = {}) => request(session, path, { headers })
  const text = await get('/')
  assert.deepEqual([text.status, text.body, text.headers['content-length']], [200, 'text', '4'])
  assert.equal(text.headers['content-type'], 'text/plain;charset=UTF-8')
  assert.equal((await get('/constant')).body, 'constant')
  assert.deepEqual(JSON.parse((await get('/json')).body), { a: [1] })
  const none = await get('/none')
  assert.deepEqual([none.status, none.body, none.headers['content-length']], [204, '', undefined])
  assert.deepEqual((await get('/cookies')).headers['set-cookie'], ['a=1', 'b=2'])
  assert.deepEqual(JSON.parse((await get('/seen?q', { cookie: ['a=1', 'b=2'] })).body), {
    url: `http://127.0.0.1:${server.port}/seen?q`,
    host: `127.0.0.1:${server.port}`,
    cookie: 'a=1; b=2',
    ip: '127.0.0.1',
  })
  const echoed = await request(session, '/echo', { body: 'a body' })
  assert.deepEqual([echoed.body, echoed.headers['keep-alive']], ['a body', undefined])
  const head = await get('/', { ':method': 'HEAD' })
  assert.deepEqual([head.status, head.headers['content-length'], head.body], [200, '4', ''])
  assert.equal((await get('/fail')).status, 500)
  assert.equal((await get('/missing')).status, 404)
  session.close()
})

onServer('HTTP/1.1 is served on the same port', async (start) => {
  const server = await start({ routes: { '/': () => 'text' } })
  const session = connect(server.port)
  assert.equal((await request(session, '/')).body, 'text')
  const response = await fetch(server.url, { headers: { connection: 'close' } })
  assert.equal(await response.text(), 'text')
  session.close()
})

onServer('bodies, files and streams of any size go both ways', async (start) => {
  const server = await start({
    limits: { bodyBytesMax: 10_000_000 },
    routes: {
      '/whole': () => new Response(LARGE),
      '/length': async (asked) => {
        let bytes = 0
        for await (const piece of asked.body!) bytes += piece.length
        return String(bytes)
      },
      '/back': (asked) => new Response(asked.body),
      '/made': async function* () {
        for (let at = 0; at < 5; at += 1) {
          await new Promise(setImmediate)
          yield `piece ${at}\n`
        }
      },
      '/*': files(folder),
    },
  })
  const session = connect(server.port)
  const expected = LARGE.toString('latin1')
  assert.ok((await request(session, '/whole')).body === expected)
  assert.ok((await request(session, '/large.bin')).body === expected)
  const part = await request(session, '/large.bin', { headers: { range: 'bytes=5-9' } })
  assert.deepEqual([part.status, part.body], [206, expected.slice(5, 10)])
  assert.equal((await request(session, '/length', { body: LARGE })).body, String(LARGE.length))
  assert.ok((await request(session, '/back', { body: LARGE })).body === expected)
  assert.equal((await request(session, '/made')).body.split('\n').length, 6)
  session.close()
})

onServer('streams of one connection do not wait for each other', async (start) => {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const server = await start({
    routes: {
      '/held': () => held.then(() => 'held'),
      '/': () => 'text',
      '/large': () => new Response(LARGE),
    },
  })
  const session = connect(server.port)
  const last = request(session, '/held')
  const others = Array.from({ length: 300 }, (_, at) => request(session, at % 10 === 0 ? '/large' : '/'))
  const lengths = (await Promise.all(others)).map(({ body }) => body.length)
  assert.deepEqual(new Set(lengths), new Set([LARGE.length, 4]))
  release()
  assert.equal((await last).body, 'held')
  session.close()
})

onServer('hints come before a response, and trailers go both ways', async (start) => {
  const server = await start({
    routes: {
      '/': async (asked) => {
        writeEarlyHints(asked, { link: '</a.css>; rel=preload' })
        const body = await asked.text()
        const sum = (await asked.trailers).get('x-sum')
        const out = new ReadableStream({
          start: (controller) => {
            controller.enqueue(Buffer.from(`${body} ${sum}`))
            controller.close()
          },
        })
        return withTrailers(new Response(out), { 'x-length': () => '3' })
      },
    },
  })
  const session = connect(server.port)
  const { body, hints, trailers } = await request(session, '/', {
    headers: { te: 'trailers' },
    body: 'abc',
    trailers: { 'x-sum': '7' },
  })
  assert.equal(body, 'abc 7')
  assert.deepEqual(
    hints.map((headers) => [headers[':status'], headers['link']]),
    [[103, '</a.css>; rel=preload']],
  )
  assert.equal(trailers['x-length'], '3')
  session.close()
})

onServer('a body is bounded, and a client that sends on is refused', async (start) => {
  const server = await start({
    limits: { bodyBytesMax: 100_000 },
    routes: { '/read': async (asked) => asked.text(), '/early': () => new Response('no', { status: 401 }) },
  })
  const session = connect(server.port)
  const large = { body: Buffer.alloc(200_000) }
  assert.equal((await request(session, '/read', large)).status, 413)
  const named = { ...large, headers: { 'content-length': '200000' } }
  assert.equal((await request(session, '/read', named)).status, 413)
  assert.equal((await request(session, '/early', { body: Buffer.alloc(50_000) })).status, 401)
  session.close()
})

onServer('a stream that is reset aborts its own request', async (start) => {
  const reasons: string[] = []
  const server = await start({
    routes: {
      '/never': ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push((signal.reason as Error).name)
            reject(signal.reason as Error)
          })
        }),
      '/': () => 'text',
    },
  })
  const session = connect(server.port)
  const stream = session.request({ ':path': '/never' })
  stream.on('error', () => {})
  await until(() => server.stats().requests === 1)
  stream.close(8) // CANCEL
  await until(() => reasons.length === 1)
  assert.equal((await request(session, '/')).body, 'text')
  const other = session.request({ ':path': '/never' })
  other.on('error', () => {})
  await until(() => server.stats().requests === 3)
  session.destroy()
  await until(() => reasons.length === 2)
  assert.deepEqual(reasons, ['AbortError', 'AbortError'])
  assert.equal(server.stats().errors, 0)
})

onServer('a server that stops finishes what is open and refuses the rest', async (start) => {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const server = await start({ routes: { '/held': () => held.then(() => 'held') } })
  const session = connect(server.port)
  const open = request(session, '/held')
  await until(() => server.stats().requests === 1)
  let leaves = false
  session.on('goaway', () => (leaves = true))
  const closed = server.close({ timeoutMs: 60_000 })
  await until(() => leaves)
  release()
  assert.equal((await open).body, 'held')
  await settled(closed, 'the end of the server')
})

onServer('a response that fails after its head resets its stream alone', async (start) => {
  const server = await start({
    routes: {
      '/fails': async function* () {
        yield 'begun'
        throw new Error('planned')
      },
      '/': () => 'text',
    },
  })
  const session = connect(server.port)
  await assert.rejects(read(session.request({ ':path': '/fails' })), /NGHTTP2_INTERNAL_ERROR|reset|aborted/i)
  assert.equal((await request(session, '/')).body, 'text')
  session.close()
})

onServer('a file that becomes shorter resets its stream alone, and is reported', async (start) => {
  const path = join(folder, 'shrinks.bin')
  writeFileSync(path, LARGE)
  const server = await start({ routes: { '/text': () => 'text', '/*': files(folder) } })
  const warned = once(process, 'warning') as Promise<[Error]>
  const session = connect(server.port)
  const stream = session.request({ ':path': '/shrinks.bin' })
  await settled(once(stream, 'response'), 'a response') // its window is smaller than the file
  truncateSync(path, 10)
  const ended = new Promise((resolve) => stream.on('error', () => {}).on('close', resolve))
  stream.resume()
  await settled(ended, 'the end of the stream')
  assert.equal(stream.rstCode, http2.constants.NGHTTP2_INTERNAL_ERROR)
  assert.match((await settled(warned, 'a warning'))[0].message, /became shorter/)
  assert.equal((await request(session, '/text')).body, 'text')
  session.close()
})

onServer('connection: close ends the connection after its streams', async (start) => {
  const server = await start({
    routes: { '/': () => new Response('last', { headers: { connection: 'close' } }) },
  })
  const session = connect(server.port)
  const ended = new Promise((resolve) => session.on('close', resolve))
  const { body, headers } = await request(session, '/')
  assert.deepEqual([body, headers['connection']], ['last', undefined])
  await settled(ended, 'the end of the connection')
})

onServer('a slow reader does not hold the others', async (start) => {
  const server = await start({ routes: { '/': () => new Response(LARGE), '/small': () => 'text' } })
  const session = connect(server.port)
  const slow = session.request({ ':path': '/' })
  await settled(once(slow, 'response'), 'the response')
  assert.equal((await request(session, '/small')).body, 'text')
  let bytes = 0
  for await (const piece of slow as AsyncIterable<Buffer>) bytes += piece.length
  assert.equal(bytes, LARGE.length)
  session.close()
})

onServer('keep-alive clients of HTTP/1.1 are served beside', async (start) => {
  const server = await start({ routes: { '/': () => 'text' } })
  const session = connect(server.port)
  const agent = new http.Agent({ keepAlive: true })
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal((await request(session, '/')).body, 'text')
    await new Promise((resolve) => {
      http.get({ port: server.port, agent }, (response) => response.resume().on('end', resolve))
    })
  }
  agent.destroy()
  session.close()
})
