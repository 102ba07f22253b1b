/**
 * The PROXY protocol on both cores: the client that a header states, however its bytes are cut, and
 * connections without one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { onCores } from '../../cores.test.support.ts'
import { converse } from '../../raw.test.support.ts'
import { parseProxyHeader } from './proxy-header.ts'

const BYTES_MAX = 4096
const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n'
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

function binary(command: number, family: number, addresses: readonly number[]): Buffer {
  const { length } = addresses
  return Buffer.from([...latin1(SIGNATURE), 0x20 | command, family, length >> 8, length & 255, ...addresses])
}

const shownOf = (header: Buffer): string => JSON.stringify(header.toString('latin1', 0, 60))

const FOUR = [192, 0, 2, 7, 192, 0, 2, 1, 1, 2, 3, 4]
const SIX = [0x20, 1, 0xd, 0xb8, ...new Array<number>(11).fill(0), 7, ...new Array<number>(20).fill(1)]

/** A header, and the client it states; `undefined`: it is refused. */
const TABLE: [Buffer, string | undefined][] = [
  [latin1('PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n'), '192.0.2.7'],
  [latin1('PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n'), '2001:db8::7'],
  [latin1('PROXY UNKNOWN\r\n'), ''],
  [latin1('PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n'), ''],
  [latin1(`PROXY UNKNOWN ${'f'.repeat(91)}\r\n`), ''],
  [latin1(`PROXY UNKNOWN ${'f'.repeat(92)}\r\n`), undefined],
  [latin1('PROXY TCP4 192.0.2.7 192.0.2.1 56324\r\n'), undefined],
  [latin1('PROXY TCP4 192.0.2.7 192.0.2.1 56324 65536\r\n'), undefined],
  [latin1('PROXY TCP4 2001:db8::7 192.0.2.1 56324 443\r\n'), undefined],
  [latin1('PROXY TCP6 192.0.2.7 192.0.2.1 56324 443\r\n'), undefined],
  [latin1('PROXY UDP4 192.0.2.7 192.0.2.1 56324 443\r\n'), undefined],
  [latin1('GET / HTTP/1.1\r\n'), undefined],
  [binary(1, 0x11, FOUR), '192.0.2.7'],
  [binary(1, 0x11, [...FOUR, 4, 0, 1, 0]), '192.0.2.7'],
  [binary(1, 0x21, SIX), '2001:db8::7'],
  [binary(1, 0x31, new Array<number>(216).fill(0)), ''],
  [binary(0, 0x11, FOUR), ''],
  [binary(1, 0, []), ''],
  [binary(1, 0x11, FOUR.slice(1)), undefined],
  [binary(1, 0x21, SIX.slice(1)), undefined],
  [binary(2, 0x11, FOUR), undefined],
  [binary(1, 0x11, new Array<number>(BYTES_MAX - 15).fill(0)), undefined],
]

test('a header is read wherever it is cut', () => {
  for (const [header, client] of TABLE) {
    const all = Buffer.concat([header, latin1('GET / HTTP/1.1\r\n')])
    const expected = client === undefined ? 'refused' : { bytes: header.length, client }
    assert.deepEqual(parseProxyHeader(all, BYTES_MAX), expected, shownOf(header))
    if (client === undefined) continue
    for (let length = 0; length < header.length; length++)
      assert.equal(parseProxyHeader(all.subarray(0, length), BYTES_MAX), undefined, `${length} bytes`)
  }
})

test('random bytes are refused, or more are needed, or they are a header', () => {
  const words = [
    'PROXY ',
    'TCP4 ',
    'UNKNOWN',
    '\r\n',
    '1.2.3.4 ',
    '::1 ',
    '443',
    SIGNATURE,
    '!',
    '\x11',
    '\0',
    '\x0c',
  ]
  const input = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 })), { maxLength: 8 })
  fc.assert(
    fc.property(input, (parts) => {
      const bytes = latin1(parts.join(''))
      const parsed = parseProxyHeader(bytes, BYTES_MAX)
      if (typeof parsed === 'object') assert.ok(parsed.bytes <= bytes.length)
    }),
  )
})

const REQUESTS = 'GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\n'

onCores('a connection has the client that its header states', async (start) => {
  const server = await start({
    routes: { '/*': ({ url, remoteAddress }) => `${new URL(url).pathname} ${remoteAddress}` },
    proxyProtocol: true,
    limits: { headerBytesMax: BYTES_MAX },
  })
  const port = Number(new URL(server.url).port)
  for (const [header, client] of TABLE) {
    const cut = header.length >> 1
    const pieces = [header.subarray(0, cut), Buffer.concat([header.subarray(cut), latin1(REQUESTS)])]
    const isRefused = client === undefined
    const { responses, closed } = await converse(port, pieces, { responses: isRefused ? 1 : 2 })
    const bodies = responses.map(({ body }) => body.trimEnd())
    if (isRefused) {
      assert.deepEqual([responses[0]?.status, closed], [400, true], shownOf(header))
      assert.match(bodies[0] ?? '', /PROXY protocol/)
    } else {
      const address = client === '' ? '127.0.0.1' : client
      assert.deepEqual(bodies, [`/a ${address}`, `/b ${address}`], shownOf(header))
    }
  }
  assert.equal(server.stats().errors, 0)
})

onCores('the header states the peer, and trusted proxies state the client behind it', async (start) => {
  const server = await start({
    routes: { '/': ({ url, ip }) => [url, ip] },
    proxyProtocol: true,
    trustProxy: '192.0.2.0/24',
  })
  const port = Number(new URL(server.url).port)
  const fields = 'host: x\r\nx-forwarded-for: 203.0.113.9\r\nx-forwarded-proto: https\r\n'
  const request = latin1(`PROXY TCP4 192.0.2.7 192.0.2.1 1 2\r\nGET / HTTP/1.1\r\n${fields}\r\n`)
  const { responses } = await converse(port, [request], { responses: 1 })
  assert.deepEqual(JSON.parse(responses[0].body), ['https://x/', '203.0.113.9'])
})

onCores('a client that does not finish its header is cut in time', async (start) => {
  const server = await start({ routes: { '/': 'ok' }, proxyProtocol: true, limits: { headersMs: 50 } })
  const port = Number(new URL(server.url).port)
  const { closed } = await converse(port, ['PROXY TCP4'], { responses: 1 })
  assert.ok(closed)
})
