/**
 * Trailers of requests and of responses, on both cores.
 *
 * Responses are read as they are on the wire, since `fetch` has no trailers.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { gunzipSync } from 'node:zlib'
import { test } from 'node:test'
import { createApp, compress, type HttpRequest, type Routes, use, withTrailers } from '../index.ts'
import { onCores } from '../cores.test.support.ts'
import { connect } from '../raw.test.support.ts'

/** All bytes, as Latin-1, that a server sends until it closes; pieces are sent when bytes were received. */
async function sent(port: number, ...pieces: string[]): Promise<string> {
  const socket = await connect(port)
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  const ended = once(socket, 'end')
  for (const [at, piece] of pieces.entries()) {
    if (at > 0 && text === '') await once(socket, 'data')
    socket.write(piece, 'latin1')
  }
  await ended
  socket.destroy()
  return text
}

function request(path: string, lines: string[], body = ''): string {
  return ['POST', path, 'HTTP/1.1\r\nHost: a\r\n'].join(' ') + [...lines, '', body].join('\r\n')
}

const CHUNKED = 'Transfer-Encoding: chunked'
const CLOSE = 'Connection: close'
const entries = (request: HttpRequest): [string, string][] => [...request.trailers]

const readers: Routes = {
  '/text': async (request) => {
    const before = entries(request)
    return { text: await request.text(), before: before.length === 0, after: entries(request) }
  },
  '/stream': async (request) => {
    let text = ''
    for await (const piece of request.body ?? []) text += Buffer.from(piece).toString()
    return { text, after: entries(request) }
  },
  '/unread': (request) => entries(request).length,
  '/late': async (request) => {
    await request.text()
    setImmediate(() => late(entries(request)))
    return 'sent'
  },
  '/headers': async (request) => {
    await request.text()
    return { length: request.headers.get('content-length'), x: request.headers.get('x-a') }
  },
}
let late = (_found: unknown): void => undefined

const bodyOf = (text: string): unknown => JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as unknown

onCores('trailers of a request are read behind its body', async (start) => {
  const { port } = await start({ routes: readers })
  const body = '3\r\nabc\r\n0\r\nX-A: 1\r\nX-B:\t2 \r\nx-a: \u00e4\r\n\r\n'
  const after = [
    ['x-a', '1, \u00e4'],
    ['x-b', '2'],
  ]
  for (const path of ['/text', '/stream']) {
    const found = bodyOf(await sent(port, request(path, [CHUNKED, CLOSE], body))) as {
      text: string
      after: unknown
    }
    const decoded = Buffer.from(JSON.stringify(found.after), 'latin1').toString()
    assert.deepEqual([found.text, JSON.parse(decoded)], ['abc', after])
  }
})

onCores('trailers of a body that comes later are empty before its end', async (start) => {
  const { port } = await start({ routes: readers })
  const head = request('/text', [CHUNKED, CLOSE, 'Expect: 100-continue'])
  const text = await sent(port, head, '3\r\nabc\r\n0\r\nX-A: 1\r\n\r\n')
  assert.ok(text.startsWith('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n'), text)
  const found = bodyOf(text.slice('HTTP/1.1 100 Continue\r\n\r\n'.length))
  assert.deepEqual(found, { text: 'abc', before: true, after: [['x-a', '1']] })
})

onCores('each request of a pipeline has its own trailers', async (start) => {
  const { port } = await start({ routes: readers })
  const one = request('/text', [CHUNKED], '1\r\na\r\n0\r\nX-A: 1\r\n\r\n')
  const none = request('/text', [CHUNKED], '1\r\nb\r\n0\r\n\r\n')
  const last = request('/text', [CHUNKED, CLOSE], '1\r\nc\r\n0\r\nX-A: 3\r\n\r\n')
  const text = await sent(port, one + none + last)
  const found = [...text.matchAll(/"text":"(.)".*?"after":(\[.*?\])\}/g)].map(
    ([, name, after]) => name + after,
  )
  assert.deepEqual(found, ['a[["x-a","1"]]', 'b[]', 'c[["x-a","3"]]'])
})

