/**
 * Rooms of a server whose workers are threads: every subscriber on every worker receives a message once.
 *
 * The kernel distributes the connections, so clients connect until each worker has one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zone } from '../../zone/index.ts'
import { serve } from '../serve.ts'
import { frame, RawClient } from '../websocket/client.test.support.ts'
import { Board } from './board.ts'
import { RoomRelay, ROOM_BYTES_MAX } from './rooms.ts'

const APP = new URL('./app.test.support.js', import.meta.url)
/** Connections after which every worker has one, or the kernel does not distribute them. */
const CLIENTS_MAX = 256

test('messages reach the members of a room on all workers', async (t) => {
  const web = zone.create('http-rooms', { workers: 2 })
  const server = await serve({ zone: web, app: APP, appExport: 'rooms', port: 0, quiet: true })
  t.after(async () => {
    await server.close({ timeoutMs: 100 })
    await web.close()
  })
  const clients: RawClient[] = []
  const workers = new Set<string>()
  while (workers.size < 2 && clients.length < CLIENTS_MAX) {
    const client = await RawClient.open(server.port)
    clients.push(client)
    workers.add((await client.received(1))[0])
  }
  assert.equal(workers.size, 2)
  server.publish('all', 'from the main thread')
  await Promise.all(clients.map((client) => client.received(2)))
  clients[0].text('from a client')
  const bytes = new Uint8Array(100_000).fill(7).subarray(0, 50_000)
  await Promise.all(clients.slice(1).map((client) => client.received(3)))
  server.publish('all', bytes)
  await Promise.all(clients.map((client, index) => client.received(index === 0 ? 3 : 4)))
  const expected = ['text from the main thread', 'text from a client', `bytes ${'07'.repeat(50_000)}`]
  for (const [index, { words }] of clients.entries())
    assert.deepEqual(words.slice(1), index === 0 ? [expected[0], expected[2]] : expected)
  assert.throws(() => server.publish('all', 1 as never), { code: 'HTTP_ARGUMENT' })
  for (const client of clients) client.send(frame(0x88))
  await Promise.all(clients.map((client) => client.rest()))
  for (const client of clients) client.socket.destroy()
  await server.close()
  server.publish('all', 'nobody')
})

test('a message to rooms is refused while too much waits for a worker', (t) => {
  const board = new Board()
  const relays = [0, 1].map((row) => new RoomRelay('corespun.test.rooms', board, row))
  t.after(() => relays.forEach((relay) => relay.close()))
  const half = new Uint8Array(ROOM_BYTES_MAX / 2 + 1)
  relays[0].send('room', half) // nobody listens
  board.listenToRooms(1)
  relays[1].send('room', half) // only this one does
  relays[0].send('room', half)
  assert.throws(() => relays[0].send('room', half), { code: 'HTTP_ROOMS_FULL', message: /worker 1/ })
  relays[1].send('room', half)
  board.receiveRoom(1, half.byteLength)
  relays[0].send('room', half)
  board.setServing(1, true) // another worker replaces it
  relays[0].send('room', half)
})
