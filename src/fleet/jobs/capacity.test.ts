/**
 * What a host has leased and its zone has not begun: by seeds, no such job runs out of time, counts as one
 * that runs, or is lost with its host.
 *
 * The zone is played, in simulated time: it begins so many tasks at once, and calls of others take some of
 * its slots and free them. CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=1000 plays 1,000.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../../transport/index.ts'
import { seeded } from '../../test/played.test.support.ts'
import { Simulation } from '../engine/memory/simulation.ts'
import type { Engine } from '../engine/engine.ts'
import type { JobOutcome, JobTask } from './attempt.ts'
import { Jobs } from './jobs.ts'
import { readRecord, recordsName } from './record.ts'
import { JobTaker } from './taker.ts'

const ZONE = 'z'
const LEASE_MS = 600
const TIMEOUT_MS = 300
/** Longer than the timeout of a job that waits for it. */
const CALL_MS_MAX = 1000
const KEYS = Array.from({ length: 12 }, (_, index) => `job ${index}`)

interface Module {
  work(ms: number, failures: number): string
}

/** The zone of one host: slots, those who wait for one, and what it runs. */
class PlayedZone {
  readonly #world: World
  readonly capacity: number
  readonly begun = new Set<string>()
  readonly waiting = new Map<string, () => void>()
  #calls = 0
  #isOver = false

  constructor(world: World, capacity: number) {
    this.#world = world
    this.capacity = capacity
    this.#callNowAndThen()
  }

  get isFree(): boolean {
    return this.begun.size + this.#calls + this.waiting.size < this.capacity
  }

  /** Somebody else's call takes a slot. */
  #callNowAndThen(): void {
    const { clock, random } = this.#world
    clock.after(random() * 200, () => {
      if (this.#isOver) return
      if (this.isFree) {
        this.#calls++
        clock.after(random() * CALL_MS_MAX, () => {
          this.#calls--
          this.#beginNext()
        })
      }
      this.#callNowAndThen()
    })
  }

  #beginNext(): void {
    const [next] = this.waiting
    if (next === undefined || this.begun.size + this.#calls >= this.capacity) return
    this.waiting.delete(next[0])
    next[1]()
  }

  async run({ key, args, attempt, begun, signal, timeoutMs }: JobTask): Promise<JobOutcome> {
    const isFree = this.isFree
    if (begun === undefined) assert.ok(isFree, `${key} was to begin at once, and waits`)
    else if (!isFree) {
      await new Promise<void>((resolve) => {
        this.waiting.set(key, resolve)
        signal.addEventListener('abort', () => resolve())
      })
      this.waiting.delete(key)
      if (signal.aborted) return [true, encode(signal.reason)]
    }
    this.begun.add(key)
    begun?.()
    assert.ok(this.begun.size + this.#calls <= this.capacity, 'more run than can')
    const [ms, failures] = decode(args) as Parameters<Module['work']>
    assert.ok(ms < (timeoutMs ?? 0))
    await new Promise<void>((resolve) => {
      this.#world.clock.after(ms, resolve)
      signal.addEventListener('abort', () => resolve())
    })
    this.begun.delete(key)
    this.#beginNext()
    if (signal.aborted) return [true, encode(signal.reason)]
    return attempt <= failures ? [true, encode(new RangeError('not yet'))] : [false, encode(key)]
  }

  end(): void {
    this.#isOver = true
  }
}

class World extends Simulation {
  readonly zones = new Map<string, PlayedZone>()
  readonly engines = new Map<string, Engine>()
  readonly takers = new Map<string, JobTaker>()

  async host(name: string): Promise<void> {
    const capacity = 1 + Math.floor(this.random() * 4)
    const zone = new PlayedZone(this, capacity)
    this.zones.set(name, zone)
    const engine = this.connect(name)
    this.engines.set(name, engine)
    const taker = await JobTaker.open({
      engine,
      zone: ZONE,
      id: name,
      jobsMax: capacity,
      leaseMs: LEASE_MS,
      isFree: () => zone.isFree,
      run: (task) => zone.run(task),
    })
    this.takers.set(name, taker)
  }

  /** What the played zones run and what their hosts report as running, at any time. */
  watch(): () => void {
    const { clock } = this
    let end = (): void => {}
    const look = (): void => {
      for (const [name, { begun }] of this.zones) {
        const running = this.takers.get(name)?.running ?? 0
        assert.ok(running <= begun.size, `${name} reports ${running} that run, and ${begun.size} do`)
      }
      end = clock.after(7, look)
    }
    look()
    return () => end()
  }

  /** Returns what waited there. */
  async die(name: string): Promise<readonly string[]> {
    const zone = this.zones.get(name)!
    zone.end()
    this.zones.delete(name)
    this.takers.delete(name)
    const waited = [...zone.waiting.keys()]
    await this.engines.get(name)!.close()
    return waited
  }

  async close(): Promise<void> {
    for (const zone of this.zones.values()) zone.end()
    await Promise.all([...this.takers.values()].map((taker) => taker.close(0, new Error('closes'))))
  }
}

/** Plays one seed. */
async function play(world: World): Promise<void> {
  await Promise.all([world.host('one'), world.host('two')])
  const caller = world.connect('caller')
  const jobs = new Jobs<Module>(caller, ZONE)
  const end = world.watch()
  const results = KEYS.map(async (key) => {
    const failures = world.random() < 0.4 ? 1 : 0
    const args: [number, number] = [world.random() * (TIMEOUT_MS - 1), failures]
    const retry = { attemptsMax: 2, backoffMs: 20, hostsLostMax: 1 }
    await jobs.submit(key, 'work', args, { timeoutMs: TIMEOUT_MS, retry })
    return jobs.result(key)
  })
  /** Keys that waited at the host that has died, which does not count. */
  let waited: readonly string[] = []
  if (world.random() < 0.5) {
    await new Promise<void>((resolve) => world.clock.after(world.random() * 1500, resolve))
    waited = await world.die('one')
  }
  assert.deepEqual(await Promise.all(results), KEYS)
  const records = await caller.keyValue(recordsName(ZONE), { ttlMs: 0 })
  for (const key of KEYS) {
    const record = readRecord((await records.get(key))?.bytes)
    assert.ok((record?.failures ?? 0) <= 1, `${key} has failed more often than it was to`)
    if (waited.includes(key)) assert.equal(record?.hostsLost, 0, `${key} was lost before it began`)
  }
  end()
  await world.close()
}

test('what waits for the zone has not begun, whatever takes its slot and whoever dies', () =>
  seeded(60, (seed, clock) => play(new World(seed, { loss: 0, repeat: 0, delayMs: 40 }, clock)), {
    isParted: true,
  }))
