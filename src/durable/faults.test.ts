/**
 * What runs promise when messages are lost, delayed and repeated, leaders are alone, processes are cut off,
 * and die between effect, append and resume: by seeds, against everything that was ever written of them.
 *
 * CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=1000 plays 1,000 instead of a part of 104.
 * It takes some seconds: each seed plays a quarter of a minute of three processes, event by event.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Schedule, addFinalizer, all, race } from '../fiber/index.ts'
import { scripted, seeded } from '../test/played.test.support.ts'
import { type Engine, hasCode, simulated } from '../fleet/internal.ts'
import { type Durable, RunError, checkpoint, child, durable, pause, signal, step } from './index.ts'
import { wake } from './heads.ts'
import { Rooms } from './rooms.ts'
import {
  type Head,
  boxesName,
  hasEnded,
  headsName,
  journalIn,
  journalName,
  readHead,
  readRecord,
} from './records.ts'
import { Runs as AllRuns } from './runs.ts'

const { Simulation } = await simulated()

const BAD = { loss: 0.05, repeat: 0.05, delayMs: 30 }
const QUIET = { loss: 0, repeat: 0, delayMs: 1 }
const SETTINGS = { runsMax: 8, leaseMs: 600, idleMs: 150 }
const KEYS = ['a', 'b', 'c']

/** Processes that come and go, and a record of all that is kept and called. */
class World extends Simulation {
  /** Calls of steps by their keys, and those that came after the step was recorded. */
  readonly late: string[] = []
  readonly ends = new Map<string, string[]>()
  readonly #recorded = new Set<string>()
  /** The heads and the records that are kept now. */
  readonly #heads = new Map<string, Head>()
  readonly #records = new Set<string>()
  readonly #alive = new Map<string, () => void>()
  readonly part = durable('part', function* (input: string) {
    yield* pause(100)
    return input.slice(0, -1)
  })
  readonly letter = durable('letter', function* (n: number) {
    return (yield* signal<string>('letter')) || n
  })
  isQuiet = false
  isMended = false
  /** Whether a write may be committed long after the process that has sent it was cut off. */
  mayBeAlone = true
  deaths = 0

