/**
 * Which host is called: one of this machine while it has capacity, else the least busy.
 *
 * Hosts are played, since all real ones of a test are on one machine: they report themselves, hold the calls
 * that come, and reply when the test lets them.
 */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { encode } from '../../transport/index.ts'
import { type Fleet, connect } from '../connect.ts'
import { cardSubject, hostSubject, readParts, surveySubject, written } from '../wire.ts'

const ZONE = 'z'

class Played {
  calls = 0
  readonly #fleet: Fleet
  readonly #id: string
  readonly #machine: string
  readonly #callsMax: number
  #held: (() => void)[] = []

  private constructor(fleet: Fleet, id: string, machine: string, callsMax: number) {
    this.#fleet = fleet
    this.#id = id
    this.#machine = machine
    this.#callsMax = callsMax
  }

  static async open(fleet: Fleet, id: string, machine: string, callsMax = 2): Promise<Played> {
    const made = new Played(fleet, id, machine, callsMax)
    await fleet.engine.messages!.listen(hostSubject(ZONE, id), ({ bytes, reply }) => {
      if (readParts(bytes)?.[0] !== 'run') return
      made.calls++
      made.#held.push(() => reply(written('value', encode(id), made.#held.length, 0)))
    })
    await fleet.engine.messages!.listen(surveySubject(ZONE), ({ reply }) => reply(made.#card(0)))
    return made
  }

  #card(inFlight: number): Uint8Array {
    return written('card', this.#id, 'v', this.#machine, this.#callsMax, inFlight, false)
  }

  /** Report how many calls run, of whomever. */
  async reports(inFlight: number): Promise<void> {
    this.#fleet.engine.messages!.send(cardSubject(ZONE), this.#card(inFlight))
    await this.#fleet.engine.messages!.flush()
  }

  /** Reply to all that it holds. */
  release(): void {
    for (const reply of this.#held.splice(0)) reply()
  }
}

/** Where a call goes, once it is there. */
async function called(fleet: Fleet, hosts: readonly Played[]): Promise<string> {
  const result = fleet.zone<{ work(): string }>(ZONE).run('work', [])
  await fleet.engine.messages!.flush()
  for (const host of hosts) host.release()
  return result
}

test('a host of this machine is called first, also one that comes later', async () => {
  await using fleet = await connect('memory:near')
  const far = await Played.open(fleet, 'far', 'elsewhere')
  const zone = fleet.zone<{ work(): string }>(ZONE)
  await zone.ready()
  assert.equal(await called(fleet, [far]), 'far')
  const near = await Played.open(fleet, 'near', hostname())
  await near.reports(0)
  for (let time = 0; time < 6; time++) assert.equal(await called(fleet, [near, far]), 'near')
  assert.deepEqual([near.calls, far.calls], [6, 1])
})

test('while the host of this machine has no capacity, the others are called', async () => {
  await using fleet = await connect('memory:near and far')
  const [far, near] = [
    await Played.open(fleet, 'far', 'elsewhere'),
    await Played.open(fleet, 'near', hostname()),
  ]
  await Promise.all([far.reports(0), near.reports(0)])
  const zone = fleet.zone<{ work(): string }>(ZONE)
  await zone.ready()
  await fleet.engine.messages!.flush()
  const four = Array.from({ length: 4 }, () => zone.run('work', []))
  await assert.rejects(zone.run('work', []), { code: 'ZONE_FULL' })
  await fleet.engine.messages!.flush()
  assert.deepEqual([near.calls, far.calls], [2, 2])
  for (const host of [near, far]) host.release()
  assert.deepEqual((await Promise.all(four)).sort(), ['far', 'far', 'near', 'near'])
  // By calls of others, too.
  await near.reports(2)
  assert.equal(await called(fleet, [near, far]), 'far')
  await near.reports(1)
  assert.equal(await called(fleet, [near, far]), 'near')
})

test('of other machines, the host is called that is the least busy by its own limit', async () => {
  await using fleet = await connect('memory:far')
  const small = await Played.open(fleet, 'small', 'one', 2)
  const large = await Played.open(fleet, 'large', 'two', 8)
  await fleet.zone(ZONE).ready()
  await fleet.engine.messages!.flush()
  for (const [inSmall, inLarge, expected] of [
    [1, 3, 'large'],
    [0, 1, 'small'],
    [1, 7, 'small'],
  ] as const) {
    await Promise.all([small.reports(inSmall), large.reports(inLarge)])
    assert.equal(await called(fleet, [small, large]), expected)
  }
})
