/**
 * Jobs on the engine in memory, and what is refused.
 *
 * The tests themselves are in jobs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { cores } from '../../base/index.ts'
import { until } from '../../base/wait.test.support.ts'
import { zone } from '../../zone/index.ts'
import { type Fleet, connect } from '../connect.ts'
import { currentJob } from '../worker/current.ts'
import { host } from '../host/host.ts'
import type { JobDeadEvent } from './events.ts'
import { jobTests } from './jobs.test.support.ts'

jobTests('memory', () => connect('memory:jobs'))

test('wrong arguments are refused by name', async () => {
  await using fleet = await connect('memory:wrong jobs')
  assert.throws(() => fleet.jobs('a b'), { code: 'FLEET_ARGUMENT' })
  const jobs = fleet.jobs<{ score(text: string): number }>('scores')
  for (const key of ['', 'x'.repeat(201), 5 as never]) {
    await assert.rejects(jobs.submit(key, 'score', ['x']), { code: 'FLEET_ARGUMENT' })
    await assert.rejects(jobs.result(key), { code: 'FLEET_ARGUMENT' })
  }
  for (const key of ['half \ud800', '\udc00'])
    await assert.rejects(jobs.submit(key, 'score', ['x']), { code: 'FLEET_ARGUMENT' })
  // A schedule has room for the time.
  const schedule = { everyMs: 1000 }
  await assert.rejects(jobs.submit('x'.repeat(176), 'score', ['x'], { schedule }), /1 to 175 characters/)
  await assert.rejects(jobs.submit('k', 'score', 'x' as never), { code: 'FLEET_ARGUMENT' })
  for (const options of [
    { retry: { attemptsMax: 0 } },
    { priority: 'urgent' as never },
    { delayMs: -1 },
    { ttlMs: 5 },
    { schedule: {} },
    { schedule: { everyMs: 1000, cron: '* * * * *' } },
    { schedule: { cron: 'every day' } },
    { schedule: { cron: '0 0 30 2 *' } },
    { schedule: { cron: '0 3 * * *', timeZone: 'Mars/Olympus' } },
  ])
    await assert.rejects(jobs.submit('k', 'score', ['x'], options), { code: 'FLEET_ARGUMENT' })
  assert.equal(await jobs.count(), 0)
  assert.equal(currentJob(), undefined)
})

type Module = typeof import('../scores.test.support.ts')
const MODULE = new URL('../scores.test.support.js', import.meta.url)

/** A folder with a file that jobs wait for, and a fleet. */
async function waiting(work: (fleet: Fleet, file: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'full-'))
  const fleet = await connect(`memory:${folder}`)
  try {
    await work(fleet, join(folder, 'file'))
  } finally {
    await fleet.close()
    rmSync(folder, { recursive: true })
  }
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

test('jobs wait where the zone of their host is full, and do not count as running', () =>
  waiting(async (fleet, file) => {
    const cpu = zone.create('jobs full', { workers: 1, tasksMax: 1 })
    const own = cpu.module<Module>(MODULE).until(file)
    const hosting = await host(fleet, { name: 'full', module: MODULE, version: 'v1', zone: cpu, jobsMax: 4 })
    const jobs = fleet.jobs<Module>('full')
    const keys = ['a', 'b', 'c', 'd']
    for (const key of keys) await jobs.submit(key, 'until', [file])
    await turn()
    assert.deepEqual([hosting.jobsRunning, (await jobs.get('a'))?.status], [0, 'waiting'])
    writeFileSync(file, '')
    await own
    for (const key of keys) assert.equal(await jobs.result(key), file)
    assert.equal((await jobs.get('d'))?.failures, 0)
    await cpu.close()
  }))

test('a host runs as many jobs at once as it takes, however few its workers are', () =>
  waiting(async (fleet, file) => {
    const jobsMax = 2 * cores() + 1
    const hosting = await host(fleet, { name: 'wide', module: MODULE, version: 'v1', jobsMax })
    const jobs = fleet.jobs<Module>('wide')
    const keys = Array.from({ length: jobsMax }, (_, index) => `job ${index}`)
    for (const key of keys) await jobs.submit(key, 'until', [file])
    while (hosting.jobsRunning < jobsMax) await turn()
    writeFileSync(file, '')
    for (const key of keys) assert.equal(await jobs.result(key), file)
    assert.equal(hosting.jobsRunning, 0)
  }))

test('a host takes no more jobs than its zone begins, and another one has the rest', () =>
  waiting(async (fleet, file) => {
    const zones = ['one', 'two'].map((name) => zone.create(`jobs of ${name}`, { workers: 1 }))
    const options = { name: 'narrow', module: MODULE, version: 'v1', jobsMax: 8 }
    const one = await host(fleet, { ...options, zone: zones[0] })
    const jobs = fleet.jobs<Module>('narrow')
    for (const key of ['a', 'b', 'c']) await jobs.submit(key, 'until', [file])
    while (one.jobsRunning === 0) await turn()
    await jobs.submit('next', 'until', [file], { priority: 'high' })
    const two = await host(fleet, { ...options, zone: zones[1] })
    while (two.jobsRunning === 0) await turn()
    while ((await jobs.get('next'))?.status !== 'running') await turn()
    assert.deepEqual([one.jobsRunning, (await jobs.get('b'))?.status], [1, 'waiting'])
    writeFileSync(file, '')
    for (const key of ['a', 'b', 'c']) assert.equal(await jobs.result(key), file)
    await fleet.close()
    await Promise.all(zones.map((each) => each.close()))
  }))

test('a dead job and the end of its host are events', async () => {
  const events: [string, object][] = []
  const channels = ['corespun:job:dead', 'corespun:fleet:closing', 'corespun:fleet:closed']
  const listeners = channels.map(
    (name) => [name, (event: unknown) => void events.push([name, event as object])] as const,
  )
  for (const [name, listener] of listeners) subscribe(name, listener)
  try {
    await using fleet = await connect('memory:events of jobs')
    const hosting = await host(fleet, { name: 'scores', module: MODULE, jobsMax: 1 })
    const jobs = fleet.jobs<Module>('scores')
    await jobs.submit('bad', 'fail', ['LOW'], { retry: { attemptsMax: 2, backoffMs: 1, backoffMsMax: 1 } })
    await assert.rejects(jobs.result('bad'), { code: 'JOB_DEAD' })
    await until(() => events.length === 1)
    const [[, { error, ...dead }]] = events as [[string, JobDeadEvent]]
    assert.deepEqual(dead, { zone: 'scores', key: 'bad', name: 'fail', failures: 2, hostsLost: 0 })
    assert.equal((error as { code: string }).code, 'LOW')
    await hosting.close()
    const [, [begun, closing], [over, closed]] = events
    assert.deepEqual([begun, over], channels.slice(1))
    assert.deepEqual(closing, { zone: 'scores', host: hosting.id, calls: 0, jobs: 0, timeoutMs: 10_000 })
    assert.ok((closed as { ms: number }).ms >= 0)
  } finally {
    for (const [name, listener] of listeners) unsubscribe(name, listener)
  }
})
