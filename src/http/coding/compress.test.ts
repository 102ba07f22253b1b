/**
 * Compressed responses on both cores: what is compressed, what is left alone, and what a client of a stream
 * has received by when.
 *
 * Bodies are decoded by node:zlib's one-shot functions, which refuse what is cut off.
 */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import zlib from 'node:zlib'
import { until } from '../../base/wait.test.support.ts'
import { chunks, events } from '../app/events.ts'
import type { Routes } from '../app/routes.ts'
import { onCores } from '../cores.test.support.ts'
import { CorespunResponse as Response } from '../fetch/response.ts'
import { use } from '../app/middleware.ts'
import { createApp } from '../server.ts'
import { compress, type CompressOptions } from './compress.ts'
import { hasZstd } from './codings.ts'

const TEXT = 'Text that repeats itself. '.repeat(200)
const ALL = 'gzip, br, zstd'
const BEST = hasZstd() ? 'zstd' : 'br'

interface Received {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
}

async function ask(url: string, accept: string | undefined, method = 'GET'): Promise<Received> {
  const headers = accept === undefined ? {} : { 'accept-encoding': accept }
  const request = http.request(url, { method, agent: false, headers }).end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const pieces: Buffer[] = []
  for await (const piece of response as AsyncIterable<Buffer>) pieces.push(piece)
  return { status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) }
}

function decoded({ headers, body }: Pick<Received, 'headers' | 'body'>): string {
  const coding = headers['content-encoding']
  if (coding === 'br') return zlib.brotliDecompressSync(body).toString()
  if (coding === 'zstd') return zlib.zstdDecompressSync(body).toString()
  return coding === 'gzip' ? zlib.gunzipSync(body).toString() : body.toString()
}

onCores('a response is compressed by the coding that its client prefers', async (start) => {
  const { url } = await start({ routes: use({ '/': () => TEXT }, compress()) })
  const zstd = hasZstd() ? 'zstd' : undefined
  for (const [accept, coding] of [
    [ALL, BEST],
    ['gzip', 'gzip'],
    ['br;q=0.5, gzip', 'gzip'],
    ['zstd', zstd],
    ['zstd, gzip;q=0.5', zstd ?? 'gzip'],
    ['deflate', undefined],
    [undefined, undefined],
    ['identity, *;q=0', undefined],
  ] as const) {
    const response = await ask(url, accept)
    assert.equal(response.headers['content-encoding'], coding, `${accept}`)
    assert.equal(response.headers['vary'], 'accept-encoding', `${accept}`)
    assert.equal(response.headers['content-type'], 'text/plain;charset=UTF-8')
    assert.equal(Number(response.headers['content-length']), response.body.byteLength)
    assert.ok(coding === undefined || response.body.byteLength < TEXT.length / 10)
    assert.equal(decoded(response), TEXT, `${accept}`)
  }
})

/** Handlers by what they return, and whether it is compressed. */
const HANDLERS: Record<string, readonly [make: () => unknown, isCompressed: boolean]> = {
  json: [() => Array.from({ length: 200 }, (_, id) => ({ id })), true],
  text: [() => TEXT, true],
  html: [() => typed('text/html; charset=utf-8'), true],
  problem: [() => typed('application/problem+json'), true],
  svg: [() => typed('image/svg+xml'), true],
  wasm: [() => typed('Application/WASM'), true],
  error: [() => new Response(TEXT, { status: 500 }), true],
  stream: [() => new Response(new Blob([TEXT]).stream(), { headers: { 'content-type': 'text/css' } }), true],
  generated: [() => chunks([TEXT.slice(0, 50), TEXT.slice(50)]), true],
  short: [() => 'short', false],
  image: [() => typed('image/png'), false],
  bytes: [() => Buffer.from(TEXT), false],
  untyped: [() => new Response(Buffer.from(TEXT)), false],
  encoded: [() => typed('text/html', { 'content-encoding': 'identity' }), false],
  final: [() => typed('text/html', { 'cache-control': 'max-age=1, No-Transform' }), false],
  ranged: [() => typed('text/html', { 'content-range': 'bytes 0-1/2' }), false],
  part: [() => new Response(TEXT, { status: 206 }), false],
  none: [() => new Response(null, { status: 204 }), false],
  empty: [() => new Response(null, { headers: { 'content-type': 'text/html' } }), false],
  random: [
    () =>
      typed(
        'text/plain',
        {},
        Array.from({ length: 2000 }, () => Math.random())
          .join('')
          .slice(0, 1025),
      ),
    true,
  ],
}

function typed(type: string, headers: Record<string, string> = {}, body = TEXT): unknown {
  return new Response(body, { headers: { 'content-type': type, ...headers } })
}

