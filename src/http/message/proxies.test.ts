/**
 * Clients behind proxies: who may state an address, and what becomes of a request's URL.
 *
 * A table of headers, a random model of proxies that append (whatever the client wrote first), and the
 * frameworks that look for an address.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Elysia } from 'elysia'
import fc from 'fast-check'
import { H3, getRequestIP } from 'h3'
import { Hono } from 'hono'
import { getConnInfo } from '@hono/node-server/conninfo'
import type { Exchange } from './core-interface.ts'
import { onCores } from '../cores.test.support.ts'
import { connect, converse } from '../raw.test.support.ts'
import { createApp, type HttpRequest, rateLimit, serve, use } from '../index.ts'
import { Proxies } from './proxies.ts'

type Headers = Readonly<Record<string, string>>

function clientOf(trustProxy: unknown, remoteAddress: string, headers: Headers): object {
  const exchange = { remoteAddress, header: (name: string) => headers[name] } as unknown as Exchange
  return new Proxies(trustProxy, 'serve()').clientOf(exchange, 'own.example')
}

const PROXY = '10.0.0.1'
const xff = (value: string, more: Headers = {}): Headers => ({ 'x-forwarded-for': value, ...more })
const forwarded = (value: string): Headers => ({ forwarded: value })
const FORWARDED = { from: '10.0.0.0/8', header: 'forwarded' }

/** Option, peer, headers; address, scheme, host. */
const TABLE: [unknown, string, Headers, string, string?, string?][] = [
  // Nothing is believed of a peer that is not a proxy.
  ['10.0.0.0/8', '192.0.2.9', xff('1.1.1.1', { 'x-forwarded-proto': 'https' }), '192.0.2.9'],
  [['10.0.0.0/8'], PROXY, {}, PROXY],
  [['10.0.0.0/8'], PROXY, xff('1.1.1.1'), '1.1.1.1'],
  // What the client wrote in front is not reached.
  [['10.0.0.0/8'], PROXY, xff('6.6.6.6, 1.1.1.1'), '1.1.1.1'],
  [1, PROXY, xff('6.6.6.6, 1.1.1.1'), '1.1.1.1'],
  [2, PROXY, xff('6.6.6.6, 1.1.1.1, 10.0.0.2'), '1.1.1.1'],
  [2, PROXY, xff('1.1.1.1'), '1.1.1.1'],
  [['10.0.0.0/8'], PROXY, xff('6.6.6.6, 1.1.1.1, 10.0.0.2'), '1.1.1.1'],
  ['10.0.0.0/8, 1.1.1.1', PROXY, xff('6.6.6.6, 1.1.1.1'), '6.6.6.6'],
  // All of them are proxies: the farthest one.
  [['10.0.0.0/8'], PROXY, xff('10.0.0.3, 10.0.0.2'), '10.0.0.3'],
  [
    (address: string, hop: number) => address === PROXY && hop === 0,
    PROXY,
    xff('10.0.0.3, 10.0.0.2'),
    '10.0.0.2',
  ],
  // Ports, brackets, mapped addresses, and what is not an address.
  [1, PROXY, xff('1.1.1.1:4711'), '1.1.1.1'],
  [1, PROXY, xff('[2001:db8::1]:4711'), '2001:db8::1'],
  [1, PROXY, xff('2001:db8::1'), '2001:db8::1'],
  [1, PROXY, xff('::ffff:1.1.1.1'), '1.1.1.1'],
  [['10.0.0.0/8'], '::ffff:10.0.0.1', xff('1.1.1.1'), '1.1.1.1'],
  [1, PROXY, xff('unknown'), PROXY],
  [2, PROXY, xff('1.1.1.1, 999.1.1.1'), PROXY],
  [
    ['uniquelocal', 'loopback'],
    '::1',
    xff('1.1.1.1, fd00::1, 172.16.3.4, 192.168.1.1, 127.9.9.9'),
    '1.1.1.1',
  ],
  ['linklocal', 'fe80::1', xff('1.1.1.1, 169.254.1.1'), '1.1.1.1'],
  ['loopback', '', xff('1.1.1.1'), '1.1.1.1'],
  ['10.0.0.0/8', '', xff('1.1.1.1'), ''],
  // Scheme and host are those that the proxy next to the client received.
  [
    1,
    PROXY,
    xff('1.1.1.1', { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop.example' }),
    '1.1.1.1',
    'https',
    'shop.example',
  ],
  [1, PROXY, xff('6.6.6.6, 1.1.1.1', { 'x-forwarded-proto': 'http, https' }), '1.1.1.1', 'https'],
  [2, PROXY, xff('1.1.1.1, 10.0.0.2', { 'x-forwarded-proto': 'https, http' }), '1.1.1.1', 'https'],
  [2, PROXY, xff('1.1.1.1, 10.0.0.2', { 'x-forwarded-proto': 'HTTPS' }), '1.1.1.1', 'https'],
  [1, PROXY, { 'x-forwarded-proto': 'https' }, PROXY, 'https'],
  [1, PROXY, xff('1.1.1.1', { 'x-forwarded-proto': 'gopher', 'x-forwarded-host': 'a/b' }), '1.1.1.1'],
  [
    1,
    PROXY,
    xff('1.1.1.1', { 'x-forwarded-host': 'shop.example', 'x-forwarded-port': '8443' }),
    '1.1.1.1',
    '',
    'shop.example:8443',
  ],
  [
    1,
    PROXY,
    xff('1.1.1.1', { 'x-forwarded-host': '[::1]:80', 'x-forwarded-port': '8443' }),
    '1.1.1.1',
    '',
    '[::1]:80',
  ],
  // A port without a host is one of the host that the request names.
  [1, PROXY, xff('1.1.1.1', { 'x-forwarded-port': '8443' }), '1.1.1.1', '', 'own.example:8443'],
  [1, PROXY, xff('1.1.1.1', { 'x-forwarded-port': '99999x' }), '1.1.1.1', '', 'own.example'],
  // The other family of headers is ignored: a client may have written it.
  [1, PROXY, forwarded('for=1.1.1.1'), PROXY],
  [FORWARDED, PROXY, xff('1.1.1.1'), PROXY],
  [FORWARDED, PROXY, forwarded('for=1.1.1.1'), '1.1.1.1'],
  [FORWARDED, PROXY, forwarded('For="[2001:db8:cafe::17]:4711"'), '2001:db8:cafe::17'],
  [
    FORWARDED,
    PROXY,
    forwarded(
      'for=6.6.6.6;proto=http, for=1.1.1.1 ; proto=https;host="shop.example:8443";by=_x , for=10.0.0.2',
    ),
    '1.1.1.1',
    'https',
    'shop.example:8443',
  ],
  [FORWARDED, PROXY, forwarded('for=_hidden;proto=https, for=10.0.0.2;proto=http'), '10.0.0.2', 'http'],
  [FORWARDED, PROXY, forwarded('for="1.1.1.1'), PROXY],
  // Pairs and elements may be empty (RFC 7239, 4; RFC 9110, 5.6.1).
  [FORWARDED, PROXY, forwarded('for=1.1.1.1;;'), '1.1.1.1'],
  [FORWARDED, PROXY, forwarded(', ,for=1.1.1.1,'), '1.1.1.1'],
  [FORWARDED, PROXY, forwarded('for="1.1.1.1";by="a\\",b"'), '1.1.1.1'],
  [FORWARDED, PROXY, forwarded('proto=https'), PROXY, 'https'],
]

test('the client is the first address from the end that is not a trusted proxy', () => {
  for (const [trustProxy, peer, headers, address, scheme = '', host = ''] of TABLE) {
    const found = clientOf(trustProxy, peer, headers)
    assert.deepEqual(found, { address, scheme, host }, JSON.stringify([String(trustProxy), peer, headers]))
  }
})

/** Text that a client may send to confuse whoever reads a list: separators, quotes, escapes, many values. */
const forgedText = fc.oneof(
  fc.constant(''),
  fc.string({ maxLength: 20 }),
  fc
    .array(
      fc.constantFrom(
        ',',
        ';',
        '=',
        '"',
        '\\',
        ' ',
        'for',
        'host',
        'proto',
        '6.6.6.6',
        'evil.example',
        '10.0.0.9',
      ),
    )
    .map((parts) => parts.join('')),
  fc
    .tuple(
      fc.constantFrom('evil.example', '6.6.6.6', 'http', 'x', 'for=6.6.6.6;host=evil.example'),
      fc.nat(250),
    )
    .map(([value, count]) => Array<string>(count).fill(value).join(', ')),
)
/** Each proxy appends to what it has received; an absent header begins with its own value. */
const appendTo = (forged: string, values: readonly string[]): string =>
  [...(forged === '' ? [] : [forged]), ...values].join(', ')

test('whatever a client writes first, address, scheme and host are those that proxies append', () => {
  const address = fc.ipV4().filter((text) => !text.startsWith('10.'))
  const proxies = fc.array(fc.nat(255), { minLength: 1, maxLength: 5 })
  const inputs = [
    fc.array(forgedText, { minLength: 5, maxLength: 5 }),
    address,
    proxies,
    fc.boolean(),
  ] as const
  const runs = Number(process.env['CORESPUN_SEEDS'] ?? 300)
  fc.assert(
    fc.property(...inputs, (forged, client, last, byNumber) => {
      const chain = last.map((byte) => `10.1.1.${byte}`)
      const peers = [client, ...chain.slice(0, -1)]
      const from = byNumber ? chain.length : '10.0.0.0/8'
      const peer = chain.at(-1) as string
      // What the proxy next to the client has received, and what those behind it have.
      const schemes = peers.map((_, at) => (at === 0 ? 'https' : 'http'))
      const hosts = peers.map((_, at) => (at === 0 ? 'shop.example' : 'inner.example'))
      const expected = { address: client, scheme: 'https', host: 'shop.example' }
      const list = {
        'x-forwarded-for': appendTo(forged[0], peers),
        'x-forwarded-proto': appendTo(forged[1], schemes),
        'x-forwarded-host': appendTo(forged[2], hosts),
      }
      assert.deepEqual(clientOf(from, peer, list), expected)
      const elements = peers.map(
        (each, at) => `for="${each}:7";proto=${schemes[at]};host="${hosts[at]}";by="a\\",b"`,
      )
      const one = forwarded(appendTo(forged[3], elements))
      assert.deepEqual(clientOf({ from, header: 'forwarded' }, peer, one), expected)
    }),
    { numRuns: runs },
  )
})

test('a header of a megabyte takes no longer than one of its last hundred addresses', () => {
  const long = `${'1.1.1.1,'.repeat(125_000)}2.2.2.2`
  assert.deepEqual(clientOf(1, PROXY, xff(long)), { address: '2.2.2.2', scheme: '', host: '' })
  for (const part of ['\\', '"', '\\"', '"\\', ',', '",']) {
    const hostile = forwarded(`for="${part.repeat(500_001)}`)
    assert.deepEqual(clientOf(FORWARDED, PROXY, hostile), { address: PROXY, scheme: '', host: '' })
  }
})

test('what is not a description of proxies is refused by name', () => {
  const wrong = [
    0,
    101,
    1.5,
    true,
    '',
    [],
    ['10.0.0.0/33'],
    ['::/129'],
    ['10.0.0.0/8/1'],
    ['proxy.example'],
    [7],
  ]
  for (const trustProxy of [
    ...wrong,
    {},
    { from: 1, header: 'via' },
    { from: 1, headers: 'forwarded' },
    null,
  ]) {
    assert.throws(
      () => createApp({ routes: {}, trustProxy: trustProxy as number }),
      (error: Error & { code: string }) =>
        error.code === 'HTTP_ARGUMENT' && error.message.startsWith('createApp(): trustProxy'),
      JSON.stringify(trustProxy),
    )
  }
})

const seen = (request: HttpRequest): object => ({
  url: request.url,
  remoteAddress: request.remoteAddress,
  ip: request.ip,
  same: request.clone().url === request.url,
})
const CLAIMS = xff('6.6.6.6, 203.0.113.7', {
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'shop.example',
})

onCores('a request has the URL and the address of the client', async (start) => {
  const behind = await start({ routes: { '/a': seen }, trustProxy: 'loopback' })
  const response = await fetch(`${behind.url}/a?b=1`, { headers: CLAIMS })
  const address = '203.0.113.7'
  const expected = { url: 'https://shop.example/a?b=1', remoteAddress: address, ip: address, same: true }
  assert.deepEqual(await response.json(), expected)
  const direct = await start({ routes: { '/a': seen } })
  const plain = (await (await fetch(`${direct.url}/a`, { headers: CLAIMS })).json()) as typeof expected
  assert.deepEqual([plain.url, plain.ip, plain.remoteAddress], [`${direct.url}/a`, '127.0.0.1', '127.0.0.1'])
})

const SHOP = ['203.0.113.7', 'https', 'shop.example']
/** Option, lines as they are on the wire; address, scheme, host. */
const LINES: [unknown, string[], string, string?, string?][] = [
  [1, ['x-forwarded-for: 6.6.6.6', 'x-forwarded-for: 203.0.113.7'], '203.0.113.7'],
  [1, ['X-Forwarded-For: 203.0.113.7', 'accept: a', 'x-forwarded-for: 6.6.6.6'], '6.6.6.6'],
  [
    2,
    ['x-forwarded-for: 6.6.6.6', 'x-forwarded-for: 203.0.113.7', 'x-forwarded-for: 10.0.0.2'],
    '203.0.113.7',
  ],
  [2, ['x-forwarded-for: 6.6.6.6, 203.0.113.7', 'X-FORWARDED-FOR: 10.0.0.2'], '203.0.113.7'],
  [2, ['x-forwarded-for: 6.6.6.6', 'x-forwarded-for: 203.0.113.7,10.0.0.2'], '203.0.113.7'],
  [1, ['x-forwarded-for: 203.0.113.7', 'x-forwarded-for:'], '127.0.0.1'],
  [1, ['x-forwarded-for:', 'x-forwarded-for: 203.0.113.7'], '203.0.113.7'],
  [
    1,
    [
      'x-forwarded-proto: http',
      'x-forwarded-for: 6.6.6.6',
      'x-forwarded-host: evil.example',
      'x-forwarded-for: 203.0.113.7',
      'x-forwarded-proto: https',
      'x-forwarded-host: shop.example',
    ],
    ...(SHOP as [string, string, string]),
  ],
  [
    1,
    [
      'x-forwarded-for: 203.0.113.7',
      'x-forwarded-host: shop.example',
      'x-forwarded-port: 1',
      'x-forwarded-port: 8443',
    ],
    '203.0.113.7',
    'http',
    'shop.example:8443',
  ],
  [
    { from: 1, header: 'forwarded' },
    ['forwarded: for=6.6.6.6;host=evil.example', 'Forwarded: for=203.0.113.7;proto=https;host=shop.example'],
    ...(SHOP as [string, string, string]),
  ],
  [
    { from: 1, header: 'forwarded' },
    ['forwarded: for="6.6.6.6', 'forwarded: for="203.0.113.7:7";proto=https;host="shop.example"'],
    ...(SHOP as [string, string, string]),
  ],
  [
    { from: 'loopback, 10.0.0.0/8', header: 'forwarded' },
    [
      'forwarded: for=6.6.6.6',
      'forwarded: for=203.0.113.7;proto=https;host=shop.example, for=10.0.0.3',
      'forwarded: for=10.0.0.2',
    ],
    ...(SHOP as [string, string, string]),
  ],
]

onCores('several lines of one name are one list, which is read from its end', async (start) => {
  for (const [trustProxy, lines, address, scheme = 'http', host = 'own.example'] of LINES) {
    const server = await start({ routes: { '/': seen }, trustProxy: trustProxy as number })
    const head = ['GET / HTTP/1.1', 'host: own.example', 'connection: close', ...lines].join('\r\n')
    const { responses } = await converse(server.port, [`${head}\r\n\r\n`], { responses: 1 })
    const found = JSON.parse(responses[0].body) as Record<string, unknown>
    assert.deepEqual([found['ip'], found['url']], [address, `${scheme}://${host}/`], lines.join(' | '))
    // The oracle: the same list in one line.
    const joined: Record<string, string> = {}
    for (const line of lines) {
      const [name, value] = [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]
      joined[name] = name in joined ? `${joined[name]}, ${value}` : value
    }
    const one = clientOf(trustProxy, '127.0.0.1', joined) as { address: string; scheme: string; host: string }
    assert.deepEqual([one.address, one.scheme || 'http', one.host || 'own.example'], [address, scheme, host])
  }
})

onCores('wherever a list is divided into lines, it states the same client', async (start) => {
  const lists: [unknown, string, string[]][] = [
    [3, 'x-forwarded-for', ['6.6.6.6', '6.6.6.7', '203.0.113.7', '10.0.0.3', '10.0.0.2']],
    [
      { from: 2, header: 'forwarded' },
      'Forwarded',
      ['for="6.6.6.6', 'x"', ';', 'for=203.0.113.7', 'for="10.0.0.2:7"'],
    ],
  ]
  for (const [trustProxy, name, list] of lists) {
    const server = await start({ routes: { '/': seen }, trustProxy: trustProxy as number })
    for (let lines = 0; lines < 2 ** (list.length - 1); lines += 1) {
      const between = (at: number): string => ((lines >> at) & 1 ? `\r\n${name}: ` : ', ')
      const field = list.map((element, at) => (at === 0 ? '' : between(at - 1)) + element).join('')
      const head = `GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${name}: ${field}\r\n\r\n`
      const { responses } = await converse(server.port, [head], { responses: 1 })
      assert.equal((JSON.parse(responses[0].body) as { ip: string }).ip, '203.0.113.7', field)
    }
  }
})

test('a proxy on a Unix socket is this machine', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-proxies-'))
  const unixPath = join(folder, 's')
  const server = await serve({ quiet: true, routes: { '/': seen }, trustProxy: ['loopback'], unixPath })
  try {
    const text = await new Promise<string>((resolve, reject) => {
      const asked = httpRequest({
        socketPath: unixPath,
        path: '/',
        headers: { host: 'x.example', ...CLAIMS },
      })
      asked.on('response', (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (part: string) => (body += part))
        response.on('end', () => resolve(body))
      })
      asked.on('error', reject).end()
    })
    const { url, ip } = JSON.parse(text) as { url: string; ip: string }
    assert.deepEqual([url, ip], ['https://shop.example/', '203.0.113.7'])
  } finally {
    await server.close()
    rmSync(folder, { recursive: true })
  }
})

