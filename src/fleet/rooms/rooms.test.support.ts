/**
 * What rooms over machines promise, as tests that run on any engine, with servers of both cores and of zones.
 *
 * A machine is a connection of its own here. Each test has names that no other has.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { type HttpServer, type ServerSocket, type ZoneServer, serve } from '../../http/index.ts'
import { RawClient } from '../../http/client.test.support.ts'
import { zone } from '../../zone/index.ts'
import type { Fleet } from '../connect.ts'
import { newName } from '../engine/conformance.test.support.ts'

/** All sockets are in one room; the first message names the worker. */
const APP = new URL('../../http/cluster/app.test.support.js', import.meta.url)
/** Connections after which every worker has one, or the kernel does not distribute them. */
const CLIENTS_MAX = 256
const isWindows = process.platform === 'win32'
const CORES = isWindows ? (['node'] as const) : (['native', 'node'] as const)

const ROUTES = {
  '/': {
    websocket: {
      open(socket: ServerSocket): void {
        socket.subscribe('all')
        socket.send('entered')
      },
      message: (socket: ServerSocket, message: string | Uint8Array): void => socket.publish('all', message),
      close: (socket: ServerSocket): void => socket.publish('all', 'left'),
    },
  },
}

type Server = HttpServer | ZoneServer
type Start = (rooms: string) => Promise<Server>
type Body = (start: Start, fleets: readonly [Fleet, Fleet], name: string, t: TestContext) => Promise<void>

/** The tests, with connections of that kind. */
export function roomTests(kind: string, connect: () => Promise<Fleet>): void {
  const check = (name: string, body: Body): void => {
    for (const core of CORES)
      test(`${kind}: ${name} (${core})`, async (t) => {
        const fleets = [await connect(), await connect()] as const
        const servers: Server[] = []
        const start: Start = async (rooms) => {
          const shared = fleets[servers.length % 2].rooms(rooms)
          servers.push(await serve({ port: 0, quiet: true, core, rooms: shared, routes: ROUTES }))
          return servers.at(-1)!
        }
        try {
          await body(start, fleets, newName(), t)
        } finally {
          await Promise.all(servers.map((server) => server.close({ timeoutMs: 0 })))
          await Promise.all(fleets.map((fleet) => fleet.close()))
        }
      })
  }
  ofThreads(check)
  test(`${kind}: every worker of every server has a message once`, { skip: isWindows }, (t) =>
    ofZones(t, connect),
  )
}

function ofThreads(check: (name: string, body: Body) => void): void {
  check('a message reaches the members at all servers of the name once', async (start, fleets, name) => {
    const servers = [await start(name), await start(name), await start(name), await start(newName())]
    const clients = await Promise.all(servers.map(({ port }) => entered(port)))
    const [first, second, third, other] = clients
    first.text('from the first')
    for (const client of [second, third]) assert.equal((await client.received(2))[1], 'text from the first')
    servers[1].publish('all', new Uint8Array([1, 2, 3]))
    servers[1].publish('nobody', 'is there')
    fleets[0].rooms(name).publish('all', 'from a program')
    const expected = ['bytes 010203', 'text from a program']
    for (const client of [first, second, third]) {
      await client.until(() => expected.every((word) => client.words.includes(word)))
      const rest = client.words.filter((word) => expected.includes(word))
      assert.deepEqual([...rest].sort(), expected)
    }
    assert.equal(other.words.length, 1)
    await Promise.all(clients.map((client) => client.close()))
  })

  check('messages of one publisher keep their order, those too that are large', async (start, _, name) => {
    const servers = [await start(name), await start(name)]
    const client = await entered(servers[1].port)
    const large = 'x'.repeat(3_000_000)
    const texts = ['0', '1', large, '3']
    for (const text of texts.slice(0, 2)) servers[0].publish('all', text)
    await setImmediate()
    for (const text of texts.slice(2)) servers[0].publish('all', text)
    assert.deepEqual(
      (await client.received(5)).slice(1),
      texts.map((text) => `text ${text}`),
    )
    await client.close()
  })

  check('the last message of a socket that closes reaches the others', async (start, _, name) => {
    const [one, other] = [await start(name), await start(name)]
    const [leaving, staying] = [await entered(one.port), await entered(other.port)]
    await one.close({ timeoutMs: 0 })
    assert.equal((await staying.received(2))[1], 'text left')
    one.publish('all', 'after its end')
    leaving.socket.destroy()
    await staying.close()
  })
}

async function entered(port: number): Promise<RawClient> {
  const client = await RawClient.open(port)
  await client.received(1)
  return client
}

/** Two servers of two workers each, and one in this thread. */
async function ofZones(t: TestContext, connect: () => Promise<Fleet>): Promise<void> {
  const fleets = [await connect(), await connect(), await connect()]
  const name = newName()
  const zones = [0, 1].map(() => zone.create(newName(), { workers: 2 }))
  const shared = { port: 0, quiet: true }
  const [one, two, here] = await Promise.all([
    serve({ ...shared, zone: zones[0], app: APP, appExport: 'rooms', rooms: fleets[0].rooms(name) }),
    serve({ ...shared, zone: zones[1], app: APP, appExport: 'rooms', rooms: fleets[1].rooms(name) }),
    serve({ ...shared, routes: ROUTES, rooms: fleets[2].rooms(name) }),
  ])
  t.after(async () => {
    await Promise.all([one, two, here].map((server) => server.close({ timeoutMs: 100 })))
    await Promise.all([...zones, ...fleets].map((each) => each.close()))
  })
  const clients = [await entered(here.port), ...(await everywhere(one.port)), ...(await everywhere(two.port))]
  const texts = Array.from({ length: 50 }, (_, index) => `message ${index}`)
  for (const text of texts) clients[1].text(text) // by a worker
  await Promise.all(clients.filter((_, index) => index !== 1).map((client) => client.received(51)))
  two.publish('all', 'by its main thread')
  await Promise.all(clients.map((client) => client.until(() => client.words.at(-1)!.endsWith('main thread'))))
  for (const [index, { words }] of clients.entries()) {
    const expected = [...(index === 1 ? [] : texts), 'by its main thread'].map((text) => `text ${text}`)
    assert.deepEqual(words.slice(1), expected)
  }
  const { sent, dropped, missed, refused } = fleets[0].rooms(name).stats()
  assert.deepEqual({ sent, dropped, missed, refused }, { sent: 50, dropped: 0, missed: 0, refused: 0 })
  await Promise.all(clients.map((client) => client.close()))
}

/** Clients of both workers. */
async function everywhere(port: number): Promise<RawClient[]> {
  const clients: RawClient[] = []
  while (new Set(clients.map(({ words }) => words[0])).size < 2) {
    assert.ok(clients.length < CLIENTS_MAX, 'connections are not distributed')
    clients.push(await entered(port))
  }
  return clients
}
