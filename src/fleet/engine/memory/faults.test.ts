/**
 * What queues and values promise when messages are lost, delayed and repeated, leaders are alone,
 * and clients die, by seeds.
 *
 * A failing seed is in the name of the failure: CORESPUN_SEED runs that one alone, CORESPUN_SEEDS=1000 so
 * many instead of 150.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FleetError } from '../../errors.ts'
import type { Lease } from '../engine.ts'
import { scripted, seeded } from '../../../test/played.test.support.ts'
import { Simulation } from './simulation.ts'

const BAD = { loss: 0.2, repeat: 0.1, delayMs: 40 }
const none = new Uint8Array()

/** The work once for each seed. */
const played = (work: (world: Simulation) => Promise<void>): Promise<void> =>
  seeded(150, (seed, clock) => work(new Simulation(seed, BAD, clock)))

/** Repeat what was not confirmed. */
async function certainly<Value>(work: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof FleetError) || error.code !== 'FLEET_TIMEOUT') throw error
    }
  }
}

test('every item of a queue is taken to its end, though takers die and leaders are alone', () =>
  played(async (world) => {
    const done = new Set<string>()
    const take = async (name: string): Promise<void> => {
      const engine = world.connect(name)
      const queue = await engine.queue('work')
      const on = (lease: Lease): void => {
        // One in ten takers dies with what it has, and another one comes.
        if (world.random() < 0.1) return void engine.close().then(() => take(`${name}'`))
        if (world.random() < 0.2) return lease.again(world.random() * 50)
        lease.extend()
        done.add(lease.id)
        lease.done().catch(() => {}) // lost: it is lent again
      }
      // It may be lent an item, and die, before it receives that it takes any.
      await certainly(() => queue.take(on, { leasesMax: 3, leaseMs: 300 })).catch((error: FleetError) =>
        assert.equal(error.code, 'FLEET_CLOSED'),
      )
    }
    await Promise.all([take('one'), take('two')])
    const producer = await world.connect('producer').queue('work')
    const ids = Array.from({ length: 12 }, (_, index) => `item ${index}`)
    for (const id of ids) {
      if (world.random() < 0.1) world.leaveAlone('producer', world.random() * 2000)
      if (world.random() < 0.1) world.leaveAlone('one', world.random() * 1000)
      await certainly(() => producer.add(id, none, 1))
    }
    while ((await certainly(() => producer.count())) > 0);
    assert.deepEqual([...done].sort(), [...ids].sort())
  }))

test('writes by revision are never lost, nor done on an older value, in partitions too', () =>
  played(async (world) => {
    const names = ['one', 'two', 'three']
    const increments = 4
    const work = async (name: string): Promise<void> => {
      const values = await world.connect(name).keyValue('counts', { ttlMs: 0 })
      for (let count = 0; count < increments;) {
        if (world.random() < 0.2) {
          world.cut.add(name)
          world.clock.after(100, () => world.cut.delete(name))
        }
        if (world.random() < 0.1) world.leaveAlone(name, world.random() * 2000)
        const found = await certainly(() => values.get('n'))
        const value = new Uint8Array([(found?.bytes?.[0] ?? 0) + 1])
        try {
          await values.put('n', value, { revision: found?.revision ?? 0 })
          count++
        } catch (error) {
          assert.ok(error instanceof FleetError)
          assert.match(error.code, /^FLEET_(TIMEOUT|CONFLICT)$/)
        }
      }
    }
    await Promise.all(names.map(work))
    const values = await world.connect('reader').keyValue('counts', { ttlMs: 0 })
    const { bytes, revision } = (await certainly(() => values.get('n')))!
    // Each write has added one to the value that it replaced: one on an older value would make it less.
    assert.equal(bytes![0], revision)
    assert.ok(revision >= names.length * increments)
  }))

test('the same seed has the same run', async () => {
  const run = async (): Promise<string> => {
    const received: string[] = []
    await scripted(async (clock) => {
      const world = new Simulation(7, BAD, clock)
      await certainly(() =>
        world
          .connect('listener')
          .listen('x', ({ bytes }) => received.push(`${bytes[0]} at ${world.clock.nowMs()}`)),
      )
      const mouth = world.connect('mouth')
      for (let count = 0; count < 50; count++) mouth.send('x', new Uint8Array([count]))
      await new Promise<void>((resolve) => world.clock.after(100, resolve))
    })
    return received.join()
  }
  const first = await run()
  assert.ok(first.length > 100)
  assert.equal(await run(), first)
})
