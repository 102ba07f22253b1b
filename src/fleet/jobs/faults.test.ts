/**
 * What jobs promise when messages are lost, delayed and repeated, machines are cut off, leaders are alone,
 * and hosts die: by seeds, against everything that was ever written of them.
 *
 * Functions are played, in simulated time. CORESPUN_SEED runs the seed that a failure names,
 * CORESPUN_SEEDS=1000 plays 1,000 instead of a part of 240.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../../transport/index.ts'
import { FleetError, hasCode } from '../errors.ts'
import { scripted, seeded } from '../../test/played.test.support.ts'
import type { Clock } from '../engine/engine.ts'
import { type Faults, Simulation } from '../engine/memory/simulation.ts'
import type { MemoryEngine } from '../engine/memory/memory.ts'
import type { JobOutcome, JobTask } from './attempt.ts'
import { Jobs } from './jobs.ts'
import { Large } from './large.ts'
import {
  type JobRecord,
  RECORD_BYTES,
  hasEnded,
  largeName,
  lettersName,
  partsName,
  queueName,
  readRecord,
  recordsName,
} from './record.ts'
import { BAD, Hosts, LEASE_MS, PLAIN, ZONE } from './hosts.test.support.ts'
import { JobTaker } from './taker.ts'
import { certainly } from '../certainly.ts'

const SEEDS = 240
/** An item has less, with a reference; and what is padded has more. */
const SHORT_BYTES = 640
const PADDING = ' '.repeat(1000)
const RETRY = { attemptsMax: 3, backoffMs: 50, hostsLostMax: 40 }
/** How likely the host of a played function dies, how likely that fails, and of which submission it is. */
type Play = readonly [dies: number, fails: number, submission?: number, padding?: string]

/** Hosts that come and go, callers, and a record of all writes. */
class World extends Hosts {
  readonly runs: string[] = []
  readonly failed: string[] = []
  readonly miscounted: string[] = []
  readonly writes: { readonly key: string; readonly record: JobRecord | undefined }[] = []
  /** Whether messages are so short that all arguments and values are large. */
  isShort = false

  constructor(seed: number, faults: Faults, clock: Clock) {
    super(seed, faults, clock)
    // Of the server itself, so nothing of it is lost.
    this.broker.keyValue(recordsName(ZONE), 0).watch(({ key, bytes }) => {
      const record = readRecord(bytes)
      this.writes.push({ key, record })
      const failedCount = this.failed.filter((each) => each === key).length
      if (record !== undefined && record.failures > failedCount)
        this.miscounted.push(`${key}: ${record.failures} of ${failedCount} failures`)
    }, 'start')
  }

  override connect(name: string): MemoryEngine {
    const engine = super.connect(name)
    return this.isShort ? Object.assign(engine, { messageBytesMax: RECORD_BYTES + SHORT_BYTES }) : engine
  }

  override async host(name: string): Promise<void> {
    const isFaulty = this.faults.loss > 0
    // Not only while a function runs.
    if (isFaulty && this.random() < 0.2) this.clock.after(this.random() * 2000, () => this.#dies(name))
    await super.host(name, 2)
    if (isFaulty) this.#cut(name)
  }

  /** Another one comes then. */
  #dies(name: string): void {
    if (!this.isQuiet && this.die(name)) void this.host(`${name}'`)
  }

  /** A machine that is cut off for some time, now and then. */
  #cut(name: string): void {
    this.clock.after(this.random() * 4000, () => {
      if (this.isQuiet) return
      if (this.random() < 0.5) this.leaveAlone(name, this.random() * 3 * LEASE_MS)
      this.cut.add(name)
      this.clock.after(this.random() * 3 * LEASE_MS, () => {
        this.cut.delete(name)
        this.#cut(name)
      })
    })
  }

  /** A caller whose leader is. */
  aloneNowAndThen(name: string): void {
    this.clock.after(this.random() * 2000, () => {
      if (this.isQuiet) return
      this.leaveAlone(name, this.random() * 2000)
      this.aloneNowAndThen(name)
    })
  }

  async play({ key, args, signal, progress }: JobTask, host: string): Promise<JobOutcome> {
    this.runs.push(key)
    const [dies, fails, submission = 1] = decode(args) as Play
    if (this.random() < 0.5) progress(encode(this.runs.length))
    await this.spend(this.random() * (this.random() < 0.2 ? 3 * LEASE_MS : 100), signal)
    if (this.random() < dies) this.#dies(host)
    if (signal.aborted) return [true, encode(signal.reason)]
    if (this.random() >= fails)
      return [false, encode(`${key} ${submission}: run ${this.runs.length}${this.isShort ? PADDING : ''}`)]
    this.failed.push(key)
    return [true, encode(new RangeError(`run ${this.runs.length}`))]
  }

  /** Of each key, its end, of which there is one; behind it only that it is forgotten was written. */
  ends(): Map<string, JobRecord> {
    const ends = new Map<string, JobRecord>()
    assert.deepEqual(this.miscounted, [])
    for (const { key, record } of this.writes) {
      if (record === undefined) {
        ends.delete(key)
        continue
      }
      assert.ok(!ends.has(key), `${key} has ended as ${ends.get(key)?.status}, and is ${record.status} then`)
      if (hasEnded(record)) ends.set(key, record)
    }
    return ends
  }
}

