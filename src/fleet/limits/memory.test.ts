/**
 * Rate limits of several servers in memory, also on a network that loses, repeats, delays and cuts off, with
 * servers that die, by seeds.
 *
 * The bound is checked for each span of time: a server that admits a request has counted everything in it
 * that was admitted before by itself, or by others whose report had arrived. A failing seed is in the name of
 * the failure: CORESPUN_SEED runs that one alone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedCounts } from '../../http/middleware/internal.ts'
import { store } from '../../store/index.ts'
import { decode, encode } from '../../transport/index.ts'
import { connect } from '../connect.ts'
import type { End, Message } from '../engine/engine.ts'
import { MemoryEngine } from '../engine/memory/memory.ts'
import { scripted, seeded } from '../../test/played.test.support.ts'
import { type Faults, Simulation } from '../engine/memory/simulation.ts'
import { serverConfig } from '../server-config.ts'
import { readParts, written } from '../wire.ts'
import { Exchange, limitsSubject } from './exchange.ts'
import { limitTests } from './limits.test.support.ts'
import { FarLimits } from './limits.ts'

limitTests('memory', () => connect('memory:limits'))

const BAD = { loss: 0.15, repeat: 0.2, delayMs: 200 }
const PERFECT = { loss: 0, repeat: 0, delayMs: 0 }
const MOST = 20
const SPAN_MS = 60_000
const INTERVAL_MS = 1000
const RUN_MS = 150_000
const CLIENTS = ['a', 'b'].map((client) => `${MOST}/${SPAN_MS} ${client}`)
const newLog = () => ({ isLinked: true, sent: 0, received: 0, missed: 0 })

interface Admission {
  readonly at: number
  readonly atMs: number
  readonly by: Machine
  readonly client: string
}

/** What happens, in its order. */
class World extends Simulation {
  readonly admissions: Admission[] = []
  #count = 0

  next(): number {
    return this.#count++
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }
}

let machines = 0

/** A server's counts and what connects them, with a record of its batches and of those that arrive. */
class Machine extends MemoryEngine {
  readonly world: World
  readonly counts: SharedCounts
  readonly log = newLog()
  readonly exchange: Exchange
  /** By number: how many requests of each client. */
  readonly batches: Map<string, number>[] = []
  /** When a batch has arrived, by its machine and number. */
  readonly arrived = new Map<string, { readonly at: number; readonly atMs: number }>()
  readonly name: string
  id = ''
  /** So many messages are lost. */
  losses = 0

  constructor(world: World) {
    const name = `machine ${++machines}`
    super(world.broker, name)
    this.name = name
    this.world = world
    this.counts = new SharedCounts(name, () => world.epochMs + world.clock.nowMs())
    this.exchange = new Exchange(this, 'test', this.counts, this.log, INTERVAL_MS)
  }

  override send(subject: string, bytes: Uint8Array): void {
    const [, id, , batches] = readParts(bytes)! as unknown as [string, string, number, Uint8Array[]]
    const batch = decode(batches[0]) as (string | number)[]
    const counts = batch.flatMap((key, at) =>
      at % 2 === 0 ? [[key, batch[at + 1]] as [string, number]] : [],
    )
    this.id = id
    this.batches.push(new Map(counts))
    if (this.losses > 0) this.losses--
    else super.send(subject, bytes)
  }

  override listen(subject: string, on: (message: Message) => void): Promise<End> {
    return super.listen(subject, (message) => {
      const [, id, number, batches] = readParts(message.bytes)! as unknown as [
        string,
        string,
        number,
        unknown[],
      ]
      for (const at of batches.keys()) {
        const batch = `${id} ${number - at}`
        if (!this.arrived.has(batch))
          this.arrived.set(batch, { at: this.world.next(), atMs: this.world.clock.nowMs() })
      }
      on(message)
    })
  }

  take(client: string): boolean {
    const { allowed } = this.counts.take(client, MOST, SPAN_MS)
    const { world } = this
    if (allowed) world.admissions.push({ at: world.next(), atMs: world.clock.nowMs(), by: this, client })
    return allowed
  }

  /** As a crash. */
  die(): void {
    this.exchange.stop()
    void this.close()
  }
}

/** When a machine has received that another one has admitted its `index`th request of a client. */
function arrivalOf(by: Machine, client: string, index: number, to: Machine) {
  let sum = 0
  const number = by.batches.findIndex((batch) => (sum += batch.get(client) ?? 0) > index)
  return number < 0 ? undefined : to.arrived.get(`${by.id} ${number}`)
}

type Checked = Admission & { readonly index: number }

function admissionsOf(world: World, client: string): Checked[] {
  const counts = new Map<Machine, number>()
  return world.admissions
    .filter((one) => one.client === client)
    .map((one) => {
      const index = counts.get(one.by) ?? 0
      counts.set(one.by, index + 1)
      return { ...one, index }
    })
}

