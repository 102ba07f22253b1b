/**
 * How connections with TLS end: refused uploads, stops at each moment, clients that leave out an ending, and
 * records that no library sends.
 *
 * TLS adds its own end to that of the connection, and a client may send either without the other.
 */
import assert from 'node:assert/strict'
import { createCipheriv, createHmac } from 'node:crypto'
import { once } from 'node:events'
import type net from 'node:net'
import { Duplex } from 'node:stream'
import tls from 'node:tls'
import { settled, until } from '../../base/wait.test.support.ts'
import { onCores, onServer } from '../cores.test.support.ts'
import { connect as connectPlain } from '../raw.test.support.ts'
import { AUTHORITY, connect, PATIENT, request, SERVER } from './client.test.support.ts'
import { makeCertificate } from './make.ts'

const MIB = 1024 * 1024
const UPLOAD_BYTES = 50 * MIB
const SUITE = 'TLS_AES_128_GCM_SHA256'
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

/** All that a connection receives, until its end. */
async function textOf(socket: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const piece of socket) text += piece.toString('latin1')
  return text
}

/** A connection, and the socket below it. */
async function layered(port: number): Promise<[tls.TLSSocket, net.Socket]> {
  const plain = await connectPlain(port)
  const socket = await connect(port, { socket: plain })
  socket.on('error', () => {})
  return [socket, plain]
}