const played = (faults: Faults, work: (world: World) => Promise<void>, seeds = SEEDS): Promise<void> =>
  seeded(seeds, (seed, clock) => work(new World(seed, faults, clock)), { isParted: true })

interface Module {
  work(...play: Play): string
}

test('no job is lost and each has one end, whatever dies, is cut off or lost', () =>
  played(BAD, async (world) => {
    await Promise.all([world.host('one'), world.host('two')])
    const { caller } = world
    const jobs = new Jobs<Module>(caller, ZONE)
    world.aloneNowAndThen('caller')
    world.aloneNowAndThen('other caller')
    const keys = ['sure', 'fails', 'dies', 'late', 'ended']
    const options = { retry: RETRY }
    await certainly(caller, () => jobs.submit('sure', 'work', [0.1, 0], options))
    await certainly(caller, () => jobs.submit('fails', 'work', [0, 1], options))
    await certainly(caller, () => jobs.submit('dies', 'work', [0.5, 0.2], { ...options, priority: 'low' }))
    await certainly(caller, () => jobs.submit('late', 'work', [0.1, 0.3], { ...options, delayMs: 400 }))
    await certainly(caller, () => jobs.submit('ended', 'work', [0.2, 0], { ...options, delayMs: 50 }))
    world.clock.after(world.random() * 300, () => void certainly(caller, () => jobs.cancel('ended')))
    const [again, ...seen] = await Promise.all([
      reused(world, jobs),
      ...keys.map((key) => outcome(jobs, key)),
    ])
    // Of an earlier submission of its key nothing comes behind a later one.
    assert.match(again, /^reused 2: run/)
    // A key that has ended is not run again.
    assert.equal(await certainly(caller, () => jobs.submit('sure', 'work', [0, 1], options)), false)
    await world.close()
    const ends = world.ends()
    world.faults = PLAIN
    const dead = (await certainly(caller, () => jobs.dead())).map(({ key }) => key)
    for (const [index, key] of keys.entries()) {
      const end = ends.get(key)!
      assert.equal(seen[index], end.status === 'done' ? decode(end.value as Uint8Array) : end.status, key)
      assert.ok(end.failures <= RETRY.attemptsMax, `${key}: ${end.failures} failures`)
      assert.equal(dead.includes(key), end.status === 'dead', `the letter of ${key}`)
    }
    assert.equal(ends.get('sure')!.status, 'done')
    assert.equal(ends.get('fails')!.status, 'dead')
    assert.equal(ends.get('fails')!.failures, RETRY.attemptsMax)
  }))

test('of jobs that replace each other the last one is what its key returns, whatever is lost', () =>
  played(BAD, async (world) => {
    await Promise.all([world.host('one'), world.host('two')])
    const { caller } = world
    const jobs = new Jobs<Module>(caller, ZONE)
    for (let submission = 1; submission <= 4; submission++) {
      const delayMs = world.random() < 0.5 ? 0 : 200
      const options = { retry: RETRY, replace: true, delayMs }
      await certainly(caller, () => jobs.submit('k', 'work', [0.2, 0.1, submission], options))
      await world.pass(world.random() * 400)
    }
    assert.match(await outcome(jobs, 'k'), /^k 4: run|^dead$/)
    await world.close()
  }))

test('no large arguments and no large result are lost, and none is left, whatever is lost', () =>
  played(
    BAD,
    async (world) => {
      world.isShort = true
      await Promise.all([world.host('one'), world.host('two')])
      const caller = world.connect('caller')
      const jobs = new Jobs<Module>(caller, ZONE)
      world.aloneNowAndThen('caller')
      const keys = ['sure', 'fails', 'dies', 'replaced']
      const submit = (key: string, dies: number, fails: number, submission: number): Promise<boolean> => {
        const options = { retry: RETRY, replace: submission > 1 }
        return certainly(caller, () => jobs.submit(key, 'work', [dies, fails, submission, PADDING], options))
      }
      for (const key of keys) await submit(key, key === 'dies' ? 0.4 : 0.1, key === 'fails' ? 1 : 0, 1)
      world.clock.after(world.random() * 300, () => void submit('replaced', 0, 0, 2))
      const seen = await Promise.all(keys.map((key) => outcome(jobs, key)))
      assert.ok(seen[0].startsWith('sure 1: run') && seen[0].endsWith(PADDING), seen[0])
      await world.close()
      await cleared(world, keys)
    },
    SEEDS / 3,
  ))

