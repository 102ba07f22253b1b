/**
 * Limits of jobs over all hosts, in simulated time: what they promise step by step, and by seeds when
 * messages are lost, machines are cut off and hosts die.
 *
 * CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=1000 plays 1,000.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../../transport/index.ts'
import { certainly } from '../certainly.ts'
import { scripted, seeded } from '../../test/played.test.support.ts'
import type { Clock } from '../engine/engine.ts'
import type { Faults } from '../engine/memory/simulation.ts'
import type { JobOutcome, JobTask } from './attempt.ts'
import { BAD, Hosts, LEASE_MS, PLAIN, ZONE } from './hosts.test.support.ts'
import { Jobs } from './jobs.ts'
import { limitsName } from './record.ts'

interface Module {
  work(tenant: string, ms: number): string
}

/** A run of a function, from its begin to its end or that of its machine. */
interface Run {
  readonly key: string
  readonly tenant: string
  readonly host: string
  readonly beginMs: number
}

class World extends Hosts {
  readonly running = new Set<Run>()
  readonly all: Run[] = []
  /** What ran when more did than may. */
  readonly exceeded: string[] = []
  readonly #dead = new Set<string>()
  readonly jobs = new Jobs<Module>(this.caller, ZONE)
  readonly most: ReadonlyMap<string, number>

  constructor(seed: number, faults: Faults, most: Readonly<Record<string, number>>, clock: Clock) {
    super(seed, faults, clock)
    this.most = new Map(Object.entries(most))
  }

  override host(name: string, jobsMax = 3): Promise<void> {
    return super.host(name, jobsMax)
  }

  override die(name: string): boolean {
    this.#dead.add(name)
    for (const run of this.running) if (run.host === name) this.running.delete(run)
    return super.die(name)
  }

