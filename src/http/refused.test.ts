/**
 * Whatever a server refuses before a handler is published once, with its reason, on the channel and by
 * `onRefused`; on both cores, where both refuse it.
 *
 * The table has a client for each refusal, the reason, and the status that the client is sent.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { test } from 'node:test'
import tls from 'node:tls'
import { until } from '../base/wait.test.support.ts'
import { onCores, onServer } from './cores.test.support.ts'
import type { HttpRefusal } from './message/refusals.ts'
import { reasonOf, Refusals, REFUSALS_MAX } from './message/refusals.ts'
import { frame, RawClient, Type } from './http2/client.test.support.ts'
import { connect, converse } from './raw.test.support.ts'
import type { HttpServer } from './server.ts'
import type { ServeOptions } from './app/settings.ts'
import { AUTHORITY, SERVER } from './tls/client.test.support.ts'
import { makeCertificate } from './tls/make.ts'

const PATIENT = { headersMs: 90_000 }
const HOST = 'Host: a\r\n\r\n'

/** Sends bytes and reads to the end. */
function sends(bytes: string): (server: HttpServer) => Promise<void> {
  return async ({ port }) => {
    const socket = await connect(port)
    socket.on('end', () => socket.end()).resume()
    if (bytes !== '') socket.write(bytes, 'latin1')
    await once(socket, 'close')
  }
}

/** A handshake with these options, until its end. */
function shakes(options: tls.ConnectionOptions): (server: HttpServer) => Promise<void> {
  return async ({ port }) => {
    const socket = tls.connect({
      port,
      host: '127.0.0.1',
      servername: 'localhost',
      ca: AUTHORITY.cert,
      ...options,
    })
    socket
      .on('error', () => {})
      .resume()
      .write(`GET / HTTP/1.1\r\nConnection: close\r\n${HOST}`)
    await new Promise((resolve) => socket.on('close', resolve))
  }
}

interface Case {
  readonly settings?: Omit<ServeOptions, 'routes'>
  readonly client: (server: HttpServer) => Promise<void>
  readonly what: HttpRefusal['what']
  readonly reason: string
  readonly status?: number
  /** What the detail contains on the native core. */
  readonly detail?: RegExp
  readonly isNativeAlone?: boolean
}

const request = (bytes: string, reason: string, status: number, more: Partial<Case> = {}): Case => ({
  client: sends(bytes),
  what: 'request',
  reason,
  status,
  ...more,
})
const secure = { tls: { ...SERVER, ca: AUTHORITY.cert }, limits: PATIENT }
const handshake = (options: tls.ConnectionOptions, reason: string, more: Partial<Case> = {}): Case => ({
  settings: { tls: SERVER, limits: PATIENT },
  client: shakes(options),
  what: 'handshake',
  reason,
  ...more,
})
const stranger = makeCertificate({ name: 'stranger' })
const old = makeCertificate({ name: 'old', issuer: AUTHORITY, version: 1 })