onCores('trailers never become headers, and some names are dropped', async (start, core) => {
  const { port } = await start({ routes: readers })
  // Node's parser refuses a second framing even there.
  const framing = core === 'native' ? 'Content-Length: 5\r\nTransfer-Encoding: gzip\r\n' : ''
  const body = `0\r\n${framing}X-A: 1\r\nHost: b\r\nAuthorization: c\r\n\r\n`
  assert.match(await sent(port, request('/headers', [CHUNKED, CLOSE], body)), /\{"length":null,"x":null\}$/)
  assert.match(await sent(port, request('/text', [CHUNKED, CLOSE], body)), /"after":\[\["x-a","1"\]\]\}$/)
})

onCores('trailers are empty without any, and are read after the response if the body was', async (start) => {
  const found = new Promise((resolve) => (late = resolve))
  const { port } = await start({ routes: readers })
  assert.match(await sent(port, request('/unread', ['Content-Length: 1', CLOSE], 'a')), /\r\n\r\n0$/)
  await sent(port, request('/late', [CHUNKED, CLOSE], '0\r\nX-A: 1\r\n\r\n'))
  assert.deepEqual(await found, [['x-a', '1']])
})

onCores('too many trailers are refused with 431', async (start) => {
  const { port } = await start({ routes: readers, limits: { headerBytesMax: 4096 } })
  const head = request('/text', [CHUNKED, CLOSE, 'Expect: 100-continue'])
  const few = await sent(port, head, `0\r\n${'X: 1\r\n'.repeat(100)}\r\n`)
  assert.match(few, /\[\["x","(1, ){99}1"\]\]\}$/)
  const many = await sent(port, head, `0\r\n${'X: 1\r\n'.repeat(101)}\r\n`)
  assert.match(many, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 431 /)
})

async function* rows(seen: string[]): AsyncGenerator<Uint8Array> {
  for (const row of ['one', 'two']) {
    await new Promise(setImmediate)
    seen.push(row)
    yield Buffer.from(row)
  }
}

function writers(): Routes {
  const trailed = (body: ConstructorParameters<typeof Response>[0], init?: ResponseInit): Response => {
    const seen: string[] = []
    const content = body === undefined ? ReadableStream.from(rows(seen)) : body
    return withTrailers(new Response(content as ReadableStream, init), {
      'X-Seen': () => seen.join(' '),
      'x-later': async () => {
        await new Promise(setImmediate)
        return '\u00e4'
      },
      'x-none': () => undefined,
    })
  }
  return {
    '/stream': () => trailed(undefined),
    '/whole': () => trailed('text', { headers: { 'content-length': '4' } }),
    '/empty': () => trailed(''),
    '/none': () => trailed(null, { status: 204 }),
    '/fails': () =>
      withTrailers(new Response(ReadableStream.from(rows([]))), {
        x: () => Promise.reject(new Error('on purpose')),
      }),
    '/injects': () => withTrailers(new Response(ReadableStream.from(rows([]))), { x: () => 'a\r\ny: b' }),
    '/breaks': () =>
      withTrailers(
        new Response(
          ReadableStream.from(
            (async function* () {
              yield* rows([])
              throw new Error('on purpose')
            })(),
          ),
        ),
        { x: () => 'a' },
      ),
    '/read': async () => {
      const response = trailed(undefined)
      return `${await response.text()} ${response.headers.get('trailer')}`
    },
  }
}

const get = (path: string, lines: string[]): string => request(path, [...lines, CLOSE]).replace('POST', 'GET')

onCores('trailers of a response are sent behind its body', async (start) => {
  const { port } = await start({ routes: writers() })
  const stream = await sent(port, get('/stream', ['TE: gzip, Trailers']))
  assert.match(stream, /\r\ntrailer: x-later, x-none, x-seen\r\n/i)
  assert.match(stream, /\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\nx-seen: one two\r\nx-later: \u00e4\r\n\r\n$/i)
  const whole = await sent(port, get('/whole', ['TE: trailers']))
  assert.match(whole, /\r\n\r\n4\r\ntext\r\n0\r\nx-seen: \r\nx-later: \u00e4\r\n\r\n$/i)
  assert.doesNotMatch(whole, /content-length/i)
  const empty = await sent(port, get('/empty', ['TE: trailers']))
  assert.match(empty, /\r\n\r\n0\r\nx-seen: \r\nx-later: \u00e4\r\n\r\n$/i)
})

