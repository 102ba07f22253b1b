/**
 * What an overview shows, on both engines.
 *
 * Whoever looks may look before a host's reply has come; so tests look until they see it.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type Fleet, connect } from './connect.ts'
import { newName } from './engine/conformance.test.support.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { host } from './host/host.ts'
import { presence, readPresence } from './presence.ts'
import type { FleetOverview } from './overview.ts'
import { zone } from '../zone/index.ts'
import { PRESENCE, written } from './wire.ts'

type Scores = typeof import('./scores.test.support.ts')
const MODULE = new URL('./scores.test.support.js', import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'overview-'))
const cpu = zone.create('overview', { workers: 2, graceMs: 100 })
after(async () => {
  await cpu.close()
  rmSync(folder, { recursive: true })
})

/** Look until it is so. */
async function until(far: Fleet, isSo: (overview: FleetOverview) => boolean): Promise<FleetOverview> {
  for (;;) {
    const overview = await far.overview({ waitMs: 50 })
    if (isSo(overview)) return overview
  }
}

function overviewTests(kind: string, open: () => Promise<Fleet>): void {
  hostTests(kind, open)
  queueTests(kind, open)
}

function hostTests(kind: string, open: () => Promise<Fleet>): void {
  test(`${kind}: an overview has all hosts, and how busy each is`, async () => {
    await using far = await open()
    await using other = await open()
    assert.deepEqual(await far.overview(), { hosts: [], queues: [] })
    const name = newName()
    const offer = { name, module: MODULE, zone: cpu, version: 'v1', inFlightMax: 8 }
    const one = await host(far, offer)
    const two = await host(other, { ...offer, name: `${name}_b`, version: 'v2', jobsMax: 2 })
    const flag = join(folder, name)
    const call = far.zone<Scores>(name).run('until', [flag])
    const { hosts } = await until(
      far,
      ({ hosts }) => hosts.length === 2 && hosts.some(({ inFlight }) => inFlight === 1),
    )
    const [first, second] = hosts
    assert.deepEqual([first.id, second.id], [one.id, two.id])
    const { upMs, ...rest } = first
    assert.ok(upMs >= 0)
    const own = { zone: name, version: 'v1', machine: hostname(), pid: process.pid, isLeaving: false }
    const counts = { inFlight: 1, inFlightMax: 8, jobsRunning: 0, jobsMax: 0 }
    assert.deepEqual(rest, { id: one.id, ...own, ...counts })
    assert.deepEqual([second.zone, second.version, second.jobsMax], [`${name}_b`, 'v2', 2])
    const closed = one.close()
    await until(far, ({ hosts: [leaving] }) => leaving?.isLeaving === true)
    writeFileSync(flag, '')
    assert.equal(await call, flag)
    await closed
    await until(other, ({ hosts: left }) => left.length === 1)
  })

  test(`${kind}: what is not a host's reply is not shown`, async () => {
    await using far = await open()
    await using other = await open()
    const end = await other.engine.messages!.listen(PRESENCE, ({ reply }) => {
      for (const bytes of [new Uint8Array([1]), written('host', { id: 'x' }), written('card')]) reply(bytes)
    })
    assert.deepEqual((await far.overview({ waitMs: 50 })).hosts, [])
    end()
    assert.throws(() => far.overview({ waitMs: -1 }), { code: 'FLEET_ARGUMENT' })
  })
}

function queueTests(kind: string, open: () => Promise<Fleet>): void {
  test(`${kind}: an overview has what waits, what was taken and what has failed for good`, async () => {
    await using far = await open()
    const name = newName()
    const jobs = far.jobs<Scores>(name)
    const flag = join(folder, name)
    await jobs.submit('waits', 'until', [flag])
    await jobs.submit('too', 'until', [flag], { priority: 'low' })
    const of = ({ queues }: FleetOverview) => queues.find((queue) => queue.zone === name)
    const before = of(await far.overview())!
    assert.deepEqual(
      { ...before, waitedMs: 0 },
      { kind: 'jobs', zone: name, waiting: 2, taken: 0, dead: 0, waitedMs: 0 },
    )
    await until(far, (overview) => of(overview)!.waitedMs > 0)
    const running = await host(far, { name, module: MODULE, zone: cpu, version: 'v1', jobsMax: 1 })
    const isTaken = (overview: FleetOverview): boolean => {
      const { waiting, taken, waitedMs } = of(overview)!
      return waiting === 1 && taken === 1 && waitedMs > 0
    }
    const { hosts } = await until(far, (all) => isTaken(all) && all.hosts[0]?.jobsRunning === 1)
    assert.equal(hosts[0].zone, name)
    writeFileSync(flag, '')
    await jobs.submit('bad', 'fail', ['LOW'], { retry: { attemptsMax: 1 } })
    await assert.rejects(jobs.result('bad'), { code: 'JOB_DEAD' })
    const ended = await until(far, (overview) => of(overview)!.waiting + of(overview)!.taken === 0)
    assert.equal(of(ended)!.dead, 1)
    await running.close()
  })

  test(`${kind}: a queue of something else has no jobs`, async () => {
    await using far = await open()
    await (await far.engine.queue('other')).add('a', new Uint8Array(), 1)
    assert.ok((await far.overview({ waitMs: 0 })).queues.every((queue) => queue.zone !== 'other'))
  })
}

overviewTests('memory', () => connect('memory:overview'))
if (SKIP !== false) test('nats: overview', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  overviewTests('nats', async () => connect((await server).url))
  test('nats: without JetStream there are no queues', async () => {
    await using plain = await startServer(-1, undefined, () => '')
    await using far = await connect(plain.url)
    assert.deepEqual(await far.overview(), { hosts: [], queues: [] })
  })
}

test('a reply that is not whole is of no host', () => {
  const info = { id: 'i', zone: 'z', version: 'v', machine: 'm', pid: 1, upMs: 2, isLeaving: false }
  const whole = { ...info, inFlight: 0, inFlightMax: 1, jobsRunning: 0, jobsMax: 0 }
  assert.deepEqual(readPresence(presence(whole)), whole)
  const broken = [
    { id: '' },
    { zone: 'a\u001B[2J' },
    { pid: -1 },
    { upMs: 0.5 },
    { isLeaving: 1 },
    { version: 7 },
  ]
  for (const part of broken) assert.equal(readPresence(written('host', { ...whole, ...part })), undefined)
  assert.equal(readPresence(written('card', whole)), undefined)
})
