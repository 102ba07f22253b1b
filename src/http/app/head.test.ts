/**
 * HEAD beside GET, for each kind of handler: a length that HEAD states is that of GET, and where the body is
 * not known it states nothing (RFC 9110, 8.6). On both cores, over HTTP/1.1 and HTTP/2.
 */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { Readable } from 'node:stream'
import { H3 } from 'h3'
import { Hono } from 'hono'
import { compress, files, use, withMiddleware } from '../index.ts'
import { onCores } from '../cores.test.support.ts'
import { connect, request } from '../http2/client.test.support.ts'

type Lengths = readonly [get: string | undefined, head: string | undefined]

/** `content-length` by HTTP/1.1, which the client's parser checks against the body. */
async function lengthOf(port: number, method: string, path: string): Promise<string | undefined> {
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    httpRequest({ port, host: '127.0.0.1', method, path, agent: false }, resolve).on('error', reject).end()
  })
  const body = (await response.toArray()) as Buffer[]
  const length = response.headers['content-length']
  if (method === 'HEAD') {
    assert.equal(body.length, 0)
    assert.equal(response.headers['transfer-encoding'], undefined, path)
  } else if (length !== undefined) assert.equal(Buffer.concat(body).length, Number(length), path)
  return length
}

const hono = new Hono().get('/hono', (c) => c.json({ a: 1 })).get('/hono/text', (c) => c.text('abc'))
const h3 = new H3().get('/h3', () => ({ a: 1 }))
const isHead = (request: Request): boolean => request.method === 'HEAD'

/** Path, handler, and the lengths of GET and of HEAD; '?' is that of GET, or is absent. */
const HANDLERS: Record<string, readonly [handler: unknown, ...Lengths]> = {
  '/text': ['abc', '3', '3'],
  '/empty': ['', '0', '0'],
  '/json': [() => ({ a: 1 }), '7', '7'],
  '/bytes': [() => new Uint8Array(5), '5', '5'],
  '/response': [() => new Response('abcd'), '4', '?'],
  '/null': [() => new Response(null), '0', '?'],
  '/own head': [(r: Request) => new Response(isHead(r) ? null : 'abcd'), '4', undefined],
  '/stated': [
    (r: Request) => new Response(isHead(r) ? null : 'abcd', { headers: { 'content-length': '4' } }),
    '4',
    '4',
  ],
  '/generator': [
    async function* () {
      yield 'abc'
    },
    '3',
    '?',
  ],
  '/readable': [
    () => new Response(Readable.toWeb(Readable.from([Buffer.from('abc')])) as ReadableStream),
    '?',
    '?',
  ],
  '/hono': [hono.fetch, '7', undefined],
  '/hono/text': [hono.fetch, '3', undefined],
  '/h3': [h3.fetch, '7', '?'],
  '/204': [() => new Response(null, { status: 204 }), undefined, undefined],
  '/304': [() => new Response(null, { status: 304 }), undefined, undefined],
  '/404': [() => new Response('no', { status: 404 }), '2', '?'],
  '/compressed': [withMiddleware(() => 'a'.repeat(5000), compress()), '5000', '5000'],
}

onCores('HEAD has the length of GET, or none', async (start, core) => {
  const routes = Object.fromEntries(
    Object.entries(HANDLERS).map(([path, [handler]]) => [path.replace(' ', '-'), handler]),
  )
  const served = use({ '/files/*': files(new URL('.', import.meta.url)) })
  const server = await start({ routes: { ...routes, ...served } as unknown as Record<string, () => string> })
  const session = core === 'native' ? connect(server.port) : undefined
  const name = '/files/head.test.js'
  const file = await lengthOf(server.port, 'GET', name)
  const all: [string, ...Lengths][] = [
    ...Object.entries(HANDLERS).map(([path, [, get, head]]): [string, ...Lengths] => [path, get, head]),
    [name, file, file],
  ]
  try {
    for (const [named, get, head] of all) {
      const path = named.replace(' ', '-')
      const seen = await lengthOf(server.port, 'GET', path)
      if (get !== '?') assert.equal(seen, get, `GET ${path}`)
      const found = [await lengthOf(server.port, 'HEAD', path)]
      if (session !== undefined)
        found.push(
          (await request(session, path, { headers: { ':method': 'HEAD' } })).headers['content-length'],
        )
      for (const length of found) {
        if (head === '?') assert.ok(length === undefined || length === seen, `HEAD ${path}: ${length}`)
        else assert.equal(length, head, `HEAD ${path}`)
      }
    }
  } finally {
    session?.close()
  }
})
