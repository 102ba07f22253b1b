/**
 * Stores, locks and sessions on the engine in memory; locks also on a network that loses, delays and cuts
 * off, by seeds.
 *
 * The tests themselves are in state.test.support.ts. A failing seed is in the name of the failure:
 * CORESPUN_SEED runs that one alone.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sessionTests } from '../../http/sessions.test.support.ts'
import { connect } from '../connect.ts'
import { newName } from '../engine/conformance.test.support.ts'
import { seeded } from '../../test/played.test.support.ts'
import { Simulation } from '../engine/memory/simulation.ts'
import { FleetError } from '../errors.ts'
import { FarLock } from './lock.ts'
import { stateTests } from './state.test.support.ts'

stateTests('memory', () => connect('memory:state'))

const far = connect('memory:sessions')
after(async () => (await far).close())
sessionTests('memory', async () => (await far).store(newName(), { ttlMs: 86_400_000 }))

test('wrong arguments are refused by name', async () => {
  await using fleet = await connect('memory:wrong state')
  const bad = { code: 'FLEET_ARGUMENT' }
  assert.throws(() => fleet.store('a b'), bad)
  assert.throws(() => fleet.store('a', { ttlMs: 5 }), bad)
  assert.throws(() => fleet.lock('a b'), bad)
  assert.throws(() => fleet.lock('a', { leaseMs: 5 }), bad)
  const prices = fleet.store<unknown>('prices')
  await assert.rejects(prices.get(''), bad)
  await assert.rejects(prices.set('k', 1, { revision: -1 }), bad)
  await assert.rejects(prices.update('k', 5 as never), bad)
  await assert.rejects(prices.delete(5 as never), bad)
  await assert.rejects(prices.copy({ checkMs: 1 }), bad)
  await assert.rejects(prices.set('k', 'x'.repeat(2 ** 21)), { code: 'FLEET_TOO_LARGE' })
  await assert.rejects(fleet.lock('a').guard(5 as never), bad)
  await assert.rejects(fleet.lock('a').tryGuard(5 as never), bad)
})

const BAD = { loss: 0.15, repeat: 0.1, delayMs: 60 }
const CLIENTS = ['one', 'two', 'three']
const TURNS = 3

/** Hold the lock some times, for as long as it lasts; two that hold it at once are an error. */
async function turns(world: Simulation, name: string, held: Set<string>, tokens: number[]): Promise<void> {
  const lock = new FarLock(world.connect(name), 'l', 1000)
  for (let turn = 0; turn < TURNS;) {
    const work = lock.guard(async ({ token, signal }) => {
      assert.deepEqual([...held], [], `${name} holds it too`)
      tokens.push(token)
      held.add(name)
      const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      void over.then(() => held.delete(name))
      if (world.random() < 0.3) {
        world.cut.add(name)
        world.clock.after(4000, () => world.cut.delete(name))
      }
      const ended = new Promise<void>((resolve) => void world.clock.after(world.random() * 3000, resolve))
      await Promise.race([ended, over])
      held.delete(name)
    })
    try {
      await work
      turn++
    } catch (error) {
      assert.ok(error instanceof FleetError && error.code === 'LOCK_LOST', String(error))
    }
  }
}

test('two never hold a lock at once, and tokens grow, on a bad network', () =>
  seeded(60, async (seed, clock) => {
    const world = new Simulation(seed, BAD, clock)
    const held = new Set<string>()
    const tokens: number[] = []
    await Promise.all(CLIENTS.map((name) => turns(world, name, held, tokens)))
    assert.deepEqual(
      tokens,
      [...tokens].sort((a, b) => a - b),
    )
    assert.ok(tokens.length >= CLIENTS.length * TURNS)
  }))