onCores('rate limits count clients, not the proxy', async (start, core) => {
  const limit = rateLimit({ requestsMax: 1, name: `proxied ${core}` })
  const server = await start({ routes: use({ '/': 'ok' }, limit), trustProxy: 1 })
  const statusOf = async (client: string): Promise<number> =>
    (await fetch(server.url, { headers: xff(client) })).status
  assert.deepEqual(
    [await statusOf('1.1.1.1'), await statusOf('2.2.2.2'), await statusOf('9.9.9.9, 1.1.1.1')],
    [200, 200, 429],
  )
})

onCores('hono and h3 find the address where they look for it', async (start) => {
  const hono = new Hono().get('/hono', (c) => c.json(getConnInfo(c).remote))
  const h3 = new H3().get('/h3', (event) => getRequestIP(event) ?? 'none')
  const server = await start({ routes: { '/h3': h3 }, fetch: hono.fetch, trustProxy: 1 })
  for (const [headers, address, family] of [
    [{}, '127.0.0.1', 'IPv4'],
    [xff('2001:db8::1'), '2001:db8::1', 'IPv6'],
  ] as const) {
    const info = await (await fetch(`${server.url}/hono`, { headers })).json()
    assert.deepEqual(info, { address, addressType: family })
    assert.equal(await (await fetch(`${server.url}/h3`, { headers })).text(), address)
  }
})

