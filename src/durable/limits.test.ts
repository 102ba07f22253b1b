/**
 * Priorities and limits of durable runs, in simulated time, step by step and by seeds when messages are lost,
 * processes are cut off and die: no more runs of a limit are in processes than it allows, and all end.
 *
 * CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=1000 plays 1,000.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { race } from '../fiber/index.ts'
import { type Engine, hasCode, simulated } from '../fleet/internal.ts'
import { scripted, seeded } from '../test/played.test.support.ts'
import { call } from './heads.ts'
import { type Durable, type RunError, child, durable, pause, signal, step } from './index.ts'
import { Rooms } from './rooms.ts'
import { Runs } from './runs.ts'

const { Simulation } = await simulated()

const BAD = { loss: 0.05, repeat: 0.05, delayMs: 30 }
const QUIET = { loss: 0, repeat: 0, delayMs: 1 }
const SETTINGS = { runsMax: 8, leaseMs: 600, idleMs: 150 }

/** Processes that come and go, and what runs in them. */
class World extends Simulation {
  readonly begun: string[] = []
  /** One that is cancelled has no slot: it ends at once. */
  readonly #cancelled = new Set<string>()
  readonly #running = new Set<{ readonly of: string; readonly host: string }>()
  readonly #dead = new Set<string>()
  readonly exceeded: string[] = []
  isQuiet = false
  deaths = 0

  constructor(seed: number, clock: Engine['clock'], faults = BAD) {
    super(seed, faults, clock)
  }

  rest(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }

