/**
 * Jobs that wait for others, in simulated time: how soon they begin, what that costs, and by seeds that none
 * is lost and none begins before, when messages are lost, machines are cut off and hosts die.
 *
 * CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=1000 plays 1,000.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rowsOfPart } from '../../base/part.test.support.ts'
import { decode, encode } from '../../transport/index.ts'
import { certainly } from '../certainly.ts'
import type { Engine } from '../engine/engine.ts'
import { type Faults, Simulation, seeds } from '../engine/memory/simulation.test.support.ts'
import { FleetError } from '../errors.ts'
import type { JobOutcome, JobTask } from './attempt.ts'
import { Jobs } from './jobs.ts'
import { JobTaker } from './taker.ts'

const SEEDS = seeds(120, rowsOfPart)
const PLAIN: Faults = { loss: 0, repeat: 0, delayMs: 0 }
const BAD: Faults = { loss: 0.1, repeat: 0.1, delayMs: 40 }
const LEASE_MS = 600
const ZONE = 'z'

interface Module {
  work(ms: number): string
}

class World extends Simulation {
  /** Each begin of a function: its key, and those that have ended for it. */
  readonly begun: { readonly key: string; readonly ended: readonly string[]; readonly atMs: number }[] = []
  readonly caller: Engine
  readonly jobs: Jobs<Module>
  readonly #takers = new Map<string, JobTaker>()
  carried = 0
  isQuiet = false

  constructor(seed: number, faults: Faults) {
    super(seed, faults)
    this.caller = this.connect('caller')
    this.jobs = new Jobs<Module>(this.caller, ZONE)
  }

  override carry(client: string, arrive: () => void): void {
    this.carried++
    super.carry(client, arrive)
  }

  async host(name: string): Promise<Engine> {
    const engine = this.connect(name)
    const run = (task: JobTask): Promise<JobOutcome> => this.#play(task)
    const options = { engine, zone: ZONE, id: name, jobsMax: 2, leaseMs: LEASE_MS, isFree: () => true, run }
    try {
      this.#takers.set(name, await JobTaker.open(options))
    } catch (error) {
      assert.ok(error instanceof FleetError && error.code === 'FLEET_CLOSED', String(error))
    }
    return engine
  }

  die(name: string, engine: Engine): void {
    this.#takers.delete(name)
    void engine.close()
  }

  async #play({ key, args, ended = [], signal }: JobTask): Promise<JobOutcome> {
    const [ms] = decode(args) as [number]
    const before = ended.map(([of, , frame]) => `${of}:${frame === undefined ? '' : String(decode(frame))}`)
    this.begun.push({ key, ended: before, atMs: this.clock.nowMs() })
    await new Promise<void>((resolve) => {
      this.clock.after(ms, resolve)
      signal.addEventListener('abort', () => resolve())
    })
    return signal.aborted ? [true, encode(signal.reason)] : [false, encode(key)]
  }

  pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }

  async close(): Promise<void> {
    this.isQuiet = true
    this.cut.clear()
    await Promise.all([...this.#takers.values()].map((taker) => taker.close(0, new Error('closes'))))
  }
}

test('a job begins at once when the last one has ended that it waits for, and asks little', async () => {
  const world = new World(1, PLAIN)
  const work = async (): Promise<void> => {
    const { jobs, begun } = world
    await world.host('one')
    await world.host('two')
    const after = ['a', 'b', 'c']
    for (const [index, key] of after.entries()) await jobs.submit(key, 'work', [(3 - index) * 60_000])
    await jobs.submit('all', 'work', [10], { after })
    await world.pass(1000)
    const before = world.carried
    await world.pass(60_000)
    // Three jobs that run have leases and records; the one that waits comes again all two leases.
    assert.ok(world.carried - before < 6000, `${world.carried - before}`)
    assert.equal(await jobs.result('all'), 'all')
    const at = (key: string): number => begun.find((one) => one.key === key)!.atMs
    // Four slots: all three run at once, and the first of them is the longest.
    assert.equal(at('all') - at('a'), 180_000)
    assert.deepEqual(begun.at(-1)!.ended, ['a:a', 'b:b', 'c:c'])
    assert.equal(begun.length, 4)
    await world.close()
  }
  await world.run(work())
})

test('a host that is lost is replaced by the next one to which the job comes', async () => {
  const world = new World(1, PLAIN)
  const work = async (): Promise<void> => {
    const { jobs, begun } = world
    const one = await world.host('one')
    await jobs.submit('first', 'work', [0], { delayMs: 5000 })
    await jobs.submit('all', 'work', [10], { after: ['first'] })
    await world.pass(100)
    world.die('one', one)
    await world.host('two')
    assert.equal(await jobs.result('all'), 'all')
    assert.equal(begun[1].atMs - begun[0].atMs, 0)
    await world.close()
  }
  await world.run(work())
})

test('by seeds: none is lost, and none begins before the others have ended', async () => {
  for (const seed of SEEDS) {
    const world = new World(seed, BAD)
    await world.run(traffic(world)).catch((cause: unknown) => {
      throw new Error(`CORESPUN_SEED=${seed}: ${String(cause)}`, { cause })
    })
  }
})

async function traffic(world: World): Promise<void> {
  const { caller, jobs } = world
  const faulty = async (name: string): Promise<void> => {
    const engine = await world.host(name)
    world.clock.after(world.random() * 4000, () => {
      if (world.isQuiet) return
      if (world.random() < 0.5) {
        world.die(name, engine)
        void faulty(`${name}'`)
        return
      }
      if (world.random() < 0.3) world.leaveAlone(name, world.random() * 3 * LEASE_MS)
      world.cut.add(name)
      world.clock.after(world.random() * 3 * LEASE_MS, () => world.cut.delete(name))
    })
  }
  await Promise.all([faulty('one'), faulty('two')])
  const options = { retry: { hostsLostMax: 40, attemptsMax: 3 } }
  const submit = (key: string, ...after: string[]): Promise<boolean> =>
    certainly(caller, () =>
      jobs.submit(key, 'work', [world.random() * 400], { ...options, ...(after.length > 0 && { after }) }),
    )
  await submit('a')
  await submit('b')
  await submit('ab', 'a', 'b')
  await submit('c')
  await submit('abc', 'ab', 'c')
  assert.equal(await certainly(caller, () => jobs.result('abc')), 'abc')
  for (const { key, ended } of world.begun) {
    const expected = key.length === 1 ? [] : key === 'ab' ? ['a:a', 'b:b'] : ['ab:ab', 'c:c']
    assert.deepEqual(ended, expected, key)
  }
  await world.close()
}