onServer('a client that has sent all of a refused upload sees why', async (start) => {
  const server = await start({
    limits: { ...PATIENT, bodyBytesMax: MIB },
    tls: SERVER,
    routes: { '/': (asked) => asked.text(), '/login': () => new Response('who?', { status: 401 }) },
  })
  const piece = Buffer.alloc(MIB, 'x')
  for (const [path, status, bytes] of [
    ['/', 413, UPLOAD_BYTES],
    ['/login', 401, MIB],
  ] as const) {
    const [socket, plain] = await layered(server.port)
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`)
    for (let sent = 0; sent < bytes; sent += MIB) {
      const error = await new Promise<Error | null | undefined>((done) => socket.write(piece, done))
      assert.ok(error === null || error === undefined, `after ${sent} bytes: ${error?.message}`)
    }
    if (status === 401) socket.end()
    assert.match(await textOf(socket), new RegExp(`^HTTP/1\\.1 ${status} `))
    plain.destroy()
  }
  await until(() => server.stats().connections === 0)
})

onServer('an upload of 50 MB to a handler that does not read it gets a response', async (start) => {
  const server = await start({
    limits: { ...PATIENT, bodyBytesMax: UPLOAD_BYTES },
    tls: SERVER,
    routes: { '/': () => new Response('who?', { status: 401 }) },
  })
  const body = new Uint8Array(UPLOAD_BYTES)
  for (let round = 0; round < 3; round += 1)
    assert.equal((await request(server.port, '/', { body })).status, 401)
})

onCores('a stop closes handshakes at once, and waits for requests', async (start) => {
  let respond = (_: string): void => {}
  const responded = new Promise<string>((resolve) => (respond = resolve))
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': () => responded } })
  const asking = await connect(server.port)
  asking.write(GET)
  await until(() => server.stats().requests === 1)
  const [silent, begun] = [await connectPlain(server.port), await connectPlain(server.port)]
  begun.write(Buffer.from('160301', 'hex'))
  await until(() => server.stats().connectionsTotal === 3 || server.stats().core === 'node')
  const ended = (socket: net.Socket): Promise<void> =>
    new Promise((resolve) => socket.resume().on('end', resolve).on('close', resolve))
  const ends = [silent, begun].map(ended)
  const closed = server.close({ timeoutMs: 60_000 })
  await settled(Promise.all(ends), 'the ends of both handshakes')
  silent.destroy()
  begun.destroy()
  respond('late')
  assert.match(await textOf(asking), /late$/)
  await closed
})

onServer('a client that ends its socket without close_notify gets its response', async (start) => {
  let respond = (_: string): void => {}
  const responded = new Promise<string>((resolve) => (respond = resolve))
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': () => responded } })
  const [socket, plain] = await layered(server.port)
  socket.write(GET)
  await until(() => server.stats().requests === 1)
  plain.end()
  respond('late')
  assert.match(await textOf(socket), /late$/)
  await until(() => server.stats().connections === 0)
  plain.destroy()
})

onCores('a record that is cut by the end of its socket is dropped', async (start) => {
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': 'Hello' } })
  for (const bytes of ['17', '1703030100', `1703030100${'00'.repeat(99)}`, '170303000100', '2a0303000100']) {
    const [socket, plain] = await layered(server.port)
    plain.end(Buffer.from(bytes, 'hex'))
    await until(() => server.stats().connections === 0)
    socket.destroy()
    plain.destroy()
  }
  assert.equal((await request(server.port)).body, 'Hello')
})

/** Makes records of a client of TLS 1.3, whose traffic secret is `secret`. */
function forger(secret: Buffer): (content: string, paddingBytes: number) => Buffer {
  const expand = (label: string, bytes: number): Buffer => {
    const info = Buffer.from(
      `\0${String.fromCharCode(bytes, label.length + 6)}tls13 ${label}\0\x01`,
      'latin1',
    )
    return createHmac('sha256', secret).update(info).digest().subarray(0, bytes)
  }
  const [key, iv] = [expand('key', 16), expand('iv', 12)]
  let sequence = 0
  return (content, paddingBytes) => {
    const nonce = Buffer.from(iv)
    nonce.writeUInt32BE((iv.readUInt32BE(8) ^ sequence) >>> 0, 8)
    sequence += 1
    const inner = Buffer.concat([Buffer.from(`${content}\x17`, 'latin1'), Buffer.alloc(paddingBytes)])
    const head = Buffer.from([0x17, 3, 3, (inner.length + 16) >> 8, (inner.length + 16) & 0xff])
    const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(head)
    return Buffer.concat([head, cipher.update(inner), cipher.final(), cipher.getAuthTag()])
  }
}

/** A connection with TLS 1.3, the socket below it, and what makes records of its client. */
async function forged(port: number): Promise<[tls.TLSSocket, net.Socket, ReturnType<typeof forger>]> {
  const plain = await connectPlain(port)
  let line = ''
  const socket = tls.connect({ socket: plain, ca: AUTHORITY.cert, servername: 'localhost', ciphers: SUITE })
  socket.on('error', () => {})
  socket.on('keylog', (each: Buffer) => {
    if (each.toString().startsWith('CLIENT_TRAFFIC_SECRET_0 ')) line = each.toString()
  })
  await settled(once(socket, 'session'), 'what follows the end of a handshake')
  return [socket, plain, forger(Buffer.from(line.trim().split(' ')[2], 'hex'))]
}

onServer('a request with little data in much padding is read in turns with others', async (start) => {
  const server = await start({
    limits: PATIENT,
    tls: SERVER,
    routes: { '/': async (asked) => `${(await asked.text()).length} bytes` },
  })
  const [socket, plain, record] = await forged(server.port)
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300\r\nConnection: close\r\n\r\n'
  const nothing = (): Buffer[] => Array.from({ length: 30 }, () => record('', 16_000))
  const padded = (text: string): Buffer[] => [...text].map((each) => record(each, 16_000))
  const body = 'x'.repeat(300)
  plain.write(Buffer.concat([...nothing(), ...padded(head), ...nothing(), ...padded(body), ...nothing()]))
  const others = Array.from({ length: 5 }, () => request(server.port, '/', { body: 'abc' }))
  for (const other of await Promise.all(others)) assert.equal(other.body, '3 bytes')
  assert.match(await textOf(socket), /300 bytes$/)
  plain.destroy()
})

onServer(
  'what follows the end of a handshake at once is read, also when it is received in parts',
  async (start) => {
    const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': 'Hello' } })
    const plain = await connectPlain(server.port)
    const held: Buffer[] = []
    let line = ''
    // Its hello is sent, and the end of its handshake is held back.
    const below = new Duplex({
      read: () => {},
      write: (piece: Buffer, _encoding, done) => {
        if (line === '') plain.write(piece)
        else held.push(piece)
        done()
      },
    })
    plain.on('data', (piece: Buffer) => below.push(piece))
    const socket = tls.connect({ socket: below, ca: AUTHORITY.cert, servername: 'localhost', ciphers: SUITE })
    let received = ''
    socket.on('error', () => {}).on('data', (piece: Buffer) => (received += piece.toString()))
    socket.on('keylog', (each: Buffer) => {
      if (each.toString().startsWith('CLIENT_TRAFFIC_SECRET_0 ')) line = each.toString()
    })
    await until(() => held.length > 0)
    const record = forger(Buffer.from(line.trim().split(' ')[2], 'hex'))
    const padding = Array.from({ length: 6 }, () => record('', 16_000))
    plain.write(Buffer.concat([...held, ...padding, record(GET, 0)]))
    await until(() => received.endsWith('Hello'))
    socket.destroy()
    plain.destroy()
  },
)

onCores('a client that sends records without data is closed', async (start) => {
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': 'Hello' } })
  const [socket, plain, record] = await forged(server.port)
  plain.write(Buffer.concat(Array.from({ length: 1000 }, () => record('', 0))))
  await until(() => server.stats().connections === 0)
  assert.equal((await request(server.port)).body, 'Hello')
  socket.destroy()
  plain.destroy()
})

onCores('certificates that cannot be used leave those that there are', async (start) => {
  const server = await start({ limits: PATIENT, tls: SERVER, routes: { '/': 'Hello' } })
  const kept = await connect(server.port)
  const past = makeCertificate({ name: 'past', from: new Date(0), to: new Date(1e12) })
  const rows = [
    ['HTTP_TLS_CERTIFICATE', { cert: SERVER.cert.slice(0, 200), key: SERVER.key }],
    ['HTTP_TLS_CERTIFICATE', { cert: SERVER.cert.replace(/M/g, '!'), key: SERVER.key }],
    ['HTTP_TLS_KEY', { cert: SERVER.cert, key: SERVER.key.slice(0, 80) }],
    ['HTTP_TLS_KEY', { cert: SERVER.cert, key: AUTHORITY.key }],
    ['HTTP_TLS_EXPIRED', past],
    ['HTTP_TLS_UNREADABLE', { cert: '/none.pem', key: SERVER.key }],
  ] as const
  for (const [code, options] of rows) await assert.rejects(server.setTls(options), { code })
  assert.equal((await request(server.port)).names, 'DNS:localhost')
  kept.write(GET.replace('Host', 'Connection: close\r\nHost'))
  assert.match(await textOf(kept), /Hello$/)
})