onCores('what is compressed depends on type, size, status and headers', async (start) => {
  const routes = Object.fromEntries(Object.entries(HANDLERS).map(([name, [make]]) => [`/${name}`, make]))
  const { url } = await start({ routes: use(routes as Routes, compress()) })
  for (const [name, [, isCompressed]] of Object.entries(HANDLERS)) {
    const [response, plain] = [await ask(`${url}/${name}`, 'gzip'), await ask(`${url}/${name}`, undefined)]
    assert.equal(response.headers['content-encoding'] === 'gzip', isCompressed, name)
    assert.equal(response.headers.vary, isCompressed ? 'accept-encoding' : undefined, name)
    assert.equal(response.status, plain.status)
    if (name !== 'random') assert.equal(decoded(response), plain.body.toString(), name)
  }
})

onCores('HEAD has the headers of GET, and no body', async (start) => {
  let cancelledCount = 0
  const routes = {
    '/text': () => TEXT,
    '/stream': () =>
      new Response(new ReadableStream({ cancel: () => void (cancelledCount += 1) }, { highWaterMark: 0 }), {
        headers: { 'content-type': 'text/css', 'content-length': '5000' },
      }),
    '/known': {
      HEAD: () => new Response(null, { headers: { 'content-type': 'text/css', 'content-length': '5000' } }),
    },
    '/unknown': { HEAD: () => new Response(null, { headers: { 'content-type': 'text/css' } }) },
  }
  const { url } = await start({ routes: use(routes, compress({ concurrencyMax: 1 })) })
  for (const [path, coding] of [
    ['/text', BEST],
    ['/stream', BEST],
    ['/known', BEST],
    ['/unknown', undefined],
  ] as const) {
    const { status, headers, body } = await ask(url + path, ALL, 'HEAD')
    assert.deepEqual([status, headers['content-encoding'], body.byteLength], [200, coding, 0], path)
    if (coding !== undefined) assert.equal(headers['content-length'], undefined, path)
  }
  await until(() => cancelledCount === 1)
})

onCores('a strong tag becomes weak, in 304 too, and what is of the plain bytes goes', async (start) => {
  const plain = {
    etag: '"a"',
    'content-type': 'text/css',
    'accept-ranges': 'bytes',
    'content-digest': 'sha-256=:x:',
  }
  const routes = {
    '/': (request: Request) =>
      request.headers.get('if-none-match') === null
        ? new Response(TEXT, { headers: { ...plain, vary: 'cookie' } })
        : new Response(null, { status: 304, headers: { etag: '"a"' } }),
    '/weak': () => new Response(TEXT, { headers: { ...plain, etag: 'W/"b"', vary: 'Accept-Encoding' } }),
  }
  const { url } = await start({ routes: use(routes, compress()) })
  const { headers } = await ask(url, 'gzip')
  assert.equal(headers.etag, 'W/"a"')
  assert.deepEqual([headers['accept-ranges'], headers['content-digest']], [undefined, undefined])
  assert.equal(headers.vary, 'cookie, accept-encoding')
  const weak = await ask(`${url}/weak`, 'gzip')
  assert.deepEqual([weak.headers.etag, weak.headers.vary], ['W/"b"', 'Accept-Encoding'])
  assert.equal((await ask(url, undefined)).headers.etag, '"a"')
  for (const [known, etag, vary] of [
    ['W/"a"', 'W/"a"', 'accept-encoding'],
    ['"a"', '"a"', undefined],
    ['*', '"a"', undefined],
  ] as const) {
    const again = await fetch(url, { headers: { 'if-none-match': known } })
    assert.deepEqual(
      [again.status, again.headers.get('etag'), again.headers.get('vary') ?? undefined],
      [304, etag, vary],
    )
  }
})

onCores('an event reaches the client while the stream goes on', async (start) => {
  const sent = new EventEmitter()
  async function* source(): AsyncGenerator<string> {
    for (let n = 1; n <= 3; n += 1) {
      await once(sent, 'go')
      yield `event ${n}`
    }
    await once(sent, 'go')
  }
  const { url } = await start({ routes: use({ '/': () => events(source) }, compress()) })
  for (const coding of ['br', 'gzip', ...(hasZstd() ? ['zstd'] : [])]) {
    const request = http.request(url, { agent: false, headers: { 'accept-encoding': coding } }).end()
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal(response.headers['content-encoding'], coding)
    const decoder = {
      br: zlib.createBrotliDecompress,
      gzip: zlib.createGunzip,
      zstd: zlib.createZstdDecompress,
    }[coding]!()
    let text = ''
    response.pipe(decoder).on('data', (piece: Buffer) => (text += piece.toString()))
    await until(() => text.startsWith(':'))
    for (let n = 1; n <= 3; n += 1) {
      await until(() => sent.listenerCount('go') === 1)
      sent.emit('go')
      await until(() => text.includes(`data: event ${n}\n\n`)) // the next one is not asked for before
    }
    await until(() => sent.listenerCount('go') === 1)
    sent.emit('go')
    await once(decoder, 'end')
  }
})