  constructor(seed: number, clock: Engine['clock']) {
    super(seed, BAD, clock)
    this.broker.keyValue(journalName('order'), 0).watch(({ key, bytes }) => {
      const [id] = key.split('.')
      if (bytes === undefined) this.#records.delete(key)
      else this.#records.add(key)
      for (const entry of bytes === undefined ? [] : readRecord(bytes).entries) {
        if (entry.kind !== 'done' && entry.kind !== 'error') continue
        const of = `${id}/${entry.key}`
        if (this.#recorded.has(of)) this.late.push(`recorded twice: ${of}`)
        this.#recorded.add(of)
      }
    }, 'start')
    this.broker.keyValue(headsName('order'), 0).watch(({ key, bytes }) => {
      const head = bytes === undefined ? undefined : readHead(bytes)
      if (head === undefined) this.#heads.delete(key)
      else this.#heads.set(key, head)
      if (head !== undefined && hasEnded(head))
        this.ends.set(key, [...(this.ends.get(key) ?? []), head.status])
    }, 'start')
  }

  get nowMs(): number {
    return this.epochMs + this.clock.nowMs()
  }

  /** A step that takes its time, fails now and then, and under which its process may die. */
  async effect(key: string, name: string): Promise<string> {
    const [, id, ...rest] = key.split('/')
    if (this.#recorded.has(`${id}/${rest.join('/')}`)) this.late.push(`called again: ${key}`)
    await new Promise<void>((resolve) => this.clock.after(this.random() * 60, resolve))
    if (this.random() < 0.1) throw new Error('busy')
    return name
  }

  definition(): Durable<'order', string, string[]> {
    const effect = (name: string) =>
      step(name, ({ key }) => this.effect(key, name), [], { retry: Schedule.spaced(20) })
    const { part } = this
    const isBroken = (input: string): boolean => input.startsWith('f') && !this.isMended
    return durable('order', function* (input: string) {
      // One that has left its process undoes nothing.
      addFinalizer(function* ({ kind }) {
        if (kind === 'interruption') yield* effect('undo')
      })
      if (!input.endsWith('!')) {
        yield* effect('zero')
        yield* checkpoint(`${input}!`)
      }
      const first = yield* effect('first')
      const pair = yield* all([effect('left'), effect('right')])
      yield* pause(200)
      const started = yield* child(part, input)
      const winner = yield* race([effect('won'), pause(1_000_000)])
      const letter = yield* signal<string>('letter')
      const last = yield* effect('last')
      if (isBroken(input)) throw new RangeError('broken')
      return [started, first, ...pair, String(winner), letter, last]
    })
  }

  async host(name: string): Promise<void> {
    const engine = this.connect(name)
    const die = (): void => {
      if (this.isQuiet || !this.#alive.delete(name)) return
      this.deaths++
      void engine.close()
      void this.host(`${name}'`)
    }
    this.#alive.set(name, die)
    this.clock.after(this.random() * 1500, die)
    if (this.random() < 0.3) this.#cut(name)
    try {
      await AllRuns.open(engine, [this.definition(), this.part, this.letter], SETTINGS, {
        nowMs: () => this.nowMs,
      })
    } catch (error) {
      assert.ok(hasCode(error, 'FLEET_CLOSED'), String(error))
    }
  }

  /** A process that is cut off, or whose leader is alone, for some time. */
  #cut(name: string): void {
    this.clock.after(this.random() * 800, () => {
      if (this.isQuiet) return
      if (this.mayBeAlone && this.random() < 0.5) return this.leaveAlone(name, this.random() * 1500)
      this.cut.add(name)
      this.clock.after(this.random() * 1500, () => this.cut.delete(name))
    })
  }

  #rest(msMax: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(this.random() * msMax, resolve))
  }

  /** One that only starts runs and finds them. */
  async #caller<Of extends Durable>(name: string, definition: Of) {
    const engine = this.connect(name)
    const [settings, wall] = [{ ...SETTINGS, runsMax: 0 }, { nowMs: () => this.nowMs }]
    return { engine, work: await AllRuns.open(engine, [definition] as const, settings, wall) }
  }

