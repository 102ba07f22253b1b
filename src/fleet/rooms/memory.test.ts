/**
 * Rooms over the engine in memory, what their bounds do, and what hostile and lossy networks do to them.
 *
 * The tests of what they promise are in rooms.test.support.ts. A failing seed is in the name of the failure:
 * CORESPUN_SEED runs that one alone.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { serve } from '../../http/index.ts'
import { zone } from '../../zone/index.ts'
import { connect } from '../connect.ts'
import { MemoryEngine } from '../engine/memory/memory.ts'
import { scripted, seeded } from '../../test/played.test.support.ts'
import type { Clock } from '../engine/engine.ts'
import { Simulation } from '../engine/memory/simulation.ts'
import { written } from '../wire.ts'
import { encode } from '../../transport/index.ts'
import { serverConfig } from '../server-config.ts'
import { type RoomsEvent, RoomsLog } from './events.ts'
import { Receiving } from './receiving.ts'
import { roomTests } from './rooms.test.support.ts'
import { FarRooms } from './rooms.ts'
import { ROOMS_BYTES_MAX } from './sending.ts'

roomTests('memory', () => connect('memory:rooms'))

/** An engine whose way to the servers this test has in its hand. */
class Scripted extends MemoryEngine {
  on: (isLinked: boolean) => void = () => {}
  /** Confirmations that are held back. */
  readonly held: (() => void)[] = []
  isHeld = false

  override watchLink(on: (isLinked: boolean) => void): void {
    this.on = on
  }

  override async flush(): Promise<void> {
    if (this.isHeld) await new Promise<void>((resolve) => this.held.push(resolve))
    return super.flush()
  }
}

const PERFECT = { loss: 0, repeat: 0, delayMs: 0 }

function eventsOf(name: string): { readonly seen: (readonly [string, number])[]; end(): void } {
  const seen: (readonly [string, number])[] = []
  const on = (message: unknown): void => {
    const { rooms, kind, messages } = message as RoomsEvent
    if (rooms === name) seen.push([kind, messages])
  }
  subscribe('corespun:fleet:rooms', on)
  return { seen, end: () => unsubscribe('corespun:fleet:rooms', on) }
}

test('what is published while the servers cannot be reached stays here, and others see a gap', async (t) => {
  const received: string[] = []
  const log = eventsOf('lost')
  t.after(() => log.end())
  const warned = new Promise<Error>((resolve) => void process.once('warning', resolve))
  await scripted(async (clock) => {
    const world = new Simulation(1, PERFECT, clock)
    const engine = new Scripted(world.broker, 'one')
    const rooms = new FarRooms(engine, 'lost', 'one')
    const other = new FarRooms(world.connect('two'), 'lost', 'two')
    const joined = await rooms.join(() => {})
    const far = await other.join((room, message) => void received.push(`${room} ${String(message)}`))
    joined.send('a', '1')
    await engine.flush()
    engine.on(false)
    engine.on(false)
    joined.send('a', '2')
    assert.equal(rooms.publish('a', 'of another publisher'), false)
    await engine.flush()
    engine.on(true)
    joined.send('a', '3')
    joined.send('b', new Uint8Array([52]))
    await joined.leave()
    joined.send('a', 'too late')
    await joined.leave()
    await far.leave()
    assert.deepEqual(rooms.stats(), {
      isLinked: true,
      sent: 3,
      received: 0,
      dropped: 2,
      missed: 0,
      refused: 0,
    })
    assert.equal(other.stats().missed, 1)
  })
  assert.deepEqual(received, ['a 1', 'a 3', 'b 52'])
  assert.match((await warned).message, /rooms lost: the servers cannot be reached/)
  assert.deepEqual(log.seen, [
    ['lost', 0],
    ['dropped', 1],
    ['dropped', 1],
    ['found', 0],
    ['missed', 1],
  ])
})

