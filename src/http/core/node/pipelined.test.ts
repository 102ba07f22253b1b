/**
 * Requests behind others: the same bytes to both cores have the same responses, and the same requests reach
 * the app. Behind one that ends its connection none does (RFC 9112, 9.6).
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { converse } from '../../raw.test.support.ts'
import type { HttpServer } from '../../server.ts'
import { serve } from '../../serve.ts'
import { head, post } from '../conformance/case.test.support.ts'

const get = (path: string, ...lines: string[]): string => head(`GET ${path} HTTP/1.1`, 'Host: x', ...lines)
const CLOSE = 'Connection: close'

const LAST = {
  'that closes': get('/close', CLOSE),
  'that closes, with a slow response': get('/slow', CLOSE),
  'that closes, with a streamed response': get('/stream', CLOSE),
  'that closes, with a body': post(['Content-Length: 3', CLOSE], 'abc'),
  'that closes, with chunks': post(['Transfer-Encoding: chunked', CLOSE], '3\r\nabc\r\n0\r\n\r\n'),
  'that closes and offers an upgrade': get('/', 'Connection: Upgrade, close', 'Upgrade: h2c'),
  'of HTTP/1.0': head('GET /old HTTP/1.0'),
  'without a host': head('GET / HTTP/1.1'),
  'without a host, with invalid chunks': head('POST / HTTP/1.1', 'Transfer-Encoding: chunked') + 'zz\r\n',
  'with an invalid target': get('/a|b'),
  'with a body that is too long': post(['Content-Length: 9999']),
}
const BEHIND = {
  nothing: '',
  'two requests': get('/2') + get('/3'),
  'a request with a body': post(['Content-Length: 3'], 'abc'),
  'a request that closes': get('/again', CLOSE),
  garbage: 'GARBAGE\r\n\r\n',
  'a part of a head': 'GET / HT',
}

let seen: string[] = []
async function handle(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  seen.push(`${request.method} ${pathname} ${await request.text()}`)
  if (pathname === '/slow') await pause(5)
  if (pathname === '/last') return new Response(lastPieces(), { headers: { connection: 'close' } })
  return new Response(pathname === '/stream' ? new Blob([pathname]).stream() : pathname)
}

/** The client writes behind the first piece; the second is sent when that has arrived. */
let arrived = Promise.resolve()
function lastPieces(): ReadableStream<Uint8Array> {
  const pieces = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from('begin ')
    await arrived
    yield Buffer.from('end')
  }
  return ReadableStream.from<Uint8Array>(pieces())
}

const servers = new Map<'native' | 'node', HttpServer>()
before(async () => {
  const limits = { bodyBytesMax: 1000 }
  const routes = { '/socket': { websocket: { message() {} } } }
  const settings = { quiet: true, host: '127.0.0.1', port: 0, limits, routes, fetch: handle }
  for (const core of ['native', 'node'] as const) servers.set(core, await serve({ ...settings, core }))
})
after(() => Promise.all([...servers.values()].map((server) => server.close({ timeoutMs: 0 }))))

/** What both of these come to. */
async function outcomeOf(
  core: 'native' | 'node',
  bytes: string,
): Promise<{ made: unknown[]; closed: boolean; seen: string[] }> {
  seen = []
  const { responses, closed } = await converse(servers.get(core)!.port, [bytes], { responses: 9 })
  // The texts of refusals are those of the native core alone.
  const made = responses.map(({ status, body }) => (status === 200 ? body : status))
  return { made, closed, seen: seen.sort() }
}

const skip = process.platform === 'win32'
for (const [last, bytes] of Object.entries(LAST))
  test(`nothing behind a request ${last} is a request, on both cores`, { skip }, async () => {
    for (const [name, behind] of Object.entries(BEHIND))
      for (const first of ['', get('/first')]) {
        const native = await outcomeOf('native', first + bytes + behind)
        assert.deepEqual(await outcomeOf('node', first + bytes + behind), native, name)
        assert.deepEqual(native, await outcomeOf('native', first + bytes), name)
      }
  })

const FAULTS = {
  garbage: 'GARBAGE\r\n\r\n',
  'a head that is too long': get('/', `x: ${'a'.repeat(70_000)}`),
  'invalid chunks': post(['Transfer-Encoding: chunked'], 'zz\r\n'),
}
for (const [name, fault] of Object.entries(FAULTS))
  test(`responses before ${name} are sent, then the refusal, on both cores`, { skip }, async () => {
    for (const first of ['', get('/slow'), get('/stream'), get('/slow') + get('/stream') + get('/slow')]) {
      const { made, closed } = await outcomeOf('native', first + fault)
      const onNode = await outcomeOf('node', first + fault)
      // The body of the last request fails in the app there.
      assert.deepEqual([onNode.made, onNode.closed], [made, closed], first)
      assert.equal(made.length, first.split('GET').length)
    }
  })

test('nothing behind the head of a response that closes reaches the app, on both cores', async () => {
  for (const core of ['native', 'node'] as const) {
    let onArrival = (): void => {}
    arrived = new Promise((resolve) => (onArrival = resolve))
    seen = []
    const [server, before] = [servers.get(core)!, servers.get(core)!.stats().bytesIn]
    const pieces = [get('/last'), get('/2')]
    const all = converse(server.port, pieces, { responses: 2, waits: true })
    // The native core does not read what is behind.
    const isRead = (): boolean => server.stats().bytesIn >= before + pieces.join('').length
    while (core === 'node' && !isRead()) await pause(1)
    onArrival()
    const { responses, closed } = await all
    assert.deepEqual([responses.map(({ body }) => body), closed], [['begin end'], true], core)
    assert.deepEqual(seen, ['GET /last '], core)
  }
})

test('a request for a WebSocket behind one without a response has one like any other', async () => {
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
  const asked = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', key]
  for (const core of ['native', 'node'] as const)
    for (const [bytes, expected] of [
      [get('/slow') + get('/socket', ...asked), [200, 503]],
      [get('/slow') + get('/2', ...asked), [200, 200]],
      [get('/a|b') + get('/socket', ...asked), [400]],
    ] as const) {
      const { responses } = await converse(servers.get(core)!.port, [bytes], { responses: expected.length })
      assert.deepEqual(
        responses.map(({ status }) => status),
        expected,
        core,
      )
    }
})