function checkBound(world: World): void {
  for (const client of CLIENTS) {
    const all = admissionsOf(world, client)
    for (const [end, last] of all.entries()) {
      let counted = 0
      for (let from = end; from >= 0; from--) {
        const { by, index, atMs } = all[from]
        const arrival = by === last.by ? last : arrivalOf(by, client, index, last.by)
        if (arrival === undefined || arrival.at > last.at) continue
        counted++
        const bound = MOST + ((last.atMs - atMs + 1) * MOST) / SPAN_MS
        assert.ok(counted <= bound + 1e-9, `${counted} of ${client} in ${last.atMs - atMs} ms`)
      }
    }
  }
}

/** Whether the servers confirm it, which they may not. */
const begins = ({ exchange }: Machine): Promise<boolean> =>
  exchange.begin().then(
    () => true,
    () => false,
  )

async function traffic(world: World, all: Machine[], faults: Faults): Promise<void> {
  for (const machine of all) await machine.exchange.begin()
  world.faults = faults
  const isHard = faults.loss > 0
  while (world.clock.nowMs() < RUN_MS) {
    const machine = all[Math.floor(world.random() * all.length)]
    machine.take(CLIENTS[Math.floor(world.random() * CLIENTS.length)])
    if (isHard && world.random() < 0.01) {
      const { name } = machine
      world.cut.add(name)
      world.clock.after(world.random() * 20_000, () => world.cut.delete(name))
    }
    if (isHard && world.random() < 0.003) {
      machine.die()
      const another = new Machine(world)
      all[all.indexOf(machine)] = another
      while (!(await begins(another)));
    }
    await world.pause(world.random() * 300)
  }
  await world.pause(5 * INTERVAL_MS)
  for (const machine of all) machine.die()
}

test('no server admits more than the limit of what it can have counted, on a bad network', () =>
  seeded(24, async (seed, clock) => {
    const world = new World(seed, PERFECT, clock)
    const all = [1, 2, 3].map(() => new Machine(world))
    await traffic(world, all, BAD)
    checkBound(world)
  }))

test('without losses a report arrives within the interval and its way, and the rate is used up', () =>
  seeded(8, async (seed, clock) => {
    const world = new World(seed, PERFECT, clock)
    const all = [1, 2, 3].map(() => new Machine(world))
    await traffic(world, all, { loss: 0, repeat: 0.3, delayMs: 100 })
    checkBound(world)
    for (const client of CLIENTS) {
      const admissions = admissionsOf(world, client)
      for (const { by, index, atMs } of admissions)
        for (const to of all.filter((machine) => machine !== by)) {
          const delayMs = arrivalOf(by, client, index, to)!.atMs - atMs
          assert.ok(delayMs <= INTERVAL_MS + 200, `${delayMs} ms`)
        }
      const expected = MOST + (RUN_MS * MOST) / SPAN_MS
      assert.ok(admissions.length >= expected - 3, `${admissions.length} of ${expected}`)
      // What three servers admit at first, before any report.
      assert.ok(admissions.length <= expected + 2 * MOST, `${admissions.length}`)
    }
    for (const { log } of all) assert.equal(log.missed, 0)
  }))

test('what is lost with two messages in a row is counted with the third', async () => {
  for (const [losses, received, missed] of [
    [2, 3, 0],
    [3, 3, 1],
  ])
    await scripted(async (clock) => {
      const world = new World(1, PERFECT, clock)
      const [one, other] = [new Machine(world), new Machine(world)]
      const client = CLIENTS[0]
      await one.exchange.begin()
      await other.exchange.begin()
      one.take(client)
      await world.pause(1.5 * INTERVAL_MS)
      assert.equal(other.log.received, 1)
      one.losses = losses
      for (let message = 0; message < losses; message++) {
        one.take(client)
        await world.pause(INTERVAL_MS)
      }
      await world.pause(INTERVAL_MS)
      assert.deepEqual([other.log.received, other.log.missed], [received, missed])
      await world.pause(5 * INTERVAL_MS)
      const sent = one.batches.length
      await world.pause(5 * INTERVAL_MS)
      assert.equal(one.batches.length, sent, 'a server without requests is silent')
      assert.ok(sent <= losses + 3)
      one.die()
      other.die()
    })
})

/** An engine whose way to the servers this test has in its hand. */
class Scripted extends MemoryEngine {
  on: (isLinked: boolean) => void = () => {}

  override watchLink(on: (isLinked: boolean) => void): void {
    this.on = on
  }
}

test('a server without the others counts by itself, and reports later what still counts', () =>
  scripted(async (clock) => {
    const world = new World(1, PERFECT, clock)
    const engine = new Scripted(world.broker, 'one')
    const limits = new FarLimits(engine, 'lost')
    const counts = new SharedCounts('lost')
    const others = new SharedCounts('lost, others')
    const log = newLog()
    const exchange = new Exchange(world.connect('other'), 'lost', others, log, INTERVAL_MS)
    const take = (): boolean => counts.take('3/1000000000 k', 3, 1_000_000_000).allowed
    const warned = new Promise<Error>((resolve) => void process.once('warning', resolve))
    await exchange.begin()
    await limits.join({ intervalMs: INTERVAL_MS })
    engine.on(false)
    engine.on(false)
    assert.deepEqual([take(), take(), take(), take()], [true, true, true, false])
    await world.pause(20 * INTERVAL_MS)
    assert.deepEqual([limits.stats().isLinked, limits.stats().sent, log.received], [false, 0, 0])
    engine.on(true)
    await world.pause(2 * INTERVAL_MS)
    await limits.leave()
    await limits.leave()
    await exchange.leave()
    assert.match((await warned).message, /limits lost: the servers cannot be reached; this machine counts by/)
    assert.deepEqual([limits.stats(), log.received], [{ isLinked: true, sent: 3, received: 0, missed: 0 }, 3])
    assert.equal(others.take('3/1000000000 k', 3, 1_000_000_000).allowed, false)
  }))