test('what waits for the servers is bounded', () =>
  scripted(async (clock) => {
    const world = new Simulation(1, PERFECT, clock)
    const engine = new Scripted(world.broker, 'one')
    const rooms = new FarRooms(engine, 'full', 'one')
    const half = new Uint8Array(ROOMS_BYTES_MAX / 2)
    engine.isHeld = true
    assert.equal(rooms.publish('a', half), true)
    await Promise.resolve()
    assert.equal(rooms.publish('a', half), false)
    assert.equal(rooms.publish('a', 'short'), true)
    await Promise.resolve()
    engine.isHeld = false
    engine.held.shift()!()
    while (!rooms.publish('a', half)) await engine.flush()
    assert.ok(rooms.stats().dropped >= 1)
  }))

test('a connection that ends is reported to servers that still use it', async () => {
  const fleet = await connect('memory:ended rooms')
  const rooms = fleet.rooms('ended')
  assert.equal(fleet.rooms('ended'), rooms)
  const joined = await rooms.join(() => {})
  const warned = new Promise<Error>((resolve) => void process.once('warning', resolve))
  await fleet.close()
  assert.match((await warned).message, /cannot be reached: close\(\) was called/)
  joined.send('a', 'here alone')
  await joined.leave()
  assert.equal(rooms.stats().dropped, 1)
  assert.throws(() => rooms.publish('a', 'b'), { code: 'FLEET_CLOSED' })
  await assert.rejects(
    rooms.join(() => {}),
    { code: 'FLEET_CLOSED' },
  )
})

test('messages that are on their way when the connection ends count as dropped', async () => {
  const fleet = await connect('memory:ending rooms')
  const rooms = fleet.rooms('ending')
  rooms.publish('a', 'b')
  await fleet.engine.close()
  assert.deepEqual([rooms.stats().sent, rooms.stats().dropped], [0, 1])
  await fleet.close()
})

test('what is not a batch changes nothing, and a receiver that refuses is counted', async () => {
  const fleet = await connect('memory:hostile rooms')
  const rooms = fleet.rooms('hostile')
  const received: unknown[] = []
  const joined = await rooms.join((room, message) => {
    if (message === 'refused') throw new Error('too busy')
    received.push([room, message])
  })
  const piece = encode(['a', 'b'])
  const send = (...parts: readonly unknown[]): void =>
    fleet.engine.messages!.send('corespun.rooms.hostile', written('rooms', ...parts))
  fleet.engine.messages!.send('corespun.rooms.hostile', new Uint8Array([255, 3, 1]))
  fleet.engine.messages!.send('corespun.rooms.hostile', written('other', 'x', 0, 0, true, piece))
  send(7, 0, 0, true, piece)
  send('x', -1, 0, true, piece)
  send('x', 0, 1.5, true, piece)
  send('x', 0, 0, true, 'text')
  for (const batch of [['a'], [5, 'b'], ['', 'b'], ['a'.repeat(513), 'b'], ['a', 5], 'ab'])
    send('x', 0, 0, true, encode(batch))
  send('x', 0, 0, true, new Uint8Array([9, 9, 9]))
  send('x', 0, 1, true, piece) // its beginning is missing
  send('y', 0, 0, false, piece.subarray(0, 2))
  send('y', 1, 0, true, encode(['a', 'refused'])) // the rest of the first is missing
  send('y', 0, 0, true, piece) // again
  send('x', 0, 0, true, piece)
  await fleet.engine.messages!.flush()
  assert.deepEqual(received, [['a', 'b']])
  assert.deepEqual([rooms.stats().missed, rooms.stats().refused, rooms.stats().received], [1, 1, 1])
  await joined.leave()
  await fleet.close()
})

test('publishers that are silent are forgotten, with what they began', async () => {
  const fleet = await connect('memory:many rooms')
  const rooms = fleet.rooms('many')
  let count = 0
  const joined = await rooms.join(() => void count++)
  const piece = encode(['a', 'b'])
  const send = (...parts: readonly unknown[]): void =>
    fleet.engine.messages!.send('corespun.rooms.many', written('rooms', ...parts))
  send('first', 0, 0, false, piece.subarray(0, 2))
  for (let index = 0; index < 4096; index++) send(`x${index}`, 0, 0, true, piece)
  send('first', 0, 1, true, piece.subarray(2))
  await fleet.engine.messages!.flush()
  assert.equal(count, 4096)
  await joined.leave()
  await fleet.close()
})