  async play({ key, args, signal }: JobTask, host: string): Promise<JobOutcome> {
    const [tenant, ms] = decode(args) as [string, number]
    const run = { key, tenant, host, beginMs: this.clock.nowMs() }
    assert.equal(signal.aborted, false)
    if (this.#dead.has(host)) return [true, encode('dead')]
    this.all.push(run)
    this.running.add(run)
    const count = [...this.running].filter((other) => other.tenant === tenant).length
    if (count > (this.most.get(tenant) ?? Infinity))
      this.exceeded.push(`${this.clock.nowMs()}: ${JSON.stringify([...this.running])}`)
    await this.spend(ms, signal)
    this.running.delete(run)
    return signal.aborted ? [true, encode(signal.reason)] : [false, encode(key)]
  }

  override async close(): Promise<void> {
    await super.close()
    assert.deepEqual(this.exceeded, [])
  }
}

function played(
  title: string,
  most: Readonly<Record<string, number>>,
  work: (world: World) => Promise<void>,
) {
  test(title, () => scripted((clock) => work(new World(1, PLAIN, most, clock))))
}

played(
  'tenants take turns, however many jobs one of them has submitted before',
  { a: 2, b: 2 },
  async (world) => {
    const { jobs, all } = world
    for (const [tenant, count] of [
      ['a', 400],
      ['b', 10],
    ] as const)
      for (let index = 0; index < count; index++)
        await jobs.submit(`${tenant}${index}`, 'work', [tenant, 100], {
          limit: { per: tenant, concurrency: 2 },
        })
    await world.host('one', 4)
    for (let index = 0; index < 10; index++) await jobs.result(`b${index}`)
    const countOf = (tenant: string): number => all.filter((run) => run.tenant === tenant).length
    assert.deepEqual([countOf('b'), countOf('a') <= 14], [10, true])
    for (let index = 0; index < 400; index++) await jobs.result(`a${index}`)
    // In the order in which they came, and each once.
    const keys = all.filter(({ tenant }) => tenant === 'a').map(({ key }) => key)
    assert.equal(new Set(keys).size, 400)
    assert.equal(keys.length, 400)
    // Nobody has waited longer than for those before: two at once, of 100 ms.
    assert.ok(world.clock.nowMs() < 400 * 50 + 1500, `${world.clock.nowMs()}`)
    await world.close()
  },
)

played('a slot is used as soon as it is free, and nobody asks meanwhile', { a: 1 }, async (world) => {
  const limit = { per: 'a', concurrency: 1 }
  await world.host('one')
  await world.host('two')
  await world.jobs.submit('long', 'work', ['a', 60_000], { limit })
  await world.pass(10)
  for (const key of ['next', 'last']) await world.jobs.submit(key, 'work', ['a', 10], { limit })
  const results = ['long', 'next', 'last'].map((key) => world.jobs.result(key))
  assert.deepEqual(await Promise.all(results), ['long', 'next', 'last'])
  const [long, next, last] = world.all
  assert.deepEqual(
    [world.all.length, next.beginMs - long.beginMs, last.beginMs - next.beginMs],
    [3, 60_000, 10],
  )
  await world.close()
})

played('a rate over all hosts is exact, and used up', {}, async (world) => {
  await world.host('one')
  await world.host('two')
  const limit = { per: 'a', rate: { jobs: 5, perMs: 1000 } }
  for (let index = 0; index < 30; index++) await world.jobs.submit(`${index}`, 'work', ['a', 10], { limit })
  for (let index = 0; index < 30; index++) await world.jobs.result(`${index}`)
  const begins = world.all.map(({ beginMs }) => beginMs)
  for (const [index, beginMs] of begins.slice(5).entries())
    assert.ok(beginMs - begins[index] >= 1000, `${index}: ${begins[index]} and ${beginMs}`)
  assert.ok(begins[29] <= 6000, `${begins[29]}`)
  await world.close()
})

played('a host that is cut off ends its jobs before others have their slots', { a: 1 }, async (world) => {
  const limit = { per: 'a', concurrency: 1 }
  await world.host('one')
  await world.jobs.submit('first', 'work', ['a', 5000], { limit })
  await world.pass(100)
  await world.host('two')
  await world.jobs.submit('second', 'work', ['a', 10], { limit })
  world.cut.add('one')
  assert.equal(await world.jobs.result('second'), 'second')
  assert.equal(await world.jobs.result('first'), 'first')
  assert.deepEqual(world.all.map(({ key, host }) => `${key} ${host}`).sort(), [
    'first one',
    'first two',
    'second two',
  ])
  world.cut.delete('one')
  await world.close()
})

played('a turn that nobody can read is passed over', { a: 1 }, async (world) => {
  const limit = { per: 'a', concurrency: 1 }
  await world.host('one')
  await world.jobs.submit('first', 'work', ['a', 1000], { limit })
  await world.pass(10)
  for (const key of ['second', 'third']) await world.jobs.submit(key, 'work', ['a', 10], { limit })
  await world.pass(10)
  const values = await world.caller.keyValue(limitsName(ZONE), { ttlMs: 0 })
  await values.put('turn 1 a', new Uint8Array([1]))
  assert.equal(await world.jobs.result('third'), 'third')
  assert.equal(await world.jobs.result('second'), 'second')
  await world.close()
})

test('a host that closes wakes the next job before it leaves', () =>
  scripted(async (clock) => {
    const world = new World(1, { ...PLAIN, delayMs: 40 }, { a: 1 }, clock)
    const { jobs } = world
    const limit = { per: 'a', concurrency: 1 }
    await world.host('one')
    await jobs.submit('first', 'work', ['a', 1000], { limit })
    await world.pass(500)
    await jobs.submit('second', 'work', ['a', 10], { limit })
    await world.pass(400)
    await world.host('two')
    await jobs.result('first')
    const endMs = clock.nowMs()
    await world.leave('one')
    await jobs.result('second')
    assert.ok(world.all[1].beginMs - endMs < LEASE_MS, `${world.all[1].beginMs - endMs}`)
    await world.close()
  }))

test('by seeds: no limit is exceeded and no job is lost, whatever dies, is cut off or lost', () =>
  seeded(120, (seed, clock) => traffic(new World(seed, BAD, { a: 1, b: 2 }, clock)), { isParted: true }))

async function traffic(world: World): Promise<void> {
  const { caller, jobs } = world
  await Promise.all(['one', 'two'].map((name) => world.faulty(name, 3, 0.4)))
  const keys = Array.from({ length: 8 }, (_, index) => `${index % 2 === 0 ? 'a' : 'b'}${index}`)
  const options = { retry: { hostsLostMax: 40, attemptsMax: 3 } }
  for (const key of keys) {
    const [tenant] = key
    const limit = { per: tenant, concurrency: world.most.get(tenant)! }
    const work = [tenant, world.random() * 400] as [string, number]
    await certainly(caller, () => jobs.submit(key, 'work', work, { ...options, limit }))
  }
  for (const key of keys) assert.equal(await certainly(caller, () => jobs.result(key)), key)
  await world.close()
}
