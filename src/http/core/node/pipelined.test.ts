/**
 * Requests behind one that ends its connection: the same bytes to both cores have the same responses, and the
 * same requests reach the app. What is behind does not (RFC 9112, 9.6).
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
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
  if (pathname === '/slow') await new Promise((resolve) => setTimeout(resolve, 5))
  return new Response(pathname === '/stream' ? new Blob([pathname]).stream() : pathname)
}

const servers = new Map<'native' | 'node', HttpServer>()
before(async () => {
  const settings = { quiet: true, host: '127.0.0.1', port: 0, limits: { bodyBytesMax: 1000 }, fetch: handle }
  for (const core of ['native', 'node'] as const) servers.set(core, await serve({ ...settings, core }))
})
after(() => Promise.all([...servers.values()].map((server) => server.close({ timeoutMs: 0 }))))

/** What both of these come to. */
async function outcomeOf(core: 'native' | 'node', bytes: string): Promise<object> {
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
