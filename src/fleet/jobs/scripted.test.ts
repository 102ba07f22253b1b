/**
 * What jobs do when something is lost at one certain moment, each played step by step in simulated time.
 *
 * The seeded tests (faults.test.ts) meet such moments by chance; here each has its own test.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../../transport/index.ts'
import { Arrivals } from '../engine/conformance.test.support.ts'
import { scripted } from '../../test/played.test.support.ts'
import type { Clock, Engine, Entry, KeyValue, Lease } from '../engine/engine.ts'
import { type Faults, Simulation } from '../engine/memory/simulation.ts'
import { FleetError } from '../errors.ts'
import type { JobOutcome, JobTask } from './attempt.ts'
import { Ends } from './ends.ts'
import { Jobs } from './jobs.ts'
import {
  type EndedRecord,
  FRESH,
  type JobRecord,
  cancelSubject,
  lettersName,
  queueName,
  readJob,
  recordsName,
  sendEnd,
  writeJob,
  writeLetter,
  writeRecord,
} from './record.ts'
import { JobTaker } from './taker.ts'
import { certainly } from '../certainly.ts'

const ZONE = 'z'
const LEASE_MS = 600
const PLAIN: Faults = { loss: 0, repeat: 0, delayMs: 0 }

interface Module {
  work(text: string): string
}

/** A job that runs, until the test ends it. */
interface Run extends JobTask {
  end(outcome?: JobOutcome): void
}

class World extends Simulation {
  carried = 0
  readonly caller: Engine
  readonly jobs: Jobs<Module>

  constructor(clock: Clock, faults = PLAIN) {
    super(1, faults, clock)
    this.caller = this.connect('caller')
    this.jobs = new Jobs<Module>(this.caller, ZONE)
  }

  override carry(client: string, arrive: () => void): void {
    this.carried++
    super.carry(client, arrive)
  }

  /** A host whose runs the test ends. */
  async host(
    name: string,
    runs: Arrivals<Run>,
    engine: Engine = this.connect(name),
    isFree = true,
  ): Promise<JobTaker> {
    const run = (task: JobTask): Promise<JobOutcome> =>
      new Promise((resolve) => {
        const value = `${(decode(task.args) as string[])[0]} at ${name}`
        const end = (outcome: JobOutcome = [false, encode(value)]): void => resolve(outcome)
        task.signal.addEventListener('abort', () => resolve([true, encode(task.signal.reason)]))
        runs.push({ ...task, end })
      })
    const options = { zone: ZONE, id: name, jobsMax: 4, leaseMs: LEASE_MS, isFree: () => isFree }
    return JobTaker.open({ engine, ...options, run })
  }

  pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }
}

/** One test in one simulated world. */
function played(title: string, work: (world: World) => Promise<void>, faults?: Faults): void {
  test(title, () => scripted((clock) => work(new World(clock, faults))))
}

/** The engine with other stores. */
function withStores(engine: Engine, change: (values: KeyValue, name: string) => KeyValue): Engine {
  const keyValue: Engine['keyValue'] = async (name, options) =>
    change(await engine.keyValue(name, options), name)
  return replaced(engine, { keyValue })
}

