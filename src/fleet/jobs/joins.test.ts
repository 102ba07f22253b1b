/**
 * Jobs that wait for others, in simulated time: how soon they begin, what that costs, and by seeds that none
 * is lost and none begins before, when messages are lost, machines are cut off and hosts die.
 *
 * CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=1000 plays 1,000.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../../transport/index.ts'
import { certainly } from '../certainly.ts'
import { scripted, seeded } from '../../test/played.test.support.ts'
import type { JobOutcome, JobTask } from './attempt.ts'
import { BAD, Hosts, PLAIN, ZONE } from './hosts.test.support.ts'
import { Jobs } from './jobs.ts'
import { Joins, type JoinsHost } from './joins.ts'

interface Module {
  work(ms: number): string
}

class World extends Hosts {
  /** Each begin of a function: its key, and those that have ended for it. */
  readonly begun: { readonly key: string; readonly ended: readonly string[]; readonly atMs: number }[] = []
  readonly jobs = new Jobs<Module>(this.caller, ZONE)
  carried = 0

  override carry(client: string, arrive: () => void): void {
    this.carried++
    super.carry(client, arrive)
  }

  override host(name: string, jobsMax = 2): Promise<void> {
    return super.host(name, jobsMax)
  }

  async play({ key, args, ended = [], signal }: JobTask): Promise<JobOutcome> {
    const [ms] = decode(args) as [number]
    const before = ended.map(([of, , frame]) => `${of}:${frame === undefined ? '' : String(decode(frame))}`)
    this.begun.push({ key, ended: before, atMs: this.clock.nowMs() })
    await this.spend(ms, signal)
    return signal.aborted ? [true, encode(signal.reason)] : [false, encode(key)]
  }
}

test('a job begins at once when the last one has ended that it waits for, and asks little', () =>
  scripted(async (clock) => {
    const world = new World(1, PLAIN, clock)
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
  }))

test('a host that is lost is replaced by the next one to which the job comes', () =>
  scripted(async (clock) => {
    const world = new World(1, PLAIN, clock)
    const { jobs, begun } = world
    await world.host('one')
    await jobs.submit('first', 'work', [0], { delayMs: 5000 })
    await jobs.submit('all', 'work', [10], { after: ['first'] })
    await world.pass(100)
    world.die('one')
    await world.host('two')
    assert.equal(await jobs.result('all'), 'all')
    assert.equal(begun[1].atMs - begun[0].atMs, 0)
    await world.close()
  }))

test('what cannot be read any more leaves no listener behind', async () => {
  let [finds, listeners] = [0, 0]
  const listen = async (): Promise<() => void> => {
    listeners++
    return () => void listeners--
  }
  const find = async (): Promise<object> => {
    if (++finds > 2) throw new Error('it may not be read')
    return {}
  }
  const host = {
    engine: { messages: { listen } },
    zone: ZONE,
    queue: { find },
    records: { get: async () => undefined },
    certainly: <Value>(work: () => Promise<Value>) => work(),
  }
  const joins = new Joins(host as unknown as JoinsHost)
  assert.equal(await joins.ended('all', ['other'], false), undefined)
  while (finds < 3) await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(listeners, 0)
})

test('by seeds: none is lost, and none begins before the others have ended', () =>
  seeded(120, (seed, clock) => traffic(new World(seed, BAD, clock)), { isParted: true }))

async function traffic(world: World): Promise<void> {
  const { caller, jobs } = world
  await Promise.all(['one', 'two'].map((name) => world.faulty(name, 2, 0.5)))
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