onCores('a client that leaves ends the source, one that reads slowly makes it wait', async (start, core) => {
  let [yieldedCount, endedCount] = [0, 0]
  const noise = Buffer.from(Array.from({ length: 30_000 }, () => Math.random()).join(''))
  function* source(): Generator<Uint8Array> {
    try {
      for (;;) {
        yieldedCount += 1
        yield noise
      }
    } finally {
      endedCount += 1
    }
  }
  const { url } = await start({
    routes: use({ '/': () => chunks(source()) }, compress({ concurrencyMax: 1 })),
  })
  for (let round = 1; round <= 2; round += 1) {
    const request = http.request(url, { agent: false, headers: { 'accept-encoding': 'gzip' } }).end()
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal(response.headers['content-encoding'], 'gzip') // the one before is not counted any more
    if (core === 'native' && round === 1) {
      let before = -1
      await until(() => before === (before = yieldedCount)) // nobody reads, so it stops
      assert.ok(yieldedCount < 200, `${yieldedCount} pieces of ${noise.byteLength} bytes`)
    }
    request.destroy()
    await until(() => endedCount === round)
  }
})

onCores('a source that fails cuts the response', async (start) => {
  const failing = function* (): Generator<string> {
    yield TEXT
    throw new Error('on purpose')
  }
  const wrong = (): Iterable<string> => [TEXT, 7 as unknown as string]
  const streamed = new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from(TEXT)),
    pull: (controller) => controller.error(new Error('on purpose')),
  })
  const routes = {
    '/failing': () => chunks(failing()),
    '/wrong': () => chunks(wrong()),
    '/stream': () => new Response(streamed, { headers: { 'content-type': 'text/plain' } }),
  }
  const server = await start({ routes: use(routes, compress()) })
  for (const path of Object.keys(routes)) {
    const outcome = await ask(server.url + path, 'gzip').then(
      ({ status, body }) =>
        status === 500 ? 'refused' : decoded({ headers: { 'content-encoding': 'gzip' }, body }),
      () => 'cut',
    )
    assert.ok(outcome === 'cut' || outcome === 'refused', `${path}: ${outcome}`)
  }
  assert.equal(server.stats().errors, 3)
})

onCores('beyond concurrencyMax responses are sent as they are', async (start) => {
  const go = new EventEmitter()
  async function* source(): AsyncGenerator<string> {
    yield 'first'
    await once(go, 'go')
  }
  const routes = use(
    { '/wait': () => chunks(source()), '/text': () => TEXT },
    compress({ concurrencyMax: 1 }),
  )
  const { url } = await start({ routes })
  const request = http.request(`${url}/wait`, { agent: false, headers: { 'accept-encoding': 'gzip' } }).end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const [first] = (await once(response, 'data')) as [Buffer]
  assert.ok(first.byteLength > 0)
  const plain = await ask(`${url}/text`, 'gzip')
  assert.deepEqual([plain.headers['content-encoding'], plain.headers.vary], [undefined, 'accept-encoding'])
  await until(() => go.listenerCount('go') === 1)
  go.emit('go')
  await once(response, 'end')
  assert.equal((await ask(`${url}/text`, 'gzip')).headers['content-encoding'], 'gzip')
})

test('options choose codings, types, sizes and levels', async () => {
  const sizes: number[] = []
  const accept = async (options: CompressOptions, header = ALL): Promise<string | null> => {
    const routes = use(
      { '/': () => new Response(TEXT, { headers: { 'content-type': 'image/x' } }) },
      compress(options),
    )
    const response = await createApp({ routes }).inject('/', { headers: { 'accept-encoding': header } })
    sizes.push((await response.arrayBuffer()).byteLength)
    return response.headers.get('content-encoding')
  }
  assert.equal(await accept({ types: () => true, codings: ['gzip', 'br'] }), 'gzip')
  assert.equal(await accept({ types: () => true, codings: [] }), null)
  assert.equal(await accept({ types: (type) => type !== 'image/x' }), null)
  assert.equal(await accept({ types: () => true, bytesMin: TEXT.length + 1 }), null)
  assert.equal(
    await accept({ types: () => true, bytesMin: TEXT.length, codings: ['gzip'], levels: { gzip: 9 } }),
    'gzip',
  )
  assert.equal(await accept({}), null)
  for (const options of [
    { codings: ['deflate'] },
    { codings: 'br' },
    { levels: { br: 12 } },
    { levels: { lzma: 1 } },
    { concurrencyMax: 0 },
    { bytesMin: -1 },
    { types: 'text' },
    { level: 1 },
  ])
    assert.throws(
      () => compress(options as CompressOptions),
      { code: 'HTTP_ARGUMENT' },
      JSON.stringify(options),
    )
})

test('a compressed response can be read and cloned by other middleware', async () => {
  const outer = async (_: Request, next: () => Promise<Response>): Promise<Response> => {
    const response = await next()
    const copy = response.clone()
    assert.equal(zlib.gunzipSync(Buffer.from(await copy.arrayBuffer())).toString(), TEXT)
    return response
  }
  for (const make of [() => TEXT, () => chunks([TEXT])]) {
    const app = createApp({ routes: use({ '/': make }, outer as never, compress()) })
    const response = await app.inject('/', { headers: { 'accept-encoding': 'gzip' } })
    assert.equal(zlib.gunzipSync(Buffer.from(await response.arrayBuffer())).toString(), TEXT)
  }
})