  #begin(): void {
    for (const name of ['one', 'two']) void this.host(name)
    this.clock.after(12_000, () => {
      this.isQuiet = true
      this.faults = QUIET
      this.cut.clear()
    })
  }

  async play(): Promise<void> {
    this.#begin()
    const { work } = await this.#caller('caller', this.definition())
    const results = KEYS.map(async (key) => {
      const run = await work.start('order', key, { key })
      await this.#rest(3000)
      await run.signal('letter', `for ${key}`)
      return run.result()
    })
    const cancelled = await work.start('order', 'x', { key: 'x' })
    await this.#rest(1500)
    assert.equal(await cancelled.cancel(), true)
    await assert.rejects(
      cancelled.result(),
      (error) => error instanceof RunError && error.code === 'RUN_CANCELLED',
    )
    assert.deepEqual(await Promise.all(results), KEYS.map(expected))
    assert.deepEqual(this.late, [])
    for (const key of KEYS) assert.deepEqual(this.ends.get(key), ['done'])
    assert.deepEqual(this.ends.get('x'), ['cancelled'])
    const undone = [...this.#recorded].filter((of) => of.endsWith('/undo#1'))
    assert.ok(undone.length <= 1, undone.join())
    const { steps } = await cancelled.state()
    const isDone = (name: string): boolean => steps.some((of) => of.name === name && of.status === 'done')
    assert.ok(isDone('undo') || !isDone('first'))
  }

  /** A key is freed and taken again, while others that have found its run before wake it. */
  async playReuse(): Promise<void> {
    this.mayBeAlone = false
    this.#begin()
    const { engine, work } = await this.#caller('caller', this.part)
    const room = await new Rooms(engine, { nowMs: () => this.nowMs }).of('part')
    const reused = { name: 'part', key: 'reused' }
    for (let n = 0; n < 6; n++) {
      const run = await work.start('part', `${n}!`, { key: 'reused' })
      const wakes = [1, 2, 3].map(() => this.#rest(900).then(() => wake(room, reused)))
      assert.equal(await run.result(), String(n))
      assert.equal(await run.forget(), true)
      await Promise.all([...wakes, this.#rest(600)])
    }
  }

  /** A key is free when the time of its run is over, and is taken again: no item is left that begins that. */
  async playTimed(): Promise<void> {
    this.mayBeAlone = false
    this.#begin()
    const { engine, work } = await this.#caller('caller', this.part)
    const ttlMs = 1200
    for (let n = 0; n < 5; n++) {
      const run = await work.start('part', `${n}!`, { key: 'timed', ttlMs })
      const isNow = this.random() < 0.3
      const ended = isNow ? this.#rest(200).then(() => run.cancel({ now: true })) : Promise.resolve()
      await ended
        .then(() => run.result())
        .then(
          (value) => assert.equal(value, String(n)),
          // A caller that was cut off may come too late.
          ({ code }: RunError) =>
            assert.ok(code === 'RUN_UNKNOWN' || (isNow && code === 'RUN_CANCELLED'), code),
        )
      const isThere = (): Promise<boolean> =>
        run.state().then(
          () => true,
          ({ code }: RunError) => code !== 'RUN_UNKNOWN',
        )
      while (await isThere()) await this.#rest(200)
    }
    await this.#rest(100)
    const left = async (of: string): Promise<number> =>
      (await engine.keyValue(of, { ttlMs: 0 })).page({ itemsMax: 9 }).then(({ items }) => items.length)
    assert.deepEqual(await Promise.all([headsName('part'), journalName('part')].map(left)), [0, 0])
  }

  /** A key is freed by two at once, and taken again while the process that had its run has that still. */
  async playTaken(): Promise<void> {
    this.mayBeAlone = false
    this.#begin()
    const { work } = await this.#caller('caller', this.letter)
    const { work: others } = await this.#caller('other', this.letter)
    const isUnknown = (error: unknown): false => {
      assert.ok(['RUN_UNKNOWN', 'RUN_ENDED'].includes((error as RunError).code), String(error))
      return false
    }
    const forgetting: Promise<boolean>[] = []
    for (let n = 0; n < 6; n++) {
      const run = await work.start('letter', n, { key: 'taken' })
      if (this.random() < 0.5) {
        await this.#rest(400)
        await run.cancel({ now: true }).catch(isUnknown)
      } else {
        // Unless who was to forget the one before has come late, and forgotten this one.
        const sent = run.signal('letter', `for ${n}`).then(() => run.result())
        assert.equal((await sent.catch(isUnknown)) || `for ${n}`, `for ${n}`)
      }
      forgetting.push(others.get('letter', 'taken').forget().catch(isUnknown))
      await run.forget().catch(isUnknown)
    }
    await Promise.all(forgetting)
  }

  /** Who copies a run, or has it run again, dies; another call does that then. */
  async playAgain(): Promise<void> {
    this.#begin()
    const { work } = await this.#caller('caller', this.definition())
    const failed = await work.start('order', 'f', { key: 'f' })
    await failed.signal('letter', 'for f')
    await assert.rejects(failed.result(), /broken/)
    this.isMended = true
    const copied = { from: 'last', key: 'copy' }
    for (const name of ['third', 'fourth']) {
      const dying = await this.#caller(name, this.definition())
      const run = dying.work.get('order', 'f')
      const calls = Promise.allSettled([run.again(), run.fork(copied)])
      this.clock.after(this.random() * 150, () => void dying.engine.close())
      await calls
    }
    const copy = await failed.fork(copied)
    while ((await failed.state()).status === 'failed')
      await failed.again().catch((error: unknown) => assert.equal((error as RunError).code, 'RUN_NOT_AGAIN'))
    for (const run of [failed, copy]) assert.deepEqual(await run.result(), expected('f'))
    this.#checkOwned()
  }

  /** Whatever has died, each journal is that of a run. */
  #checkOwned(): void {
    const named = new Set([...this.#heads.values()].flatMap((of) => [journalIn(of), of.before, of.next]))
    for (const key of this.#records) assert.ok(named.has(key.split('.')[0]), `the journal ${key} is nobody's`)
  }
}

const expected = (key: string): string[] => [key, 'first', 'left', 'right', 'won', `for ${key}`, 'last']

async function playAll(count: number, play: (world: World) => Promise<void>, more?: number): Promise<void> {
  let deaths = 0
  const played = async (seed: number, clock: Engine['clock']): Promise<void> => {
    const world = new World(seed, clock)
    await play(world)
    deaths += world.deaths
  }
  await seeded(count, played, { isParted: true })
  if (more !== undefined) await scripted((clock) => played(more, clock), more)
  assert.ok(deaths > 0)
}

// In 702 a process takes up by a new item what another one still has.
test('no recorded step is run again, and each run has one result, whatever dies', () =>
  playAll(104, (world) => world.play(), 702))

// In 587 a process that was cut off writes the head of the one before, and deletes it.
test('a run that takes the key of one that was forgotten ends, whoever wakes that', () =>
  playAll(40, (world) => world.playReuse(), 587))

test('what a process does late of a run does nothing to the next one with its key', () =>
  playAll(40, (world) => world.playTaken()))

test('what is written to run again or to copy is that of a run, and is done once', () =>
  playAll(24, (world) => world.playAgain()))

// In 74 an item is there for longer than the head of its run.
test('what is kept of a run is deleted after its time, and nothing begins it again, whatever dies', () =>
  playAll(24, (world) => world.playTimed(), 74))

test('a process that was cut off before it has read what it is lent leaves the next run', () =>
  scripted(async (clock) => {
    const network = new Simulation(1, QUIET, clock)
    const rest = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))
    const calls: number[] = []
    const order = durable('order', function* (n: number) {
      yield* step('effect', () => {
        calls.push(n)
        return rest(n * 1000)
      })
    })
    const open = (engine: Engine, runsMax: number) =>
      AllRuns.open(
        engine,
        [order],
        { ...SETTINGS, runsMax },
        { nowMs: () => network.epochMs + clock.nowMs() },
      )
    const late = network.connect('late')
    const opened = late.queue.bind(late)
    late.queue = async (name) => {
      const queue = await opened(name)
      return { ...queue, take: (on, of) => queue.take((lease) => (network.cut.add('late'), on(lease)), of) }
    }
    await open(late, 1)
    const work = await open(network.connect('caller'), 0)
    const run = await work.start('order', 0, { key: 'k' })
    await rest(100)
    assert.ok(network.cut.has('late'))
    await open(network.connect('host'), 8)
    await run.result()
    assert.equal(await run.forget(), true)
    const next = await work.start('order', 3, { key: 'k' })
    while (calls.length < 2) await rest(50)
    network.cut.delete('late')
    await next.result()
    assert.deepEqual(calls, [0, 3])
  }))

interface Cut {
  readonly network: InstanceType<typeof Simulation>
  readonly rest: (ms: number) => Promise<void>
  readonly calls: readonly number[]
  readonly work: AllRuns<readonly [Durable<'order', number, void>]>
  readonly host: (name: string) => Promise<unknown>
}

/** A host is cut off when its run has ended, and it reads the signals for the `reads`th time then. */
function cutAtEnd(reads: number, ttlMs: number, forgotten: (played: Cut) => Promise<void>): Promise<void> {
  return scripted(async (clock) => {
    const network = new Simulation(1, QUIET, clock)
    const rest = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))
    const calls: number[] = []
    const order = durable('order', function* (n: number) {
      yield* step('effect', () => (calls.push(n), rest(n * 1000)))
    })
    const nowMs = (): number => network.epochMs + clock.nowMs()
    const open = (engine: Engine, runsMax: number) =>
      AllRuns.open(engine, [order] as const, { ...SETTINGS, runsMax }, { nowMs })
    let left = Infinity
    network.broker.keyValue(headsName('order'), 0).watch(({ bytes }) => {
      if (left === Infinity && bytes !== undefined && hasEnded(readHead(bytes))) left = reads
    }, 'start')
    const late = network.connect('late')
    const opened = late.keyValue.bind(late)
    late.keyValue = async (name, options) => {
      const values = await opened(name, options)
      const get: typeof values.get = (key) => {
        if (name === boxesName('order') && --left === 0) network.cut.add('late')
        return values.get(key)
      }
      return { ...values, get }
    }
    await open(late, 1)
    const work = await open(network.connect('caller'), 0)
    const run = await work.start('order', 0, { key: 'k', ttlMs })
    await run.result()
    while (!network.cut.has('late')) await rest(10)
    assert.equal(await run.forget(), true)
    await forgotten({ network, rest, calls, work, host: (name) => open(network.connect(name), 8) })
  })
}

test('who ends a run that is kept for a time late leaves the next one to its host', () =>
  cutAtEnd(1, 60_000, async ({ network, rest, calls, work, host }) => {
    const next = await work.start('order', 3, { key: 'k' })
    for (const name of ['one', 'two']) await host(name)
    while (calls.length < 2) await rest(50)
    network.cut.delete('late')
    await next.result()
    assert.deepEqual(calls, [0, 3])
  }))

test('who ends a run that is kept for a time late leaves the next one without one', () =>
  cutAtEnd(2, 2000, async ({ network, rest, work, host }) => {
    const next = await work.start('order', 1, { key: 'k' })
    await host('one')
    await next.result()
    network.cut.delete('late')
    await rest(6000)
    assert.equal((await next.state()).status, 'done')
  }))

test('a run is deleted after its time, and not repeated, when who was to run it again has died', () =>
  scripted(async (clock) => {
    const network = new Simulation(1, QUIET, clock)
    const rest = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))
    const calls: number[] = []
    const broken = durable('broken', function* () {
      yield* step('effect', () => calls.push(calls.length))
      throw new RangeError('broken')
    })
    const nowMs = (): number => network.epochMs + clock.nowMs()
    const open = (name: string, runsMax: number) =>
      AllRuns.open(network.connect(name), [broken] as const, { ...SETTINGS, runsMax }, { nowMs })
    await open('host', 8)
    const work = await open('caller', 0)
    const dying = await open('dying', 0)
    const run = await work.start('broken', undefined, { key: 'k', ttlMs: 2000 })
    await assert.rejects(run.result(), /broken/)
    const heads = network.broker.keyValue(headsName('broken'), 0)
    heads.watch(({ bytes }) => {
      if (bytes !== undefined && readHead(bytes).next !== undefined) network.cut.add('dying')
    }, 'now')
    void dying.get('broken', 'k').again()
    while (!network.cut.has('dying')) await rest(10)
    await rest(3000)
    assert.equal(network.broker.valuesIn(journalName('broken')), 0)
    assert.equal((await run.state()).status, 'failed')
    while (heads.size > 0) await rest(1000)
    await assert.rejects(run.again(), { code: 'RUN_UNKNOWN' })
    const other = await work.start('broken', undefined, { key: 'other', ttlMs: 60_000 })
    await assert.rejects(other.result(), /broken/)
    const { id } = readHead(heads.get('other')!.bytes!)
    network.broker.keyValue(journalName('broken'), 0).put(`${id}.0`, undefined)
    await assert.rejects(other.again(), { code: 'RUN_NOT_AGAIN', message: /ttlMs/ })
    assert.deepEqual(calls, [0, 1])
  }))