const CASES: Readonly<Record<string, Case>> = {
  'a missing host': request('GET / HTTP/1.1\r\n\r\n', 'malformed', 400, { detail: /no host/ }),
  'a fragment in a target': request(`GET /a#b HTTP/1.1\r\n${HOST}`, 'malformed', 400, { detail: /target/ }),
  'bytes that are not HTTP': request('\x01\x02\x03\x04\r\n\r\n', 'malformed', 400),
  'a long target': request(
    `GET /${'x'.repeat(400)} HTTP/1.1\r\nConnection: close\r\n${HOST}`,
    'target-too-long',
    414,
    {
      settings: { limits: { headerBytesMax: 600 } },
    },
  ),
  'a long head': request(`GET / HTTP/1.1\r\nX: ${'x'.repeat(2000)}\r\n${HOST}`, 'head-too-large', 431, {
    settings: { limits: { headerBytesMax: 1024 } },
  }),
  'a long body': request(`POST / HTTP/1.1\r\nContent-Length: 9\r\n${HOST}`, 'body-too-large', 413, {
    settings: { limits: { bodyBytesMax: 5, bodyMs: 50 } },
  }),
  'an expectation': request(
    `GET / HTTP/1.1\r\nExpect: more\r\nConnection: close\r\n${HOST}`,
    'expectation',
    417,
  ),
  'another scheme': request(`GET https://a/ HTTP/1.1\r\nConnection: close\r\n${HOST}`, 'other-scheme', 421),
  'half a head': request('GET / HTTP/1.1\r\n', 'head-timeout', 408, {
    settings: { limits: { headersMs: 100 } },
  }),
  'no header of a proxy': {
    ...request(`GET / HTTP/1.1\r\n${HOST}`, 'proxy-header', 400, { settings: { proxyProtocol: true } }),
    what: 'connection',
  },
  'an old TLS': handshake(
    { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' },
    'tls-version',
  ),
  'no common cipher': handshake({ maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA' }, 'no-common-cipher', {
    isNativeAlone: true, // OpenSSL has this one
  }),
  'no common protocol': handshake({ ALPNProtocols: ['smtp'] }, 'no-common-protocol'),
  'HTTP where TLS is expected': {
    ...handshake({}, 'plain-http'),
    client: sends(`GET / HTTP/1.1\r\n${HOST}`),
    detail: /https/,
  },
  'a handshake without an end': {
    ...handshake({}, 'handshake-timeout', { settings: { tls: SERVER, limits: { headersMs: 100 } } }),
    client: sends(''),
  },
  'an sni that hangs': handshake({ servername: 'other' }, 'handshake-timeout', {
    settings: { tls: { ...SERVER, sni: () => new Promise(() => {}) }, limits: { headersMs: 100 } },
    detail: /sni/,
  }),
  'no certificate of a client': handshake({}, 'no-client-certificate', { settings: secure }),
  'an unknown authority': handshake(stranger, 'client-certificate', {
    settings: secure,
    detail: /UnknownIssuer/,
  }),
  'a certificate that has expired': handshake(
    makeCertificate({ name: 'late', issuer: AUTHORITY, to: new Date(Date.now() - 60_000) }),
    'client-certificate',
    { settings: secure, detail: /[eE]xpired/ },
  ),
  'a certificate of X.509 version 1': handshake(old, 'client-certificate', {
    settings: secure,
    detail: /X\.509 version 1/,
    isNativeAlone: true,
  }),
  'HTTP/2 without a host': {
    client: async ({ port }) => {
      const client = await RawClient.connect(port)
      client.socket.write(frame(Type.headers, 5, 1, Buffer.from([0x82, 0x84, 0x86])))
      await until(() => client.frames.some(({ type }) => type === Type.headers))
      client.socket.destroy()
    },
    what: 'request',
    reason: 'malformed',
    status: 400,
    isNativeAlone: true,
  },
  'frames without end': {
    client: async ({ port }) => {
      const client = await RawClient.connect(port)
      client.socket.write(Buffer.concat(Array.from({ length: 4000 }, () => frame(Type.settings, 0, 0))))
      await client.closed
    },
    what: 'goaway',
    reason: 'frames',
    isNativeAlone: true,
  },
  'bytes that are not frames': {
    client: async ({ port }) => {
      const client = await RawClient.connect(port)
      client.socket.write(Buffer.alloc(100, 0xff))
      await client.closed
    },
    what: 'goaway',
    reason: 'protocol',
    isNativeAlone: true,
  },
}

for (const [name, { settings, client, isNativeAlone, detail, ...expected }] of Object.entries(CASES)) {
  const on = isNativeAlone === true ? onServer : onCores
  on(`a refusal is published once: ${name}`, async (start, core) => {
    const [published, called]: HttpRefusal[][] = [[], []]
    const server = await start({ routes: { '/': 'text' }, ...settings, onRefused: (one) => called.push(one) })
    const listener = (one: unknown): void => {
      if ((one as HttpRefusal).localPort === server.port) published.push(one as HttpRefusal)
    }
    subscribe('corespun:http:refused', listener)
    try {
      await client(server)
      await until(() => called.length > 0)
      await new Promise(setImmediate)
    } finally {
      unsubscribe('corespun:http:refused', listener)
    }
    assert.deepEqual(published, called)
    const [{ what, reason, status, remoteAddress, leftOut }] = called
    const status0 = core === 'node' && expected.what === 'handshake' ? 0 : (expected.status ?? status)
    assert.deepEqual(
      { what, reason, status },
      { what: expected.what, reason: expected.reason, status: status0 },
    )
    assert.deepEqual([called.length, leftOut], [1, 0])
    assert.equal(remoteAddress, '127.0.0.1')
    if (core === 'native' && detail !== undefined) assert.match(called[0].detail, detail)
    assert.ok(server.stats().refused >= 1)
  })
}

test('a flood of refusals is published in part, with the number of the others', async () => {
  const received: HttpRefusal[] = []
  const refusals = new Refusals(
    (one) => received.push(one),
    (error) => assert.fail(String(error)),
  )
  const one = { what: 'request', status: 400, protocol: 'HTTP/1.1', remoteAddress: '', detail: '' } as const
  for (let count = 0; count < REFUSALS_MAX + 10; count += 1)
    refusals.report({ ...one, reason: reasonOf(400) })
  assert.equal(received.length, REFUSALS_MAX)
  await new Promise(setImmediate)
  refusals.report({ ...one, reason: 'last' })
  assert.deepEqual([received.at(-1)?.reason, received.at(-1)?.leftOut], ['last', 10])
})

onCores('a request for a WebSocket in HTTP/1.0 gets 426', async (start) => {
  const { port } = await start({ routes: { '/': { websocket: { open: () => {} } } } })
  const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n'
  const lines = `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}`
  const { responses } = await converse(port, [`GET / HTTP/1.0\r\n${lines}${HOST}`], { responses: 1 })
  assert.deepEqual([responses[0]?.status, responses[0]?.headers.upgrade], [426, 'websocket'])
})
