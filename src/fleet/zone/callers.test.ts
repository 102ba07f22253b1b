/**
 * What hosts promise of calls whose callers die, are cut off, or leave, by seeds: such a call ends, and no
 * other one does.
 *
 * Functions are played, in simulated time. A failing seed is in the name of the failure: CORESPUN_SEED runs
 * that one alone, CORESPUN_SEEDS=1000 plays 1,000 instead of 60.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../../transport/index.ts'
import type { RemoteZone } from '../../zone/internal.ts'
import { Fleet } from '../connect.ts'
import { scripted, seeded } from '../../test/played.test.support.ts'
import { type Faults, Simulation } from '../engine/memory/simulation.ts'
import { hasCode } from '../errors.ts'
import { FleetHost } from '../host/host.ts'

const QUIET = { loss: 0, repeat: 0, delayMs: 0 }
const SLOW = { loss: 0, repeat: 0, delayMs: 200 }
const LOSES = { loss: 0.1, repeat: 0, delayMs: 40 }
const ZONE = 'z'
const CALLERS = 5
const CALLS_EACH = 4
const SPAN_MS = 20_000
/** A caller is missed after 7 checks, one each second, and its stream has a second to end. */
const MISSED_MS = 9000
const VALUE_BYTES_MAX = 1_000_000

interface Module {
  work(call: number, spanMs: number): string
  rows(call: number): Generator<number>
}

/** One call, as its caller sees it. */
interface Seen {
  readonly caller: string
  hasEnded: boolean
}

class World extends Simulation {
  readonly seen: Seen[] = []
  readonly dead = new Set<string>()
  /** Callers that were cut off for so long that they may have given up calls. */
  readonly silent = new Set<string>()
  readonly begun = new Set<number>()
  readonly left = new Set<number>()
  /** How many calls of dead callers have ended. */
  missed = 0
  /** Calls that have ended under their callers. */
  readonly wrong: string[] = []

  async host(): Promise<FleetHost> {
    const zone = { begin: this.#begin, execute: this.#execute } as unknown as RemoteZone
    const offer = { id: 'host', name: ZONE, url: 'file:///z.js', version: 'v', zone, leaseMs: 1000 }
    const fleet = new Fleet(this.connect('host'), VALUE_BYTES_MAX)
    const made = new FleetHost(fleet, { ...offer, jobsMax: 0, inFlightMax: 1000 }, undefined)
    await made.open()
    return made
  }

  /** A function that lasts for the second argument of its call. */
  readonly #begin: RemoteZone['begin'] = (_, [, args], resolve, reject) => {
    const [call, spanMs] = decode(args as Uint8Array) as [number, number]
    const end = this.clock.after(spanMs, () => resolve([false, encode(`call ${call}`)]))
    return (why) => {
      end()
      if (hasCode(why, 'CALLER_LOST')) this.#missed(call)
      reject(why)
    }
  }

  /** A generator without an end. */
  readonly #execute = (_: unknown, _name: string, [, args]: unknown[]): Promise<unknown> => {
    const [call] = decode(args as Uint8Array) as [number]
    return Promise.resolve({ value: this.#rows(call) })
  }

  async *#rows(call: number): AsyncGenerator<readonly [boolean, Uint8Array], void> {
    this.begun.add(call)
    try {
      for (let row = 0; ; row++) {
        await this.pause(this.random() * 50)
        yield [false, encode(row)]
      }
    } finally {
      this.left.add(call)
      this.#missed(call, this.faults.loss > 0 || this.silent.has(this.seen[call].caller))
    }
  }

  /** @param isUnread Whether its caller may have given it up, which a slow reader has not read yet. */
  #missed(call: number, isUnread = false): void {
    const { caller, hasEnded } = this.seen[call]
    if (this.dead.has(caller)) this.missed++
    else if (!hasEnded && !isUnread) this.wrong.push(`call ${call} of ${caller} at ${this.clock.nowMs()} ms`)
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }
}

