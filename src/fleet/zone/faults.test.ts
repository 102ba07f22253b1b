/**
 * What calls promise when messages are lost, delayed and repeated, and hosts die, leave or are cut off, by
 * seeds: each ends, has run at most once, and what it returns is its own.
 *
 * Functions are played, in simulated time. A failing seed is in the name of the failure: CORESPUN_SEED runs
 * that one alone, CORESPUN_SEEDS=1000 plays 1,000 instead of 120.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../../transport/index.ts'
import { ZoneError } from '../../zone/index.ts'
import type { RemoteZone } from '../../zone/internal.ts'
import { Fleet } from '../connect.ts'
import { seeded } from '../../test/played.test.support.ts'
import type { Clock } from '../engine/engine.ts'
import { type Faults, Simulation } from '../engine/memory/simulation.ts'
import { FleetHost } from '../host/host.ts'

const LOSES = { loss: 0.1, repeat: 0, delayMs: 40 }
const QUIET = { loss: 0, repeat: 0, delayMs: 0 }
const ZONE = 'z'
const CALLS = 30
const SPAN_MS = 4000
/** Calls begin within two spans and last one at most; a host is asked once a second; messages get lost. */
const ENDED_MS = 40_000
const VALUE_BYTES_MAX = 1_000_000

/** Which call it is, how long it runs, whether it fails. */
type Play = readonly [call: number, spanMs: number, fails: boolean]
interface Module {
  work(...play: Play): string
}

/** What hosts do beside being cut off: die or leave, only leave, or neither. */
type HostEnd = 'dies' | 'leaves' | 'stays'
const ENDS = ['TASK_TIMEOUT', 'aborted', 'error', 'value']
const ALL_ENDS = ['HOST_LOST', 'not run', ...ENDS]

/** Hosts that come and go, and how often each call has run. */
class World extends Simulation {
  readonly runs = Array.from({ length: CALLS }, () => 0)
  readonly hosts = new Map<string, FleetHost>()
  isQuiet = false
  readonly #end: HostEnd

  constructor(seed: number, end: HostEnd, clock: Clock) {
    super(seed, QUIET, clock)
    this.#end = end
  }