test('publishers that die within a batch leave room for others', () => {
  const received: string[] = []
  const receiving = new Receiving(
    'own',
    new RoomsLog('parts'),
    (_, message) => void received.push(String(message)),
  )
  const piece = encode(['a', 'b'])
  const part = (id: string, number: number, isLast: boolean, bytes: Uint8Array): void =>
    receiving.take(written('rooms', id, 0, number, isLast, bytes))
  const most = new Uint8Array(ROOMS_BYTES_MAX)
  for (const id of ['x', 'y']) part(id, 0, false, most)
  part('z', 0, false, piece.subarray(0, 2))
  part('z', 1, true, piece.subarray(2))
  part('x', 1, true, most) // its beginning has made room
  assert.deepEqual(received, ['b'])
})

/** What each of three servers receives when all three publish on a bad network. */
async function crossing(seed: number, clock: Clock): Promise<void> {
  const world = new Simulation(seed, PERFECT, clock)
  const names = ['one', 'two', 'three']
  const all = names.map((name) => new FarRooms(world.connect(name), 'r', name))
  const seen = all.map(() => [] as string[])
  const joined = []
  for (const [index, rooms] of all.entries())
    joined.push(await rooms.join((_, message) => void seen[index].push(String(message))))
  world.faults = { loss: 0.1, repeat: 0.2, delayMs: 20 }
  for (let round = 0; round < 20; round++) {
    for (const [index, { send }] of joined.entries()) send('a', `${index} ${100 + round}`)
    await new Promise<void>((resolve) => void clock.after(5, resolve))
  }
  await new Promise<void>((resolve) => void clock.after(100, resolve))
  for (const [index, messages] of seen.entries())
    for (const from of [0, 1, 2]) {
      const own = messages.filter((message) => message.startsWith(`${from} `))
      assert.deepEqual(own, [...new Set(own)].sort())
      assert.equal(own.length === 0, from === index)
      const { missed, received } = all[index].stats()
      assert.ok(missed + received <= 40)
    }
}

test('on a network that loses, repeats and delays, each receives in order, once, a part of it', () =>
  seeded(40, crossing))

test('a user of the servers may publish and receive in its rooms alone', () => {
  const config = serverConfig([{ name: 'web', password: 'w', rooms: ['chat'] }])
  assert.equal(config.match(/"corespun\.rooms\.chat"/g)?.length, 2)
  assert.doesNotMatch(config, /JS\.API/)
})

test('wrong arguments are refused by name', async () => {
  await using fleet = await connect('memory:wrong rooms')
  assert.throws(() => fleet.rooms('a b'), { code: 'FLEET_ARGUMENT' })
  for (const room of ['', 'x'.repeat(513), 5 as never])
    assert.throws(() => fleet.rooms('a').publish(room, ''), { code: 'FLEET_ARGUMENT' })
  assert.throws(() => fleet.rooms('a').publish('b', 5 as never), { code: 'FLEET_ARGUMENT' })
  const rooms = { join: 5 } as never
  await assert.rejects(serve({ rooms, routes: {} }), {
    code: 'HTTP_ARGUMENT',
    message: /fleet\.rooms\(name\)/,
  })
})

test('rooms belong to the thread that calls serve(), not to an app module', async () => {
  const web = zone.create('exported-rooms', { workers: 1 })
  const app = 'data:text/javascript,export default { routes: {}, rooms: { join: () => {} } }'
  await assert.rejects(serve({ zone: web, app, port: 0 }), {
    code: 'HTTP_ARGUMENT',
    message: /rooms cannot be exported from the app module: pass it to serve\(\)/,
  })
  await using fleet = await connect('memory:unused rooms')
  const missing = 'data:text/javascript,export default 7'
  const rooms = fleet.rooms('unused')
  await assert.rejects(serve({ zone: web, app: missing, port: 0, rooms }), { code: 'HTTP_APP' })
  const server = await serve({ port: 0, quiet: true, routes: {}, rooms })
  await assert.rejects(serve({ port: server.port, quiet: true, routes: {}, rooms }), {
    code: 'HTTP_PORT_TAKEN',
  })
  await server.close()
  await web.close()
})
