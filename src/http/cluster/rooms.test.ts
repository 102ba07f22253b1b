/**
 * Rooms of a server whose workers are threads: every subscriber on every worker receives a message once.
 *
 * The kernel distributes the connections, so clients connect until each worker has one.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { BroadcastChannel } from 'node:worker_threads'
import { until } from '../../base/wait.test.support.ts'
import { zone } from '../../zone/index.ts'
import { serve } from '../serve.ts'
import { frame, RawClient } from '../websocket/client.test.support.ts'
import { Board } from './board.ts'
import { RoomRelay, ROOM_BYTES_MAX } from './rooms.ts'
import type { ZoneServer } from './cluster-server.ts'

const APP = new URL('./app.test.support.js', import.meta.url)
/** Connections after which every worker has one, or the kernel does not distribute them. */
const CLIENTS_MAX = 256

async function start(t: TestContext): Promise<ZoneServer> {
  const web = zone.create('http-rooms', { workers: 2 })
  const server = await serve({ zone: web, app: APP, appExport: 'rooms', port: 0, quiet: true })
  t.after(async () => {
    await server.close({ timeoutMs: 100 })
    await web.close()
  })
  return server
}

/** Connects clients until `isEnough` of their workers, each of which is the first word of a client. */
async function enter(
  { port }: ZoneServer,
  clients: RawClient[],
  isEnough: (workers: ReadonlySet<string>) => boolean,
): Promise<void> {
  const workers = new Set<string>()
  while (!isEnough(workers)) {
    assert.ok(clients.length < CLIENTS_MAX, 'connections are not distributed')
    const client = await RawClient.open(port)
    clients.push(client)
    workers.add((await client.received(1))[0])
  }
}

test('messages reach the members of a room on all workers', async (t) => {
  const server = await start(t)
  const clients: RawClient[] = []
  await enter(server, clients, ({ size }) => size === 2)
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

test('a worker that dies takes its sockets out of their rooms, and all others still receive', async (t) => {
  const server = await start(t)
  const clients: RawClient[] = []
  await enter(server, clients, ({ size }) => size === 2)
  const [lost, rest] = [clients.at(-1)!.words[0], clients[0].words[0]]
  const victims = clients.filter(({ words }) => words[0] === lost)
  const others = clients.filter(({ words }) => words[0] === rest)
  assert.deepEqual([victims.length, others.length], [1, clients.length - 1])
  victims[0].text('die')
  assert.deepEqual(await victims[0].rest(), [lost])
  server.publish('all', 'after its death')
  await Promise.all(others.map((client) => client.received(3)))
  for (const { words } of others)
    assert.deepEqual(words.slice(1).sort(), ['text after its death', 'text last words'])
  await until(async () => (await server.stats()).workers === 2, 'the worker that replaces it')
  await enter(server, others, (workers) => [...workers].some((worker) => worker !== rest))
  const replacing = others.at(-1)!
  replacing.text('from the replacement')
  await Promise.all(others.slice(0, -1).map((client) => client.until(() => isLast(client, 'from the repl'))))
  server.publish('all', 'to all')
  await Promise.all(others.map((client) => client.until(() => isLast(client, 'to all'))))
  for (const client of others) {
    const received = client.words.slice(1)
    const isReplacing = client === replacing
    assert.equal(received.filter((word) => word === 'text from the replacement').length, isReplacing ? 0 : 1)
    assert.equal(received.filter((word) => word === 'text to all').length, 1)
  }
  await Promise.all(others.map((client) => client.close()))
  victims[0].socket.destroy()
})

function isLast({ words }: RawClient, text: string): boolean {
  return words.at(-1)!.startsWith(`text ${text}`)
}

test('messages of one turn are sent as one, and received in one turn', async (t) => {
  const board = new Board()
  const [sender, receiver] = [0, 1].map((row) => new RoomRelay('corespun.test.turns', board, row))
  t.after(() => [sender, receiver].forEach((relay) => relay.close()))
  const received: string[] = []
  const turns: number[] = []
  const posted = t.mock.method(BroadcastChannel.prototype, 'postMessage')
  const all = new Promise<void>((resolve) => {
    receiver.listen((room, message) => {
      received.push(`${room} ${String(message)}`)
      queueMicrotask(() => turns.push(received.length))
      if (received.length === 4) resolve()
    })
  })
  const bytes = Buffer.of(1) // whose slice() shares its memory
  sender.send('a', 'one')
  sender.send('b', bytes)
  bytes[0] = 2 // the caller's again
  sender.send('a', 'two')
  await Promise.resolve()
  sender.send('a', 'three')
  sender.flush()
  await all
  assert.deepEqual(received, ['a one', 'b 1', 'a two', 'a three'])
  assert.equal(posted.mock.callCount(), 2)
  await Promise.resolve()
  assert.ok(turns[0] >= 3, `${turns}`)
})

test('a message to rooms is refused while too much waits for a worker', (t) => {
  const board = new Board()
  const relays = [0, 1].map((row) => new RoomRelay('corespun.test.rooms', board, row))
  t.after(() => relays.forEach((relay) => relay.close()))
  const half = new Uint8Array(ROOM_BYTES_MAX / 2 + 1)
  relays[0].send('room', half) // nobody listens
  board.setServing(1, true)
  board.listenToRooms(1)
  relays[1].send('room', half) // only this one does
  relays[0].send('room', half)
  assert.throws(() => relays[0].send('room', half), { code: 'HTTP_ROOMS_FULL', message: /worker 1/ })
  relays[1].send('room', half)
  board.receiveRoom(1, half.byteLength)
  relays[0].send('room', half)
  board.setServing(1, true) // another worker replaces it
  relays[0].send('room', half)
  board.listenToRooms(2) // the thread that started both
  relays[0].send('room', half)
  assert.throws(() => relays[0].send('room', half), { message: /wait for the thread that called serve\(\)/ })
})