  /** Where hosts only leave nothing is lost, and all is on its way for a moment, in its order. */
  override carry(client: string, arrive: () => void): void {
    if (this.#end === 'leaves') this.clock.after(5, arrive)
    else super.carry(client, arrive)
  }

  async host(id: string): Promise<void> {
    const engine = this.connect(id)
    const fleet = new Fleet(engine, VALUE_BYTES_MAX)
    const zone = { begin: this.#player(() => this.#dies(id, fleet)) } as unknown as RemoteZone
    const offer = { id, name: ZONE, url: 'file:///z.js', version: 'v', zone, jobsMax: 0, leaseMs: 1000 }
    const made = new FleetHost(fleet, { ...offer, inFlightMax: 4 }, undefined)
    try {
      await made.open()
    } catch {
      await fleet.close()
      return this.host(`${id}-`)
    }
    this.hosts.set(id, made)
    this.clock.after(this.random() * 2 * SPAN_MS, () => {
      if (this.isQuiet || !this.hosts.has(id)) return
      if (this.#end === 'leaves') return this.#leaves(id, fleet, 3 * SPAN_MS)
      if (this.#end === 'dies' && this.random() < 0.3) return this.#dies(id, fleet)
      if (this.#end === 'dies' && this.random() < 0.5) return this.#leaves(id, fleet, 300)
      this.cut.add(id)
      this.clock.after(this.random() * SPAN_MS, () => this.cut.delete(id))
    })
  }

  #dies(id: string, fleet: Fleet): void {
    if (this.isQuiet || this.#end !== 'dies' || !this.hosts.delete(id)) return
    void fleet.engine.close()
    void this.host(`${id}-`)
  }

  #leaves(id: string, fleet: Fleet, timeoutMs: number): void {
    const made = this.hosts.get(id)!
    this.hosts.delete(id)
    void made.close({ timeoutMs }).then(() => fleet.close())
    void this.host(`${id}-`)
  }

  #player(die: () => void): RemoteZone['begin'] {
    return (_, [, args], resolve, reject, limits) => {
      const [call, spanMs, fails] = decode(args as Uint8Array) as Play
      this.runs[call]++
      if (this.random() < 0.1) this.clock.after(this.random() * spanMs, die)
      const ends = [
        this.clock.after(spanMs, () =>
          resolve(fails ? [true, encode(new RangeError(`call ${call}`))] : [false, encode(`call ${call}`)]),
        ),
      ]
      const timeoutMs = limits?.timeoutMs
      const late = (): void =>
        stop(new ZoneError('TASK_TIMEOUT', { zone: ZONE, timeoutMs: timeoutMs!, started: true }))
      const stop = (why: unknown): void => {
        for (const end of ends) end()
        reject(why)
      }
      if (timeoutMs !== undefined) ends.push(this.clock.after(timeoutMs, late))
      return stop
    }
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }
}

/** How a call has ended; what has run elsewhere, or was not asked for, is an error. */
async function ended(world: World, caller: Fleet, call: number): Promise<string> {
  await world.pause(world.random() * 2 * SPAN_MS)
  const play: Play = [call, world.random() < 0.2 ? world.random() * SPAN_MS : 20, world.random() < 0.2]
  const controller = new AbortController()
  if (world.random() < 0.1)
    world.clock.after(world.random() * 200, () => controller.abort(new Error('enough')))
  const timeoutMs = world.random() < 0.5 ? 1 + world.random() * SPAN_MS : undefined
  const { signal } = controller
  try {
    const value = await caller.zone<Module>(ZONE).run('work', play, { signal, timeoutMs })
    assert.deepEqual([value, play[2], world.runs[call]], [`call ${call}`, false, 1])
    return 'value'
  } catch (error) {
    assert.ok(error instanceof Error && !(error instanceof assert.AssertionError), error as Error)
    if (error instanceof RangeError) {
      assert.deepEqual([error.message, play[2], world.runs[call]], [`call ${call}`, true, 1])
      return 'error'
    }
    if (signal.aborted && error === signal.reason) return 'aborted'
    const { code = '' } = error as { readonly code?: string }
    if (code === 'HOST_LOST' || code === 'TASK_TIMEOUT') return code
    if (code === 'ZONE_NOWHERE' || code === 'ZONE_FULL' || code === 'FLEET_TIMEOUT') return 'not run'
    throw error
  }
}

async function calls(world: World, faults: Faults): Promise<readonly string[]> {
  const caller = new Fleet(world.connect('caller'), VALUE_BYTES_MAX)
  await Promise.all(['one', 'two', 'three'].map((id) => world.host(id)))
  world.faults = faults
  const ends = await Promise.all(world.runs.map((_, call) => ended(world, caller, call)))
  // Also a call without a deadline, by the questions whether it runs.
  assert.ok(world.clock.nowMs() < ENDED_MS, `the last call has ended after ${world.clock.nowMs()} ms`)
  world.isQuiet = true
  world.faults = QUIET
  world.cut.clear()
  // What is still on its way arrives, and what is not cancelled ends.
  await world.pause(2 * SPAN_MS)
  for (const [call, runs] of world.runs.entries())
    assert.ok(
      runs <= (ends[call] === 'not run' ? 0 : 1),
      `call ${call} (${ends[call]}) has run ${runs} times`,
    )
  for (const host of world.hosts.values()) assert.equal(host.inFlight, 0)
  return ends
}

async function played(faults: Faults, end: HostEnd, each: readonly string[]): Promise<void> {
  const seen = new Set<string>()
  let runs = 0
  await seeded(120, async (seed, clock) => {
    const ends = await calls(new World(seed, end, clock), faults)
    assert.ok(end !== 'leaves' || !ends.includes('HOST_LOST'), 'a call was lost')
    for (const each of ends) seen.add(each)
    runs++
  })
  if (runs > 10)
    assert.deepEqual(
      each.filter((one) => !seen.has(one)),
      [],
    )
}

test('each call ends once, has run at most once, and has its own value, whatever is lost or dies', () =>
  played(LOSES, 'dies', ALL_ENDS))

// An engine delivers at most once. Where a network repeats nevertheless, hosts that live run nothing twice.
test('a message that comes again runs nothing again', () =>
  played({ ...LOSES, repeat: 0.2 }, 'stays', ALL_ENDS))

test('hosts that leave lose no call that is on its way to them', () => played(QUIET, 'leaves', ENDS))