  /** A run that is in its process until its step has ended, leaves that, and comes back. */
  definition(host: string) {
    const work = (of: string) =>
      step('work', ({ signal: aborted }) => this.#work(of, host, aborted as AbortSignal))
    return durable('tenant', function* (of: string) {
      yield* work(of)
      yield* pause(400)
      yield* work(of)
      return of
    })
  }

  async #work(of: string, host: string, aborted: AbortSignal): Promise<void> {
    if (this.#dead.has(host) || aborted.aborted) return
    this.begun.push(of)
    const run = { of, host }
    this.#running.add(run)
    aborted.addEventListener('abort', () => this.#running.delete(run))
    const isCounted = (other: string): boolean =>
      other.slice(0, 5) === of.slice(0, 5) && !this.#cancelled.has(other)
    const count = [...this.#running].filter((other) => isCounted(other.of)).length
    if (of.startsWith('two') && count > 2) this.exceeded.push(`${this.clock.nowMs()}: ${of}`)
    // Some take longer than a process that is cut off keeps its slot.
    await this.rest(this.random() < 0.3 ? 1500 : 50 + this.random() * 200)
    this.#running.delete(run)
  }

  open(engine: Engine, host: string, runsMax = SETTINGS.runsMax) {
    const wall = { nowMs: () => this.epochMs + this.clock.nowMs() }
    return Runs.open(engine, [this.definition(host)] as const, { ...SETTINGS, runsMax }, wall)
  }

  async host(name: string): Promise<void> {
    const engine = this.connect(name)
    const die = (): void => {
      if (this.isQuiet || this.#dead.has(name)) return
      this.deaths++
      this.#dead.add(name)
      for (const run of this.#running) if (run.host === name) this.#running.delete(run)
      void engine.close()
      void this.host(`${name}'`)
    }
    this.clock.after(500 + this.random() * 2500, die)
    this.clock.after(this.random() * 2000, () => {
      if (this.isQuiet || this.random() < 0.5) return
      this.cut.add(name)
      this.clock.after(this.random() * 1500, () => this.cut.delete(name))
    })
    try {
      await this.open(engine, name)
    } catch (error) {
      assert.ok(hasCode(error, 'FLEET_CLOSED'), String(error))
    }
  }

  async play(): Promise<void> {
    for (const name of ['one', 'two', 'three']) void this.host(name)
    this.clock.after(10_000, () => {
      this.isQuiet = true
      this.faults = QUIET
      this.cut.clear()
    })
    const work = await this.open(this.connect('caller'), 'caller', 0)
    const all = Array.from({ length: 12 }, async (_, n) => {
      const tenant = n % 3 === 0 ? 'free' : `two ${n % 2}`
      await this.rest(this.random() * 4000)
      const priority = (['high', 'normal', 'low'] as const)[Math.floor(this.random() * 3)]
      const limit = tenant === 'free' ? undefined : { per: tenant, concurrency: 2 }
      const of = `${tenant} ${n}`
      const run = await work.start('tenant', of, { key: `${n}`, priority, limit })
      await this.rest(this.random() * 1000)
      const isToEnd = this.random() < 0.3
      if (isToEnd) this.#cancelled.add(of)
      const isCancelled = isToEnd && (await run.cancel())
      const ended = run.result().catch((error: unknown) => (error as RunError).code)
      assert.ok([of, isCancelled && 'RUN_CANCELLED'].includes(await ended))
    })
    await Promise.all(all)
    assert.deepEqual(this.exceeded, [])
  }
}

test('no more runs of a limit are in processes than it allows, and all end, whatever dies', async () => {
  let deaths = 0
  await seeded(
    40,
    async (seed, clock) => {
      const world = new World(seed, clock)
      await world.play()
      deaths += world.deaths
    },
    { isParted: true },
  )
  assert.ok(deaths > 0)
})

test('a process that is cut off leaves a run before another one has its slot', () =>
  scripted(async (clock) => {
    const world = new World(1, clock, QUIET)
    let [running, most] = [0, 0]
    const long = durable('long', () =>
      step('work', async ({ signal: aborted }) => {
        most = Math.max(most, ++running)
        const ends = new Promise((resolve) => aborted?.addEventListener('abort', resolve))
        await Promise.race([world.rest(5000), ends])
        running--
      }),
    )
    const wall = { nowMs: () => world.epochMs + clock.nowMs() }
    const open = (host: string) => Runs.open(world.connect(host), [long] as const, SETTINGS, wall)
    const first = await open('first')
    await first.start('long', undefined, { key: 'a', limit: { concurrency: 1 } })
    while (running === 0) await world.rest(10)
    world.cut.add('first')
    const second = await open('second')
    await second.get('long', 'a').result()
    assert.equal(most, 1)
    world.cut.clear()
    await Promise.all([first.close(), second.close()])
  }))

test('a turn that is called does not wake the next run with its key, which has no limit', () =>
  scripted(async (clock) => {
    const world = new World(1, clock, QUIET)
    const engine = world.connect('host')
    const wall = { nowMs: () => world.epochMs + clock.nowMs() }
    const held = durable('held', () => signal('end'))
    const work = await Runs.open(engine, [held] as const, { ...SETTINGS, idleMs: 60_000 }, wall)
    const run = await work.start('held', undefined, { key: 'a' })
    while ((await run.state()).awaits.length === 0) await world.rest(10)
    const room = await new Rooms(engine, wall).of('held')
    const item = await room.queue.find('a')
    assert.equal(await call(room, 'a', 1), false)
    assert.deepEqual(await room.queue.find('a'), item)
    await run.signal('end')
    await run.result()
    await work.close()
  }))

test('runs of a higher priority are taken first, also when they are woken', () =>
  scripted(async (clock) => {
    const world = new World(1, clock, QUIET)
    const caller = await world.open(world.connect('caller'), 'caller', 0)
    const started = []
    for (const [index, priority] of (['low', 'normal', 'high', 'low', 'high'] as const).entries())
      started.push(await caller.start('tenant', priority, { key: `${index}`, priority }))
    const work = await world.open(world.connect('host'), 'host', 1)
    for (const run of started) await run.result()
    assert.deepEqual(world.begun.slice(0, 2), ['high', 'high'])
    assert.equal(world.begun.filter((of) => of === 'low').length, 4)
    await work.close()
  }))

test('a run that waits for a child of its limit leaves its slot to that, also between short pauses', () =>
  scripted(async (clock) => {
    const world = new World(1, clock, QUIET)
    const limit = { concurrency: 1 }
    const ticking = function* () {
      for (;;) yield* pause(10)
    }
    const visit: Durable<'visit', number, string> = durable('visit', function* (depth: number) {
      if (depth === 0) return 'leaf'
      return yield* race([child(visit, depth - 1, { limit }), ticking()])
    })
    const wall = { nowMs: () => world.epochMs + clock.nowMs() }
    const settings = { ...SETTINGS, idleMs: 60_000 }
    const work = await Runs.open(world.connect('host'), [visit] as const, settings, wall)
    assert.equal(await (await work.start('visit', 2, { limit })).result(), 'leaf')
    await work.close()
  }))

test('a run that waits for its limit can be cancelled, and a child has one too', () =>
  scripted(async (clock) => {
    const world = new World(1, clock, QUIET)
    const limit = { concurrency: 1 }
    const held = durable('held', function* (name: string) {
      yield* signal('end')
      return name
    })
    const parent = durable('parent', function* (name: string) {
      return yield* child(held, name, { key: name, priority: 'low', limit })
    })
    const wall = { nowMs: () => world.epochMs + clock.nowMs() }
    const settings = { ...SETTINGS, idleMs: 60_000 }
    const work = await Runs.open(world.connect('host'), [held, parent] as const, settings, wall)
    const first = await work.start('held', 'first', { key: 'first', limit })
    while ((await first.state()).awaits.length === 0) await world.rest(10)
    const second = await work.start('held', 'second', { key: 'second', limit })
    while ((await second.state()).status !== 'waiting') await world.rest(10)
    const third = await work.start('parent', 'third')
    await second.signal('end')
    assert.equal(await second.cancel(), true)
    await assert.rejects(second.result(), { code: 'RUN_CANCELLED' })
    await first.signal('end')
    assert.equal(await first.result(), 'first')
    await work.get('held', 'third').signal('end')
    assert.equal(await third.result(), 'third')
    await work.close()
  }))