function replaced<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get(_, name) {
      const value = name in own ? Reflect.get(own, name) : Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

for (const [how, beforeMs] of [
  ['before it has written anything', 0],
  ['after it has written that it runs', 200],
] as const)
  played(`a host that is cut off ${how} writes nothing behind the next job of its key`, async (world) => {
    const [stale, fresh] = [new Arrivals<Run>(), new Arrivals<Run>()]
    const { jobs } = world
    const one = await world.host('one', stale)
    await jobs.submit('k', 'work', ['first'])
    const first = await stale.next()
    await world.pass(beforeMs)
    world.cut.add('one')
    const two = await world.host('two', fresh)
    ;(await fresh.next()).end()
    assert.equal(await jobs.result('k'), 'first at two')
    await two.close(0, new Error('closes'))
    assert.equal(await jobs.forget('k'), true)
    assert.equal(await jobs.submit('k', 'work', ['second'], { delayMs: 2000 }), true)
    // It ends its job while it cannot write, repeats that, and can again.
    first.end()
    await world.pass(700)
    world.cut.delete('one')
    await world.pass(1000)
    assert.equal((await jobs.get('k'))?.status, 'waiting')
    ;(await stale.next()).end()
    assert.equal(await jobs.result('k'), 'second at one')
    await one.close(0, new Error('closes'))
  })

played('a host that was cut off writes nothing over the next job of its key that runs', async (world) => {
  const [stale, fresh] = [new Arrivals<Run>(), new Arrivals<Run>()]
  const { jobs } = world
  const one = await world.host('one', stale)
  await jobs.submit('k', 'work', ['first'])
  const first = await stale.next()
  await world.pass(200)
  world.cut.add('one')
  const two = await world.host('two', fresh)
  ;(await fresh.next()).end()
  await jobs.result('k')
  await jobs.forget('k')
  await jobs.submit('k', 'work', ['second'])
  const second = await fresh.next()
  await world.pass(200)
  world.cut.delete('one')
  first.end()
  await world.pass(1000)
  assert.equal((await jobs.get('k'))?.status, 'running')
  second.end()
  assert.equal(await jobs.result('k'), 'second at two')
  await Promise.all([one, two].map((host) => host.close(0, new Error('closes'))))
})

played('a job waits for its host where that still runs the last one of its key', async (world) => {
  const runs = new Arrivals<Run>()
  const { jobs, caller } = world
  const host = await world.host('one', runs)
  await jobs.submit('k', 'work', ['first'])
  const first = await runs.next()
  await world.pass(200)
  // As another host would end it.
  const records = await caller.keyValue(recordsName(ZONE), { ttlMs: 0 })
  await records.put('k', writeRecord({ ...FRESH, status: 'cancelled' }))
  await jobs.forget('k')
  await jobs.submit('k', 'work', ['second'])
  await world.pass(600)
  assert.equal(runs.count, 0)
  first.end()
  ;(await runs.next()).end()
  assert.equal(await jobs.result('k'), 'second at one')
  await host.close(0, new Error('closes'))
})

played('a job whose end was written while its item stayed does not begin again', async (world) => {
  const runs = new Arrivals<Run>()
  const { jobs, caller } = world
  const records = await caller.keyValue(recordsName(ZONE), { ttlMs: 0 })
  // A cancel that could not remove the item; a second submission that was added as the first one ended.
  for (const status of ['cancelled', 'dead'] as const) {
    await jobs.submit(status, 'work', ['x'])
    await records.put(status, writeRecord({ ...FRESH, status }))
  }
  const host = await world.host('one', runs)
  await jobs.submit('next', 'work', ['y'])
  ;(await runs.next()).end()
  assert.equal(await jobs.result('next'), 'y at one')
  await world.pass(100)
  assert.deepEqual([runs.count, await jobs.count()], [0, 0])
  await host.close(0, new Error('closes'))
})

played('the end of a job that comes late is not that of the next one with its key', async (world) => {
  const { caller } = world
  const ends = new Ends(caller, ZONE, () => caller.keyValue(recordsName(ZONE), { ttlMs: 0 }))
  await ends.listen()
  const records: JobRecord[] = []
  const reported = async (submission: number, status: EndedRecord['status']): Promise<void> => {
    const record = { ...FRESH, status } as EndedRecord
    sendEnd(caller, ZONE, { origin: ends.origin, submission }, { key: 'k', record })
    await world.pass(10)
  }
  const [first] = ends.begin('k')
  assert.deepEqual(ends.begin('k'), [first, false])
  ends.drop('k') // it was forgotten
  const [second, isFirst] = ends.begin('k')
  assert.deepEqual([second === first, isFirst], [false, true])
  const stop = ends.wait('k', (record) => void records.push(record))
  await reported(first, 'dead')
  assert.deepEqual([records, ends.isOpen('k')], [[], true])
  await reported(second, 'cancelled')
  await reported(second, 'dead')
  assert.deepEqual([records.map(({ status }) => status), ends.isOpen('k')], [['cancelled'], false])
  stop()
})

played('an own job is watched as it is added, while results are waited for', async ({ caller }) => {
  const ends = new Ends(caller, ZONE, () => assert.fail())
  const records: JobRecord[] = []
  const of = (status: JobRecord['status']): Entry => {
    return { key: 'k', bytes: writeRecord({ ...FRESH, status }), revision: 1 }
  }
  const begin = (key: string): ReturnType<Ends['watchFirst']> => ends.watchFirst(key, ends.begin(key)[0])
  const forgotten = begin('k')!
  ends.drop('k')
  const on = begin('k')!
  assert.deepEqual([forgotten(of('cancelled')), ends.isOpen('k')], [true, true])
  const stop = ends.wait('k', (record) => void records.push(record))
  assert.deepEqual([on(of('running')), on(of('cancelled')), on(of('cancelled'))], [false, true, true])
  assert.deepEqual([records.map(({ status }) => status), ends.isOpen('k')], [['cancelled'], false])
  const isWatched = (key: string): boolean => begin(key) !== undefined
  const keys = Array.from({ length: 300 }, (_, index) => String(index))
  const watched = keys.filter(isWatched)
  assert.ok(watched.length > 200 && watched.length < 300)
  stop()
  ends.wait('0', () => {})()
  assert.equal(isWatched('waited for'), true)
})

played('of jobs that do not end no more than so many are watched', async ({ caller }) => {
  const ends = new Ends(caller, ZONE, () => assert.fail())
  const begin = (key: string): ReturnType<Ends['watchFirst']> => {
    ends.wait(key, () => {})()
    return ends.watchFirst(key, ends.begin(key)[0])
  }
  const begun = Array.from({ length: 5000 }, (_, index) => begin(String(index)))
  assert.deepEqual([begun[4000] === undefined, begun[4999] === undefined], [false, true])
  const bytes = writeRecord({ ...FRESH, status: 'cancelled' })
  assert.equal(begun[0]!({ key: '0', bytes, revision: 1 }), true)
  assert.notEqual(begin('next'), undefined)
})

played('of own jobs whose end is not waited for the newest are remembered', async ({ caller }) => {
  const ends = new Ends(caller, ZONE, () => assert.fail())
  const last = 65_536
  for (let key = 0; key <= last; key++) ends.begin(String(key))
  assert.deepEqual([ends.isOpen('0'), ends.isOpen('1024'), ends.isOpen(String(last))], [false, true, true])
})

played('a job that waits for its zone does not run, and is not lost with its host', async (world) => {
  const { jobs } = world
  for (const name of ['one', 'two', 'three']) {
    const runs = new Arrivals<Run>()
    const engine = world.connect(name)
    const host = await world.host(name, runs, engine, false)
    if (name === 'one') await jobs.submit('k', 'work', ['x'], { retry: { hostsLostMax: 0 } })
    const run = await runs.next()
    await world.pass(300)
    assert.deepEqual([(await jobs.get('k'))?.status, host.running], ['waiting', 0])
    if (name !== 'three') {
      await engine.close()
      continue
    }
    run.begun!()
    await world.pass(50)
    assert.deepEqual([(await jobs.get('k'))?.status, host.running], ['running', 1])
    run.end()
    assert.equal(await jobs.result('k'), 'x at three')
    assert.equal(host.running, 0)
    await host.close(0, new Error('closes'))
  }
})

played('a dead job runs again, though its host has not ended its item yet', async (world) => {
  const { jobs } = world
  const runs = new Arrivals<Run>()
  const own = world.connect('one')
  const held: (() => void)[] = []
  const holding = (lease: Lease): Lease => ({
    ...lease,
    done: async () => {
      await new Promise<void>((resolve) => held.push(resolve))
      return lease.done()
    },
  })
  const engine = replaced(own, {
    queue: async (name) => {
      const queue = await own.queue(name)
      return replaced(queue, { take: (on, options) => queue.take((lease) => on(holding(lease)), options) })
    },
  })
  await world.host('one', runs, engine)
  await jobs.submit('k', 'work', ['x'], { retry: { attemptsMax: 1 } })
  ;(await runs.next()).end([true, encode(new RangeError('not yet'))])
  await assert.rejects(jobs.result('k'), { code: 'JOB_DEAD' })
  assert.equal(await jobs.again('k'), true)
  for (const end of held.splice(0)) end()
  ;(await runs.next()).end()
  assert.equal(await jobs.result('k'), 'x at one')
})

played('a job that had begun is lost with its host', async (world) => {
  const { jobs } = world
  const runs = new Arrivals<Run>()
  const engine = world.connect('one')
  await world.host('one', runs, engine, false)
  await jobs.submit('k', 'work', ['x'], { retry: { hostsLostMax: 0 } })
  ;(await runs.next()).begun!()
  await world.pass(200)
  await engine.close()
  await world.host('two', new Arrivals())
  await assert.rejects(jobs.result('k'), { code: 'JOB_DEAD' })
})

played('a host that closes is not held by a server that is away', async (world) => {
  const runs = new Arrivals<Run>()
  const host = await world.host('one', runs)
  await world.jobs.submit('k', 'work', ['x'])
  await runs.next()
  await world.pass(200)
  world.cut.add('one')
  await host.close(100, new Error('closes'))
  assert.equal(host.running, 0)
  const other = new Arrivals<Run>()
  const two = await world.host('two', other)
  const run = await other.next()
  run.end()
  assert.equal(await world.jobs.result('k'), 'x at two')
  await two.close(0, new Error('closes'))
})

played(
  'who waits for a result leaves nothing, at whatever moment its time is over',
  async (world) => {
    const { jobs } = world
    await jobs.submit('k', 'work', ['x'])
    for (let timeoutMs = 480; timeoutMs < 640; timeoutMs += 20)
      await assert.rejects(jobs.result('k', { timeoutMs }), { code: 'JOB_TIMEOUT' })
    // Not even a server that is away holds it.
    world.cut.add('caller')
    await assert.rejects(jobs.result('k', { timeoutMs: 100 }), { code: 'JOB_TIMEOUT' })
    world.cut.delete('caller')
    await world.pass(1000)
    const { carried } = world
    await world.pass(10_000)
    assert.equal(world.carried, carried)
  },
  { loss: 0, repeat: 0, delayMs: 40 },
)

played('a forged message that a job is cancelled ends nothing', async (world) => {
  const runs = new Arrivals<Run>()
  const host = await world.host('one', runs)
  await world.jobs.submit('k', 'work', ['x'])
  const run = await runs.next()
  world.caller.messages!.send(cancelSubject(ZONE), encode(['cancel', 'k']))
  world.caller.messages!.send(cancelSubject(ZONE), encode(['cancel', 'other']))
  world.caller.messages!.send(cancelSubject(ZONE), encode({ cancel: 'k' }))
  await world.pass(100)
  assert.equal(run.signal.aborted, false)
  run.end()
  assert.equal(await world.jobs.result('k'), 'x at one')
  await host.close(0, new Error('closes'))
})

played('a function that no host has for five minutes is a failure from then on', async (world) => {
  const { jobs } = world
  const facts = { zone: ZONE, name: 'work', exported: [] }
  const missing: JobOutcome = [true, encode(new FleetError('EXPORT_MISSING', facts))]
  let tries = 0
  const options = { zone: ZONE, id: 'one', jobsMax: 4, leaseMs: LEASE_MS, isFree: () => true }
  const run = async (): Promise<JobOutcome> => (tries++, missing)
  const host = await JobTaker.open({ ...options, engine: world.connect('one'), run })
  // However long it has waited before.
  await jobs.submit('k', 'work', ['x'], { retry: { attemptsMax: 2 }, delayMs: 600_000 })
  await world.pass(899_000)
  const { failures, errors, status } = (await jobs.get('k'))!
  assert.deepEqual([failures, errors.length, status], [0, 1, 'waiting'])
  assert.ok(tries > 30 && tries < 80, `${tries} tries`)
  await assert.rejects(jobs.result('k'), ({ cause }: Error) => {
    assert.equal((cause as FleetError).code, 'EXPORT_MISSING')
    return true
  })
  assert.equal((await jobs.get('k'))?.failures, 2)
  // It may be deployed by now.
  assert.equal(await jobs.again('k'), true)
  await world.pass(1000)
  assert.equal((await jobs.get('k'))?.failures, 0)
  await host.close(0, new Error('closes'))
})

played('a function that is missing is a failure at once, if its job is to be so', async (world) => {
  const { jobs } = world
  const runs = new Arrivals<Run>()
  const host = await world.host('one', runs)
  await jobs.submit('k', 'work', ['x'], { retry: { attemptsMax: 1, missingMs: 0 } })
  ;(await runs.next()).end([
    true,
    encode(new FleetError('EXPORT_MISSING', { zone: ZONE, name: 'work', exported: [] })),
  ])
  await assert.rejects(jobs.result('k'), { code: 'JOB_DEAD' })
  await host.close(0, new Error('closes'))
})

played('a function that a job itself has called, and nobody has, is a failure', async (world) => {
  const runs = new Arrivals<Run>()
  const host = await world.host('one', runs)
  for (const facts of [
    { zone: ZONE, name: 'other', exported: [] },
    { zone: 'other', name: 'work', exported: [] },
  ]) {
    const key = `${facts.zone} ${facts.name}`
    await world.jobs.submit(key, 'work', ['x'], { retry: { attemptsMax: 1 } })
    ;(await runs.next()).end([true, encode(new FleetError('EXPORT_MISSING', facts))])
    await assert.rejects(world.jobs.result(key), { code: 'JOB_DEAD' })
  }
  await host.close(0, new Error('closes'))
})

played('a dead job that several run anew runs once, and one that has ended does not', async (world) => {
  const runs = new Arrivals<Run>()
  const { jobs, caller } = world
  const host = await world.host('one', runs)
  await jobs.submit('k', 'work', ['x'], { retry: { attemptsMax: 1 } })
  ;(await runs.next()).end([true, encode(new RangeError('bad'))])
  await assert.rejects(jobs.result('k'), { code: 'JOB_DEAD' })
  const all = await Promise.all([jobs.again('k'), jobs.again('k'), jobs.again('k')])
  assert.deepEqual(all.sort(), [false, false, true])
  ;(await runs.next()).end()
  assert.equal(await jobs.result('k'), 'x at one')
  assert.equal(runs.count, 0)
  assert.deepEqual(await jobs.dead(), [])
  // A letter that was left, as by a caller that was lost.
  const letters = await caller.keyValue(lettersName(ZONE), { ttlMs: 0 })
  const record = { ...FRESH, status: 'dead' } as const
  for (const key of ['k', 'other']) await letters.put(key, writeLetter({ job: encode('no job'), record }))
  assert.equal(await jobs.again('k'), false)
  assert.equal(await letters.get('k'), undefined)
  await letters.put('k', writeLetter({ job: encode('no job'), record }))
  assert.deepEqual(await jobs.dead(), [])
  assert.equal(await letters.get('k'), undefined)
  assert.equal(await jobs.again('other'), true)
  await assert.rejects(jobs.result('other'), { code: 'JOB_DEAD' })
  await host.close(0, new Error('closes'))
})

played(
  'a letter stays when two hosts bury one job, and goes when the job has ended otherwise',
  async (world) => {
    const { jobs, caller } = world
    const letters = await caller.keyValue(lettersName(ZONE), { ttlMs: 0 })
    for (const [key, status] of [
      ['dead', 'dead'],
      ['cancelled', 'cancelled'],
    ] as const) {
      const runs = new Arrivals<Run>()
      const host = await world.host(`host of ${key}`, runs)
      await jobs.submit(key, 'work', ['x'], { retry: { attemptsMax: 1 } })
      const run = await runs.next()
      const records = await caller.keyValue(recordsName(ZONE), { ttlMs: 0 })
      await records.put(key, writeRecord({ ...FRESH, status }))
      run.end([true, encode(new RangeError('bad'))])
      await host.close(1000, new Error('closes'))
      assert.equal((await letters.get(key)) !== undefined, status === 'dead')
    }
  },
)

played('a schedule that is cancelled before it has a record leaves none', async (world) => {
  const { jobs } = world
  const isWriting = new Arrivals<void>()
  const mayWrite = new Arrivals<void>()
  const engine = withStores(world.connect('one'), (values, name) =>
    name !== recordsName(ZONE)
      ? values
      : replaced(values, {
          async put(...written) {
            isWriting.push()
            await mayWrite.next()
            return values.put(...written)
          },
        }),
  )
  await jobs.submit('s', 'work', ['x'], { schedule: { everyMs: 60_000 } })
  const host = await world.host('one', new Arrivals(), engine)
  await isWriting.next()
  assert.equal(await jobs.cancel('s'), true)
  mayWrite.push()
  await world.pass(1000)
  assert.equal(await jobs.get('s'), undefined)
  assert.equal(await jobs.count(), 0)
  await host.close(0, new Error('closes'))
})

played('a schedule that a host cannot read is a dead letter', async (world) => {
  const { jobs, caller } = world
  await jobs.submit('s', 'work', ['x'], { schedule: { everyMs: 60_000 } })
  const queue = await caller.queue(queueName(ZONE))
  const job = readJob((await queue.find('s'))!.bytes)!
  const repeat = { everyMs: 0, cron: 'every day', timeZone: 'UTC' }
  await queue.add('odd', writeJob({ ...job, repeat }), 1)
  const host = await world.host('one', new Arrivals())
  await assert.rejects(jobs.result('odd'), ({ cause }: Error) => {
    assert.equal((cause as FleetError).code, 'FLEET_ARGUMENT')
    return true
  })
  assert.equal((await jobs.get('s'))?.status, 'scheduled')
  await host.close(0, new Error('closes'))
})

played('a host that cannot take jobs listens to nothing', async (world) => {
  const own = world.connect('one')
  const why = new FleetError('FLEET_CLOSED', { reason: 'test' })
  const engine = replaced(own, {
    queue: async (name) => replaced(await own.queue(name), { take: () => Promise.reject(why) }),
  })
  await assert.rejects(world.host('one', new Arrivals(), engine), (error) => error === why)
  const replies = new Arrivals<unknown>()
  world.caller.messages!.ask(cancelSubject(ZONE), encode(['cancel', 'k']), replies.push)
  assert.equal(await replies.next(), undefined)
})

played('what is not confirmed is repeated, for as long as its caller waits', async (world) => {
  let tries = 0
  const work = (): Promise<never> => {
    tries++
    return Promise.reject(new FleetError('FLEET_ENGINE', { operation: 'x', reason: 'full' }))
  }
  await assert.rejects(
    certainly(world.caller, work, (spentMs) => spentMs < 1000),
    { code: 'FLEET_ENGINE' },
  )
  assert.equal(tries, 5)
})

played('a schedule is replaced by another one of its key, and not by the same', async (world) => {
  const runs = new Arrivals<Run>()
  const { jobs, caller } = world
  const queue = await caller.queue(queueName(ZONE))
  const hosts = [await world.host('one', runs)]
  const submit = (text: string, everyMs: number, priority: 'normal' | 'low' = 'normal'): Promise<boolean> =>
    jobs.submit('s', 'work', [text], { schedule: { everyMs }, priority })
  for (const is of [true, false]) assert.equal(await submit('first', 3_600_000), is)
  await world.pass(1000)
  // By one of another rank, which is due long before.
  for (const is of [true, false]) assert.equal(await submit('second', 5000, 'low'), is)
  assert.equal(await queue.count(), 1)
  const changedMs = world.clock.nowMs()
  const run = await runs.next()
  assert.deepEqual([decode(run.args), world.clock.nowMs() - changedMs >= 4900], [['second'], true])
  run.end()
  // The next one goes on from the times of the second.
  const next = await runs.next()
  assert.equal(Date.parse(next.key.slice(2)) - Date.parse(run.key.slice(2)), 5000)
  next.end()
  // Only a schedule replaces a schedule.
  assert.equal(await jobs.submit('s', 'work', ['job']), false)
  await jobs.submit('k', 'work', ['job'], { delayMs: 1000 })
  assert.equal(await jobs.submit('k', 'work', ['x'], { schedule: { everyMs: 1000 } }), false)
  assert.equal(await jobs.cancel('s'), true)
  assert.equal(await queue.count(), 1)
  await Promise.all(hosts.map((host) => host.close(0, new Error('closes'))))
})

played('a schedule is replaced while its host is cut off, and by many at once', async (world) => {
  const [stale, fresh] = [new Arrivals<Run>(), new Arrivals<Run>()]
  const { jobs, caller } = world
  const submit = (text: string, everyMs = 2000): Promise<boolean> =>
    jobs.submit('s', 'work', [text], { schedule: { everyMs } })
  const one = await world.host('one', stale)
  await submit('first')
  await world.pass(500)
  world.cut.add('one')
  await submit('second')
  const two = await world.host('two', fresh)
  assert.deepEqual(decode((await fresh.next()).args), ['second'])
  world.cut.delete('one')
  const texts = ['a', 'b', 'c', 'd']
  await Promise.all(texts.map((text) => submit(text, 60_000)))
  assert.equal(await (await caller.queue(queueName(ZONE))).count(), 2) // one schedule, and the job that runs
  await world.pass(10_000)
  assert.equal(stale.count + fresh.count, 0)
  await jobs.cancel('s')
  await Promise.all([one, two].map((host) => host.close(0, new Error('closes'))))
})

played('a schedule may queue one job behind the one that runs', async (world) => {
  const runs = new Arrivals<Run>()
  const host = await world.host('one', runs)
  const schedule = { everyMs: 1000, overlaps: 'queue' } as const
  await world.jobs.submit('s', 'work', ['x'], { schedule })
  const first = await runs.next()
  await world.pass(3100)
  assert.equal(runs.count, 0)
  first.end()
  const second = await runs.next()
  assert.equal(Date.parse(second.key.slice(2)) - Date.parse(first.key.slice(2)), 1000)
  await host.close(0, new Error('closes'))
})

played('a schedule may cancel the job that runs for the next one', async (world) => {
  const runs = new Arrivals<Run>()
  const host = await world.host('one', runs)
  const schedule = { everyMs: 1000, overlaps: 'cancel' } as const
  await world.jobs.submit('s', 'work', ['x'], { schedule })
  const first = await runs.next()
  const second = await runs.next()
  await world.pass(100)
  assert.deepEqual([(await world.jobs.get(first.key))?.status, first.signal.aborted], ['cancelled', true])
  assert.equal(Date.parse(second.key.slice(2)) - Date.parse(first.key.slice(2)), 1000)
  const odd = { everyMs: 1000, overlaps: 'odd' as never }
  await assert.rejects(world.jobs.submit('k', 'work', ['x'], { schedule: odd }), {
    code: 'FLEET_ARGUMENT',
    message: /true, false, 'queue' or 'cancel'/,
  })
  await host.close(0, new Error('closes'))
})

for (const overlaps of [true, false])
  played(
    `jobs of a schedule with overlaps ${overlaps} ${overlaps ? '' : 'do not '}run at once`,
    async (world) => {
      const runs = new Arrivals<Run>()
      const host = await world.host('one', runs)
      const submit = (text: string): Promise<boolean> =>
        world.jobs.submit('s', 'work', [text], { schedule: { everyMs: 1000, overlaps } })
      await submit('first')
      const first = await runs.next()
      await world.pass(3100)
      assert.equal(runs.count, overlaps ? 3 : 0)
      // What the last definition has added counts for the next one.
      await submit('second')
      await world.pass(3000)
      assert.equal(runs.count >= 3, overlaps)
      first.end()
      if (!overlaps) assert.deepEqual(decode((await runs.next()).args), ['second'])
      await world.jobs.cancel('s')
      await host.close(0, new Error('closes'))
    },
  )

played('a host that did not receive that a queue is paused, or is resumed, finds it', async (world) => {
  const runs = new Arrivals<Run>()
  const { jobs } = world
  const one = await world.host('one', runs)
  for (const isPaused of [true, false]) {
    world.cut.add('one')
    assert.equal(isPaused ? await jobs.pause() : await jobs.resume(), true)
    await world.pass(2 * LEASE_MS)
    world.cut.delete('one')
    await world.pass(4 * LEASE_MS)
    await jobs.submit(`k ${isPaused}`, 'work', ['first'])
    await world.pass(LEASE_MS)
    assert.equal(runs.count, isPaused ? 0 : 2)
  }
  for (const _ of [1, 2]) (await runs.next()).end()
  assert.equal(await jobs.result('k true'), 'first at one')
  await one.close(0, new Error('closes'))
})

played('a host whose connection ends while it resumes leaves its queue', async (world) => {
  const runs = new Arrivals<Run>()
  const { jobs } = world
  const engine = world.connect('one')
  const one = await world.host('one', runs, engine)
  await jobs.pause()
  await world.pass(LEASE_MS)
  await jobs.resume()
  await engine.close()
  await world.pass(LEASE_MS)
  await jobs.submit('k', 'work', ['first'])
  await world.pass(LEASE_MS)
  assert.equal(runs.count, 0)
  await one.close(0, new Error('closes'))
})

played('a host that closes while it resumes takes nothing', async (world) => {
  const runs = new Arrivals<Run>()
  const { jobs } = world
  const one = await world.host('one', runs)
  await jobs.pause()
  await world.pass(LEASE_MS)
  await jobs.resume()
  const closing = one.close(0, new Error('closes'))
  await jobs.submit('k', 'work', ['first'])
  await closing
  await world.pass(LEASE_MS)
  assert.equal(runs.count, 0)
})

test('a caller waits for the engine twice to submit, and once for a result of others', () =>
  scripted(async (clock) => {
    const TRIP_MS = 10
    const world = new World(clock)
    world.carry = (_client, arrive) => void clock.after(TRIP_MS / 2, arrive)
    const { caller } = world
    const engine = replaced(caller, { messages: undefined })
    const jobs = new Jobs<Module>(engine, ZONE)
    const records = await engine.keyValue(recordsName(ZONE), { ttlMs: 0 })
    await jobs.count() // which opens what all of them need
    const trips = async (asked: () => Promise<unknown>): Promise<number> => {
      const begunMs = clock.nowMs()
      await asked()
      return (clock.nowMs() - begunMs) / TRIP_MS
    }
    assert.equal(await trips(() => jobs.submit('k', 'work', ['x'])), 2)
    const ended: JobRecord = { ...FRESH, status: 'done', value: encode('x'), addedMs: 1 }
    await records.put('k', writeRecord(ended))
    assert.equal(await trips(() => jobs.result('k')), 1)
    // What is missing is looked for once more: another submission may have replaced it between the two.
    assert.equal(await trips(() => assert.rejects(jobs.result('none'), { code: 'JOB_UNKNOWN' })), 4)
  }))

played(
  'again that is repeated behind a step that was not confirmed keeps the job',
  async ({ caller, jobs }) => {
    const [queue, letters] = [
      await caller.queue(queueName(ZONE)),
      await caller.keyValue(lettersName(ZONE), { ttlMs: 0 }),
    ]
    const leases = new Arrivals<Lease>()
    const end = await queue.take(leases.push, { leasesMax: 1, leaseMs: LEASE_MS })
    await jobs.submit('k', 'work', ['x'])
    const { bytes, addedMs, done } = await leases.next()
    end()
    // Its host has not ended its item yet, and the record was deleted by the call before.
    await letters.put('k', writeLetter({ job: bytes, record: { ...FRESH, status: 'dead', addedMs } }))
    assert.equal(await jobs.again('k'), true)
    await done()
    assert.notEqual(await queue.find('k'), undefined)
    assert.equal(await letters.get('k'), undefined)
  },
)

played('a job that is cancelled without a confirmation has been cancelled', async ({ caller, jobs }) => {
  let puts = 0
  // An engine that has lost its connection repeats a write, which finds its own revision taken.
  const engine = withStores(caller, (values, name) =>
    name !== recordsName(ZONE)
      ? values
      : replaced(values, {
          async put(...written) {
            puts += 1
            await values.put(...written)
            return values.put(...written)
          },
        }),
  )
  await jobs.submit('k', 'work', ['x'])
  assert.equal(await new Jobs<Module>(engine, ZONE).cancel('k'), true)
  assert.equal(puts, 1)
  assert.equal(await jobs.count(), 0)
  assert.equal((await jobs.get('k'))?.status, 'cancelled')
})

played('who cancels or forgets a job late leaves the next one of its key', async ({ caller, jobs }) => {
  const next = ['next'] as const
  let meanwhile = async (): Promise<unknown> => assert.fail()
  // Others are faster behind the write that cancels, and behind the record that is to be forgotten.
  const engine = withStores(caller, (values, name) =>
    replaced(values, {
      async put(...given) {
        const written = await values.put(...given)
        if (name === recordsName(ZONE)) await meanwhile()
        return written
      },
      async get(key) {
        const found = await values.get(key)
        if (name === lettersName(ZONE)) await meanwhile()
        return found
      },
    }),
  )
  const late = new Jobs<Module>(engine, ZONE)
  const records = await caller.keyValue(recordsName(ZONE), { ttlMs: 0 })
  await jobs.submit('replaced', 'work', ['x'])
  meanwhile = () => jobs.submit('replaced', 'work', next, { replace: true })
  assert.equal(await late.cancel('replaced'), true)
  await records.put('freed', writeRecord({ ...FRESH, status: 'dead' }))
  meanwhile = async () => [await jobs.forget('freed'), await jobs.submit('freed', 'work', next)]
  assert.equal(await late.forget('freed'), false)
  // The record of the job that it replaces is there until a host has it.
  await jobs.submit('behind', 'work', ['x'], { delayMs: 1000 })
  await jobs.submit('behind', 'work', next, { replace: true })
  const { revision } = (await records.get('behind'))!
  await records.put('behind', writeRecord({ ...FRESH, status: 'cancelled', addedMs: 1 }), { revision })
  assert.equal(await jobs.forget('behind'), false)
  assert.equal(await jobs.count(), 3)
  assert.deepEqual([await jobs.cancel('behind'), await jobs.forget('behind')], [true, true])
  assert.equal(await jobs.count(), 2)
})

played('who cancels a schedule leaves the one that replaces it meanwhile', async ({ caller, jobs }) => {
  const queue = await caller.queue(queueName(ZONE))
  const records = await caller.keyValue(recordsName(ZONE), { ttlMs: 0 })
  const scheduled = (everyMs: number): Promise<boolean> =>
    jobs.submit('s', 'work', ['x'], { schedule: { everyMs } })
  const remove: typeof queue.remove = async (...given) => {
    await scheduled(2000)
    const { addedMs } = (await queue.find('s'))!
    await records.put('s', writeRecord({ ...FRESH, status: 'scheduled', addedMs }))
    await queue.remove(...given)
  }
  const engine = replaced(caller, { queue: async () => replaced(queue, { remove }) })
  await scheduled(1000)
  assert.equal(await new Jobs<Module>(engine, ZONE).cancel('s'), true)
  assert.deepEqual([await jobs.count(), (await jobs.get('s'))?.status], [1, 'scheduled'])
})
