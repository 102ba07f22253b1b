/**
 * Request bodies in codings on both cores: what arrives, what is refused, and that a small body that becomes
 * a large one costs nothing.
 *
 * A gigabyte of zeros is a thousand members of gzip, each of them a megabyte, so the test need not make it.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import zlib from 'node:zlib'
import type { HttpRequest } from '../app/routes.ts'
import { onCores, type Start } from '../cores.test.support.ts'
import { bodyLimit } from '../app/body-limit.ts'
import { readForm } from '../middleware/form.ts'
import { use } from '../app/middleware.ts'
import { createApp } from '../server.ts'
import { decompressors } from './codings.ts'
import { decompress, type DecompressOptions } from './decompress.ts'

const TEXT = 'Text that repeats itself. '.repeat(200)
const CODERS: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  gzip: zlib.gzipSync,
  'x-gzip': zlib.gzipSync,
  GZip: zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
  ...(decompressors().has('zstd') ? { zstd: zlib.zstdCompressSync } : {}),
}

interface Sent {
  readonly coding?: string
  readonly type?: string
  /** Sent in chunks, without a length. */
  readonly isChunked?: boolean
}

async function post(
  url: string,
  body: Uint8Array,
  { coding, type, isChunked }: Sent,
): Promise<[number, string, http.IncomingHttpHeaders]> {
  const headers = {
    ...(coding === undefined ? {} : { 'content-encoding': coding }),
    ...(type === undefined ? {} : { 'content-type': type }),
    ...(isChunked === true ? { 'transfer-encoding': 'chunked' } : { 'content-length': body.byteLength }),
  }
  const request = http.request(url, { method: 'POST', agent: false, headers }).end(body)
  request.on('error', () => {}) // the rest of a refused body may not be taken
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let text = ''
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) text += piece
  return [response.statusCode!, text, response.headers]
}

function served(
  start: Start,
  options: DecompressOptions = {},
  bodyBytesMax = 16 * 2 ** 20,
): Promise<{ url: string }> {
  const handlers = {
    '/text': (request: HttpRequest) => request.text(),
    '/json': async (request: HttpRequest) => (await request.json()) as object,
    '/form': async (request: HttpRequest) => (await readForm(request)).fields,
    '/blob': async (request: HttpRequest) => (await request.blob()).text(),
    '/clone': (request: HttpRequest) => request.clone().text(),
    '/stream': (request: HttpRequest) => request.body ?? 'null',
    '/count': async (request: HttpRequest) => {
      let bytes = 0
      for await (const piece of request.body as AsyncIterable<Uint8Array>) bytes += piece.byteLength
      return String(bytes)
    },
    '/headers': (request: HttpRequest) => [...request.headers.keys()],
    '/unread': () => 'unread',
  }
  const routes = Object.fromEntries(Object.entries(handlers).map(([path, POST]) => [path, { POST }]))
  return start({ routes: use(routes, decompress(options)), limits: { bodyBytesMax } })
}

onCores('a body is read as it was before it was encoded, by every method', async (start) => {
  const { url } = await served(start)
  for (const [coding, encode] of Object.entries(CODERS)) {
    for (const isChunked of [false, true]) {
      for (const path of ['/text', '/blob', '/clone', '/stream'])
        assert.deepEqual(
          (await post(url + path, encode(Buffer.from(TEXT)), { coding, isChunked })).slice(0, 2),
          [200, TEXT],
          path,
        )
    }
    const json = encode(Buffer.from('{"a":1}'))
    assert.equal((await post(`${url}/json`, json, { coding }))[1], '{"a":1}')
    const type = 'application/x-www-form-urlencoded'
    assert.equal((await post(`${url}/form`, encode(Buffer.from('a=1')), { coding, type }))[1], '{"a":"1"}')
    const names = JSON.parse((await post(`${url}/headers`, json, { coding }))[1]) as string[]
    assert.ok(!names.includes('content-encoding') && !names.includes('content-length'), names.join())
  }
  assert.equal((await post(`${url}/text`, Buffer.from(TEXT), {}))[1], TEXT)
  assert.equal((await post(`${url}/text`, Buffer.from(TEXT), { coding: 'identity' }))[1], TEXT)
  assert.equal((await post(`${url}/text`, Buffer.alloc(0), { coding: 'gzip' }))[1], '')
  assert.equal((await post(`${url}/unread`, zlib.gzipSync(TEXT), { coding: 'gzip' }))[1], 'unread')
})

onCores('codings that are not known get 415 and those that are', async (start) => {
  const { url } = await served(start)
  for (const coding of ['compress', 'gzip, br', 'aes128gcm', 'gzip;q=1', 'x'.repeat(999)]) {
    const [status, text, headers] = await post(`${url}/text`, Buffer.from('x'), { coding })
    assert.equal(status, 415)
    assert.equal((JSON.parse(text) as { error: { code: string } }).error.code, 'CODING_UNSUPPORTED')
    assert.match(headers['accept-encoding'] as string, /^gzip, deflate, br(, zstd)?$/)
  }
})

