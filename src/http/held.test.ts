/**
 * Large whole bodies that clients ask for and do not read: the native core has each in memory once, and no
 * more of them than `outBytesTotalMax`.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
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
    const server = await serve({ quiet: true, port: 0, core: 'native', globals: false, limits, routes })
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