/** A function that is run, or a stream that is read slowly and left. */
async function called(world: World, far: Fleet, caller: string): Promise<string> {
  const seen: Seen = { caller, hasEnded: false }
  const call = world.seen.push(seen) - 1
  await world.pause(world.random() * SPAN_MS)
  const zone = far.zone<Module>(ZONE)
  try {
    if (world.random() < 0.6) {
      assert.equal(await zone.run('work', [call, world.random() * SPAN_MS]), `call ${call}`)
      return 'value'
    }
    const rows = zone.stream('rows', [call], { aheadMax: 2 })
    // A part that is lost is never read: then it is left all the same.
    const enough = world.clock.after(world.random() * SPAN_MS, () => {
      seen.hasEnded = true
      void rows.return()
    })
    try {
      for await (const row of rows) await world.pause(row % 5 === 4 ? world.random() * 8000 : 10)
    } finally {
      enough()
    }
    return 'left'
  } catch (error) {
    assert.ok(hasCode(error, 'HOST_LOST', 'ZONE_NOWHERE', 'FLEET_CLOSED', 'FLEET_TIMEOUT'), error as Error)
    return error.code
  } finally {
    seen.hasEnded = true
  }
}

/** A caller, which may die, be cut off for a while, or close its connection. */
async function caller(world: World, id: string): Promise<string[]> {
  const far = new Fleet(world.connect(id), VALUE_BYTES_MAX)
  const ends = Promise.all(Array.from({ length: CALLS_EACH }, () => called(world, far, id)))
  const atMs = world.random() * 2 * SPAN_MS
  const fate = world.random()
  world.clock.after(atMs, () => {
    if (fate < 0.5) world.cut.add(id)
    if (fate < 0.3) world.dead.add(id)
    else if (fate < 0.5) {
      const spanMs = world.random() * 8000
      if (spanMs > 4000) world.silent.add(id)
      world.clock.after(spanMs, () => world.cut.delete(id))
    } else if (fate < 0.6) {
      // Its calls have failed when it closes, and their host is notified.
      for (const seen of world.seen) if (seen.caller === id) seen.hasEnded = true
      void far.close()
    }
  })
  return fate < 0.3 ? world.pause(atMs).then(() => ['dead']) : ends
}

async function played(world: World, faults: Faults): Promise<string[]> {
  const host = await world.host()
  world.faults = faults
  const ends = (
    await Promise.all(Array.from({ length: CALLERS }, (_, index) => caller(world, `caller ${index}`)))
  ).flat()
  await world.pause(MISSED_MS)
  assert.deepEqual(world.wrong, [])
  assert.equal(host.inFlight, 0, 'calls without a caller')
  assert.deepEqual(world.left, world.begun, 'generators whose finally has run')
  return world.missed > 0 ? [...ends, 'missed'] : ends
}

async function callers(faults: Faults): Promise<void> {
  const seen = new Set<string>()
  let runs = 0
  await seeded(60, async (seed, clock) => {
    for (const end of await played(new World(seed, QUIET, clock), faults)) seen.add(end)
    runs++
  })
  if (runs > 10)
    for (const end of ['dead', 'value', 'left', 'missed']) assert.ok(seen.has(end), `no call is ${end}`)
}

test('a call whose caller has died ends at its host, and no other call does', () => callers(SLOW))

test('messages that are lost end no call before its caller has given it up', () => callers(LOSES))

test('a connection that is closed cancels its calls at once', () =>
  scripted(async (clock) => {
    const world = new World(1, QUIET, clock)
    const host = await world.host()
    const far = new Fleet(world.connect('caller'), VALUE_BYTES_MAX)
    world.seen.push({ caller: 'caller', hasEnded: true })
    const call = far.zone<Module>(ZONE).run('work', [0, SPAN_MS])
    const failed = assert.rejects(call, { code: 'FLEET_CLOSED' })
    while (host.inFlight === 0) await world.pause(1)
    await far.close()
    await failed
    await world.pause(1)
    assert.equal(host.inFlight, 0)
  }))