onCores('bodies that are cut off, broken or longer than what they encode get 400', async (start) => {
  const { url } = await served(start)
  const random = Buffer.from(Array.from({ length: 200 }, () => Math.random()).join(''))
  for (const [coding, encode] of Object.entries(CODERS)) {
    const whole = encode(random)
    const broken: Record<string, Uint8Array> = {
      'without its end': whole.subarray(0, whole.length - 2),
      'without its second half': whole.subarray(0, whole.length >> 1),
      'of one byte': whole.subarray(0, 1),
      'that is plain text': Buffer.from('{"a":1}'),
      'with more behind it': Buffer.concat([whole, Buffer.from('xyz')]),
      'with a wrong byte': whole.map((byte, at) => (at === 1 || at === 8 ? byte ^ 0xff : byte)),
    }
    for (const [what, body] of Object.entries(broken)) {
      for (const isChunked of [false, true]) {
        const [status, text] = await post(`${url}/text`, body, { coding, isChunked })
        assert.equal(status, 400, `${coding} ${what}: ${text.slice(0, 100)}`)
        assert.equal((JSON.parse(text) as { error: { code: string } }).error.code, 'CODING_MALFORMED')
      }
    }
  }
  const twice = Buffer.concat([zlib.gzipSync('one '), zlib.gzipSync('two')])
  assert.deepEqual((await post(`${url}/text`, twice, { coding: 'gzip' })).slice(0, 2), [200, 'one two'])
  assert.equal((await post(`${url}/json`, zlib.gzipSync('{'), { coding: 'gzip' }))[0], 400)
})

onCores('a gigabyte of zeros is refused, and memory does not grow', async (start) => {
  const { url } = await served(start)
  const member = zlib.gzipSync(Buffer.alloc(2 ** 20))
  const giga = Buffer.concat(Array.from({ length: 1000 }, () => member))
  assert.ok(giga.byteLength < 2 ** 21)
  for (const path of ['/text', '/count', '/clone']) {
    const before = process.memoryUsage()
    const [status, text] = await post(url + path, giga, { coding: 'gzip' })
    const after = process.memoryUsage()
    assert.equal(status, 413, text)
    assert.match(text, /BODY_TOO_LARGE.*more than 100 times/)
    const grown = after.arrayBuffers + after.external - before.arrayBuffers - before.external
    // A fifth of what it would be, and far more than what waits to be collected.
    assert.ok(grown < 200 * 2 ** 20, `${path}: ${grown} bytes`)
  }
})

onCores('the limits are those of decoded bytes and of the ratio', async (start) => {
  const zeros = (bytes: number): Buffer => zlib.gzipSync(Buffer.alloc(bytes))
  const send = async (options: DecompressOptions, bytes: number): Promise<[number, string]> => {
    const { url } = await served(start, options)
    const [status, text] = await post(`${url}/count`, zeros(bytes), { coding: 'gzip' })
    return [status, text]
  }
  assert.deepEqual(await send({}, 2 ** 20), [200, `${2 ** 20}`])
  assert.equal((await send({}, 2 ** 20 + 1))[0], 413)
  assert.deepEqual(await send({ ratioMax: 2000 }, 2 ** 21), [200, `${2 ** 21}`])
  assert.equal((await send({ ratioMax: 2000, bodyBytesMax: 2 ** 21 - 1 }, 2 ** 21))[0], 413)
  assert.equal((await send({ bodyBytesMax: 0 }, 1))[0], 413)
})

onCores('the limit of a route inside counts decoded bytes', async (start) => {
  const routes = use({ '/': { POST: (request) => request.text() } }, decompress(), bodyLimit(100))
  const { url } = await start({ routes })
  assert.deepEqual((await post(url, zlib.gzipSync('x'.repeat(100)), { coding: 'gzip' })).slice(0, 2), [
    200,
    'x'.repeat(100),
  ])
  assert.equal((await post(url, zlib.gzipSync('x'.repeat(101)), { coding: 'gzip' }))[0], 413)
})

onCores('a client that leaves in the middle of a body ends the reading', async (start) => {
  const errors: unknown[] = []
  let begun = (): void => {}
  const hasBegun = new Promise<void>((resolve) => (begun = resolve))
  let ended = (): void => {}
  const hasEnded = new Promise<void>((resolve) => (ended = resolve))
  const routes = {
    '/': {
      POST: async (request: HttpRequest) => {
        begun()
        await request.text().catch((error: unknown) => errors.push(error))
        ended()
        return 'x'
      },
    },
  }
  const { url } = await start({ routes: use(routes, decompress()) })
  const whole = zlib.gzipSync(TEXT)
  const headers = { 'content-encoding': 'gzip', 'content-length': whole.byteLength }
  const request = http.request(url, { method: 'POST', agent: false, headers })
  request.on('error', () => {})
  request.write(whole.subarray(0, 20))
  await hasBegun
  request.destroy()
  await hasEnded
  assert.equal(errors.length, 1)
  assert.equal((errors[0] as { code: string }).code, 'HTTP_CLIENT_DISCONNECTED')
})

test('a gigabyte of zeros is refused without a socket, too', async () => {
  const member = zlib.gzipSync(Buffer.alloc(2 ** 20))
  const body = Buffer.concat(Array.from({ length: 1000 }, () => member))
  const app = createApp({ routes: use({ '/': { POST: (request) => request.text() } }, decompress()) })
  const response = await app.inject('/', { method: 'POST', body, headers: { 'content-encoding': 'gzip' } })
  // The body is one piece here, so the ratio is that of all of it.
  assert.deepEqual([response.status, /longer than 16777216 bytes/.test(await response.text())], [413, true])
})

test('a body of which only the beginning is read is decoded no further', async () => {
  const first = async (request: Request): Promise<string> => {
    const reader = request.body!.getReader()
    const { value } = await reader.read()
    await reader.cancel()
    return `${value!.byteLength > 0}`
  }
  const app = createApp({ routes: use({ '/': { POST: first } }, decompress()) })
  const body = zlib.gzipSync(Buffer.alloc(2 ** 20))
  const response = await app.inject('/', { method: 'POST', body, headers: { 'content-encoding': 'gzip' } })
  assert.deepEqual([response.status, await response.text()], [200, 'true'])
})

test('options are checked', () => {
  for (const options of [{ ratioMax: 0 }, { bodyBytesMax: -1 }, { ratio: 1 }])
    assert.throws(() => decompress(options), { code: 'HTTP_ARGUMENT' })
})