onCores('clients that do not take trailers get the response without them', async (start) => {
  const { port } = await start({ routes: writers() })
  const stream = await sent(port, get('/stream', []))
  assert.ok(stream.endsWith('3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n') && !/trailer/i.test(stream), stream)
  assert.match(await sent(port, get('/whole', ['TE: gzip'])), /content-length: 4\r\n[^]*\r\n\r\ntext$/i)
  const head = get('/stream', ['TE: trailers']).replace('GET', 'HEAD')
  assert.match(await sent(port, head), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n$/)
  assert.match(await sent(port, get('/none', ['TE: trailers'])), /^HTTP\/1.1 204 [^]*\r\n\r\n$/)
  const old = await sent(port, 'GET /stream HTTP/1.0\r\nTE: trailers\r\n\r\n')
  assert.ok(old.endsWith('\r\n\r\nonetwo'), old)
  assert.match(await sent(port, get('/read', [])), /\r\n\r\nonetwo null$/)
})

onCores('trailers that are announced where there are no chunks cost nothing', async (start) => {
  const headers = { trailer: 'x-later' }
  const stream = (more: object) => (): Response =>
    new Response(new Blob(['text']).stream(), { headers: { ...headers, ...more } })
  const { port } = await start({
    routes: {
      '/whole': () => new Response('text', { headers }),
      '/stream': stream({}),
      '/length': stream({ 'content-length': '4' }),
    },
  })
  for (const path of ['/whole', '/stream', '/length']) {
    assert.match(await sent(port, get(path, [])), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n(4\r\n)?text/)
    const head = get(path, []).replace('GET', 'HEAD')
    assert.match(await sent(port, head), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n$/)
    assert.match(await sent(port, `GET ${path} HTTP/1.0\r\n\r\n`), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\ntext$/)
  }
})

onCores('a trailer that fails aborts the response, and cannot bring in another', async (start) => {
  const errors: unknown[] = []
  const { port } = await start({ routes: writers(), error: (error: unknown) => void errors.push(error) })
  for (const path of ['/fails', '/injects', '/breaks']) {
    const socket = await connect(port)
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    socket.write(get(path, ['TE: trailers']))
    await new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
    socket.destroy()
    assert.ok(!text.includes('\r\n0\r\n'), text)
  }
  const messages = errors.map((error) => (error as Error).message)
  assert.deepEqual(messages.slice(0, 1).concat(messages.slice(2)), ['on purpose', 'on purpose'])
  assert.match(messages[1], /^Headers: .* is an invalid value for the header x$/)
})

onCores('compress() keeps the trailers', async (start) => {
  const { port } = await start({ routes: use(writers(), compress({ codings: ['gzip'], types: () => true })) })
  const text = await sent(port, get('/stream', ['TE: trailers', 'Accept-Encoding: gzip']))
  assert.match(text, /\r\ncontent-encoding: gzip\r\n/i)
  const [, chunks, trailers] = /\r\n\r\n([^]*)\r\n0\r\n(x-seen: [^]*)$/i.exec(text)!
  let [bytes, rest] = ['', chunks]
  while (rest !== '') {
    const at = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.slice(0, at), 16)
    bytes += rest.slice(at + 2, at + 2 + size)
    rest = rest.slice(at + 4 + size)
  }
  assert.equal(gunzipSync(Buffer.from(bytes, 'latin1')).toString(), 'onetwo')
  assert.match(trailers, /^x-seen: one two\r\nx-later: \u00e4\r\n\r\n$/i)
})

test('injected requests have no trailers, and their responses none', async () => {
  const app = createApp({ routes: { ...writers(), '/trailers': (request) => entries(request).length } })
  assert.equal(await (await app.inject('/trailers')).text(), '0')
  const response = await app.inject('/stream', { headers: { te: 'trailers' } })
  assert.equal(await response.text(), 'onetwo')
})

test('withTrailers refuses names that must come before a body, and what makes no value', () => {
  const code = 'HTTP_ARGUMENT'
  for (const name of ['content-length', 'Transfer-Encoding', 'set-cookie', 'Trailer'])
    assert.throws(() => withTrailers(new Response('a'), { [name]: () => 'x' }), { code })
  const given = (value: unknown): never => value as never
  assert.throws(() => withTrailers(new Response('a'), given({ x: 'y' })), { code })
  assert.throws(() => withTrailers(new Response('a'), given(null)), { code })
  assert.throws(() => withTrailers(given('a'), {}), { code })
  assert.throws(() => withTrailers(new Response('a'), { 'a b': () => 'x' }), TypeError)
})