test('a server that joins later reports of the time alone only what still counts', () =>
  scripted(async (clock) => {
    const world = new World(1, PERFECT, clock)
    const [one, other] = [new Machine(world), new Machine(world)]
    const client = CLIENTS[0]
    await other.exchange.begin()
    for (let request = 0; request < 5 * MOST; request++) {
      await world.pause(SPAN_MS / MOST)
      assert.ok(one.take(client))
    }
    await one.exchange.begin()
    await world.pause(2 * INTERVAL_MS)
    assert.deepEqual([other.log.received, other.take(client)], [1, true])
    one.die()
    other.die()
  }))

test('what is not a report changes nothing, and what others report is bounded', () =>
  scripted(async (clock) => {
    const world = new World(1, PERFECT, clock)
    const counts = new SharedCounts('hostile')
    const log = newLog()
    const exchange = new Exchange(world.connect('one'), 'hostile', counts, log, INTERVAL_MS)
    const hostile = world.connect('two')
    const batch = (...entries: unknown[]): Uint8Array => encode(entries)
    const clients = (round: number): unknown[] =>
      Array.from({ length: 32_768 }, (_, at) => (at % 2 === 0 ? `9/60000 ${round}.${at}` : 1))
    await exchange.begin()
    const one = batch('9/60000 k', 1)
    const send = (...parts: unknown[]): void =>
      hostile.send(limitsSubject('hostile'), written('limits', ...parts))
    hostile.send(limitsSubject('hostile'), new Uint8Array([255, 3, 1]))
    hostile.send(limitsSubject('hostile'), written('other', 'x', 0, [one]))
    for (const parts of [
      [7, 0, [one]],
      ['x'.repeat(129), 0, [one]],
      ['x', -1, [one]],
      ['x', 1.5, [one]],
      ['x', 0, one],
      ['x', 0, []],
      ['x', 0, [one, one, one, one]],
      [`${counts.id}.mine`, 0, [one]],
    ])
      send(...parts)
    for (const [number, piece] of [
      'text',
      7,
      new Uint8Array([9, 9]),
      encode('text'),
      batch('9/60000 k'),
      batch('9/60000 k', 'many'),
      batch('k', 1, {}, 1),
      encode([...clients(0), 'k', 1]),
    ].entries())
      send('x', number, [piece])
    await hostile.flush()
    assert.equal(log.received, 0)
    send('y', Number.MAX_SAFE_INTEGER, [one])
    send('y', 0, [one])
    await hostile.flush()
    assert.equal(log.received, 1)
    for (let round = 0; round < 8; round++) send('z', round, [encode(clients(round))])
    await hostile.flush()
    assert.equal(log.received, 1 + 8 * 16_384)
    assert.ok(store.get('corespun.http.rate.counts.hostile').size <= 100_000)
    exchange.stop()
  }))

test('many clients travel in several messages of the size that servers take', () =>
  scripted(async (clock) => {
    const world = new World(1, PERFECT, clock)
    const [one, other] = [new Machine(world), new Machine(world)]
    const rest = 'é'.repeat(200)
    for (let client = 0; client < 4000; client++) one.take(`${MOST}/${SPAN_MS} ${client}${rest}`)
    await other.exchange.begin()
    await one.exchange.begin()
    await world.pause(1.5 * INTERVAL_MS)
    assert.ok(one.batches.length > 1)
    assert.deepEqual([one.log.sent, other.log.received, other.log.missed], [4000, 4000, 0])
    one.die()
    other.die()
  }))

test('limits end with their connection, and wrong arguments are refused by name', async () => {
  const fleet = await connect('memory:ended limits')
  const limits = fleet.limits('ended')
  assert.equal(fleet.limits('ended'), limits)
  assert.throws(() => fleet.limits('a b'), { code: 'FLEET_ARGUMENT' })
  await assert.rejects(limits.join({ intervalMs: 9 }), { code: 'FLEET_ARGUMENT', message: /intervalMs/ })
  assert.equal(await limits.join(), limits)
  await limits.join()
  await fleet.engine.close()
  await assert.rejects(limits.join(), { code: 'FLEET_CLOSED' })
  await fleet.close()
})

test('a user of the servers may report and receive in its limits alone', () => {
  const config = serverConfig([{ name: 'web', password: 'w', limits: ['api'] }])
  assert.equal(config.match(/"corespun\.limits\.api"/g)?.length, 2)
  assert.doesNotMatch(config, /JS\.API/)
})