/** What is left when all is forgotten, and what crashes have left is not young any more. */
async function cleared(world: World, keys: readonly string[]): Promise<void> {
  world.faults = PLAIN
  const engine = world.connect('cleaner')
  const jobs = new Jobs<Module>(engine, ZONE)
  for (const key of keys) while (!(await jobs.forget(key))) await certainly(engine, () => jobs.cancel(key))
  const room = {
    queue: await engine.queue(queueName(ZONE)),
    records: await engine.keyValue(recordsName(ZONE), { ttlMs: 0 }),
    letters: await engine.keyValue(lettersName(ZONE), { ttlMs: 0 }),
  }
  // As an hour later.
  const manifests = await engine.keyValue(largeName(ZONE), { ttlMs: 0 })
  for (const { key } of (await manifests.page({ itemsMax: 999 })).items)
    if (key.startsWith('~')) await manifests.delete(key)
  const work = <Value>(each: () => Promise<Value>): Promise<Value> => each()
  await new Large({ engine, zone: ZONE, valueBytesMax: 10_000, certainly: work }).sweep(room)
  for (const store of [largeName(ZONE), partsName(ZONE)])
    assert.deepEqual((await (await engine.keyValue(store, { ttlMs: 0 })).page({ itemsMax: 9 })).items, [])
}

/** What a key returns that was forgotten, and submitted again. */
async function reused(world: World, jobs: Jobs<Module>): Promise<string> {
  const engine = world.connect('other caller')
  // Late enough that no message of its submission comes behind its end.
  const options = { retry: RETRY, delayMs: 2 * BAD.delayMs }
  await certainly(engine, () => jobs.submit('reused', 'work', [0.3, 0, 1], options))
  await outcome(jobs, 'reused')
  await certainly(engine, () => jobs.forget('reused'))
  await certainly(engine, () => jobs.submit('reused', 'work', [0.1, 0, 2], options))
  return outcome(jobs, 'reused')
}

test('on a network that only delays, each job runs once, however much longer than its lease it is', () =>
  played({ loss: 0, repeat: 0, delayMs: 20 }, async (world) => {
    await Promise.all([world.host('one'), world.host('two'), world.host('three')])
    const jobs = new Jobs<Module>(world.connect('caller'), ZONE)
    const keys = ['a', 'b', 'c', 'd', 'e']
    for (const key of keys) await jobs.submit(key, 'work', [0, 0])
    await Promise.all(keys.map((key) => jobs.result(key)))
    assert.deepEqual([...world.runs].sort(), keys)
    await world.close()
  }))

test('a job of an hour with a lease of five seconds runs once', () =>
  scripted(async (clock) => {
    const world = new Simulation(1, { loss: 0, repeat: 0, delayMs: 20 }, clock)
    let runs = 0
    const run = async (): Promise<JobOutcome> => {
      runs++
      await new Promise<void>((resolve) => void clock.after(3_600_000, resolve))
      return [false, encode('done')]
    }
    const options = { zone: ZONE, jobsMax: 2, leaseMs: 5000, isFree: () => true, run }
    const open = (id: string): Promise<JobTaker> =>
      JobTaker.open({ ...options, engine: world.connect(id), id })
    const takers = await Promise.all(['one', 'two'].map(open))
    const jobs = new Jobs<{ work(): string }>(world.connect('caller'), ZONE)
    await jobs.submit('hour', 'work', [])
    assert.equal(await jobs.result('hour'), 'done')
    assert.ok(clock.nowMs() >= 3_600_000)
    await Promise.all(takers.map((taker) => taker.close(0, new Error('closes'))))
    assert.equal(runs, 1)
  }))

/** What callers see of the end of a job: its value, or how it ended. */
async function outcome(jobs: Jobs<Module>, key: string): Promise<string> {
  try {
    return await jobs.result(key)
  } catch (error) {
    if (hasCode(error, 'JOB_UNKNOWN')) assert.fail(`${key} is lost`)
    assert.ok(error instanceof FleetError, String(error))
    const statuses: Record<string, string> = {
      JOB_DEAD: 'dead',
      JOB_CANCELLED: 'cancelled',
      FLEET_TIMEOUT: '',
    }
    return statuses[error.code] || outcome(jobs, key)
  }
}
