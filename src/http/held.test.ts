/**
 * Large whole bodies that clients ask for and do not read: the native core has each in memory once, and no
 * more of them than `outBytesTotalMax` in all workers of a server.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { zone } from '../zone/index.ts'
import { connect, readResponses } from './raw.test.support.ts'
import { serve } from './serve.ts'

const BYTES = 12 * 1024 * 1024
const CLIENTS = 4
const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`

/** All that comes: the status, and the length of the body. */
async function response(socket: Socket): Promise<[number, number]> {
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece)).resume()
  await once(socket, 'end')
  socket.destroy()
  const { responses } = readResponses(Buffer.concat(pieces).toString('latin1'), [], true)
  return [responses[0].status, responses[0].body.length]
}

const page = new Uint8Array(BYTES).fill(120)
const bodies = {
  'the same bytes': () => page,
  'a copy for each': () => page.slice(),
  'the same string': () => 'x'.repeat(BYTES),
} as const

for (const [name, body] of Object.entries(bodies)) {
  test(`a body that many ask for and do not read is in memory once: ${name}`, async () => {
    const limits = { outBytesTotalMax: BYTES + 1_000_000 }
    const routes = {
      '/': () => body(),
      '/other': () => new Uint8Array(BYTES),
      '/constant': 'x'.repeat(BYTES),
    }
    const server = await serve({ quiet: true, port: 0, core: 'native', limits, routes })
    const sockets = await Promise.all(Array.from({ length: CLIENTS }, () => connect(server.port)))
    for (const socket of sockets) socket.pause().write(GET('/'))
    await until(() => server.stats().requests === CLIENTS, 'the requests')
    await until(() => server.stats().heldBytes > 0, 'a body that waits')
    assert.equal(server.stats().heldBytes, BYTES)
    // Another body has no room beside it; a constant needs none.
    const refused = await connect(server.port)
    refused.write(GET('/other'))
    assert.equal((await response(refused))[0], 503)
    const constants = await Promise.all(Array.from({ length: CLIENTS }, () => connect(server.port)))
    for (const socket of constants) socket.pause().write(GET('/constant'))
    await until(() => server.stats().constants === CLIENTS, 'the constants')
    assert.equal(server.stats().heldBytes, BYTES)
    for (const socket of [...sockets, ...constants]) assert.deepEqual(await response(socket), [200, BYTES])
    assert.equal(server.stats().heldBytes, 0)
    const alone = await connect(server.port)
    alone.write(GET('/other'))
    assert.deepEqual(await response(alone), [200, BYTES])
    await server.close({ timeoutMs: 0 })
  })
}

/** A connection to a worker whose thread `isWanted`. */
async function connectionTo(port: number, isWanted: (thread: string) => boolean): Promise<Socket> {
  let found: Socket | undefined
  await until(async () => {
    const socket = await connect(port)
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const ended = once(socket, 'close').catch(() => []) // the worker may die
    const [bytes] = (await Promise.race([once(socket, 'data').catch(() => []), ended])) as unknown[]
    socket.pause()
    const text = Buffer.isBuffer(bytes) ? bytes.toString('latin1') : ''
    const thread = readResponses(text, [], false).responses[0]?.body
    if (thread !== undefined && isWanted(thread)) found = socket
    else socket.destroy()
    return found !== undefined
  }, 'a connection to a certain worker')
  return found!
}

test('the workers of a server share the bound, whichever stores the bodies', async () => {
  const web = zone.create('http held', { workers: 2, closeMs: 0 })
  const limits = { outBytesTotalMax: BYTES + 1_000_000 }
  const app = new URL('./cluster/app.test.support.js', import.meta.url)
  const large = { app, appExport: 'large', appArgs: [{ bytes: BYTES }] }
  const server = await serve({ quiet: true, port: 0, core: 'native', zone: web, limits, ...large })
  try {
    let first = ''
    const reader = await connectionTo(server.port, (thread) => (first = thread) !== '')
    const other = await connectionTo(server.port, (thread) => thread !== first)
    const later = await connectionTo(server.port, (thread) => thread !== first)
    reader.write(GET('/large'))
    await until(async () => (await server.stats()).heldBytes === BYTES, 'a body that waits')
    other.write(GET('/large'))
    assert.equal((await response(other))[0], 503)
    assert.deepEqual(await response(reader), [200, BYTES])
    await until(async () => (await server.stats()).heldBytes === 0, 'the end of the body')
    later.write(GET('/large'))
    assert.deepEqual(await response(later), [200, BYTES])
    // What a worker stored when it died does not count for the others.
    const dying = await connectionTo(server.port, (thread) => thread === first)
    const dyingToo = await connectionTo(server.port, (thread) => thread === first)
    dying.write(GET('/large'))
    await until(async () => (await server.stats()).heldBytes === BYTES, 'a body of the worker that dies')
    dyingToo.write(GET('/dies'))
    await until(async () => {
      const left = await connectionTo(server.port, (thread) => thread !== first)
      left.write(GET('/large'))
      const [status, length] = await response(left)
      return status === 200 && length === BYTES
    }, 'room for a body after the end of the worker that stored one')
    for (const socket of [dying, dyingToo]) socket.destroy()
  } finally {
    const closed = server.close({ timeoutMs: 0 }).catch(() => {})
    await web.close()
    await closed
  }
})
