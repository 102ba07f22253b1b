/**
 * Jobs on the engine in memory, and what is refused.
 *
 * The tests themselves are in jobs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { zone } from '../../zone/index.ts'
import { connect } from '../connect.ts'
import { currentJob } from '../host/current.ts'
import { host } from '../host/host.ts'
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

test('jobs wait where the zone of their host is full', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'full-'))
  const file = join(folder, 'file')
  const cpu = zone.create('jobs full', { workers: 1, tasksMax: 1 })
  const fleet = await connect('memory:full zone')
  try {
    const module = new URL('../scores.test.support.js', import.meta.url)
    const hosting = await host(fleet, { name: 'full', module, version: 'v1', zone: cpu, jobsMax: 4 })
    const jobs = fleet.jobs<typeof import('../scores.test.support.ts')>('full')
    const keys = ['a', 'b', 'c', 'd']
    for (const key of keys) await jobs.submit(key, 'until', [file])
    while (hosting.jobsRunning < keys.length) await new Promise((resolve) => setImmediate(resolve))
    writeFileSync(file, '')
    for (const key of keys) assert.equal(await jobs.result(key), file)
    assert.equal((await jobs.get('d'))?.failures, 0)
  } finally {
    await fleet.close()
    await cpu.close()
    rmSync(folder, { recursive: true })
  }
})