onCores('a framework finds the port of the client, unless a proxy states who that is', async (start) => {
  const hono = new Hono().get('/', (c) => c.json({ port: getConnInfo(c).remote.port ?? 0 }))
  const ways = [
    { fetch: hono.fetch },
    { routes: { '/': hono } },
    { fetch: hono.fetch, trustProxy: 1 },
    { fetch: hono.fetch, proxyProtocol: true },
  ]
  for (const settings of ways) {
    const server = await start(settings)
    const socket = await connect(server.port)
    const { localPort } = socket
    const begin = 'proxyProtocol' in settings ? 'PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n' : ''
    socket.write(`${begin}GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)
    let text = ''
    for await (const piece of socket.setEncoding('latin1') as AsyncIterable<string>) text += piece
    const isPeer = settings === ways[0] || settings === ways[1]
    assert.deepEqual(JSON.parse(text.split('\r\n\r\n')[1]), { port: isPeer ? localPort : 0 })
    socket.destroy()
  }
})

onCores('elysia finds the address by its server', async (start) => {
  const app = new Elysia()
    .get('/ip', ({ server, request }) => server?.requestIP(request)?.address ?? 'none')
    .post('/json', ({ body }) => body)
  const server = await start({
    trustProxy: 1,
    fetch: (request, connection) => {
      app.server ??= connection as never
      return app.fetch(request)
    },
  })
  const clients = ['203.0.113.7', '2001:db8::1', '198.51.100.9']
  const asked = clients.map((client) => fetch(`${server.url}/ip`, { headers: xff(client) }))
  const found = (await Promise.all(asked)).map((response) => response.text())
  assert.deepEqual(await Promise.all(found), clients)
  assert.equal(await (await fetch(`${server.url}/ip`)).text(), '127.0.0.1')
  const headers = { 'content-type': 'application/json' }
  const posted = await fetch(`${server.url}/json`, { method: 'POST', body: '{"a":[1]}', headers })
  assert.deepEqual(await posted.json(), { a: [1] })
})

onCores('after the response requestIP returns the address', async (start) => {
  let late: unknown = 'not asked'
  const server = await start({
    fetch: (request, connection) => {
      setImmediate(() => (late = connection.requestIP(request)))
      return Response.json([
        connection.requestIP(request)?.address,
        connection.requestIP(new Request('http://x')),
      ])
    },
  })
  assert.deepEqual(await (await fetch(server.url)).json(), ['127.0.0.1', null])
  while (late === 'not asked') await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(late, { address: '127.0.0.1', family: 'IPv4' })
})
